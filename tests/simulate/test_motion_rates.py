"""Rates, accelerations and reactions where the rate of a Motion or of the base jumps."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import pendulum
from tests.simulate.arms import planar_pair

RATE, BEGIN, END = 5.0, 5e-3, 15e-3
TS = jnp.linspace(0.0, 0.025, 26)


def ramp(joint: str) -> fx.Drive:
    # Its corners are outputs.
    return fx.Drive(joints={joint: fx.Motion(fx.ramp(RATE * (END - BEGIN), END - BEGIN, BEGIN))})


def expected() -> np.ndarray:
    """At a corner the rate after it."""
    ts = np.asarray(TS)
    return np.where((ts > BEGIN - 1e-9) & (ts < END - 1e-9), RATE, 0.0)


@pytest.mark.parametrize(
    "formulation",
    [
        fx.RigidArm(),
        pytest.param(fx.FiniteElement(elements=2), marks=pytest.mark.slow),
        fx.TransferMatrix(segments=4),
        pytest.param(fx.ScrewSynthesis(modes=1), marks=pytest.mark.slow),
        pytest.param(fx.PortHamiltonian(elements=2), marks=pytest.mark.slow),
        pytest.param(fx.MovingBeam(elements=2), marks=pytest.mark.slow),
    ],
    ids=lambda f: type(f).__name__,
)
def test_rates_are_those_of_the_motion(formulation):
    traj = fx.simulate(formulation.bind(pendulum()), ramp("root"), TS, dt=1e-3)
    assert np.allclose(traj.qd[:, 0], expected(), atol=1e-9)
    assert np.allclose(traj.qdd, 0.0, atol=1e-9)
    if isinstance(formulation, fx.RigidArm):
        force = np.linalg.norm(traj.reaction[:, 0, :3], axis=1)
        # At rest it is the weight alone.
        assert np.allclose(force[expected() == 0.0], force[0], rtol=1e-9)
    assert np.max(np.abs(traj.energy.balance - traj.energy.balance[0])) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("solver", [fx.ImplicitMidpoint(), fx.TRBDF2()])
def test_rates_of_the_state_do_not_alternate(solver):
    """Joint and base node have the rate of the Motion after an odd and an even number of steps."""
    model = fx.PortHamiltonian(elements=2).bind(pendulum())
    for end in (9e-3, 1e-2):
        ts = jnp.array([0.0, BEGIN, end])
        mech = fx.simulate(model, ramp("root"), ts, dt=1e-3, solver=solver).final.mech
        np.testing.assert_allclose(mech.v, [RATE], atol=1e-9)
        np.testing.assert_allclose(mech.V[-1, 0, 0], RATE, atol=1e-9)


ADAPTIVE = diffrax.PIDController(rtol=1e-9, atol=1e-11)
PAIRS = [
    (fx.RigidArm(), {"solver": fx.DiscreteGradient()}, 1e-9),
    (fx.RigidArm(), {"solver": diffrax.Tsit5()}, 1e-9),
    (fx.TransferMatrix(), {}, 2e-5),
    (fx.RigidArm(), {"solver": diffrax.Tsit5(), "adaptive": ADAPTIVE}, 1e-7),
    (fx.RigidArm(), {"solver": fx.Newmark(), "adaptive": ADAPTIVE}, 1e-6),
    (fx.RigidArm(), {"solver": fx.Newmark()}, 2e-5),
    (fx.RigidArm(), {"solver": fx.GeneralisedAlpha()}, 2e-5),
    (fx.PortHamiltonian(elements=1), {"solver": fx.ImplicitMidpoint()}, 1e-9),
    (fx.PortHamiltonian(elements=1), {"solver": fx.TRBDF2()}, 2e-5),
    (fx.PortHamiltonian(elements=1), {"solver": diffrax.Tsit5()}, 1e-9),
    (fx.TransferMatrix(), {"solver": diffrax.Tsit5()}, 1e-9),
]
QUICK = 3  # of them


def pair_cases():
    for k, (formulation, options, balance) in enumerate(PAIRS):
        words = [type(formulation).__name__, *(type(x).__name__ for x in options.values())]
        marks = () if k < QUICK else pytest.mark.slow
        yield pytest.param(formulation, options, balance, marks=marks, id=" ".join(words))


@pytest.mark.parametrize(("formulation", "options", "balance"), list(pair_cases()))
def test_a_jump_keeps_the_momentum_of_free_joints(formulation, options, balance):
    """Two rigid links, the first under a Motion."""
    model, rigid = formulation.bind(planar_pair()), fx.RigidArm().bind(planar_pair())
    drive, start = ramp("joint1"), {"joint2": 0.8}
    traj = fx.simulate(model, drive, TS, dt=1e-3, start=start, stations=2, **options)
    q = rigid.initial_state(drive, 0.0, fx.Start({"joint2": 0.8})).mech.q
    mass = jax.vmap(lambda e: rigid.term(drive).momentum(q, e))(jnp.eye(2))
    corner = int(np.argmin(np.abs(np.asarray(TS) - BEGIN)))
    before = traj.qd[corner - 1, 1]
    assert np.allclose(traj.qd[:, 0], expected(), atol=1e-9)
    way = RATE * np.clip(np.asarray(TS) - BEGIN, 0.0, END - BEGIN)
    assert np.allclose(traj.q[:, 0], way, atol=1e-8)
    moved = np.diff(traj.q[corner : corner + 2, 1])
    assert np.allclose(moved, 1e-3 * np.mean(traj.qd[corner : corner + 2, 1]), atol=1e-5)
    jump = -mass[1, 0] / mass[1, 1] * RATE
    assert np.isclose(traj.qd[corner, 1] - before, jump, rtol=0.02)
    assert np.isclose(traj.qd[corner + 1, 1] - before, jump, rtol=0.02)
    assert np.max(np.abs(traj.energy.balance - traj.energy.balance[0])) < balance


def moved_base(kind: str) -> fx.Drive:
    way = fx.ramp(END - BEGIN, END - BEGIN, BEGIN)
    if kind == "angle":
        return fx.Drive(base=fx.Base(angle=RATE * way))
    return fx.Drive(base=fx.Base(translation=fx.stack([0.6 * way, -0.8 * way, fx.constant(0.0)])))


BASES = [(f, o, b) for f, o, b in PAIRS if "adaptive" not in o]


@pytest.mark.parametrize("kind", ["angle", "translation"])
@pytest.mark.parametrize(
    ("formulation", "options", "balance"),
    [
        pytest.param(*x, marks=() if k < 2 else pytest.mark.slow, id=f"{type(x[0]).__name__} {k}")
        for k, x in enumerate(BASES)
    ],
)
def test_a_jump_of_the_base_keeps_the_momentum_of_all_joints(formulation, options, balance, kind):
    """Two links on free joints. A base that rotates about the first joint leaves them as they are;
    one that is shifted moves them as its acceleration would."""
    model, rigid = formulation.bind(planar_pair()), fx.RigidArm().bind(planar_pair())
    drive, start = moved_base(kind), {"joint1": 0.3, "joint2": 0.8}
    traj = fx.simulate(model, drive, TS, dt=1e-3, start=start, stations=2, **options)
    corner = int(np.argmin(np.abs(np.asarray(TS) - BEGIN)))
    jump = traj.qd[corner + 1] - traj.qd[corner - 1]
    if kind == "angle":
        wanted = np.array([-RATE, 0.0])
    else:
        pushed = fx.stack([fx.polynomial([0, 0, x]) for x in (0.3, -0.4, 0.0)])
        shaken = fx.Drive(base=fx.Base(translation=pushed))
        y = rigid.initial_state(shaken, 0.0, fx.Start(start))
        rates = [rigid.term(d).rate(0.0, y, None).v for d in (shaken, fx.Drive())]
        wanted = np.asarray(rates[0] - rates[1])
    np.testing.assert_allclose(jump, wanted, atol=0.15)
    np.testing.assert_allclose(traj.qd[corner] - traj.qd[corner - 1], wanted, atol=0.1)
    assert np.max(np.abs(traj.energy.balance - traj.energy.balance[0])) < balance


def test_a_run_in_two_parts_has_the_impulse_once():
    """The second part starts on the break, after a run under the same or another drive."""
    model, ts = fx.RigidArm().bind(planar_pair()), BEGIN * jnp.array([0.0, 0.8, 1.0])
    held = fx.Drive(joints={"joint1": fx.Motion(fx.constant(0.0))})
    seconds = []
    for drive in (ramp("joint1"), held):
        first = fx.simulate(model, drive, ts, dt=1e-3, start={"joint2": 0.8})
        then = fx.simulate(model, ramp("joint1"), BEGIN + ts, dt=1e-3, start=first.final)
        seconds.append(then.qd)
        if drive is not held:
            np.testing.assert_allclose(then.qd[0], first.qd[-1], rtol=1e-9)
            assert np.max(np.abs(np.diff(then.qd[:, 1]))) < 0.5 < abs(then.qd[0, 1])
    np.testing.assert_allclose(*seconds, atol=1e-9)


def test_gradient_through_a_jump():
    model = fx.RigidArm().bind(planar_pair())
    ts = jnp.array([0.0, 0.01])

    @jax.jit
    def rate(value, begin):
        drive = fx.Drive(joints={"joint1": fx.Motion(fx.ramp(value, 0.02, begin))})
        return fx.simulate(model, drive, ts, dt=2e-3, start={"joint2": 0.8}, throw=False).qd[-1, 1]

    at, step = (0.1, 3.3e-3), 1e-6
    for i, slope in enumerate(jax.grad(rate, argnums=(0, 1))(*at)):
        up, down = (rate(*(x + s * (i == k) for k, x in enumerate(at))) for s in (step, -step))
        assert np.isclose(slope, (up - down) / (2 * step), rtol=1e-5)
