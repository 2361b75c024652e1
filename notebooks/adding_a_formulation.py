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
# # What does a new formulation need?
#
# ![Deflection of a link in the new formulation and in two others](images/adding_a_formulation.png)
#
# **Question.** How much code does another model of a flexible link take, and what does the package
# provide for it?
#
# **Answer.** Two classes, 60 lines. The formulation states where the sections of its links are and
# what strain energy they have. The package provides joints, motors, drives, elimination along the
# chain, time steps, modes, equilibria, gradients, sensors and files.
#
# This notebook adds a sixth formulation in one file: the *pseudo-rigid-body* model of compliant
# mechanisms (L. L. Howell, *Compliant Mechanisms*, 2001). A link is a rigid rod with one pivot and
# a spring at a distance of (1 - g) L from its base. The constants g = 0.8517 and the stiffness 2.65
# g EI/L are fitted so that the tip of a cantilever follows the elastica up to large deflections.

# %%
import os
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation import REGISTRY, AbstractFormulation, ChainModel
from flexjax.mechanism import beam_properties, chain, flexible_joint_refusals, serial_refusals
from flexjax.numerics.screw import se2

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))
if not SHORT:
    fx.configure(quick=True)  # few short runs: compile fast
PIVOT, SPRING = 0.8517, 2.65  # g and the stiffness coefficient for a transverse tip force

# %% [markdown]
# ## The links
#
# The class describes all links at once; its arrays are stacked over the links (B). The shape
# coordinate `eta` (B, 1) is the angle of the outer part. Inertia, velocity products, forces and
# Jacobians follow by automatic differentiation of two functions; a formulation with many unknowns
# writes them out (`AbstractLinks`).


# %%
class PivotLinks(chain.AbstractPointLinks):
    """Links with one pivot."""

    length: jax.Array
    stations: jax.Array
    masses: jax.Array
    tau: jax.Array
    spring: jax.Array

    def place(self, eta, s):
        angle = jnp.where(s > 1 - PIVOT, eta[:, 0], 0.0)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        out = (s - (1 - PIVOT)) * self.length
        position = jnp.stack([(1 - PIVOT) * self.length + out * cos, out * sin], 1)
        return se2.Pose(jax.vmap(se2.rotation_exp)(angle[:, None]), position)

    def elastic_energy(self, eta):
        return 0.5 * self.spring * eta[:, 0] ** 2


# %% [markdown]
# ## The formulation
#
# `refusals` returns one sentence for each unsupported static property: field, value, what was
# expected. `build` is a pure function and may run with all parameters of the robot traced. The base
# class provides `bind`, and `ChainModel` provides the model: equations of motion, initial state,
# observation, energies and the default solver.


# %%
class PseudoRigid(AbstractFormulation):
    """Howell's pseudo-rigid-body model: links are rigid rods with one pivot and a spring."""

    paper: ClassVar[str] = "L. L. Howell, Compliant Mechanisms, Wiley, 2001."

    def refusals(self, robot):
        faults = serial_refusals(robot) + flexible_joint_refusals(robot)
        faults += chain.point_link_refusals(robot)
        if not robot.planar:
            faults.append("planar: false; expected a robot in the plane z = 0")
        for link in robot.links:
            if link.pieces or link.section_end is not None:
                faults.append(f"links.{link.name}: tapered or in pieces; expected a uniform link")
        for joint in robot.tree_joints:
            if joint.type not in ("revolute", "fixed"):
                faults.append(f"joints.{joint.name}.type: {joint.type}; expected revolute or fixed")
        return faults

    def build(self, robot):
        layout = chain.serial_layout(robot, {link.name: 1 for link in robot.links}, planar=True)
        rows = []
        for stage in layout.stages:
            link = robot.links[stage.link]
            s, masses = chain.point_masses(robot, link, (0.0, 1 - PIVOT, 1.0))
            tau = jnp.zeros_like(link.length) if link.damping is None else link.damping.strain_rate
            spring = PIVOT * SPRING * beam_properties(link, s).EIz[0] / link.length
            rows.append(PivotLinks(link.length, s, masses, tau, spring))
        return ChainModel.of(robot, self, layout, jax.tree.map(lambda *x: jnp.stack(x), *rows))


