"""Every kind of sensor against its closed form: a link that is swung by a prescribed motion, and a
link bent into an arc.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal

import flexjax as fx

LENGTH, WIDTH, HEIGHT, RHO, GRAVITY = 0.8, 0.03, 0.02, 2500.0, 9.81
MASS, INERTIA = (
    RHO * WIDTH * HEIGHT * LENGTH,
    RHO * WIDTH * HEIGHT * LENGTH * (LENGTH**2 / 3 + HEIGHT**2 / 12),
)
SIZE, HERTZ = 0.6, 1.1
GAUGE, SPAN = (0.004, 0.003), (0.1, 0.7)


def swung(**changed) -> fx.Robot:
    """A link on one joint, with a sensor of each kind; ``changed``: of all sensors."""
    link = fx.Link(
        "link",
        LENGTH,
        section=fx.Rectangle(WIDTH, HEIGHT),
        material=fx.Material(E=70e9, nu=0.3, rho=RHO),
    )
    joint = fx.Joint("pin", "revolute", "ground", "link", motor=fx.Motor(rotor=0.01))
    made = [
        ("angle", "encoder", "pin", {}),
        ("motor", "motor_encoder", "pin", {}),
        ("torque", "torque", "pin", {}),
        ("x", "tip", "link", dict(s=0.5)),
        ("y", "tip", "link", dict(s=1.0, direction=(0.0, 1.0, 0.0))),
        ("along", "accelerometer", "link", dict(s=0.5, direction=(1.0, 0.0, 0.0))),
        ("across", "accelerometer", "link", dict(s=1.0)),
        ("gauge", "strain_gauge", "link", dict(s=0.3, position=GAUGE)),
        ("bend", "flex", "link", dict(span=SPAN)),
    ]
    sensors = tuple(
        fx.Sensor(name, kind, on, **fields, **changed) for name, kind, on, fields in made
    )
    return fx.Robot("swung", (link,), (joint,), sensors=sensors, gravity=(0.0, -GRAVITY, 0.0))


@pytest.fixture(scope="module")
def run():
    drive = fx.Drive(joints={"pin": fx.Motion(fx.sine(SIZE, HERTZ))})
    return fx.simulate(
        fx.RigidArm().bind(swung()), drive, jnp.linspace(0.0, 1.0, 101), dt=0.01, stations=11
    )


NAMES = [sensor.name for sensor in swung().sensors]


def closed_form(run):
    """From the motion itself; its rate is that of the run, which the step gives to second order
    only.
    """
    w, ts = 2 * np.pi * HERTZ, np.asarray(run.ts)
    q, qd, qdd = SIZE * np.sin(w * ts), np.asarray(run.qd[:, 0]), -SIZE * w**2 * np.sin(w * ts)
    np.testing.assert_allclose(qd, SIZE * w * np.cos(w * ts), atol=0.01)
    return {
        "angle": q,
        "motor": q,
        "torque": (INERTIA + 0.01) * qdd + MASS * GRAVITY * LENGTH / 2 * np.cos(q),
        "x": 0.5 * LENGTH * np.cos(q),
        "y": LENGTH * np.sin(q),
        # What an accelerometer feels: its own acceleration less that of gravity.
        "along": -0.5 * LENGTH * qd**2 + GRAVITY * np.sin(q),
        "across": LENGTH * qdd + GRAVITY * np.cos(q),
        "gauge": 0 * ts,
        "bend": 0 * ts,
    }


@pytest.mark.parametrize("name", NAMES)
def test_readings_of_a_swung_link(run, name):
    want = closed_form(run)[name]
    np.testing.assert_allclose(np.asarray(fx.measure(run)[name]), want, atol=1e-9)


def test_gain_offset_and_the_order_of_both(run):
    got = fx.measure(run, swung(gain=3.0, offset=0.25))
    for name, want in closed_form(run).items():
        np.testing.assert_allclose(np.asarray(got[name]), 3.0 * want + 0.25, atol=1e-8)


def test_a_link_bent_and_twisted_by_constant_strains(run):
    """Axial strain and curvatures about y and z, put into the run: eps = u' - y v'' - z w'', where
    v'' is the curvature about z and w'' minus that about y. The flex sensor reads the angle between
    the tangents at both ends of its span.
    """
    axial, about_y, about_z = 1e-3, 0.2, 0.5
    strain = (
        jnp.zeros_like(run.strain)
        .at[..., 0]
        .set(axial)
        .at[..., 4]
        .set(about_y)
        .at[..., 5]
        .set(about_z)
    )
    angle = about_z * LENGTH * np.asarray(run.stations)
    turns = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], -1)
    bent = dataclasses.replace(
        run, strain=strain, frames=run.frames.at[..., 3:].set(turns[None, None])
    )
    got = fx.measure(bent)
    np.testing.assert_allclose(
        np.asarray(got["gauge"]), axial - GAUGE[0] * about_z + GAUGE[1] * about_y, rtol=1e-12
    )
    np.testing.assert_allclose(
        np.asarray(got["bend"]), about_z * LENGTH * (SPAN[1] - SPAN[0]), rtol=1e-12
    )


def test_delay_waits(run):
    delay = 0.05  # five samples
    got, want = (
        np.asarray(fx.measure(run, robot)["angle"]) for robot in (swung(delay=delay), swung())
    )
    np.testing.assert_allclose(got[5:], want[:-5], atol=1e-12)
    np.testing.assert_allclose(got[:5], want[0], atol=1e-12)  # before the run: as at its beginning


def test_lowpass_is_the_filter_of_its_name(run):
    """Against scipy's solution of x'' + 2 zeta w x' + w^2 x = w^2 u, exact for the same piecewise
    linear input.
    """
    frequency, zeta = 4.0, 0.6
    w = 2 * np.pi * frequency
    got = np.asarray(fx.measure(run, swung(lowpass=fx.Lowpass(frequency, zeta)))["angle"])
    raw = np.asarray(run.q[:, 0])
    _, want, _ = signal.lsim(([w**2], [1.0, 2 * zeta * w, w**2]), raw, np.asarray(run.ts))
    np.testing.assert_allclose(got, want, atol=1e-9)


def test_noise_has_its_size_and_its_seed(run):
    noisy = swung(noise=0.3)
    keys = jax.random.split(jax.random.key(1), 200)
    clean = fx.measure(run, noisy)
    np.testing.assert_array_equal(
        np.asarray(clean["angle"]), np.asarray(run.q[:, 0])
    )  # without a key there is none
    draws = jax.vmap(lambda key: fx.measure(run, noisy, key=key))(keys)
    errors = {name: np.asarray(draws[name] - clean[name][None]) for name in ("angle", "y")}
    assert abs(errors["angle"].std() - 0.3) < 0.01  # 20200 numbers: the standard error is 0.0015
    assert abs(np.mean(errors["angle"] * errors["y"])) < 0.003  # each sensor has its own
    again = fx.measure(run, noisy, key=keys[0])
    np.testing.assert_array_equal(np.asarray(again["angle"]), np.asarray(draws["angle"][0]))
