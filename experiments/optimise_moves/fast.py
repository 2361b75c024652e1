"""Minimum time under effort limits, found by several methods, and checked on a finer model.

The best move of a given duration leaves a residual energy. The minimum time is the duration at
which that is the energy allowed. So it is a root in one unknown, and every evaluation is a search
at a fixed duration: least squares under linearised limits. A search that takes the time as its
objective has the energy as a limit instead, whose curvature it does not know (see README.md).
"""

import dataclasses
import time

import numpy as np

import flexjax as fx

SOLVERS = ("gauss-newton", "slsqp")  # of the searches at fixed durations
PRECISE = 0.02  # of the bracket of the root, from which the secants start
SETTLED = 1e-7  # relative change of the duration
UNSOLVED = {"duration": np.inf, "violation": np.inf}
RESERVE = 0.92  # of the effort limits in the search: a finer model needs a little more


def three_links():
    """The arm of paper 002: three flexible links with flexible joints."""
    robot = fx.load_robot("li-zhang-three-link")
    return {
        "model": fx.TransferMatrix(segments=4).bind(robot),
        "finer": fx.TransferMatrix(segments=12),
        "goal": {"joint1": 0.6, "joint2": 0.4, "joint3": 0.3},
        "duration": (0.2, 0.6),
        "effort": {"joint1": 2.0, "joint2": 1.0, "joint3": 0.3},
        "residual_energy": 1e-5,
    }


def telescope():
    """Two tubes: angle and length change together."""
    robot = fx.load_robot("soeffker-telescopic")
    robot = dataclasses.replace(robot, links=robot.links[:2], joints=robot.joints[:2])
    return {
        "model": fx.FiniteElement(elements=2).bind(robot),
        "finer": fx.FiniteElement(elements=5),
        "goal": {"hub": 0.5, "telescope1": 3.0},
        "duration": (0.8, 2.5),
        "effort": {"hub": 2000.0, "telescope1": 200.0},
        "residual_energy": 0.02,
    }


def reserved(case):
    return {joint: RESERVE * effort for joint, effort in case["effort"].items()}


def by_root(case, options):
    """Minimum time as a root, roughly: the best move of a given duration leaves a residual energy,
    which is that allowed at the minimum time. Each Gauss-Newton search starts from the last one."""
    allowed, limits = case["residual_energy"], {"effort": reserved(case)}
    count, guess = 0, None

    def excess(duration):
        nonlocal guess, count
        res = fx.optimise(
            case["model"],
            duration=duration,
            limits=limits,
            guess=guess,
            tolerance=1e-8,
            iterations=30,
            **options,
        )
        count += res.evaluations
        guess = res if res.violation < 1e-6 else guess
        return np.sqrt(res.costs["residual_energy"][0] / allowed) - 1 + 1e3 * res.violation, res

    high = case["duration"][1]
    low, (over, best) = high, excess(high)
    if over > 0:
        raise ValueError(f"no move within the limits in {high} s: {best}")
    while over <= 0:
        high, at_high, low = low, over, 0.9 * low
        over, res = excess(low)
        best = res if over <= 0 else best
    at_low = over
    while high - low > PRECISE * high:
        # Between the secant and the middle, so that both ends move.
        share = np.clip(at_low / (at_low - at_high), 0.1, 0.9)
        middle = low + share * (high - low)
        over, res = excess(middle)
        if over <= 0:
            high, at_high, best = middle, over, res
        else:
            low, at_low = middle, over
    return best, count


def by_secants(case, options, start, method):
    """The root to rounding errors of one method: (best move, evaluations)."""
    limits, count, last = {"effort": reserved(case)}, 0, start

    def search(duration, guess):
        return fx.optimise(
            case["model"],
            duration=duration,
            limits=limits,
            guess=guess,
            method=method,
            tolerance=1e-11,
            iterations=100,
            **options,
        )

    def excess(duration):
        # Some durations have two local minima, so each search begins at two moves.
        nonlocal last, count
        found = [search(duration, guess) for guess in (last, start)]
        count += sum(res.evaluations for res in found)
        last = min(found, key=lambda res: res.costs["residual_energy"][0] + 1e3 * res.violation)
        return np.sqrt(last.costs["residual_energy"][0] / case["residual_energy"]) - 1

    after, before = start.duration, 0.995 * start.duration
    at_after, at_before = excess(after), excess(before)
    for _ in range(12):
        following = after - at_after * (after - before) / (at_after - at_before)
        before, at_before, after = after, at_after, following
        at_after = excess(after)
        if abs(after - before) < SETTLED * after:
            break
    return last, count


def fastest(case, steps=60, knots=6):
    """The minimum time by several methods, and largest efforts on the finer model."""
    model, row = case["model"], {}
    options = dict(goal=case["goal"], steps=steps, knots=knots)
    begin = time.perf_counter()
    start, count = by_root(case, options)
    row["start"] = _entry(start, time.perf_counter() - begin)
    print(f"start: {count} evaluations; {start}; {row['start']}", flush=True)
    best = None
    for method in SOLVERS:
        begin = time.perf_counter()
        res, count = by_secants(case, options, start, method)
        row[method] = _entry(res, time.perf_counter() - begin)
        print(f"{method}: {count} evaluations; {res}; {row[method]}; {res.message}", flush=True)
        if best is None or (res.violation < 1e-6 and res.duration < best.duration):
            best = res
    fine = best.replay(case["finer"], dt=best.dt / 4)
    efforts = np.max(np.abs(np.asarray(fine.effort)[np.asarray(fine.ts) <= best.duration]), axis=0)
    names = [j.name for j in model.robot.tree_joints]
    quintic = best.replay(case["finer"], dt=best.dt / 4, move="quintic")
    row["finer"] = {
        "effort share": max(
            float(e) / case["effort"][n] for n, e in zip(names, efforts, strict=True)
        ),
        "vibration": best.vibration(fine, case["finer"]),
        "vibration of the quintic": best.vibration(quintic, case["finer"]),
    }
    print(f"finer model: {row['finer']}", flush=True)
    return row


def _entry(res, seconds):
    return {
        "duration": res.duration,
        "violation": res.violation,
        "kkt": res.kkt,
        "status": res.status,
        "seconds": seconds,
    }


CASES = {"three-link": three_links, "telescope": telescope}


def claims_of(name, row):
    # The two best of those that meet the limits.
    good = [row[m] for m in SOLVERS if row[m]["violation"] < 1e-6]
    first, second, *_ = sorted(good, key=lambda e: e["duration"]) + 2 * [UNSOLVED]
    apart = (second["duration"] - first["duration"]) / first["duration"]
    return {
        f"{name}, minimum time: difference of two solvers": apart,
        f"{name}, minimum time: violation of limits": max(first["violation"], second["violation"]),
        f"{name}, minimum time: effort on the finer model / limit": row["finer"]["effort share"],
    }


if __name__ == "__main__":
    import sys

    import jax

    jax.config.update("jax_enable_x64", True)
    for name in sys.argv[1:] or CASES:
        print(claims_of(name, fastest(CASES[name]())), flush=True)
