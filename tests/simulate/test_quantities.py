"""Quantities of a run, and the arm at rest."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.simulate.arms import pair_model
from tests.simulate.test_stations import DRIVE, TS, model


@cache
def run():
    return fx.simulate(model(), DRIVE, TS, dt=5e-3, stations=5)


def moved(tip):
    """A run whose tip is at given places."""
    traj = run()
    frames = traj.frames.at[:, -1, -1, :3].set(jnp.asarray(tip))
    return dataclasses.replace(traj, frames=frames)


def test_residual_vibration_and_settling_time():
    y = np.array([5.0, 1.0, -0.4, 0.2, -0.1])
    traj = moved(np.stack([np.zeros(5), y, np.zeros(5)], 1))
    t = np.asarray(traj.ts)
    assert np.isclose(fx.residual_vibration(traj, t[1]), 0.7)  # half of 1.0 + 0.4
    assert np.isclose(fx.residual_vibration(traj, t[1], rest=jnp.zeros(3)), 1.0)
    still = jnp.zeros(3)
    assert np.isclose(fx.settling_time(traj, 0.3, rest=still), t[3])
    assert np.isclose(fx.settling_time(traj, 0.3, after=t[2], rest=still), t[3] - t[2])
    assert float(fx.settling_time(traj, 9.0, rest=still)) == 0.0
    assert np.isinf(fx.settling_time(traj, 0.05, rest=still))
    with pytest.raises(ValueError, match="after: 3 s; expected a time before"):
        fx.residual_vibration(traj, 3.0)


def test_a_tip_at_rest_has_a_derivative():
    slope = jax.grad(lambda c: fx.residual_vibration(moved(c * jnp.ones((5, 3))), 0.0))(1.0)
    assert float(slope) == 0.0


def test_surface_strain_is_that_of_a_gauge_at_the_surface():
    traj = run()
    gauge = np.abs(fx.measure(traj)["root"])  # at y = height / 2
    strain = np.asarray(fx.surface_strain(traj))
    assert strain.shape == (5, 1, 5) and np.max(gauge) > 1e-5
    axial = np.abs(traj.strain[:, 0, 0, 0])
    np.testing.assert_allclose(strain[:, 0, 0], gauge, atol=2 * np.max(axial) + 1e-15)
    wanted = np.max(np.linalg.norm(traj.deflection, axis=-1), axis=(0, 2))
    np.testing.assert_allclose(fx.peak_deflection(traj), wanted)


def test_a_section_without_dimensions_is_refused():
    traj = run()
    link = traj.robot.links[0]
    p = link.section.properties()
    section = fx.GivenSection(A=p.A, Iy=p.Iy, Iz=p.Iz, J=p.J)
    robot = dataclasses.replace(traj.robot, links=(dataclasses.replace(link, section=section),))
    with pytest.raises(ValueError, match="links.link: its section has no dimensions"):
        fx.surface_strain(dataclasses.replace(traj, robot=robot))


def test_rest_of_the_rigid_arm():
    model, q = pair_model(), jnp.array([0.3, 0.8])
    at = fx.rest(model, {"joint1": 0.3, "joint2": 0.8})
    wanted = fx.inverse_dynamics(model.robot, q, 0 * q, 0 * q)
    np.testing.assert_allclose(at.effort, wanted, rtol=1e-10)
    held = fx.simulate(model, at.drive, np.linspace(0, 0.02, 3), start=at.state)
    np.testing.assert_allclose(held.tip, np.broadcast_to(at.tip, (3, 3)), atol=1e-12)
    assert float(at.energy.kinetic) == 0.0


def test_rest_of_an_elastic_link():
    """A cantilever under its own weight, to first order in its deflection."""
    robot = dataclasses.replace(model().robot, gravity=jnp.array([0.0, -0.5, 0.0]))
    at = fx.rest(fx.TransferMatrix(segments=12).bind(robot))
    link = robot.links[0]
    p, L = link.section.properties(), float(link.length)
    weight = 0.5 * 2700.0 * float(p.A)
    np.testing.assert_allclose(at.tip[1], -weight * L**4 / (8 * 70e9 * float(p.Iz)), rtol=1e-2)
    np.testing.assert_allclose(at.effort, [weight * L**2 / 2], rtol=1e-3)
    assert float(at.energy.elastic) > 0
