"""Efforts as free numbers, arm and move together, and one program for all goals and durations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.optimise.search import _inside
from tests.optimise.test_optimise import PERIOD, model, move

END, PIECES = 2 * PERIOD, 10
FORMS = {
    "constant": lambda t, values: fx.piecewise_constant(t, values),
    "linear": lambda t, values: fx.recorded(t, values, method="linear"),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_efforts_of_least_square_are_the_least_norm_solution(form):
    """Without weight the arm is linear in the effort, so that the best one is known: among all that
    end at rest at the goal, its gradient is a combination of those of the end conditions."""
    times = np.linspace(0.0, END, PIECES + 1)
    signal = lambda values: FORMS[form](times, values)
    wave = 3 * np.sin(2 * np.pi * (times + 0.5 * times[1]) / END)
    wave[-1] = 0.0  # it holds the arm afterwards
    drive = fx.Drive(joints={"root": fx.Effort(signal(wave))})
    free = [f"drive.joints.root.signal.values.{k}" for k in range(PIECES)]
    res = fx.optimise(
        model(),
        drive,
        free=free,
        goal={"root": 0.3},
        duration=END,
        steps=60,
        minimise="effort",
        method="slsqp",
    )
    assert res.ok and res.violation < 1e-6, str(res)
    np.testing.assert_allclose(res.trajectory.q[res.steps :], 0.3, atol=1e-6)
    np.testing.assert_allclose(res.trajectory.motor[res.steps :], 0.3, atol=1e-6)
    ts = np.linspace(0.0, 1.05 * END, 64)

    def ends(values):
        joints = {"root": fx.Effort(signal(jnp.append(values, 0.0)))}
        run = fx.simulate(model(), fx.Drive(joints=joints), ts, substeps=1, throw=False)
        rows = [run.q[60:62, 0], run.motor[60:62, 0]]
        weight = jnp.full(61, END / 60).at[jnp.array([0, 60])].mul(0.5)
        return jnp.concatenate(rows), 0.5 * jnp.sum(weight * run.effort[:61, 0] ** 2)

    rows, slope = jax.jit(jax.jacfwd(ends))(jnp.asarray(res.values))
    multipliers = np.linalg.lstsq(rows.T, slope, rcond=None)[0]
    assert np.max(np.abs(slope - rows.T @ multipliers)) < 1e-5 * np.max(np.abs(slope))


@pytest.mark.slow
def test_arm_and_move_are_found_together():
    """A gear whose stiffness is found with the move leaves less than the given one at its best."""
    path, acceleration = "joints.root.stiffness", 1.1 * 5.7735 / (1.2 * PERIOD) ** 2
    options = dict(goal={"root": 1.0}, duration=1.2 * PERIOD, dt=PERIOD / 30, knots=3)
    options |= dict(limits={"acceleration": acceleration})
    both = fx.optimise(model(), free={path: (20.0, 80.0)}, iterations=60, **options)
    assert both.names[-1] == path and 20 < both.values[-1] < 80
    assert float(both.model.robot.joints[0].stiffness) == both.values[-1]
    assert both.violation < 1e-6, str(both)
    alone = fx.optimise(model(), **options)
    assert alone.ok, str(alone)
    energies = [res.costs["residual_energy"][0] for res in (both, alone)]
    assert energies[0] < 0.9 * energies[1], (energies, str(both))


@pytest.mark.slow
def test_other_goals_and_durations_compile_nothing():
    programs = lambda: _inside.values._outside._cached._cache_size()
    fast = dict(minimise="time", limits={"acceleration": 60.0}, method="sqp", iterations=3)
    for options, others in (
        ({}, [dict(goal={"root": 0.7}), dict(duration=1.5 * PERIOD, dt=1.5 * PERIOD / 42)]),
        (
            dict(duration=(0.3, 0.9), steps=60, **fast),
            [dict(duration=(0.35, 0.8), steps=60, goal={"root": 0.8}, **fast)],
        ),
    ):
        move(**options)
        before = programs()
        for other in others:
            move(**other)
        assert programs() == before
