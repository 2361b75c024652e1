"""Writes URDF files, with what URDF cannot express in elements ``<flexjax>``."""

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from flexjax._files import write_whole
from flexjax.mechanism import hub_inertia, rigid_inertia
from flexjax.robot import GROUND, Joint, Link, Payload, Robot
from flexjax.robot._home import Pose, axis_of, placement, section_pose
from flexjax.robot.files._urdf import EXTENSION
from flexjax.robot.parts._document import to_document

TYPES = {"revolute": "continuous", "prismatic": "prismatic", "fixed": "fixed", "free": "floating"}
# Fields of a joint that the file gives by elements of URDF.
PLACED = ("name", "type", "parent", "child", "axis", "offset", "rotation")
FAR = 1e3  # a prismatic joint needs limits; these are none


def save_urdf(robot: Robot, path: str | os.PathLike[str]) -> Path:
    """Write a robot as URDF, which other programs read as a rigid arm.

    Kinematics, masses and simple shapes of the links are standard URDF, with flexible links
    undeformed. Elements ``<flexjax>`` contain the rest, and :func:`load_urdf` reads the same robot
    from the file, up to rounding of the joints' placement. Hubs count to the links that carry them,
    payloads are links of their own.

    Arguments:
        robot: the robot; its parameters must not be traced. Loops, and joints that URDF does not
            have (sliding, telescopic, universal, spherical) are refused.
        path: path of the file.

    Returns:
        The path.

    Raises:
        ValueError: URDF has no such joint; the message names it.

    >>> import flexjax as fx
    >>> fx.save_urdf(fx.load_robot("two-link"), "arm.urdf").name
    'arm.urdf'
    """
    text = robot_to_urdf(robot)
    return write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def robot_to_urdf(robot: Robot) -> str:
    """The URDF text of a robot."""
    _refuse(robot)
    document = to_document(robot)
    root = ElementTree.Element("robot", name=robot.name)
    rest = {"gravity": document["gravity"], "planar": robot.planar}
    _extend(root, rest | {k: document[k] for k in ("sensors",) if k in document})
    ElementTree.SubElement(root, "link", name=GROUND)
    links = {link.name: link for link in robot.links}
    carried = {joint.child: joint for joint in robot.tree_joints}
    for link, block in zip(robot.links, document["links"], strict=True):
        _link(root, link, carried[link.name], block)
    for joint, block in zip(robot.joints, document["joints"], strict=True):
        _joint(root, joint, links.get(joint.parent), block)
    blocks = document.get("payloads", [])
    for payload, block in zip(robot.payloads, blocks, strict=True):
        _payload(root, payload, links[payload.link], block)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _refuse(robot: Robot) -> None:
    faults = []
    for joint in robot.joints:
        kind = "telescopic" if joint.telescopes else joint.type
        if joint.loop or kind not in TYPES:
            what = "a joint that closes a loop" if joint.loop else f"a {kind} joint"
            expected = "expected revolute, prismatic with an axis, fixed or free"
            faults.append(f"joints.{joint.name}: {what}; {expected}, which URDF has.")
    names = [link.name for link in robot.links]
    faults += [
        f"payloads.{p.name}: also the name of a link; expected another name, because a payload is "
        "a link in URDF."
        for p in robot.payloads
        if p.name in (*names, GROUND)
    ]
    if faults:
        raise ValueError("\n".join(faults))


def _extend(element: ElementTree.Element, fields: dict[str, Any]) -> None:
    ElementTree.SubElement(element, EXTENSION).text = json.dumps(fields)


def _write(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


def _origin(element: ElementTree.Element, pose: Pose) -> None:
    angles = _roll_pitch_yaw(pose.rotation.as_matrix())
    ElementTree.SubElement(element, "origin", xyz=_write(pose.position), rpy=_write(angles))


def _roll_pitch_yaw(R: np.ndarray) -> list[float]:
    """Angles about the fixed axes x, y, z; where two of them coincide, the last is zero."""
    level = float(np.hypot(R[0, 0], R[1, 0]))
    pitch = float(np.arctan2(-R[2, 0], level))
    if level < 1e-12:
        return [float(np.arctan2(-R[1, 2], R[1, 1])), pitch, 0.0]
    return [float(np.arctan2(R[2, 1], R[2, 2])), pitch, float(np.arctan2(R[1, 0], R[0, 0]))]


def _link(root: ElementTree.Element, link: Link, joint: Joint, block: dict[str, Any]) -> None:
    element = ElementTree.SubElement(root, "link", name=link.name)
    whole = np.array(rigid_inertia(link) + hub_inertia(joint, link.length), float)
    _inertial(element, whole)
    _visual(element, link)
    _extend(element, {k: v for k, v in block.items() if k != "name"})


def _inertial(element: ElementTree.Element, mass_matrix: np.ndarray) -> None:
    """From a 6 x 6 mass matrix [linear; angular] about the link's origin."""
    mass = mass_matrix[0, 0]
    lever = mass_matrix[3:, :3] / mass if mass > 0 else np.zeros((3, 3))
    com = np.array([lever[2, 1], lever[0, 2], lever[1, 0]])
    about = mass_matrix[3:, 3:] + mass * lever @ lever
    inertial = ElementTree.SubElement(element, "inertial")
    _origin(inertial, Pose(com, Rotation.identity()))
    ElementTree.SubElement(inertial, "mass", value=repr(float(mass)))
    names = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2)}
    names |= {"iyz": (1, 2)}
    ElementTree.SubElement(
        inertial, "inertia", {name: repr(float(about[at])) for name, at in names.items()}
    )


