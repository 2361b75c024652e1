"""Figures from the results of run.py: what the printed errors break, cost against the number of links, the arms in
motion.

python experiments/000_screw_synthesis/plot.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"


def printed():
    data = np.load(RESULTS / "printed.npz")
    t = data["dt"] * (1 + np.arange(data["energy"].shape[1]))
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharex=True)
    momentum = np.linalg.norm((data["momentum"] - data["momentum"][:, :1])[:, :, 3:], axis=-1)
    for i, name in enumerate(data["names"]):
        style = {"color": "black", "linewidth": 2.5} if i == 0 else {}
        axes[0].semilogy(t, np.abs(data["energy"][i] - data["energy"][i, 0]) + 1e-16, label=str(name), **style)
        axes[1].semilogy(t, momentum[i] + 1e-16, **style)
    axes[0].set(title="two-link swing: change of energy [J]", xlabel="t [s]", ylim=(1e-13, 1e4))
    axes[1].set(title="free-floating arm: change of angular momentum", xlabel="t [s]", ylim=(1e-13, 1e4))
    fig.legend(loc="lower center", ncols=3, fontsize=8, frameon=False)
    fig.tight_layout(rect=(0, 0.17, 1, 1))
    fig.savefig(RESULTS / "printed.png", dpi=150)


def arms():
    data = np.load(RESULTS / "arms.npz")
    sizes, cost = data["sizes"], data["cost"]
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.2))
    axes[0].loglog(sizes, 1e3 * cost, "o-", label="measured")
    axes[0].loglog(sizes, 1e3 * cost[-1] * sizes / sizes[-1], "--", color="grey", label="slope 1")
    axes[0].set(xlabel="links", ylabel="CPU time per step [ms]", title="cost of an energy-conserving step")
    axes[0].legend(frameon=False)
    largest = data[f"tips{sizes[-1]}"]
    for k in np.linspace(0, len(largest) - 1, 6).astype(int):
        points = np.concatenate([np.zeros((1, 3)), largest[k]])
        axes[1].plot(points[:, 0], points[:, 1], label=f"output {k}")
    axes[1].set(xlabel="x [m]", ylabel="y [m]", title=f"{sizes[-1]} links under gravity and torque", aspect="equal")
    axes[1].legend(frameon=False, fontsize=8)
    fig.tight_layout()
    fig.savefig(RESULTS / "arms.png", dpi=150)


if __name__ == "__main__":
    for draw, needed in ((printed, "printed.npz"), (arms, "arms.npz")):
        if (RESULTS / needed).exists():
            draw()
