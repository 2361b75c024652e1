"""Checks of arguments before jax is imported, so that a refusal takes less than a second.

Only names, paths and plain numbers are checked here. What needs the robot's or a formulation's
equations is checked afterwards, by the functions that use it.
"""

import ast
import dataclasses
import difflib
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from flexjax._files import check_data_file, read_toml
from flexjax._registry import (
    DATASETS,
    REGISTRY,
    check_formulation_name,
    check_signal_name,
    dataset_names,
    refused_by_all,
    unsupported,
)
from flexjax._source import check_options, fields_of, module_of, parameters_of, types_of
from flexjax.robot.files._described import PlainRobot, describe_file
from flexjax.robot.files._read import read_robot
from flexjax.robot.parts._fault import (
    drive_misfit,
    names_of,
    no_such_joint,
    no_such_sensor,
    tree_joint_names,
)

FIGURES = (".png", ".pdf", ".svg")
RUN_FIGURES = ("joints", "tip", "deflection", "strain", "spectrum", "energy", "difference")
FILMS = (".gif", ".mp4")
RUNS = (".nc", ".zarr", ".csv", ".mat", ".html", *FILMS, *FIGURES)


class Names(NamedTuple):
    """Names in a robot file; ``loops`` are the joints that close loops, which nothing drives."""

    joints: list[str]
    loops: list[str]
    links: list[str]
    payloads: list[str]
    sensors: list[str]


def check_robot(robot: str) -> Names:
    """The names in a robot file, an example or a shipped data set; refuses one that is missing."""
    document = read_robot(_robot_file(robot))
    joints = tree_joint_names(document)
    loops = [name for name in names_of(document, "joints") if name not in joints]
    rest = [names_of(document, key) for key in ("links", "payloads", "sensors")]
    return Names(joints, loops, *rest)


def _robot_file(robot: str) -> str | Path:
    return (DATASETS / f"{robot}.toml") if robot in dataset_names() else robot


def check_supported(robot: str, formulation: str) -> None:
    """Check the content of a robot file, and that a formulation supports the robot.

    ``formulation`` is a text such as ``FiniteElement:elements=8``; with an empty one, any may.
    """
    name, options = read_formulation(formulation)
    described = describe_file(_robot_file(robot))
    if name and not _refusals(name, options, described):
        return
    refused = {other: _refusals(other, {}, described) for other in REGISTRY}
    others = [other for other, why in refused.items() if not why]
    if name:
        subject = f"the robot {described.name!r}"
        raise unsupported(name, subject, _refusals(name, options, described), others)
    if not others:
        raise refused_by_all(described.name, refused)


def supporting(robot: str) -> list[str]:
    """The formulations that support a robot with their default options."""
    described = describe_file(_robot_file(robot))
    return [name for name in REGISTRY if not _refusals(name, {}, described)]


def _refusals(name: str, options: dict[str, Any], robot: PlainRobot) -> list[str]:
    """The formulation's refusals; none where its rules need what is not read without jax."""
    _, *folder, _ = REGISTRY[name].split(".")
    where = "/".join(folder)
    rules = module_of(where, "_refusals")
    if rules is None or any(isinstance(x, dict | list) for x in options.values()):
        return []  # of another package, or with options that a converter changes
    return rules.refusals(SimpleNamespace(**fields_of(where, name) | options), robot)


def check_paths(paths: tuple[str, ...], known: tuple[str, ...] = RUNS, field: str = "save") -> None:
    """Check output paths before a long run: known suffix, existing folder."""
    for path in map(Path, paths):
        if path.suffix.lower() not in known:
            suffixes = ("one of " if len(known) > 1 else "") + " ".join(known)
            raise ValueError(f"{field}: {str(path)!r}; expected a name that ends in {suffixes}.")
        if not path.parent.is_dir():
            folder = f"the folder {str(path.parent)!r} does not exist"
            raise ValueError(f"{field}: {str(path)!r}; {folder}. Create it first.")


