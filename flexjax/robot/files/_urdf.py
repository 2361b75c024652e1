"""Imports URDF files; a flexible block replaces each link that deforms.

The base link of the file becomes the ground. The local x axis of a link points from its own joint
to the joint of its first child (for a last link: to its centre of mass), as a flexible link
requires. Axes, inertias and offsets are rotated accordingly.
"""

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any, SupportsFloat
from xml.parsers import expat

import numpy as np
from jax.typing import ArrayLike
from scipy.spatial.transform import Rotation

from flexjax._files import FileError, read_bounded
from flexjax.robot._robot import GROUND, Robot
from flexjax.robot.files._load import robot_from_dict
from flexjax.robot.parts._fault import Faults, RobotError

TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
}
LARGEST = 1e12  # of any number in the file
TINY = 1e-9  # m; joints closer than this coincide


def load_urdf(
    path: str | os.PathLike,
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] = (0.0, 0.0, -9.81),
) -> Robot:
    """Load a robot from a URDF file.

    Effort limits become limits of the motors. Position limits are ignored, because an end stop
    needs a stiffness.

    Arguments:
        path: path of the URDF file.
        flexible: the links that deform, as ``{link: {"section": ..., "material": ...}}`` with
            blocks as in a robot file. By default a link is as long as the distance to the next
            joint.
        gravity: acceleration of gravity [m/s2]; in URDF the z axis points up.

    Returns:
        The robot.

    >>> import flexjax as fx
    >>> beam = {"section": {"shape": "circle", "diameter": 0.02}, "material": "steel"}
    >>> robot = fx.load_urdf("arm.urdf", flexible={"forearm": beam})  # doctest: +SKIP
    """
    where = f"URDF file {str(path)!r}"
    try:
        text = read_bounded(Path(path), where)
    except OSError as error:
        raise RobotError(where, [f"cannot be read ({error.strerror})"]) from None
    except FileError as error:
        raise RobotError(where, [str(error).removeprefix(f"{where}: ")]) from None
    return robot_from_urdf(text, flexible=flexible, gravity=gravity, where=where)


def robot_from_urdf(
    text: str | bytes,
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] = (0.0, 0.0, -9.81),
    where: str = "URDF",
) -> Robot:
    """:func:`load_urdf` for the text of a file."""
    root = _parse(text, where)
    faults, flexible = Faults(), flexible or {}
    links = {link.get("name", ""): link for link in root.findall("link")}
    joints = [_joint(joint, links, faults) for joint in root.findall("joint")]
    for name in flexible:
        if name not in links:
            faults.add(f"flexible.{name}", name, f"the name of a link ({', '.join(links)})")
    children = [joint["child"] for joint in joints]
    bases = [name for name in links if name not in children]
    if len(bases) != 1:
        faults.add(
            "robot",
            ", ".join(bases) or None,
            "exactly one link that is not the child of a joint (the base)",
        )
    faults.raise_as(where)
    joints = [j for j in joints if not _is_frame(j, joints, links, flexible)]
    frames = {
        name: _frame(
            links[name], [j for j in joints if j["parent"] == name], flexible.get(name, {})
        )
        for name in links
    }
    frames[bases[0]] = (Rotation.identity(), 0.0)  # the ground keeps the axes of the file
    kept = [name for name in links if name in [j["child"] for j in joints]]
    document: dict[str, Any] = {
        "schema": 1,
        "name": root.get("name") or "urdf",
        "gravity": [float(g) for g in gravity],
    }
    document["links"] = [
        _link_block(links[name], frames[name], flexible.get(name), faults) for name in kept
    ]
    document["joints"] = [_joint_block(joint, bases[0], frames) for joint in joints]
    faults.raise_as(where)
    return robot_from_dict(document, where=where)


def _parse(text: str | bytes, where: str) -> ElementTree.Element:
    """The root element.

    Document types and entities are refused: they can read files and exhaust memory, and no URDF
    needs them.
    """

    def refuse(*_):
        found = "contains a <!DOCTYPE ...> or <!ENTITY ...> declaration"
        raise RobotError(where, [f"{found}; expected plain URDF without declarations. Remove it."])

    guard = expat.ParserCreate()
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
    if root.tag != "robot":
        raise RobotError(where, [f"has the root element <{root.tag}>; expected <robot>"])
    return root


def _numbers(
    element: ElementTree.Element | None, key: str, default: tuple, path: str, faults: Faults
) -> np.ndarray:
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


def _pose(
    element: ElementTree.Element | None, path: str, faults: Faults
) -> tuple[np.ndarray, Rotation]:
    origin = element.find("origin") if element is not None else None
    xyz = _numbers(origin, "xyz", (0, 0, 0), f"{path}.origin", faults)
    rpy = _numbers(origin, "rpy", (0, 0, 0), f"{path}.origin", faults)
    if np.any(np.abs(rpy) > 2 * np.pi + 1e-6):
        faults.add(
            f"{path}.origin.rpy",
            rpy.tolist(),
            "angles of at most one full rotation",
            "Angles are in rad; these look like degrees.",
        )
    return xyz, Rotation.from_euler("xyz", rpy)


