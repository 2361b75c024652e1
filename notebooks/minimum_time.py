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
# # How fast can a flexible arm move, and then stand still?
#
# ![Vibration after a quintic move over its duration, and the torque of the fastest move](images/minimum_time.png)
#
# **Question.** A motor with limited torque rotates a flexible link by half a radian. What is the
# shortest move after which the link stands still?
#
# **Answer.** 0.18 s, little more than one period of the link's first mode. A rigid link with the same
# motor would take 0.14 s. The move leaves 1.5 mm of the second mode. A quintic polynomial of 0.18 s
# needs more torque than the motor has and leaves 56 mm. It has to last 0.31 s to leave less than
# 1 mm, in a narrow dip, and 0.62 s to stay below.

# %%
import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))

ANGLE, TORQUE = 0.5, 0.02  # rad, N m
model = fx.TransferMatrix(segments=3 if SHORT else 6).bind(fx.load_robot("li-zhang-single-link"))
link = model.robot.links[0]
period = 1 / float(fx.modes(model, n=1).frequencies[0])
inertia = float(link.material.rho * link.section.properties().A * link.length**3 / 3)
rigid = 2 * np.sqrt(inertia * ANGLE / TORQUE)
print(f"first period {period:.4f} s; rigid link {rigid:.4f} s")

# %% [markdown]
# A rigid link takes full torque in one direction for half of the time, and in the other direction
# for the rest: $T = 2 \sqrt{J \theta / \tau}$. This is the scale for what follows.
#
# ## The shortest move
#
# The duration is free between two bounds. With `minimise="time"` the arm has to rest at the goal:
# coordinates and rates of the joint and of the tip are constraints. The torque is limited at every
# step.

# %%
fastest = fx.optimise(
    model,
    goal={"motor": ANGLE},
    duration=(rigid, 3 * period),
    minimise="time",
    limits={"effort": TORQUE},
    knots=4 if SHORT else 8,
    steps=20 if SHORT else 60,
    iterations=4 if SHORT else 200,
)
print(fastest)
assert SHORT or (fastest.ok and rigid < fastest.duration < 1.1 * period)

# %% [markdown]
# ## The usual move
#
# How long does a quintic take to leave less than 1 mm? All durations run in one program, because
# `jax.vmap` works through the whole simulation.

# %%
ts = np.linspace(0.0, 1.2, 61 if SHORT else 241)


def quintic(duration):
    drive = fx.Drive(joints={"motor": fx.Motion(fx.quintic(0.0, ANGLE, duration))})
    traj = fx.simulate(model, drive, ts, dt=2e-2 if SHORT else 2.5e-3, throw=False)
    rest = link.length * np.array([np.cos(ANGLE), np.sin(ANGLE), 0.0])
    vibration = fx.residual_vibration(traj, duration, rest=rest)
    return vibration, abs(traj.effort).max()


durations = np.linspace(0.1, 0.8, 4 if SHORT else 141)
vibration, torque = map(np.asarray, fx.jit(jax.vmap(quintic))(durations))
possible = (vibration < 1e-3) & (torque < TORQUE)
if not SHORT:
    print(f"quintic: {durations[np.argmax(possible)]:.3f} s, optimum: {fastest.duration:.3f} s")

# %% tags=["cover"]
with fx.plot_style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    left.semilogy(durations, 1e3 * vibration, label="quintic, within the torque or not")
    within = np.where(torque < TORQUE, 1e3 * vibration, np.nan)
    left.semilogy(durations, within, linewidth=3, color="C0", label="quintic within the torque")
    left.plot(fastest.duration, 1e3 * fastest.vibration(), "*", markersize=14, label="optimum")
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set(xlabel="duration of the move [s]", ylabel="tip vibration after the move [mm]")
    left.legend()
    traj = fastest.trajectory
    right.plot(traj.ts, 1e3 * traj.effort[:, 0], color="C2")
    for limit in (-TORQUE, TORQUE):
        right.axhline(1e3 * limit, color="black", linewidth=0.8)
    right.set(xlabel="time [s]", ylabel="torque of the fastest move [mN m]")
plt.show()

# %% [markdown]
# The torque is near its limit in both directions, as for the rigid link. The rounded ramps take the
# rest of the time: they leave the tip without deflection and without velocity.
#
# ## Another model
#
# A move that works only in the model in which it was found is worth little. Here it is replayed
# with geometrically exact beams and a finer step.

# %%
if not SHORT:
    beams = fx.PortHamiltonian()
    for name in ("optimised", "quintic"):
        again = fastest.replay(beams, move=name, dt=fastest.dt / 2)
        print(f"{name:10s} {1e3 * fastest.vibration(again, beams):8.3f} mm in PortHamiltonian")

# %% [markdown]
# ## Conclusion
#
# The shortest move is a quarter longer than that of the rigid arm. It uses the whole torque. Joint
# and tip rest at the end, and the torque after it shows what is left: the second mode, at 36 Hz. `limits={"residual_energy": ...}` in joules bounds all modes instead. The
# move is exact for this arm only: `robust_moves` shows what an error of the stiffness costs, and
# what a robust move costs instead.
