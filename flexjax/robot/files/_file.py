"""The structure of a robot file: pydantic models, JSON schema, unknown and missing keys.

The models are built from the description classes. Only this file uses pydantic. The values are
checked by :mod:`flexjax.robot.check._check`, for files and Python alike.
"""

import difflib
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import pydantic
from pydantic import ConfigDict, Discriminator, Field, Tag, create_model

from flexjax._source import docstring_of
from flexjax.robot.check._check import document_faults
from flexjax.robot.check._tree import is_planar
from flexjax.robot.parts._choices import JOINT_DOFS, MATERIALS, SECTIONS, SENSOR_KINDS
from flexjax.robot.parts._fault import MOST, Faults, RobotError, items
from flexjax.robot.parts._fields import PARAMETERS, RULES, Parameter, unit_of
from flexjax.robot.parts._part import FOLDER, Part, class_of, parts

SCHEMA_FILE = Path(__file__).with_name("robot.schema.json")
MOST_ROWS = 2000  # of each kind of part: the checks take time as the square
STRICT = ConfigDict(extra="forbid", strict=True)
CHOICES = {
    ("Joint", "type"): tuple(JOINT_DOFS),
    ("Sensor", "kind"): SENSOR_KINDS,
    ("Joint", "child_at"): ("base", "tip"),
}
# Tags of the branches of unions in pydantic's error locations.
TAGS = frozenset({"~number", "~list", "~name", "~table", *SECTIONS})


@cache
def file_model() -> type[pydantic.BaseModel]:
    """The pydantic model of a robot file."""
    lists = {
        "links": ("Link", ...),
        "joints": ("Joint", ...),
        "payloads": ("Payload", []),
        "sensors": ("Sensor", []),
    }
    about = {
        "links": "the links, each along its local +x axis from base to tip",
        "joints": "the joints, each from its parent (a link or ground) to its child",
        "payloads": "rigid bodies fixed to links",
        "sensors": "sensors on joints and links",
    }
    fields: dict[str, Any] = {
        "schema_": (Literal[1], Field(..., alias="schema", description="version of this format")),
        "name": (str, Field(..., description="name of the robot")),
        "gravity": _with_default(
            _parameter_type(PARAMETERS["Robot"]["gravity"]),
            [0.0, -9.81, 0.0],
            PARAMETERS["Robot"]["gravity"],
        ),
        "planar": (
            bool,
            Field(
                False,
                description="the robot moves in the plane z = 0; inferred from the axes if absent",
            ),
        ),
    }
    for key, (cls, default) in lists.items():
        fields[key] = (list[_model(cls)], Field(default, description=about[key]))
    return create_model(
        "Robot", __config__=STRICT, __doc__="A flexible robot. SI units, angles in rad.", **fields
    )


@cache
def _model(cls: str) -> type[pydantic.BaseModel]:
    fields: dict[str, Any] = {}
    for shape in (shape for shape, section in SECTIONS.items() if section == cls):
        fields["shape"] = (Literal[shape], ... if shape != "given" else "given")
    for part in parts(cls):
        if part.parameter is not None:
            default = list(part.default) if isinstance(part.default, tuple) else part.default
            fields[part.name] = _with_default(
                _parameter_type(part.parameter), ... if part.required else default, part.parameter
            )
        else:
            fields[part.name] = _other(cls, part)
    return create_model(cls, __config__=STRICT, __doc__=_summary(cls), **fields)


def _summary(cls: str) -> str:
    """The prose of a class's docstring, without arguments, lists and example."""
    doc = docstring_of(FOLDER, cls).split("\nArguments:")[0].split("\n>>>")[0]
    prose = [p for p in doc.split("\n\n") if not p.startswith("- ") and not p.endswith(":")]
    return " ".join(" ".join(prose).replace("``", "").replace(":class:", "").split())


def _with_default(annotation: Any, default: Any, parameter: Parameter):
    units = " or ".join(dict.fromkeys((unit_of(parameter), unit_of(parameter, "sliding"))))
    about = parameter.about + (f" [{units}]" if units else "")
    return annotation, Field(default, description=about)


