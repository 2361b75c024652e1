"""How faults of a robot are collected and told: all at once, each with its path, its value, what was expected and how
to mend it."""

import sys
from collections.abc import Iterable


class RobotError(ValueError):
    """A robot, a robot file or a path into a robot that cannot be. ``faults`` lists every fault as one line of text."""

    def __init__(self, where: str, faults: Iterable[str]):
        self.faults = list(faults)
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        super().__init__(f"{where}: {count}\n" + "\n".join(f"  {fault}" for fault in self.faults))


class Unknown:
    """Stands where a number is not known on the host: a tracer, or a placeholder that jax or equinox put there.
    Checks skip it."""

    def __repr__(self) -> str:
        return "traced"


UNKNOWN = Unknown()


def shown(value) -> str:
    """A value as it is shown in a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Faults:
    """A list of faults under construction; the first fault of a path is kept."""

    def __init__(self):
        self.lines: dict[tuple[str, str], str] = {}

    def add(self, path: str, value, expected: str, mend: str = "") -> None:
        """One fault; ``value=None`` says that something is missing."""
        given = "missing" if value is None else shown(value)
        self.lines.setdefault(
            (path, expected),
            f"{path} = {given}: expected {expected}." + (f" {mend}" if mend else ""),
        )

    def tell(self, path: str, value, text: str) -> None:
        """A fault in its own words, where "expected" would be awkward."""
        self.lines.setdefault((path, text), f"{path} = {shown(value)}: {text}")

    def extend(self, other: "Faults") -> None:
        """Take over the faults of ``other`` on paths that have none yet (a wrong type is told once, not once per
        rule)."""
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
    """The items of a list of named tables with their paths; by name, or by index where a name is missing or used
    twice."""
    rows = document.get(key)
    rows = rows if isinstance(rows, list) else []
    names = [row.get("name") if isinstance(row, dict) else None for row in rows]
    unique = [
        name if isinstance(name, str) and name and names.count(name) == 1 else str(i)
        for i, name in enumerate(names)
    ]
    return [
        (f"{key}.{label}", row)
        for label, row in zip(unique, rows, strict=True)
        if isinstance(row, dict)
    ]


def is_finite(value: float | int) -> bool:
    """Whether a number is finite as a float (``math.isfinite`` overflows on a long integer)."""
    return abs(value) <= sys.float_info.max


def number(value) -> float | None:
    """The value if it is a number that is known and finite."""
    known = isinstance(value, float | int) and not isinstance(value, bool) and is_finite(value)
    return float(value) if known else None


def numbers(value) -> list[float] | None:
    """The values if it is a list of numbers that are all known and finite."""
    known = [number(v) for v in value] if isinstance(value, list) else [None]
    return None if any(v is None for v in known) else [v for v in known if v is not None]


def names_of(document: dict, key: str) -> list[str]:
    """The names in one list of a document."""
    return [item["name"] for _, item in items(document, key) if isinstance(item.get("name"), str)]


def one_of(names: list[str]) -> str:
    return ", ".join(names) if names else "there is none"


def numbers_taken_out(document: dict) -> bool:
    """Whether a filter took the numbers out of this robot (every link has a length): absent may mean hidden."""
    return any("length" not in link for _, link in items(document, "links"))
