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
# # Five formulations side by side
#
# One aluminium link, turned by 1.2 rad in 0.3 s, in every formulation that can hold it and as a rigid arm. They share the description, the drive and
# the time grid, and little else: global shape functions, finite elements, rigid segments with springs, a nonlinear beam, and strains and momenta on a
# staggered mesh.

# %%
import os

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))

arm = fx.load_robot("metal-link")
drive = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, 1.2, 0.3))})
ts = jnp.linspace(0.0, 0.1 if SHORT else 0.4, 11 if SHORT else 41)
formulations = {
    "RigidArm": fx.RigidArm(),
    "FiniteElement": fx.FiniteElement(),
    "TransferMatrix": fx.TransferMatrix(),
    "PortHamiltonian": fx.PortHamiltonian(),
}
if not SHORT:
    formulations |= {"ScrewSynthesis": fx.ScrewSynthesis(), "MovingBeam": fx.MovingBeam()}

# %% [markdown]
# `fx.compare` runs all of them, and says how far each is from the one with most unknowns. `first` is the time of the first run, which compiles; `run`
# that of a second one.

# %%
result = fx.compare(arm, drive, ts, formulations=formulations, dt=1e-3)
print(result)

# %%
fx.plot(result)

# %%
fx.animate(result)

# %% [markdown]
# ## Do they agree?
#
# The scale to judge by is what bending changes at all: the distance of the rigid arm.

# %%
tips = {name: np.asarray(traj.tip) for name, traj in result.trajectories.items()}
best = tips[result.reference]
bending = np.max(np.linalg.norm(tips["RigidArm"] - best, axis=1))
for name, tip in tips.items():
    gap = np.max(np.linalg.norm(tip - best, axis=1))
    print(f"{name:16} {1e3 * gap:8.3f} mm from {result.reference}, {100 * gap / bending:6.2f} % of what bending changes")
flexible = [name for name in tips if name != "RigidArm"]
worst = max(np.max(np.linalg.norm(tips[name] - best, axis=1)) for name in flexible)
assert worst < 0.05 * bending

# %% [markdown]
# ## Whose difference is it?
#
# Refine one of them. If the gap shrinks, it was the mesh. With `TransferMatrix` the error falls with the square of the number of segments.

# %%
fine, coarse = (10, 5) if SHORT else (40, 10)
frequencies = {n: float(fx.modes(fx.TransferMatrix(segments=n).bind(arm), n=1).frequencies[0]) for n in (coarse, fine)}
section = arm.links[0].section.properties()
material = arm.links[0].material
exact = 1.875104068711961**2 / (2 * np.pi) * float(jnp.sqrt(material.E * section.Iz / (material.rho * section.A)) / arm.links[0].length ** 2)
for n, f in frequencies.items():
    print(f"{n:3d} segments: {f:.5f} Hz, error {f / exact - 1:+.2e} of the Euler-Bernoulli cantilever ({exact:.5f} Hz)")
order = np.log(abs(frequencies[coarse] / exact - 1) / abs(frequencies[fine] / exact - 1)) / np.log(fine / coarse)
print(f"order {order:.2f}")
assert 1.8 < order < 2.2

# %% [markdown]
# ## What one cannot hold
#
# No formulation holds every robot. One that cannot says so before anything is compiled, and names those that can.

# %%
try:
    fx.TransferMatrix().bind(fx.load_robot("macchelli-parallelogram"))
except ValueError as refusal:
    print(refusal)
