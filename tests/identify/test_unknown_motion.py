"""A measured motion with noise: ignored, it makes estimates wrong; estimated, intervals hold."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify._result import Identification
from flexjax.study.identify.noise._unknown_motion import unknown_motion
from tests.identify.cases import joint_arm, tones

# Behind a motor that follows a motion only their ratios to the inertia matter: the mass is known.
FREE = ["joints.pin.stiffness", "joints.pin.damping"]
TRUTH = np.array([40.0, 0.05])
TS = 0.01 * np.arange(151)
MOTION = tones(TS, size=0.2, frequencies=(0.7, 1.9, 3.1))
ANGLE, MOTOR = 0.002, 0.008  # standard deviations of the two encoders [rad]


def start_model():
    robot = joint_arm()
    return fx.RigidArm().bind(robot.replace(FREE[0], 45.0).replace(FREE[1], 0.06))


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    record = fx.Experiment(TS, {"angle": 0 * TS}, motions={"pin": MOTION})
    model = fx.RigidArm().bind(joint_arm())
    drive, start = record.full_drive(model.robot), record.full_start(model.robot)
    return np.asarray(fx.measure(fx.simulate(model, drive, TS, dt=0.005, start=start))["angle"])


def estimated(clean: np.ndarray, seed: int, known: bool) -> Identification:
    """From a noisy angle and a noisy motion, whose noise is ``known``, or taken as zero."""
    rng = np.random.default_rng(seed)
    measured = MOTION + MOTOR * rng.normal(size=len(TS))
    record = fx.Experiment(
        TS,
        {"angle": clean + ANGLE * rng.normal(size=len(TS))},
        motions={"pin": measured},
        motion_noise={"pin": MOTOR} if known else {},
    )
    if not known:
        record = record.smooth(12.0)
    return fx.identify(start_model(), record, FREE, dt=0.005)


def test_the_spline_leaves_the_noise_of_the_samples():
    rng = np.random.default_rng(0)
    found = unknown_motion(TS, MOTION + MOTOR * rng.normal(size=len(TS)), MOTOR)
    value, rate, acceleration = jax.vmap(found.evaluate)(jnp.asarray(TS))
    assert np.std(np.asarray(value) - MOTION) < 0.7 * MOTOR
    assert 10 < len(found.unknown) < 80
    # A unit of an unknown changes the samples by the noise, all unknowns differently.
    change = jax.jacfwd(
        lambda w: jax.vmap(dataclasses.replace(found, unknown=w).evaluate)(jnp.asarray(TS))[0]
    )(found.unknown)
    np.testing.assert_allclose(change.T @ change, MOTOR**2 * np.eye(len(found.unknown)), atol=1e-10)
    steps = np.diff(np.asarray(value)) / np.diff(TS)
    middle = 0.5 * (np.asarray(rate)[1:] + np.asarray(rate)[:-1])
    assert np.max(np.abs(steps - middle)) < 0.05 * np.max(np.abs(rate))
    assert np.all(np.isfinite(acceleration))


def test_bad_noise_of_motions_is_refused():
    record = {"ts": TS, "sensors": {"angle": 0 * TS}}
    with pytest.raises(ValueError, match=r"motion_noise.pin: no motion of it is recorded"):
        fx.Experiment(**record, motion_noise={"pin": 0.1})
    with pytest.raises(ValueError, match=r"motion_noise.pin: 0.0; expected a positive number"):
        fx.Experiment(**record, motions={"pin": MOTION}, motion_noise={"pin": 0.0})


@pytest.mark.slow
def test_intervals_hold_where_the_motion_has_noise(clean, record_number):
    inside = {}
    for known in (False, True):
        intervals = [estimated(clean, seed, known).intervals()[:2] for seed in range(50)]
        hits = [(x[:, 0] <= TRUTH) & (x[:, 1] >= TRUTH) for x in intervals]
        inside[known] = np.mean(np.array(hits), axis=0)
    for name, share in zip(FREE, inside[True], strict=True):
        record_number(f"coverage of {name}, noisy motion", share, (0.88, 1.0), relation="in")
    record_number("coverage with the noise of the motion ignored", np.min(inside[False]), 0.7)


@pytest.mark.slow
def test_the_table_shows_the_parameters_only(clean):
    result = estimated(clean, 0, True)
    text = str(result)
    assert "motion.pin" not in text and "values of measured motions" in text
    assert not result.unseen and not result.undetermined
    assert np.all(np.abs(result.values[:2] - TRUTH) < 4 * result.standard_errors[:2])
