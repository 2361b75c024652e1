"""Rates, accelerations and reactions of joints under a Motion whose rate jumps."""

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
    if not isinstance(formulation, fx.TransferMatrix):
        assert np.max(np.abs(traj.energy.balance - traj.energy.balance[0])) < 5e-3


@pytest.mark.parametrize(
    ("solver", "balance"),
    [
        (fx.DiscreteGradient(), 1e-9),
        pytest.param(fx.Newmark(), 2e-3, marks=pytest.mark.slow),
        pytest.param(fx.GeneralisedAlpha(), 2e-3, marks=pytest.mark.slow),
    ],
)
def test_a_jump_keeps_the_momentum_of_free_joints(solver, balance):
    model = fx.RigidArm().bind(planar_pair())
    drive, start = ramp("joint1"), {"joint2": 0.8}
    traj = fx.simulate(model, drive, TS, dt=1e-3, solver=solver, start=start)
    q = model.initial_state(drive, 0.0, fx.Start({"joint2": 0.8})).mech.q
    mass = jax.vmap(lambda e: model.term(drive).momentum(q, e))(jnp.eye(2))
    corner = int(np.argmin(np.abs(np.asarray(TS) - BEGIN)))
    before = traj.qd[corner - 1, 1]
    assert np.allclose(traj.qd[:, 0], expected(), atol=1e-9)
    jump = -mass[1, 0] / mass[1, 1] * RATE
    assert np.isclose(traj.qd[corner, 1] - before, jump, rtol=0.02)
    assert np.isclose(traj.qd[corner + 1, 1] - before, jump, rtol=0.05)
    assert np.max(np.abs(traj.energy.balance - traj.energy.balance[0])) < balance


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
