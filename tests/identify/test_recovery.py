"""Hardware of a real gear from simulated records: delay, play, and friction with bristles."""

import dataclasses

import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import filled, joint_arm, tones

TRUTH = {
    "joints.pin.stiffness": 40.0,
    "joints.pin.backlash": 0.02,
    "joints.pin.friction.coulomb": 0.3,
    "joints.pin.friction.breakaway": 0.4,
    "joints.pin.friction.bristle": 40.0,
    "joints.pin.friction.bristle_damping": 0.2,
    "sensors.angle.delay": 0.013,
}
FREE = list(TRUTH)
TS = 0.01 * np.arange(301)


def gear(at: list[float]) -> fx.Robot:
    """A link behind a spring with play and a motor that sticks; its encoder is late."""
    stiffness, backlash, coulomb, breakaway, bristle, damping, delay = at
    friction = fx.Friction(
        coulomb, breakaway=breakaway, stribeck=0.3, bristle=bristle, bristle_damping=damping
    )
    robot = joint_arm()
    pin = dataclasses.replace(
        robot.joints[0], stiffness=stiffness, backlash=backlash, friction=friction
    )
    angle, motor = robot.sensors
    late = dataclasses.replace(angle, delay=delay)
    return dataclasses.replace(robot, joints=(pin,), sensors=(late, motor))


@pytest.mark.slow
def test_delay_play_and_bristles_are_recovered(record_number):
    truth = np.array(list(TRUTH.values()))
    model = fx.RigidArm().bind(gear(list(truth)))
    empty = {"angle": 0 * TS, "motor": 0 * TS}
    record = fx.Experiment(TS, empty, efforts={"pin": tones(TS, size=2.0)})
    off = truth * np.random.default_rng(0).uniform(0.75, 1.25, len(truth))
    start = fx.RigidArm().bind(gear(list(off)))
    for noise in (0.0, 0.02):
        measured = filled(record, model, free=FREE, dt=0.005, noise=noise)
        result = fx.identify(start, measured, FREE, dt=0.005)
        error = np.abs(result.values / truth - 1)
        if noise == 0:
            record_number("delay, play, LuGre without noise: error", error.max(), 1e-8)
            continue
        sizes = np.abs(result.values - truth) / result.standard_errors
        record_number("delay, play, LuGre, 2 % noise: error in standard errors", sizes.max(), 3.0)
        # The motion shows stiffness, play, level and delay; bristles bend over a few samples.
        known = [FREE.index(name) for name in FREE if "bri" not in name and "away" not in name]
        record_number("stiffness, play, Coulomb friction, delay: error", error[known].max(), 0.05)
