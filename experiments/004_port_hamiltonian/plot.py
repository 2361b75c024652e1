"""Plots figures 4-10 of paper 004 from the results of run.py.

    python experiments/004_port_hamiltonian/plot.py

run.py itself writes 3D pages of the serial arm and the closed chain.
"""

import tomllib
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from run import spectrum as after

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"
AT = {"L/4": 5, "L/2": 10, "3L/4": 15}
NAMES = (("q_theta [1/m]", 5), ("q_x", 0), ("q_y", 1))


def load(name):
    path = RESULTS / f"{name}.npz"
    return np.load(path) if path.exists() else None


def figure(name, fig):
    fig.savefig(RESULTS / f"{name}.png", dpi=130, bbox_inches="tight")  # equal axes leave room
    plt.close(fig)
    print(RESULTS / f"{name}.png")


def step(reading):
    d = load(f"step_{reading}")
    if d is None:
        return
    fig, ax = plt.subplots(figsize=(6, 3.2))
    ax.plot(d["t"], 1.0 - d["q"][:, 0])
    ax.set(
        xlabel="time [s]",
        ylabel="error of the joint [rad]",
        title=f"Fig. 4: step response, Table I as {reading}",
    )
    figure(f"fig04_{reading}", fig)
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.2))
    for ax, (place, s) in zip(axes, AT.items(), strict=True):
        for label, k in NAMES:
            ax.plot(d["t"], d["strain"][:, 0, s, k], label=label, lw=1)
        ax.set(xlabel="time [s]", title=f"s = {place}")
    axes[0].set_ylabel("strain")
    axes[0].legend()
    figure(f"fig05_{reading}", fig)
    shapes(f"fig06_{reading}", d, 0.35 * d["t"][-1], "Fig. 6: transient of the single link")


def shapes(name, d, until, title, count=9):
    fig, ax = plt.subplots(figsize=(5.5, 5))
    chosen = np.unique(
        np.searchsorted(d["t"], np.linspace(0, until, count)).clip(max=len(d["t"]) - 1)
    )
    for c, i in zip(plt.cm.viridis(np.linspace(0, 0.9, len(chosen))), chosen, strict=True):
        for link in range(d["frames"].shape[1]):
            x = d["frames"][i, link, :, :2]
            ax.plot(x[:, 0], x[:, 1], color=c, label=f"{d['t'][i]:.3g} s" if link == 0 else None)
    ax.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=title)
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure(name, fig)


def manoeuvre(number, kind, reading, label, title):
    rows = [(speed, load(f"{kind}_{reading}_{speed}{label}")) for speed in ("slow", "fast")]
    if any(d is None for _, d in rows):
        return
    fig, axes = plt.subplots(2, 2, figsize=(9, 5.5))
    for row, (speed, d) in zip(axes, rows, strict=True):
        for ax, place in zip(row, ("L/4", "L/2"), strict=True):
            ax.plot(d["t"], d["strain"][:, 0, AT[place], 5], label="q_theta [1/m]")
            ax.plot(d["t"], d["strain"][:, 0, AT[place], 1], label="q_y")
            ax.set(xlabel="time [s]", title=f"{title} {speed}, s = {place}")
    axes[0, 0].legend()
    figure(f"fig{number:02d}_{kind}_{reading}{label}", fig)


def spectrum(reading):
    both = [(kind, load(f"{kind}_{reading}_slow")) for kind in ("PP", "ST")]
    if any(d is None for _, d in both):
        return
    over = tomllib.loads((RESULTS.parent / "config.toml").read_text())["manoeuvre"]["over"]
    fig, ax = plt.subplots(figsize=(6, 3.2))
    for kind, d in both:
        ax.semilogy(*after(d, d["t"][-1] / over), label=kind)
    ax.set(
        xlim=(0, 60 if reading == "density" else 5),
        ylim=(1e-6, 2),
        xlabel="frequency [Hz]",
        ylabel="q_theta at L/2, scaled",
    )
    ax.set(title=f"After the manoeuvre, no damping ({reading})")
    ax.legend()
    figure(f"spectrum_{reading}", fig)


def main():
    for reading in ("density", "lumped"):
        step(reading)
        manoeuvre(7, "PP", reading, "", "PP")
        manoeuvre(8, "ST", reading, "_damped", "ST with strain-rate damping,")
        manoeuvre(8, "ST", reading, "", "ST without damping,")
        spectrum(reading)
    for name, number, title in (
        ("serial", 9, "Fig. 9: serial arm"),
        ("loop", 10, "Fig. 10: closed chain"),
    ):
        d = load(name)
        if d is not None:
            shapes(
                f"fig{number:02d}_{name}",
                d,
                0.3 * d["t"][-1] if name == "serial" else 0.4 * d["t"][-1],
                title,
            )


if __name__ == "__main__":
    with fx.plot_style():
        main()
