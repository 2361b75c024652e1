"""Plots results/: python experiments/002_transfer_matrix/plot.py"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"


def load(part):
    path = RESULTS / f"002_{part}.npz"
    return np.load(path) if path.exists() else None


def single():
    """Figure 6 of the paper: motor angle, deflection, spectrum."""
    r = load("single")
    printed = any("printed" in k for k in r.files)  # not in the quick form
    fig, ax = plt.subplots(4 if printed else 3, 1, figsize=(8, 11 if printed else 8.3))
    t = r["single_t"]
    ax[0].plot(t, np.degrees(r["single_angle"]))
    ax[0].set(
        xlim=(0, 1.5),
        xlabel="t [s]",
        ylabel="motor angle [deg]",
        title="(a) angle of the motor (substitute)",
    )
    for key in (k for k in r.files if k.startswith("single_d.")):
        label = key.removeprefix("single_d.")
        spectrum = r[key.replace("_d.", "_spectrum.")]
        ax[3 if "printed" in key else 1].plot(t, 1e3 * r[key], lw=1, label=label)
        ax[2].plot(r["single_bins"], spectrum / spectrum.max(), ".-", lw=0.8, ms=3, label=label)
    if printed:
        ax[3].set(
            xlim=(0, 1.5),
            xlabel="t [s]",
            ylabel="tip deflection [mm]",
            title="(d) with E as printed in Table II",
        )
    first = next(k for k in r.files if k.startswith("single_gauge."))
    ax[1].plot(t, 1e3 * r[first], "k:", lw=1, label="from a gauge at the root, first mode")
    ax[1].set(
        xlim=(0, 1.5),
        xlabel="t [s]",
        ylabel="tip deflection [mm]",
        title="(b) deflection of the end point",
    )
    ax[2].axvline(6.05, color="0.6", ls="--", lw=0.8)
    ax[2].axvline(6.16, color="0.6", ls="--", lw=0.8)
    ax[2].set(
        xlim=(1, 8),
        xlabel="f [Hz]",
        ylabel="spectrum over its peak",
        title="(c) spectrum; dashed: 6.05 and 6.16 Hz of the paper, neighbouring bins of 9.09 s",
    )
    for a in ax[1:]:
        a.legend(fontsize=7)
    fig.savefig(RESULTS / "single.png", dpi=130)


def three():
    """Figures 8 and 9: end-point errors, deflections of links, rotations of joints."""
    r = load("three")
    t = r["three_t"]
    fig, ax = plt.subplots(3, 2, figsize=(10, 9), sharex=True)
    for kind, style in (("rigid", "--"), ("flexible", "-")):
        for i, name in enumerate("xy"):
            ax[0, i].plot(t, 1e3 * r[f"three_error.{kind}"][:, i], style, label=f"{kind} joints")
            ax[0, i].set(ylabel=f"end-point error {name} [mm]")
        for i in range(3):
            a = ax[1 + i // 2, i % 2]
            a.plot(t, 1e3 * r[f"three_links.{kind}"][:, i], style, label=f"{kind} joints")
            a.set(ylabel=f"deflection, link {i + 1} [mm]")
    for i in range(3):
        ax[2, 1].plot(t, np.degrees(r["three_joints.flexible"][:, i]), label=f"joint {i + 1}")
    ax[2, 1].set(ylabel="rotation of joint springs [deg]")
    for a in ax.flat:
        a.legend(fontsize=7)
    for a in ax[2]:
        a.set(xlabel="t [s]")
    fig.savefig(RESULTS / "three.png", dpi=130)


def stability():
    r = load("stability")
    fig, ax = plt.subplots(figsize=(7, 4))
    for key in (k for k in r.files if k.startswith("stability.")):
        late = (r["stability_t"] > 0.5) & (r["stability_t"] < 0.7)
        ax.plot(
            r["stability_t"],
            r[key] / r[key][late].mean(),
            lw=1,
            label=key.removeprefix("stability."),
        )
    ax.set(
        xlabel="t [s]",
        ylabel="energy over that at 0.6 s",
        ylim=(0.9, 1.2),
        title="three links, motors at rest from 0.4 s",
    )
    ax.legend(fontsize=7)
    fig.savefig(RESULTS / "stability.png", dpi=130)


def orders():
    r = load("orders")
    fig, ax = plt.subplots(figsize=(7, 4))
    for i, key in enumerate(k for k in r.files if k.startswith("orders.")):
        # Some coincide: large open markers first, small ones on top.
        style = {
            "marker": "osD^vX"[i % 6],
            "ms": 9 - i,
            "mfc": "none",
            "ls": ("-", "--", "-.")[i % 3],
        }
        ax.loglog(
            1e3 * r["orders_dt"], 1e3 * r[key], lw=1, label=key.removeprefix("orders."), **style
        )
    for power, style in ((1, "k:"), (2, "k--")):
        ax.loglog(
            1e3 * r["orders_dt"],
            0.02 * (r["orders_dt"] / r["orders_dt"][0]) ** power,
            style,
            lw=0.8,
        )
    ax.set(
        xlabel="dt [ms]",
        ylabel="change of the tip when dt is halved [mm]",
        title="dotted: order 1, dashed: order 2",
    )
    ax.legend(fontsize=7)
    fig.savefig(RESULTS / "orders.png", dpi=130)


def digits():
    r = load("digits")
    fig, ax = plt.subplots(figsize=(7, 4))
    for k, (kind, style) in enumerate((("product", "o-"), ("riccati", "s--"), ("parallel", "^:"))):
        for i, n in enumerate(r["digits_sizes"]):
            ax.loglog(
                r["digits_steps"],
                np.clip(r["digits"][k, i], 1e-17, 1e2),
                style,
                color=f"C{i}",
                ms=4,
                lw=1,
                label=f"{kind}, N = {n}",
            )
    ax.set(
        xlabel="dt [s]",
        ylabel="relative error of positions",
        ylim=(1e-17, 1e2),
        title="position form against extended precision",
    )
    ax.legend(fontsize=7)
    fig.savefig(RESULTS / "digits.png", dpi=130)


if __name__ == "__main__":
    with fx.plot_style():
        for figure in (single, three, stability, orders, digits):
            if load(figure.__name__) is not None:
                figure()
