"""What cannot be is refused in the same words in Python and on the command line, or ends with a
status that names the limit."""

import json

import pytest

import flexjax as fx
from flexjax.cli import main
from tests.optimise.test_feasible import _rigid

TEXT = """
schema = 1
name = "bar"
gravity = [0.0, -9.81, 0.0]
planar = true

[[links]]
name = "link"
length = 0.5
rigid = true
body = { mass = 1.0, com = [0.25, 0.0, 0.0], inertia = [1e-2, 1e-2, 1e-2, 0.0, 0.0, 0.0] }

[[joints]]
name = "root"
type = "revolute"
parent = "ground"
child = "link"
stops = { lower = -1.0, upper = 1.0, stiffness = 1e3 }
"""


@pytest.fixture
def arm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.toml").write_text(TEXT)
    return "arm.toml"


def command(arm, to="root=0.8", duration="0.5", *rest):
    argv = ["optimise", arm, "--formulation", "RigidArm", "--to", to, "--duration", duration]
    return main([*argv, "--steps", "10", "--knots", "4", *rest])


@pytest.mark.parametrize(
    "options, words, argv",
    [
        (dict(goal={"root": 1.5}), "goal.root: 1.5; expected", ["root=1.5"]),
        (
            dict(start={"root": -2.0}),
            "start.root: -2; expected",
            ["root=0.8", "0.5", "--start", "root=-2"],
        ),
        (
            dict(limits={"velocity": 1.0}),
            "takes at least 0.8 s from 0 to 0.8",
            ["root=0.8", "0.5", "--limit", "velocity=1"],
        ),
        (
            dict(limits={"jerk": 25.6}, duration=(0.2, 0.5)),
            "takes at least 1 s from 0 to 0.8",
            ["root=0.8", "0.2:0.5", "--limit", "jerk=25.6"],
        ),
        (
            dict(limits={"effort": 0.1}),
            "limits.effort.root: 0.1; the arm at rest at the start",
            ["root=0.8", "0.5", "--limit", "effort=0.1"],
        ),
        (
            dict(limits={"tip_speed": 0.1}),
            "limits.tip_speed: 0.1; the tip moves by",
            ["root=0.8", "0.5", "--limit", "tip_speed=0.1"],
        ),
    ],
)
def test_refusals_have_the_same_words_everywhere(arm, capsys, options, words, argv):
    given = dict(goal={"root": 0.8}, duration=0.5, steps=10, knots=4)
    with pytest.raises(ValueError, match=words.replace(".", r"\.")) as refused:
        fx.optimise(_rigid(), **(given | options))
    assert command(arm, *argv) == 1
    out, err = capsys.readouterr()
    assert err.strip().endswith(f"flexjax optimise: {refused.value}") and out == ""


@pytest.mark.slow
def test_contradicting_limits_end_with_their_name(arm, capsys):
    """Rest to rest within the velocity needs more acceleration than its limit. Each limit alone can
    be met, also by the B-spline, so that nothing is known before the search."""
    limits = {"velocity": 2.4, "acceleration": 17.0}
    given = dict(goal={"root": 0.8}, duration=0.5, steps=10, knots=4)
    res = fx.optimise(_rigid(), limits=limits, **given)
    assert res.status == "infeasible" and not res.ok and res.violation > 1e-3, str(res)
    assert "cannot be met: exceeded by" in res.message and res.message in str(res)
    named = [f"limits.{name}.root" for name in limits]
    assert any(res.message.startswith(name) for name in named), res.message
    rest = [f"{name}={bound}" for name, bound in limits.items()]
    assert command(arm, "root=0.8", "0.5", "--limit", *rest, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "infeasible" and found["message"] == res.message
