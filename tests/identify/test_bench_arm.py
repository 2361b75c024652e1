"""The shipped data set: from the command line to a report, and the page about identification."""

import json
import re
import shlex
from pathlib import Path

import jax
import numpy as np
import pytest

import flexjax as fx
from flexjax.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "identify.md"


def page_commands() -> list[list[str]]:
    """The commands that the page shows, without the program's name."""
    _, _, end = PAGE.read_text(encoding="utf-8").partition("## On the command line")
    text = re.sub(r" *\\\n *", " ", end)
    found = re.findall(r"^    flexjax (.*)$", text, re.M)
    assert len(found) == 2 and "bench-arm" in found[0]
    return [shlex.split(line) for line in found]


@pytest.mark.docs
def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report, robot = tmp_path / "fit.html", tmp_path / "arm.toml"
    assert main([*page_commands()[0], "--save", str(robot), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    truth = fx.load_dataset("bench-arm").truth
    assert out["status"] == "converged" and set(out["estimates"]) == set(truth)
    for name, value in truth.items():
        row = out["estimates"][name]
        assert abs(row["estimate"] - value) < 4 * row["standard_error"], name
    assert min(out["validation"]["check"].values()) > 97
    assert (
        f"# payloads.tool.mass = {out['estimates']['payloads.tool.mass']['estimate']:.8g} +-"
        in (robot.read_text())
    )
    page = report.read_text()
    assert "the data determine every combination of the free parameters" in page
    assert page.count("<img") >= 4
    assert "payloads.tool.mass = 0.25 of the description is excluded" in page
    np.testing.assert_allclose(
        fx.load_robot(robot).payloads[0].mass, out["estimates"]["payloads.tool.mass"]["estimate"]
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bench-arm"], "expected at least one free parameter"),
        (["bench-arm", "--free", "payloads.tool.mass=x:y"], "LOWER:UPPER"),
        (["bench-arm", "--free", "payloads.tool.mas"], "did you mean"),
        (["two-link", "--free", "payloads.0.mass"], "shipped data sets: bench-arm"),
        (["two-link", "none.csv", "--free", "payloads.0.mass"], "no such file"),
        (["bench-arm", "--free", "payloads.tool.mass", "--report", "x.pdf"], "ends in .html"),
        (["bench-arm", "--free", "payloads.tool.mass", "--band", "3"], "two frequencies"),
    ],
)
def test_bad_commands_say_what_is_wrong(argv, message, capsys):
    assert main(["identify", *argv]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.docs
def test_page_runs(tmp_path, monkeypatch):
    """Every block in order, then the command that reads their files (the other one runs above)."""
    monkeypatch.chdir(tmp_path)
    space = {}
    with jax.numpy_rank_promotion("allow"):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
            exec(compile(block, PAGE.name, "exec"), space)
        assert main(page_commands()[1]) == 0
    mass = float(fx.load_robot("again.toml").payloads[0].mass)
    assert mass == pytest.approx(space["result"].estimates["payloads.tool.mass"], rel=0.01)


@pytest.mark.slow
@pytest.mark.outside
def test_data_set_is_what_its_script_makes(tmp_path):
    import runpy

    pytest.importorskip("exudyn")
    script = PAGE.parents[1] / "experiments" / "identify_bench_arm" / "make_data.py"
    runpy.run_path(str(script))["main"](tmp_path)
    for name in ("fit", "check"):
        made = np.genfromtxt(tmp_path / f"bench-arm-{name}.csv", delimiter=",", skip_header=1)
        record = getattr(
            fx.load_dataset("bench-arm"), {"fit": "training", "check": "validation"}[name]
        )
        np.testing.assert_allclose(
            np.radians(made[:, 2]), record.sensors["shoulder-angle"], rtol=1e-4, atol=1e-6
        )
