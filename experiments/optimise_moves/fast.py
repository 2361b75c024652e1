"""Minimum time under effort limits, found by two methods, and checked on a finer model."""

import dataclasses
import time

import numpy as np

import flexjax as fx

SOLVERS = ("root", "slsqp")


def three_links():
    """The arm of paper 002: three flexible links with flexible joints."""
    robot = fx.load_robot("li-zhang-three-link")
    return {
        "model": fx.TransferMatrix(segments=2).bind(robot),
        "finer": fx.TransferMatrix(segments=6),
        "goal": {"joint1": 0.6, "joint2": 0.4, "joint3": 0.3},
        "duration": (0.2, 0.6),
        "effort": {"joint1": 2.0, "joint2": 1.0, "joint3": 0.3},
        "residual_energy": 1e-7,
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


def by_root(case, options):
    """Minimum time as a root: the best move of a given duration leaves a residual energy, which is
    that allowed at the minimum time. Every search is a Gauss-Newton search from the last one."""
    allowed, limits = case["residual_energy"], {"effort": case["effort"]}
    count, guess = 0, None

    def excess(duration):
        nonlocal guess, count
        res = fx.optimise(
            case["model"],
            duration=duration,
            limits=limits,
            guess=guess,
            tolerance=1e-8,
            iterations=100,
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
    while high - low > 2e-7 * high:
        # Between the secant and the middle, so that both ends move.
        share = np.clip(at_low / (at_low - at_high), 0.1, 0.9)
        middle = low + share * (high - low)
        over, res = excess(middle)
        if over <= 0:
            high, at_high, best = middle, over, res
        else:
            low, at_low = middle, over
    return best, count


def fastest(case, steps=60, knots=6):
    """The minimum time by two methods, and largest efforts on the finer model."""
    model, row = case["model"], {}
    options = dict(goal=case["goal"], steps=steps, knots=knots)
    begin = time.perf_counter()
    best, count = by_root(case, options)
    row["root"] = _entry(best, time.perf_counter() - begin)
    print(f"root: {count} evaluations; {best}; {row['root']}", flush=True)
    limits = {"effort": case["effort"], "residual_energy": case["residual_energy"]}
    begin = time.perf_counter()
    # Beside the end of the first method, not at it.
    near = dataclasses.replace(best, values=1.003 * best.values, duration=1.003 * best.duration)
    res = fx.optimise(
        model,
        duration=case["duration"],
        minimise="time",
        limits=limits,
        guess=near,
        method="slsqp",
        iterations=400,
        tolerance=1e-11,
        **options,
    )
    row["slsqp"] = _entry(res, time.perf_counter() - begin)
    print(f"slsqp: {res}; {row['slsqp']}; {res.message}", flush=True)
    res = best
    fine = res.replay(case["finer"], dt=res.dt / 4)
    efforts = np.max(np.abs(np.asarray(fine.effort)[np.asarray(fine.ts) <= res.duration]), axis=0)
    names = [j.name for j in model.robot.tree_joints]
    quintic = res.replay(case["finer"], dt=res.dt / 4, move="quintic")
    row["finer"] = {
        "effort share": max(
            float(e) / case["effort"][n] for n, e in zip(names, efforts, strict=True)
        ),
        "vibration": res.vibration(fine, case["finer"]),
        "vibration of the quintic": res.vibration(quintic, case["finer"]),
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
    times = [row[method]["duration"] for method in SOLVERS]
    return {
        f"{name}, minimum time: difference of two solvers": abs(times[0] - times[1]) / times[0],
        f"{name}, minimum time: violation of limits": max(row[m]["violation"] for m in SOLVERS),
        f"{name}, minimum time: effort on the finer model / limit": row["finer"]["effort share"],
    }


if __name__ == "__main__":
    import sys

    import jax

    jax.config.update("jax_enable_x64", True)
    for name in sys.argv[1:] or CASES:
        print(claims_of(name, fastest(CASES[name]())), flush=True)
