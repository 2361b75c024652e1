"""Figures from results/: joint motions, end point, elastic displacement (the paper's figures 4-9), flex sensors (13-15), energy over crossings.

    python experiments/001_finite_element/plot.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"


def load(name):
    path = RESULTS / f"{name}.npz"
    return np.load(path) if path.exists() else None


def arm(name, joints):
    flexible, rigid = load(name), load(f"{name}_rigid")
    if flexible is None:
        return
    figure, axes = plt.subplots(2, 3, figsize=(13, 6.5), layout="constrained")
    t = flexible["t"]
    for i, (label, unit) in enumerate(joints):
        axes[0, 0].step(t, flexible["effort"][:, i], where="pre", label=label)
        axes[0, 1 + i].plot(t, flexible["q"][:, i], label="flexible")
        axes[0, 1 + i].plot(t, rigid["q"][:, i], "--", label="rigid")
        axes[0, 1 + i].set(title=f"{label} [{unit}]", xlabel="t [s]")
        axes[0, 1 + i].legend()
    axes[0, 0].set(title="inputs [N, N m]", xlabel="t [s]")
    axes[0, 0].legend()
    axes[1, 0].plot(t, 1e3 * flexible["w"][:, -1])
    axes[1, 0].set(title="elastic displacement of the tip [mm]", xlabel="t [s]")
    axes[1, 1].plot(*flexible["tip"][:, :2].T, label="flexible")
    axes[1, 1].plot(*rigid["tip"][:, :2].T, "--", label="rigid")
    axes[1, 1].set(title="end point [m]", xlabel="x", ylabel="y")
    axes[1, 1].legend()
    sensors = [k for k in flexible.files if k.startswith("sensor_")]
    for k in sensors:
        axes[1, 2].plot(t, flexible[k], label=k.removeprefix("sensor_"))
    if sensors:
        axes[1, 2].set(title="flex sensors [rad]", xlabel="t [s]")
        axes[1, 2].legend()
    else:
        for k in ("kinetic", "elastic", "work"):
            axes[1, 2].plot(t, 1e3 * flexible[k], label=k)
        axes[1, 2].set(title="energies [mJ]", xlabel="t [s]")
        axes[1, 2].legend()
    figure.savefig(RESULTS / f"{name}.png", dpi=110)


def crossing():
    spline, hermite = load("crossing_bspline"), load("crossing_hermite")
    if spline is None:
        return
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    axes[0].plot(spline["t"], spline["q"][:, 1])
    for border in (0.2, 0.4, 0.6):
        axes[0].axhline(border, color="0.8", zorder=0)
    axes[0].set(title="contact on the flexible carrier [m]; borders grey", xlabel="t [s]")
    axes[1].plot(*spline["tip"][:, :2].T)
    axes[1].set(title="end point [m]", xlabel="x", ylabel="y")
    for label, data in (("B-splines", spline), ("Hermite", hermite)):
        error = np.abs(data["balance"] - data["balance"][0]) / np.max(data["kinetic"])
        axes[2].semilogy(data["t"], np.maximum(error, 1e-16), label=label)
    axes[2].set(title="energy error, relative", xlabel="t [s]")
    axes[2].legend()
    figure.savefig(RESULTS / "crossing.png", dpi=110)


if __name__ == "__main__":
    arm("par", [("slide", "m"), ("turn", "rad")])
    arm("rpb", [("turn", "rad"), ("guide", "m")])
    arm("experiment", [("slide", "m"), ("turn", "rad")])
    crossing()
