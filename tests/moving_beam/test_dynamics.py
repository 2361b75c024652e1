"""Equations of motion: the reference element, eq. (22) against Lagrange, the structured solve,
energy with moving length and base.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.moving_beam import _link
from flexjax.formulation.moving_beam._paper import Flow, Reference, element_inertia
from flexjax.formulation.moving_beam.beam._shapes import Shapes
from flexjax.numerics.term import Instant, Mechanical, State
from flexjax.simulate.loop._march import march
from tests.moving_beam.samples import ORDER, SAMPLE, unknowns


def test_inertia_force_of_the_reference_element(record_number):
    """Accelerations, Coriolis, transport and variable length, all at once."""
    s = {
        k: jnp.asarray(v, float)
        for k, v in SAMPLE.items()
        if k not in ("order", "tensors", "strain")
    }
    flow = Flow(
        jnp.stack([s["X0"], s["X0dot"], s["X0ddot"]]),
        jnp.stack([s["l"], s["ldot"], s["lddot"]]),
        jnp.stack([0 * s["v"], s["v"], s["vdot"]]),
    )
    ref = Reference(s["aO"], s["omega"], s["omegadot"])
    M, D, K, f = jax.jit(lambda: element_inertia(Shapes(), flow, ref, s["rhoA"], jnp.zeros(3)))()
    force = M @ unknowns("qdd") + D @ unknowns("qd") + K @ unknowns("q") - f
    want = np.array(SAMPLE["Fin_centreline"])[ORDER]
    record_number(
        "003 inertia force of the sample element",
        float(np.max(np.abs(np.asarray(force) - want))),
        1e-13,
    )
    record_number(
        "003 mass matrix of the sample element",
        float(np.max(np.abs(np.asarray(M) - np.array(SAMPLE["M_centreline"])[ORDER][:, ORDER]))),
        1e-13,
    )


def _telescope():
    """Two short tubes in space on a universal joint, with a payload: every kind of coordinate at
    once.
    """
    tube = dict(
        material=fx.Material(E=2e7, rho=1500.0, nu=0.3), damping=fx.Damping(strain_rate=1e-3)
    )
    links = [
        fx.Link("outer", 1.0, section=fx.Tube(0.06, 0.004), **tube),
        fx.Link("inner", 0.9, section=fx.Rectangle(0.03, 0.04), **tube),
    ]
    joints = [
        fx.Joint(
            "turn",
            "universal",
            "ground",
            "outer",
            axis=(0, 0, 1),
            axis2=(0, 1, 0),
            hub=fx.Hub(0.2, 1e-3),
            damping=0.01,
        ),
        fx.Joint("slide", "prismatic", "outer", "inner", home=0.5),
    ]
    payload = fx.Payload("load", "inner", 0.1, inertia=1e-4, offset=(0.02, 0.01, 0.0))
    return fx.Robot("telescope", links, joints, payloads=[payload], gravity=(0.3, -9.0, 1.0))


@pytest.fixture(scope="module")
def space():
    model = fx.MovingBeam(elements=3).bind(_telescope())
    drive = fx.Drive(
        joints={
            "turn": fx.Motion(fx.quintic(jnp.zeros(2), jnp.array([0.8, -0.5]), 0.3)),
            "slide": fx.Motion(fx.quintic(0.5, 0.7, 0.3)),
        }
    )
    return model, drive


def _state(model, scale, key, continuous=False):
    lay = model.layout
    k1, k2, k3 = jax.random.split(jax.random.key(key), 3)
    table = scale * jax.random.normal(k1, (lay.elements, lay.width))
    if continuous:
        # Axial slopes continuous over nodes: then no material changes its speed in a jump, and
        # d'Alembert's field is a function.
        slopes = table[:, -1]
        table = table.at[:, -2].set(jnp.concatenate([jnp.zeros(1), slopes[:-1]]))
    joints = jnp.array([0.3, -0.2, 0.6])
    q = jnp.concatenate([joints, table.reshape(-1)])
    v = scale * jax.random.normal(k2, (lay.nv,)) + jnp.zeros(lay.nv).at[:3].set(
        jnp.array([0.7, -0.4, 0.5])
    )
    a = scale * jax.random.normal(k3, (lay.nv,)) + jnp.zeros(lay.nv).at[:3].set(
        jnp.array([-2.0, 1.0, 3.0])
    )
    return q, v, a


def test_matrices_of_eq_22_are_lagranges_equations(record_number):
    """d'Alembert with the matrices of the paper against the derivative of the energies: telescope
    moving, frame turning about two axes on a ground that moves by itself, in three directions and
    about an oblique axis.
    """
    robot = fx.Robot("bare", _telescope().links, _telescope().joints, gravity=(0.3, -9.0, 1.0))
    # Without rotary inertia: sections' rotations have kinks at nodes, and material that runs over a
    # kink changes its spin in a jump (1e-8 here), which Lagrange's equations contain and a field of
    # accelerations does not.
    model = fx.MovingBeam(elements=3, order="consistent", rotary=False).build(robot)
    ground = fx.Base(
        fx.stack([fx.sine(x, f) for x, f in ((0.1, 0.7), (0.2, 0.5), (-0.1, 0.9))]),
        fx.sine(0.3, 0.8),
        axis=(1.0, -2.0, 0.5),
    )
    drive = fx.Drive(base=ground)
    term = model.term(drive)
    q, v, a = _state(model, 1e-2, 0, continuous=True)

    @jax.jit
    def both(q, v, a):
        y = State.fresh(Mechanical(q, v), q.dtype)
        t = 0.15
        m = model.matrices(t, y, drive, a)
        D = term.layout.dofs
        _, damped = term.forces(Instant(t), q, v)
        return (
            m.M @ a[D:] + m.D @ v[D:] + (m.K + m.K_strain) @ q[D:] - m.f,
            (term.balance(Instant(t), q, v, a) + damped)[D:],
            m,
        )

    ours, lagrange, m = both(q, v, a)
    record_number(
        "003 eq. (22) against Lagrange",
        float(jnp.max(jnp.abs(ours - lagrange)) / jnp.max(jnp.abs(lagrange))),
        1e-12,
    )
    record_number(
        "003 M symmetric", float(jnp.max(jnp.abs(m.M - m.M.T)) / jnp.max(jnp.abs(m.M))), 1e-14
    )


@pytest.mark.parametrize("planar, choice", [(True, {}), (False, {"uy": "quintic", "ux": "linear"})])
def test_energy_of_constant_lengths_is_that_of_a_mesh_at_rest(planar, choice, record_number):
    """Written for constant lengths in Legendre's polynomials, against the energy of a moving mesh
    in powers of xi with nothing moving: value and momenta. A planar arm on a ground that leaves its
    plane as well.
    """
    link = fx.Link(
        "link",
        0.7,
        section=fx.Rectangle(0.03, 0.04),
        material=fx.Material(E=2e7, rho=1500.0, nu=0.3),
    )
    robot = fx.Robot("arm", [link], [fx.Joint("pin", "revolute", "ground", "link")], planar=planar)
    arm = fx.MovingBeam(elements=3, shapes=choice).bind(robot).arm
    k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
    y, yd = (
        0.1 * jax.random.normal(k1, (3, arm.shapes.size)),
        jax.random.normal(k2, (2, 3, arm.shapes.size)),
    )
    twist = jax.random.normal(k3, (2, 6))
    inside = jnp.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])

    @functools.partial(jax.jit, static_argnames="flat")
    def gap(y, yd, twist, flat):
        def moving(y, rates):
            return _link.moving_mesh_kinetic(arm, jnp.zeros(0), y, rates)

        rates = _link.Rates(twist, jnp.zeros((2, 0)), yd)
        both = [
            jax.value_and_grad(f, (0, 1))(y, rates)
            for f in (
                moving,
                lambda y, rates: _link.kinetic(arm, jnp.zeros(0), y, rates, flat=flat),
            )
        ]
        if flat:  # momenta out of the plane are not asked for
            both = [
                eqx.tree_at(lambda x: x[1][1].twist, x, x[1][1].twist * inside[None]) for x in both
            ]
        return jnp.stack(
            [
                jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b))
                for a, b in zip(*map(jax.tree_util.tree_leaves, both), strict=True)
                if a.size
            ]
        )

    found = [gap(y, yd, twist, False)] + (
        [gap(y, yd, twist * inside[None], True)] if planar else []
    )
    record_number(
        "003 energy of constant lengths, value and momenta", float(jnp.max(jnp.stack(found))), 1e-13
    )


@pytest.mark.slow  # long to compile in space
def test_structured_solve_is_the_mass_matrix(space, record_number):
    """accelerate solves M a = ... to rounding, with and without prescribed joints."""
    model, drive = space
    q, v, _ = _state(model, 1e-2, 3)

    @jax.jit
    def gap(q, v):
        out = []
        for d in (fx.Drive(), drive):
            term = model.term(d)
            a = term.accelerate(Instant(0.1), q, v)
            r = term.balance(Instant(0.1), q, v, a)
            size = jnp.max(jnp.abs(term.balance(Instant(0.1), q, v, jnp.zeros_like(a))))
            out.append(jnp.max(jnp.abs(jnp.where(term.locked, 0.0, r))) / size)
        return jnp.stack(out)

    record_number("003 balance at the acceleration found", float(jnp.max(gap(q, v))), 1e-10)


@pytest.mark.slow  # long to compile in space
def test_energy_with_moving_length_and_joints(space, record_number):
    """Telescope runs out while the base turns about two axes, with damping, weight and payload:
    energy and the actuators' work.
    """
    model, drive = space
    traj = fx.simulate(model, drive, jnp.linspace(0.0, 0.3, 4), dt=5e-3)
    e = traj.energy
    scale = float(jnp.max(jnp.abs(e.kinetic)) + jnp.max(jnp.abs(e.elastic)))
    record_number(
        "003 energy balance, telescope and two angles prescribed",
        float(jnp.max(jnp.abs(e.balance - e.balance[0]))) / scale,
        1e-9,
    )
    assert float(e.dissipated[-1]) > 0 and traj.ok


@pytest.mark.slow  # long to compile in space
def test_energy_with_torques_on_a_universal_base(record_number):
    """Three tubes with a payload in space: torques turn the universal base about both axes, one
    length is pushed by a force, the other prescribed.
    """
    tube = dict(material=fx.Material(E=2e9, rho=1500.0, nu=0.3))
    links = [
        fx.Link(name, 0.6, section=fx.Tube(d, 0.003), **tube)
        for name, d in (("outer", 0.05), ("middle", 0.042), ("inner", 0.034))
    ]
    joints = [
        fx.Joint(
            "turn",
            "universal",
            "ground",
            "outer",
            axis=(0, 0, 1),
            axis2=(0, 1, 0),
            hub=fx.Hub(0.2, 1e-3),
        ),
        fx.Joint("first", "prismatic", "outer", "middle", home=0.4),
        fx.Joint("second", "prismatic", "middle", "inner", home=0.4),
    ]
    robot = fx.Robot(
        "telescope",
        links,
        joints,
        payloads=[fx.Payload("load", "inner", 0.2, inertia=1e-4)],
        gravity=(0.0, -9.0, 1.0),
    )
    model = fx.MovingBeam(elements=5).bind(robot)
    effort = fx.stack([fx.constant(6.0), fx.constant(-3.0)])
    drive = fx.Drive(
        joints={
            "turn": fx.Effort(effort),
            "first": fx.Effort(fx.constant(2.0)),
            "second": fx.Motion(fx.quintic(0.4, 0.5, 0.2)),
        }
    )
    traj = fx.simulate(model, drive, jnp.linspace(0.0, 0.2, 3), dt=5e-3)
    e = traj.energy
    scale = float(jnp.max(jnp.abs(e.kinetic)) + jnp.max(jnp.abs(e.elastic)))
    record_number(
        "003 energy balance, three tubes, torques and a force",
        float(jnp.max(jnp.abs(e.balance - e.balance[0]))) / scale,
        1e-9,
    )
    assert traj.ok and float(jnp.min(jnp.abs(traj.q[-1] - traj.q[0]))) > 1e-3


@pytest.mark.slow
def test_energy_with_moving_length_and_moving_ground(record_number):
    """The ground shakes and turns by itself while the telescope runs out and a torque lifts it:
    energy and work at the default step, and their order.
    """
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    links = [
        fx.Link(
            "outer",
            0.5,
            section=fx.Tube(0.03, 0.002),
            material=soft,
            damping=fx.Damping(strain_rate=1e-3),
        ),
        fx.Link("inner", 0.4, section=fx.Tube(0.024, 0.002), material=soft),
    ]
    joints = [
        fx.Joint("lift", "revolute", "ground", "outer", home=0.2, damping=0.05),
        fx.Joint("extend", "prismatic", "outer", "inner", home=0.2),
    ]
    robot = fx.Robot(
        "telescope",
        links,
        joints,
        [fx.Payload("tool", "inner", 0.1)],
        gravity=(0.5, -9.81, 0.0),
        planar=True,
    )
    base = fx.Base(
        translation=fx.stack([fx.sine(0.02, 4.0), fx.sine(0.03, 3.0), fx.constant(0.0)]),
        angle=fx.sine(0.2, 2.0),
    )
    drive = fx.Drive(
        joints={
            "lift": fx.Effort(fx.constant(1.0)),
            "extend": fx.Motion(fx.quintic(0.2, 0.3, 0.3)),
        },
        base=base,
    )
    model = fx.MovingBeam(elements=3).bind(robot)
    ts = jnp.linspace(0.0, 0.3, 4)

    out = {}
    for substeps in (50, 100, 200):
        solver, start = model.default_solver(drive), model.initial_state(drive, 0.0, fx.Start())
        ys, _, end = jax.jit(
            lambda n=substeps, solver=solver, start=start: march(
                model, drive, solver, ts, n, start, checkpoint=False
            )
        )()
        out[substeps] = (ys, jax.vmap(lambda t, y: model.energy(t, y, drive))(ts, ys))
        assert int(end.status) == 0
    e = out[100][1]
    scale = float(jnp.max(jnp.abs(e.kinetic)) + jnp.max(jnp.abs(e.elastic)))
    record_number(
        "003 energy balance, moving length and ground, default step",
        float(jnp.max(jnp.abs(e.balance - e.balance[0]))) / scale,
        1e-6,
    )
    coarse, middle, fine = (out[k] for k in (50, 100, 200))
    for name, of in (
        ("joint angle", lambda r: r[0].mech.q[-1, 0]),
        ("work", lambda r: r[1].work[-1]),
    ):
        order = float(jnp.log2(jnp.abs((of(coarse) - of(middle)) / (of(middle) - of(fine)))))
        record_number(
            f"003 moving length and ground: order of the {name}", order, (1.8, 2.2), relation="in"
        )


@pytest.mark.slow
def test_length_driven_by_a_force(record_number):
    """A straight telescope pushed by a constant force moves as its mass says; a bent one exchanges
    energy with its length, and the balance closes.
    """
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    links = [
        fx.Link(name, 0.5, section=fx.Tube(d, 0.002), material=soft)
        for name, d in (("outer", 0.03), ("inner", 0.024))
    ]
    joints = [
        fx.Joint("weld", "fixed", "ground", "outer"),
        fx.Joint("extend", "prismatic", "outer", "inner", home=0.2),
    ]
    robot = fx.Robot(
        "telescope",
        links,
        joints,
        [fx.Payload("tool", "inner", 0.1)],
        gravity=(0.0, 0.0, 0.0),
        planar=True,
    )
    model = fx.MovingBeam(elements=3).bind(robot)
    drive = fx.Drive(joints={"extend": fx.Effort(fx.constant(2.0))})
    ts = jnp.linspace(0.0, 0.1, 3)
    straight = model.initial_state(drive, 0.0, fx.Start())
    arc = {
        name: fx.Shape.of(y=lambda s, l=l: 0.05 * (l * s) ** 2)
        for name, l in (("outer", 0.5), ("inner", 0.2))
    }
    bent = model.initial_state(drive, 0.0, fx.Start(links=arc))

    @jax.jit
    def run(start):
        solver = model.default_solver(drive)
        ys, _, end = march(model, drive, solver, ts, 50, start, checkpoint=False)
        return ys, jax.vmap(lambda t, y: model.energy(t, y, drive))(ts, ys), end.status

    ys, _, _ = run(straight)
    mass = 0.1 + 1200.0 * 0.5 * np.pi / 4 * (0.024**2 - 0.020**2)
    moved = 2.0 * 0.1**2 / (2 * mass)
    record_number(
        "003 length driven by a force: way, against F t^2 / 2 m",
        abs(float(ys.mech.q[-1, 0] - 0.2) / moved - 1),
        1e-4,
    )
    ys, e, status = run(bent)
    assert int(status) == 0
    scale = float(jnp.max(e.kinetic) + jnp.max(e.elastic))
    record_number(
        "003 length driven by a force: energy balance, bent",
        float(jnp.max(jnp.abs(e.balance - e.balance[0]))) / scale,
        1e-9,
    )
    # Bending is lower in energy when the arm is longer: it pushes the tube out.
    record_number(
        "003 length driven by a force: bending drives the length too",
        float(ys.mech.q[-1, 0] - 0.2) / moved,
        1.001,
        relation=">",
    )


def _wrong_arm(link=None, joint=None, **others):
    """A good arm with one feature that MovingBeam does not support."""
    section = dict(
        section=fx.Rectangle(0.02, 0.01), material=fx.Material(E=5e9, nu=0.3, rho=1200.0)
    )
    first = fx.Link("first", 0.5, **(section | (link or {})))
    joints = [
        fx.Joint(
            "hub", **({"type": "revolute", "parent": "ground", "child": "first"} | (joint or {}))
        )
    ]
    return fx.Robot(
        "wrong", [first, *others.pop("links", ())], [*joints, *others.pop("joints", ())], **others
    )


_INNER = fx.Link(
    "inner", 0.4, section=fx.Rectangle(0.01, 0.01), material=fx.Material(E=5e9, nu=0.3, rho=1200.0)
)
_TELESCOPE = dict(name="extend", type="prismatic", parent="first", child="inner", home=0.2)


@pytest.mark.parametrize(
    "robot, message",
    [
        (lambda: _wrong_arm(joint={"stiffness": 100.0}), "joints.hub.stiffness: a flexible joint"),
        (lambda: _wrong_arm(joint={"type": "spherical"}), "joints.hub.type: spherical"),
        (
            lambda: _wrong_arm(link={"section_end": fx.Rectangle(0.01, 0.01)}),
            "links.first: tapered",
        ),
        (lambda: _wrong_arm(link={"curvature": (0.0, 0.0, 0.1)}), "initially curved"),
        (lambda: _wrong_arm(link={"damping": fx.Damping(modal=0.01)}), "links.first.damping.modal"),
        (
            lambda: _wrong_arm(
                links=[_INNER], joints=[fx.Joint("elbow", "revolute", "first", "inner")]
            ),
            "joints.elbow: a revolute joint behind an elastic link",
        ),
        (
            lambda: _wrong_arm(
                links=[_INNER], joints=[fx.Joint(**_TELESCOPE, offset=(0.0, 0.1, 0.0))]
            ),
            "joints.extend: offset or rotation",
        ),
        (
            lambda: _wrong_arm(
                links=[_INNER], joints=[fx.Joint(**_TELESCOPE, hub=fx.Hub(0.1, 1e-3))]
            ),
            "joints.extend: hub or mass",
        ),
        (
            lambda: _wrong_arm(
                links=[_INNER], joints=[fx.Joint("weld", "fixed", "ground", "inner")]
            ),
            "the links branch",
        ),
    ],
)
def test_each_refusal_names_its_field_and_cause(robot, message):
    with pytest.raises(ValueError, match=message):
        fx.MovingBeam().bind(robot())


def test_what_cannot_be_held_is_refused():
    arm = fx.load_robot("two-link")
    with pytest.raises(ValueError, match="behind an elastic link"):
        fx.MovingBeam().bind(arm)
    with pytest.raises(ValueError, match="at least 5"):
        fx.MovingBeam(elements=4).bind(fx.load_robot("soeffker-telescopic"))
    with pytest.raises(ValueError, match="all are rigid"):
        fx.MovingBeam().bind(fx.load_robot("rigid-3r"))
    with pytest.raises(ValueError, match="torsion has no inertia"):
        spin = fx.load_robot("soeffker-spin-up")
        fx.MovingBeam().bind(fx.Robot("spatial", spin.links, spin.joints, gravity=(0.0, 0.0, 0.0)))
    with pytest.warns(UserWarning, match="unbounded below"):
        fx.MovingBeam(order="cubic").bind(fx.load_robot("soeffker-spin-up"))
