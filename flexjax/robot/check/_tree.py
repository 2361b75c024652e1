"""Rules between the parts: unique names, a tree rooted at the ground, and the plane z = 0."""

from collections import Counter

from flexjax.robot.check._joint import GROUND
from flexjax.robot.parts._fault import Faults, items, names_of, numbers, shown

LONGEST = 1000  # characters of a name: the search for similar names takes time as the square
NOT_PLANAR = ("universal", "spherical", "free")


def check_names(faults: Faults, document: dict) -> None:
    for key in ("links", "joints", "payloads", "sensors"):
        seen: set[str] = set()
        for path, item in items(document, key):
            name = item.get("name")
            if not isinstance(name, str):
                continue
            if name in seen:
                remedy = "Joints, sensors and paths refer to names. Rename one of them."
                faults.add(f"{path}.name", name, f"a name that is unique among the {key}", remedy)
            seen.add(name)
            if not name.strip() or name.isdigit() or any(c in name for c in ".*\n\t"):
                faults.add(
                    f"{path}.name",
                    name,
                    "a name that is not empty, not a bare number and has no dot or star",
                    "Paths are written with dots.",
                )
            elif len(name) > LONGEST or not name.isprintable():
                faults.add(
                    f"{path}.name",
                    name,
                    f"a name of at most {LONGEST} printable characters",
                    "It is shown in tables, figures and on terminals.",
                )
            if key == "links" and name == GROUND:
                faults.add(
                    f"{path}.name",
                    name,
                    "another name",
                    "ground is the name of the fixed world.",
                )


def check_tree(faults: Faults, document: dict) -> None:
    """Every link is the child of exactly one tree joint, and its ancestors lead to the ground."""
    links = Counter(names_of(document, "links"))
    if isinstance(document.get("links", []), list) and not document.get("links"):
        faults.add("links", [], "at least one link")
    joints = [
        (path, joint)
        for path, joint in items(document, "joints")
        if isinstance(joint.get("child"), str)
    ]
    parent_of: dict[str, str] = {}
    for path, joint in joints:
        child = joint["child"]
        if joint.get("loop", False) is not False or child not in links:
            continue
        if child in parent_of:
            remedy = "If the joint closes a kinematic loop, set loop = true on it."
            faults.add(f"{path}.child", child, "a link that is no other joint's child", remedy)
        elif isinstance(joint.get("parent"), str):
            parent_of[child] = joint["parent"]
    reported: set[str] = set()
    grounded: set[str] = set()  # whose ancestors are known to lead out of every cycle
    for path, link in items(document, "links"):
        name = link.get("name")
        if not isinstance(name, str) or links[name] > 1 or name == GROUND:
            continue
        if name not in parent_of:
            loose = [joint for _, joint in joints if joint["child"] == name]
            remedy = (
                "All its joints close loops. Remove loop = true from one of them."
                if loose
                else f"Add a joint with child = {shown(name)}."
            )
            faults.add(path, None, "a joint whose child is this link", remedy)
            continue
        if name in reported or name in grounded:
            continue
        seen, at = {name: None}, parent_of[name]
        while at in parent_of and at not in seen and at not in grounded:
            seen[at] = None
            at = parent_of[at]
        if at not in seen:
            grounded.update(seen)
        elif at not in reported:
            reported.update(seen)
            chain = " <- ".join([*seen, at])
            remedy = "In a cycle, connect one link to the ground and set loop = true on one joint."
            faults.add(path, chain, "ancestors that lead to the ground", remedy)


def check_planar(faults: Faults, document: dict) -> None:
    """The rules of a planar robot; a file without ``planar`` is planar if it satisfies them all."""
    remedy = "Set planar = false, or leave it out."
    for path, joint in items(document, "joints"):
        kind = joint.get("type")
        if kind in NOT_PLANAR:
            faults.add(
                f"{path}.type",
                kind,
                "a joint that moves in the plane z = 0 (planar = true)",
                remedy,
            )
        axis = numbers(joint.get("axis"))
        if kind == "revolute" and axis is not None and any(axis[:2]):
            faults.add(f"{path}.axis", axis, "an axis along z (planar = true)", remedy)
        if kind == "prismatic" and axis is not None and any(axis[2:]):
            faults.add(f"{path}.axis", axis, "an axis in the plane z = 0 (planar = true)", remedy)
        offset, rotation = numbers(joint.get("offset")), numbers(joint.get("rotation"))
        if offset is not None and any(offset[2:]):
            faults.add(f"{path}.offset", offset, "an offset with z = 0 (planar = true)", remedy)
        if rotation is not None and any(rotation[:2]):
            faults.add(f"{path}.rotation", rotation, "a rotation about z (planar = true)", remedy)
    for path, link in items(document, "links"):
        curvature = numbers(link.get("curvature"))
        if curvature is not None and any(curvature[:2]):
            faults.add(
                f"{path}.curvature",
                curvature,
                "no twist and no curvature about y (planar = true)",
                remedy,
            )


def is_planar(document: dict) -> bool:
    faults = Faults()
    check_planar(faults, document)
    return not faults
