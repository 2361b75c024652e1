"""The same planar arm in three formulations, each refined: what is left is what only one of them models."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

SLENDER = fx.Material(E=20e9, nu=0.3, rho=2000.0)


def arm() -> fx.Robot:
    links = (
        fx.Link("a", 0.5, section=fx.Rectangle(0.01, 0.008), material=SLENDER),
        fx.Link("b", 0.4, section=fx.Rectangle(0.01, 0.006), material=SLENDER),
    )
    joints = (
        fx.Joint("j1", "revolute", "ground", "a"),
        fx.Joint("j2", "revolute", "a", "b"),
    )
    return fx.Robot("pair", links, joints, (fx.Payload("p", "b", 0.05),), (), planar=True)


def _tips(method, substeps, stiffer=1.0):
    motion = fx.Drive(joints={n: fx.Motion(fx.quintic(0.0, 0.6, 0.4)) for n in ("j1", "j2")})
    robot = arm().replace("links.*.material.E", stiffer * SLENDER.E)
    traj = fx.simulate(method.bind(robot), motion, jnp.linspace(0.0, 0.4, 5), substeps=substeps, stations=2)
    return np.asarray(traj.tip[1:, :2]), np.abs(np.asarray(traj.deflection)).max()


def _gap(other, stiffer):
    """(gap between the tips, segments extrapolated, relative to the bending; order in the segment length)."""
    want, bent = _tips(other, 100, stiffer)
    tips = [_tips(fx.TransferMatrix(segments=n), 100, stiffer)[0] for n in (4, 8, 16)]
    order = np.log2(np.linalg.norm(tips[1] - tips[0]) / np.linalg.norm(tips[2] - tips[1]))
    limit = tips[2] + (tips[2] - tips[1]) / 3
    return np.abs(limit - want).max() / bent, order


@pytest.mark.slow
def test_agreement_with_port_hamiltonian(record_number):
    gap, order = _gap(fx.PortHamiltonian(elements=16), 1.0)
    record_number("order in the segment length, beside PortHamiltonian", order, (1.85, 2.15), "in")
    record_number("tip against PortHamiltonian, segments extrapolated, relative to the bending", gap, 5e-3)


@pytest.mark.slow
def test_agreement_with_finite_element(record_number):
    """Elements bend linearly: their points move across the link only, and with ``stiffening`` back along it by what the
    slope shortens. Segments keep their length at any angle. What lies between them falls with the square of the bending
    (four times stiffer, sixteen times less of it); without stiffening in proportion to the bending."""
    gaps = [_gap(fx.FiniteElement(elements=4, stiffening=True), stiffer)[0] for stiffer in (1.0, 4.0, 16.0)]
    record_number("tip against FiniteElement with stiffening, relative to the bending (59 mm)", gaps[0], 2e-2)
    record_number("the same, links 16 times stiffer", gaps[2], 1e-3)
    plain = _gap(fx.FiniteElement(elements=4), 4.0)[0]
    record_number("fall of the gap by stiffening, links 4 times stiffer", plain / gaps[1], 5.0, ">")
