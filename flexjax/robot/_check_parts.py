"""What must hold inside one link, one joint, one payload, one sensor."""

import math

import numpy as np

from flexjax.robot._fault import UNKNOWN, Faults, items, number, numbers
from flexjax.robot._fields import TURN, section_class
from flexjax.robot._joint import JOINT_DOFS, SENSOR_KINDS
from flexjax.robot._link import MATERIALS

GROUND = "ground"
ON_JOINT = ("encoder", "motor_encoder", "torque")
ONE_OF = "exactly one of section with material, constants, pieces, or (for a rigid link) body"


def names_of(document: dict, key: str) -> list[str]:
    return [item["name"] for _, item in items(document, key) if isinstance(item.get("name"), str)]


def _one_of(names) -> str:
    return ", ".join(names) if names else "there is none"


# ---- links ----------------------------------------------------------------------------------------------------------------------------


def check_link(faults: Faults, path: str, link: dict) -> None:
    given = [key for key in ("section", "constants", "pieces", "body") if key in link]
    if len(given) != 1:
        have = " and ".join(given) or ("material without section" if "material" in link else None)
        faults.add(path, have, ONE_OF, "Keep the one that describes the link and remove the others." if given else "Add one of them.")
    _check_beam(faults, path, link)
    length = number(link.get("length"))
    if length == 0 and "body" not in link:
        faults.add(f"{path}.length", 0.0, "a positive number", "Only a rigid link given by its body may have no length.")
    if "body" in link:
        if link.get("rigid", False) is False:
            faults.add(f"{path}.rigid", False, "true for a link given by its body", "Set rigid = true, or give section and material.")
        for key in ("section_end", "curvature", "damping", "material"):
            if key in link:
                faults.add(f"{path}.{key}", link[key], "nothing here for a link given by its body", f"Remove {key}.")
        _check_inertia(faults, f"{path}.body.inertia", link["body"])
    pieces = link.get("pieces")
    if isinstance(pieces, list):
        for key in ("section_end", "material"):
            if key in link:
                faults.add(f"{path}.{key}", link[key], "nothing here for a link made of pieces", f"Give {key} in the pieces.")
        for i, piece in enumerate(pieces):
            if isinstance(piece, dict):
                _check_piece(faults, f"{path}.pieces.{i}", piece)
        fractions = [number(piece.get("fraction")) if isinstance(piece, dict) else None for piece in pieces]
        known = [f for f in fractions if f is not None]
        if len(known) == len(pieces) and abs(sum(known) - 1) > 1e-6:
            faults.add(f"{path}.pieces", sum(known), "fractions that sum to 1", "Each fraction is a share of the link's length.")


def _check_piece(faults: Faults, path: str, piece: dict) -> None:
    given = [key for key in ("section", "constants") if key in piece]
    if len(given) != 1:
        faults.add(path, " and ".join(given) or None, "exactly one of section with material, or constants", "Every piece is described in full.")
    _check_beam(faults, path, piece)


def _check_beam(faults: Faults, path: str, beam: dict) -> None:
    """Section, taper and material of a link or a piece."""
    if "section" in beam and "material" not in beam:
        names = ", ".join(MATERIALS)
        faults.add(f"{path}.material", None, "a material for the section", f"Give E, rho and nu or G, or one of the names {names}.")
    if "section_end" in beam and "section" not in beam:
        faults.add(f"{path}.section_end", beam["section_end"], "a section to taper from", "Add section, or remove section_end.")
    if "constants" in beam and "material" in beam:
        faults.add(f"{path}.material", beam["material"], "no material beside constants", "Constants hold stiffness and mass already.")
    for key in ("section", "section_end"):
        _check_section(faults, f"{path}.{key}", beam.get(key))
    if "section" in beam and "section_end" in beam:
        shapes = [section_class(beam[key]) for key in ("section", "section_end")]
        if None not in shapes and shapes[0] is not shapes[1]:
            faults.add(f"{path}.section_end", shapes[1].shape, f"the shape of section ({shapes[0].shape})", "A taper keeps its shape.")
    material = beam.get("material")
    if isinstance(material, str) and material not in MATERIALS:
        faults.add(f"{path}.material", material, f"one of {', '.join(MATERIALS)}", "Or give numbers: { E = , nu = , rho = }.")
    if isinstance(material, dict) and "E" in material and ("nu" in material) == ("G" in material):
        have = "nu and G" if "nu" in material else None
        faults.add(f"{path}.material", have, "exactly one of nu and G", "Give Poisson's ratio nu or the shear modulus G.")


