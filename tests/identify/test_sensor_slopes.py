"""Derivatives of readings with respect to every parameter of sensors, gravity and mounting."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import joint_arm

TS = np.linspace(0.0, 0.6, 61)
SENSOR = {
    "gain": 1.3,
    "offset": 0.02,
    "delay": 0.0173,
    "drift": 0.05,
    "skew": 0.013,
    "lowpass.frequency": 4.0,
    "lowpass.zeta": 0.8,
    "crosstalk.0.gain": -0.2,
}
MOUNTING = {"gravity.0": 1.0, "gravity.1": -9.0, "joints.pin.rotation.2": 0.3}


def robot() -> fx.Robot:
    bare = joint_arm()
    angle = fx.Sensor(
        "angle",
        "encoder",
        "pin",
        gain=SENSOR["gain"],
        offset=SENSOR["offset"],
        delay=SENSOR["delay"],
        drift=SENSOR["drift"],
        skew=SENSOR["skew"],
        lowpass=fx.Lowpass(SENSOR["lowpass.frequency"], SENSOR["lowpass.zeta"]),
        crosstalk=(fx.Crosstalk("motor", SENSOR["crosstalk.0.gain"]),),
    )
    pin = fx.Joint(
        "pin",
        "revolute",
        "ground",
        "link",
        stiffness=40.0,
        damping=0.05,
        motor=fx.Motor(rotor=0.02),
        rotation=(0.0, 0.0, MOUNTING["joints.pin.rotation.2"]),
    )
    return fx.Robot(
        "bench",
        bare.links,
        (pin,),
        bare.payloads,
        (angle, bare.sensors[1]),
        gravity=(MOUNTING["gravity.0"], MOUNTING["gravity.1"], 0.0),
        planar=True,
    )


def slopes_agree(of, x: np.ndarray, *, rtol: float):
    """Forward mode, reverse mode and differences, each parameter with an effect of its own."""
    x = jnp.asarray(x)
    forward, reverse = (np.asarray(jax.jit(d(of))(x)) for d in (jax.jacfwd, jax.jacrev))
    size = np.abs(forward).max(axis=0)
    assert np.all(np.isfinite(forward)) and np.all(size > 0)
    np.testing.assert_allclose(reverse / size, forward / size, atol=1e-9)
    of, step = jax.jit(of), 1e-6
    for k in range(len(x)):
        e = jnp.zeros(len(x)).at[k].set(step)
        difference = np.asarray(of(x + e) - of(x - e)) / (2 * step)
        np.testing.assert_allclose(difference / size[k], forward[:, k] / size[k], atol=rtol)


def test_of_every_parameter_of_a_sensor():
    drive = fx.Drive({"pin": fx.Motion(fx.quintic(0.0, 0.6, 0.5))})
    traj = fx.simulate(fx.RigidArm().bind(robot()), drive, TS, dt=0.01)

    def readings(x, quantum=None):
        first, other = robot().sensors
        steps = dataclasses.replace(first, quantum=quantum)
        new = dataclasses.replace(robot(), sensors=(steps, other))
        for name, value in zip(SENSOR, x, strict=True):
            new = new.replace(f"sensors.angle.{name}", value)
        return fx.measure(traj, new)["angle"]

    x = np.array(list(SENSOR.values()))
    slopes_agree(readings, x, rtol=1e-4)
    # The derivative passes the rounding.
    coarse, exact = (
        jax.jit(jax.jacfwd(lambda x, q=q: readings(x, q)))(jnp.asarray(x)) for q in (0.05, None)
    )
    np.testing.assert_allclose(coarse, exact, atol=1e-12)


@pytest.mark.slow
def test_of_gravity_and_mounting():
    drive = fx.Drive({"pin": fx.Motion(fx.quintic(0.0, 0.6, 0.5))})
    bound = fx.RigidArm()

    def readings(x):
        new = robot()
        for name, value in zip(MOUNTING, x, strict=True):
            new = new.replace(name, value)
        traj = fx.simulate(bound.bind(new), drive, TS[:31], dt=0.02)
        return fx.measure(traj.whole())["angle"]

    slopes_agree(readings, np.array(list(MOUNTING.values())), rtol=1e-5)
