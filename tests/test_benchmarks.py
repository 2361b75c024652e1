"""The benchmarks run and compare like with like. No time is asserted."""

import json
from collections import Counter

import jax.numpy as jnp
import pytest

from benchmarks import _equations, _exudyn, _harness, first_call, metal_link, profile_trace


def test_measure_returns_the_value_and_keeps_compilation_apart():
    value, timing = _harness.measure(lambda x: jnp.sum(x**2), jnp.arange(4.0), repeats=2)
    assert float(value) == 14.0
    assert timing.compile > 0 and timing.wall > 0 and timing.repeats == 2


def test_turns_return_every_value():
    (square, first), (double, second) = _harness.in_turns(
        [lambda x: jnp.sum(x**2), lambda x: jnp.sum(2 * x)], jnp.arange(4.0), repeats=2
    )
    assert (float(square), float(double)) == (14.0, 12.0)
    assert (
        min(first.compile, first.wall, second.compile, second.wall) > 0
        and first.repeats == second.repeats == 2
    )


def test_results_are_written_with_their_circumstances(tmp_path, monkeypatch):
    monkeypatch.setattr(_harness, "RESULTS", tmp_path)
    path = _harness.save("problem", [_harness.row("case", error="not solved")], elements=16)
    stored = json.loads(path.read_text())
    assert stored["rows"] == [{"name": "case", "error": "not solved"}] and stored["elements"] == 16
    assert stored["versions"]["jax"] and stored["cpus"] and stored["platform"] == "cpu"


@pytest.mark.outside
def test_exudyn_side_reaches_the_reference_tip(record_number):
    pytest.importorskip("exudyn")
    run = _exudyn.pendulum(
        metal_link.Link(),
        kind="GeometricallyExact2D",
        elements=16,
        dt=1e-3,
        end=metal_link.END,
        gravity=metal_link.GRAVITY,
    )
    assert run.steps == 1000
    error = max(abs(a - b) for a, b in zip(run.tip, metal_link.REFERENCE_TIP, strict=True))
    record_number("metal link: Exudyn's tip after 1 s against the reference, m", error, 5e-6)


def test_profile_counts_crossings_and_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_harness, "RESULTS", tmp_path)
    (row,) = profile_trace.main(["--only", "RigidArm"])
    assert row["files"] > 10 and row["calls"] > row["crossings"] > row["files"]
    assert sum(n for _, _, n in row["traffic"]) == row["crossings"]
    assert any(a == "simulate" for a, _, _ in row["traffic"])
    assert (
        json.loads((tmp_path / "profile_trace.json").read_text())["rows"][0]["name"] == "RigidArm"
    )
    assert "RigidArm" in capsys.readouterr().out
    two = Counter({("a", "b"): 2, ("b", "a"): 1, ("a", "c"): 5})
    assert profile_trace.both_ways(two) == [("a", "b", 2, 1)]


def test_equations_belong_to_the_functions_that_traced_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_harness, "RESULTS", tmp_path)
    monkeypatch.setattr(_equations, "TASKS", ("simulate",))
    (row,) = profile_trace.main(["--only", "RigidArm", "--equations", "1000"])
    step = "simulate/loop/_march.py:_stepper.<locals>.step"
    assert row["equations"] >= row["inclusive"][step] > row["own"][step] > 0
    assert sum(row["own"].values()) <= row["equations"]
    assert f"{row['equations']:10}" in capsys.readouterr().out


def test_first_call_measures_every_phase():
    """A case in this process, and the page of a stored result."""
    found = first_call.case("RigidArm", "one link", "simulate", threads=None)
    assert all(found[phase] >= 0 for phase in first_call.PHASES)
    assert found["equations"] > 100 and found["stablehlo"] > 1000
    assert 0 < found["largest"][0][1] < found["equations"]
    rows = [
        _harness.row(
            "RigidArm/one link/simulate", **found, total=1.0, memory=1e8, warm={"total": 0.5}
        ),
        _harness.row("FiniteElement/loop/simulate", unsupported="closed loops"),
    ]
    refused = dict.fromkeys(first_call.REFUSALS, 0.5)
    stored = {**_harness.environment(), "rows": rows, "threads": None, "refusals": refused}
    lines = first_call.page(stored).splitlines()
    table = [line for line in lines if line.startswith("|")]
    phases, refusals = table[: -len(refused) - 2], table[-len(refused) - 2 :]
    assert len({line.count("|") for line in phases}) == 1 and "not supported" in phases[-1]
    assert "`flexjax --help` | 0.50" in refusals[2]


@pytest.mark.parametrize("name", first_call.ROBOTS)
def test_robots_of_first_call_have_a_formulation(name):
    from flexjax.formulation import formulations_for

    assert formulations_for(first_call.robot_of(name))[0]
