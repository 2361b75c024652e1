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
# # From a CSV file to a calibrated model
#
# A rigid link sits behind a flexible joint. The robot file holds what one would write down before measuring: a catalogue's stiffness, a guessed damping,
# a tool that nobody weighed. Two records of 3 s were taken (here: simulated with other numbers and 2 % noise, they ship with flexjax). What do they say
# about the three numbers, and how far can the answer be trusted?

# %%
import jax

import flexjax as fx

jax.config.update("jax_enable_x64", True)
from flexjax.study.identify.records._dataset import FOLDER  # noqa: E402

print((FOLDER / "bench-arm-fit.csv").read_text()[:260])

# %% [markdown]
# The header says what each column is: `current.shoulder` drives the joint through its motor's torque constant, the other two are readings of sensors
# that the robot file names. Other names are mapped: `fx.Experiment.read(path, sensors={"link-angle": "th1"}, units={"th1": "deg"})`.

# %%
arm = fx.load_robot(FOLDER / "bench-arm.toml")
record = fx.Experiment.read(FOLDER / "bench-arm-fit.csv", name="fit")
check = fx.Experiment.read(FOLDER / "bench-arm-check.csv", name="check")
print(record)
print(check)

# %% [markdown]
# Three numbers are sought, by their paths. The search is Levenberg and Marquardt's with exact derivatives through the simulation. The step of the
# simulation matters: with 10 ms the joint's own vibration (7 Hz) would come out 2 % slow, and the stiffness would make up for it.

# %%
free = ["joints.shoulder.stiffness", "joints.shoulder.damping", "payloads.tool.mass"]
result = fx.identify(fx.RigidArm().bind(arm), record, free, validation=check, dt=2.5e-3)
print(result)

# %% [markdown]
# The second record was not fitted: its prediction is the test. What is left over is white, so the intervals mean what they say.

# %%
fx.plot(result, "validation")

# %%
fx.plot(result, "correlation")

# %% [markdown]
# These are simulated records, so the truth is known. A page with all of this, and the robot file with the estimates, are one line each.

# %%
truth = fx.load_dataset("bench-arm").truth
for name, value, (low, high) in zip(result.names, result.values, result.intervals(), strict=True):
    print(f"{name:<28} {value:9.5g}  95 % interval {low:.5g} to {high:.5g}  truth {truth[name]:.5g}")
fx.identification_report(result).save("identification.html")
fx.save_robot(result.robot, "calibrated.toml")
print("wrote identification.html and calibrated.toml")
