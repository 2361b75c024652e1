"""Stage 1 of a flexible two-link rig: which structure closed-loop steps support.

    python experiments/identify_quanser/run.py [--quick]

The models follow the measured hub angle and predict the deflection channel. Two recordings are
fitted. The structure is chosen by predicting each of the two from a fit of the other. The script
prints this ranking first, and then the fits of three further recordings, which choose nothing. ARX
and N4SID are in the same table. The script
writes results/quanser.json and .npz for plot.py.
"""

import argparse
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
jax.config.update("jax_enable_x64", True)

import identify_tools as tools

import flexjax as fx
from flexjax.study.identify.baselines._arx import fit_arx
from flexjax.study.identify.fit._problem import build
from flexjax.study.identify.fit._unknown_start import of_recordings
from flexjax.study.identify.fit._validate import predict_validation
from flexjax.study.identify.uncertainty._statistics import fit_percent

CONFIG = tomllib.loads((HERE / "config.toml").read_text())


def read(name: str) -> fx.Experiment:
    path = tools.find_data(f"quanser_2dsfl/steps/lqg_{name}_run01.csv")
    record = fx.Experiment.read(
        path,
        time="t_s",
        motions={"hub": "th1_hub_rad"},
        sensors={"deflection": "defl1_rad"},
        name=name,
        start=fx.UnknownStart(CONFIG["start_samples"]),
    )
    return record.smooth(CONFIG["smooth"]).resample(CONFIG["step"])


def candidates(quick: bool) -> dict:
    formulation = fx.ScrewSynthesis(modes=CONFIG["modes"])
    return {
        s["name"]: (
            formulation.bind(fx.load_robot(HERE / s["file"])),
            [*CONFIG["free"], *s["free"]],
        )
        for s in CONFIG["structures"][2 if quick else 0 :]
    }


def residual_parts(error: np.ndarray, step: float) -> dict[str, float]:
    """Root mean square of the residual [mrad]: its mean, below 1 Hz, ringing (1 to 3 Hz), above."""
    spectrum = np.fft.rfft(error - error.mean())
    f = np.fft.rfftfreq(len(error), step)
    size = lambda keep: float(1e3 * np.sqrt(2 * np.sum(np.abs(spectrum[keep]) ** 2)) / len(error))
    return {
        "mean": float(1e3 * abs(error.mean())),
        "below 1 Hz": size(f < 1),
        "1 to 3 Hz": size((f >= 1) & (f <= 3)),
        "above 3 Hz": size(f > 3),
    }


def removed_effects(result, check: list) -> dict[str, dict[str, float]]:
    """Fits [%] of the validation recordings without one effect each, other estimates unchanged."""
    names, problem = list(result.names), result.problem
    checked = build(problem.model, check, None, dt=CONFIG["step"], like=problem.parameters)

    def fits(z, from_rest=False):
        if from_rest:
            at = np.zeros(checked.parameters.size)
            own = of_recordings(checked.parameters)
            at[~own] = z[~of_recordings(problem.parameters)]
            predicted = checked.predict(jnp.asarray(at))
        else:
            predicted = predict_validation(checked, check, problem, result.measured, z)
        found = {}
        for group, run in zip(checked.groups, predicted[0], strict=True):
            for row, k in enumerate(group.members):
                y = check[k].sensors["deflection"]
                found[check[k].name] = fit_percent(y, np.asarray(run[row, :, 0]))
        return found

    def without(path: str, value: float):
        values = np.array(result.values)
        values[names.index(path)] = value
        return np.asarray(problem.parameters.inverse(jnp.asarray(values)))

    out = {"nothing": fits(result.z), "start from data (from rest)": fits(result.z, True)}
    for label, path, value in (
        ("cross-talk from the hub angle", "sensors.deflection.crosstalk.0.gain", 0.0),
        ("constant offset", "sensors.deflection.offset", 0.0),
        ("dry friction", "joints.hub.output_friction.coulomb", 1e-6),
    ):
        if path in names:
            out[label] = fits(without(path, value))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only the gear with friction")
    args = parser.parse_args()
    train, check = [read(n) for n in CONFIG["train"]], [read(n) for n in CONFIG["check"]]
    table = fx.compare_models(candidates(args.quick), train, validation=check, dt=CONFIG["step"])
    best = table.best
    assert best.result is not None  # the best one of the candidates
    print(f"{table.ranking}\n\nwith the validation recordings\n{table}\n\n{best.result}")
    arrays, parts = {}, {}
    for row in table.rows:
        if row.result is None:
            continue
        for c in (*row.result.training, *row.result.validation):
            error = c.predicted["deflection"] - c.data.sensors["deflection"]
            parts[f"{row.name}, {c.data.name}"] = residual_parts(error, CONFIG["step"])
    pairs = [(e.motions["hub"][:, None], e.sensors["deflection"]) for e in train]
    black = fit_arx(pairs)
    for c in (*best.result.training, *best.result.validation):
        u, y = c.data.motions["hub"], c.data.sensors["deflection"]
        arrays[f"{c.data.name}.arx"] = black.run(u[:, None], y)
        arrays |= {
            f"{c.data.name}.t": c.data.ts,
            f"{c.data.name}.hub": c.data.motions["hub"],
            f"{c.data.name}.measured": c.data.sensors["deflection"],
            f"{c.data.name}.model": c.predicted["deflection"],
        }
    print("\nresiduals [mrad] of the validation recordings, mean over them")
    for row in table.rows:
        own = [parts[f"{row.name}, {n}"] for n in CONFIG["check"] if row.result is not None]
        if own:
            text = ", ".join(f"{k} {np.mean([p[k] for p in own]):.2f}" for k in own[0])
            print(f"  {row.name}: {text}")
    removed = removed_effects(best.result, check)
    print("\nvalidation fits [%] of the chosen model without one effect, other estimates unchanged")
    for label, own in removed.items():
        text = ", ".join(f"{x:.1f}" for x in own.values())
        print(f"  without {label}: {text}; mean {np.mean(list(own.values())):.2f}")
    rows = {
        row.name: {
            "parameters": row.parameters,
            "left out": row.left_out,
            "fitted": row.fitted,
            "validation": row.validation,
            "AIC": row.aic,
            "BIC": row.bic,
        }
        for row in table.rows
    }
    arx = next(row for row in table.rows if row.name.startswith("ARX"))
    margins = [best.validation[n] - arx.validation[n] for n in CONFIG["check"]]
    claims = {f"validation, {n}, {best.name} [%]": v for n, v in best.validation.items()}
    claims |= {f"validation, {n}, ARX [%]": v for n, v in arx.validation.items()}
    claims |= {
        "validation, mean [%]": float(np.mean(list(best.validation.values()))),
        "validation, mean of ARX [%]": float(np.mean(list(arx.validation.values()))),
        "recordings on which it is above ARX": float(sum(m > 0 for m in margins)),
        "parameters": float(best.parameters),
        "left out, mean [%]": best.score,
    }
    numbers = {
        "chosen": best.name,
        "models": rows,
        "estimates": best.result.estimates,
        "residuals [mrad]": parts,
        "without [%]": removed,
    }
    tools.save(HERE / "results", "quanser", numbers, arrays)
    sys.exit(1 if tools.judge(HERE / "expected.json", claims) else 0)


if __name__ == "__main__":
    main()
