# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Fast moves without vibration
#
# A flexible link turns by one radian and has to stand still afterwards. How fast can it be, and how
# well does the move survive a payload that differs from the one in the model?

# %%
import os

import jax
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))

robot = fx.load_robot("li-zhang-single-link")
model = fx.TransferMatrix(segments=2 if SHORT else 6).bind(robot)
period = 1 / float(fx.modes(model, n=1).frequencies[0])
print(f"first period {period:.3f} s")

# %% [markdown]
# ## 1. The usual move
#
# The quintic from rest to rest lasts one and a half periods. Input shapers take part of that time
# for themselves: ZV half a period, ZVD a whole one.

# %%
path, E = "links.link.material.E", float(robot.links[0].material.E)
values = [0.9 * E, E, 1.1 * E]
usual = ("quintic",) if SHORT else ("quintic", "zv", "zvd")
move = dict(goal={"motor": 1.0}, duration=1.5 * period, steps=30 if SHORT else 80, knots=6)
nominal = fx.optimise(model, **move)
print(nominal)

# %% [markdown]
# ## 2. The optimum for the nominal arm is not robust
#
# It cancels the vibration by exact timing, as ZV does. A stiffness that differs by 10 % spoils it.

# %%
for name, peaks in nominal.against(*usual, path=path, values=values).items():
    print(f"{name:10s} " + "  ".join(f"{1e3 * x:9.4f} mm" for x in peaks))

# %% [markdown]
# ## 3. The robust optimum
#
# `spread` asks for the best of the worst sample. The search needs the same derivatives, of several
# arms side by side.

# %%
if not SHORT:
    robust = fx.optimise(model, spread={path: 0.1}, samples=5, **move)
    print(robust)
    for name, peaks in robust.against(*usual, path=path, values=values).items():
        print(f"{name:10s} " + "  ".join(f"{1e3 * x:9.4f} mm" for x in peaks))

# %% [markdown]
# ## 4. Another model
#
# A move that works only in the model in which it was found is worth little. Here it is replayed
# with geometrically exact beams.

# %%
if not SHORT:
    beams = fx.PortHamiltonian()
    for name in ("optimised", "quintic"):
        peak = robust.vibration(robust.replay(beams, move=name), beams)
        print(f"{name:10s} in PortHamiltonian: {1e3 * peak:.4f} mm")

# %% [markdown]
# ## 5. Many goals at once
#
# All searches run in one program.

# %%
if not SHORT:
    goals = [{"motor": angle} for angle in np.linspace(0.5, 1.5, 8)]
    moves = fx.optimise_many(model, goals=goals, **{k: v for k, v in move.items() if k != "goal"})
    print(moves)
