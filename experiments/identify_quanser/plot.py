"""Plots results/quanser.npz: measured deflection, identified model and baselines."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

HERE = Path(__file__).resolve().parent


def main():
    path = HERE / "results" / "quanser.npz"
    if not path.exists():
        print("no results: run run.py first")
        return
    data, numbers = np.load(path), json.loads((HERE / "results" / "quanser.json").read_text())
    rows = numbers["fits"]
    with fx.plot_style():
        figure, axes = plt.subplots(
            len(rows), 2, squeeze=False, figsize=(10.5, 1.0 + 1.7 * len(rows)), sharex=True
        )
        for row, left, right in zip(rows, *axes.T, strict=True):
            get = lambda key, row=row: data[f"{row['record']}.{key}"]
            left.plot(
                get("t"), 1e3 * get("measured"), color="black", linewidth=1.0, label="measured"
            )
            left.plot(get("t"), 1e3 * get("model"), color="C1", linestyle="--", label="flexjax")
            left.plot(get("t"), 1e3 * get("arx"), color="C2", linestyle=":", label="ARX")
            if row["n4sid"] is not None:
                left.plot(
                    get("t"),
                    1e3 * get("n4sid"),
                    color="C3",
                    linestyle="-.",
                    linewidth=0.9,
                    label="N4SID",
                )
            third = "" if row["n4sid"] is None else f", N4SID {row['n4sid']:.1f} %"
            left.set_title(
                f"{row['role']}, {row['record']}: flexjax {row['flexjax']:.1f} %, "
                f"ARX {row['arx']:.1f} %{third}",
                loc="left",
            )
            left.set_ylabel("deflection [mrad]")
            right.plot(
                get("t"),
                1e3 * (get("measured") - get("model")),
                color="C1",
                linewidth=0.9,
                label="flexjax",
            )
            right.plot(
                get("t"),
                1e3 * (get("measured") - get("arx")),
                color="C2",
                linewidth=0.9,
                linestyle=":",
                label="ARX",
            )
            right.set_title("residual [mrad]", loc="left")
        axes[0, 0].legend(ncols=3)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.savefig(HERE / "results" / "quanser.png")


if __name__ == "__main__":
    main()
