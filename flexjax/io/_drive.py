"""Drives from TOML files: the drive of each joint, and loads. Only listed signals are allowed."""

import inspect
import os
import warnings
from typing import Any

from flexjax._files import read_toml
from flexjax._registry import check_signal_name
from flexjax.drive import PD, Drive, Effort, Load, Motion, signal
from flexjax.mechanism import Shape, Start
from flexjax.robot.parts._fault import is_finite, shown

KINDS = ("motion", "effort", "pd")
STARTS = ("joints", "rates", "motors", "links")

EXAMPLE = "{ quintic = { start = 0.0, end = 1.0, duration = 2.0 } }"


def load_drive(path: str | os.PathLike[str]) -> Drive:
    """Load a drive file.

    Each joint has a ``motion``, an ``effort`` or a ``pd`` controller, made of signals:

        [joints.shoulder]
        motion = { quintic = { start = 0.0, end = 1.0, duration = 2.0 } }
        [joints.elbow]
        pd = { kp = 40.0, kd = 1.0, reference = { ramp = { value = 0.5, duration = 1.0 } } }
        [[loads]]
        link = "fore"
        wrench = { constant = { value = [0.0, -2.0, 0.0, 0.0, 0.0, 0.0] } }

    Arguments:
        path: the file. A start table in it is left out, with a warning.

    Returns:
        The drive.

    Raises:
        ValueError: the file cannot be read or has faults, which are listed together.

    >>> import flexjax as fx, pathlib
    >>> text = "[joints.shoulder]\\neffort = { constant = { value = 1.0 } }"
    >>> size = pathlib.Path("push.toml").write_text(text)
    >>> list(fx.load_drive("push.toml").joints)
    ['shoulder']
    """
    drive, start = load_run(path)
    if start is not None:
        warnings.warn(
            f"drive file {str(path)!r}: has a start table, which this function leaves out; "
            "simulate(..., start=fx.load_start(path)) uses it.",
            stacklevel=2,
        )
    return drive


def load_start(path: str | os.PathLike[str]) -> Start:
    """Load the ``start`` table of a drive file.

    Its fields are those of :class:`Start` and :class:`Shape`:

        [start.joints]
        shoulder = 0.5
        [start.links.upper]
        y = [0.0, 0.004, 0.01]
        y_rate = [0.0, 0.0, 0.1]
        s = [0.0, 0.6, 1.0]

    Arguments:
        path: the file.

    Returns:
        The start; that of the robot where the file has no such table.

    Raises:
        ValueError: the file cannot be read or has faults, which are listed together.

    >>> import flexjax as fx, pathlib
    >>> size = pathlib.Path("start.toml").write_text("[start.joints]\\nshoulder = 0.5")
    >>> float(fx.load_start("start.toml").joints["shoulder"])
    0.5
    """
    return load_run(path)[1] or Start()


def load_run(path: str | os.PathLike[str]) -> tuple[Drive, Start | None]:
    """Drive and start of a drive file; None for a start that it does not have."""
    document = read_toml(path, "drive file")
    faults: list[str] = []
    start = None
    if "start" in document:
        start = start_from_dict(document.pop("start"), faults)
    try:
        drive = drive_from_dict(document)
    except ValueError as error:
        faults.insert(0, str(error))
    if faults:
        raise ValueError(f"drive file {str(path)!r}:\n" + "\n".join(faults))
    return drive, start


def start_from_dict(table: Any, faults: list[str]) -> Start | None:
    """The start of a table; its faults are added to ``faults``."""
    before = len(faults)
    if not isinstance(table, dict):
        faults.append(f"  - start: {shown(table)}; expected a table, e.g. [start.joints].")
        return None
    values: dict[str, dict] = {}
    for field, entries in table.items():
        if field not in STARTS:
            faults.append(f"  - start.{field}: unknown key; the keys here are {', '.join(STARTS)}.")
        elif not isinstance(entries, dict):
            faults.append(
                f"  - start.{field}: {shown(entries)}; expected a table, e.g. [start.{field}]."
            )
        elif field == "links":
            values[field] = {k: _shape(f"start.links.{k}", v, faults) for k, v in entries.items()}
        else:
            values[field] = entries
            for name, value in entries.items():
                if not _numeric(value, ""):
                    faults.append(
                        f"  - start.{field}.{name}: {shown(value)}; expected a number or a list of "
                        "numbers."
                    )
    return None if len(faults) > before else Start(**values)


def _shape(where: str, table: Any, faults: list[str]) -> Shape | None:
    keys = ("s", "y", "z", "y_rate", "z_rate")
    if not (isinstance(table, dict) and set(table) <= set(keys)):
        faults.append(
            f"  - {where}: {shown(table)}; expected a table with some of {', '.join(keys)}."
        )
        return None
    wrong = [key for key, value in table.items() if not _numeric(value, "")]
    for key in wrong:
        faults.append(
            f"  - {where}.{key}: {shown(table[key])}; expected a number or a list of numbers."
        )
    if wrong:
        return None
    try:
        return Shape(**table)
    except ValueError as error:
        faults.append(f"  - {where}: {str(error).removeprefix('shape: ')}")
        return None


