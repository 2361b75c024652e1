"""Plots results/quanser.npz: measured deflection, the chosen model and ARX, with residuals."""

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
    chosen = numbers["models"][numbers["chosen"]]
    arx = next(v for k, v in numbers["models"].items() if k.startswith("ARX"))
    names = [(role, n) for role in ("fitted", "validation") for n in chosen[role]]
    with fx.plot_style():
        figure, axes = plt.subplots(
            len(names), 2, squeeze=False, figsize=(10.5, 1.0 + 1.7 * len(names)), sharex=True
        )
        for (role, name), left, right in zip(names, *axes.T, strict=True):
            t, measured = data[f"{name}.t"], 1e3 * data[f"{name}.measured"]
            left.plot(t, measured, color="black", linewidth=1.0, label="measured")
            for key, label, colour, style in (
                ("model", "flexjax", "C1", "--"),
                ("arx", "ARX", "C2", ":"),
            ):
                values = 1e3 * data[f"{name}.{key}"]
                left.plot(t, values, color=colour, linestyle=style, label=label)
                right.plot(t, measured - values, color=colour, linewidth=0.9, label=label)
            left.set_title(
                f"{role}, {name}: flexjax {chosen[role][name]:.1f} %, ARX {arx[role][name]:.1f} %",
                loc="left",
            )
            left.set_ylabel("deflection [mrad]")
            right.set_title("residual [mrad]", loc="left")
            right.axhline(0.0, color="black", linewidth=0.5)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        axes[0, 0].legend(loc="lower right")
        figure.savefig(HERE / "results" / "quanser.png")
    print(f"wrote {HERE / 'results' / 'quanser.png'}")


if __name__ == "__main__":
    main()
