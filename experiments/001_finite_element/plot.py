"""Plots results/: the paper's figures 4-9, 13 and 14, contacts over borders, flexible carriers.

python experiments/001_finite_element/plot.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"


def load(name):
    path = RESULTS / f"{name}.npz"
    return np.load(path) if path.exists() else None


def pair(axis, t, flexible, rigid, title):
    axis.plot(t, flexible, label="flexible")
    axis.plot(t, rigid, "--", label="rigid")
    axis.set(title=title, xlabel="t [s]")
    axis.legend()


def arm(name, joints):
    """Figures 4-9: inputs, joints, deflection and slope of the tip, end point, difference."""
    flexible, rigid = load(name), load(f"{name}_rigid")
    if flexible is None:
        return
    figure, axes = plt.subplots(2, 4, figsize=(17, 6.5))
    t = flexible["t"]
    for i, (label, unit) in enumerate(joints):
        axes[0, 0].step(
            t,
            flexible["effort"][:, i],
            where="pre",
            label=f"{label} [{'N' if unit == 'm' else 'N m'}]",
        )
        pair(axes[0, 1 + i], t, flexible["q"][:, i], rigid["q"][:, i], f"{label} [{unit}]")
    axes[0, 0].set(title="inputs", xlabel="t [s]")
    axes[0, 0].legend()
    axes[0, 3].plot(t, 1e3 * flexible["w"][:, -1], label="deflection [mm]")
    axes[0, 3].plot(t, 1e3 * flexible["slope"][:, -1], label="slope [mrad]")
    axes[0, 3].set(title="tip of link 2", xlabel="t [s]")
    axes[0, 3].legend()
    for k, x in enumerate("xy"):
        pair(axes[1, k], t, flexible["tip"][:, k], rigid["tip"][:, k], f"end point, {x} [m]")
        axes[1, 2].plot(t, 1e3 * (flexible["tip"][:, k] - rigid["tip"][:, k]), label=x)
    axes[1, 2].set(title="end point, flexible minus rigid [mm]", xlabel="t [s]")
    axes[1, 2].legend()
    for k in ("kinetic", "elastic", "work"):
        axes[1, 3].plot(t, 1e3 * flexible[k], label=k)
    axes[1, 3].set(title="energies [mJ]", xlabel="t [s]")
    axes[1, 3].legend()
    figure.savefig(RESULTS / f"{name}.png", dpi=100)


def experiment():
    """Figures 13 and 14: joints, deflection at node 2 and tip, flex sensors. 15 needs data."""
    data, rigid = load("experiment"), load("experiment_rigid")
    if data is None:
        return
    figure, axes = plt.subplots(1, 4, figsize=(17, 3.8))
    t = data["t"]
    for i, label in enumerate(("slide [m]", "rotation [rad]")):
        pair(axes[i], t, data["q"][:, i], rigid["q"][:, i], label)
    axes[2].plot(t, 1e3 * data["w"][:, 2], label="second node")
    axes[2].plot(t, 1e3 * data["w"][:, -1], label="tip")
    axes[2].set(title="deflection of link 2 [mm]", xlabel="t [s]")
    axes[2].legend()
    for k in data.files:
        if k.startswith("sensor_"):
            axes[3].plot(t, 1e3 * data[k], label=k.removeprefix("sensor_"))
    axes[3].set(title="flex sensors [mrad]", xlabel="t [s]")
    axes[3].legend()
    figure.savefig(RESULTS / "experiment.png", dpi=100)


def crossing():
    runs = {k: load(f"crossing_{k}") for k in ("bspline", "ale", "hermite", "node")}
    if runs["bspline"] is None:
        return
    figure, axes = plt.subplots(1, 3, figsize=(14, 3.8))
    for border in (0.2, 0.4, 0.6):
        axes[0].axhline(border, color="0.8", zorder=0)
    # The first three coincide.
    for (kind, data), style in zip(
        runs.items(), ({"lw": 4, "alpha": 0.4}, {}, {"ls": "--"}, {}), strict=True
    ):
        if data is None:
            continue
        axes[0].plot(data["t"], data["q"][:, 0], label=kind, **style)
        axes[1].plot(data["t"], 1e3 * data["tip"][:, 1], label=kind, **style)
        error = np.abs(data["balance"] - data["balance"][0]) / np.max(data["kinetic"])
        axes[2].semilogy(data["t"], np.maximum(error, 1e-17), label=kind)
    axes[0].set(title="contact on the flexible carrier [m]; borders grey", xlabel="t [s]")
    axes[1].set(title="end point, y [mm]", xlabel="t [s]")
    axes[2].set(title="energy error, relative", xlabel="t [s]")
    for axis in axes:
        axis.legend()
    figure.savefig(RESULTS / "crossing.png", dpi=100)


def carriers():
    runs = {name: load(f"carrier_{name}") for name in ("RPa", "PaPa", "PbPa")}
    if all(data is None for data in runs.values()):
        return
    figure, axes = plt.subplots(1, 3, figsize=(14, 3.8))
    for name, data in runs.items():
        if data is not None:
            axes[0].plot(data["t"], data["q"][:, 1], label=name)
            axes[1].plot(*data["tip"][:, :2].T, label=name)
            axes[2].plot(data["t"], 1e3 * data["w"][:, -1], label=name)
    axes[0].set(title="contact on the flexible carrier [m]", xlabel="t [s]")
    axes[1].set(title="end point [m]", xlabel="x", ylabel="y")
    axes[2].set(title="deflection at the rider's tip [mm]", xlabel="t [s]")
    for axis in axes:
        axis.legend()
    figure.savefig(RESULTS / "carriers.png", dpi=100)


if __name__ == "__main__":
    with fx.plot_style():
        arm("par", [("slide", "m"), ("turn", "rad")])
        arm("rpb", [("turn", "rad"), ("guide", "m")])
        experiment()
        crossing()
        carriers()
