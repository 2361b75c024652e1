"""Names of robots, links, joints and sensors in pages, figures and tables."""

import ast
import csv
import html
import re
from pathlib import Path

import markupsafe
import numpy as np
import pytest

import flexjax as fx
from flexjax._html import bars, block, curves
from flexjax.robot import robot_from_dict
from flexjax.study.sweep._store import create_store, open_store
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


@pytest.mark.parametrize("name", [*NAMES, "a/b", "run", "zarr.json", ".", "x" * 300])
def test_outputs_of_a_sweep_may_have_any_name(tmp_path, name):
    """A name with a slash was written into a group that no reader looked at."""
    store = create_store(tmp_path / "store", {}, (2, 2), np.arange(6), np.ones((6, 1)), ["x"])
    rows = {name: np.ones((2, 3)), "status": np.zeros(2, "i4")}
    store.declare(rows, lambda name, count: ("axis",) * count)
    for k in range(3):
        store.write(k, rows)
    again = open_store(tmp_path / "store", {}, 6)
    assert again is not None and set(again.arrays()) == {name, "status"}
    assert not again.missing() and (again.arrays()[name][:] == 1.0).all()
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_escaped_in_notebooks(name):
    """What `_repr_html_` of every result is made of."""
    two = {name: [0.0, 1.0], f"{name} b": [1.0, 0.0]}
    parts = [block(name), curves([0.0, 1.0], two, name, name), bars({name: 1.0}, name)]
    run = named_run(name)
    parts += [run._repr_html_(), run.robot._repr_html_()]
    for text in parts:
        assert "<" not in name or name not in text and "<img" not in text
    assert html.escape(name) in parts[0]


# They write HTML, and escape what they put into it: the tests above.
WRITERS = {"_html.py", "_markdown.py", "_animate.py"}
TRUSTED = {"part.html", "part.scene", "viewer", "scene", "script"}  # values of templates


def test_every_page_is_written_by_what_escapes():
    """Reports of moves, identifications, comparisons and sweeps, and all notebook pages, are put
    together by Report and by flexjax/_html; no other module writes HTML."""
    package = Path(fx.__file__).parent
    for path in package.rglob("*.py"):
        where = path.name
        tree = ast.parse(path.read_text("utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == "_repr_html_":
                made = [x.value for x in ast.walk(node) if isinstance(x, ast.Return)]
                calls = [ast.unparse(x.func) for x in made if isinstance(x, ast.Call)]
                assert len(calls) == len(made) and set(calls) <= {"block", "self.frame"}, where
            text = isinstance(node, ast.Constant) and id(node) not in documents
            if where not in WRITERS and text:
                tag = re.search(r"</[a-z]+>|<[a-z]+ [a-z]+=", str(node.value))
                assert not tag, (where, node.lineno)
    pages = list(package.rglob("assets/*.html"))
    assert len(pages) == 2
    for page in pages:
        assert set(re.findall(r"{{ ?([\w.]+)\|safe", page.read_text("utf-8"))) <= TRUSTED
