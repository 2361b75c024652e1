"""The fields of the description classes, by the name of the class.

They are read from the source of the classes, because `flexjax check` reports the faults of a robot
file without importing jax.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from flexjax._source import Field, class_fields
from flexjax.robot.parts._choices import SECTIONS
from flexjax.robot.parts._fields import PARAMETERS, Parameter

FOLDER = "robot/parts"
TEXTS = {"str": str, "bool": bool}


class Part(NamedTuple):
    """One field of a description class: a parameter, a text, a flag, an object or a list.

    ``cls`` is the name of the class of an object, or of the items of a list.
    """

    name: str
    required: bool
    default: Any
    parameter: Parameter | None
    cls: str | None
    many: bool
    text: type | None


@cache
def parts(cls: str) -> tuple[Part, ...]:
    """The fields of a description class, in order."""
    folder = "robot" if cls == "Robot" else FOLDER
    return tuple(_part(cls, field) for field in class_fields(folder, cls))


def _part(cls: str, field: Field) -> Part:
    parameter = PARAMETERS.get(cls, {}).get(field.name)
    many = field.words[0] == "tuple"
    text = TEXTS[field.words[0]] if field.static else None
    other = field.words[1 if many else 0] if parameter is None and text is None else None
    return Part(field.name, field.required, field.default, parameter, other, many, text)


def section_class(document: Any) -> str | None:
    """The class of a section in a file; without ``shape`` it is a section given by A, Iy, Iz, J."""
    shape = document.get("shape", "given") if isinstance(document, dict) else None
    return SECTIONS.get(shape) if isinstance(shape, str) else None


def class_of(part: Part, document: Any) -> str | None:
    """The class of the value of ``part``; the class of a section follows from its shape."""
    return section_class(document) if part.cls == "AbstractSection" else part.cls


def values_of(cls: str, document: dict[str, Any], make: Callable[[str, Any], Any]) -> dict:
    """The fields that a checked document gives; ``make`` builds an object of a class in it."""
    values: dict[str, Any] = {}
    for part in parts(cls):
        if part.name not in document:
            continue
        value = document[part.name]
        if part.many:
            assert part.cls is not None  # a list of objects
            value = tuple(make(part.cls, v) for v in value)
        elif part.cls is not None:
            name = class_of(part, value)
            assert name is not None  # checked
            value = make(name, value)
        values[part.name] = value
    return values
