"""The recorded numbers of two full reports side by side.

    python -m tests._report --compare OLD NEW

A number belongs to its namesake in the test of the same name. Where the test was renamed or moved,
it belongs to the only number of that name, or to the one that ``RENAMED`` gives.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

SAME = 1e-9  # relative difference up to which two values are equal
# Errors of this size are round-off of quantities of order one: any new order of operations changes
# them.
ROUND_OFF = 1e-12

# Old name -> new name, of tests (with their file) and of numbers.
RENAMED: dict[str, str] = {}


class Row(NamedTuple):
    """One number; ``old`` or ``new`` is None where only the other report has it."""

    verdict: str
    test: str
    name: str
    old: float | None
    new: float | None


Key = tuple[str, str, int]  # test, number, and which one of that name in the test


def _numbers(tests: dict[str, dict]) -> Iterator[tuple[Key, dict]]:
    for test, entry in tests.items():
        seen: Counter = Counter()
        for number in entry["numbers"]:
            yield (test, number["name"], seen[number["name"]]), number
            seen[number["name"]] += 1


def _partners(old: list[Key], new: list[Key], renamed: dict[str, str]) -> dict[Key, Key]:
    """For each number of the new report its partner in the old one, where it has one."""
    now = {(renamed.get(test, test), renamed.get(name, name), k): (test, name, k)
           for test, name, k in old}  # fmt: skip
    found = {key: now.pop(key) for key in new if key in now}
    rest = [key for key in new if key not in found]
    names_old, names_new = (Counter(name for _, name, _ in keys) for keys in (now, rest))
    by_name = {name: key for (_, name, _), key in now.items()}
    for key in rest:
        if names_old[key[1]] == names_new[key[1]] == 1:
            found[key] = by_name[key[1]]
    return found


def verdict(old: dict, new: dict) -> str:
    """How a number changed. Limits count where they are broken in the new report only."""
    a, b = float(old["value"]), float(new["value"])
    if a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= SAME * max(abs(a), abs(b)):
        return "equal"
    if not new["passed"] and old["passed"]:
        return "BROKEN"
    return "round-off" if max(abs(a), abs(b)) <= ROUND_OFF else "differs"


def compare(
    old: dict[str, dict], new: dict[str, dict], renamed: dict[str, str] | None = None
) -> list[Row]:
    """One row per number of either report, in the order of the new one."""
    before, after = dict(_numbers(old)), dict(_numbers(new))
    partners = _partners(list(before), list(after), RENAMED if renamed is None else renamed)
    rows = []
    for key, number in after.items():
        value = float(number["value"])
        if key in partners:
            other = before[partners[key]]
            rows.append(Row(verdict(other, number), *key[:2], float(other["value"]), value))
        else:
            rows.append(Row("new only", *key[:2], None, value))
    left = [key for key in before if key not in set(partners.values())]
    return rows + [Row("old only", *key[:2], float(before[key]["value"]), None) for key in left]


def table(rows: list[Row]) -> str:
    """The rows as text, with a count of each verdict at the end."""

    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.10g}"

    def change(row: Row) -> str:
        if row.old is None or row.new is None:
            return ""
        size = max(abs(row.old), abs(row.new))
        return f"{abs(row.new - row.old) / size:.1e}" if size > 0 else "0"

    lines = [f"{'':9} {'old':>18} {'new':>18} {'relative':>9}  number"]
    for row in rows:
        lines.append(
            f"{row.verdict:9} {shown(row.old):>18} {shown(row.new):>18} {change(row):>9}  "
            f"{row.name}  ({row.test})"
        )
    count = Counter(row.verdict for row in rows)
    words = ", ".join(f"{n} {word}" for word, n in count.most_common())
    return "\n".join([*lines, f"{len(rows)} numbers: {words or 'none'}"])
