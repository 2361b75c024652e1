"""From links and joints of another file format (URDF, MJCF) to the document of a robot.

The base link of the file becomes the ground. The local x axis of a link points from its own joint
to the joint of its first child (for a last link: to its centre of mass), as a flexible link
requires. Axes, inertias and offsets are rotated accordingly. A link that carries its own block,
which flexjax wrote, keeps its axes.
"""

import dataclasses
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat
from xml.parsers import expat

import numpy as np
from jax.typing import ArrayLike
from scipy.spatial.transform import Rotation

from flexjax._files import FileError, read_bounded
from flexjax.robot._home import Pose, section_pose
from flexjax.robot._robot import GROUND, Robot
from flexjax.robot.files._load import robot_from_dict
from flexjax.robot.parts._fault import Faults, RobotError, number, numbers
from flexjax.robot.parts._link import Link

LARGEST = 1e12  # of any number in a file
DEEPEST = 200  # levels of elements: a body of MJCF is inside of its parent
TINY = 1e-9  # m; joints closer than this coincide


class Inertial(NamedTuple):
    """Mass properties in the axes of a link of the file."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray  # (3, 3), about the centre of mass


@dataclasses.dataclass
class RawLink:
    """A link of the file. ``inertial`` reports faults, and returns None without mass properties.

    ``own``: the block of a robot file, if the file contains one.
    """

    name: str
    inertial: Callable[[Faults], Inertial | None]
    own: dict[str, Any] | None = None


@dataclasses.dataclass
class RawJoint:
    """A joint of the file: its frame in the parent's axes, and the fields of its hardware."""

    name: str
    type: str
    parent: str
    child: str
    xyz: np.ndarray
    rotation: Rotation
    axis: np.ndarray
    hardware: dict[str, Any]


def robot_from_tree(
    name: str,
    links: dict[str, RawLink],
    joints: Sequence[RawJoint],
    base: str,
    *,
    flexible: dict[str, dict],
    gravity: Iterable[SupportsFloat],
    others: dict[str, Any],
    where: str,
) -> Robot:
    """The robot of checked links and joints; ``others`` are further keys of its document."""
    faults = Faults()
    joints = [j for j in joints if not _is_frame(j, joints, links, flexible)]
    blocks = {name: flexible.get(name, links[name].own) for name in links}
    frames = {
        name: _frame(links[name], [j for j in joints if j.parent == name], flexible.get(name, {}))
        for name in links
    }
    frames[base] = (Rotation.identity(), 0.0)  # the ground keeps the axes of the file
    kept = [name for name in links if name in [j.child for j in joints]]
    document: dict[str, Any] = {"schema": 1, "name": name, "gravity": [float(g) for g in gravity]}
    document["links"] = [
        _link_block(links[name], frames[name], flexible.get(name), faults) for name in kept
    ]
    faults.raise_as(where)
    tips = {name: _tip(frames[name][1], blocks[name]) for name in links}
    document["joints"] = [_joint_block(joint, base, frames, tips) for joint in joints]
    return robot_from_dict({**document, **others}, where=where)


def flexible_faults(flexible: dict[str, dict], links: dict[str, RawLink], faults: Faults) -> None:
    """Report blocks of links that the file does not have."""
    for name in flexible:
        if name not in links:
            faults.add(f"flexible.{name}", name, f"the name of a link ({', '.join(links)})")


def _is_frame(
    joint: RawJoint, joints: Sequence[RawJoint], links: dict[str, RawLink], flexible: dict
) -> bool:
    """Whether the child is only a frame (tool centre, camera): fixed, last, without mass.

    Such a link is omitted.
    """
    link = links[joint.child]
    last = all(j.parent != link.name for j in joints)
    bare = link.own is None and link.name not in flexible and link.inertial(Faults()) is None
    return joint.type == "fixed" and last and bare


def _frame(link: RawLink, outgoing: list[RawJoint], block: dict) -> tuple[Rotation, float]:
    """Rotation from the link's own axes (x towards the next joint) to the file's; its length."""
    if link.own is not None:
        return Rotation.identity(), number(link.own.get("length")) or 0.0  # checked later
    ends = [j.xyz for j in outgoing if np.linalg.norm(j.xyz) > TINY]
    if not ends and not outgoing:
        inertial = link.inertial(Faults())  # _link_block reports them
        com = np.zeros(3) if inertial is None else inertial.com
        ends = [2 * com] if np.linalg.norm(com) > TINY else []
    if not ends:
        return Rotation.identity(), block.get("length", 0.0)
    distance = float(np.linalg.norm(ends[0]))
    direction = ends[0] / distance
    length = block.get("length", distance)  # a shorter link leaves a rigid offset to the joint
    # The smallest rotation onto that direction keeps a planar robot planar; one by pi is about z.
    if direction[0] < -1 + 1e-12:
        return Rotation.from_rotvec([0, 0, np.pi]), length
    half = np.array([1.0, 0, 0]) + direction
    half /= np.linalg.norm(half)
    axis = np.cross([1.0, 0, 0], half)
    return Rotation.from_quat([*axis, half[0]]), length


