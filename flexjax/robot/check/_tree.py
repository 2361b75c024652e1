"""What must hold between the parts: unique names, a tree that hangs on the ground, and, for planar robots, the plane
z = 0."""

from flexjax.robot._fault import Faults, items, names_of, numbers
from flexjax.robot.check._joint import GROUND

NOT_PLANAR = ("universal", "spherical", "free")


def check_names(faults: Faults, document: dict) -> None:
    for key in ("links", "joints", "payloads", "sensors"):
        seen: set[str] = set()
        for path, item in items(document, key):
            name = item.get("name")
            if not isinstance(name, str):
                continue
            if name in seen:
                mend = "Names are how joints, sensors and paths find things."
                faults.add(f"{path}.name", name, f"a name that no other of the {key} has", mend)
            seen.add(name)
            if not name.strip() or name.isdigit() or any(c in name for c in ".*\n\t"):
                faults.add(
                    f"{path}.name",
                    name,
                    "a name that is not empty, not a bare number and has no dot or star",
                    "Paths are written with dots.",
                )
            if key == "links" and name == GROUND:
                faults.add(
                    f"{path}.name",
                    name,
                    "another name",
                    "ground is the fixed world that the first joint hangs on.",
                )


def check_tree(faults: Faults, document: dict) -> None:
    """Every link is the child of exactly one joint of the tree, and its parents lead to the ground."""
    links = names_of(document, "links")
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
            mend = "If it closes a chain, set loop = true on the joint that closes it."
            faults.add(
                f"{path}.child",
                child,
                "a link that is not the child of another joint already",
                mend,
            )
        elif isinstance(joint.get("parent"), str):
            parent_of[child] = joint["parent"]
    told: set[str] = set()
    for path, link in items(document, "links"):
        name = link.get("name")
        if not isinstance(name, str) or links.count(name) > 1 or name == GROUND:
            continue
        if name not in parent_of:
            loose = [joint for _, joint in joints if joint["child"] == name]
            mend = (
                "Its only joints close loops: one must belong to the tree."
                if loose
                else f"Add a joint with child = {name!r}."
            )
            faults.add(path, None, "a joint that this link is the child of", mend)
            continue
        seen, at = [name], parent_of[name]
        while at in parent_of and at not in seen:
            seen.append(at)
            at = parent_of[at]
        if at in seen and at not in told:
            told.update(seen)
            chain = " <- ".join([*seen, at])
            faults.add(
                path,
                chain,
                "parents that lead to the ground",
                "This is a cycle: hang one link on the ground and set loop = true on one joint.",
            )


def check_planar(faults: Faults, document: dict) -> None:
    """The rules of a robot in the plane z = 0; a file without ``planar`` is planar if it breaks none of them."""
    mend = "Set planar = false, or leave it out."
    for path, joint in items(document, "joints"):
        kind = joint.get("type")
        if kind in NOT_PLANAR:
            faults.add(
                f"{path}.type", kind, "a joint that moves in the plane z = 0 (planar = true)", mend
            )
        axis = numbers(joint.get("axis"))
        if kind == "revolute" and axis is not None and any(axis[:2]):
            faults.add(f"{path}.axis", axis, "an axis along z (planar = true)", mend)
        if kind == "prismatic" and axis is not None and any(axis[2:]):
            faults.add(f"{path}.axis", axis, "a shift in the plane z = 0 (planar = true)", mend)
        offset, rotation = numbers(joint.get("offset")), numbers(joint.get("rotation"))
        if offset is not None and any(offset[2:]):
            faults.add(f"{path}.offset", offset, "an offset with z = 0 (planar = true)", mend)
        if rotation is not None and any(rotation[:2]):
            faults.add(f"{path}.rotation", rotation, "a rotation about z (planar = true)", mend)
    for path, link in items(document, "links"):
        curvature = numbers(link.get("curvature"))
        if curvature is not None and any(curvature[:2]):
            faults.add(
                f"{path}.curvature",
                curvature,
                "no twist and no curvature about y (planar = true)",
                mend,
            )


def is_planar(document: dict) -> bool:
    faults = Faults()
    check_planar(faults, document)
    return not faults
