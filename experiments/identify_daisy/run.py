"""The flexible robot arm of DaISy (96-009): a beam model from one period of a multisine.

    python experiments/identify_daisy/run.py [--quick] [--starts 16]

The geometry of the arm is unknown. The data are the frequency response from torque to acceleration
on the excited lines. Every other line is fitted; the others are only predicted. The structure is
chosen by predicting each fitted line from fits without it; the validation lines are read after
that. The baselines, a rational model of order 4/4 and a state-space model (nfoursid), are fitted to
the same lines. The script writes results/daisy.json and .npz for plot.py.
"""

import argparse
import dataclasses
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
from flexjax.study.identify._leave_out import leave_rows_out

CONFIG = tomllib.loads((HERE / "config.toml").read_text())
RATE = CONFIG["rate"]
LINES = np.arange(*CONFIG["lines"])
# Free in some structures, zero in the others
OPTIONAL = list(dict.fromkeys(p for s in CONFIG["structures"] for p in s["free"]))


def rational(frequencies, H, weight, order=4, rounds=30):
    """b(s)/a(s) by repeated linear least squares (Sanathanan and Koerner).

    s is in units of the highest frequency.
    """
    s = 1j * frequencies / frequencies.max()
    powers = np.stack([s**k for k in range(order + 1)], axis=1)
    denominator = np.ones(len(s))
    for _ in range(rounds):
        w = weight / np.abs(denominator)
        A = np.concatenate([powers, -H[:, None] * powers[:, :order]], axis=1) * w[:, None]
        b = H * powers[:, order] * w
        x = np.linalg.lstsq(
            np.concatenate([A.real, A.imag]), np.concatenate([b.real, b.imag]), rcond=None
        )[0]
        denominator = powers[:, :order] @ x[order + 1 :] + powers[:, order]

    def model(f):
        s = 1j * f / frequencies.max()
        powers = np.stack([s**k for k in range(order + 1)], axis=1)
        return (powers @ x[: order + 1]) / (powers @ np.append(x[order + 1 :], 1.0))

    return model


def peaks_of(response: fx.FrequencyResponse, n: int = 2) -> np.ndarray:
    """Frequencies [Hz] of the highest local maxima on these lines, by parabolic interpolation."""
    size = np.log(np.abs(response.values))
    top = [k for k in range(1, len(size) - 1) if size[k] > size[k - 1] and size[k] > size[k + 1]]
    top = sorted(sorted(top, key=lambda k: -size[k])[:n])
    step = response.frequencies[1] - response.frequencies[0]
    found = []
    for k in top:
        a, b, c = size[k - 1 : k + 2]
        found.append(response.frequencies[k] + 0.5 * step * (a - c) / (a - 2 * b + c))
    return np.array(found)