def check_times(end: float, outputs: int, dt: float) -> None:
    """Check end time, number of outputs and step."""
    if not (end > 0 and math.isfinite(end)):
        raise ValueError(f"end: {end}; expected a positive time in seconds, e.g. --end 0.5.")
    if outputs < 2:
        raise ValueError(f"outputs: {outputs}; expected at least 2, the start and the end.")
    check_step(dt)


def check_step(dt: float) -> None:
    if not (dt > 0 and math.isfinite(dt)):
        raise ValueError(f"dt: {dt}; expected a positive step in seconds, e.g. --dt 1e-3.")


def check_numbers(field: str, values: tuple[float, ...], expected: str, least: float = 0.0) -> None:
    """Check that every number is finite and above ``least``."""
    for value in values:
        if not (value > least and math.isfinite(value)):
            raise ValueError(f"{field}: {value:g}; expected {expected}.")


def check_drive(drive: str, motion: tuple[str, ...], names: Names) -> None:
    """Check signals of motions, and the joints and links that a drive names."""
    document = read_toml(drive, "drive file") if drive else {}
    driven = document.get("joints", {})
    joints = [*(driven if isinstance(driven, dict) else ()), *(read_motion(m)[0] for m in motion)]
    faults = [
        no_such_joint(f"drive.joints.{joint}", joint, names.joints)
        for joint in joints
        if joint not in names.joints
    ]
    loads = document.get("loads", [])
    for i, load in enumerate(loads if isinstance(loads, list) else ()):
        link = load.get("link") if isinstance(load, dict) else None
        if isinstance(link, str) and link not in names.links:
            listed = ", ".join(names.links)
            faults.append(f"drive.loads.{i}.link: {link!r}; expected one of {listed}.")
    if faults:
        raise drive_misfit(faults)


def read_motion(text: str) -> tuple[str, str, list]:
    """Parse ``shoulder=quintic:0:1:2``: joint, name of the signal, and its arguments in order.

    A list is written with commas.
    """
    joint, equals, rest = text.partition("=")
    word, *values = rest.split(":")
    if not (joint and equals and word):
        raise ValueError(
            f"motion: {text!r}; expected <joint>=<signal>:<numbers>, e.g. shoulder=quintic:0:1:2."
        )
    try:
        numbers = [[float(x) for x in v.split(",")] if "," in v else float(v) for v in values]
    except ValueError:
        raise ValueError(
            f"motion: {text!r}; expected numbers after the signal's name, e.g. "
            "shoulder=quintic:0:1:2."
        ) from None
    check_signal_name(f"motion {joint}", word)
    parameters = parameters_of("drive/signal", word)
    if not sum(parameters.values()) <= len(numbers) <= len(parameters):
        # Optional arguments stand in brackets.
        names = [name if needed else f"[{name}]" for name, needed in parameters.items()]
        raise ValueError(f"motion: {text!r}; {word} takes {', '.join(names)}, in this order.")
    return joint, word, numbers


def read_coordinates(texts: tuple[str, ...], names: Names, field: str = "at") -> dict[str, float]:
    """Joint coordinates of texts such as ``elbow=1.2``."""
    found = {}
    for text in texts:
        joint, _, value = text.partition("=")
        try:
            found[joint] = float(value)
        except ValueError:
            raise ValueError(f"{field}: {text!r}; expected JOINT=NUMBER, e.g. elbow=1.2.") from None
        if joint not in names.joints:
            raise ValueError(no_such_joint(f"{field}.{joint}", joint, names.joints))
    return found


