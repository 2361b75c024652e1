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
# # Do five formulations agree?
#
# ![Tip, differences, frequencies and run times in six formulations](images/five_formulations.png)
#
# **Question.** Five published ways to model a flexible link have different equations: global shape
# functions, finite elements, rigid segments with springs, a nonlinear beam, and strains and momenta
# on a staggered mesh. Do they predict the same motion?
#
# **Answer.** Yes: their tips differ by at most 1.2 % of what bending does, and by less on finer
# meshes.
#
# A motor rotates one aluminium link by 1.2 rad in 0.3 s. All formulations share the description,
# the drive and the time grid.

# %%
import os

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))
if not SHORT:
    fx.configure(quick=True)  # few short runs: compile fast

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
# `fx.compare` runs all of them and reports their distance from the one with the most unknowns.
# `first` is the time of the first run, which includes compilation; `run` is that of a second run.

# %%
result = fx.compare(arm, drive, ts, formulations=formulations, dt=2e-3)
print(result)

# %% tags=["cover"]
fx.plot(result)

# %%
fx.animate(result)

# %% [markdown]
# ## Agreement
#
# The distance of the rigid arm, which is the whole effect of bending, is the scale.

# %%
tips = {name: np.asarray(traj.tip) for name, traj in result.trajectories.items()}
best = tips[result.reference]
bending = np.max(np.linalg.norm(tips["RigidArm"] - best, axis=1))
for name, tip in tips.items():
    gap = np.max(np.linalg.norm(tip - best, axis=1))
    share = 100 * gap / bending
    print(f"{name:16} {1e3 * gap:8.3f} mm from {result.reference}, {share:6.2f} % of bending")
flexible = [name for name in tips if name != "RigidArm"]
worst = max(np.max(np.linalg.norm(tips[name] - best, axis=1)) for name in flexible)
assert worst < 0.05 * bending

# %% [markdown]
# ## Convergence
#
# Refine one of them. If the distance decreases, the mesh caused it. With `TransferMatrix` the error
# decreases with the square of the number of segments.


# %%
def first_frequency(segments):
    model = fx.TransferMatrix(segments=segments).bind(arm)
    return float(fx.modes(model, n=1).frequencies[0])


fine, coarse = (10, 5) if SHORT else (20, 5)
frequencies = {n: first_frequency(n) for n in (coarse, fine)}
link = arm.links[0]
section, material = link.section.properties(), link.material
unit = jnp.sqrt(material.E * section.Iz / (material.rho * section.A)) / link.length**2
exact = 1.875104068711961**2 / (2 * np.pi) * float(unit)
print(f"Euler-Bernoulli cantilever: {exact:.5f} Hz")
errors = {n: f / exact - 1 for n, f in frequencies.items()}
for n, f in frequencies.items():
    print(f"{n:3d} segments: {f:.5f} Hz, error {errors[n]:+.2e}")
order = np.log(abs(errors[coarse] / errors[fine])) / np.log(fine / coarse)
print(f"order {order:.2f}")
assert 1.8 < order < 2.2

# %% [markdown]
# ## Unsupported robots
#
# No formulation supports every robot. A formulation refuses a robot before compilation, and the
# message names the formulations that support it.

# %%
try:
    fx.TransferMatrix().bind(fx.load_robot("macchelli-parallelogram"))
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# ## Conclusion
#
# The formulations share little code, so their agreement is evidence that each is right. Which one
# to use depends on the robot and on cost: the table in [Questions](../docs/faq.md) helps to choose.
