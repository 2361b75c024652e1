"""Stage 1 of a flexible two-link rig: which parameters closed-loop steps determine.

    python experiments/identify_quanser/run.py [--quick]

The model follows the measured hub angle and predicts the deflection channel. Two recordings are
fitted, three predicted. The baselines, an ARX model (least squares) and a state-space model
(nfoursid), are fitted to the same two. The script writes results/quanser.json and .npz for plot.py.
"""

import argparse
import sys
import tomllib
from pathlib import Path

import jax
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
jax.config.update("jax_enable_x64", True)

import identify_tools as tools

import flexjax as fx

CONFIG = tomllib.loads((HERE / "config.toml").read_text())
STEP = CONFIG["step"]


def read(name: str) -> fx.Experiment:
    path = tools.find_data(f"quanser_2dsfl/steps/lqg_{name}_run01.csv")
    record = fx.Experiment.read(
        path,
        time="t_s",
        motions={"hub": "th1_hub_rad"},
        sensors={"deflection": "defl1_rad"},
        name=name,
    )
    return record.smooth(CONFIG["smooth"]).resample(STEP)


def intervals(result, robust: bool = False) -> dict[str, list[float]]:
    pairs = zip(result.names, result.intervals(robust=robust), strict=True)
    return {name: list(map(float, interval)) for name, interval in pairs}


def standard_errors(result) -> dict[str, float]:
    return dict(zip(result.names, map(float, result.standard_errors), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer segments")
    args = parser.parse_args()
    train, check = [read(n) for n in CONFIG["train"]], [read(n) for n in CONFIG["check"]]
    segments = CONFIG["quick_segments" if args.quick else "segments"]
    arm = fx.load_robot(HERE / "arm.toml")
    model = fx.TransferMatrix(segments=segments).bind(arm)
    numbers, arrays = {}, {}
    nominal = float(fx.modes(model).frequencies[0])
    print(f"nominal model: {nominal:.3f} Hz (the rig vibrates at about 1.82 Hz)")

    free = CONFIG["free"]
    result = fx.identify(model, train, free, validation=check, dt=STEP)
    print(result)
    mode = fx.modes(result.model)
    frequency, zeta = float(mode.frequencies[0]), float(mode.damping[0])
    print(f"identified: {frequency:.3f} Hz, damping ratio {zeta:.3f}")

    soft_arm = fx.load_robot(HERE / "arm-soft-hub.toml")
    soft = fx.identify(
        fx.TransferMatrix(segments=segments).bind(soft_arm),
        train,
        [*free, *CONFIG["soft_free"]],
        validation=check,
        dt=STEP,
    )
    print("\nwith a flexible gear between encoder and link:")
    print(soft)

    greedy = fx.identify(result.model, train, [*free, *CONFIG["greedy_free"]], dt=STEP)
    print("\nwith Young's modulus and the mass of the load free as well:")
    print(greedy)

    order, theta = tools.best_arx([(e.motions["hub"], e.sensors["deflection"]) for e in train])
    print(f"\nARX of order {order} (hub angle to deflection), free run")
    subspace = tools.n4sid(
        [(e.motions["hub"] - e.motions["hub"][0], e.sensors["deflection"]) for e in train]
    )
    if subspace is not None:
        print(f"N4SID of order {subspace[0]}, free run from rest")
    rows = []
    for role, comparisons, others in (
        ("fit", result.training, soft.training),
        ("validation", result.validation, soft.validation),
    ):
        for c, gear in zip(comparisons, others, strict=True):
            u, y = c.data.motions["hub"], c.data.sensors["deflection"]
            black = tools.run_arx(theta, u, y, order)
            fits = c.fits["deflection"], tools.fit_percent(y, np.nan_to_num(black, nan=1e6))
            state, third = np.full_like(y, np.nan), None
            if subspace is not None:
                state = tools.run_model(subspace[1], u - u[0])
                third = tools.fit_percent(y, np.nan_to_num(state, nan=1e6))
            rows.append(
                {
                    "record": c.data.name,
                    "role": role,
                    "stiff gear": fits[0],
                    "flexjax": gear.fits["deflection"],
                    "arx": fits[1],
                    "n4sid": third,
                }
            )
            print(
                f"{role:<11}{c.data.name:<16} stiff gear {fits[0]:6.2f} %   "
                f"flexible gear {gear.fits['deflection']:6.2f} %   ARX {fits[1]:6.2f} %   "
                f"N4SID {'-' if third is None else format(third, '.2f')} %"
            )
            for key, value in (
                ("t", c.data.ts),
                ("hub", u),
                ("measured", y),
                ("model", gear.predicted["deflection"]),
                ("arx", black),
                ("n4sid", state),
            ):
                arrays[f"{c.data.name}.{key}"] = value
    numbers |= {
        "nominal frequency [Hz]": nominal,
        "frequency [Hz]": frequency,
        "damping ratio": zeta,
        "estimates": result.estimates,
        "intervals 95 %": intervals(result),
        "robust intervals 95 %": intervals(result, robust=True),
        "residuals white": result.white,
        "fits": rows,
        "arx order": order,
        "n4sid order": None if subspace is None else subspace[0],
        "flexible gear": soft.estimates,
        "flexible gear standard errors": standard_errors(soft),
        "not determined with a flexible gear": soft.unseen,
        "not determined when E and mass are free": greedy.unseen,
        "greedy estimates": greedy.estimates,
        "greedy standard errors": standard_errors(greedy),
    }
    tools.save(HERE / "results", "quanser", numbers, arrays)
    claims = {
        f"{row['role']}, {row['record']}, {key} [%]": row[key]
        for row in rows
        for key in ("stiff gear", "flexjax", "arx")
    }
    claims |= {
        "frequency [Hz]": frequency,
        "damping ratio": zeta,
        "combinations that are not determined when E and mass are free": len(greedy.unseen),
    }
    sys.exit(1 if tools.judge(HERE / "expected.json", claims) else 0)


if __name__ == "__main__":
    main()