# %% [markdown]
# ## Register it
#
# Registration is one line. In the package it is in `flexjax/_registry.py`; here the
# notebook changes the dictionary for this session. From now on `fx.compare`, `formulations_for` and
# the command line use the formulation.

# %%
REGISTRY["PseudoRigid"] = f"{__name__}.PseudoRigid"
arm = fx.load_robot("metal-link")
model = PseudoRigid().bind(arm)

# %% [markdown]
# ## Test it
#
# Statics: a transverse tip force with P L^2/EI = 2 deflects a cantilever by 0.4935 of its length
# (elastica).

# %%
EI = 7e10 * 0.01**4 / 12
force = fx.constant(jnp.array([0.0, 2.0 * EI, 0.0, 0.0, 0.0, 0.0]))
clamp = fx.Joint("clamp", "fixed", "ground", "link")
cantilever = fx.Robot.serial(arm.links, [clamp], gravity=(0.0, 0.0, 0.0), planar=True)
clamped, loaded = PseudoRigid().bind(cantilever), fx.Drive(loads=[fx.Load("link", force)])
rest = fx.equilibrium(clamped, loaded)
tip = clamped.observe(0.0, rest, loaded, jnp.ones(1)).frames[0, 0, :2]
print(f"tip at ({float(tip[0]):.4f}, {float(tip[1]):.4f}) m; elastica (0.8394, 0.4935) m")
assert abs(tip[1] - 0.4935) < 5e-3

# %% [markdown]
# Dynamics: the energy of a swing, and gradients by forward mode, reverse mode and finite
# differences. These are two checks of `tests/test_contract.py`, which a formulation in the package
# joins with a file `contract.py` in its folder of tests.

# %%
ts = jnp.linspace(0.0, 0.2 if SHORT else 1.0, 11)
traj = fx.simulate(model, None, ts, dt=5e-3)
balance = np.asarray(traj.energy.balance)
print(f"energy balance within {np.max(np.abs(balance - balance[0])):.1e} J")
assert np.max(np.abs(balance - balance[0])) < 1e-10

# Defined outside the function: traced times would leave the number of steps unknown.
early = ts[:4]


def height(E, length):
    changed = arm.replace("links.link.material.E", E).replace("links.link.length", length)
    return fx.simulate(PseudoRigid().bind(changed), None, early, dt=1e-2).tip[-1, 1]


table = fx.check_gradients(height, (jnp.asarray(7e10), jnp.asarray(1.0)))
print(table)
assert table.worst < 1e-6

# %% [markdown]
# Comparison with the rigid arm and with finite elements: the first frequency is 6 % too low,
# because one pivot reproduces the statics of a link but not its inertia.

# %%
frequency = float(fx.modes(model, n=1).frequencies[0])
theory = 1.875104068711961**2 / (2 * np.pi) * np.sqrt(EI / (2700.0 * 0.01**2))
print(f"first frequency {frequency:.3f} Hz, Euler-Bernoulli cantilever {theory:.3f} Hz")
assert 0.9 < frequency / theory < 1.0

# %%
if not SHORT:
    drive = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, 0.6, 0.2))})
    others = [PseudoRigid(), fx.RigidArm(), fx.FiniteElement()]
    others = {type(method).__name__: method for method in others}
    ts = jnp.linspace(0.0, 0.2, 11)
    result = fx.compare(arm, drive, ts, formulations=others, n_modes=1, dt=2e-3)
    print(result)
    tips = {row.name: row.tip for row in result.rows}
    assert tips["PseudoRigid"] < 0.5 * tips["RigidArm"]

# %% tags=["cover"]
None if SHORT else fx.plot(result, "deflection")

# %% [markdown]
# ## Conclusion
#
# The new formulation took one class for its links and one for itself. It is three times as close to
# the finite elements as the rigid arm is, with one unknown per link. In the package it would be a
# folder with its theory page and its contract test: `CONTRIBUTING.md` has the steps.