def _tip(length: float, block: dict | None) -> Pose:
    """The tip section of a link in the axes of its base."""
    if block and "curvature" in block:
        curvature = numbers(block["curvature"]) or []
        if len(curvature) == 3:  # otherwise the check of the robot reports it
            return section_pose(Link("link", length, curvature=curvature), 1.0)  # pyright: ignore
    return Pose(np.array([length, 0.0, 0.0]), Rotation.identity())


def _link_block(
    link: RawLink, frame: tuple[Rotation, float], block: dict | None, faults: Faults
) -> dict:
    name, (rotation, length) = link.name, frame
    if block is not None:
        if length == 0:
            faults.add(
                f"flexible.{name}.length",
                None,
                "the length of the link",
                "The file does not give the end of this link.",
            )
        return {"name": name, "length": length, **block}
    if link.own is not None:
        return {"name": name, **link.own}
    inertial = link.inertial(faults)
    if inertial is None:
        faults.add(
            f"link.{name}.inertial",
            None,
            "mass and inertia",
            "Add <inertial>, or give the link in flexible=.",
        )
        return {"name": name}
    back = rotation.inv()
    R = back.as_matrix()
    inertia = clean(R @ inertial.inertia @ R.T)
    values = [inertia[i][j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    body = {"mass": inertial.mass, "com": clean(back.apply(inertial.com)), "inertia": values}
    return {"name": name, "length": length, "rigid": True, "body": body}


def _joint_block(
    joint: RawJoint, base: str, frames: dict[str, tuple[Rotation, float]], tips: dict[str, Pose]
) -> dict:
    parent_axes, child_axes = frames[joint.parent][0], frames[joint.child][0]
    tip = Pose(np.zeros(3), Rotation.identity()) if joint.parent == base else tips[joint.parent]
    back = (Pose(np.zeros(3), parent_axes) @ tip).inverse()
    offset = clean(back.apply(joint.xyz))
    rotation = clean((back.rotation * joint.rotation * child_axes).as_rotvec())
    block: dict[str, Any] = {
        "name": joint.name,
        "type": joint.type,
        "parent": GROUND if joint.parent == base else joint.parent,
        "child": joint.child,
    }
    if joint.type in ("revolute", "prismatic"):
        block["axis"] = clean(child_axes.inv().apply(joint.axis))
    block |= {"offset": offset} if any(offset) else {}
    block |= {"rotation": rotation} if any(rotation) else {}
    return block | (joint.hardware if joint.type != "fixed" else {})


def clean(values: ArrayLike) -> list:
    """Set rounding residues of rotations to zero, so that planar robots are found to be planar."""
    values = np.asarray(values)
    scale = max(np.max(np.abs(values)), 1e-300)
    return np.where(np.abs(values) < 1e-14 * max(scale, 1.0) + 1e-15 * scale, 0.0, values).tolist()


def read_xml(path: str | os.PathLike[str], where: str) -> bytes:
    """The content of a file of bounded size."""
    try:
        return read_bounded(Path(path), where)
    except OSError as error:
        raise RobotError(where, [f"cannot be read ({error.strerror})"]) from None
    except FileError as error:
        raise RobotError(where, [str(error).removeprefix(f"{where}: ")]) from None


def parse_xml(text: str | bytes, tag: str, kind: str, where: str) -> ElementTree.Element:
    """The root element ``tag`` of a file.

    Document types and entities are refused: they can read files and exhaust memory, and no robot
    needs them.
    """

    def refuse(*_):
        found = "contains a <!DOCTYPE ...> or <!ENTITY ...> declaration"
        expected = f"expected plain {kind} without declarations. Remove it."
        raise RobotError(where, [f"{found}; {expected}"])

    depth = 0

    def enter(*_):
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise RobotError(where, [f"nests elements; expected at most {DEEPEST} levels"])

    def leave(*_):
        nonlocal depth
        depth -= 1

    guard = expat.ParserCreate()
    guard.StartElementHandler, guard.EndElementHandler = enter, leave
    guard.StartDoctypeDeclHandler = refuse
    guard.EntityDeclHandler = refuse
    try:
        guard.Parse(text, True)
        root = ElementTree.fromstring(text)
    except RobotError:
        raise
    except (expat.ExpatError, SyntaxError, ValueError, LookupError) as error:
        # LookupError: an encoding that does not exist; ValueError: one that XML cannot have.
        raise RobotError(where, [f"is not valid XML: {error}"]) from None
    if root.tag != tag:
        raise RobotError(where, [f"has the root element <{root.tag}>; expected <{tag}>"])
    return root


def numbers_of(
    element: ElementTree.Element | None, key: str, default: tuple, path: str, faults: Faults
) -> np.ndarray:
    """The numbers of an attribute; reports text of another shape."""
    text = element.get(key) if element is not None else None
    if text is None:
        return np.array(default, float)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.size != len(default) or not np.all(np.abs(values) <= LARGEST):
        several = "s" if len(default) > 1 else ""
        faults.add(
            f"{path}.{key}", text, f"{len(default)} finite number{several} up to {LARGEST:g}"
        )
        return np.array(default, float)
    return values
