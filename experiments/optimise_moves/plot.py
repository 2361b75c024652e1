"""Plots results/*.npz: motions, tip after the move, and vibration over the payload."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

RESULTS = Path(__file__).resolve().parent / "results"
LOOKS = {
    "quintic": ("C6", "-"),
    "zv": ("C4", "-."),
    "zvd": ("C3", ":"),
    "nominal": ("C0", "--"),
    "robust": ("C1", "-"),
}


def draw(path):
    """One figure for each arm, with a row for each duration."""
    data = np.load(path)
    labels = list(dict.fromkeys(key.partition("|")[0] for key in data))
    with fx.plot_style():
        figure, axes = plt.subplots(
            len(labels), 3, squeeze=False, figsize=(12.0, 0.6 + 2.5 * len(labels))
        )
        for label, (left, middle, right) in zip(labels, axes, strict=True):
            end = data[f"{label}|t"]
            for name, (colour, line) in LOOKS.items():
                look = dict(color=colour, linestyle=line, label=name)
                if f"{label}|{name}.tip" in data:
                    t, tip = data[f"{label}|{name}.t"], data[f"{label}|{name}.tip"]
                    left.plot(t, data[f"{label}|{name}.q"], **look)
                    # The distance is zero where the tip rests.
                    away = np.maximum(1e3 * np.linalg.norm(tip, axis=1), 1e-6)
                    middle.semilogy(t, away, **look)
                masses = data[f"{label}|masses"]
                order = np.argsort(masses)
                vibration = 1e3 * data[f"{label}|{name}.vibration"]
                right.semilogy(1e3 * masses[order], vibration[order], **look)
            left.set_title(f"{path.stem}, {label}", loc="left")
            left.set_ylabel("joint coordinates [rad]")
            middle.set_ylabel("tip from the goal [mm]")
            right.set_ylabel("peak vibration [mm]")
            middle.set_xlim(0.0, float(end[-1]))
        for axis, text in zip(axes[-1], ("time [s]", "time [s]", "payload [g]"), strict=True):
            axis.set_xlabel(text)
        handles, names = axes[0, 2].get_legend_handles_labels()
        figure.legend(handles, names, ncols=5, loc="outside upper right")
        figure.savefig(RESULTS / f"{path.stem}.png")
        plt.close(figure)


def main():
    paths = sorted(RESULTS.glob("*.npz"))
    if not paths:
        print("no results: run run.py first")
    for path in paths:
        draw(path)


if __name__ == "__main__":
    main()
