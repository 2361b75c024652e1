"""Ends outside of limits and too short durations are refused before compiling."""

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import flexjax as fx
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise.problem._feasible import check_rest, shortest_time
from tests.optimise.test_optimise import model as one_mode

INF = np.inf


@pytest.mark.parametrize(
    "limits",
    [(INF, 4.0, INF), (1.2, 4.0, INF), (1.2, INF, 30.0), (1.2, 4.0, 30.0), (INF, 4.0, 30.0)],
)
@pytest.mark.parametrize("way", [0.03, -2.0])
def test_shortest_time_against_a_linear_program(way, limits):
    """The longest way from rest to rest in the shortest time is the given way."""
    velocity, acceleration, jerk = limits
    n, T = 200, shortest_time(way, *limits)
    h = T / n
    # Accelerations of the pieces; speeds at their ends.
    speeds = h * np.tril(np.ones((n, n)))
    ways = h * np.sum(speeds, axis=0) - 0.5 * h**2
    rows, bounds = [speeds], [np.full(n, velocity)]
    if np.isfinite(jerk):
        change = np.eye(n + 1, n) - np.eye(n + 1, n, -1)
        rows += [change, -change]
        bounds += [np.full(2 * (n + 1), jerk * h)]
    A, b = np.concatenate(rows), np.concatenate(bounds)
    used = np.isfinite(b)
    found = linprog(
        -ways,
        A[used] if used.any() else None,
        b[used] if used.any() else None,
        np.ones((1, n)),
        [0.0],
        bounds=(-acceleration, acceleration),
    )
    assert found.status == 0
    assert np.isclose(-found.fun, abs(way), rtol=3 / n)


def test_shortest_time_with_a_jerk_limit():
    # Bang-bang jerk with four equal pieces.
    assert np.isclose(shortest_time(1.0, INF, INF, 32.0), 1.0)
    # The jerk limit fades out: the other closed forms appear.
    assert np.isclose(shortest_time(1.0, 1.0, 2.0, 1e9), shortest_time(1.0, 1.0, 2.0, INF))
    assert np.isclose(shortest_time(1.0, INF, 4.0, 1e9), 1.0)
    assert shortest_time(0.0, 1.0, 1.0, 1.0) == 0.0


def _rigid():
    link = fx.Link(
        "link", 0.5, rigid=True, body=fx.Body(1.0, (0.25, 0, 0), (1e-2,) * 3 + (0.0,) * 3)
    )
    stops = fx.Stops(-1.0, 1.0, 1e3)
    joint = fx.Joint("root", "revolute", "ground", "link", stops=stops)
    robot = fx.Robot("bar", (link,), (joint,), gravity=(0, -9.81, 0), planar=True)
    return fx.RigidArm().bind(robot)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(goal={"root": 1.5}), "goal.root: 1.5; expected a coordinate within its end stops"),
        (dict(start={"root": -2.0}), "start.root: -2; expected a coordinate within its end stops"),
        (
            dict(limits={"position": {"root": (-0.1, 0.4)}}),
            "goal.root: 0.8; expected a coordinate within limits.position.root, -0.1 to 0.4",
        ),
        (dict(limits={"velocity": 1.0}), "takes at least 0.8 s from 0 to 0.8"),
        (dict(limits={"acceleration": 3.2}), "takes at least 1 s from 0 to 0.8"),
        (
            dict(limits={"velocity": 2.0, "acceleration": 10.0}, duration=(0.2, 0.5)),
            r"takes at least 0.6 s .*\(velocity 2, acceleration 10\). Give a longer duration",
        ),
        (dict(limits={"jerk": 25.6}), "takes at least 1 s"),
        (dict(limits={"effort": 0.1}), "limits.effort.root: 0.1; the arm at rest at the start"),
        (dict(limits={"keep_out": (0.3, 0.3, 0.0, 0.2)}), "the tip is inside of ball 0"),
    ],
)
def test_refusals(options, words):
    given = dict(goal={"root": 0.8}, duration=0.5, dt=0.05)
    with pytest.raises(ValueError, match=words):
        fx.optimise(_rigid(), **(given | options))


def test_an_arm_without_equilibrium_is_refused():
    given = dict.fromkeys(("limits", "spread", "samples", "free", "steps", "hold", "start"))
    given |= dict(duration=0.5, minimise="residual_energy", knots=4, dt=0.05)
    problem = build_problem(one_mode(), None, goal={"root": 1.0}, **given)
    first, last = problem.ends()
    nowhere = jax.tree.map(lambda a: a * np.nan if a.dtype == float else a, last)
    with pytest.raises(ValueError, match="goal: the arm does not rest there; expected joint"):
        check_rest(problem, (first, nowhere))


def test_a_flexible_joint_that_has_to_rest_is_refused():
    limits = {"acceleration": 1.0}
    with pytest.raises(ValueError, match="joint 'root' takes at least 2 s"):
        fx.optimise(
            one_mode(), goal={"root": 1.0}, duration=(0.1, 0.5), minimise="time", limits=limits
        )
