"""Rules for one joint: type, parent and child, axes, hardware, angles, home."""

import math

import numpy as np

from flexjax.robot.parts._choices import JOINT_DOFS
from flexjax.robot.parts._fault import (
    UNKNOWN,
    Faults,
    is_filtered,
    items,
    names_of,
    number,
    numbers,
    one_of,
)
from flexjax.robot.parts._fields import FULL_ROTATION, SMALLER

GROUND = "ground"
FRICTIONS = ("friction", "output_friction", "spring_friction")
SPRINGS = ("backlash", "hardening")  # need a spring


def check_joint(faults: Faults, path: str, joint: dict, document: dict) -> None:
    kind = joint.get("type")
    if isinstance(kind, str) and kind not in JOINT_DOFS:
        faults.add(f"{path}.type", kind, f"one of {', '.join(JOINT_DOFS)}")
    links = names_of(document, "links")
    for key in ("parent", "child"):
        name = joint.get(key)
        if isinstance(name, str) and name not in links and not (key == "parent" and name == GROUND):
            faults.add(
                f"{path}.{key}",
                name,
                f"the name of a link{' or ground' if key == 'parent' else ''} ({one_of(links)})",
            )
    if joint.get("parent") == joint.get("child") and isinstance(joint.get("child"), str):
        faults.add(f"{path}.child", joint["child"], "another link than the parent")
    loop, at = joint.get("loop", False), joint.get("child_at", "base")
    if isinstance(at, str) and at not in ("base", "tip"):
        faults.add(f"{path}.child_at", at, "base or tip")
    elif at == "tip" and loop is False:
        faults.add(
            f"{path}.child_at",
            at,
            "base for a joint of the tree",
            "Only a joint with loop = true may end at the child's tip.",
        )
    if not isinstance(kind, str) or kind not in JOINT_DOFS:
        return
    _check_axes(faults, path, joint, document)
    _check_hardware(faults, path, joint)
    _check_angles(faults, path, joint)
    _check_home(faults, path, joint, document)


def _check_axes(faults: Faults, path: str, joint: dict, document: dict) -> None:
    axis, axis2 = numbers(joint.get("axis")), numbers(joint.get("axis2"))
    for key, vector in (("axis", axis), ("axis2", axis2)):
        if vector is not None and len(vector) == 3 and not any(vector):
            faults.add(
                f"{path}.{key}", vector, "a vector other than zero", "For example [0, 0, 1]."
            )
    if joint["type"] == "universal":
        if "axis2" not in joint and not is_filtered(document):
            faults.add(
                f"{path}.axis2",
                None,
                "the second axis of a universal joint",
                "For example axis2 = [0, 1, 0].",
            )
        if axis and axis2 and len(axis) == len(axis2) == 3 and any(axis) and any(axis2):
            scale = np.linalg.norm(axis) * np.linalg.norm(axis2)
            if np.linalg.norm(np.cross(axis, axis2)) < 1e-6 * scale:
                faults.add(f"{path}.axis2", axis2, "an axis that is not parallel to axis")
    elif "axis2" in joint:
        faults.add(
            f"{path}.axis2",
            joint["axis2"],
            f"no second axis on a {joint['type']} joint",
            "Only a universal joint has two axes.",
        )


def _check_hardware(faults: Faults, path: str, joint: dict) -> None:
    kind = joint["type"]
    if JOINT_DOFS[kind] == 0:
        for key in ("stiffness", *SPRINGS, "damping", *FRICTIONS, "motor", "home"):
            if key in joint:
                faults.add(
                    f"{path}.{key}",
                    joint[key],
                    f"no {key} on a fixed joint",
                    f"Use a revolute joint, or remove {key}.",
                )
    _check_spring(faults, path, joint)
    _check_friction(faults, path, joint)
    stops = joint.get("stops")
    if stops is not None and stops is not UNKNOWN and JOINT_DOFS[kind] != 1:
        faults.add(
            f"{path}.stops",
            stops,
            f"no end stops on a {kind} joint",
            "Only joints with one coordinate have end stops.",
        )
    if isinstance(stops, dict):
        for small, large, share in SMALLER["Stops"]:
            lower, upper = number(stops.get(small)), number(stops.get(large))
            if lower is not None and upper is not None and lower >= share * upper:
                faults.add(
                    f"{path}.stops.{small}",
                    lower,
                    f"less than {large} ({upper:g})",
                    "Swap the two.",
                )


