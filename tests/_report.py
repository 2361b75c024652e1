"""Pytest plugin: numbers with limits, and the full report.

A test writes `record_number("energy drift, rigid 3R, 10 s", drift, 1e-9)`, which prints, stores and
asserts the number. `pytest --full-report FILE` (`make test-full`) stores outcome and numbers of
every test in FILE, with commit and date; a run of some tests replaces only their entries. Without
the option nothing is written, and the summary reports the age of the stored report. Either way it
names recorded tests that no longer exist; a written report drops them. Reports of several runs are
merged, with the newest entry of each test:

    python -m tests._report a.json b.json --into tests/full-report.json

The numbers of two reports side by side, with those that differ by more than 1e-9, relative:

    python -m tests._report --compare old.json new.json
"""

import argparse
import datetime
import json
import math
import operator
import platform
import subprocess
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest

from tests._report_compare import compare, table

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "tests" / "full-report.json"
_RELATIONS = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}


def holds(value: float, limit, relation: str) -> bool:
    """Whether `value relation limit`; NaN never holds.

    `relation="in"` takes a pair (low, high), ends included.
    """
    if relation == "in":
        low, high = limit
        return bool(low <= value <= high)
    if relation not in _RELATIONS:
        raise ValueError(
            f"relation: got {relation!r}, expected one of {', '.join([*_RELATIONS, 'in'])}"
        )
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
    changed = _git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/full-report.json"
    )
    return head + ("+" if changed else "")


def age(path: Path = REPORT) -> str:
    """One line: how old the oldest and the newest entries of the stored report are and what they
    say.
    """
    if not path.exists():
        return "full report: none yet (make test-full writes it)"
    try:
        tests = read(path)
        oldest, newest = (pick(tests.values(), key=lambda t: t["date"]) for pick in (min, max))
        now = datetime.datetime.now(datetime.UTC)
        days = [(now - datetime.datetime.fromisoformat(t["date"])).days for t in (oldest, newest)]
        count = summary(tests)
        since = [
            _git("rev-list", "--count", f"{t['commit'].rstrip('+')}..HEAD")
            for t in (oldest, newest)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        return (
            f"full report: {path.name} is not readable ({type(e).__name__}: {e}); "
            "make test-full writes a new one"
        )
    parts = [
        f"{word} entry {d} days old ({t['date'][:10]}, commit {t['commit']}"
        f"{f', {n} commits since' if n else ''})"
        for word, d, t, n in zip(("oldest", "newest"), days, (oldest, newest), since, strict=True)
    ]
    return f"full report: {parts[0]}, {parts[1]}: {count}"


def read(path: Path) -> dict[str, dict]:
    """The entries of a report, by test; none where there is no file."""
    return json.loads(path.read_text())["tests"] if path.exists() else {}


def newest(reports: list[dict[str, dict]]) -> dict[str, dict]:
    """The newest entry of each test."""
    merged: dict[str, dict] = {}
    for tests in reports:
        for name, entry in tests.items():
            if name not in merged or entry["date"] >= merged[name]["date"]:
                merged[name] = entry
    return merged


def gone(recorded: Iterable[str], collected: set[str]) -> list[str]:
    """Recorded tests that no longer exist: without a file, or not among the tests collected from
    it.
    """
    files = {name.split("::")[0] for name in collected}

    def is_gone(name: str) -> bool:
        file = name.split("::")[0]
        return not (ROOT / file).exists() or (file in files and name not in collected)

    return sorted(name for name in recorded if is_gone(name))


def summary(tests: dict[str, dict]) -> str:
    outcomes = [t["outcome"] for t in tests.values()]
    numbers = [n["passed"] for t in tests.values() for n in t["numbers"]]
    words = ", ".join(f"{outcomes.count(o)} {o}" for o in ("passed", "failed", "skipped"))
    return f"tests {words}; numbers {sum(numbers)} within limits, {len(numbers) - sum(numbers)} not"


def write(path: Path, tests: dict[str, dict]):
    """One line per test and one per number, in the order of the tests' names, so that a change can
    be read.
    """
    tests = dict(sorted(tests.items()))
    environment = {
        "python": platform.python_version(),
        **{p: metadata.version(p) for p in ("jax", "jaxlib", "diffrax", "equinox", "numpy")},
    }
    head = {
        "summary": summary(tests),
        "failed": [name for name, t in tests.items() if t["outcome"] == "failed"],
        "environment": environment,
    }
    rows = []
    for name, entry in tests.items():
        # JSON has no NaN or infinity; such a value is written as a word.
        numbers = [
            {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in n.items()}
            for n in entry["numbers"]
        ]
        shown = json.dumps({k: v for k, v in entry.items() if k != "numbers"})[:-1]
        lines = "".join(f"\n    {json.dumps(n)}," for n in numbers)[:-1]
        rows.append(f'  {json.dumps(name)}: {shown}, "numbers": [{lines}]}}')
    text = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())
    rest = ",\n".join(rows)
    path.write_text(f'{{\n{text} "tests": {{\n{rest}\n }}\n}}\n')


def number(name: str, value, limit, relation: str) -> dict:
    """What is kept of one measured number."""
    value = float(value)
    limit = [float(x) for x in limit] if relation == "in" else float(limit)
    return {
        "name": name,
        "value": value,
        "relation": relation,
        "limit": limit,
        "passed": holds(value, limit, relation),
    }


