"""What a result writes: the table for a motor controller, the report, the command line."""

import csv
import json

import numpy as np
import pytest

from flexjax.cli import main
from flexjax.cli.study._optimise import (
    COSTS as COMMAND_COSTS,
    LIMITS as COMMAND_LIMITS,
    METHODS as COMMAND_METHODS,
)
from flexjax.study.optimise._optimise import INSIDE
from flexjax.study.optimise.problem._costs import COSTS
from flexjax.study.optimise.problem._limits import MARGINS
from flexjax.study.optimise.search import METHODS
from tests.optimise.test_optimise import nominal, robust


def test_the_command_line_knows_the_costs_and_limits():
    assert set(COMMAND_COSTS) == set(COSTS)
    # Intervals and regions are not one number.
    assert set(COMMAND_LIMITS) == set(MARGINS) - {"position", "keep_out"}
    assert set(COMMAND_METHODS) == {*INSIDE, *METHODS}


@pytest.mark.slow
def test_the_table_of_a_motor_controller(tmp_path):
    res = nominal()
    path = res.to_csv(tmp_path / "move.csv", rate=100.0)
    head, *rows = csv.reader(path.read_text().splitlines())
    assert head == [
        "time [s]",
        "root.position [rad]",
        "root.velocity [rad/s]",
        "root.acceleration [rad/s2]",
        "root.effort [N m]",
    ]
    t, x, v, a, effort = np.array(rows, float).T
    assert t[-2] < res.duration <= t[-1] and np.allclose(np.diff(t), 0.01)
    # The motor's own motion, which ends at rest at the goal.
    signal = res.drive.joints["root"].signal
    np.testing.assert_allclose(x, [float(signal(s)) for s in t], atol=1e-12)
    np.testing.assert_allclose([x[0], x[-1], v[0], v[-1], a[-1]], [0, 1, 0, 0, 0], atol=1e-9)
    # The work of the effort on the motor is the energy of the arm, which is zero at the end.
    assert abs(np.trapezoid(effort * v, t)) < 0.05 * np.trapezoid(np.abs(effort * v), t)
    for rate in (0.0, -1.0, np.nan, 1.0):
        with pytest.raises(ValueError, match="rate: .*expected"):
            res.to_csv(tmp_path / "no.csv", rate)


@pytest.mark.slow
def test_the_report_compares_and_shows(tmp_path):
    page = robust().report(tmp_path / "move.html", ("A note.",)).read_text()
    for text in ("worst over payloads.tool.mass", "quintic", "zvd", "A note.", "No limits were"):
        assert text in page
    assert page.count("data:image/png") >= 4 and "iframe" in page


@pytest.mark.slow
def test_the_command_writes_report_and_table(tmp_path, capsys):
    table, page = tmp_path / "move.csv", tmp_path / "move.html"
    argv = ["optimise", "li-zhang-single-link", "--to", "motor=0.5", "--duration", "0.25"]
    argv += ["--formulation", "TransferMatrix:segments=2", "--knots", "4", "--steps", "40"]
    argv += ["--limit", "velocity=20", "--csv", str(table), "--report", str(page), "--json"]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "converged" and found["violation"] <= 1e-6
    assert found["files"] == [str(page), str(table)] and table.exists() and page.exists()
