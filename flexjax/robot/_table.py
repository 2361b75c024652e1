"""The table that ``print(robot)`` shows."""

from typing import Any

from flexjax.robot.parts._document import to_document
from flexjax.robot.parts._fault import UNKNOWN

# What the table of joints shows beside type, parent, child, spring and damper.
JOINT_EXTRAS = (
    *("offset", "rotation", "home", "backlash", "backlash_smooth", "hardening"),
    *("friction", "output_friction", "spring_friction"),
    *("hub", "mass", "motor", "stops"),
)


def columns(rows: list[list[str]], indent: str = "  ") -> list[str]:
    """Align rows of text in columns; the first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        (indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def short(value: Any) -> str:
    """A number, or a list of numbers, with at most six digits."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "(" + ", ".join(short(v) for v in value) + ")"
    return f"{value:.6g}" if isinstance(value, float | int) else str(value)


def _table(value: dict) -> str:
    def cell(v: Any) -> str:
        if isinstance(v, list) and v and isinstance(v[0], dict):
            return "; ".join(map(_table, v))
        return _table(v) if isinstance(v, dict) else short(v)

    return ", ".join(f"{key} {cell(v)}" for key, v in value.items())


def robot_table(robot: Any) -> str:
    """A readable table of links, joints, payloads and sensors, with units."""
    document = to_document(robot)
    plane = "planar" if robot.planar else "spatial"
    gravity = document.get("gravity", UNKNOWN)
    links = f"{len(robot.links)} link{'s' * (len(robot.links) != 1)}"
    dofs = f"{robot.dofs} joint coordinate{'s' * (robot.dofs != 1)}"
    lines = [f"robot {robot.name!r}: {plane}, {links}, {dofs}, gravity {short(gravity)} m/s2"]
    rows = [["link", "length [m]", "section [m], material [SI]", "damping [s, 1/s, -]"]]
    for link in document.get("links", []):
        rows.append(
            [link["name"], short(link.get("length")), _beam(link), _table(link.get("damping", {}))]
        )
        rows += [
            [f"  piece {i}", f"x {short(piece.get('fraction'))}", _beam(piece), ""]
            for i, piece in enumerate(link.get("pieces", []))
        ]
    lines += columns(rows)
    rows = [["joint", "type", "parent > child", "axis", "spring", "damping", "more [SI]"]]
    for joint in document.get("joints", []):
        rows.append(_joint(joint))
    lines += columns(rows)
    if robot.payloads:
        rows = [["payload", "link", "mass [kg]", "inertia [kg m2]", "offset [m]", "s"]]
        for load in document["payloads"]:
            rows.append(
                [
                    load["name"],
                    load["link"],
                    *(short(load.get(key)) for key in ("mass", "inertia", "offset", "s")),
                ]
            )
        lines += columns(rows)
    if robot.sensors:
        rows = [["sensor", "kind", "on", "parameters [SI]"]]
        for sensor in document["sensors"]:
            rest = {key: v for key, v in sensor.items() if key not in ("name", "kind", "on")}
            if sensor["kind"] in ("encoder", "motor_encoder", "torque", "flex"):
                rest.pop("s", None)
            rows.append([sensor["name"], sensor["kind"], sensor["on"], _table(rest)])
        lines += columns(rows)
    return "\n".join(lines)


def _beam(link: dict) -> str:
    rigid = "rigid, " if link.get("rigid") else ""
    if "body" in link:
        return f"{rigid}{_table(link['body'])}"
    if "constants" in link:
        return f"{rigid}{_table(link['constants'])}"
    if "pieces" in link:
        return f"{rigid}{len(link['pieces'])} pieces"
    text = _section(link.get("section"))
    if "section_end" in link:
        text += " to " + _section(link["section_end"])
    return f"{rigid}{text}; {_table(link.get('material', {}))}"


def _section(section: Any) -> str:
    if not isinstance(section, dict):
        return short(section)
    sizes = _table({key: v for key, v in section.items() if key != "shape"})
    return f"{section.get('shape', '')} {sizes}".strip()


def _joint(joint: dict) -> list[str]:
    linear = joint["type"] in ("sliding", "prismatic")
    spring, damper = joint.get("stiffness"), joint.get("damping")
    more = {key: joint[key] for key in JOINT_EXTRAS if key in joint}
    text = "; ".join(
        f"{key} {_table(v) if isinstance(v, dict) else short(v)}" for key, v in more.items()
    )
    if joint.get("loop"):
        text = "; ".join(
            part for part in (f"closes a loop at the {joint.get('child_at', 'base')}", text) if part
        )
    axes = " ".join(short(joint[key]) for key in ("axis", "axis2") if key in joint)
    if not axes and joint["type"] in ("revolute", "prismatic"):
        axes = "z" if joint["type"] == "revolute" else "free length"
    units = ("N/m", "N s/m") if linear else ("N m/rad", "N m s/rad")
    return [
        joint["name"],
        joint["type"],
        f"{joint['parent']} > {joint['child']}",
        axes,
        "rigid" if spring is None else f"{short(spring)} {units[0]}",
        "" if damper is None else f"{short(damper)} {units[1]}",
        text,
    ]
