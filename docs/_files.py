"""docs/files.md: the reference of robot files, made from their JSON schema, and of drive files, made from the signals."""

import inspect

from flexjax.drive import signal
from flexjax.io._drive import SIGNALS
from flexjax.robot import robot_schema

# What the schema leaves to the reader: names, references to other parts, choices.
MEANING = {
    "Link.name": "its name",
    "Link.section": 'shape of the section: a table below, e.g. `{ shape = "tube", diameter = 0.04, wall = 0.002 }`',
    "Link.section_end": "section at the tip, for a taper",
    "Link.material": "a name (see Material) or `{ E = 70e9, nu = 0.33, rho = 2700.0 }`",
    "Link.constants": "stiffness and mass per length in place of section and material",
    "Link.pieces": "several parts of different section, from base to tip, in place of one section",
    "Link.body": "mass, centre and inertia of a rigid link",
    "Link.damping": "material damping",
    "Link.rigid": "the link does not bend",
    "Joint.name": "its name",
    "Joint.type": "see above",
    "Joint.parent": "a link, or `ground`",
    "Joint.child": "a link",
    "Joint.friction": "dry friction",
    "Joint.hub": "rigid hub at the base of the child",
    "Joint.motor": "rotor, gear, torque constant, limit",
    "Joint.stops": "elastic end stops",
    "Joint.loop": "closes a loop: parent and child both hang on other joints already",
    "Joint.child_at": "the end of the child at which a loop joint sits",
    "Payload.name": "its name",
    "Payload.link": "the link that carries it",
    "Sensor.name": "its name: the column in records",
    "Sensor.kind": "what it measures",
    "Sensor.on": "the joint (encoder, motor_encoder, torque) or the link (the others)",
    "Sensor.lowpass": "filter of the reading",
    "Piece.section": "as of a link",
    "Piece.section_end": "as of a link",
    "Piece.material": "as of a link",
    "Piece.constants": "as of a link",
}
ORDER = ("Link", "Rectangle", "Circle", "Tube", "IBeam", "GivenSection", "Material", "BeamConstants", "Piece", "Damping", "Body", "Joint", "Hub", "Motor",
         "Friction", "Stops", "Payload", "Sensor", "Lowpass")  # fmt: skip
TEXT = """# Robot and drive files

Made by `docs/_make.py` from the schema of robot files (`flexjax schema`, for editors that complete and check TOML) and from the signals. SI units,
angles in radians, names as you like. A mistake is told with the
name of the field, the value and what was expected. The quickest start is a copy: `flexjax examples --copy two-link arm.toml`.

```toml
schema = 1
name = "an arm"

[[links]]
name = "beam"
length = 0.8
section = { shape = "tube", diameter = 0.03, wall = 0.002 }
material = "carbon-epoxy"

[[joints]]
name = "hinge"
type = "revolute"
parent = "ground"
child = "beam"
```

## Conventions

A link lies along its local +x. The height of its section is along local y, the width along local z; a planar robot bends in y. A joint sits at the
tip of its parent, moved by `offset` and turned by `rotation`; a coordinate of zero
continues the parent's tangent. Revolute joints turn about z unless `axis` says otherwise.

| joint type | moves | coordinates |
|---|---|---|
| `revolute` | turns about `axis` | 1 |
| `prismatic` with `axis` | shifts along it | 1 |
| `prismatic` without `axis` | the child runs out of the joint along its own length; the coordinate is what is outside | 1 |
| `sliding` | the child's base travels along the parent; the coordinate is the distance from the parent's base | 1 |
| `universal` | turns about `axis`, then `axis2` | 2 |
| `spherical` | turns freely | 3 |
| `free` | a floating base | 6 |
| `fixed` | a weld | 0 |

Which formulation holds which of them: [Formulations](formulations.md).
"""
DRIVES = """
## Drive files

`flexjax simulate arm.toml --drive drive.toml`, or `fx.load_drive("drive.toml")`. A joint has a `motion` (prescribed), an `effort` or a `pd`
controller, each made of a signal; one that is not named is free.

```toml
[joints.hinge]
pd = { kp = 40.0, kd = 1.0, reference = { quintic = { start = 0.0, end = 0.5, duration = 1.0 } } }

[[loads]]
link = "beam"
wrench = { constant = { value = [0.0, -2.0, 0.0, 0.0, 0.0, 0.0] } }  # force, then torque, in world axes
```

On the command line a motion is `--motion JOINT=SIGNAL:NUMBER:NUMBER...`, the numbers in the order of this table: `--motion hinge=quintic:0:0.5:1`.

| signal | arguments | what it is |
|---|---|---|
"""


def _cells(name: str, key: str, field: dict, required: bool) -> str:
    words = field.get("description") or MEANING.get(f"{name}.{key}", "")
    if "enum" in field and f"{name}.{key}" != "Joint.type":
        words += f": {', '.join(f'`{c}`' for c in field['enum'])}"
    if "const" in field:
        words = f'`"{field["const"]}"`'
    default = (
        "needed"
        if required
        else ""
        if field.get("default") in (None, [], "")
        else f"`{_short(field['default'])}`"
    )
    return f"| `{key}` | {words} | {default} |"


def _short(value) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def files() -> str:
    schema = robot_schema()
    parts = [TEXT, "## The file", "", "| field | meaning | default |", "|---|---|---|"]
    parts += [
        _cells("", key, field, key in schema["required"])
        for key, field in schema["properties"].items()
    ]
    for name in ORDER:
        part = schema["$defs"][name]
        parts += [
            "",
            f"### {name}",
            "",
            part["description"].replace("``", "`"),
            "",
            "| field | meaning | default |",
            "|---|---|---|",
        ]
        parts += [
            _cells(name, key, field, key in part.get("required", ()))
            for key, field in part["properties"].items()
        ]
        if name == "Material":
            named = next(
                o["enum"]
                for o in schema["$defs"]["Link"]["properties"]["material"]["oneOf"]
                if "enum" in o
            )
            parts += ["", f"By name: {', '.join(f'`{n}`' for n in named)}."]
    missing = set(schema["$defs"]) - set(ORDER)
    if missing:
        raise SystemExit(f"docs/_files.py: ORDER lacks {', '.join(sorted(missing))}")
    parts.append(DRIVES.rstrip("\n"))
    for name in SIGNALS:
        make = getattr(signal, name)
        arguments = ", ".join(
            p.name + (f" = {p.default}" if p.default is not p.empty else "")
            for p in inspect.signature(make).parameters.values()
        )
        about = (
            " ".join(
                inspect.cleandoc(make.__doc__ or "").split("\n\n")[0].split("\n>>>")[0].split()
            )
            .replace("``", "`")
            .replace("|", "\\|")
        )
        parts.append(f"| `{name}` | {arguments} | {about} |")
    return "\n".join(parts) + "\n"
