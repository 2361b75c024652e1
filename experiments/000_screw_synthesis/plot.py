"""Plots the results of run.py: effect of the printed errors, cost over links, motion of the arms.

python experiments/000_screw_synthesis/plot.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"


def printed():
    data = np.load(RESULTS / "printed.npz")
    names = [str(n) for n in data["names"]]
    t = data["dt"] * np.arange(data["energy"].shape[1])
    with np.errstate(over="ignore"):  # unstable cases overflow
        momentum = np.linalg.norm((data["momentum"] - data["momentum"][:, :1])[:, :, 3:], axis=-1)
    panels = [
        ("two-link swing: change of energy [J]", np.abs(data["energy"] - data["energy"][:, :1])),
        (
            "free-floating arm: change of energy [J]",
            np.abs(data["free_energy"] - data["free_energy"][:, :1]),
        ),
        ("free-floating arm: change of angular momentum [kg m²/s]", momentum),
    ]
    fig, axes = plt.subplots(1, 3, figsize=(15, 5.6), sharex=True)
    lines = [
        {"color": f"C{i % 6}", "linestyle": ("-", "--", ":")[i // 6]} for i in range(len(names))
    ]
    for axis, (title, values) in zip(axes, panels, strict=True):
        for i in range(1, len(names)):
            axis.semilogy(
                t[1:], np.where(values[i] < 1e4, values[i], np.nan)[1:], label=names[i], **lines[i]
            )
        axis.semilogy(t[1:], values[0, 1:], color="black", linewidth=2.5, label="all corrected")
        axis.set(title=title, xlabel="t [s]", ylim=(1e-13, 1e4))
        axis.title.set_fontsize(10)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3)
    fig.savefig(RESULTS / "printed.png", dpi=110)


def arms():
    data = np.load(RESULTS / "arms.npz")
    sizes, cost = data["sizes"], data["cost"]
    fig, axes = plt.subplots(1, 3, figsize=(15, 4.4))
    axes[0].loglog(sizes, 1e3 * cost, "o-", label="measured")
    axes[0].loglog(sizes, 1e3 * cost[-1] * sizes / sizes[-1], "--", color="grey", label="slope 1")
    axes[0].set(
        xlabel="links", ylabel="CPU time per step [ms]", title="cost of an energy-conserving step"
    )
    axes[0].set_xticks(sizes, [str(n) for n in sizes])
    axes[0].minorticks_off()
    axes[0].legend()
    largest = data[f"tips{sizes[-1]}"]
    for k in np.linspace(0, len(largest) - 1, 6).astype(int):
        points = np.concatenate([np.zeros((1, 3)), largest[k]])
        for axis, row in zip(axes[1:], (1, 2), strict=True):
            axis.plot(points[:, 0], points[:, row], label=f"t = {data['ts'][k]:.2f} s")
    axes[1].set(
        xlabel="x [m]", ylabel="y [m]", title=f"{sizes[-1]} links, side view (unequal scales)"
    )
    axes[2].set(
        xlabel="x [m]", ylabel="z [m]", title=f"{sizes[-1]} links, top view (unequal scales)"
    )
    axes[2].legend()
    fig.savefig(RESULTS / "arms.png", dpi=110)


if __name__ == "__main__":
    with fx.plot_style():
        for draw, needed in ((printed, "printed.npz"), (arms, "arms.npz")):
            if (RESULTS / needed).exists():
                draw()
