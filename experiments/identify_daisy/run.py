"""The flexible robot arm of DaISy (96-009): a beam model from one period of a multisine.

    python experiments/identify_daisy/run.py [--starts 8] [--segments 4]

The geometry of the arm is unknown. The data are the frequency response from torque to acceleration
on the excited lines. Every other line is fitted; the others are only predicted. The baselines, a
rational model of order 4/4 and a state-space model (nfoursid), are fitted to the same lines. The
script writes results/daisy.json and .npz for plot.py.
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

CONFIG = tomllib.loads((HERE / "config.toml").read_text())
RATE = CONFIG["rate"]
LINES = np.arange(*CONFIG["lines"])


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--starts",
        type=int,
        default=CONFIG["starts"],
        help="number of initial points around the parameters of arm.toml",
    )
    parser.add_argument("--segments", type=int, default=CONFIG["segments"])
    parser.add_argument("--seed", type=int, default=CONFIG["seed"])
    parser.add_argument("--quick", action="store_true", help="three segments")
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
    model = fx.TransferMatrix(
        segments=CONFIG["quick_segments"] if args.quick else args.segments
    ).bind(fx.load_robot(HERE / "arm.toml"))
    free = CONFIG["free"]
    # A search that starts a peak's width away misses a peak of half a per cent. So the first fit
    # uses relative errors and the peaks of the fitted lines, from scattered points.
    relative = dataclasses.replace(
        train, sd=np.maximum(np.abs(train.values), 0.02), name="relative"
    )
    peaks = fx.Modal(peaks_of(train), sd=0.01, lock="none", name="peaks of the fitted lines")
    print(f"peaks of the fitted lines: {peaks.frequencies} Hz")
    first = fx.identify(
        model,
        [relative, peaks],
        free,
        starts=args.starts,
        spread=CONFIG["spread"],
        seed=args.seed,
        max_steps=60,
    )
    print(first)
    print(f"losses of the starts: {first.starts}")
    result = fx.identify(first.model, train, free, validation=check, max_steps=100)
    print(result)
    modes = fx.modes(result.model, lock="none")
    print(modes)
    black = rational(train.frequencies, train.values, 1 / train.sd)
    state = subspace(record, LINES[::2], train)
    rows = {}
    for role, c in (("fit", result.training[0]), ("validation", result.validation[0])):
        rows[role] = {
            "flexjax": output_fit(c.data, c.predicted),
            "rational 4/4": output_fit(c.data, black(c.data.frequencies)),
        }
        if state is not None:
            rows[role]["n4sid"] = output_fit(
                c.data, tools.respond(state[1], c.data.frequencies, 1 / RATE)
            )
        print(
            f"N4SID of order {state[0]}: {rows[role]['n4sid']:.2f} %"
            if state is not None
            else "no N4SID"
        )
        print(
            f"{role:<11} flexjax {rows[role]['flexjax']:6.2f} %   "
            f"rational 4/4 {rows[role]['rational 4/4']:6.2f} %"
        )
    f = np.linspace(0.1, 25, 500)
    arrays = {"f": f, "model": np.asarray(train.response(result.model, f)), "rational": black(f)}
    if state is not None:
        arrays["n4sid"] = tools.respond(state[1], f, 1 / RATE)
    for name, c in (("train", train), ("check", check)):
        arrays |= {f"{name}.f": c.frequencies, f"{name}.H": c.values}
    errors = map(float, result.standard_errors)
    numbers = {
        "estimates": result.estimates,
        "standard errors": dict(zip(result.names, errors, strict=True)),
        "fits": rows,
        "frequencies [Hz]": [float(x) for x in modes.frequencies[:3]],
        "damping": [float(x) for x in modes.damping[:3]],
        "not determined": result.unseen,
    }
    tools.save(HERE / "results", "daisy", numbers, arrays)
    claims = {
        f"{role}, {name} [%]": fit for role, fits in rows.items() for name, fit in fits.items()
    }
    claims |= {
        "first frequency [Hz]": float(modes.frequencies[0]),
        "second frequency [Hz]": float(modes.frequencies[1]),
    }
    claims |= {"damping of the link [s]": result.estimates["links.beam.damping.strain_rate"]}
    sys.exit(1 if tools.judge(HERE / "expected.json", claims) else 0)


if __name__ == "__main__":
    main()
