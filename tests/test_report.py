"""The limits and the full report must fail when they should."""

import json
import math

import pytest

from tests import _report, _report_compare as _compare


@pytest.mark.parametrize(
    ("value", "limit", "relation", "expected"),
    [
        (1.0, 1.0, "<=", True),
        (1.1, 1.0, "<=", False),
        (1.0, 1.0, "<", False),
        (2.0, 1.0, ">=", True),
        (math.nan, 1.0, "<=", False),
        (math.nan, 1.0, ">=", False),
        (math.inf, 1.0, "<=", False),
        (2.1, (1.85, 2.15), "in", True),
        (2.2, (1.85, 2.15), "in", False),
        (math.nan, (0.0, 1.0), "in", False),
    ],
)
def test_relations(value, limit, relation, expected):
    assert _report.holds(value, limit, relation) is expected


def test_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="relation: got '~'"):
        _report.holds(1.0, 1.0, "~")


def entry(date, *numbers, outcome="passed", commit="0000000"):
    return {
        "outcome": outcome,
        "seconds": 1.0,
        "commit": commit,
        "date": date,
        "numbers": list(numbers),
    }


OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def test_report_is_valid_json_even_with_nan(tmp_path):
    good, bad = (
        _report.number("good", 0.5, 1.0, "<="),
        _report.number("bad", math.nan, (0.0, 1.0), "in"),
    )
    path = tmp_path / "report.json"
    _report.write(path, {"t::b": entry(NEW, good, bad, outcome="failed"), "t::a": entry(OLD)})
    report = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert list(report["tests"]) == ["t::a", "t::b"] and report["failed"] == ["t::b"]
    assert [n["passed"] for n in report["tests"]["t::b"]["numbers"]] == [True, False]
    line = _report.age(path)
    assert "1 passed, 1 failed" in line and "1 within limits, 1 not" in line
    assert (
        "oldest" in line
        and "(2026-01-01, commit 0000000)" in line
        and "(2026-02-01, commit 0000000)" in line
    )


def test_reports_of_several_runs_become_one(tmp_path, capsys):
    a, b, into = (tmp_path / f"{x}.json" for x in "abi")
    _report.write(a, {"t::one": entry(NEW, commit="a"), "t::two": entry(OLD, commit="a")})
    _report.write(b, {"t::one": entry(OLD, commit="b"), "t::two": entry(NEW, commit="b")})
    _report.write(into, {"t::three": entry(OLD, commit="i")})
    _report.main([str(a), str(b), "--into", str(into)])
    assert {k: v["commit"] for k, v in _report.read(into).items()} == {
        "t::one": "a",
        "t::two": "b",
        "t::three": "i",
    }
    assert "3 passed" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        _report.main([str(tmp_path / "missing.json")])


CHECKS = """
def test_good(record_number):
    record_number("half", 0.5, 1.0)

def test_bad(record_number):
    record_number("two", 2.0, 1.0)
"""


@pytest.fixture
def runs(pytester, monkeypatch):
    """Runs of pytest in an empty folder, with the plugin."""
    monkeypatch.setattr(_report, "ROOT", pytester.path)
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(test_one=CHECKS, test_two="def test_other(): pass")

    def run(*args):
        done = pytester.runpytest_inprocess(
            "-p", "tests._report", "-p", "no:cacheprovider", "--full-report", "report.json", *args
        )
        run.output = done.stdout.str()
        return _report.read(pytester.path / "report.json")

    return run


def test_a_partial_run_replaces_its_own_entries_only(runs, pytester):
    first = runs()
    assert {k: v["outcome"] for k, v in first.items()} == {
        "test_one.py::test_bad": "failed",
        "test_one.py::test_good": "passed",
        "test_two.py::test_other": "passed",
    }
    assert [n["passed"] for n in first["test_one.py::test_bad"]["numbers"]] == [False]
    pytester.makepyfile(test_one=CHECKS.replace("2.0", "0.25").replace("test_good", "test_renamed"))
    second = runs("test_one.py")
    assert second["test_two.py::test_other"] == first["test_two.py::test_other"]
    assert second["test_one.py::test_bad"]["numbers"][0]["value"] == 0.25
    assert set(second) == {*first, "test_one.py::test_renamed"} - {"test_one.py::test_good"}
    (pytester.path / "test_two.py").unlink()
    assert set(runs("-k", "renamed")) == {k for k in second if k.startswith("test_one")}
    assert set(runs()) == {"test_one.py::test_bad", "test_one.py::test_renamed"}