def _joint(joint: ElementTree.Element, links: dict, faults: Faults) -> dict[str, Any]:
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
    axis = _numbers(joint.find("axis"), "xyz", (1, 0, 0), f"{path}.axis", faults)
    dynamics, limit = joint.find("dynamics"), joint.find("limit")
    return {
        "name": name,
        "type": TYPES.get(kind, kind),
        **ends,
        "xyz": xyz,
        "rotation": rotation,
        "axis": axis,
        "damping": float(_numbers(dynamics, "damping", (0,), f"{path}.dynamics", faults)[0]),
        "friction": float(_numbers(dynamics, "friction", (0,), f"{path}.dynamics", faults)[0]),
        "effort": float(_numbers(limit, "effort", (0,), f"{path}.limit", faults)[0]),
    }


def _is_frame(joint: dict, joints: list[dict], links: dict, flexible: dict) -> bool:
    """Whether the child is only a frame (tool centre, camera): fixed, last, without mass.

    Such a link is omitted.
    """
    name = joint["child"]
    last = all(j["parent"] != name for j in joints)
    return (
        joint["type"] == "fixed"
        and last
        and links[name].find("inertial") is None
        and name not in flexible
    )


def _frame(link: ElementTree.Element, outgoing: list[dict], block: dict) -> tuple[Rotation, float]:
    """Rotation from the link's own axes (x towards the next joint) to the file's; its length."""
    unread = Faults()  # _link_block reports them
    ends = [j["xyz"] for j in outgoing if np.linalg.norm(j["xyz"]) > TINY]
    if not ends and not outgoing:
        com, _ = _pose(link.find("inertial"), "", unread)
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


def _link_block(
    link: ElementTree.Element, frame: tuple[Rotation, float], block: dict | None, faults: Faults
) -> dict:
    name, (rotation, length) = link.get("name", ""), frame
    path = f"link.{name}"
    if block is not None:
        if length == 0:
            faults.add(
                f"flexible.{name}.length",
                None,
                "the length of the link",
                "The file does not give the end of this link.",
            )
        return {"name": name, "length": length, **block}
    inertial = link.find("inertial")
    if inertial is None:
        faults.add(
            f"{path}.inertial",
            None,
            "mass and inertia",
            "Add <inertial>, or give the link in flexible=.",
        )
        return {"name": name}
    com, axes = _pose(inertial, f"{path}.inertial", faults)
    mass = float(_numbers(inertial.find("mass"), "value", (0,), f"{path}.inertial.mass", faults)[0])
    if inertial.find("mass") is None:
        faults.add(f"{path}.inertial.mass", None, "a mass")
    xx, yy, zz, xy, xz, yz = (
        float(_numbers(inertial.find("inertia"), key, (0,), f"{path}.inertial.inertia", faults)[0])
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    R = rotation.inv().as_matrix() @ axes.as_matrix()
    inertia = _clean(R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T)
    values = [inertia[i][j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return {
        "name": name,
        "length": length,
        "rigid": True,
        "body": {"mass": mass, "com": _clean(rotation.inv().apply(com)), "inertia": values},
    }


def _joint_block(joint: dict, base: str, frames: dict) -> dict:
    parent_axes, parent_length = frames[joint["parent"]]
    child_axes, _ = frames[joint["child"]]
    offset = _clean(parent_axes.inv().apply(joint["xyz"]) - [parent_length, 0, 0])
    rotation = _clean((parent_axes.inv() * joint["rotation"] * child_axes).as_rotvec())
    block = {
        "name": joint["name"],
        "type": joint["type"],
        "parent": GROUND if joint["parent"] == base else joint["parent"],
        "child": joint["child"],
    }
    if joint["type"] in ("revolute", "prismatic"):
        block["axis"] = _clean(child_axes.inv().apply(joint["axis"]))
    block |= {"offset": offset} if any(offset) else {}
    block |= {"rotation": rotation} if any(rotation) else {}
    if joint["type"] != "fixed":
        block |= {"damping": joint["damping"]} if joint["damping"] else {}
        block |= {"friction": {"coulomb": joint["friction"]}} if joint["friction"] else {}
        block |= {"motor": {"limit": joint["effort"]}} if joint["effort"] > 0 else {}
    return block


def _clean(values: ArrayLike) -> list:
    """Set rounding residues of rotations to zero, so that planar robots are found to be planar."""
    values = np.asarray(values)
    scale = max(np.max(np.abs(values)), 1e-300)
    return np.where(np.abs(values) < 1e-14 * max(scale, 1.0) + 1e-15 * scale, 0.0, values).tolist()
