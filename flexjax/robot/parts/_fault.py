"""Collects the faults of a robot and reports them in one error.

Each fault states its path, the value, what was expected and the remedy.
"""

import difflib
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

MOST = 200  # faults that a message lists


class RobotError(ValueError):
    """An invalid robot, robot file or path into a robot.

    ``faults`` lists every fault as one line of text.

    >>> import flexjax as fx
    >>> try:
    ...     fx.load_robot("metal-link").replace("links.arm.length", 0.6)
    ... except fx.RobotError as error:
    ...     print(len(error.faults))
    1
    """

    def __init__(self, where: str, faults: Iterable[str]):
        self.faults = list(faults)
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        listed = [f"  {fault}" for fault in self.faults[:MOST]]
        if len(self.faults) > MOST:
            listed.append(f"  and {len(self.faults) - MOST} more")
        super().__init__(f"{where}: {count}\n" + "\n".join(listed))


class Unknown:
    """Stands for a value that is unknown on the host; checks skip it.

    The leaf is a tracer, or a placeholder of jax or equinox.
    """

    def __repr__(self) -> str:
        return "traced"


UNKNOWN = Unknown()


def shown(value: Any) -> str:
    """``repr(value)``, cut to at most 80 characters for a message."""
    text = value[:100] if isinstance(value, str) else value
    text = repr(text)
    return text if len(text) <= 80 else text[:77] + "..."


class Faults:
    """A list of faults under construction; a repeated fault is kept once."""

    def __init__(self):
        self.lines: dict[tuple[str, str], str] = {}

    def add(self, path: str, value: Any, expected: str, remedy: str = "") -> None:
        """Add one fault; ``value=None`` means that the value is missing."""
        given = "missing" if value is None else shown(value)
        self.lines.setdefault(
            (path, expected),
            f"{path} = {given}: expected {expected}." + (f" {remedy}" if remedy else ""),
        )

    def add_text(self, path: str, value: Any, text: str) -> None:
        """Add a fault with its own text, where "expected ..." does not fit."""
        self.lines.setdefault((path, text), f"{path} = {shown(value)}: {text}")

    def extend(self, other: "Faults") -> None:
        """Add the faults of ``other`` on paths without a fault: one report per wrong type."""
        mine = {path for path, _ in self.lines}
        for (path, expected), line in other.lines.items():
            if path not in mine:
                self.lines[(path, expected)] = line

    def __bool__(self) -> bool:
        return bool(self.lines)

    def raise_as(self, where: str) -> None:
        if self.lines:
            raise RobotError(where, self.lines.values())


def items(document: dict, key: str) -> list[tuple[str, dict]]:
    """The tables under ``key`` with their paths.

    A path uses the name of the table, or its index where the name is missing, not unique or unfit
    to be printed.
    """
    rows = document.get(key)
    rows = rows if isinstance(rows, list) else []
    names = [row.get("name") if isinstance(row, dict) else None for row in rows]
    count = Counter(name for name in names if isinstance(name, str))
    unique = [
        name if isinstance(name, str) and count[name] == 1 and _presentable(name) else str(i)
        for i, name in enumerate(names)
    ]
    return [
        (f"{key}.{label}", row)
        for label, row in zip(unique, rows, strict=True)
        if isinstance(row, dict)
    ]


def _presentable(name: str) -> bool:
    return 0 < len(name) <= 100 and name.isprintable()


def is_finite(value: float | int) -> bool:
    """Whether a number is finite as a float (``math.isfinite`` overflows on a long integer)."""
    return abs(value) <= sys.float_info.max


def number(value: Any) -> float | None:
    """``value`` as a float if it is a known, finite number; otherwise ``None``."""
    known = isinstance(value, float | int) and not isinstance(value, bool) and is_finite(value)
    return float(value) if known else None


def numbers(value: Any) -> list[float] | None:
    """``value`` as floats if it is a list of known, finite numbers; otherwise ``None``."""
    known = [number(v) for v in value] if isinstance(value, list) else [None]
    return None if any(v is None for v in known) else [v for v in known if v is not None]


def names_of(document: dict, key: str) -> list[str]:
    """The names of the tables under ``key``."""
    return [item["name"] for _, item in items(document, key) if isinstance(item.get("name"), str)]


def tree_joint_names(document: dict) -> list[str]:
    """The names of the joints that have coordinates of their own: those that close no loop."""
    joints = [joint for _, joint in items(document, "joints") if not joint.get("loop", False)]
    return [joint["name"] for joint in joints if isinstance(joint.get("name"), str)]


def no_such_joint(where: str, name: str, joints: Iterable[str]) -> str:
    """The fault of a name that no joint has; ``joints`` are the names of the robot's."""
    known = list(joints)
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{where}: no such joint; expected one of {', '.join(known) or 'none'}.{hint}"


def no_such_sensor(where: str, name: str, sensors: Iterable[str]) -> str:
    """The fault of a name that no sensor has; ``sensors`` are the names of the robot's."""
    known = list(sensors)
    near = difflib.get_close_matches(name, known, 1)
    listed = f"expected one of {', '.join(known)}." if known else "add [[sensors]] to its file."
    hint = f"did you mean {near[0]!r}?" if near else listed
    remedy = "Assign other columns by sensors={sensor: column} or --sensor SENSOR=COLUMN."
    return f"{where}: no such sensor; {hint} {remedy}"


def drive_misfit(faults: Iterable[str]) -> ValueError:
    """The error of a drive that does not fit its robot, with all faults."""
    listed = "\n".join(f"  - {fault}" for fault in faults)
    return ValueError(f"the drive does not fit the robot:\n{listed}")


def one_of(names: list[str]) -> str:
    if not names:
        return "there is none"
    more = f", ... ({len(names)} in all)" if len(names) > 50 else ""
    return ", ".join(name[:100] for name in names[:50]) + more


def is_filtered(document: dict) -> bool:
    """Whether a pytree filter removed array leaves, so that an absent field may exist.

    Every link has a length; a link without one shows that the robot was filtered.
    """
    return any("length" not in link for _, link in items(document, "links"))
