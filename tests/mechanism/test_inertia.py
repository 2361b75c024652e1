"""Inertia of hubs, payloads and rotors about their joints and sections."""

import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.mechanism.joints._joints import hub_inertia, payload_inertia, rotor_and_gear
from flexjax.numerics.screw import se3

ONE = jnp.ones(())


def joint(kind="revolute", **given):
    return fx.Joint("joint", kind, "ground", "link", **given)


def test_rotor_and_gear():
    driven = joint(motor=fx.Motor(rotor=2e-5, gear=50.0))
    assert tuple(map(float, rotor_and_gear(driven, ONE))) == (2e-5, 50.0)
    assert tuple(map(float, rotor_and_gear(joint(), ONE))) == (0.0, 1.0)


def test_hub():
    """One number is the inertia about the axis of a revolute joint, and about every axis else."""
    axis = np.array([0.0, 0.6, 0.8])
    hub = joint(axis=axis, mass=0.3, hub=fx.Hub(0.2, 4e-3))
    M = np.asarray(hub_inertia(hub, ONE))
    np.testing.assert_allclose(M[:3, :3], 0.5 * np.eye(3))
    np.testing.assert_allclose(M[3:, 3:], 4e-3 * np.outer(axis, axis), atol=1e-15)
    assert not M[:3, 3:].any()
    ball = np.asarray(hub_inertia(joint("spherical", hub=fx.Hub(0.2, 4e-3)), ONE))
    np.testing.assert_allclose(ball[3:, 3:], 4e-3 * np.eye(3))


def test_payload_off_the_axis():
    """Steiner's theorem, for a section at a distance and an offset from it."""
    offset, about = np.array([0.1, -0.2, 0.3]), np.array([1e-3, 2e-3, 3e-3])
    load = fx.Payload("load", "link", 0.7, offset=offset, inertia=about)
    there = se3.Pose(jnp.eye(3), jnp.array([0.5, 0.0, 0.0]))
    M = np.asarray(payload_inertia(load, there))
    c = offset + [0.5, 0.0, 0.0]
    np.testing.assert_allclose(M[:3, :3], 0.7 * np.eye(3), atol=1e-15)
    steiner = 0.7 * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(M[3:, 3:], np.diag(about) + steiner, atol=1e-14)
    lever = np.array([[0, c[2], -c[1]], [-c[2], 0, c[0]], [c[1], -c[0], 0]])
    np.testing.assert_allclose(M[:3, 3:], 0.7 * lever, atol=1e-14)
