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
# # A first robot: how far does its tip swing after a move?
#
# ![Path of the tip, flexible and rigid, and its distance from the rigid arm](images/first_robot.png)
#
# **Question.** A two-link arm of thin aluminium makes a fast move and stops. How far from its goal
# does the tip swing, and what does that depend on?
#
# **Answer.** By up to 30 cm, three times a second, long after the motors have stopped. The gradient
# of the simulation shows what the height of the tip depends on.
#
# The notebook describes the robot, simulates it, plots the result and computes a gradient. It is
# also a script: `python first_robot.py`.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)  # flexible links are stiff: use double precision
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))  # shorter runs, for the tests
if not SHORT:
    fx.configure(quick=True)  # few short runs: compile fast

# %% [markdown]
# ## Describe the robot
#
# The arm has two aluminium links, two motors and a gripper. Units are SI, angles are in radians. A
# link lies along its own x axis. `height` is along y, the direction in which a planar arm bends.

# %%
common = {
    "material": fx.Material.named("aluminium"),
    "damping": fx.Damping(strain_rate=1e-4),
}
upper = fx.Link("upper", 0.5, section=fx.Rectangle(width=0.03, height=0.005), **common)
fore = fx.Link("fore", 0.4, section=fx.Rectangle(width=0.03, height=0.003), **common)
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
# Save the robot as a file. `fx.load_robot` reads it, and `flexjax describe my-arm.toml` prints it.

# %%
path = fx.save_robot(arm, "my-arm.toml")
print(path.read_text()[:300], "...")
print(fx.describe(arm))

# %% [markdown]
# ## Choose a formulation and compute natural frequencies
#
# `bind` turns the description into equations of motion. `modes` locks the motors by default.

# %%
model = fx.TransferMatrix(segments=10).bind(arm)
print(fx.modes(model, n=3))

# %% [markdown]
# ## Simulate a motion
#
# Both motors follow quintic polynomials and then stop. The motion that remains is vibration.

# %%
duration = 0.15 if SHORT else 0.4
ts = jnp.linspace(0.0, duration if SHORT else 1.0, 16 if SHORT else 101)


def drive(angle):
    shoulder = fx.Motion(fx.quintic(0.0, angle, duration))
    elbow = fx.Motion(fx.quintic(-0.5, 0.3, duration))
    return fx.Drive(joints={"shoulder": shoulder, "elbow": elbow})


traj = fx.simulate(model, drive(1.0), ts, dt=2e-3)
print(traj)

# %%
rigid = fx.simulate(fx.RigidArm().bind(arm), drive(1.0), ts, dt=2e-3)
gap = 1e3 * np.linalg.norm(np.asarray(traj.tip) - np.asarray(rigid.tip), axis=1)
print(f"after the move the tip is up to {gap[ts >= duration].max():.0f} mm from the rigid arm's")

# %% tags=["cover"]
with fx.plot_style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    left.plot(*np.asarray(rigid.tip)[:, :2].T, color="0.6", linewidth=3, label="rigid arm")
    left.plot(*np.asarray(traj.tip)[:, :2].T, label="flexible arm")
    left.set(xlabel="x of the tip [m]", ylabel="y of the tip [m]", aspect="equal")
    left.legend()
    right.plot(ts, gap)
    right.axvline(duration, color="black", linewidth=0.8)
    right.set(xlabel="time [s]; the motors stop at the line", ylabel="tip, from the rigid arm [mm]")
plt.show()

# %% [markdown]
# `fx.plot` draws the usual figures: joints, tip, deflection, strain, spectrum, energy.

# %%
fx.plot(traj, "deflection")

# %% [markdown]
# Show the motion in 3D: drag to rotate; the slider scales the deformation.

# %%
fx.animate({"flexible": traj, "rigid": rigid})

# %% [markdown]
# ## Compute a gradient
#
# How does the height of the tip at the end of the move depend on the angle of the shoulder and on
# Young's modulus of the upper link? Every output is differentiable with respect to every parameter,
# without an option.

# %%
few = jnp.linspace(0.0, duration, 6)


def height(E, angle):
    changed = fx.TransferMatrix(segments=10).bind(arm.replace("links.upper.material.E", E))
    return fx.simulate(changed, drive(angle), few, dt=5e-3).tip[-1, 1]


both = fx.value_and_grad(height, (0, 1))
value, (dE, dangle) = both(7e10, 1.0)
print(f"height {float(value):.5f} m")
print(f"derivative w.r.t. E {float(dE):.2e} m/Pa, w.r.t. the angle {float(dangle):.5f} m/rad")

# %% [markdown]
# Compare the gradient with finite differences. Changed parameters do not recompile the program.

# %%
step = 1e-4
differences = (both(7e10, 1.0 + step)[0] - both(7e10, 1.0 - step)[0]) / (2 * step)
print(f"w.r.t. the angle, by finite differences: {float(differences):.5f} m/rad")
assert abs(differences - dangle) < 1e-5 * abs(dangle)

# %% [markdown]
# ## Conclusion
#
# Thin links vibrate long after their motors have stopped. `robust_moves` avoids the vibration by a
# better move, `tune_a_controller` damps it by better gains.
