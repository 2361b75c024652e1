"""Plots results/bench_arm.npz: measured and predicted readings of both recordings, residuals."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

HERE = Path(__file__).resolve().parent


def main():
    path = HERE / "results" / "bench_arm.npz"
    if not path.exists():
        print("no results: run run.py first")
        return
    data = np.load(path)
    names = [key.removesuffix(".measured") for key in data if key.endswith(".measured")]
    with fx.plot_style():
        figure, axes = plt.subplots(
            len(names), 2, squeeze=False, figsize=(10.0, 1.0 + 1.8 * len(names)), sharex=True
        )
        for name, left, right in zip(names, *axes.T, strict=True):
            role, sensor = name.split(".", 1)
            t, y, p = data[f"{role}.t"], data[f"{name}.measured"], data[f"{name}.model"]
            left.plot(t, y, color="black", linewidth=1.0, label="measured")
            left.plot(t, p, color="C1", linestyle="--", label="model")
            left.set_title(f"{role}, {sensor}", loc="left")
            angle = "angle" in sensor
            factor, unit = (1e3, "mrad") if angle else (1e6, "um/m")
            left.set_ylabel("angle [rad]" if angle else "strain [1]")
            right.plot(t, factor * (y - p), color="C0", linewidth=0.9)
            right.set_title("measured minus model", loc="left")
            right.set_ylabel(f"residual [{unit}]")
        axes[0, 0].legend(ncols=2)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.savefig(HERE / "results" / "bench_arm.png")


if __name__ == "__main__":
    main()
