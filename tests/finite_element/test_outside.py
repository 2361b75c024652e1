"""Exudyn, whose beams bend as far as they like: what differs is the small-deflection assumption, so
it must fall with the amplitude. What is left out of the bending moment is relative to the square of
the slope: the difference goes with the cube of the load where the motion along the link is free of
it (the mass on a beam), and at least with its square where foreshortening itself is seen (the end
of an arm).
"""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.finite_element import exudyn_arms

pytestmark = [pytest.mark.outside, pytest.mark.slow]
CONSTANTS = dict(EA=1.0, EIy=1.0, GJ=1.0)


def orders(differences):
    return np.log2(np.array(differences[:-1]) / np.array(differences[1:]))


def test_two_revolute_joints(record_number):
    """Two hinged links under a constant force across the tip; three forces, halved each time."""
    pytest.importorskip("exudyn")
    numbers = dict(lengths=(0.7, 0.5), mu=0.5, EI=2.0, elements=8, end=0.3)
    beam = fx.BeamConstants(**CONSTANTS, EIz=numbers["EI"], rhoA=numbers["mu"])
    links = [
        fx.Link(f"link{i}", length, constants=beam) for i, length in enumerate(numbers["lengths"])
    ]
    model = fx.FiniteElement(elements=8).bind(fx.Robot.serial(links, gravity=(0.0, 0.0, 0.0)))
    found = []
    for force in (0.8, 0.4, 0.2):
        push = fx.stack([fx.constant(x) for x in (0.0, force, 0.0, 0.0, 0.0, 0.0)])
        traj = fx.simulate(
            model,
            fx.Drive(loads=[fx.Load("link1", push, s=1.0)]),
            jnp.array([0.0, numbers["end"]]),
            dt=5e-4,
            stations=2,
        )
        theirs = exudyn_arms.two_hinged_links(force, dt=2.5e-4, **numbers)
        found.append(float(np.linalg.norm(traj.tip[-1, :2] - theirs)))
    print("differences [m]", found, "orders", orders(found))
    record_number("RR against Exudyn, smallest force: end point [m]", found[-1], 2e-4)
    record_number(
        "RR against Exudyn: order in the amplitude", float(np.min(orders(found))), 1.8, ">="
    )


def test_sliding_joint(record_number):
    """A point mass slides along a clamped beam under three strengths of gravity; below these the
    time step of Exudyn is seen, whose error is linear in the load (2e-6 m at 0.4 m/s2 and half a
    millisecond).
    """
    pytest.importorskip("exudyn")
    numbers = dict(length=1.0, mu=0.5, EI=2.0, elements=16, mass=0.3, start=0.3, speed=0.6, end=0.5)
    beam = fx.Link(
        "beam", 1.0, constants=fx.BeamConstants(**CONSTANTS, EIz=numbers["EI"], rhoA=numbers["mu"])
    )
    rider = fx.Link(
        "rider", 0.1, body=fx.Body(numbers["mass"], [0, 0, 0], [0, 0, 1e-9, 0, 0, 0]), rigid=True
    )
    joints = [
        fx.Joint("clamp", "fixed", "ground", "beam"),
        fx.Joint("slide", "sliding", "beam", "rider", home=numbers["start"]),
    ]
    found = []
    for gravity in (3.2, 1.6, 0.8):
        robot = fx.Robot("slider", [beam, rider], joints, gravity=[0.0, -gravity, 0.0], planar=True)
        start = fx.Start(joints={"slide": numbers["start"]}, rates={"slide": numbers["speed"]})
        traj = fx.simulate(
            fx.FiniteElement(elements=8).bind(robot),
            None,
            jnp.array([0.0, numbers["end"]]),
            dt=2.5e-4,
            start=start,
            stations=2,
        )
        theirs = exudyn_arms.mass_on_a_beam(gravity, dt=2.5e-4, **numbers)
        found.append(float(np.linalg.norm(traj.frames[-1, 1, 0, :2] - theirs)))
    print("differences [m]", found, "orders", orders(found))
    record_number("sliding joint against Exudyn, weakest gravity: rider [m]", found[-1], 1e-4)
    record_number(
        "sliding joint against Exudyn: order in the load, lowest",
        float(np.min(orders(found))),
        (2.7, 3.3),
        relation="in",
    )
