"""Draws docs/images/two-link.png from a rigid and a flexible run:

motion="--motion shoulder=quintic:0:1:0.6 elbow=quintic:-0.5:0.6:0.6 --dt 2e-3"
flexjax simulate two-link --formulation RigidArm $motion --save rigid.nc
flexjax simulate two-link --formulation ScrewSynthesis $motion --save flexible.nc
python docs/images/make_two_link.py rigid.nc flexible.nc
"""

import sys
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
rigid, flexible = map(fx.load_trajectory, sys.argv[1:3])
with fx.plot_style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9))
    ts = np.asarray(flexible.ts)
    for n, time in enumerate((0.0, 0.15, 0.3, 0.7)):
        k = int(np.argmin(np.abs(ts - time)))
        for link in range(flexible.frames.shape[1]):
            p, r = (np.asarray(t.frames)[k, link, :, :2] for t in (flexible, rigid))
            left.plot(r[:, 0], r[:, 1], color="#999999", linestyle="--", linewidth=1.0)
            left.plot(
                p[:, 0],
                p[:, 1],
                color=f"C{n}",
                linewidth=2.6,
                label=f"{time:g} s" if link == 0 else None,
            )
            left.plot(*p[0], "o", color="#444444", markersize=4)
    left.plot(*np.asarray(flexible.tip)[:, :2].T, color="#000000", linewidth=0.6, alpha=0.6)
    left.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="two-link arm; dashed: rigid")
    left.legend()
    for link, part in enumerate(flexible.robot.links):
        right.plot(
            ts,
            1e3 * np.asarray(flexible.deflection)[:, link, -1, 1],
            color=f"C{link}",
            label=f"{part.name} link",
        )
    right.set(xlabel="time [s]", ylabel="deflection of the tip from the base tangent [mm]")
    right.legend()
    figure.savefig(Path(__file__).with_name("two-link.png"), dpi=130)
