"""Every cost and every limit against formulas of their own, on all samples of the robot."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise.problem._costs import COSTS, REFERENCED
from flexjax.study.optimise.problem._limits import MARGINS
from flexjax.study.optimise.search import _values
from tests.optimise.test_optimise import model as one_mode

PATH, END, STEPS = "links.link.material.E", 0.25, 40
BOUNDS = {
    "position": {"motor": (-0.2, 0.8)},
    "velocity": 6.0,
    "acceleration": 90.0,
    "jerk": 5e3,
    "effort": 0.4,
    "power": 2.0,
    "strain": 2e-3,
    "stress": 1e8,
    "mass": 0.05,
    "tip_speed": 4.0,
    "keep_out": [(0.0, -0.3, 0.0, 0.1), (-0.5, 0.0, 0.0, 0.2)],
    "residual_energy": 1e-2,
}


@functools.cache
def model():
    return fx.TransferMatrix(segments=2).bind(fx.load_robot("li-zhang-single-link"))


@functools.cache
def problem():
    path = fx.quintic(np.zeros(3), np.array([0.1, 0.2, 0.0]), END)
    minimise = dict.fromkeys(COSTS, 1.0)
    minimise |= {"tip_path": (path, 2.0), "tracking": ({"motor": fx.quintic(0.0, 0.4, END)}, 3.0)}
    return build_problem(
        model(),
        None,
        goal={"motor": 0.5},
        start=None,
        duration=END,
        minimise=minimise,
        limits=BOUNDS,
        spread={PATH: 0.1},
        samples=3,
        free=None,
        knots=4,
        dt=1e-3,
        steps=STEPS,
        hold=0.1,
    )


@functools.cache
def found():
    """The outcome of the first guess, and a simulation of every sample with its rest."""
    p = problem()
    x = jnp.zeros(p.parameters.size + 1)
    outcome = jax.jit(lambda p, x, ends: p.outcome(x, ends))(p, x, p.ends())
    runs = []
    for (value,) in np.asarray(p.samples.values):
        arm = model().rebind(model().robot.replace(PATH, float(value)))
        first, last = fx.rest(arm), fx.rest(arm, {"motor": 0.5})
        ts = p.times(jnp.asarray(END))
        run = fx.simulate(arm, p.drive, ts, substeps=1, start=first.state, stations=9)
        runs.append((run, last))
    return outcome, runs


def costs_by_hand(run, last):
    t, tip, effort, qd = (np.asarray(x) for x in (run.ts, run.tip, run.effort, run.qd))
    away = np.sum((tip - np.asarray(last.tip)) ** 2, axis=1)
    step = np.diff(t)
    path = fx.quintic(np.zeros(3), np.array([0.1, 0.2, 0.0]), END)
    follow = fx.quintic(0.0, 0.4, END)
    aside = np.sum((tip - np.array([path(s) for s in t])) ** 2, axis=1)
    behind = (np.asarray(run.q)[:, 0] - np.array([float(follow(s)) for s in t])) ** 2
    energy = np.asarray(run.energy.mechanical)[STEPS] - float(last.energy.mechanical)
    return {
        "residual_energy": energy,
        "residual_tip": np.mean(away[STEPS:]),
        "deflection": np.max(np.sum(np.asarray(run.deflection) ** 2, axis=-1)),
        "effort": np.trapezoid(np.sum(effort**2, axis=1), t),
        "energy": np.trapezoid(np.sum(np.maximum(effort * qd, 0.0), axis=1), t),
        "jerk": np.sum((np.diff(np.asarray(run.qdd)[:, 0]) / step) ** 2 * step),
        "time": END,
        "tip_path": np.trapezoid(aside, t),
        "tracking": np.trapezoid(behind, t),
    }


@pytest.mark.slow
def test_every_cost_on_every_sample():
    outcome, runs = found()
    names = [c.name for c in problem().costs]
    assert set(names) == {*COSTS, *REFERENCED}
    for s, (run, last) in enumerate(runs):
        expected = costs_by_hand(run, last)
        for k, name in enumerate(names):
            np.testing.assert_allclose(
                outcome.costs[s, k], expected[name], rtol=1e-6, atol=1e-12, err_msg=name
            )


def margins_by_hand(run, last):
    """Margins (T, ...) of the bounds above."""
    arrays = (run.q, run.qd, run.qdd, run.effort)
    q, qd, qdd, effort = (np.asarray(x)[:, 0] for x in arrays)
    sides = lambda share: np.stack([1 - share, 1 + share], axis=-1)
    link = run.robot.links[0]
    width, height = float(link.section.width), float(link.section.height)
    strain = np.asarray(run.strain)[:, 0]
    surface = np.abs(strain[..., 0]) + 0.5 * (
        height * np.abs(strain[..., 5]) + width * np.abs(strain[..., 4])
    )
    speed = np.sum(np.asarray(run.velocity)[:, -1, -1, :3] ** 2, axis=-1)
    balls = np.array(BOUNDS["keep_out"])
    points = np.asarray(run.frames)[:, 0, :, :3]
    apart = np.sum((points[:, None] - balls[None, :, None, :3]) ** 2, axis=-1)
    energy = np.asarray(run.energy.mechanical)[STEPS] - float(last.energy.mechanical)
    mass = float(link.length * link.material.rho * width * height)
    jerk = np.diff(qdd) / np.diff(np.asarray(run.ts))
    return {
        "position": sides((q - 0.3) / 0.5),
        "velocity": sides(qd / BOUNDS["velocity"]),
        "acceleration": sides(qdd / BOUNDS["acceleration"]),
        "jerk": sides(jerk / BOUNDS["jerk"]),
        "effort": sides(effort / BOUNDS["effort"]),
        "power": sides(effort * qd / BOUNDS["power"]),
        "strain": 1 - surface / BOUNDS["strain"],
        "stress": 1 - surface * float(link.material.E) / BOUNDS["stress"],
        "mass": 1 - mass / BOUNDS["mass"],
        "tip_speed": 1 - speed / BOUNDS["tip_speed"] ** 2,
        "keep_out": apart / balls[None, :, None, 3] ** 2 - 1,
        # The same sign as that of 1 - share.
        "residual_energy": np.sqrt(1.01) - np.sqrt(energy / BOUNDS["residual_energy"] + 0.01),
    }


@pytest.mark.slow
def test_every_limit_on_every_sample():
    outcome, runs = found()
    names = [limit.name for limit in problem().limits]
    # That of the closed loop's stability has tests of its own.
    assert {*names, "stability"} == set(MARGINS)
    for s, (run, last) in enumerate(runs):
        expected = margins_by_hand(run, last)
        for name, margins in zip(names, outcome.margins, strict=True):
            np.testing.assert_allclose(
                np.asarray(margins[s]).ravel(),
                np.ravel(expected[name]),
                rtol=1e-6,
                atol=1e-9,
                err_msg=name,
            )


@pytest.mark.slow
def test_limits_hold_on_all_samples_of_a_robust_move():
    """Bounds below what the quintic needs; checked in simulations of every sample."""
    _, runs = found()
    largest = lambda name: max(np.max(np.abs(np.asarray(getattr(r, name)))) for r, _ in runs)
    limits = {"velocity": 0.97 * largest("qd"), "effort": 0.8 * largest("effort")}
    limits["acceleration"] = 1.3 * largest("qdd")
    limits["stress"] = 0.9 * max(
        float(np.max(fx.surface_strain(r)) * r.robot.links[0].material.E) for r, _ in runs
    )
    options = dict(goal={"motor": 0.5}, duration=END, steps=STEPS, knots=8)
    res = fx.optimise(model(), limits=limits, spread={PATH: 0.1}, samples=3, **options)
    assert res.ok and res.violation <= 1e-6, str(res)
    assert res.active and {a.limit for a in res.active} <= set(limits)
    for (value,) in res.samples:
        run = res.replay(robot=model().robot.replace(PATH, float(value)))
        within = np.asarray(run.ts) <= END + 1e-9
        shares = {
            "velocity": np.max(np.abs(np.asarray(run.qd)[within])),
            "effort": np.max(np.abs(np.asarray(run.effort)[within])),
            "acceleration": np.max(np.abs(np.asarray(run.qdd)[within])),
            "stress": np.max(np.asarray(fx.surface_strain(run))[within])
            * float(run.robot.links[0].material.E),
        }
        for name, value in shares.items():
            assert value <= limits[name] * (1 + 2e-6), (name, value, limits[name])


@pytest.mark.slow
def test_both_directions_of_differentiation_agree(monkeypatch):
    """Reverse mode for many free parameters of a few costs; forward mode gives the same."""
    given = build_problem(
        one_mode(),
        None,
        goal={"root": 1.0},
        start=None,
        duration=0.42,
        minimise="energy",
        limits=None,
        spread={"payloads.tool.mass": 0.1},
        samples=3,
        free=None,
        knots=20,
        dt=0.02,
        steps=None,
        hold=None,
    )
    assert _values.reverse_pays(given, False) and not _values.reverse_pays(given, True)
    x, found = jnp.linspace(0.0, 0.1, 21).at[-1].set(0.0), []
    for rule in (lambda *args: True, lambda *args: False):
        monkeypatch.setattr(_values, "reverse_pays", rule)
        call = lambda p, ends, x: _values.values_at(p, ends, "worst", False, x)
        found.append(jax.jit(call)(given, given.ends(), x))
    for name in ("levels", "slopes", "costs"):
        a, b = (np.asarray(getattr(at, name)) for at in found)
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12, err_msg=name)
    assert np.max(np.abs(found[0].slopes)) > 0