def drive_from_dict(document: dict[str, Any]) -> Drive:
    """The drive of a document; all faults are reported at once."""
    faults: list[str] = []
    for key in set(document) - {"joints", "loads"}:
        faults.append(f"{key}: unknown key; the keys here are joints, loads, start.")
    joints = {}
    for name, table in _table(document, "joints", faults).items():
        act = _actuation(f"joints.{name}", table, faults)
        if act is not None:
            joints[name] = act
    rows = document.get("loads", [])
    if not isinstance(rows, list):
        faults.append(f"loads: {shown(rows)}; expected a list of tables, each under [[loads]].")
        rows = []
    loads = [_load(f"loads.{i}", row, faults) for i, row in enumerate(rows)]
    if faults:
        raise ValueError("\n".join(f"  - {fault}" for fault in faults))
    return Drive(joints=joints, loads=tuple(load for load in loads if load is not None))


def _signal_function(where: str, name: str):
    check_signal_name(where, name)
    return getattr(signal, name)


def _table(document: dict, key: str, faults: list[str]) -> dict:
    value = document.get(key, {})
    if not isinstance(value, dict):
        faults.append(f"{key}: {shown(value)}; expected a table, e.g. [{key}.shoulder].")
        return {}
    return value


def _signal(where: str, table: Any, faults: list[str]):
    if not (isinstance(table, dict) and len(table) == 1):
        faults.append(f"{where}: {shown(table)}; expected one signal, e.g. {EXAMPLE}.")
        return None
    ((name, values),) = table.items()
    try:
        make = _signal_function(where, name)
    except ValueError as error:
        faults.append(str(error))
        return None
    parameters = inspect.signature(make).parameters
    if not isinstance(values, dict):
        faults.append(
            f"{where}.{name}: {shown(values)}; expected a table with {', '.join(parameters)}."
        )
        return None
    bad = [
        f"{where}.{name}.{key}: unknown key; the keys here are {', '.join(parameters)}."
        for key in values
        if key not in parameters
    ]
    bad += [
        f"{where}.{name}.{key}: missing."
        for key, p in parameters.items()
        if p.default is inspect.Parameter.empty and key not in values
    ]
    bad += [
        f"{where}.{name}.{key}: {shown(v)}; expected a number or a list of numbers."
        for key, v in values.items()
        if key in parameters and not _numeric(v, key)
    ]
    if bad:
        faults += bad
        return None
    try:
        return make(**values)
    except (ValueError, TypeError) as error:
        faults.append(f"{where}: {error}")
        return None


def _numeric(value: Any, key: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_numeric(v, "") for v in value)
    if key in ("ends", "method"):
        return isinstance(value, str)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and (isinstance(value, float) or is_finite(value))  # not an int above all floats


def _actuation(where: str, table: Any, faults: list[str]):
    if not (isinstance(table, dict) and len(table) == 1 and next(iter(table)) in KINDS):
        faults.append(
            f"{where}: {shown(table)}; expected one of {', '.join(KINDS)}, e.g. motion = {EXAMPLE}."
        )
        return None
    ((kind, values),) = table.items()
    if kind != "pd":
        made = _signal(f"{where}.{kind}", values, faults)
        return made and (Motion if kind == "motion" else Effort)(made)
    wanted = {"kp", "kd", "reference"}
    if not (isinstance(values, dict) and wanted <= set(values) <= wanted | {"limit"}):
        faults.append(
            f"{where}.pd: {shown(values)}; expected kp, kd, reference (a signal) and perhaps limit."
        )
        return None
    wrong = [
        f"{where}.pd.{key}: {shown(values[key])}; expected one number."
        for key in ("kp", "kd", "limit")
        if key in values and not _numeric(values[key], "")
    ]
    faults += wrong
    reference = _signal(f"{where}.pd.reference", values["reference"], faults)
    if wrong or reference is None:
        return None
    try:
        made = PD(values["kp"], values["kd"], reference, values.get("limit"))
    except ValueError as error:
        faults += [f"{where}.{line}" for line in str(error).splitlines()]
        return None
    # Check gains only: the number of coordinates depends on the robot.
    gains = [f for f in made.shape_faults(f"{where}.pd", 1) if ".reference" not in f]
    faults += gains
    return None if gains else made


def _load(where: str, row: Any, faults: list[str]):
    wanted = {"link", "wrench"}
    if not (isinstance(row, dict) and wanted <= set(row) <= wanted | {"s", "frame"}):
        faults.append(
            f"{where}: {shown(row)}; expected link, wrench (a signal of six numbers) and perhaps s "
            "and frame."
        )
        return None
    wrench = _signal(f"{where}.wrench", row["wrench"], faults)
    s = row.get("s", 1.0)
    if isinstance(s, list) or not _numeric(s, ""):
        faults.append(f"{where}.s: {shown(s)}; expected one number.")
        return None
    if wrench is None:
        return None
    try:
        made = Load(row["link"], wrench, s, row.get("frame", "world"))
    except ValueError as error:
        faults += [f"{where}.{line.removeprefix('load.')}" for line in str(error).splitlines()]
        return None
    shapes = made.shape_faults(where)
    faults += shapes
    return None if shapes else made
