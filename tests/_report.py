"""Pytest plugin: numbers with limits, and the full report.

A test writes `record_number("energy drift, rigid 3R, 10 s", drift, 1e-9)`: the number is printed, kept and asserted.
`pytest --full-report FILE` (`make test-full`) writes all of them with commit and date; without the option nothing is
written and the summary says how old the stored report is.
"""

import datetime
import json
import math
import operator
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "tests" / "full-report.json"
_RELATIONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq}


def holds(value: float, limit, relation: str) -> bool:
    """Whether `value relation limit`; NaN never holds. `relation="in"` takes a pair (low, high), ends included."""
    if relation == "in":
        low, high = limit
        return bool(low <= value <= high)
    if relation not in _RELATIONS:
        raise ValueError(f"relation: got {relation!r}, expected one of {', '.join([*_RELATIONS, 'in'])}")
    return bool(_RELATIONS[relation](value, limit)) and not math.isnan(value)


def _git(*args: str) -> str | None:
    try:
        out = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() if out.returncode == 0 else None


def commit() -> str:
    """The commit of the work tree, with '+' when files differ from it; 'unknown' without git."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/full-report.json")
    return head + ("+" if changed else "")


def age(path: Path = REPORT) -> str:
    """One line: how old the stored full report is and what it says."""
    if not path.exists():
        return "full report: none yet (make test-full writes it)"
    try:
        report = json.loads(path.read_text())
        when = datetime.datetime.fromisoformat(report["date"])
        days = (datetime.datetime.now(datetime.UTC) - when).days
        numbers = report["numbers"]
        failed = sum(not n["passed"] for n in numbers)
        tests = report["tests"]
        line = (
            f"full report: {days} days old ({report['date'][:10]}, commit {report['commit']}): "
            f"tests {tests.get('passed', 0)} passed, {tests.get('failed', 0)} failed, "
            f"{tests.get('skipped', 0)} skipped; numbers {len(numbers) - failed} within limits, {failed} not"
        )
        since = _git("rev-list", "--count", f"{report['commit'].rstrip('+')}..HEAD")
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        return f"full report: {path.name} is not readable ({type(e).__name__}: {e}); make test-full writes a new one"
    return line + (f"; {since} commits since" if since else "")


def number(nodeid: str, name: str, value, limit, relation: str) -> dict:
    """What is kept of one measured number."""
    value = float(value)
    limit = [float(x) for x in limit] if relation == "in" else float(limit)
    passed = holds(value, limit, relation)
    return {"name": name, "value": value, "relation": relation, "limit": limit, "passed": passed, "test": nodeid}


class Reporter:
    """What one pytest run measured."""

    def __init__(self):
        self.numbers: list[dict] = []
        self.outcomes: dict[str, str] = {}
        self.start = time.monotonic()

    def write(self, path: Path):
        counts: dict[str, int] = {}
        for outcome in self.outcomes.values():
            counts[outcome] = counts.get(outcome, 0) + 1
        report = {
            "commit": commit(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self.start, 1),
            "python": platform.python_version(),
            "versions": {p: metadata.version(p) for p in ("jax", "jaxlib", "diffrax", "equinox", "numpy")},
            "tests": counts,
            "failed": sorted(k for k, v in self.outcomes.items() if v == "failed"),
            # JSON has no NaN or infinity; such a value is written as a word
            "numbers": [
                {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in n.items()}
                for n in self.numbers
            ],
        }
        path.write_text(json.dumps(report, indent=1) + "\n")


NUMBER = "flexjax-number"
REPORTER = pytest.StashKey[Reporter]()


def pytest_addoption(parser):
    parser.addoption("--full-report", metavar="FILE", default=None, help="write every recorded number to FILE")


def pytest_configure(config):
    config.stash[REPORTER] = Reporter()
    config.pluginmanager.register(Collector(config.stash[REPORTER]), "flexjax-numbers")


class Collector:
    """Takes the numbers from the reports of the tests, so that they arrive from parallel workers too."""

    def __init__(self, reporter: Reporter):
        self.reporter = reporter

    def pytest_runtest_logreport(self, report):
        outcomes = self.reporter.outcomes
        if report.failed or report.when == "call" or report.skipped:
            if outcomes.get(report.nodeid) != "failed":
                outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            self.reporter.numbers += [entry for key, entry in report.user_properties if key == NUMBER]


def pytest_terminal_summary(terminalreporter, config):
    reporter = config.stash[REPORTER]
    if reporter.numbers:
        terminalreporter.section("numbers")
        for n in reporter.numbers:
            mark = "ok  " if n["passed"] else "FAIL"
            limit = n["limit"] if n["relation"] == "in" else f"{n['limit']:.4g}"
            terminalreporter.write_line(f"{mark} {n['name']}: {n['value']:.6g} {n['relation']} {limit}")
    target = config.getoption("--full-report")
    if target is None:
        terminalreporter.write_line(age())
    else:
        reporter.write(Path(target))
        terminalreporter.write_line(f"full report: written to {target}")


@pytest.fixture
def record_number(request):
    """`record_number(name, value, limit, relation="<=")`: print, keep and assert a measured number; returns it."""

    def record(name: str, value, limit, relation: str = "<=") -> float:
        entry = number(request.node.nodeid, name, value, limit, relation)
        request.node.user_properties.append((NUMBER, entry))
        assert entry["passed"], f"{name}: {entry['value']:.6g} is not {relation} {limit}"
        return entry["value"]

    return record
