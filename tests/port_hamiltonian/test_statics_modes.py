"""Statics with large deflection, frequencies of the Timoshenko beam, the paper's element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.robot import Mechanism
from tests.port_hamiltonian.paper_element import PaperElement
from tests.port_hamiltonian.test_step import REFERENCE

DENSITY = dict(
    EA=1e5,
    EIy=200.0,
    EIz=200.0,
    GJ=200.0,
    rhoA=0.1,
    GAy=200.0,
    GAz=200.0,
    rhoIx=0.05,
    rhoIy=0.005,
    rhoIz=0.05,
)
SLENDER = dict(
    EA=1e7, EIy=1.0, EIz=1.0, GJ=1.0, rhoA=1.0, GAy=1e7, GAz=1e7, rhoIx=1e-6, rhoIy=1e-6, rhoIz=1e-6
)


def cantilever(constants, length=1.0, planar=True, **link):
    joint = fx.Joint(
        "j",
        "fixed",
        "ground",
        "link",
        rotation=(0.0, 0.0, 0.0) if planar else (0.0, 0.0, np.pi / 2),
    )
    body = fx.Link("link", length, constants=fx.BeamConstants(**constants), **link)
    return fx.Robot.serial([body], [joint], gravity=(0.0, 0.0, 0.0), planar=planar)


def rest(model, force):
    y = fx.equilibrium(model, fx.Drive(loads=[fx.Load("link", fx.constant(force))]))
    return np.asarray(y.mech.x[:, 0, -1])


def test_roll_up_closes(record_number):
    model = fx.PortHamiltonian(elements=6).bind(cantilever(SLENDER))
    gap = max(
        np.max(np.abs(rest(model, (0, 0, 0, 0, 0, 2 * np.pi * lam)) - np.array([x, y])))
        for lam, x, y in REFERENCE["statics"]["rollup"]["rows"]
        if lam in (0.25, 1.0)
    )
    record_number("roll-up into a circle, 6 elements", gap, 1e-10)


@pytest.mark.slow
def test_elastica_converges(record_number):
    row = next(r for r in REFERENCE["statics"]["elastica_dead_tip_force"]["rows"] if r[0] == 2.0)
    exact = np.array([1 - row[2], row[1]])
    errors = []
    for n in (6, 12):
        model = fx.PortHamiltonian(elements=n).bind(cantilever(SLENDER))
        errors.append(np.max(np.abs(rest(model, (0, 2.0, 0, 0, 0, 0)) - exact)))
    record_number("elastica, P L^2/EI = 2, 12 elements", errors[1], 2e-3)
    record_number("elastica, order", np.log2(errors[0] / errors[1]), (1.85, 2.15), "in")


def test_strain_at_the_ends(record_number):
    """Curvature of a cantilever under a tip force falls from P L/EI at the clamp to nothing at the
    tip, also behind the centres of the outermost elements.
    """
    model, force = fx.PortHamiltonian(elements=6).bind(cantilever(SLENDER)), 1e-3
    drive = fx.Drive(loads=[fx.Load("link", fx.constant((0, force, 0, 0, 0, 0)))])
    s = jnp.linspace(0.0, 1.0, 13)
    found = jax.jit(lambda y: model.observe(0.0, y, drive, s).strain[0, :, 5])(
        fx.equilibrium(model, drive)
    )
    record_number(
        "curvature under a tip force, relative to that at the clamp",
        np.max(np.abs(found / force - (1 - s))),
        1e-5,
    )


@pytest.mark.slow
def test_bend_of_45_degrees(record_number):
    stiff = dict(
        EA=1e7,
        EIy=1e7 / 12,
        EIz=1e7 / 12,
        GJ=1e7 / 12,
        rhoA=1.0,
        GAy=5e6,
        GAz=5e6,
        rhoIx=1.0,
        rhoIy=1.0,
        rhoIz=1.0,
    )
    exact = np.array(REFERENCE["statics"]["bend45_F300"][0]["tip"])
    errors = []
    for n in (8, 16):
        model = fx.PortHamiltonian(elements=n).bind(
            cantilever(stiff, 25 * np.pi, planar=False, curvature=(0.0, 0.0, -0.01))
        )
        tip = rest(model, (0, 0, 300.0, 0, 0, 0))
        # The reference starts along x and bends towards +y; ours starts along y and bends towards
        # +x.
        errors.append(np.max(np.abs(np.array([tip[1], tip[0], tip[2]]) - exact)))
    record_number("45-degree bend, 16 elements", errors[1], 0.05)
    record_number("45-degree bend, order", np.log2(errors[0] / errors[1]), (1.85, 2.15), "in")


def test_timoshenko_frequencies(record_number):
    exact = np.array(REFERENCE["linear"]["density"]["exact_timoshenko"])
    errors = []
    for n in (10, 20):
        found = (
            2
            * np.pi
            * np.asarray(
                fx.modes(fx.PortHamiltonian(elements=n).bind(cantilever(DENSITY)), n=5).frequencies
            )
        )
        errors.append(found / exact - 1)
    record_number("first Timoshenko frequency, 20 elements, relative", abs(errors[1][0]), 3e-4)
    for k, order in enumerate(np.log2(errors[0] / errors[1])):
        record_number(f"Timoshenko frequency {k + 1}, order", order, (1.85, 2.15), "in")


def test_slender_limit_is_euler_bernoulli(record_number):
    found = (
        2
        * np.pi
        * np.asarray(
            fx.modes(fx.PortHamiltonian(elements=20).bind(cantilever(SLENDER)), n=2).frequencies
        )
    )
    beta = np.array(REFERENCE["EB_clamped_free"][:2])
    record_number(
        "slender cantilever against Euler-Bernoulli, first frequency",
        abs(found[0] / beta[0] ** 2 - 1),
        2e-3,
    )


def paper_element(n, alpha):
    inertia, compliance = (
        jnp.diag(jnp.array([0.1, 0.1, 0.05])),
        jnp.diag(jnp.array([1e-5, 5e-3, 5e-3])),
    )
    l = jnp.asarray(1.0 / n)
    return PaperElement(l, l * jnp.array([1.0, 0.0, 0.0]), compliance, inertia, jnp.asarray(alpha))


def test_damping_of_fast_modes_hides_no_slow_one(record_number):
    """Strain-rate damping makes the shear modes decay a billion times faster than the arm vibrates;
    the arm's modes are still told.
    """
    plain, damped = (
        fx.modes(
            fx.PortHamiltonian(elements=8).bind(
                cantilever(SLENDER, damping=fx.Damping(strain_rate=tau))
            ),
            n=2,
        )
        for tau in (0.0, 1e-3)
    )
    gap = np.max(np.abs(np.asarray(damped.frequencies) / np.asarray(plain.frequencies) - 1))
    record_number("first frequencies of a damped stiff link", gap, 1e-3)
    # Rayleigh's law of such damping: zeta = tau omega / 2.
    np.testing.assert_allclose(
        damped.damping, 1e-3 * np.pi * np.asarray(plain.frequencies), rtol=1e-3
    )


def test_paper_element_power_and_frequencies(record_number):
    rng = np.random.default_rng(0)
    worst = 0.0
    for alpha in (0.3, 0.5, 0.8):
        C = rng.normal(size=(6, 6))
        element = PaperElement(
            jnp.asarray(0.1),
            jnp.asarray(0.1 * rng.normal(size=6)),
            jnp.asarray(C @ C.T + np.eye(6)),
            jnp.eye(6),
            jnp.asarray(alpha),
        )
        Q, P, F = (jnp.asarray(rng.normal(size=(6, 4))) for _ in range(3))
        t, w = element.ports(Q, P, jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.normal(size=6)))
        gain = jax.jvp(element.energy, (Q, P), element.rates(Q, P, t, w, F))[1]
        given = (
            jnp.sum(w[:, -1] * t[:, -1])
            - jnp.sum(w[:, 0] * t[:, 0])
            + jnp.sum(element.efforts(Q, P)[1] * F)
        )
        worst = max(worst, float(abs(gain - given) / (abs(gain) + jnp.sum(jnp.abs(w * t)))))
    record_number("power balance of the paper's element, any alpha", worst, 1e-12)
    # The lowest of N = 10 as an independent implementation has them; axial modes lie far above.
    found = np.asarray(paper_element(10, 0.5).clamped_frequencies(10))
    wanted = np.array(REFERENCE["linear"]["density"]["N10"]["first"][:3])
    record_number(
        "frequencies of the paper's element, N = 10", np.max(np.abs(found[:3] / wanted - 1)), 1e-8
    )


def test_mechanism_by_ports():
    """Four links closed by hand are the parallelogram of the example file."""
    m = Mechanism("parallelogram", gravity=(0.0, 0.0, 0.0), planar=True)
    A, B, C, D = (m.add(fx.Link(n, 1.0, constants=fx.BeamConstants(**DENSITY))) for n in "ABCD")
    quarter = (0.0, 0.0, np.pi / 2)
    m.connect(m.ground.out, A.base, "revolute", name="base-A")
    m.connect(m.ground.out, B.base, "revolute", name="base-B", rotation=quarter)
    m.connect(A.tip, C.base, "revolute", name="elbow-A", rotation=quarter)
    m.connect(B.tip, D.base, "revolute", name="elbow-B", rotation=(0.0, 0.0, -np.pi / 2))
    m.connect(C.tip, D.tip, "revolute", name="closure")
    ours, theirs = m.robot(), fx.load_robot("macchelli-parallelogram")
    assert [(j.name, j.parent, j.child, j.loop, j.child_at) for j in ours.joints] == [
        (j.name, j.parent, j.child, j.loop, j.child_at) for j in theirs.joints
    ]
    with pytest.raises(ValueError, match="expected"):
        m.connect(A.base, B.base)


def test_refusals_say_what_and_where():
    link = fx.Link(
        "link", 1.0, constants=fx.BeamConstants(**DENSITY), damping=fx.Damping(modal=0.01)
    )
    robot = fx.Robot.serial([link], [fx.Joint("j", "prismatic", "ground", "link")])
    told = " ".join(fx.PortHamiltonian().refusals(robot))
    assert "links.link.damping.modal" in told and "joints.j" in told


def test_an_element_of_half_a_turn_is_refused():
    ring = fx.Link(
        "ring", 1.0, constants=fx.BeamConstants(**DENSITY), curvature=(0.0, 0.0, 2 * np.pi)
    )
    robot = fx.Robot.serial([ring])
    (told,) = fx.PortHamiltonian(elements=2).refusals(robot)
    assert told.startswith("links.ring.curvature: rotates by 6.283 rad") and "elements=3" in told
    assert (
        fx.PortHamiltonian(elements=3).refusals(robot)
        == []
        == fx.PortHamiltonian(elements=2, variant="paper").refusals(robot)
    )


def test_station_on_a_node_has_a_one_sided_derivative():
    from flexjax.formulation.port_hamiltonian._link import station_weights

    slope = jax.jacfwd(lambda s: station_weights(s, 4))
    np.testing.assert_array_equal(slope(jnp.asarray(1.0)), [0, 0, 0, -4, 4])
    np.testing.assert_array_equal(slope(jnp.asarray(0.5)), [0, 0, -4, 4, 0])
    np.testing.assert_allclose(
        station_weights(jnp.asarray(0.6), 4), [0, 0, 0.6, 0.4, 0], atol=1e-15
    )