class Reporter:
    """What one pytest run measured."""

    def __init__(self, target: Path | None = None):
        self.tests: dict[str, dict] = {}
        self.collected: set[str] = set()  # before a selection by mark or keyword
        self.target = target
        self.before = read(target) if target else {}
        self.commit = commit() if target else "unknown"
        self.written = time.monotonic()

    def take(self, report):
        """One phase (setup, call, teardown) of one test."""
        entry = self.tests.setdefault(
            report.nodeid,
            {"outcome": "passed", "seconds": 0.0, "commit": self.commit, "date": "", "numbers": []},
        )
        if entry["outcome"] == "passed":
            entry["outcome"] = report.outcome
        entry["seconds"] = round(entry["seconds"] + report.duration, 1)
        entry["date"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        if report.when != "teardown":
            return
        entry["numbers"] = [n for key, n in report.user_properties if key == NUMBER]
        # A long run that is stopped keeps what it has.
        if self.target and time.monotonic() - self.written > 20:
            self.write()

    def write(self, whole: bool = False):
        """Beside what other runs found, without tests that no longer exist; a ``whole`` run keeps
        nothing else.
        """
        dropped = set(self.before if whole else gone(self.before, self.collected))
        kept = {name: entry for name, entry in self.before.items() if name not in dropped}
        write(self.target, kept | self.tests)
        self.written = time.monotonic()


def is_whole(config, exitstatus) -> bool:
    """Whether every test was asked for and the run came to its end."""
    everything = config.args_source is not pytest.Config.ArgsSource.ARGS
    chosen = any(
        config.getoption(x, None)
        for x in ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "maxfail")
    )
    return (
        everything
        and not chosen
        and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    )


NUMBER, COLLECTED = "flexjax-number", "flexjax-collected"
REPORTER = pytest.StashKey[Reporter]()


def pytest_addoption(parser):
    parser.addoption(
        "--full-report", metavar="FILE", default=None, help="write every recorded number to FILE"
    )


def pytest_configure(config):
    target = config.getoption("--full-report")
    # The workers of a parallel run send their results to the one that writes.
    reporter = Reporter(Path(target) if target and not hasattr(config, "workerinput") else None)
    config.stash[REPORTER] = reporter
    config.pluginmanager.register(Collector(reporter), "flexjax-numbers")


class Collector:
    """Takes the numbers from the reports of the tests, so that they arrive from parallel workers
    too.
    """

    def __init__(self, reporter: Reporter):
        self.reporter = reporter

    def pytest_runtest_logreport(self, report):
        self.reporter.take(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        # A test asked for by its own name leaves out the others of its file.
        if not any("::" in str(arg) for arg in config.args):
            self.reporter.collected |= {item.nodeid for item in items}

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[COLLECTED] = sorted(self.reporter.collected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        """A parallel run: its workers collect."""
        self.reporter.collected |= set(getattr(node, "workeroutput", {}).get(COLLECTED, ()))


def _recorded() -> dict[str, dict]:
    """The entries of the stored report; none where :func:`age` says that it cannot be read."""
    try:
        return read(REPORT)
    except (ValueError, KeyError):
        return {}


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    reporter = config.stash[REPORTER]
    numbers = [n for entry in reporter.tests.values() for n in entry["numbers"]]
    if numbers:
        terminalreporter.section("numbers")
        for n in numbers:
            mark = "ok  " if n["passed"] else "FAIL"
            limit = n["limit"] if n["relation"] == "in" else f"{n['limit']:.4g}"
            terminalreporter.write_line(
                f"{mark} {n['name']}: {n['value']:.6g} {n['relation']} {limit}"
            )
    recorded = reporter.before if reporter.target else _recorded()
    lost = gone(recorded, reporter.collected)
    if lost:
        what = "dropped" if reporter.target else "recorded"
        listed = "".join(f"\n  {name}" for name in lost)
        terminalreporter.write_line(
            f"full report: {what} tests that no longer exist (renamed or removed):{listed}"
        )
    if reporter.target is None:
        terminalreporter.write_line(age())
    else:
        reporter.write(is_whole(config, exitstatus))
        terminalreporter.write_line(f"full report: written to {reporter.target}")


@pytest.fixture
def record_number(request):
    """`record_number(name, value, limit, relation="<=")`: print, keep and assert a measured number;
    returns it.
    """

    def record(name: str, value, limit, relation: str = "<=") -> float:
        entry = number(name, value, limit, relation)
        request.node.user_properties.append((NUMBER, entry))
        assert entry["passed"], f"{name}: {entry['value']:.6g} is not {relation} {limit}"
        return entry["value"]

    return record


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(
        description="Reports of several runs as one: the newest entry of each test."
    )
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("OLD", "NEW"),
        help="print the numbers of two reports side by side, and merge nothing",
    )
    parser.add_argument(
        "--into", type=Path, default=REPORT, help="updated: an entry in it that is the newest stays"
    )
    args = parser.parse_args(argv)
    if bool(args.reports) == bool(args.compare):
        parser.error("expected reports to merge, or --compare OLD NEW")
    missing = [str(p) for p in (*args.reports, *(args.compare or ())) if not p.exists()]
    if missing:
        parser.error(f"no such report: {', '.join(missing)}")
    if args.compare:
        print(table(compare(*(read(p) for p in args.compare))))
        return
    write(args.into, newest([read(p) for p in (args.into, *args.reports)]))
    print(age(args.into))


if __name__ == "__main__":
    main()
