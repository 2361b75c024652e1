"""Minimum time of two masses with a spring between them, whose optimality conditions are known."""

import functools

import numpy as np
import pytest
from scipy.optimize import fsolve

import flexjax as fx

ROTOR, LINK, STIFFNESS, LIMIT, WAY = 0.05, 0.08, 6.0, 1.0, 0.7


@functools.cache
def model():
    """A rotor with a limited torque moves a rigid link behind a spring."""
    link = fx.Link(
        "link", 0.5, rigid=True, body=fx.Body(1e-6, (0.25, 0, 0), (1e-9,) * 3 + (0.0,) * 3)
    )
    joint = fx.Joint(
        "root", "revolute", "ground", "link", stiffness=STIFFNESS, motor=fx.Motor(rotor=ROTOR)
    )
    tool = fx.Payload("tool", "link", LINK / 0.5**2)
    return fx.RigidArm().bind(
        fx.Robot("masses", (link,), (joint,), payloads=(tool,), gravity=(0, 0, 0), planar=True)
    )


def closed_form():
    """Duration and first switch of the fastest move from rest to rest.

    The torque is odd about half the duration T, with switches at T/2 and s to both sides of it. The
    centre of mass reaches the goal: U / J (T^2/4 - 2 s^2) = d. The spring rests at the end:
    2 cos(w s) = 1 + cos(w T/2).
    """
    link = LINK + 1e-6 * 0.25**2 + 1e-9
    total = ROTOR + link
    frequency = np.sqrt(STIFFNESS * total / (ROTOR * link))
    rigid = 2 * np.sqrt(WAY * total / LIMIT)

    def left(x):
        T, s = x
        return [
            LIMIT / total * (T**2 / 4 - 2 * s**2) - WAY,
            2 * np.cos(frequency * s) - 1 - np.cos(frequency * T / 2),
        ]

    (T, s), _, found, _ = fsolve(left, [1.05 * rigid, 0.1 * rigid], xtol=1e-13, full_output=True)
    assert found == 1 and T > rigid and 0 < s < T / 2
    return T, s


@pytest.mark.slow
def test_minimum_time_of_two_masses():
    T, s = closed_form()
    longest = 1.3 * T
    guess = longest * np.array([0.0, 0.3, 0.5, 0.7, 1.0])
    drive = fx.Drive(joints={"root": fx.Effort(fx.bang_bang(LIMIT, guess))})
    res = fx.optimise(
        model(),
        drive,
        free=[f"drive.joints.root.signal.times.{k}" for k in (1, 2, 3)],
        goal={"root": WAY},
        duration=(0.5 * T, longest),
        minimise="time",
        steps=800,
    )
    assert res.ok, str(res)
    assert res.violation < 1e-6 and res.kkt < 1e-4
    assert np.isclose(res.duration, T, rtol=1e-5), (res.duration, T)
    times = np.asarray(res.drive.joints["root"].signal.times)
    np.testing.assert_allclose(times, [0.0, T / 2 - s, T / 2, T / 2 + s, T], atol=2e-4 * T)
    # At rest: neither the link nor the motor moves afterwards.
    after = res.trajectory.ts >= res.duration
    np.testing.assert_allclose(res.trajectory.q[after], WAY, atol=1e-6)
    np.testing.assert_allclose(res.trajectory.motor[after], WAY, atol=1e-6)