def _check_section(faults: Faults, path: str, section) -> None:
    if not isinstance(section, dict):
        return
    value = {key: number(v) for key, v in section.items()}
    cls = section_class(section)
    shape = cls.shape if cls else None
    limits = {"tube": [("wall", "diameter", 0.5)], "i": [("flange", "height", 0.5), ("web", "width", 1.0)]}
    for small, large, share in limits.get(shape or "", []):
        a, b = value.get(small), value.get(large)
        if a is not None and b is not None and a > 0 and b > 0 and a >= share * b:
            text = f"less than {'half ' if share == 0.5 else ''}the {large} ({b:g} m)"
            faults.add(f"{path}.{small}", a, text, "All sizes are in metres.")


def _check_inertia(faults: Faults, path: str, body) -> None:
    values = numbers(body.get("inertia")) if isinstance(body, dict) else None
    if values is None or len(values) != 6:
        return
    xx, yy, zz, xy, xz, yz = values
    lowest = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
    if lowest < -1e-6 * max(abs(v) for v in values):
        faults.add(path, values, "an inertia without negative principal value", "The order is xx, yy, zz, xy, xz, yz.")


# ---- joints ---------------------------------------------------------------------------------------------------------------------------


def check_joint(faults: Faults, path: str, joint: dict, document: dict) -> None:
    kind = joint.get("type")
    if isinstance(kind, str) and kind not in JOINT_DOFS:
        faults.add(f"{path}.type", kind, f"one of {', '.join(JOINT_DOFS)}")
    links = names_of(document, "links")
    for key in ("parent", "child"):
        name = joint.get(key)
        if isinstance(name, str) and name not in links and not (key == "parent" and name == GROUND):
            faults.add(f"{path}.{key}", name, f"the name of a link{' or ground' if key == 'parent' else ''} ({_one_of(links)})")
    if joint.get("parent") == joint.get("child") and isinstance(joint.get("child"), str):
        faults.add(f"{path}.child", joint["child"], "another link than the parent")
    loop, at = joint.get("loop", False), joint.get("child_at", "base")
    if isinstance(at, str) and at not in ("base", "tip"):
        faults.add(f"{path}.child_at", at, "base or tip")
    elif at == "tip" and loop is False:
        faults.add(f"{path}.child_at", at, "base for a joint of the tree", "Only a joint with loop = true may end at the child's tip.")
    if kind not in JOINT_DOFS:
        return
    _check_axes(faults, path, joint, document)
    _check_hardware(faults, path, joint)
    _check_angles(faults, path, joint)
    _check_home(faults, path, joint, document)


def _check_axes(faults: Faults, path: str, joint: dict, document: dict) -> None:
    axis, axis2 = numbers(joint.get("axis")), numbers(joint.get("axis2"))
    for key, vector in (("axis", axis), ("axis2", axis2)):
        if vector is not None and len(vector) == 3 and not any(vector):
            faults.add(f"{path}.{key}", vector, "a vector other than zero", "For example [0, 0, 1].")
    if joint["type"] == "universal":
        filtered = any("length" not in link for _, link in items(document, "links"))  # numbers taken out by a filter, not absent
        if "axis2" not in joint and not filtered:
            faults.add(f"{path}.axis2", None, "the second axis of a universal joint", "For example axis2 = [0, 1, 0].")
        if axis and axis2 and len(axis) == len(axis2) == 3 and any(axis) and any(axis2):
            if np.linalg.norm(np.cross(axis, axis2)) < 1e-6 * np.linalg.norm(axis) * np.linalg.norm(axis2):
                faults.add(f"{path}.axis2", axis2, "an axis that is not parallel to axis")
    elif "axis2" in joint:
        faults.add(f"{path}.axis2", joint["axis2"], f"no second axis on a {joint['type']} joint", "Only a universal joint has two.")


def _check_hardware(faults: Faults, path: str, joint: dict) -> None:
    kind = joint["type"]
    if JOINT_DOFS[kind] == 0:
        for key in ("stiffness", "damping", "friction", "motor", "home"):
            if key in joint:
                faults.add(f"{path}.{key}", joint[key], "nothing here on a fixed joint", "Use a revolute joint, or remove it.")
    stops = joint.get("stops")
    if stops is not None and stops is not UNKNOWN and JOINT_DOFS[kind] != 1:
        faults.add(f"{path}.stops", stops, f"no end stops on a {kind} joint", "Only joints with one coordinate have end stops.")
    if isinstance(stops, dict):
        lower, upper = number(stops.get("lower")), number(stops.get("upper"))
        if lower is not None and upper is not None and lower >= upper:
            faults.add(f"{path}.stops.lower", lower, f"less than upper ({upper:g})", "Swap the two.")


