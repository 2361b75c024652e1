"""Motion: the paper's arms against reference trajectories, energy, the rigid limit, contacts that
move, links that leave their joints, gradients.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.term import Mechanical, State

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "001_finite_element.json").read_text()
)
SWITCHES = [0.0, 0.25, 0.5]


def bang_bang_drive(**amplitudes):
    return fx.Drive(
        joints={name: fx.Effort(fx.bang_bang(a, SWITCHES)) for name, a in amplitudes.items()}
    )


def drift(traj):
    """Largest error of the energy balance, relative to the largest energy."""
    e = traj.energy
    scale = max(float(np.max(np.abs(x))) for x in (e.kinetic, e.elastic, e.gravity, e.work))
    return float(np.max(np.abs(e.balance - e.balance[0]))) / scale


@pytest.fixture(scope="module")
def extending():
    """RPb under its bang-bang input; both joints free, the link bends and pushes itself out."""
    # The reference took EI = .1688 (the printed I = 8.44e-12).
    robot = fx.load_robot("my-rpb")
    robot = eqx.tree_at(
        lambda r: r.links[1].material.E,
        robot,
        jnp.asarray(REFERENCE["parameters"]["RPb"]["EI"] / 8.4375e-12),
    )
    model = fx.FiniteElement(elements=5).bind(robot)
    drive = bang_bang_drive(turn=0.1, guide=0.2)
    ts = jnp.array([0.0, 0.05, 0.1, 0.2])
    return fx.simulate(model, drive, ts, substeps=100, stations=2)


def test_link_runs_out_of_its_guide(extending, record_number):
    reference = REFERENCE["bang_bang"]["RPb"]["n5_dt2e-05"]
    rows = [reference["t"].index(t) for t in (0.05, 0.1, 0.2)]
    for name, found, wanted, limit in (
        ("turn [rad]", extending.q[1:, 0], reference["p1"], 2e-5),
        ("free length [m]", extending.q[1:, 1], reference["p2"], 2e-6),
        ("tip deflection [m]", extending.deflection[1:, 1, -1, 1], reference["w"], 2e-5),
        ("tip [m]", extending.tip[1:, :2], reference["tip"], 2e-5),
    ):
        record_number(
            f"RPb to .2 s, {name}", float(np.max(np.abs(found - np.array(wanted)[rows]))), limit
        )
    record_number("energy balance of RPb to .2 s, relative", drift(extending), 1e-10)


def rider():
    """A clamped beam and a rigid rod that slides along it: the slider of the reference."""
    beam = fx.Link("beam", 1.0, constants=fx.BeamConstants(EA=1, EIy=1, EIz=0.6, GJ=1, rhoA=0.5))
    rod = fx.Link(
        "rod",
        0.3,
        body=fx.Body(0.15, [0.15, 0, 0], [0, 0.15 * 0.09 / 12, 0.15 * 0.09 / 12, 0, 0, 0]),
        rigid=True,
    )
    joints = [
        fx.Joint("clamp", "fixed", "ground", "beam"),
        fx.Joint("slide", "sliding", "beam", "rod", rotation=[0, 0, np.pi / 3]),
    ]
    return fx.Robot("slider", [beam, rod], joints, gravity=[0.0, 0.0, 0.0], planar=True)


def released(model):
    """w = .05 x^2 (3 - x)/2 at rest, contact at .31 moving at .5: the beam's coefficients by
    collocation, exact because the cubic is in the span.
    """
    x = np.linspace(0.05, 1.0, 30)
    m = model.layout.shapes[0]
    rows = np.stack(
        [np.asarray(model.links._station(jnp.zeros((2, m)), jnp.full(2, s)).f[0]) for s in x]
    )
    c = np.linalg.lstsq(rows, 0.05 * x**2 * (3 - x) / 2, rcond=None)[0]
    q = jnp.concatenate([jnp.array([0.31]), jnp.asarray(c)])
    return State.fresh(Mechanical(q, jnp.zeros(m + 1).at[0].set(0.5)), q.dtype)


@pytest.mark.slow  # a compiled run of its own
def test_contact_crosses_element_borders(record_number):
    model = fx.FiniteElement(elements=4).bind(rider())
    traj = fx.simulate(
        model, None, jnp.linspace(0.0, 1.0, 6), substeps=100, start=released(model), stations=2
    )
    reference = REFERENCE["slider"]["bspline_C2"]["4"]
    record_number("slider, contact after 1 s [m]", float(abs(traj.q[-1, 0] - reference[0])), 2e-4)
    centre = 0.5 * (traj.frames[-1, 1, 0, :2] + traj.frames[-1, 1, -1, :2])
    record_number(
        "slider, rider's centre after 1 s [m]",
        float(np.max(np.abs(centre - np.array(reference[1:3])))),
        2e-4,
    )
    record_number("slider, energy over two crossings at dt = 2 ms, relative", drift(traj), 1e-9)


@pytest.mark.slow  # a compiled run of its own
def test_ran_off_link():
    model = fx.FiniteElement(elements=2).bind(rider())
    state = released(model)
    state = eqx.tree_at(lambda s: s.mech.v, state, state.mech.v.at[0].set(8.0))
    with pytest.raises(fx.SimulationError, match=r"slide.*ran_off_link"):
        fx.simulate(model, None, jnp.linspace(0.0, 0.2, 3), substeps=50, start=state, stations=2)


@pytest.mark.slow  # a compiled run of its own
def test_gradient_through_a_moving_contact(record_number):
    """Forward = reverse = finite differences for the bending stiffness of the carrier."""
    model = fx.FiniteElement(elements=2).bind(rider())
    start = released(model)

    def end(EI):
        robot = eqx.tree_at(lambda r: r.links[0].constants.EIz, model.robot, EI)
        traj = fx.simulate(
            model.rebind(robot), None, jnp.array([0.0, 0.2]), substeps=20, start=start, stations=2
        )
        return traj.tip[-1, 1]

    EI = jnp.asarray(0.6)
    value = jax.jit(end)
    h = 1e-4
    slope = (value(EI + h) - value(EI - h)) / (2 * h)
    reverse = jax.jit(jax.grad(end))(EI)
    forward = jax.jit(jax.jacfwd(end))(EI)
    record_number(
        "gradient through a moving contact: forward against reverse, relative",
        float(abs(forward / reverse - 1)),
        1e-8,
    )
    record_number(
        "gradient through a moving contact: against finite differences, relative",
        float(abs(slope / reverse - 1)),
        1e-5,
    )


@pytest.mark.slow  # a compiled run of its own
def test_rigid_limit(record_number):
    """A million times stiffer, the sliding and revolute arm moves as the rigid one."""
    robot = fx.load_robot("my-par")
    drive = fx.Drive(
        joints={"slide": fx.Effort(fx.sine(2.0, 1.0)), "turn": fx.Effort(fx.sine(0.2, 1.0))}
    )
    ts = jnp.linspace(0.0, 0.2, 3)
    stiff = eqx.tree_at(lambda r: r.links[1].material.E, robot, robot.links[1].material.E * 1e6)
    soft, rigid = (
        fx.simulate(f.bind(r), drive, ts, substeps=20, stations=2)
        for f, r in ((fx.FiniteElement(elements=2), stiff), (fx.RigidArm(), robot))
    )
    record_number(
        "rigid limit (E times 1e6), tip of PaR [m]",
        float(np.max(np.abs(soft.tip - rigid.tip))),
        1e-6,
    )


@pytest.mark.slow  # a compiled run of its own
def test_spin_beyond_the_linear_model_is_told(record_number):
    """The PaR link softens as it spins (first clamped frequency 6.127 rad/s): reported,
    with the remedy.
    """
    from flexjax.formulation.finite_element._spin_limit import first_frequency

    model = fx.FiniteElement(elements=3, variant="paper").bind(fx.load_robot("my-par"))
    numbers, table = model.links.numbers, model.links.tables[1]
    found = first_frequency(
        np.asarray(numbers.M[1]), np.asarray(numbers.K[1]), table, 0.8, []
    )  # the payload is in M
    exact = 2 * np.pi * REFERENCE["frequencies_exact_hz"]["PaR"][0]
    record_number("first clamped frequency in the warning, relative", abs(found / exact - 1), 1e-4)
    drive = fx.Drive(
        joints={"slide": fx.Motion(fx.constant(0.0)), "turn": fx.Motion(fx.polynomial([0.0, 7.0]))}
    )
    with pytest.warns(UserWarning, match="without bound"):
        fx.simulate(model, drive, jnp.array([0.0, 0.01]), substeps=2, stations=2, throw=False)
