"""Plots results/daisy.npz: measured lines, the identified beam, the baselines, their errors."""

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
        figure, (top, bottom, errors) = plt.subplots(3, 1, figsize=(7.5, 7.4), sharex=True)
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
        bottom.set(ylabel="phase [deg]")
        for n, marker in (("train", "."), ("check", "x")):
            size = np.linalg.norm(data[f"{n}.H"] / data[f"{n}.sd"])
            for key, colour in (("model", "C1"), ("rational", "C2")):
                off = np.abs(data[f"{n}.{key}"] - data[f"{n}.H"]) / data[f"{n}.sd"]
                errors.plot(data[f"{n}.f"], 100 * off / size, marker, color=colour, markersize=4)
        errors.set_yscale("log")
        errors.set(xlabel="frequency [Hz]", ylabel="error of the output\n[% of the output's norm]")
        top.legend(ncols=2)
        figure.savefig(HERE / "results" / "daisy.png")


if __name__ == "__main__":
    main()
