"""``describe(robot)``: masses, reach, stiffness and the first natural frequencies of every link, as numbers and as a
table."""

import dataclasses

import jax
import numpy as np

from flexjax.robot._fault import UNKNOWN, RobotError
from flexjax.robot._frequencies import (
    Constants,
    PointMass,
    constants_at_ends,
    link_frequencies,
    link_mass,
)
from flexjax.robot._joint import Payload
from flexjax.robot._link import Link
from flexjax.robot._robot import GROUND, Robot
from flexjax.robot.files._document import plain
from flexjax.robot.files._table import columns


@dataclasses.dataclass(frozen=True)
class LinkDescription:
    """One link: ``length`` and ``free_length`` [m] (they differ in a prismatic joint at its home), ``mass`` and
    ``payload`` [kg], constants at base and tip, and the frequencies [Hz] of bending in y and z, clamped at the base,
    with the payload at its tip."""

    name: str
    length: float
    free_length: float
    mass: float
    payload: float
    base: Constants | None
    tip: Constants | None
    frequencies_y: np.ndarray
    frequencies_z: np.ndarray


@dataclasses.dataclass(frozen=True)
class Description:
    """What :func:`describe` returns: ``mass`` [kg] of everything that moves, ``reach`` [m], and one
    :class:`LinkDescription` per link."""

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
                "  frequencies: clamped at the base, free at the tip, with the payloads of the link",
            ]
        )


def describe(robot: Robot, *, modes: int = 3) -> Description:
    """Masses, reach, stiffness and the first natural frequencies of each link, to read before simulating.

    >>> import flexjax as fx
    >>> print(f"{fx.describe(fx.load_robot('li-zhang-single-link')).links[0].frequencies_y[0]:.2f}")
    6.10
    """
    if any(plain(leaf) is UNKNOWN for leaf in jax.tree.leaves(robot)):
        raise RobotError(
            "describe",
            ["the numbers of this robot are traced; call describe outside jit, vmap and grad"],
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
        if (
            joint.child == link.name
            and joint.type == "prismatic"
            and joint.axis is None
            and joint.home is not None
        ):
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
        ahead = [
            load for load in on_link if load.station > 0
        ]  # what is still inside a prismatic guide does not move
        found.append(
            link_frequencies(link, plane, length=free, loads=ahead, n=modes)
            if free > 0
            else np.zeros(0)
        )
    return LinkDescription(link.name, length, free, mass, payload, *constants_at_ends(link), *found)


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
    """The largest distance from the ground joint to a tip that the lengths allow."""
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