def _check_angles(faults: Faults, path: str, joint: dict) -> None:
    """Angles far beyond a turn are degrees in all likelihood."""
    turning = joint["type"] in ("revolute", "universal", "spherical")
    stops = joint.get("stops") if isinstance(joint.get("stops"), dict) else {}
    ends = [("stops.lower", stops.get("lower")), ("stops.upper", stops.get("upper"))]
    angles = [("rotation", joint.get("rotation"), TURN)]
    angles += [("home", joint.get("home"), TURN), *((key, value, 4 * TURN) for key, value in ends)] if turning else []
    for key, value, most in angles:
        known = numbers(value if isinstance(value, list) else [value])
        if known and math.hypot(*known) > most:
            radians = [math.radians(v) for v in known]
            mend = f"Angles are in rad; {value} looks like degrees: write {radians if isinstance(value, list) else radians[0]}."
            faults.add(f"{path}.{key}", value, f"an angle within {most / (2 * math.pi):.0f} turn{'s' if most > TURN else ''}", mend)


def _check_home(faults: Faults, path: str, joint: dict, document: dict) -> None:
    kind, home = joint["type"], joint.get("home")
    dofs = JOINT_DOFS[kind]
    if home is None or home is UNKNOWN or dofs == 0:
        return
    size = len(home) if isinstance(home, list) else 1
    if size != dofs:
        faults.add(f"{path}.home", home, f"{dofs} number{'s' if dofs > 1 else ''} for a {kind} joint")
        return
    value = numbers(home if isinstance(home, list) else [home])
    # A prismatic joint with an axis is a plain shift; without, its coordinate is a free length.
    owner = joint.get("parent") if kind == "sliding" else joint.get("child") if kind == "prismatic" and "axis" not in joint else None
    length = next((number(link.get("length")) for _, link in items(document, "links") if link.get("name") == owner), None)
    if owner is not None and value is not None and length is not None and not 0 <= value[0] <= length * (1 + 1e-6):
        what = "a contact on the parent" if kind == "sliding" else "a free length of the child"
        faults.add(f"{path}.home", home, f"{what}, from 0 to {length:g} m", f"Link {owner!r} is {length:g} m long.")


# ---- payloads and sensors -------------------------------------------------------------------------------------------------------------


def check_payload(faults: Faults, path: str, payload: dict, document: dict) -> None:
    links = names_of(document, "links")
    if isinstance(payload.get("link"), str) and payload["link"] not in links:
        faults.add(f"{path}.link", payload["link"], f"the name of a link ({_one_of(links)})")


def check_sensor(faults: Faults, path: str, sensor: dict, document: dict) -> None:
    kind, on = sensor.get("kind"), sensor.get("on")
    if not isinstance(kind, str) or kind not in SENSOR_KINDS:
        if isinstance(kind, str):
            faults.add(f"{path}.kind", kind, f"one of {', '.join(SENSOR_KINDS)}")
        return
    what = "joint" if kind in ON_JOINT else "link"
    target = next((item for _, item in items(document, what + "s") if item.get("name") == on), None)
    if target is None:
        if isinstance(on, str):
            faults.add(f"{path}.on", on, f"the name of a {what} for a sensor of kind {kind} ({_one_of(names_of(document, what + 's'))})")
        return
    if kind in ("encoder", "motor_encoder") and (target.get("type") == "fixed" or target.get("loop") is True):
        faults.add(f"{path}.on", on, "a joint with a coordinate", "Fixed joints and loop joints have none.")
    if kind in ("strain_gauge", "flex") and target.get("rigid") is True:
        faults.add(f"{path}.on", on, "an elastic link", "A rigid link does not strain.")
    span = numbers(sensor.get("span"))
    if kind == "flex" and "span" not in sensor:
        faults.add(f"{path}.span", None, "the stations between which a flex sensor measures", "For example span = [0.0, 1.0].")
    if kind != "flex" and "span" in sensor:
        faults.add(f"{path}.span", sensor["span"], f"no span on a sensor of kind {kind}", "Use s for its station.")
    if span is not None and len(span) == 2 and span[0] >= span[1]:
        faults.add(f"{path}.span", span, "two stations in increasing order", "Swap the two.")
    direction = numbers(sensor.get("direction"))
    if direction is not None and not any(direction):
        faults.add(f"{path}.direction", direction, "a vector other than zero", "For example [0, 1, 0].")
