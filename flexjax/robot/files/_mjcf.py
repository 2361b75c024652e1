"""Imports arms from MJCF, the format of MuJoCo; a flexible block replaces each link that deforms.

Bodies become links and their joints (hinge, slide, ball, free, or none) become joints. What changes
the motion and has no counterpart is refused: equality constraints, tendons, springs, several
joints in one body, and included files.
"""

import dataclasses
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from typing import Any, SupportsFloat

import numpy as np
from scipy.spatial.transform import Rotation

from flexjax.robot._robot import Robot
from flexjax.robot.files._mjcf_inertia import geom_inertial, inertial_of, rotation_of
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

TYPES = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
WORLD = "world"
# Elements that change the motion and that a robot of flexjax does not have.
REFUSED = {
    "equality": "constraints between bodies",
    "tendon": "tendons",
    "include": "other files",
    "deformable": "deformable bodies",
}
# Attributes of joints with an effect that is not imported.
NO_COUNTERPART = {
    "stiffness": "a spring between parent and child; remove it, or add it as a PD controller",
    "ref": "an angle offset; set the pose of the body instead",
    "margin": "a margin of its limits",
}


def load_mjcf(
    path: str | os.PathLike[str],
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] | None = None,
) -> Robot:
    """Load an arm from an MJCF file (MuJoCo).

    Damping, dry friction (``frictionloss``), rotor inertia (``armature``) and force limits of
    joints are imported; ranges are ignored, because an end stop needs a stiffness, and so are
    contacts, actuators and sensors. Masses come from ``<inertial>``, or from the geoms of a body
    (box, sphere, capsule, cylinder, ellipsoid).

    Arguments:
        path: path of the file.
        flexible: the links that deform, as ``{body: {"section": ..., "material": ...}}`` with
            blocks as in a robot file. By default a link is as long as the distance to the next
            joint.
        gravity: acceleration of gravity [m/s2]; by default that of the file.

    Returns:
        The robot.

    Raises:
        RobotError: the file cannot be read or has faults, which are listed together.

    >>> import flexjax as fx
    >>> beam = {"section": {"shape": "circle", "diameter": 0.02}, "material": "steel"}
    >>> robot = fx.load_mjcf("arm.xml", flexible={"forearm": beam})  # doctest: +SKIP
    """
    where = f"MJCF file {str(path)!r}"
    text = read_xml(path, where)
    return robot_from_mjcf(text, flexible=flexible, gravity=gravity, where=where)


def robot_from_mjcf(
    text: str | bytes,
    *,
    flexible: dict[str, dict] | None = None,
    gravity: Iterable[SupportsFloat] | None = None,
    where: str = "MJCF",
) -> Robot:
    """:func:`load_mjcf` for the text of a file."""
    root = parse_xml(text, "mujoco", "MJCF", where)
    faults, flexible = Faults(), flexible or {}
    for tag, what in REFUSED.items():
        for element in root.iter(tag):
            if tag == "include" or len(element):
                faults.add(tag, element.get("file") or tag, f"no {what}", "Remove the element.")
    reader = _Reader(root, faults)
    for world in root.findall("worldbody"):
        for body in world.findall("body"):
            reader.read(body, WORLD, np.zeros(3), "")
    if not reader.joints:
        faults.add("worldbody", None, "at least one <body>")
    links = {WORLD: RawLink(WORLD, lambda faults: None), **reader.links}
    flexible_faults(flexible, links, faults)
    option = root.find("option")
    found = numbers_of(option, "gravity", (0.0, 0.0, -9.81), "option", faults)
    faults.raise_as(where)
    return robot_from_tree(
        root.get("model") or "mjcf",
        links,
        reader.joints,
        WORLD,
        flexible=flexible,
        gravity=found if gravity is None else gravity,
        others={},
        where=where,
    )


