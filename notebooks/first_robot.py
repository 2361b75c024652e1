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
# # A first robot
#
# From a description to a motion, a picture and a gradient. Open this file in Jupyter with jupytext (`pip install 'flexjax[notebooks]'`), or run it as
# a script.

# %%
import os

import jax
import jax.numpy as jnp

import flexjax as fx

jax.config.update("jax_enable_x64", True)  # flexible links are stiff: use double precision
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))  # a shorter run, for the tests

# %% [markdown]
# ## Describe it
#
# Two aluminium links, two motors, a gripper. SI units, angles in radians. A link lies along its own x axis; `height` is along y, the direction in
# which a planar arm bends.

# %%
aluminium = fx.Material.named("aluminium")
upper = fx.Link("upper", 0.5, section=fx.Rectangle(width=0.03, height=0.005), material=aluminium, damping=fx.Damping(strain_rate=1e-4))
fore = fx.Link("fore", 0.4, section=fx.Rectangle(width=0.03, height=0.003), material=aluminium, damping=fx.Damping(strain_rate=1e-4))
arm = fx.Robot.serial(
    [upper, fore],
    [
        fx.Joint("shoulder", "revolute", "ground", "upper", hub=fx.Hub(0.2, 1e-3)),
        fx.Joint("elbow", "revolute", "upper", "fore", home=-0.5, hub=fx.Hub(0.15, 5e-4)),
    ],
    name="my arm",
    payloads=[fx.Payload("gripper", "fore", 0.1)],
    planar=True,
)
print(arm)

# %% [markdown]
# The same robot as a file. `fx.load_robot` reads it back, and `flexjax describe my-arm.toml` prints it.

# %%
path = fx.save_robot(arm, "my-arm.toml")
print(path.read_text()[:300], "...")
print(fx.describe(arm))

# %% [markdown]
# ## Choose a formulation, look at its frequencies
#
# `bind` turns the description into equations. Motors are held for the frequencies.

# %%
model = fx.TransferMatrix(segments=10).bind(arm)
print(fx.modes(model, n=3))

# %% [markdown]
# ## Move it
#
# Both motors follow quintics and then hold still. What moves afterwards is vibration.

# %%
turn = 0.15 if SHORT else 0.4
ts = jnp.linspace(0.0, turn if SHORT else 1.0, 16 if SHORT else 101)


def drive(angle):
    return fx.Drive(joints={"shoulder": fx.Motion(fx.quintic(0.0, angle, turn)), "elbow": fx.Motion(fx.quintic(-0.5, 0.3, turn))})


traj = fx.simulate(model, drive(1.0), ts, dt=2e-3)
print(traj)

# %%
fx.plot(traj, "tip")

# %%
fx.plot(traj, "deflection")

# %% [markdown]
# In 3D: drag to turn, the slider magnifies the deformation.

# %%
fx.animate(traj)

# %% [markdown]
# ## Take a gradient
#
# How does the height of the tip at the end depend on the angle of the shoulder, and on the stiffness of the upper link? Everything from the robot's
# numbers to the trajectory can be differentiated; no option has to be set.

# %%
short_ts = ts[:6]


def height(E, angle):
    changed = fx.TransferMatrix(segments=10).bind(arm.replace("links.upper.material.E", E))
    return fx.simulate(changed, drive(angle), short_ts, dt=5e-3).tip[-1, 1]


both = jax.jit(jax.value_and_grad(height, (0, 1)))
value, (by_E, by_angle) = both(7e10, 1.0)
print(f"height {float(value):.5f} m; by E {float(by_E):.2e} m/Pa; by angle {float(by_angle):.5f} m/rad")

# %% [markdown]
# Never trust a gradient that was not compared with differences:

# %%
step = 1e-4
differences = (both(7e10, 1.0 + step)[0] - both(7e10, 1.0 - step)[0]) / (2 * step)  # no new program: only numbers changed
print(f"by angle, differences: {float(differences):.5f} m/rad")
assert abs(differences - by_angle) < 1e-5 * abs(by_angle)
