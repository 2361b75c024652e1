"""Checks every parameter of a document: type, shape, finite, range."""

from typing import Any

from flexjax.robot.parts._fault import UNKNOWN, Faults, is_finite
from flexjax.robot.parts._fields import PARAMETERS, RULES, Parameter, unit_of
from flexjax.robot.parts._part import class_of, parts


def check_parameters(
    faults: Faults, path: str, cls: str, document: Any, joint_type: str | None = None
) -> None:
    """Check the parameters of an object of class ``cls`` and of the objects inside it."""
    if not isinstance(document, dict):
        return
    for part in parts(cls):
        value, where = document.get(part.name), f"{path}.{part.name}"
        if part.parameter is not None:
            _check_parameter(faults, where, value, part.parameter, joint_type)
        elif part.many and part.cls and isinstance(value, list):
            for i, item in enumerate(value):
                check_parameters(faults, f"{where}.{i}", part.cls, item, joint_type)
        elif part.cls is not None:
            inner = class_of(part, value)
            if inner is not None:
                check_parameters(faults, where, inner, value, joint_type)


def check_gravity(faults: Faults, document: dict) -> None:
    """Check the one parameter of the robot itself."""
    gravity = document.get("gravity")
    _check_parameter(faults, "gravity", gravity, PARAMETERS["Robot"]["gravity"], None)


def _check_parameter(
    faults: Faults, path: str, value: Any, parameter: Parameter, joint_type: str | None
) -> None:
    if value is None or value is UNKNOWN:
        return
    values = value if isinstance(value, list) else [value]
    shape = (len(values),) if isinstance(value, list) else ()
    if not all(isinstance(v, float | int) and not isinstance(v, bool) for v in values):
        faults.add(path, value, _kind(parameter), f"It is the {parameter.about}.")
        return
    if shape not in parameter.shapes:
        faults.add(path, value, _kind(parameter), f"It is the {parameter.about}.")
        return
    rule, unit = RULES[parameter.rule], unit_of(parameter, joint_type)
    if not all(is_finite(v) for v in values):
        faults.add(
            path,
            value,
            "finite numbers" if shape else "a finite number",
            f"It is the {parameter.about}" + (f" [{unit}]." if unit else "."),
        )
    elif not all(rule.holds(v) for v in values):
        meaning = f"It is the {parameter.about}" + (
            f" in {unit}; check sign and unit." if unit else "."
        )
        faults.add(path, value, rule.expected + (" in every place" if shape else ""), meaning)


def _kind(parameter: Parameter) -> str:
    sizes = [shape[0] for shape in parameter.shapes if shape]
    lists = "a list of " + " or ".join(str(n) for n in sizes) + " numbers" if sizes else ""
    return " or ".join(
        text for text in ("a number" if () in parameter.shapes else "", lists) if text
    )