def _parameter_type(parameter: Parameter):
    # The schema states the rule; flexjax.robot.check._check applies it, with better messages.
    rule: dict[str, Any] = {**RULES[parameter.rule].schema}
    one = Annotated[float, Field(json_schema_extra=rule)]
    sizes = [shape[0] for shape in parameter.shapes if shape]
    if not sizes:
        return one
    many = Annotated[list[one], Field(min_length=min(sizes), max_length=max(sizes))]
    if () not in parameter.shapes:
        return many
    kinds = Union[Annotated[one, Tag("~number")], Annotated[many, Tag("~list")]]  # noqa: UP007
    return Annotated[kinds, Discriminator(lambda v: "~list" if isinstance(v, list) else "~number")]


def _other(cls: str, part: Part):
    if (cls, part.name) in CHOICES:
        # The schema states the choices; flexjax.robot.check._check applies them.
        extra: Any = {"enum": list(CHOICES[cls, part.name])}
        return str, Field(... if part.required else part.default, json_schema_extra=extra)
    if part.text is not None:
        # A payload without a name is named after its index.
        unnamed = cls == "Payload" and part.name == "name"
        return part.text, "" if unnamed else ... if part.required else part.default
    if part.cls == "AbstractSection":
        return _section(), None
    if part.cls == "Material":
        return _material(), None
    assert part.cls is not None  # neither parameter nor text
    return (list[_model(part.cls)], []) if part.many else (_model(part.cls), None)


@cache
def _section():
    models = tuple(Annotated[_model(cls), Tag(shape)] for shape, cls in SECTIONS.items())
    return Annotated[Union[models], Discriminator(_shape_of)]  # noqa: UP007


def _shape_of(section: Any) -> str:
    shape = section.get("shape", "given") if isinstance(section, dict) else "given"
    return shape if isinstance(shape, str) else repr(shape)  # reported as an unknown tag


@cache
def _material():
    name = Annotated[str, Field(json_schema_extra={"enum": list(MATERIALS)}), Tag("~name")]
    kinds = Union[name, Annotated[_model("Material"), Tag("~table")]]  # noqa: UP007
    return Annotated[kinds, Discriminator(lambda v: "~name" if isinstance(v, str) else "~table")]


def robot_schema() -> dict:
    """The JSON schema of robot files, for editors that complete and check TOML.

    Returns:
        The schema as a dict; the package contains it as ``robot.schema.json``.

    >>> import flexjax as fx
    >>> fx.robot_schema()["title"]
    'flexjax robot file, schema 1'
    """
    schema = _tidy(file_model().model_json_schema(by_alias=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "flexjax robot file, schema 1",
    }


def _tidy(node: Any) -> Any:
    """Remove the titles that pydantic generates, and null, which TOML does not have."""
    if isinstance(node, dict):
        generated = {
            key
            for key, v in node.items()
            if (key == "default" and v is None) or (key == "title" and isinstance(v, str))
        }
        return {key: _tidy(v) for key, v in node.items() if key not in generated}
    return [_tidy(v) for v in node] if isinstance(node, list) else node


# ---- pydantic's errors as faults ----------------------------------------------------------------

EXPECTED = {
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a table { ... }",
    "model_attributes_type": "a table { ... }",
    "dict_type": "a table { ... }",
    "literal_error": "1, the version of the format",
}


MISSING = {
    "schema": "schema = 1 at the top of the file",
    "name": "a name",
    "links": "at least one [[links]] table",
    "joints": "at least one [[joints]] table",
    "length": "the length in m",
    "type": f"the type of the joint, one of {', '.join(JOINT_DOFS)}",
    "parent": "the name of a link, or ground",
    "child": "the name of a link",
    "link": "the name of a link",
    "kind": f"the kind of the sensor, one of {', '.join(SENSOR_KINDS)}",
    "on": "the name of the joint or link that the sensor is on",
    "mass": "the mass in kg",
    "E": "Young's modulus in Pa",
    "rho": "the density in kg/m3",
}


# Synonyms that a spelling check does not find, with the fields they may stand for.
OTHER_WORDS = {
    "angle": {
        "home": "the joint coordinate at the start",
        "rotation": "the mounting angle, a rotation vector",
    },
    "position": {"offset": "the mounting offset", "home": "the joint coordinate at the start"},
    "spring": {"stiffness": "of the joint spring"},
    "density": {"rho": "in kg/m3"},
    "youngs_modulus": {"E": "in Pa"},
    "modulus": {"E": "in Pa"},
    "radius": {"diameter": "twice the radius"},
    "thickness": {"height": "along local y", "wall": "of a tube"},
}


def file_faults(document: dict) -> Faults:
    """Every fault of the document of a robot file: keys, types and values."""
    faults = structure_faults(document)
    if not oversized(document):
        faults.extend(document_faults(document))
    return faults


def complete(document: Any, where: str) -> dict:
    """A document without faults, with what a robot file may leave out: planar, payloads' names."""
    if not isinstance(document, dict):
        raise RobotError(
            where, [f"{document!r}: expected a table with schema, name, links and joints"]
        )
    file_faults(document).raise_as(where)
    document = {**document, "planar": document.get("planar", is_planar(document))}
    payloads = document.get("payloads", [])
    document["payloads"] = [
        {**payload, "name": payload.get("name") or f"payload{i + 1}"}
        for i, payload in enumerate(payloads)
    ]
    return document


def oversized(document: dict) -> dict[str, int]:
    """Lists of parts that are too long to be checked, with their lengths."""
    rows = {key: document.get(key) for key in ("links", "joints", "payloads", "sensors")}
    return {
        key: len(row) for key, row in rows.items() if isinstance(row, list) and len(row) > MOST_ROWS
    }


def structure_faults(document: Any) -> Faults:
    """Unknown keys, missing keys and wrong types of a robot document."""
    faults = Faults()
    for key, count in oversized(document).items():
        faults.add_text(key, count, f"too many tables; expected at most {MOST_ROWS}.")
    if faults:
        return faults
    try:
        file_model().model_validate(document)
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False, include_context=True)
        for fault in found[:MOST]:
            _add_structure_fault(faults, document, fault)
    return faults


