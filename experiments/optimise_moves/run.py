"""Moves without vibration: optimal for the nominal arm, robust, and the usual ones.

    python experiments/optimise_moves/run.py [--quick] [--only metal-link telescope ...]
        [--durations 1.5 2.5] [--keep]

Three arms move from rest to rest in 1.0, 1.5 and 2.5 periods of their first mode. Further studies:
minimum time (fast.py), many moves at once, a design, gradients and the first answer (more.py). The
quick form has the first arm at 1.5 periods only. The script writes results/*.json and .npz for
plot.py, after every row and study, and prints every claim with its bound from expected.json. With
--keep, what is in results/ is not computed again. The comparison with Exudyn requires the `outside`
extra, the interior-point method the `optimise` extra.
"""

import argparse
import dataclasses
import importlib.util
import json
import sys
import time
import tomllib
from pathlib import Path

import jax

HERE = Path(__file__).resolve().parent
jax.config.update("jax_enable_x64", True)

import numpy as np

import flexjax as fx

CONFIG = tomllib.loads((HERE / "config.toml").read_text())
CLAIMS = json.loads((HERE / "expected.json").read_text())["claims"]
MOVES = ("quintic", "zv", "zvd", "nominal", "robust")


def arm_of(case):
    """The arm and the path of its payload's mass."""
    robot = fx.load_robot(case["robot"])
    if "payload" in case:
        given = case["payload"]
        tool = fx.Payload("tool", given["link"], given["mass"])
        robot = dataclasses.replace(robot, payloads=(tool,))
    return robot, f"payloads.{robot.payloads[0].name}.mass"


def optima(case, model, path, duration):
    """The optimum for the nominal arm, and that for all payloads of the spread."""
    options = dict(
        goal=case["goal"],
        duration=duration,
        steps=CONFIG["steps"],
        knots=CONFIG["knots"],
        tolerance=CONFIG["tolerance"],
        limits={name: case[name] for name in ("velocity", "acceleration")},
    )
    nominal = fx.optimise(model, **options)
    spread = {path: CONFIG["spread"]}
    return nominal, fx.optimise(model, spread=spread, samples=CONFIG["samples"], **options)


def compare(nominal, robust, path):
    """Peak tip vibration [m] of every move for the masses to be checked; the first is nominal."""
    mass = float(robust.model.robot.payloads[0].mass)
    shares = np.linspace(-CONFIG["spread"], CONFIG["spread"], CONFIG["checks"])
    masses = mass * (1 + np.append(0.0, shares))
    found = robust.against("quintic", "zv", "zvd", path=path, values=masses)
    found["robust"] = found.pop("optimised")
    found["nominal"] = nominal.robustness(path, masses)
    return masses, found


def replays(res):
    """Vibration [m] of the robust move and of the quintic in other formulations."""
    # Finer than the search, whose step would add its own error.
    found, step = {}, res.dt / CONFIG["finer"]
    # Without stiffening, rotating links soften, as in the paper: their period is another one.
    for formulation in (fx.FiniteElement(), fx.PortHamiltonian()):
        name = type(formulation).__name__
        found[name] = {
            label: res.vibration(res.replay(formulation, move=move, dt=step), formulation)
            for label, move in (("robust", "optimised"), ("quintic", "quintic"))
        }
    return found


def run_case(case, model, path, periods, quick):
    """One row of the table: numbers and arrays."""
    period = 1 / float(fx.modes(model, at=case["goal"], n=1).frequencies[0])
    begin = time.perf_counter()
    nominal, robust = optima(case, model, path, periods * period)
    seconds = time.perf_counter() - begin
    for name, res in (("nominal", nominal), ("robust", robust)):
        print(f"{case['robot']}, {periods} T1, {name}: {res}", flush=True)
    masses, found = compare(nominal, robust, path)
    row = {
        "period": period,
        "seconds": seconds,
        "violation": max(nominal.violation, robust.violation),
        "kkt": robust.kkt,
        "status": [nominal.status, robust.status],
        "vibration": {name: [float(x[0]), float(np.max(x))] for name, x in found.items()},
    }
    if periods >= 1.5 and not quick:
        row["replay"] = replays(robust)
        if importlib.util.find_spec("exudyn"):
            import exudyn_arm

            row["replay"]["Exudyn"] = {
                label: exudyn_arm.vibration(robust, move)
                for label, move in (("robust", "optimised"), ("quintic", "quintic"))
            }
    arrays = {"masses": masses, "t": np.asarray(robust.trajectory.ts)}
    for name, values in found.items():
        arrays[f"{name}.vibration"] = values
    for name, res, move in (
        ("quintic", robust, "quintic"),
        ("nominal", nominal, "optimised"),
        ("robust", robust, "optimised"),
    ):
        traj = res.replay(move=move)
        arrays[f"{name}.t"], arrays[f"{name}.q"] = np.asarray(traj.ts), np.asarray(traj.q)
        arrays[f"{name}.tip"] = np.asarray(traj.tip) - np.asarray(fx.rest(model, res.goal).tip)
    return row, arrays