class _Reader:
    """Collects links and joints from the tree of bodies."""

    def __init__(self, root: ElementTree.Element, faults: Faults):
        self.faults = faults
        compiler = root.find("compiler")
        given = {} if compiler is None else compiler.attrib
        self.angle = 1.0 if given.get("angle", "degree") == "radian" else np.pi / 180
        self.sequence = given.get("eulerseq", "xyz")
        if given.get("coordinate", "local") != "local":
            faults.add("compiler.coordinate", given["coordinate"], "local")
        if len(self.sequence) != 3 or not any(set(self.sequence) <= set(x) for x in ("xyz", "XYZ")):
            faults.add("compiler.eulerseq", self.sequence, "three of the letters xyz, or of XYZ")
            self.sequence = "xyz"
        self.from_geoms = given.get("inertiafromgeom", "auto")
        self.classes: dict[str, dict[str, dict[str, str]]] = {"": {}}
        for default in root.findall("default"):
            self._defaults(default, {}, default.get("class", "main"))
        self.links: dict[str, RawLink] = {}
        self.joints: list[RawJoint] = []

    def _defaults(self, element: ElementTree.Element, parent: dict, name: str) -> None:
        """Attributes of joints and geoms by class; a class inherits from the one around it."""
        own = {tag: dict(values) for tag, values in parent.items()}
        for child in element:
            if child.tag in ("joint", "geom"):
                own[child.tag] = {**own.get(child.tag, {}), **child.attrib}
        self.classes[name] = own
        if name == "main" or "main" not in self.classes:
            self.classes[""] = own
        for child in element.findall("default"):
            self._defaults(child, own, child.get("class", ""))

    def element(self, element: ElementTree.Element, childclass: str) -> ElementTree.Element:
        """The element with the defaults of its class."""
        name = element.get("class", childclass)
        if name not in self.classes:
            known = ", ".join(key for key in self.classes if key) or "none is defined"
            self.faults.add(f"{element.tag}.class", name, f"the name of a class ({known})")
        defaults = self.classes.get(name, {}).get(element.tag, {})
        return ElementTree.Element(element.tag, {**defaults, **element.attrib})

    def read(
        self, body: ElementTree.Element, parent: str, shift: np.ndarray, childclass: str
    ) -> None:
        """One body and those inside it; ``shift``: the parent's joint in its body's frame."""
        faults = self.faults
        name = body.get("name") or f"body{len(self.links) + 1}"
        if name in self.links or name == WORLD:
            faults.add(f"body.{name}", name, "a name that no other body has")
            return
        childclass = body.get("childclass", childclass)
        place = numbers_of(body, "pos", (0, 0, 0), f"body.{name}", faults)
        turned = rotation_of(body, f"body.{name}", self.angle, self.sequence, faults)
        found = [self.element(joint, childclass) for joint in body.findall("joint")]
        found += [ElementTree.Element("joint", {"type": "free"}) for _ in body.findall("freejoint")]
        if len(found) > 1:
            names = ", ".join(joint.get("name", "?") for joint in found)
            remedy = "Put each joint into a body of its own, with an <inertial>."
            faults.add(f"body.{name}.joint", names, "at most one joint in a body", remedy)
        joint = found[0] if found else None
        at = np.zeros(3)
        if joint is not None and joint.get("type") != "free":
            at = numbers_of(joint, "pos", (0, 0, 0), f"body.{name}.joint", faults)
        geoms = [self.element(geom, childclass) for geom in body.findall("geom")]
        self.links[name] = RawLink(name, self._inertial(name, body, geoms, at))
        self.joints.append(
            dataclasses.replace(
                self._joint(name, joint),
                parent=parent,
                xyz=place + turned.apply(at) - shift,
                rotation=turned,
            )
        )
        for child in body.findall("body"):
            self.read(child, name, at, childclass)

    def _inertial(
        self,
        name: str,
        body: ElementTree.Element,
        geoms: list[ElementTree.Element],
        at: np.ndarray,
    ):
        """The mass properties about the joint, read when they are needed."""
        element = body.find("inertial")

        def read(faults: Faults) -> Inertial | None:
            path = f"link.{name}"
            if element is not None and self.from_geoms != "true":
                found = inertial_of(element, path, self.angle, self.sequence, faults)
            else:
                found = geom_inertial(geoms, path, self.angle, self.sequence, faults)
            return None if found is None else found._replace(com=found.com - at)

        return read

    def _joint(self, body: str, joint: ElementTree.Element | None) -> RawJoint:
        """The joint of a body, without its place; fixed if it has none."""
        if joint is None:
            still = np.array([0.0, 0.0, 1.0])
            return RawJoint(
                f"{body}-fixed", "fixed", "", body, np.zeros(3), Rotation.identity(), still, {}
            )
        faults, kind = self.faults, joint.get("type", "hinge")
        name = joint.get("name") or f"{body}-joint"
        path = f"joint.{name}"
        if kind not in TYPES:
            faults.add(f"{path}.type", kind, f"one of {', '.join(TYPES)}")
        for key, what in NO_COUNTERPART.items():
            if numbers_of(joint, key, (0.0,), path, faults)[0] != 0:
                faults.add(f"{path}.{key}", joint.get(key), "zero", f"It is {what}.")
        axis = numbers_of(joint, "axis", (0, 0, 1), path, faults)
        return RawJoint(
            name,
            TYPES.get(kind, kind),
            "",
            body,
            np.zeros(3),
            Rotation.identity(),
            axis,
            self._hardware(joint, kind, path),
        )

    def _hardware(self, joint: ElementTree.Element, kind: str, path: str) -> dict[str, Any]:
        number = lambda key: float(numbers_of(joint, key, (0.0,), path, self.faults)[0])
        damping, friction, armature = map(number, ("damping", "frictionloss", "armature"))
        low, high = numbers_of(joint, "actuatorfrcrange", (0.0, 0.0), path, self.faults)
        if low != -high:
            expected = "a range that is symmetric about zero"
            self.faults.add(f"{path}.actuatorfrcrange", [low, high], expected)
        motor = {"rotor": armature} if armature else {}
        motor |= {"limit": float(high)} if high > 0 else {}
        if (motor or friction) and kind in ("ball", "free"):
            self.faults.add(path, kind, "no armature, friction or limit on a ball or free joint")
        block: dict[str, Any] = {"damping": damping} if damping else {}
        block |= {"friction": {"coulomb": friction}} if friction else {}
        return block | ({"motor": motor} if motor else {})
