"""Units of recorded columns: what they measure, and the factor to SI."""

import difflib
import re
from typing import NamedTuple


class Unit(NamedTuple):
    """``kind`` is what the unit measures; a number in this unit times ``factor`` is SI."""

    kind: str
    factor: float


# A table, not pint: these are the units of logs, in which g is an acceleration (pint: a gram), with
# counts and microstrain among them; nothing is combined or derived.
_PI = 3.141592653589793
_TABLE: dict[str, dict[str, float]] = {
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": _PI / 180, "°": _PI / 180, "rev": 2 * _PI},
    "angular rate": {"rad/s": 1.0, "deg/s": _PI / 180, "rpm": _PI / 30},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254},
    "speed": {"m/s": 1.0, "mm/s": 1e-3},
    "acceleration": {"m/s2": 1.0, "mm/s2": 1e-3, "g": 9.80665, "mg": 9.80665e-3},
    "torque": {"Nm": 1.0, "mNm": 1e-3, "kNm": 1e3},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
    "voltage": {"V": 1.0, "mV": 1e-3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0},
    "frequency": {"Hz": 1.0, "kHz": 1e3},
    "number": {"1": 1.0, "%": 1e-2, "strain": 1.0, "ustrain": 1e-6, "um/m": 1e-6, "ue": 1e-6},
    "reading": {"reading": 1.0, "counts": 1.0},
}
UNITS = {
    name: Unit(kind, factor) for kind, names in _TABLE.items() for name, factor in names.items()
}

_ALIASES = {
    **dict.fromkeys(("m/s/s", "ms-2"), "m/s2"),
    **dict.fromkeys(("degree", "degrees"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("sec", "seconds"), "s"),
    **dict.fromkeys(("-", ""), "1"),
    "microstrain": "ustrain",
}


def parse_unit(text: str, where: str) -> Unit:
    """The unit of that name, whatever its separators ("N m", "N*m", "m/s^2").

    >>> parse_unit("N m", "torque").kind
    'torque'
    """
    word = re.sub(r"[\s*·.^]", "", text)
    for sign, letter in (("µ", "u"), ("μ", "u"), ("ε", "e"), ("²", "2")):
        word = word.replace(sign, letter)
    word = _ALIASES.get(word, word)
    if word in UNITS:
        return UNITS[word]
    close = difflib.get_close_matches(word, UNITS, 1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(UNITS)}."
    raise ValueError(f"{where}: unit {text!r} is unknown; {hint}")


def split_header(header: str) -> tuple[str, str | None]:
    """``"tip [mm]"`` as ``("tip", "mm")``; no brackets, no unit.

    >>> split_header("effort.shoulder [N m]")
    ('effort.shoulder', 'N m')
    """
    match = re.fullmatch(r"\s*(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*", header)
    return (match.group(1), match.group(2)) if match and match.group(1) else (header.strip(), None)
