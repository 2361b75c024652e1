"""Moves without vibration: optimality, robustness, limits, refusals, interruptions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate import _run
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise._goals import build_goals
from flexjax.study.optimise._replay import baseline
from flexjax.study.optimise.search import _host

STIFFNESS, PERIOD = 40.0, 0.3


@functools.cache
def model():
    """A rigid link behind an elastic gear, without weight: one mode."""
    inertia = STIFFNESS * (PERIOD / (2 * np.pi)) ** 2
    link = fx.Link(
        "link", 0.5, rigid=True, body=fx.Body(1e-6, (0.25, 0, 0), (1e-9,) * 3 + (0.0,) * 3)
    )
    joint = fx.Joint(
        "root",
        "revolute",
        "ground",
        "link",
        stiffness=STIFFNESS,
        motor=fx.Motor(rotor=0.05),
    )
    tool = fx.Payload("tool", "link", inertia / 0.5**2)
    return fx.RigidArm().bind(
        fx.Robot("one-mode", (link,), (joint,), payloads=(tool,), gravity=(0, 0, 0), planar=True)
    )


def move(**options):
    given = dict(goal={"root": 1.0}, duration=1.4 * PERIOD, dt=PERIOD / 30, knots=5)
    return fx.optimise(model(), **(given | options))


@functools.cache
def nominal():
    return move()


@functools.cache
def robust():
    return move(spread={"payloads.tool.mass": 0.1}, samples=3)


def test_the_first_period_is_the_closed_form():
    assert np.isclose(float(fx.modes(model(), n=1).frequencies[0]), 1 / PERIOD, rtol=1e-4)


def test_the_nominal_move_leaves_no_vibration():
    res = nominal()
    assert res.ok and res.kkt < 1e-5, str(res)
    found = res.against("quintic")
    assert found["optimised"][0] < 1e-3 * found["quintic"][0]
    # The simulated energy after the move is that of the cost.
    energy = np.asarray(res.trajectory.energy.mechanical)[res.steps :]
    np.testing.assert_allclose(energy, res.costs["residual_energy"][0], atol=1e-9)
    np.testing.assert_allclose(res.trajectory.q[0], 0.0, atol=1e-12)


def test_compared_moves_are_one_program():
    """Compiling every usual move took longer than finding the best one."""
    res = nominal()
    programs = lambda: _run._integrate._outside._cached._cache_size()
    before = programs()
    assert res.fits("zv") and res.fits("quintic")
    for name in ("quintic", "zv"):
        assert res.vibration(res.replay(move=name)) > 10 * res.vibration()
    res.against("quintic", "zv", path="payloads.tool.mass", values=[0.3, 0.4])
    assert programs() == before
    usual = baseline(res, "quintic")
    assert usual is not None
    ts = np.linspace(-0.1, 1.1 * res.duration, 41)
    found = jax.vmap(usual.joints["root"].signal.evaluate)(jnp.asarray(ts))
    same = jax.vmap(fx.quintic(0.0, 1.0, res.duration).evaluate)(jnp.asarray(ts))
    for a, b in zip(found, same, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * float(jnp.max(jnp.abs(b))))


@pytest.mark.slow
def test_the_robust_move_is_good_for_all_samples():
    mass = float(model().robot.payloads[0].mass)
    values = [mass, 0.9 * mass, 1.1 * mass]
    found = robust().against("quintic", "zv", "zvd", path="payloads.tool.mass", values=values)
    worst = {name: np.max(x) for name, x in found.items()}
    assert robust().ok, str(robust())
    assert worst["optimised"] < worst["quintic"] / 50
    assert worst["optimised"] < worst["zv"] / 10
    alone = np.max(nominal().robustness("payloads.tool.mass", values))
    assert worst["optimised"] < alone / 3


@pytest.mark.slow
def test_a_shaper_longer_than_the_move_is_not_a_number():
    assert np.isnan(move(duration=0.9 * PERIOD).against("zvd")["zvd"]).all()


@pytest.mark.slow
def test_limits_are_met_and_named():
    free = nominal()
    fastest = float(np.max(np.abs(free.trajectory.qd)))
    res = move(limits={"velocity": 0.9 * fastest, "acceleration": {"root": 1e3}})
    assert res.ok and res.violation <= 1e-6, str(res)
    assert np.max(np.abs(res.trajectory.qd[: res.steps + 1])) <= 0.9 * fastest * (1 + 1e-6)
    assert {(a.limit, a.where) for a in res.active} == {("velocity", "root")}


@pytest.mark.slow
def test_a_limit_that_cannot_be_met_is_reported():
    # Faster than half of what the way takes is refused; the acceleration limit is dynamic.
    res = move(limits={"velocity": 3.0, "acceleration": 30.0}, iterations=30)
    assert res.status == "infeasible" and res.violation > 1e-3, str(res)
    assert "cannot be met: exceeded by" in res.message and res.message in str(res)


@pytest.mark.slow
def test_replay_in_another_step_and_robot():
    res = nominal()
    fine = res.replay(dt=res.dt / 2)
    assert fine.ts.shape[0] > res.trajectory.ts.shape[0]
    assert res.vibration(fine) < 0.02 * res.against("quintic")["quintic"][0]
    heavy = model().robot.replace("payloads.tool.mass", 2.0)
    assert res.vibration(res.replay(robot=heavy)) > res.vibration(fine)


@pytest.mark.slow
def test_own_cost_and_free_numbers_of_a_drive():
    """The width of a ramp between rest and rest: without vibration at one whole period."""
    drive = fx.Drive(joints={"root": fx.Motion(fx.step_acceleration(0.0, 1.0, 0.5))})
    path = "drive.joints.root.signal.duration"

    def after(traj):
        return jnp.sum((traj.q[-20:, 0] - 1.0) ** 2)

    res = move(
        drive=drive,
        free=fx.Free(path, bounds=(0.45, 0.75)),
        minimise=after,
        duration=0.8,
        hold=0.3,
        dt=PERIOD / 60,
    )
    # Constant acceleration, then deceleration: zero vibration at twice the period.
    assert np.isclose(res.values[0], 2 * PERIOD, rtol=2e-3), str(res)


FAST = dict(limits={"acceleration": 60.0}, tolerance=1e-12)


@functools.cache
def fastest():
    return move(duration=(0.3, 0.9), minimise="time", dt=1e-2, **FAST)


def test_minimum_time_of_the_elastic_gear():
    """The motor moves on its B-spline; the fastest move within a speed limit ends at rest."""
    res = fastest()
    assert res.ok and 0.3 < res.duration < 0.9, str(res)
    assert res.violation < 1e-6 and res.kkt < 1e-4
    assert res.vibration() < 1e-5


@pytest.mark.parametrize("method, broken_call", [("gauss-newton", 2), ("slsqp", 4)])
def test_a_failed_simulation_is_a_rejected_step(monkeypatch, method, broken_call):
    real, calls = _host.values, []

    def broken(*args):
        found = real(*args)
        calls.append(None)
        if len(calls) == broken_call:
            found = jax.tree.map(lambda a: a if a.dtype == bool else a * jnp.nan, found)
        return found

    monkeypatch.setattr(_host, "values", broken)
    res = move(method=method)
    assert res.ok and len(calls) > broken_call, str(res)


def test_progress_tells_cost_violation_and_time():
    lines = []
    res = move(progress=lines.append)
    told = [line for line in lines if line.startswith("iteration ")]
    assert len(told) == len(res.history)
    assert all("cost" in t and "violation" in t and t.endswith("s left") for t in told), told


@pytest.mark.parametrize("method", ["gauss-newton", "slsqp"])
def test_ctrl_c_returns_the_best_so_far(monkeypatch, method):
    real, calls = _host.values, []

    def stopped(*args):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(_host, "values", stopped)
    res = move(method=method)
    assert res.status == "interrupted" and res.trajectory.ok


@pytest.mark.parametrize("method", ["sqp", "slsqp", "interior-point", "nlopt"])
def test_solvers_agree_on_the_minimum_time(method):
    """Gauss-Newton has no curvature for a time; the four others end at the same move."""
    pytest.importorskip({"interior-point": "pounce", "nlopt": "nlopt"}.get(method, "scipy"))
    res = move(duration=(0.3, 0.9), minimise="time", dt=1e-2, method=method, **FAST)
    assert res.violation < 1e-6, str(res)
    assert np.isclose(res.duration, fastest().duration, rtol=1e-5), str(res)


def test_a_result_and_a_file_are_first_guesses(tmp_path):
    again = move(guess=nominal())
    assert again.ok and len(again.history) <= 1, str(again)
    file = tmp_path / "move.npz"
    move(checkpoint=file, iterations=2)
    kept = move(checkpoint=file)
    assert kept.ok and len(kept.history) < len(nominal().history)
    with pytest.raises(ValueError, match="checkpoint: .*expected those of this move"):
        move(checkpoint=file, knots=4)
    file.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"move.npz': cannot be read .*The file is damaged"):
        move(checkpoint=file)


@pytest.mark.slow
def test_many_moves_are_those_found_one_by_one():
    goals = [{"root": a} for a in (0.5, 1.0, 1.5)]
    options = dict(duration=1.4 * PERIOD, dt=PERIOD / 30, knots=5, tolerance=1e-7)
    moves = fx.optimise_many(model(), goals=goals, batch=2, **options)
    assert moves.ok and len(moves) == 3, str(moves)
    for k, goal in enumerate(goals):
        one = fx.optimise(model(), goal=goal, **options)
        # Relative to the quintic of the same goal: all that is left is rounding.
        assert moves.cost[k] < 1e-12 and moves.violation[k] == 0.0
        assert moves[k].vibration() < 1e-5 and one.vibration() < 1e-5


@pytest.mark.parametrize("limit", [None, 0.05])
def test_many_goals_are_built_like_one(limit):
    """What differs between goals is stacked without building each; all numbers are the same."""
    arm = fx.TransferMatrix(segments=2).bind(fx.load_robot("two-link"))
    given = dict.fromkeys(("spread", "samples", "free", "steps", "hold", "start"))
    given |= dict(duration=0.5, minimise="residual_energy", knots=4, dt=0.05)
    given["limits"] = limit and {"position": {"elbow": (-0.6, limit)}}
    build = lambda goal: build_problem(arm, None, goal=goal, **given)
    goals = [{"shoulder": 0.5}, {"elbow": -0.4, "shoulder": 0.2}, fx.Start(joints={"elbow": 0.1})]
    if limit:
        with pytest.raises(ValueError, match="goal.elbow: 0.1; expected a coordinate within lim"):
            build_goals(build, arm.robot, goals, 4)
        return
    many = build_goals(build, arm.robot, goals, 4)
    home = {j.name: 0.0 if j.home is None else float(j.home) for j in arm.robot.joints}
    for k, goal in enumerate(goals):
        joints = goal.joints if isinstance(goal, fx.Start) else goal
        expected = build(home | dict(joints))
        found, same = (jax.tree.leaves(p) for p in (many.problem(k), expected))
        assert jax.tree.structure(many.problem(k)) == jax.tree.structure(expected)
        for a, b in zip(found, same, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-15)
    with pytest.raises(ValueError, match="goal.wrist: no such joint"):
        build_goals(build, arm.robot, [*goals, {"wrist": 1.0}], 4)


@pytest.mark.slow
def test_several_first_guesses():
    res = move(starts=3)
    assert res.ok and res.vibration() < 1e-5


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(method="newton"), "method: 'newton'; expected one of gauss-newton, sqp, slsqp"),
        (dict(method="gauss-newton", minimise="energy"), "energy, which is no sum of squares"),
        (dict(starts=0), "starts: 0; expected a whole number"),
        (dict(checkpoint="move.txt"), "expected a name that ends in .npz"),
        (dict(minimise={"tip_path": 1.0}), "minimise.tip_path: expected a signal"),
        (dict(minimise={"tracking": {"elbow": fx.constant(0.0)}}), "minimise.tracking: expected"),
        (dict(limits={"tip_speed": 0.1}), "the tip moves by 0.4794 m, which takes at least"),
        (dict(goal={"elbow": 1.0}), "goal.elbow: no such joint"),
        (dict(goal={"root": np.nan}), "goal.root: nan; expected a finite"),
        (dict(duration=-1.0), "duration: -1.0; expected a positive time"),
        (dict(duration=(0.5, 0.4)), r"expected a time in seconds, or \(shortest, longest\)"),
        (dict(minimise="vibration"), "minimise.vibration: unknown; expected one of residual"),
        (dict(minimise={"jerk": -1.0}), "minimise.jerk: weight -1.0"),
        (dict(limits={"speed": 1.0}), "limits.speed: unknown; expected some of position"),
        (dict(limits={"velocity": {"elbow": 1.0}}), "limits.velocity.elbow: no such joint"),
        (dict(limits={"velocity": 0.0}), "limits.velocity.root: 0.0; expected a positive"),
        (dict(limits={"position": {"root": (1, 0)}}), "expected .lower, upper."),
        (dict(limits={"strain": {"link": 1e-3}}), "no such elastic link"),
        (dict(limits={"keep_out": (1.0, 2.0)}), "expected balls"),
        (dict(spread={"payloads.tool.mass": 2.0}), "expected a share between 0 and 1"),
        (dict(spread={"payloads.tool.mas": 0.1}), "payloads.tool.mas"),
        (dict(spread={"payloads.tool.mass": (5.0, 6.0)}), "an interval around the robot's own"),
        (dict(samples=5), "samples: 5 without a spread"),
        (dict(spread={"payloads.tool.mass": 0.1}, samples=2), "expected at least 3"),
        (dict(over="median"), "over: 'median'; expected 'worst' or 'mean'"),
        (dict(knots=0), "knots: 0"),
        (dict(dt=1.0), "dt: 1.0; expected a positive step"),
        (dict(steps=1), "steps: 1; expected a whole number"),
        (dict(drive=fx.Drive()), "free: none; expected the free parameters"),
        (
            dict(spread={"payloads.tool.mass": 0.1}, free="payloads.tool.mass"),
            "is free too; expected one of the two",
        ),
    ],
)
def test_refusals_before_compiling(options, words):
    with pytest.raises(ValueError, match=words):
        move(**options)
