"""Names of robots, links, joints and sensors in pages, figures and tables."""

import csv

import markupsafe
import pytest

import flexjax as fx
from flexjax.robot import robot_from_dict
from flexjax.viz import Report, animate, plot
from tests.fuzz.loaders import trajectory

EVIL = "</script><script>alert(1)</script>"
NAMES = [EVIL, '"><img src=x onerror=alert(1)>', "../up/a:b|c", "$\\frac{$", "{{ 7+7 }}", "=1+1,x"]


def named_run(name: str):
    """A trajectory of a robot whose parts all contain that name."""
    part = name.replace(".", "")  # a dot is refused
    body = {"mass": 1.0, "com": [0.5, 0, 0], "inertia": [1.0, 1.0, 1.0, 0, 0, 0]}
    links = [{"name": f"{k} {part}", "length": 1.0, "rigid": True, "body": body} for k in "ab"]
    joints = [
        {"name": f"joint {k} {part}", "type": "revolute", "parent": parent, "child": f"{k} {part}"}
        for k, parent in (("a", "ground"), ("b", f"a {part}"))
    ]
    sensor = {"name": f"sensor {part}", "kind": "encoder", "on": joints[0]["name"]}
    document = {"schema": 1, "name": name, "links": links, "joints": joints, "sensors": [sensor]}
    return trajectory(robot_from_dict(document))


@pytest.mark.parametrize("name", NAMES)
def test_names_are_escaped_in_pages_and_safe_in_files(tmp_path, name):
    run = named_run(name)
    page = animate({name: run}, tmp_path / "view.html").html
    report = Report(name, name).heading(name).text(name).table([name], [[name]]).folded(name, name)
    report = report.verdict(True, name).code(name).markdown(name)
    report = report.figure(plot(run, "joints"), name).view(animate(run), name)
    for text in (page, report.html):
        assert "<" not in name or name not in text
    assert str(markupsafe.escape(name)) in report.html  # shown as it is
    fx.to_csv(run, tmp_path / "run.csv")
    head = next(csv.reader((tmp_path / "run.csv").read_text().splitlines()))
    assert head[1].startswith(f"sensor {name.replace('.', '')} [")
    fx.to_mat(run, tmp_path / "run.mat")
    report.save(tmp_path / "report.html")
    plot(run, "joints").savefig(tmp_path / "run.png")
    assert {p.name for p in tmp_path.iterdir()} == {
        "view.html",
        "run.csv",
        "run.mat",
        "report.html",
        "run.png",
    }
    assert not (tmp_path.parent / "up").exists()