def _add_structure_fault(faults: Faults, document: Any, fault: Any) -> None:
    path, known = _locate(document, fault["loc"])
    kind, value = fault["type"], fault["input"]
    if kind == "extra_forbidden":
        key = str(fault["loc"][-1])
        near = difflib.get_close_matches(key, known, 1, cutoff=0.6)
        other = [
            f"{name} ({about})" for name, about in OTHER_WORDS.get(key, {}).items() if name in known
        ]
        hint = (
            f"did you mean {' or '.join(other) or repr(near[0])}?"
            if other or near
            else f"the keys here are {', '.join(known)}."
        )
        faults.add_text(path, value, f"unknown key; {hint}")
    elif kind == "missing":
        faults.add(path, None, MISSING.get(path.rsplit(".", 1)[-1], "a value"), "Add it.")
    elif kind in ("too_short", "too_long"):
        limits = fault.get("ctx", {})
        faults.add(
            path, value, f"a list of {limits.get('max_length', limits.get('min_length'))} numbers"
        )
    elif kind == "union_tag_invalid":
        expected = fault.get("ctx", {}).get("expected_tags", "")
        faults.add(
            f"{path}.shape",
            value.get("shape") if isinstance(value, dict) else value,
            f"one of {expected}".replace("'", ""),
        )
    else:
        faults.add(path, value, EXPECTED.get(kind) or str(fault["msg"]))


def _locate(document: Any, loc: tuple) -> tuple[str, list[str]]:
    """The path of a fault, with names in place of indices, and the keys that its table may have."""
    words, here, cls, part = [], document, "Robot", None
    for step in loc:
        if isinstance(here, list) and isinstance(step, int) and step < len(here):
            labels = {id(row): path for path, row in items({"x": here}, "x")}
            words.append(labels.get(id(here[step]), f".{step}").split(".", 1)[1])
            here = here[step]
            cls = part.cls if part else cls
        elif step in TAGS and not (isinstance(here, dict) and step in here):
            continue
        else:
            words.append(str(step))
            part = next((p for p in parts(cls) if p.name == step), None) if cls else None
            here = here.get(step) if isinstance(here, dict) else None
            if part is not None and not part.many:
                cls = class_of(part, here)
    known = [p.name for p in parts(cls)] if cls else []
    known = ["shape", *known] if cls in SECTIONS.values() else known
    return ".".join(words), ["schema", *known] if cls == "Robot" else known