def read_formulation(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a text such as ``FiniteElement:elements=8``; ("", {}) of an empty one."""
    if not text:
        return "", {}
    name, _, rest = text.partition(":")
    plain = name.lower().replace("-", "").replace("_", "")
    name = {known.lower(): known for known in REGISTRY}.get(plain, name)
    check_formulation_name(name)
    defaults, options = _formulation_fields(name), {}
    for item in filter(None, rest.split(";" if ";" in rest else ",")):
        key, equals, value = map(str.strip, item.partition("="))
        if not equals:
            raise ValueError(
                f"formulation: {text!r}; expected options as NAME=VALUE, e.g. {name}:elements=8."
            )
        options[key] = _option(text, name, defaults, key, value)
    package, *folder, _ = REGISTRY[name].split(".")
    if package == "flexjax":
        check_options("/".join(folder), name, options)
    return name, options


def _formulation_fields(name: str) -> dict[str, Any]:
    """Options of a formulation and their defaults. One of another package has to be imported."""
    package, *folder, _ = REGISTRY[name].split(".")
    if package == "flexjax":
        return fields_of("/".join(folder), name)
    from flexjax.formulation import formulation

    fields = dataclasses.fields(formulation(name))
    return {f.name: None if f.default is dataclasses.MISSING else f.default for f in fields}


def _option(text: str, name: str, defaults: dict[str, Any], key: str, value: str) -> Any:
    """The value of one option, converted to the type of its default."""
    if key not in defaults:
        near = difflib.get_close_matches(key, defaults, 1)
        listed = f"expected one of {', '.join(defaults)}." if defaults else "it has no options."
        hint = f"did you mean {near[0]!r}?" if near else listed
        raise ValueError(f"formulation: {text!r}; {name} has no option {key!r}; {hint}")
    try:
        found = ast.literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
    except (ValueError, SyntaxError):
        found = value
    if isinstance(defaults[key], int | float) and isinstance(found, str):
        raise ValueError(
            f"formulation: {text!r}; {key} = {value!r}, "
            f"expected a value such as {defaults[key]} (the default)."
        )
    return found


def read_pairs(field: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Names and columns of texts such as ``shoulder=angle``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{field}: {text!r}; expected NAME=COLUMN.")
        found[name] = value
    return found


def check_columns(
    columns: dict[str, tuple[str, ...]], sensors: tuple[str, ...], names: Names
) -> None:
    """Check the joints and sensors that columns are assigned to."""
    faults = [
        no_such_joint(f"{field}.{name}", name, names.joints)
        for field, texts in columns.items()
        for name in read_pairs(field, texts)
        if name not in names.joints
    ]
    faults += [
        no_such_sensor(f"sensors.{name}", name, names.sensors)
        for name in read_pairs("sensors", sensors)
        if name not in names.sensors
    ]
    if faults:
        raise ValueError("\n".join(faults))


def check_data(paths: tuple[str, ...]) -> None:
    for path in paths:
        check_data_file(path)


def read_free(
    text: str, names: Names, field: str = "free"
) -> tuple[str, tuple[float | None, float | None] | None]:
    """Path and bounds of a text such as ``links.link.material.E=50e9:90e9``."""
    path, equals, bounds = text.partition("=")
    low, _, high = bounds.partition(":")
    try:
        found = (float(low) if low else None, float(high) if high else None) if equals else None
    except ValueError:
        raise ValueError(
            f"free: {text!r}; expected PATH=LOWER:UPPER, e.g. links.link.material.E=50e9:90e9."
        ) from None
    kind, _, rest = path.partition(".")
    name = rest.partition(".")[0]
    known = names._asdict() | {"joints": names.joints + names.loops}
    known = known.get(kind) if kind != "loops" else None
    if known is not None and name not in (*known, "*") and not name.isdigit():
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}."
        raise ValueError(f"{field}: {text!r}; the robot has no {kind[:-1]} {name!r}; {hint}")
    if kind in PARTS:
        _check_field(f"{field}: {text!r}", kind, path.split(".")[2:])
    return path, found


# The class of what a path of a robot begins with.
PARTS = {"links": "Link", "joints": "Joint", "payloads": "Payload", "sensors": "Sensor"}


def _check_field(where: str, kind: str, steps: list[str]) -> None:
    """Refuse a field that no such part of a robot has; the robot itself may still lack it."""
    classes: tuple[str, ...] = (PARTS[kind],)
    for step in steps:
        if not classes or step == "*" or step.isdigit():
            return  # a number, or a component of an array
        fields = types_of("robot/parts", classes)
        if step not in fields:
            near = difflib.get_close_matches(step, fields, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(fields)}."
            owner = " or ".join(classes)
            raise ValueError(f"{where}; a {owner} has no field {step!r}; {hint}")
        classes = fields[step]