def subspace(record, lines, train):
    """N4SID on two periods of the recording, with only the given DFT lines in both channels.

    This is the same split as for the other models. The recording is in steady state, so the
    response on these lines selects the order, and not a run from rest.
    """
    keep = np.zeros(len(record.ts) // 2 + 1)
    keep[lines] = 1
    only = lambda x: np.tile(np.fft.irfft(keep * np.fft.rfft(x), len(x)), 2)
    u, y = only(record.currents["motor"]), only(record.sensors["acceleration"])
    return tools.n4sid(
        [(u, y)],
        range(4, 13),
        40,
        lambda model: output_fit(train, tools.respond(model, train.frequencies, 1 / RATE)),
    )


def output_fit(response: fx.FrequencyResponse, H) -> float:
    """NRMSE fit of the output on these lines; errors are weighted by the input's amplitude."""
    w = 1 / response.sd
    return float(
        100 * (1 - np.linalg.norm(w * (H - response.values)) / np.linalg.norm(w * response.values))
    )


def first_fit(model, train, starts: int, seed: int) -> fx.study.identify.Identification:
    """Search from scattered points, with relative errors and the peaks as natural frequencies.

    A search on the lines alone that starts a peak's width away misses a peak of half a per cent.
    """
    relative = dataclasses.replace(
        train, sd=np.maximum(np.abs(train.values), 0.02), name="relative"
    )
    peaks = fx.Modal(peaks_of(train), sd=0.01, lock="none", name="peaks of the fitted lines")
    print(f"peaks of the fitted lines: {peaks.frequencies} Hz")
    free = [*CONFIG["free"], *OPTIONAL]
    options = {"starts": starts, "spread": CONFIG["spread"], "seed": seed, "max_steps": 60}
    return fx.identify(model, [relative, peaks], free, **options)


def without(model, free):
    """The model with the optional parameters that are not free at zero."""
    robot = model.robot
    for path in OPTIONAL:
        if path not in free:
            robot = robot.replace(path, 0.0)
    return model.rebind(robot)


def folded(train, fit, folds: int):
    """Each line as predicted by fits of the other folds' lines; ``fit(train)`` gives H(f)."""
    found = np.empty(len(train.frequencies), complex)
    for fold in range(folds):
        out = np.arange(len(found)) % folds == fold
        found[out] = fit(train.pick(~out))(train.frequencies[out])
    return found


def rank(first, train, structures, folds: int):
    """The fit of each structure, and its fit [%] of lines that were left out."""
    results, scores = {}, {}
    for s in structures:
        free = [*CONFIG["free"], *s["free"]]
        result = fx.identify(without(first.model, free), train, free, max_steps=100)
        left_out = leave_rows_out(result, np.arange(len(train.frequencies)) % folds)
        results[s["name"]], scores[s["name"]] = result, output_fit(train, left_out)
        print(
            f"{s['name']:<20} {len(free):2d} parameters, left out {scores[s['name']]:6.2f} %, "
            f"fitted {output_fit(train, result.training[0].predicted):6.2f} %, {result.status}",
            flush=True,
        )
    return results, scores


def parts_of(response, H) -> dict[str, float]:
    """Squared output error [% of the squared output] by band: which lines the model misses."""
    w, f = 1 / response.sd, response.frequencies
    error = np.abs(w * (H - response.values)) ** 2 / np.sum(np.abs(w * response.values) ** 2)
    return {
        f"{low:g} to {high:g} Hz": float(100 * np.sum(error[(f >= low) & (f < high)]))
        for low, high in CONFIG["bands"]
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--starts",
        type=int,
        default=CONFIG["starts"],
        help="number of initial points around the parameters of arm.toml",
    )
    parser.add_argument("--seed", type=int, default=CONFIG["seed"])
    parser.add_argument("--quick", action="store_true", help="two structures, four starts")
    args = parser.parse_args()
    record = fx.Experiment.read(
        tools.find_data("daisy_robot_arm/robot_arm.dat"),
        rate=RATE,
        currents={"motor": "0"},
        sensors={"acceleration": "1"},
        name="DaISy 96-009",
    )
    response = fx.FrequencyResponse.from_period(record, "motor", "acceleration", LINES)
    train, check = response.pick(slice(0, None, 2)), response.pick(slice(1, None, 2))
    model = fx.FiniteElement(elements=CONFIG["elements"]).bind(fx.load_robot(HERE / "arm.toml"))
    first = first_fit(model, train, 4 if args.quick else args.starts, args.seed)
    print(first)
    print(f"losses of the starts: {first.starts}")

    print("\nranking by lines left out of the fitted ones")
    structures = CONFIG["structures"][2 if args.quick else 0 :]
    results, scores = rank(first, train, structures, CONFIG["folds"])
    fit_rational = lambda data: rational(data.frequencies, data.values, 1 / data.sd)
    black = fit_rational(train)
    left_out = output_fit(train, folded(train, fit_rational, CONFIG["folds"]))
    print(f"{'rational 4/4':<20}  9 parameters, left out {left_out:6.2f} %")
    good = [n for n in scores if scores[n] > max(scores.values()) - CONFIG["tie"]]
    name = min(good, key=lambda n: len(results[n].names))
    result = results[name]
    print(f"chosen: {name}\n\n{result}")
    modes = fx.modes(result.model, lock="none")
    print(modes)
    state = subspace(record, LINES[::2], train)

    # From here on the validation lines are used, and nothing is chosen.
    models = {n: r.training[0].data.response for n, r in results.items()}
    rows = {}
    for role, data in (("fit", train), ("validation", check)):
        predicted = {
            n: np.asarray(models[n](r.model, data.frequencies)) for n, r in results.items()
        }
        predicted["rational 4/4"] = black(data.frequencies)
        if state is not None:
            predicted["n4sid"] = tools.respond(state[1], data.frequencies, 1 / RATE)
        rows[role] = {n: output_fit(data, H) for n, H in predicted.items()}
        print(f"\n{role}:")
        for n, H in predicted.items():
            text = ", ".join(f"{band} {x:.3f}" for band, x in parts_of(data, H).items())
            print(f"  {n:<20} {rows[role][n]:6.2f} %   squared error [%]: {text}")
    f = np.linspace(0.1, 25, 500)
    arrays = {"f": f, "model": np.asarray(train.response(result.model, f)), "rational": black(f)}
    if state is not None:
        arrays["n4sid"] = tools.respond(state[1], f, 1 / RATE)
    for n, c in (("train", train), ("check", check)):
        arrays |= {f"{n}.f": c.frequencies, f"{n}.H": c.values, f"{n}.sd": c.sd}
        arrays[f"{n}.model"] = np.asarray(train.response(result.model, c.frequencies))
        arrays[f"{n}.rational"] = black(c.frequencies)
    errors = map(float, result.standard_errors)
    numbers = {
        "chosen": name,
        "left out": {**scores, "rational 4/4": left_out},
        "estimates": result.estimates,
        "standard errors": dict(zip(result.names, errors, strict=True)),
        "fits": rows,
        "frequencies [Hz]": [float(x) for x in modes.frequencies[:3]],
        "damping": [float(x) for x in modes.damping[:3]],
        "not determined": result.unseen,
    }
    tools.save(HERE / "results", "daisy", numbers, arrays)
    claims = {f"{role}, {n} [%]": fit for role, fits in rows.items() for n, fit in fits.items()}
    claims |= {f"left out, {n} [%]": score for n, score in scores.items()}
    claims |= {
        "chosen: validation [%]": rows["validation"][name],
        "chosen: parameters": float(len(result.names)),
        "chosen: converged": float(result.status == "converged"),
        "above the rational model [%]": rows["validation"][name]
        - rows["validation"]["rational 4/4"],
        "delay [ms]": 1e3 * result.estimates.get("sensors.acceleration.delay", 0.0),
        "first frequency [Hz]": float(modes.frequencies[0]),
        "second frequency [Hz]": float(modes.frequencies[1]),
        "first damping ratio": float(modes.damping[0]),
        "second damping ratio": float(modes.damping[1]),
    }
    sys.exit(1 if tools.judge(HERE / "expected.json", claims) else 0)


if __name__ == "__main__":
    main()
