"""The limits and the full report must fail when they should."""

import json
import math

import pytest

from tests import _report


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


def test_report_is_valid_json_even_with_nan(tmp_path):
    reporter = _report.Reporter()
    reporter.numbers = [_report.number("t::a", "good", 0.5, 1.0, "<="), _report.number("t::b", "bad", math.nan, 1.0, "<=")]
    reporter.outcomes = {"t::a": "passed", "t::b": "failed"}
    path = tmp_path / "report.json"
    reporter.write(path)
    report = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert [n["passed"] for n in report["numbers"]] == [True, False]
    assert report["tests"] == {"passed": 1, "failed": 1} and report["failed"] == ["t::b"]
    assert "0 days old" in _report.age(path) and "1 within limits, 1 not" in _report.age(path)


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
    assert [kept.pop()[1]["name"], kept.pop()[1]["name"]] == ["beyond", "within"]  # and out of the real report again
