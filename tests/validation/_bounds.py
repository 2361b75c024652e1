"""The bound of a row: the smaller of what theory expects and of a guard, the error of the first run
rounded up, by which a change for the worse is seen."""

import json
import math
from pathlib import Path

from tests.validation._cases import CASES
from tests.validation._expected import expected
from tests.validation._row import Row

FILE = Path(__file__).with_name("bounds.json")
ROUNDING = 1e-12  # a smaller error is that of rounding, which differs between machines


GUARDS = json.loads(FILE.read_text())


def bound(r: Row) -> float | None:
    """The largest error that the slow test admits; None where none is stated."""
    stated = [expected(r.case, r.formulation, r.quantity), GUARDS.get(r.key)]
    return min((x for x in stated if x is not None), default=None)


def rounded_up(error: float) -> float:
    """The next of 1, 2, 5, 10, ... from one and a half times the error on."""
    error = max(1.5 * error, ROUNDING)
    power = 10.0 ** math.floor(math.log10(error))
    return next(float(f"{k * power:.1e}") for k in (1, 2, 5, 10) if k * power >= 0.999 * error)


def add_missing(results: dict) -> list[str]:
    """Write bounds for stored rows that have none; those that exist stay as they are."""
    bounds = json.loads(FILE.read_text())
    stored = [Row(**r) for word in CASES for n in results.get(word, {}) for r in results[word][n]]
    new = {r.key: rounded_up(r.error) for r in stored if r.error is not None}
    added = [key for key in new if key not in bounds]
    kept = {r.key for r in stored} & set(bounds)
    merged = {key: bounds.get(key, new[key]) for key in new}
    merged |= {key: bounds[key] for key in bounds if key in kept}
    FILE.write_text(json.dumps(merged, indent=1) + "\n")
    return added
