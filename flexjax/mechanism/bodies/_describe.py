"""``describe(robot)``: mass, reach, stiffness and first natural frequencies of each link."""

import dataclasses

import jax
import numpy as np

from flexjax._types import is_traced
from flexjax.mechanism.bodies._frequencies import (
    PointMass,
    link_frequencies,
    link_mass,
    properties_at,
)
from flexjax.mechanism.bodies._sections import BeamProperties
from flexjax.robot import GROUND, Link, Payload, Robot, RobotError, columns


@dataclasses.dataclass(frozen=True)
class LinkDescription:
    """One row of a :class:`Description`.

    Arguments:
        length: length of the link [m].
        free_length: length ahead of the joint [m]; it differs from ``length`` where the link
            slides through a prismatic joint.
        mass, payload: mass of the link and of the payloads on it [kg].
        base, tip: stiffness and inertia per length at both ends; ``None`` for a rigid link.
        frequencies_y, frequencies_z: natural frequencies [Hz] of bending in y and z, with the base
            clamped and the payloads attached.
    """

    name: str
    length: float
    free_length: float
    mass: float
    payload: float
    base: BeamProperties | None
    tip: BeamProperties | None
    frequencies_y: np.ndarray
    frequencies_z: np.ndarray


@dataclasses.dataclass(frozen=True)
class Description:
    """The result of :func:`describe`; prints as a table.

    Arguments:
        mass: total mass of links, hubs, joints and payloads [kg].
        reach: an upper bound on the distance from the ground joint to a tip [m].
        links: one :class:`LinkDescription` per link.
    """

    name: str
    mass: float
    reach: float
    links: tuple[LinkDescription, ...]

    def __str__(self) -> str:
        mass = f"mass {self.mass:.6g} kg (links, hubs, joints, payloads)"
        lines = [f"robot {self.name!r}: {mass}, reach at most {self.reach:.6g} m"]
        names = ["EIz [N m2]", "EIy [N m2]", "GJ [N m2]", "rhoA [kg/m]"]
        rows = [
            ["link", "length [m]", "mass [kg]", *names, "bending in y [Hz]", "bending in z [Hz]"]
        ]
        for link in self.links:
            length = f"{link.length:.6g}" + (
                f" ({link.free_length:.6g} free)" if link.free_length != link.length else ""
            )
            mass = f"{link.mass:.6g}" + (f" + {link.payload:.6g}" if link.payload else "")
            if link.base is None or link.tip is None:
                rows.append([link.name, length, mass, "rigid", "", "", "", "", ""])
                continue
            ends = [
                (getattr(link.base, key), getattr(link.tip, key))
                for key in ("EIz", "EIy", "GJ", "rhoA")
            ]
            cells = [
                f"{a:.5g}" if abs(a - b) <= 1e-9 * abs(a) else f"{a:.5g} .. {b:.5g}"
                for a, b in ends
            ]
            frequencies = [
                ", ".join(f"{f:.5g}" for f in fs) for fs in (link.frequencies_y, link.frequencies_z)
            ]
            rows.append([link.name, length, mass, *cells, *frequencies])
        return "\n".join(
            [
                *lines,
                *columns(rows),
                "  frequencies: base clamped, tip free, payloads of the link attached",
            ]
        )


def describe(robot: Robot, *, modes: int = 3) -> Description:
    """Summarise a robot before simulating it: mass, reach, stiffness, natural frequencies.

    The frequencies are those of each link alone, clamped at its base, with its payloads.

    Arguments:
        robot: the robot; its parameters must not be traced.
        modes: number of natural frequencies per link and bending direction.

    Returns:
        A :class:`Description`, which prints as a table.

    Raises:
        RobotError: a parameter is outside its range or not finite.

    >>> import flexjax as fx
    >>> print(f"{fx.describe(fx.load_robot('li-zhang-single-link')).links[0].frequencies_y[0]:.2f}")
    6.10
    """
    if any(is_traced(leaf) for leaf in jax.tree.leaves(robot)):
        raise RobotError(
            "describe",
            ["the robot's parameters are traced; call describe outside jit, vmap and grad"],
        )
    links = tuple(_describe_link(robot, link, modes) for link in robot.links)
    mass = sum(link.mass for link in links) + sum(float(p.mass) for p in robot.payloads)
    for joint in robot.joints:
        mass += float(joint.mass) if joint.mass is not None else 0.0
        mass += float(joint.hub.mass) if joint.hub is not None else 0.0
    return Description(robot.name, mass, _reach(robot), links)


def _describe_link(robot: Robot, link: Link, modes: int) -> LinkDescription:
    length = free = float(link.length)
    for joint in robot.tree_joints:
        if joint.child == link.name and joint.telescopes and joint.home is not None:
            free = float(np.ravel(joint.home)[0])
    loads = [p for p in robot.payloads if p.link == link.name]
    payload, mass = sum(float(p.mass) for p in loads), link_mass(link)
    if link.rigid:
        return LinkDescription(
            link.name, length, free, mass, payload, None, None, np.zeros(0), np.zeros(0)
        )
    found = []
    for plane, axis in (("y", 2), ("z", 1)):
        on_link = [_point_mass(p, axis, length, free) for p in loads]
        # A payload that is still inside a prismatic guide does not move.
        ahead = [load for load in on_link if load.station > 0]
        found.append(
            link_frequencies(link, plane, length=free, loads=ahead, n=modes)
            if free > 0
            else np.zeros(0)
        )
    ends = properties_at(link, np.array([0.0, 1.0]))
    base, tip = (jax.tree.map(lambda x, i=i: float(x[i]), ends) for i in (0, 1))
    return LinkDescription(link.name, length, free, mass, payload, base, tip, *found)


def _point_mass(payload: Payload, axis: int, length: float, free: float) -> PointMass:
    station = 1 - (1 - float(payload.s)) * length / free if free > 0 else 0.0
    arm = float(payload.offset[0]) if payload.offset is not None else 0.0
    inertia = (
        0.0
        if payload.inertia is None
        else float(np.ravel(payload.inertia)[axis if np.size(payload.inertia) == 3 else 0])
    )
    return PointMass(station, float(payload.mass), arm, inertia)


def _reach(robot: Robot) -> float:
    """Upper bound on the distance from the ground joint to a tip: the sum of the lengths."""
    parent = {joint.child: joint for joint in robot.tree_joints}
    lengths = {link.name: float(link.length) for link in robot.links}

    def distance(name: str) -> float:
        joint = parent[name]
        start = 0.0 if joint.parent == GROUND else distance(joint.parent)
        offset = (
            0.0
            if joint.offset is None or joint.parent == GROUND
            else float(np.linalg.norm(joint.offset))
        )
        return start + offset + lengths[name]

    return max(distance(link.name) for link in robot.links)
