"""Minimum time of two masses with a spring between them, and of one mode behind an ideal motor,
whose optimality conditions are known."""

import functools

import numpy as np
import pytest
from scipy.optimize import fsolve

import flexjax as fx

LINK, STIFFNESS, WAY = 0.08, 6.0, 0.7
# Rotor and largest torque. A heavy rotor does not feel the link: one mode alone remains.
TWO_MASSES, ONE_MODE = (0.05, 1.0), (8e4, 6.2e5)


@functools.cache
def model(rotor):
    """A rotor with a limited torque moves a rigid link behind a spring."""
    link = fx.Link(
        "link", 0.5, rigid=True, body=fx.Body(1e-6, (0.25, 0, 0), (1e-9,) * 3 + (0.0,) * 3)
    )
    joint = fx.Joint(
        "root", "revolute", "ground", "link", stiffness=STIFFNESS, motor=fx.Motor(rotor=rotor)
    )
    tool = fx.Payload("tool", "link", LINK / 0.5**2)
    return fx.RigidArm().bind(
        fx.Robot("masses", (link,), (joint,), payloads=(tool,), gravity=(0, 0, 0), planar=True)
    )


def one_mode():
    """Duration for a motor with a limited acceleration: the rotor's own way, and the frequency of
    the link on its spring."""
    acceleration = ONE_MODE[1] / ONE_MODE[0]
    frequency = np.sqrt(STIFFNESS / (LINK + 1e-6 * 0.25**2 + 1e-9))

    def left(x):
        T, s = x
        return [
            acceleration * (T**2 / 4 - 2 * s**2) - WAY,
            2 * np.cos(frequency * s) - 1 - np.cos(frequency * T / 2),
        ]

    rigid = 2 * np.sqrt(WAY / acceleration)
    (T, _), _, found, _ = fsolve(left, [1.05 * rigid, 0.1 * rigid], xtol=1e-13, full_output=True)
    assert found == 1
    return T


def closed_form(rotor, limit):
    """Duration and first switch of the fastest move from rest to rest.

    The torque is odd about half the duration T, with switches at T/2 and s to both sides of it. The
    centre of mass reaches the goal: U / J (T^2/4 - 2 s^2) = d. The spring rests at the end:
    2 cos(w s) = 1 + cos(w T/2).
    """
    link = LINK + 1e-6 * 0.25**2 + 1e-9
    total = rotor + link
    frequency = np.sqrt(STIFFNESS * total / (rotor * link))
    rigid = 2 * np.sqrt(WAY * total / limit)

    def left(x):
        T, s = x
        return [
            limit / total * (T**2 / 4 - 2 * s**2) - WAY,
            2 * np.cos(frequency * s) - 1 - np.cos(frequency * T / 2),
        ]

    (T, s), _, found, _ = fsolve(left, [1.05 * rigid, 0.1 * rigid], xtol=1e-13, full_output=True)
    assert found == 1 and T > rigid and 0 < s < T / 2
    return T, s


@pytest.mark.slow
@pytest.mark.parametrize("rotor, limit", [TWO_MASSES, ONE_MODE], ids=["two masses", "one mode"])
def test_minimum_time_of_two_masses(rotor, limit, record_number):
    T, s = closed_form(rotor, limit)
    if (rotor, limit) == ONE_MODE:
        assert np.isclose(T, one_mode(), rtol=3e-6)
        T = one_mode()
    longest = 1.3 * T
    guess = longest * np.array([0.0, 0.3, 0.5, 0.7, 1.0])
    drive = fx.Drive(joints={"root": fx.Effort(fx.bang_bang(limit, guess))})
    res = fx.optimise(
        model(rotor),
        drive,
        free=[f"drive.joints.root.signal.times.{k}" for k in (1, 2, 3)],
        goal={"root": WAY},
        duration=(0.5 * T, longest),
        minimise="time",
        steps=800,
    )
    assert res.ok, str(res)
    assert res.violation < 1e-6 and res.kkt < 1e-4
    record_number(
        f"minimum time, rotor {rotor:g}, from closed form", abs(res.duration / T - 1), 1e-5
    )
    times = np.asarray(res.drive.joints["root"].signal.times)
    np.testing.assert_allclose(times, [0.0, T / 2 - s, T / 2, T / 2 + s, T], atol=2e-4 * T)
    # At rest: neither the link nor the motor moves afterwards.
    after = res.trajectory.ts >= res.duration
    np.testing.assert_allclose(res.trajectory.q[after], WAY, atol=1e-6)
    np.testing.assert_allclose(res.trajectory.motor[after], WAY, atol=1e-6)