def claims_of(label, row):
    """Ratios of the worst vibration, to be compared with their bounds."""
    worst = {name: values[1] for name, values in row["vibration"].items()}
    claims = {
        f"{label}: {name} / robust": worst[name] / worst["robust"]
        for name in ("quintic", "zv", "zvd")
        if np.isfinite(worst[name])
    }
    claims[f"{label}: violation of limits"] = row["violation"]
    for name, found in row.get("replay", {}).items():
        claims[f"{label}, {name}: quintic / robust"] = found["quintic"] / found["robust"]
    return claims


def judge(claims):
    """Print every claim with its bound; returns the number of those that do not hold."""
    bad = 0
    print(f"\n{'claim':62}{'value':>12}{'bound':>14}")
    for name, value in claims.items():
        at_least, bound = CLAIMS[name]
        good = value >= bound if at_least == ">=" else value <= bound
        bad += not good
        verdict = "holds" if good else "DOES NOT HOLD"
        print(f"{name:62}{value:12.4g}{at_least:>4}{bound:10.4g}  {verdict}")
    return bad


def table(rows):
    print("\npeak tip vibration after the move [mm]: nominal payload / worst of the spread")
    print(f"{'':32}" + "".join(f"{name:>20}" for name in MOVES))
    for label, row in rows.items():
        cells = [
            f"{1e3 * a:.2g} / {1e3 * b:.2g}" if np.isfinite(a) else "-"
            for a, b in (row["vibration"][name] for name in MOVES)
        ]
        print(f"{label:32}" + "".join(f"{cell:>20}" for cell in cells))


def run_arm(case, durations, quick, keep):
    """Some durations of one arm: rows of the table, and claims."""
    store = HERE / "results" / f"{case['robot']}.json"
    rows = json.loads(store.read_text()) if store.exists() else {}
    arrays = dict(np.load(store.with_suffix(".npz"))) if rows else {}
    labels = [f"{periods} T1" for periods in durations]
    missing = [(x, p) for x, p in zip(labels, durations, strict=True) if not keep or x not in rows]
    if missing:
        robot, path = arm_of(case)
        model = fx.TransferMatrix(segments=case["segments"]).bind(robot)
        for label, periods in missing:
            rows[label], found = run_case(case, model, path, periods, quick)
            arrays |= {f"{label}|{key}": value for key, value in found.items()}
            # Saved after each row, so that an interrupted run leaves its rows.
            store.write_text(json.dumps(rows, indent=1) + "\n")
            np.savez_compressed(store.with_suffix(".npz"), **arrays)
    claims = {}
    for label in labels:
        claims |= claims_of(f"{case['robot']}, {label}", rows[label])
    return {f"{case['robot']}, {label}": rows[label] for label in labels}, claims


def run_study(name, keep):
    """One of the other studies; returns its claims."""
    import fast
    import more

    store = HERE / "results" / f"{name}.json"
    if keep and store.exists():
        row = json.loads(store.read_text())
    else:
        row = fast.fastest(fast.CASES[name]()) if name in fast.CASES else more.PARTS[name]()
        store.write_text(json.dumps(row, indent=1) + "\n")
    return fast.claims_of(name, row) if name in fast.CASES else more.claims_of(name, row)


def main():
    arms = {arm["robot"]: arm for arm in CONFIG["arms"]}
    studies = ("three-link", "telescope", "many", "design", "gradient", "curvature", "mpc")
    studies += ("second", "first")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the first arm at 1.5 periods")
    parser.add_argument("--only", nargs="*", choices=[*arms, *studies], default=[*arms, *studies])
    parser.add_argument("--durations", nargs="*", type=float, default=CONFIG["durations"])
    parser.add_argument("--keep", action="store_true", help="keep rows that are in results/")
    args = parser.parse_args()
    durations = CONFIG["quick_durations"] if args.quick else args.durations
    sys.path.insert(0, str(HERE))
    (HERE / "results").mkdir(exist_ok=True)
    rows, claims = {}, {}
    for name in list(arms)[:1] if args.quick else args.only:
        if name in arms:
            found, new = run_arm(arms[name], durations, args.quick, args.keep)
            rows |= found
        else:
            new = run_study(name, args.keep)
        claims |= new
    if rows:
        table(rows)
    sys.exit(1 if judge(claims) else 0)


if __name__ == "__main__":
    main()
