"""Plots results/*.json: python experiments/003_moving_beam/plot.py"""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"
COLOURS = {
    "constant": "0.6",
    "linear": "#0072B2",
    "cubic": "#D55E00",
    "complete": "#009E73",
    "consistent": "black",
}


def load(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(figure, name):
    figure.savefig(RESULTS / f"{name}.png", dpi=130)
    print(RESULTS / f"{name}.png")


def manoeuvre(name, title, limit):
    data = load(name)
    if data is None:
        return
    figure, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True)
    for label, colour in COLOURS.items():
        if label not in data:
            continue
        run = data[label]
        ux, uy = np.array(run["ux"], float), np.array(run["uy"], float)
        end = f", collapses at {run['t_fail']:.2f} s (cross)" if run["status"] else ""
        gone = np.flatnonzero(np.abs(uy) > limit)
        if len(gone):  # a diverging run is cut off, so that the others stay visible
            end = f", diverges: {limit:g} m at {data['t'][gone[0]]:.2f} s (cross)"
            ux[gone[0] :], uy[gone[0] :] = np.nan, np.nan
        if end:
            last = np.flatnonzero(np.isfinite(uy))[-1]
            for axis, u in zip(axes, (uy, ux), strict=True):
                axis.plot(data["t"][last], u[last], "x", color=colour)
        # Several curves coincide.
        style = {
            "color": colour,
            "lw": 3 if label == "constant" else 1,
            "ls": "--" if label == "consistent" else "-",
        }
        axes[0].plot(data["t"], uy, label=label + end, **style)
        axes[1].plot(data["t"], ux, **style)
    axes[0].set(ylabel="uy of the tip [m]", title=title)
    axes[1].set(ylabel="ux of the tip [m]", xlabel="t [s]")
    axes[0].legend(fontsize=8)
    save(figure, name)


