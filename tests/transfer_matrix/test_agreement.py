"""The same planar arm in three formulations, each refined: what is left is what only one of them
models.
"""

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
    traj = fx.simulate(
        method.bind(robot), motion, jnp.linspace(0.0, 0.4, 5), substeps=substeps, stations=2
    )
    return np.asarray(traj.tip[1:, :2]), np.abs(np.asarray(traj.deflection)).max()


def _limit(stiffer):
    """(tips, segments extrapolated; order in the segment length)."""
    tips = [_tips(fx.TransferMatrix(segments=n), 100, stiffer)[0] for n in (4, 8, 16)]
    order = np.log2(np.linalg.norm(tips[1] - tips[0]) / np.linalg.norm(tips[2] - tips[1]))
    return tips[2] + (tips[2] - tips[1]) / 3, order


def _gap(other, stiffer):
    """(gap between the tips, segments extrapolated, relative to the bending; order in the segment
    length).
    """
    want, bent = _tips(other, 100, stiffer)
    limit, order = _limit(stiffer)
    return np.abs(limit - want).max() / bent, order


@pytest.mark.slow
def test_agreement_with_port_hamiltonian(record_number):
    gap, order = _gap(fx.PortHamiltonian(elements=16), 1.0)
    record_number("order in the segment length, beside PortHamiltonian", order, (1.85, 2.15), "in")
    record_number(
        "tip against PortHamiltonian, segments extrapolated, relative to the bending", gap, 5e-3
    )


@pytest.mark.slow
def test_agreement_with_finite_element(record_number):
    """Elements bend linearly and keep their length along the chord; segments do not.

    What lies between them is therefore in proportion to the bending (12 % of it where that is 59
    mm), and vanishes with it.
    """
    gaps = [_gap(fx.FiniteElement(elements=4), stiffer)[0] for stiffer in (16.0, 64.0)]
    record_number("tip against FiniteElement, bending of 0.7 mm, relative to it", gaps[1], 5e-3)
    record_number("fall of that gap from a bending of 2 to 0.7 mm", gaps[0] / gaps[1], 2.0, ">")


@pytest.mark.slow
def test_agreement_with_stiffened_elements(record_number):
    """Elements that shorten as they bend: what is left (slopes as angles, linear curvature) falls
    with the square of the bending, 59 and 27 mm of links of half a metre; at 27 mm more elements do
    not change it.
    """
    bent, gaps = [], []
    for stiffer in (1.0, 2.0):
        limit, _ = _limit(stiffer)
        want, size = _tips(fx.FiniteElement(elements=8), 100, stiffer)
        bent.append(size)
        gaps.append(np.abs(limit - want).max() / size)
    coarse = _tips(fx.FiniteElement(elements=4), 100, 2.0)[0]
    record_number(
        "tip against FiniteElement with stiffening, bending of 27 mm, relative to it", gaps[1], 0.02
    )
    record_number(
        "order of that gap in the bending",
        np.log(gaps[0] / gaps[1]) / np.log(bent[0] / bent[1]),
        1.8,
        ">",
    )
    record_number(
        "4 against 8 elements there, relative to the bending",
        np.abs(coarse - want).max() / bent[1],
        2e-3,
    )