def test_age_without_a_usable_report(tmp_path):
    assert "none yet" in _report.age(tmp_path / "missing.json")
    (tmp_path / "broken.json").write_text("{}")
    assert "not readable" in _report.age(tmp_path / "broken.json")


def test_no_git_is_no_error(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert _report.commit() == "unknown"


def test_record_number_keeps_and_asserts(request, record_number):
    kept = request.node.user_properties
    assert record_number("within", 0.5, 1.0) == 0.5
    with pytest.raises(AssertionError, match="beyond: 2 is not <= 1.0"):
        record_number("beyond", 2.0, 1.0)
    assert [kept.pop()[1]["name"], kept.pop()[1]["name"]] == [
        "beyond",
        "within",
    ]  # and out of the real report again


def test_tests_that_no_longer_exist_are_named(runs, pytester):
    """Only where their file was collected: a test by its own name says nothing about the others."""
    runs()
    pytester.makepyfile(test_one=CHECKS.replace("test_good", "test_renamed"))
    assert "test_one.py::test_good" in runs("test_one.py::test_bad")
    assert "no longer exist" not in runs.output
    kept = runs("-k", "other")
    assert "no longer exist" in runs.output and "test_one.py::test_good" in runs.output
    assert set(kept) == {"test_one.py::test_bad", "test_two.py::test_other"}


def test_workers_report_what_they_collected(runs, pytester):
    pytest.importorskip("xdist")
    runs()
    pytester.makepyfile(test_one=CHECKS.replace("test_good", "test_renamed"))
    runs("-n", "1", "-k", "other")
    assert "test_one.py::test_good" in runs.output


def test_a_stored_report_is_compared_with_the_code(tmp_path, monkeypatch):
    monkeypatch.setattr(_report, "ROOT", tmp_path)
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").touch()
    recorded = ["a.py::old", "a.py::new", "b.py::unseen", "c.py::removed"]
    assert _report.gone(recorded, {"a.py::new"}) == ["a.py::old", "c.py::removed"]


def test_numbers_of_two_reports_stand_side_by_side(tmp_path, capsys):
    """Renamed tests and numbers find their partners; what differs is reported as such."""

    def recorded(**values):
        return entry(NEW, *(_report.number(k, v, 1.0, "<=") for k, v in values.items()))

    twice = [_report.number("twice", v, 1.0, "<=") for v in (0.1, 0.2)]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    _report.write(
        old,
        {
            "a.py::kept": recorded(same=0.5, rounded=0.3, moved=0.5, broken=0.5, tiny=1e-15),
            "a.py::renamed": recorded(alone=0.25, lost=0.5),
            "a.py::mapped": recorded(first=0.75),
            "a.py::both": entry(NEW, *twice),
        },
    )
    _report.write(
        new,
        {
            "a.py::kept": recorded(
                same=0.5, rounded=0.3 * (1 + 5e-10), moved=0.5 * (1 + 5e-9), broken=2.0, tiny=3e-15
            ),
            "b.py::other": recorded(alone=0.25, fresh=0.5),
            "b.py::mapped": recorded(second=0.75),
            "a.py::both": entry(NEW, *twice),
        },
    )
    names = {"a.py::mapped": "b.py::mapped", "first": "second"}
    rows = _compare.compare(_report.read(old), _report.read(new), names)
    assert [(row.verdict, row.name) for row in rows if row.verdict != "equal"] == [
        ("differs", "moved"),
        ("BROKEN", "broken"),
        ("round-off", "tiny"),
        ("new only", "fresh"),
        ("old only", "lost"),
    ]
    assert {row.name for row in rows if row.verdict == "equal"} == {
        "same",
        "rounded",
        "alone",
        "second",
        "twice",
    }
    _report.main(["--compare", str(old), str(new)])
    lines = capsys.readouterr().out.splitlines()
    assert any("5.0e-09" in line and line.startswith("differs") for line in lines)
    assert lines[-1].startswith("12 numbers: 5 equal")
    for bad in ([], [str(old), "--compare", str(old), str(new)]):
        with pytest.raises(SystemExit):
            _report.main(bad)
