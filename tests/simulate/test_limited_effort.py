"""A PD controller whose effort has a limit, with gains that change the effort by many limits within
one step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import RIGID, each, light, method, pendulum

LIMIT = 2.5
TS = jnp.array([0.0, 0.1])
FINE = {60.0: 0.3567, 200.0: 0.1731}  # FiniteElement at a hundredth of the step
STIFF = {60.0: 0.3418, 200.0: 0.1606}  # RigidArm likewise


def run(model, kd, limit, solver=None):
    drive = fx.Drive(joints={"root": fx.PD(400.0, kd, fx.constant(1.0), limit=limit)})
    return fx.simulate(model, drive, TS, dt=2e-3, solver=solver, throw=False)


@pytest.mark.parametrize("name", each(light()))
def test_step_finds_the_limited_effort(name):
    expected = STIFF if name in RIGID else FINE
    model = method(name, "limited effort").bind(pendulum())

    @jax.jit
    @lambda f: jax.value_and_grad(f, argnums=(0, 1), has_aux=True)
    def angle(kd, limit):
        traj = run(model, kd, limit)
        return traj.q[-1, 0], (traj.status, traj.effort[-1, 0])

    for kd, q in expected.items():
        (got, (status, effort)), gradient = angle(kd, LIMIT)
        assert status == 0
        assert abs(effort) <= LIMIT * (1 + 1e-9)
        assert np.isclose(got, q, rtol=0.02)
        for i, at in enumerate((kd, LIMIT)):
            step = 1e-6 * at  # with more, a step of the run passes the kink
            ends = [(kd + s, LIMIT) if i == 0 else (kd, LIMIT + s) for s in (step, -step)]
            (up, _), (down, _) = (angle(*end)[0] for end in ends)
            assert np.isclose(gradient[i], (up - down) / (2 * step), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("solver", [fx.DiscreteGradient(), fx.GeneralisedAlpha()])
def test_other_solvers_find_it(solver):
    traj = run(fx.RigidArm().bind(pendulum()), 200.0, LIMIT, solver)
    assert traj.ok
    assert np.isclose(traj.q[-1, 0], STIFF[200.0], rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("linearisation", ["newton", "extrapolated"])
def test_the_published_transfer_matrices_find_it(linearisation):
    segments = {"segments": 4, "half_springs": False, "rotary": False, "beta": 0.3025, "gamma": 0.6}
    published = fx.TransferMatrix(variant="paper", linearisation=linearisation, **segments)
    wanted = run(fx.TransferMatrix(**segments).bind(pendulum()), 200.0, LIMIT)
    traj = run(published.bind(pendulum()), 200.0, LIMIT)
    assert traj.ok
    assert np.isclose(traj.q[-1, 0], wanted.q[-1, 0], rtol=0.02)


@pytest.mark.parametrize(
    "formulation",
    [fx.RigidArm(), pytest.param(fx.TransferMatrix(segments=2), marks=pytest.mark.slow)],
)
def test_two_limits_and_that_of_a_motor(formulation):
    """Joints that push each other to and from their limits; the elbow's is the motor's."""
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    links = [
        fx.Link(name, 0.4, section=fx.Rectangle(0.02, 0.01), material=soft)
        for name in ("upper", "fore")
    ]
    joints = (
        fx.Joint("shoulder", "revolute", "ground", "upper"),
        fx.Joint("elbow", "revolute", "upper", "fore", motor=fx.Motor(limit=0.5)),
    )
    robot = fx.Robot("two", links, joints, planar=True)

    def final(dt):
        drive = fx.Drive(
            joints={
                "shoulder": fx.PD(400.0, 60.0, fx.constant(1.0), limit=2.5),
                "elbow": fx.PD(200.0, 60.0, fx.constant(-0.5)),
            }
        )
        traj = fx.simulate(formulation.bind(robot), drive, TS, dt=dt, throw=False)
        assert traj.ok
        return traj.q[-1]

    # An effort leaves its limit within a step: of first order.
    assert np.allclose(final(2e-3), final(2e-4), atol=0.02)
