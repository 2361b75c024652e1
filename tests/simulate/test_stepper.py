"""One step at a time: the numbers of `simulate`, derivatives, batches, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests._sample import sample_model

DT, STEPS = 5e-3, 8
EFFORTS = jnp.array([0.5, -0.2, 0.4, 30.0, 0.1, 0.0, -0.3, 0.2])  # one beyond the motor's limit
TS = DT * jnp.arange(STEPS + 1)


def drive():
    """A motion that begins and ends between two steps, and a load."""
    push = fx.Load("fore", fx.stack([fx.constant(0.0)] * 5 + [fx.sine(0.1, 3.0)]))
    motion = fx.shift(fx.quintic(-0.5, -0.4, 0.0172), 0.0031)
    return fx.Drive(joints={"elbow": fx.Motion(motion)}, loads=(push,))


def with_efforts(given, efforts):
    effort = fx.Effort(fx.piecewise_constant(TS[:-1], efforts))
    return fx.Drive({**given.joints, "shoulder": effort}, given.loads, given.base)


def run(step, efforts, start=None):
    state, first = step.reset(start)
    seen = [first]
    for effort in efforts:
        state, now = step(state, {"shoulder": effort})
        seen.append(now)
    return state, jax.tree.map(lambda *x: jnp.stack(x), *seen)


def test_steps_are_those_of_simulate():
    model = sample_model()
    step = fx.stepper(model, drive(), DT, observe=("q", "qd", "tip", "energy", "sensors"))
    assert step.inputs == ("shoulder",) and step.effort_size == 1
    state, seen = run(step, EFFORTS)
    traj = fx.simulate(model, with_efforts(drive(), EFFORTS), TS, dt=DT)
    assert state.ok
    for name in ("q", "qd", "tip"):
        np.testing.assert_allclose(seen[name], getattr(traj, name), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(seen["energy"].balance, traj.energy.balance, atol=1e-10)
    readings = fx.measure(traj)
    np.testing.assert_allclose(seen["sensors"]["tip-y"], readings["tip-y"], atol=1e-12)
    np.testing.assert_allclose(seen["t"], TS, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation",
    [
        fx.TransferMatrix(segments=3),
        fx.FiniteElement(elements=1),
        fx.ScrewSynthesis(),
        fx.PortHamiltonian(elements=2),
    ],
    ids=lambda formulation: type(formulation).__name__,
)
def test_efforts_jump_without_breaks_of_the_drive(formulation):
    """The drive has no break of its own; new efforts act from the first step on."""
    model = formulation.bind(fx.load_robot("two-link"))
    push = fx.Load("fore", fx.stack([fx.constant(0.0)] * 5 + [fx.sine(0.1, 3.0)]))
    efforts = jnp.array([0.5, -0.2, 0.4, 0.1])
    _, seen = run(fx.stepper(model, fx.Drive(loads=(push,)), DT), efforts)
    effort = fx.Effort(fx.piecewise_constant(TS[:4], efforts))
    given = fx.Drive({"shoulder": effort}, (push,))
    traj = fx.simulate(model, given, TS[:5], dt=DT)
    for name in ("q", "qd", "tip"):
        np.testing.assert_allclose(seen[name], getattr(traj, name), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_continues_a_run_and_needs_no_efforts():
    """Both joints are driven; the steps go on where a run ended, inside of a motion."""
    model, given = sample_model(), with_efforts(drive(), EFFORTS)
    first = fx.simulate(model, given, TS[:4], dt=DT)
    step = fx.stepper(model, given, DT)
    assert step.inputs == ()
    state, _ = step.reset(first.final, t0=float(TS[3]))
    for _ in range(STEPS - 3):
        state, seen = step(state)
    traj = fx.simulate(model, given, TS, dt=DT)
    np.testing.assert_allclose(seen["q"], traj.q[-1], rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_derivatives_agree_with_simulate_and_differences():
    model, given = sample_model(), drive()

    def by_steps(x):
        step = fx.stepper(model, given, DT)

        def one(state, effort):
            state, seen = step(state, effort[None])
            return state, seen["tip"][1]

        return jax.lax.scan(one, step.reset()[0], x * EFFORTS[:4])[1][-1]

    def by_simulate(x):
        traj = fx.simulate(model, with_efforts(given, x * EFFORTS), TS, dt=DT)
        return traj.tip[4, 1]

    forward = jax.jit(jax.jacfwd(by_steps))(0.7)
    reverse = jax.jit(jax.grad(by_steps))(0.7)
    whole = jax.jit(jax.jacfwd(by_simulate))(0.7)
    value = jax.jit(by_steps)
    difference = (value(0.7 + 1e-4) - value(0.7 - 1e-4)) / 2e-4
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    # Where breaks and outputs coincide, simulate differentiates a step of a millionth of dt.
    np.testing.assert_allclose(forward, whole, rtol=1e-5)
    np.testing.assert_allclose(forward, difference, rtol=1e-6)


@pytest.mark.slow
def test_batches_and_substeps():
    step = fx.stepper(sample_model(), drive(), DT, substeps=2)
    state, _ = step.reset()
    efforts = jnp.array([[0.1], [0.7], [-0.4]])
    states, seen = jax.vmap(step, (None, 0))(state, efforts)
    assert states.ok.shape == (3,) and seen["q"].shape == (3, 2)
    alone = [step(state, e)[1]["q"] for e in efforts]
    np.testing.assert_allclose(seen["q"], jnp.stack(alone), rtol=1e-12)


def test_a_failed_step_is_a_value():
    step = fx.stepper(sample_model(), drive(), DT)
    state, _ = step.reset()
    bad, seen = step(state, [jnp.nan])
    assert not bad.ok and np.all(np.isnan(seen["q"]))
    again, seen = step(bad, [0.0])
    assert not again.ok and np.all(np.isnan(seen["tip"]))
    np.testing.assert_array_equal(again.run.y.work, state.run.y.work)


def test_refusals():
    model = sample_model()
    with pytest.raises(ValueError, match="observe: 'speed'; expected some of"):
        fx.stepper(model, None, DT, observe=("speed",))
    for dt in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="dt: .*positive time"):
            fx.stepper(model, None, dt)
    with pytest.raises(ValueError, match="substeps: 0"):
        fx.stepper(model, None, DT, substeps=0)
    step = fx.stepper(model, drive(), DT)
    state, _ = step.reset()
    with pytest.raises(ValueError, match="efforts.elbow: no such joint; expected one of shoulder"):
        step(state, {"elbow": 1.0})
    with pytest.raises(ValueError, match=r"efforts: shape \(2,\); expected \(1,\)"):
        step(state, [1.0, 2.0])