def others():
    data = load("static_limit")
    if data:
        figure, axis = plt.subplots(figsize=(6, 4))
        for label in ("linear", "cubic", "complete", "consistent"):
            axis.plot(
                data["w"],
                np.array(data[label], float),
                color=COLOURS[label],
                ls="-" if label in ("linear", "cubic") else "--",
                label=label,
            )
        axis.axvline(data["limit"], color="0.7", lw=0.8)
        axis.set(
            xlabel="tip deflection / radius of gyration",
            ylabel="tip load L^3 / (EI r)",
            title="Limit point of the printed order",
        )
        axis.legend()
        save(figure, "static_limit")
    data = load("deployment")
    if data:
        figure, (axis, below) = plt.subplots(
            2, 1, figsize=(8, 7), sharex=True, height_ratios=(3, 2)
        )
        for label, mark in (("linear", "s"), ("complete", "^"), ("consistent", "o")):
            if label in data:
                if label != "complete":
                    beam = "linear" if label == "linear" else "nonlinear"
                    axis.plot(
                        data["t"],
                        data[label]["want"],
                        color=COLOURS[label],
                        lw=1,
                        label=f"reference of the {beam} beam",
                    )
                axis.plot(
                    data["t"],
                    data[label]["uy"],
                    mark,
                    ms=4,
                    mfc="none",
                    color=COLOURS[label],
                    label=f"{label}, 8 elements",
                )
                gap = np.abs(np.array(data[label]["uy"]) - np.array(data[label]["want"]))
                below.semilogy(data["t"][1:], gap[1:], mark, ms=4, mfc="none", color=COLOURS[label])
        if "consistent" in data:
            back = data["consistent"]["back"]
            axis.plot(
                4.0 - np.array(data["t"][: len(back)]),
                back,
                "x",
                ms=5,
                color="0.5",
                label="consistent, retraction (time reversed)",
            )
        below.axhline(2e-4, color="0.6", lw=0.8)
        below.set(
            xlabel="t [s]",
            ylabel="gap to its reference",
            title="Line: 2e-4 of the first deflection",
            ylim=(1e-6, 1e-2),
        )
        axis.set(
            ylabel="uy of the tip / first deflection",
            title="Deployment 5 m to 10 m in 4 s, and retrieval",
            ylim=(-1.6, 2.6),
        )
        axis.legend(fontsize=7, ncol=2, loc="upper center")
        save(figure, "deployment")
    data = load("three_tubes")
    if data:
        figure, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True)
        for label, colour in (("retrieval", "#0072B2"), ("deployment", "#009E73")):
            axes[0].plot(data["t"], data[label]["uy"], color=colour, label=label)
            axes[1].plot(data["t"], data[label]["work"], color=colour)
        axes[0].set(
            ylabel="uy of the tip [m]", title="Arm S at 0.5 rad/s: telescopes 3.6 to 2.4 m and back"
        )
        axes[1].set(ylabel="work of the actuators [J]", xlabel="t [s]")
        axes[0].legend(fontsize=8)
        save(figure, "three_tubes")
    data = load("slow_extension")
    if data:
        figure, axis = plt.subplots(figsize=(7, 3.5))
        axis.plot(data["t"], data["uy"], lw=0.5)
        axis.set(
            xlabel="t [s]",
            ylabel="uy [m]",
            title=f"Slow extension: amplitude ratio {data['ratio']:.3f}, "
            f"sqrt(L1/L0) = {data['law']:.3f}",
        )
        save(figure, "slow_extension")
    data = load("roller")
    if data:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
        V, measured, fitted = (np.array(data[k]) for k in ("V", "measured", "fitted"))
        n, order = data["way_in"], np.argsort(V)
        for k in (0, 1):
            left.semilogy(
                V[:n],
                measured[:n, k],
                "o",
                color="black",
                label="recording, towards the tip (fitted)" if k == 0 else None,
            )
            left.semilogy(
                V[n:],
                measured[n:, k],
                "o",
                mfc="none",
                color="black",
                label="recording, back (validation)" if k == 0 else None,
            )
            left.semilogy(
                V[order],
                fitted[order, k],
                color="#009E73",
                label="clamped-roller-free beam" if k == 0 else None,
            )
        left.set(
            xlabel="roller position sensor [V]",
            ylabel="f [Hz]",
            title=f"rms error: fit {data['rms_in']:.2%}, validation {data['rms_back']:.2%}",
        )
        left.legend(fontsize=8)
        spectra, times = np.array(data["spectra"]), np.array(data["times"])
        right.pcolormesh(
            times,
            np.arange(spectra.shape[0]) * data["resolution"],
            spectra,
            cmap="Greys",
            shading="nearest",
            rasterized=True,
        )
        right.plot(times, np.array(data["ridges"]), color="#009E73", lw=1)
        right.set(
            xlabel="t [s]",
            ylabel="f [Hz]",
            title="Spectra of the recording; model at the roller position",
        )
        save(figure, "roller")
    data = load("parametric")
    if data:
        figure, axis = plt.subplots(figsize=(7, 4))
        t = np.array(data["t"])
        for label, colour in (
            ("consistent", "#009E73"),
            ("off resonance", "#D55E00"),
            ("linear", "#0072B2"),
        ):
            axis.semilogy(t, np.abs(data[label]["uy"]) + 1e-6, lw=0.7, color=colour, label=label)
        axis.semilogy(
            t,
            data["consistent"]["growth"] * np.exp(data["theory"] * (t - t[-1])),
            "k--",
            lw=1,
            label=f"Floquet, {data['theory']:.3f} 1/s",
        )
        axis.set(
            xlabel="t [s]",
            ylabel="|uy| of the tip / start",
            ylim=(1e-2, None),
            title="Axial excitation at twice (off resonance: three times) the frequency",
        )
        axis.legend(fontsize=8)
        save(figure, "parametric")
    data = load("planes")
    if data:
        runs = [
            k
            for k in ("linear", "complete", "consistent", "one_mode", "planes apart", "small")
            if k in data
        ]
        figure, axes = plt.subplots(
            1, len(runs), figsize=(2.6 * len(runs), 3), sharex=True, sharey=True, squeeze=False
        )
        period = round(2 * np.pi / data["omega"] / (data["t"][1] - data["t"][0]))
        for axis, label in zip(axes[0], runs, strict=True):
            y, z = np.array(data[label]["uy"]), np.array(data[label]["uz"])
            axis.plot(y, z, lw=0.3, color="0.7")
            axis.plot(y[: period + 1], z[: period + 1], lw=1, color="#0072B2", label="first period")
            axis.plot(y[-period - 1 :], z[-period - 1 :], lw=1, color="#D55E00", label="last")
            axis.set(title=label.replace("_", " "), xlabel="uy [m]", aspect="equal")
        axes[0, 0].set_ylabel("uz [m]")
        axes[0, 0].legend(fontsize=7)
        save(figure, "planes")


if __name__ == "__main__":
    with fx.plot_style():
        manoeuvre("spin_up", "Classic spin-up, 10 elements", 1.0)
        manoeuvre("telescopic", "Arm S: 11.8 m, 48 kg, 5 elements (figure 3)", 0.06)
        others()