def _check_spring(faults: Faults, path: str, joint: dict) -> None:
    for key in SPRINGS:
        if key in joint and "stiffness" not in joint and JOINT_DOFS[joint["type"]]:
            remedy = f"Give the joint a stiffness, or remove {key}."
            faults.add(
                f"{path}.{key}", joint[key], f"no {key} on a joint without stiffness", remedy
            )
    for small, large, share in SMALLER["Joint"]:
        if small not in joint:
            continue
        if large not in joint:
            faults.add(f"{path}.{large}", None, f"{large} with {small}", "Give it too.")
        low, high = number(joint[small]), number(joint.get(large))
        if low is not None and high is not None and low >= share * high:
            faults.add(f"{path}.{small}", low, f"less than {large} ({high:g})")


def _check_friction(faults: Faults, path: str, joint: dict) -> None:
    for key in FRICTIONS[1:]:
        if key in joint and "stiffness" not in joint and JOINT_DOFS[joint["type"]]:
            faults.add(
                f"{path}.{key}",
                joint[key],
                f"no {key} on a joint without stiffness",
                "A rigid joint has one side: use friction, or give the joint a stiffness.",
            )
    for key in FRICTIONS:
        friction = joint.get(key)
        if not isinstance(friction, dict):
            continue
        if ("breakaway" in friction) != ("stribeck" in friction):
            missing = "stribeck" if "breakaway" in friction else "breakaway"
            faults.add(
                f"{path}.{key}.{missing}",
                None,
                "breakaway and stribeck together",
                f"Give {missing} too, or neither.",
            )
        if "bristle_damping" in friction and "bristle" not in friction:
            faults.add(
                f"{path}.{key}.bristle", None, "bristle with bristle_damping", "Give it too."
            )
        low, high = number(friction.get("coulomb")), number(friction.get("breakaway"))
        if low is not None and high is not None and high < low:
            faults.add(f"{path}.{key}.breakaway", high, f"at least coulomb ({low:g})")


def _check_angles(faults: Faults, path: str, joint: dict) -> None:
    """Refuse angles far beyond one full rotation: they are probably in degrees."""
    rotates = joint["type"] in ("revolute", "universal", "spherical")
    stops = joint.get("stops")
    stops = stops if isinstance(stops, dict) else {}
    ends = [("stops.lower", stops.get("lower")), ("stops.upper", stops.get("upper"))]
    angles = [("rotation", joint.get("rotation"), FULL_ROTATION)]
    if rotates:
        angles += [("home", joint.get("home"), FULL_ROTATION)]
        angles += [(key, value, 4 * FULL_ROTATION) for key, value in ends]
    for key, value, most in angles:
        known = numbers(value if isinstance(value, list) else [value])
        if known and math.hypot(*known) > most:
            radians = [math.radians(v) for v in known]
            write = radians if isinstance(value, list) else radians[0]
            remedy = f"Angles are in rad; {value} looks like degrees: write {write}."
            count = f"{most / (2 * math.pi):.0f} full rotation{'s' * (most > FULL_ROTATION)}"
            faults.add(f"{path}.{key}", value, f"an angle of at most {count}", remedy)


def _check_home(faults: Faults, path: str, joint: dict, document: dict) -> None:
    kind, home = joint["type"], joint.get("home")
    dofs = JOINT_DOFS[kind]
    if home is None or home is UNKNOWN or dofs == 0:
        return
    size = len(home) if isinstance(home, list) else 1
    if size != dofs:
        faults.add(
            f"{path}.home", home, f"{dofs} number{'s' if dofs > 1 else ''} for a {kind} joint"
        )
        return
    value = numbers(home if isinstance(home, list) else [home])
    # Only a prismatic joint without axis has a free length as coordinate.
    owner = (
        joint.get("parent")
        if kind == "sliding"
        else joint.get("child")
        if kind == "prismatic" and "axis" not in joint
        else None
    )
    length = next(
        (
            number(link.get("length"))
            for _, link in items(document, "links")
            if link.get("name") == owner
        ),
        None,
    )
    if (
        owner is not None
        and value is not None
        and length is not None
        and not 0 <= value[0] <= length * (1 + 1e-6)
    ):
        what = "a contact on the parent" if kind == "sliding" else "a free length of the child"
        faults.add(
            f"{path}.home",
            home,
            f"{what}, from 0 to {length:g} m",
            f"Link {owner!r} is {length:g} m long.",
        )
