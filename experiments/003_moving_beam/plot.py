"""Figures from results/*.json: python experiments/003_moving_beam/plot.py"""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
COLOURS = {"constant": "0.6", "linear": "tab:blue", "cubic": "tab:red", "complete": "tab:green", "consistent": "black"}


def load(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(figure, name):
    figure.tight_layout()
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
        end = f", collapses at {run['t_fail']:.2f} s" if run["status"] else ""
        axes[0].plot(data["t"], np.clip(uy, -limit, limit), color=colour, lw=1, label=label + end)
        axes[1].plot(data["t"], ux, color=colour, lw=1)
    axes[0].set(ylabel="uy of the tip [m]", title=title)
    axes[1].set(ylabel="ux of the tip [m]", xlabel="t [s]")
    axes[0].legend(fontsize=8)
    save(figure, name)


def others():
    data = load("static_limit")
    if data:
        figure, axis = plt.subplots(figsize=(6, 4))
        for label in ("linear", "cubic", "complete", "consistent"):
            axis.plot(data["w"], np.array(data[label], float), color=COLOURS[label], ls="-" if label in ("linear", "cubic") else "--", label=label)
        axis.axvline(data["limit"], color="0.7", lw=0.8)
        axis.set(xlabel="tip deflection / radius of gyration", ylabel="tip load L^3 / (EI r)", title="Limit point of the printed order")
        axis.legend()
        save(figure, "static_limit")
    data = load("deployment")
    if data:
        figure, axis = plt.subplots(figsize=(7, 4))
        for label in ("linear", "complete"):
            if label in data:
                axis.plot(data["t"], data[label]["want"], color=COLOURS[label], lw=1, label=f"{label}, reference")
                axis.plot(data["t"], data[label]["uy"], "o", ms=4, mfc="none", color=COLOURS[label], label=f"{label}, 8 elements, small")
        if "complete" in data:
            back = data["complete"]["back"]
            axis.plot(4.0 - np.array(data["t"][: len(back)]), back, "x", ms=5, color="black", label="complete, drawn in again (time turned)")
        axis.set(xlabel="t [s]", ylabel="uy of the tip / first deflection", title="Deployment 5 m to 10 m in 4 s, and retrieval")
        axis.legend(fontsize=8)
        save(figure, "deployment")
    data = load("three_tubes")
    if data:
        figure, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True)
        for label, colour in (("retrieval", "tab:blue"), ("deployment", "tab:green")):
            axes[0].plot(data["t"], data[label]["uy"], color=colour, label=label)
            axes[1].plot(data["t"], data[label]["work"], color=colour)
        axes[0].set(ylabel="uy of the tip [m]", title="Arm S at 0.5 rad/s: telescopes 3.6 to 2.4 m and back")
        axes[1].set(ylabel="work of the actuators [J]", xlabel="t [s]")
        axes[0].legend(fontsize=8)
        save(figure, "three_tubes")
    data = load("slow_extension")
    if data:
        figure, axis = plt.subplots(figsize=(7, 3.5))
        axis.plot(data["t"], data["uy"], lw=0.5)
        axis.set(xlabel="t [s]", ylabel="uy [m]", title=f"Slow extension: amplitude x {data['ratio']:.3f}, sqrt(L1/L0) = {data['law']:.3f}")
        save(figure, "slow_extension")
    data = load("roller")
    if data:
        figure, axis = plt.subplots(figsize=(6, 4))
        for k in (0, 1):
            axis.semilogy(data["V"], np.array(data["measured"])[:, k] if np.shape(data["measured"])[0] == 6 else data["measured"][k], "o", color="black")
            axis.semilogy(data["V"], np.array(data["fitted"])[:, k], color="tab:green")
        axis.set(xlabel="roller position sensor [V]", ylabel="f [Hz]", title=f"Moving roller (dropbear8): rms {data['rms']:.2%}")
        save(figure, "roller")
    data = load("planes")
    if data:
        runs = [k for k in data if isinstance(data[k], dict)]
        figure, axes = plt.subplots(len(runs), 1, figsize=(7, 2.2 * len(runs)), sharex=True, squeeze=False)
        for axis, label in zip(axes[:, 0], runs, strict=True):
            axis.plot(data["t"], data[label]["uy"], lw=0.7, label="uy")
            axis.plot(data["t"], data[label]["uz"], lw=0.7, label="uz")
            axis.set(title=label, ylabel="tip [m]")
        axes[0, 0].legend()
        save(figure, "planes")


if __name__ == "__main__":
    manoeuvre("spin_up", "Classic spin-up, 10 elements", 1.0)
    manoeuvre("telescopic", "Arm S: 11.8 m, 48 kg, 5 elements (figure 3)", 0.06)
    others()
