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
# # What do recordings of a real arm say about its parameters?
#
# ![Measured and predicted deflection of a recording that was not fitted](images/identify_a_rig.png)
#
# **Question.** The first link of a flexible-link rig was recorded during closed-loop steps. The
# parameters of its data sheet predict a frequency of 1.65 Hz, and the rig vibrates at 1.8 Hz. Which
# parameters explain the recordings, and do they predict a recording that was not used?
#
# **Answer.** A lighter load and a gauge with almost twice the gain predict new steps with a fit of
# 80 to 91 %. The residuals are not white: something is missing in the model, and the printed
# intervals are too narrow.
#
# The recordings are those of a 2-DOF serial flexible link of Quanser (CTU Prague,
# github.com/basta/quanser-2-dof-serial-flexible-link, MIT). They are not part of this repository:
# set `FLEXJAX_DATA` to the folder that contains `quanser_2dsfl`. `experiments/identify_quanser`
# goes further: friction, choice of the structure, and comparison with black-box models.

# %%
import os
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import flexjax as fx

jax.config.update("jax_enable_x64", True)
SHORT = bool(os.environ.get("FLEXJAX_SHORT"))
folder = Path(os.environ.get("FLEXJAX_DATA", "data")) / "quanser_2dsfl" / "steps"

# %% [markdown]
# ## The recordings
#
# The motor current was not recorded. So the model follows the measured angle of the hub and
# predicts the strain gauge. The encoder's steps have no acceleration: a zero-phase low-pass at 12
# Hz smooths the angle. The rig's software filters the gauge at 2 Hz, which the sensor's `lowpass`
# represents.


# %%
def read(name):
    record = fx.Experiment.read(
        folder / f"lqg_{name}_run01.csv",
        time="t_s",
        motions={"hub": "th1_hub_rad"},
        sensors={"deflection": "defl1_rad"},
        name=name,
        start=fx.UnknownStart(12),
    )
    return record.smooth(12.0).resample(0.02 if SHORT else 0.01)


if SHORT:
    fitted, checks = [read("step_neg_20deg").window(0.0, 1.0)], []
else:
    fitted = [read("step_10deg"), read("step_neg_20deg")]
    checks = [read("step_neg_10deg"), read("step_20deg"), read("step_30deg")]
print(*fitted, sep="\n")

# %% [markdown]
# ## The robot
#
# Lengths, section and steel are those of the rig's configuration. The load is the locked second
# stage.

# %%
arm = fx.Robot.serial(
    [
        fx.Link(
            "link",
            0.202,
            section=fx.Rectangle(width=0.0762, height=0.00127),
            material=fx.Material(E=2.068427e11, nu=0.3, rho=7850.0),
            damping=fx.Damping(strain_rate=5e-3),
        )
    ],
    [fx.Joint("hub", "revolute", "ground", "link")],
    name="first link of the rig",
    payloads=[fx.Payload("stage2", "link", 1.578, inertia=0.106)],
    sensors=[
        fx.Sensor("hub_angle", "motor_encoder", "hub"),
        fx.Sensor(
            "deflection",
            "strain_gauge",
            "link",
            s=0.0,
            position=(-0.000635, 0.0),
            gain=106.04,
            lowpass=fx.Lowpass(2.0, 0.9),
            crosstalk=[fx.Crosstalk("hub_angle", -0.002)],
        ),
    ],
    gravity=(0.0, 0.0, 0.0),
    planar=True,
)
model = fx.FiniteElement(elements=1).bind(arm)
before = fx.modes(model, n=1).frequencies[0]
print(f"first frequency of the data sheet: {float(before):.2f} Hz")

# %% [markdown]
# ## Free parameters
#
# Amplitude and phase of the first mode, and the states of the gauge's filter at the first sample
# are estimated as well (`fx.UnknownStart`), because no recording starts exactly at rest.

# %%
free = ["payloads.stage2.inertia", "links.link.damping.strain_rate", "sensors.deflection.gain"]
free += [] if SHORT else ["sensors.deflection.offset", "sensors.deflection.crosstalk.0.gain"]
result = fx.identify(model, fitted, free, validation=checks, dt=0.02 if SHORT else 0.01)
print(result)

# %% [markdown]
# ## Prediction of a recording that was not fitted

# %% tags=["cover"]
comparison = (result.validation or result.training)[-1]
measured, predicted = (
    1e3 * np.asarray(x["deflection"]) for x in (comparison.data.sensors, comparison.predicted)
)
with fx.plot_style():
    figure, axis = plt.subplots(figsize=(7, 3))
    axis.plot(comparison.data.ts, measured, color="0.6", linewidth=3, label="measured")
    axis.plot(comparison.data.ts, predicted, label=f"predicted, {comparison.fits['deflection']:.1f} %")
    axis.set(xlabel="time [s]", ylabel="deflection [mrad]", title=comparison.data.name)
    axis.legend()
plt.show()

# %% [markdown]
# ## How certain are the parameters?
#
# The plain intervals assume white residuals. `intervals(robust=True)` accounts for their
# correlation. Even these hold only if the model is right.

# %%
for name, plain, wide in zip(result.names, result.intervals(), result.intervals(robust=True)):
    print(f"{name:40} {np.ptp(plain):10.2g} wide, robust {np.ptp(wide):10.2g}")
after = fx.modes(fx.FiniteElement(elements=1).bind(result.robot), n=1).frequencies[0]
print(f"first frequency with the estimates: {float(after):.2f} Hz")

# %% [markdown]
# ## Conclusion
#
# The shape of the deflection is right. The vibration of the last two seconds is not: it decays in
# the model and goes on in the rig. Viscous damping cannot explain both the fast decay of large and
# the slow decay of small vibrations; dry friction can. `experiments/identify_quanser` adds a
# compliant gear with friction, which predicts the same recordings with 82.9, 92.7 and 93.6 %.
