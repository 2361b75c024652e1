"""Plots results/daisy.npz: measured lines, the identified beam, the baselines."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

HERE = Path(__file__).resolve().parent


def main():
    path = HERE / "results" / "daisy.npz"
    if not path.exists():
        print("no results: run run.py first")
        return
    data = np.load(path)
    with fx.plot_style():
        figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 5.4), sharex=True)
        for axis, part in ((top, np.abs), (bottom, lambda H: np.degrees(np.angle(H)))):
            axis.plot(
                data["train.f"], part(data["train.H"]), ".", color="black", label="measured, fitted"
            )
            axis.plot(
                data["check.f"],
                part(data["check.H"]),
                "x",
                color="C0",
                markersize=4,
                label="measured, validation",
            )
            axis.plot(data["f"], part(data["model"]), color="C1", label="beam")
            axis.plot(
                data["f"], part(data["rational"]), color="C2", linestyle=":", label="rational 4/4"
            )
            if "n4sid" in data:
                axis.plot(
                    data["f"],
                    part(data["n4sid"]),
                    color="C3",
                    linestyle="-.",
                    linewidth=0.9,
                    label="N4SID",
                )
        top.set_yscale("log")
        top.set_ylabel("magnitude [units not stated]")
        bottom.set(xlabel="frequency [Hz]", ylabel="phase [deg]")
        top.legend(ncols=2)
        figure.savefig(HERE / "results" / "daisy.png")


if __name__ == "__main__":
    main()
