# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How short may the move be, if no two arms are alike?
#
# ![Vibration over the duration of the move: the median arm and the worst of twenty](images/sweep_a_design.png)
#
# **Question.** A flexible arm rotates by half a radian and then has to stand still. The shorter the
# move, the more it vibrates afterwards. Modulus, density and length vary from one arm to the next.
# How short may the move be, and which of these parameters matters?
#
# **Answer.** 0.66 s, for 19 of 20 arms to stay within 1 mm. About 25,000 simulated arms and moves
# show it in one figure. The duration explains nearly all of the vibration; the tolerances of the
# arm matter where the curve dips.

# %%
import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
short = bool(os.environ.get("FLEXJAX_SHORT"))

model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
drive = fx.Drive(joints={"motor": fx.Motion(fx.quintic(0.0, 0.5, 0.3))})
DURATION = "drive.joints.motor.signal.duration"
LONGEST = 1.0

# %% [markdown]
# ## The design
#
# `fx.saltelli` makes the points from which Sobol indices are computed: for four parameters, six
# runs for each of its base points. Tolerances of the arm, and the duration that we may choose:

# %%
length = float(model.robot.links[0].length)
box = {
    "links.link.material.E": (65e9, 73e9),
    "links.link.material.rho": (2690.0, 2840.0),
    "links.link.length": (0.99 * length, 1.01 * length),
    DURATION: (0.15, LONGEST),
}
design = fx.saltelli(box, 64 if short else 4096)
print(design.runs, "runs")

# %% [markdown]
# ## The sweep
#
# Of every run one value is kept: the largest distance of the tip from rest after the longest
# move. With `store="arms.zarr"` the sweep could be interrupted and continued.

# %%
result = fx.sweep(
    model,
    design,
    drive=drive,
    ts=np.linspace(0.0, LONGEST + 0.2, 241),
    dt=5e-3,
    outputs={"vibration": f"residual_vibration:after={LONGEST}"},
    progress=not short,
)
print(result)

# %% [markdown]
# ## Which parameter matters
#
# `S1` is the share of the variance that a parameter causes alone, `ST` with all interactions.

# %%
indices = fx.sobol_indices(result)
print(indices[["S1", "ST", "ST_conf"]].to_dataframe().round(3))

# %% [markdown]
# ## The answer
#
# For every duration, the vibration of the median arm and of the worst of twenty. The shortest move
# after which nineteen of twenty arms stay within 1 mm is where the upper line crosses the limit for
# the last time.

# %% tags=["cover"]
seconds = result.data[DURATION].values
vibration = 1e3 * result.data["vibration"].values  # mm
edges = np.linspace(0.15, LONGEST, 16 if short else 86)
middle = 0.5 * (edges[1:] + edges[:-1])
bins = [vibration[(seconds >= a) & (seconds < b)] for a, b in zip(edges[:-1], edges[1:])]
median, high = (np.array([np.quantile(x, q) for x in bins]) for q in (0.5, 0.95))
above = np.flatnonzero(high > 1.0)
answer = edges[above[-1] + 1] if len(above) else edges[0]
print(f"19 of 20 arms stay within 1 mm if the move takes at least {answer:.3f} s")

with fx.plot_style():
    figure, axis = plt.subplots(figsize=(7, 3.6))
    axis.fill_between(middle, median, high, alpha=0.25, label="median to the worst of 20")
    axis.plot(middle, median, label="median arm")
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.axvline(answer, color="black", linestyle=":", label=f"{answer:.3f} s")
    axis.set(xlabel="duration of the move [s]", ylabel="residual vibration [mm]", yscale="log")
    axis.legend()
plt.show()

# %% [markdown]
# ## Conclusion
#
# A sweep replaces a formula where none is known: the dips of the curve are the durations at which a
# quintic happens to leave little vibration, and the tolerances fill them. `robust_moves` searches
# for a better move instead of a longer one.