def _visual(element: ElementTree.Element, link: Link) -> None:
    """A box or a cylinder along the link, if its section has dimensions."""
    length = float(link.length)
    size = None if link.section is None else link.section.half_sizes()
    if size is None or length == 0 or link.curvature is not None:
        return
    visual = ElementTree.SubElement(element, "visual")
    middle = np.array([0.5 * length, 0.0, 0.0])
    round_ = link.section is not None and link.section.shape in ("circle", "tube")
    turned = Rotation.from_euler("y", np.pi / 2) if round_ else Rotation.identity()
    _origin(visual, Pose(middle, turned))
    geometry = ElementTree.SubElement(visual, "geometry")
    if round_:
        radius = repr(float(size[0]))
        ElementTree.SubElement(geometry, "cylinder", radius=radius, length=repr(length))
    else:
        sides = [length, 2 * float(size[0]), 2 * float(size[1])]
        ElementTree.SubElement(geometry, "box", size=_write(sides))


def _joint(
    root: ElementTree.Element, joint: Joint, parent: Link | None, block: dict[str, Any]
) -> None:
    element = ElementTree.SubElement(root, "joint", name=joint.name, type=TYPES[joint.type])
    start = Pose(np.zeros(3), Rotation.identity()) if parent is None else section_pose(parent, 1.0)
    _origin(element, start @ placement(joint))
    ElementTree.SubElement(element, "parent", link=joint.parent)
    ElementTree.SubElement(element, "child", link=joint.child)
    if joint.type in ("revolute", "prismatic"):
        default = (0.0, 0.0, 1.0) if joint.type == "revolute" else (1.0, 0.0, 0.0)
        axis = axis_of(joint, default) if joint.axis is None else np.array(joint.axis, float)
        ElementTree.SubElement(element, "axis", xyz=_write(axis))
    friction = 0.0 if joint.friction is None else float(joint.friction.coulomb)
    damping = 0.0 if joint.damping is None else float(joint.damping)
    if friction or damping:
        given = {"damping": repr(damping), "friction": repr(friction)}
        ElementTree.SubElement(element, "dynamics", given)
    effort = 0.0 if joint.motor_limit is None else float(joint.motor_limit)
    if effort or joint.type == "prismatic":
        limit = {"effort": repr(effort or FAR), "velocity": repr(FAR)}
        if joint.type == "prismatic":
            stops = (-FAR, FAR)
            if joint.stops is not None:
                stops = (float(joint.stops.lower), float(joint.stops.upper))
            limit |= {"lower": repr(stops[0]), "upper": repr(stops[1])}
        ElementTree.SubElement(element, "limit", limit)
    _extend(element, {k: v for k, v in block.items() if k not in PLACED})


def _payload(
    root: ElementTree.Element, payload: Payload, link: Link, block: dict[str, Any]
) -> None:
    """A link of its own, fixed to the link that carries it."""
    element = ElementTree.SubElement(root, "link", name=payload.name)
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = float(payload.mass) * np.eye(3)
    inertia = 0.0 if payload.inertia is None else np.array(payload.inertia, float)
    matrix[3:, 3:] = np.diag(np.broadcast_to(inertia, (3,)))
    _inertial(element, matrix)
    _extend(element, {"payload": block})
    fixed = ElementTree.SubElement(root, "joint", name=f"{payload.name}-fixed", type="fixed")
    offset = np.zeros(3) if payload.offset is None else np.array(payload.offset, float)
    _origin(fixed, section_pose(link, float(payload.s)) @ Pose(offset, Rotation.identity()))
    ElementTree.SubElement(fixed, "parent", link=payload.link)
    ElementTree.SubElement(fixed, "child", link=payload.name)
