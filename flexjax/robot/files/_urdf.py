"""Imports URDF files; a flexible block replaces each link that deforms.

Files of :func:`flexjax.save_urdf` contain these blocks themselves, in elements ``<flexjax>`` that
other programs ignore.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from typing import Any, SupportsFloat

import numpy as np
from scipy.spatial.transform import Rotation

from flexjax.robot._robot import Robot
from flexjax.robot.files._rigid_tree import (
    Inertial,
    RawJoint,
    RawLink,
    flexible_faults,
    numbers_of,
    parse_xml,
    read_xml,
    robot_from_tree,
)
from flexjax.robot.parts._fault import Faults

TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
}
EXTENSION = "flexjax"
ROBOT_FIELDS = ("gravity", "planar", "sensors")  # what the element in <robot> may give
UP = (0.0, 0.0, -9.81)  # in URDF the z axis points up


def load_urdf(
    path: str | os.PathLike[str],
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] | None = None,
) -> Robot:
    """Load a robot from a URDF file.

    Effort limits become limits of the motors. Position limits are ignored, because an end stop
    needs a stiffness. Elements ``<flexjax>``, which :func:`save_urdf` writes, give what URDF cannot
    express: flexible links, springs, motors, payloads, sensors.

    Arguments:
        path: path of the URDF file.
        flexible: the links that deform, as ``{link: {"section": ..., "material": ...}}`` with
            blocks as in a robot file. By default a link is as long as the distance to the next
            joint.
        gravity: acceleration of gravity [m/s2]; by default that of the file if flexjax wrote it,
            otherwise (0, 0, -9.81): in URDF the z axis points up.

    Returns:
        The robot.

    Raises:
        RobotError: the file cannot be read or has faults, which are listed together.

    >>> import flexjax as fx
    >>> beam = {"section": {"shape": "circle", "diameter": 0.02}, "material": "steel"}
    >>> robot = fx.load_urdf("arm.urdf", flexible={"forearm": beam})  # doctest: +SKIP
    """
    where = f"URDF file {str(path)!r}"
    text = read_xml(path, where)
    return robot_from_urdf(text, flexible=flexible, gravity=gravity, where=where)


def robot_from_urdf(
    text: str | bytes,
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] | None = None,
    where: str = "URDF",
) -> Robot:
    """:func:`load_urdf` for the text of a file."""
    root = parse_xml(text, "robot", "URDF", where)
    faults, flexible = Faults(), flexible or {}
    others = _extension(root, "robot", faults) or {}
    for key in [key for key in others if key not in ROBOT_FIELDS]:
        faults.add(f"robot.{EXTENSION}", key, f"one of {', '.join(ROBOT_FIELDS)}")
    elements = {link.get("name", ""): link for link in root.findall("link")}
    joints = [_joint(joint, elements, faults) for joint in root.findall("joint")]
    links = {name: _link(name, link, faults) for name, link in elements.items()}
    flexible_faults(flexible, links, faults)
    children = [joint.child for joint in joints]
    bases = [name for name in links if name not in children]
    if len(bases) != 1:
        faults.add(
            "robot",
            ", ".join(bases) or None,
            "exactly one link that is not the child of a joint (the base)",
        )
    faults.raise_as(where)
    if gravity is not None:
        others.pop("gravity", None)
    carried = {name: x.own["payload"] for name, x in links.items() if x.own and "payload" in x.own}
    if carried:
        others["payloads"] = list(carried.values())
        links = {name: link for name, link in links.items() if name not in carried}
        joints = [joint for joint in joints if joint.child in links]
    return robot_from_tree(
        root.get("name") or "urdf",
        links,
        joints,
        bases[0],
        flexible=flexible,
        gravity=UP if gravity is None else gravity,
        others=others,
        where=where,
    )


def _extension(element: ElementTree.Element, path: str, faults: Faults) -> dict[str, Any] | None:
    """The fields of an element ``<flexjax>``, which contains JSON; None without one."""
    found = element.find(EXTENSION)
    if found is None:
        return None
    try:
        value = json.loads(found.text or "")
    except (ValueError, RecursionError) as error:
        value = str(error)
    if not isinstance(value, dict):
        faults.add(f"{path}.{EXTENSION}", value, "a JSON object, as fx.save_urdf writes it")
        return None
    return value


def _pose(
    element: ElementTree.Element | None, path: str, faults: Faults
) -> tuple[np.ndarray, Rotation]:
    origin = element.find("origin") if element is not None else None
    xyz = numbers_of(origin, "xyz", (0, 0, 0), f"{path}.origin", faults)
    rpy = numbers_of(origin, "rpy", (0, 0, 0), f"{path}.origin", faults)
    if np.any(np.abs(rpy) > 2 * np.pi + 1e-6):
        faults.add(
            f"{path}.origin.rpy",
            rpy.tolist(),
            "angles of at most one full rotation",
            "Angles are in rad; these look like degrees.",
        )
    return xyz, Rotation.from_euler("xyz", rpy)


def _joint(joint: ElementTree.Element, links: dict, faults: Faults) -> RawJoint:
    name, kind = joint.get("name", ""), joint.get("type", "")
    path = f"joint.{name}"
    if kind not in TYPES:
        faults.add(
            f"{path}.type",
            kind,
            f"one of {', '.join(TYPES)}",
            "Other joint types are not supported.",
        )
    mimic = joint.find("mimic")
    if mimic is not None:
        remedy = "Coupled joints are not supported: remove the element."
        faults.add(f"{path}.mimic", mimic.get("joint"), "no mimic element", remedy)
    ends = {}
    for key in ("parent", "child"):
        element = joint.find(key)
        ends[key] = element.get("link", "") if element is not None else None
        if ends[key] not in links:
            faults.add(f"{path}.{key}", ends[key], f"the name of a link ({', '.join(links)})")
    xyz, rotation = _pose(joint, path, faults)
    axis = numbers_of(joint.find("axis"), "xyz", (1, 0, 0), f"{path}.axis", faults)
    hardware = _hardware(joint, path, faults)
    return RawJoint(
        name, TYPES.get(kind, kind), ends["parent"], ends["child"], xyz, rotation, axis, hardware
    )


def _hardware(joint: ElementTree.Element, path: str, faults: Faults) -> dict[str, Any]:
    """Damping, friction and effort limit; those of an element ``<flexjax>`` come first."""
    dynamics, limit = joint.find("dynamics"), joint.find("limit")
    damping, friction = (
        float(numbers_of(dynamics, key, (0,), f"{path}.dynamics", faults)[0])
        for key in ("damping", "friction")
    )
    effort = float(numbers_of(limit, "effort", (0,), f"{path}.limit", faults)[0])
    own = _extension(joint, path, faults)
    if own is not None:
        return own
    block: dict[str, Any] = {"damping": damping} if damping else {}
    block |= {"friction": {"coulomb": friction}} if friction else {}
    return block | ({"motor": {"limit": effort}} if effort > 0 else {})


def _link(name: str, link: ElementTree.Element, faults: Faults) -> RawLink:
    own = _extension(link, f"link.{name}", faults)
    return RawLink(name, lambda faults: _inertial(name, link, faults), own)


def _inertial(name: str, link: ElementTree.Element, faults: Faults) -> Inertial | None:
    inertial, path = link.find("inertial"), f"link.{name}.inertial"
    if inertial is None:
        return None
    com, axes = _pose(inertial, path, faults)
    mass = float(numbers_of(inertial.find("mass"), "value", (0,), f"{path}.mass", faults)[0])
    if inertial.find("mass") is None:
        faults.add(f"{path}.mass", None, "a mass")
    xx, yy, zz, xy, xz, yz = (
        float(numbers_of(inertial.find("inertia"), key, (0,), f"{path}.inertia", faults)[0])
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    R = axes.as_matrix()
    inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return Inertial(mass, com, inertia)
