"""`flexjax check`, `new` and `plot`: faults with their lines, files that load, figures."""

import io
import json
import subprocess
import sys
import tomllib

import pytest

import flexjax as fx
from flexjax.cli import _check, main
from flexjax.robot.files._lines import lines_of
from flexjax.robot.parts._choices import SECTIONS
from flexjax.robot.parts._part import parts
from tests._sample import sample_trajectory

BAD = """schema = 1
name = "x"
gravty = [0.0, 0.0, 0.0]

[[links]]
name = "a"
length = -0.5  # negative [[links]]
section = { shape = "rectangle", width = 0.03, height = "x" }
material = \"\"\"
aluminum\"\"\"

[[links]]
"name" = 'b'
length = 1
pieces = [  # two
  { fraction = 0.5, constants = { EA = 1.0, EIy = 1.0, EIz = 1.0, GJ = 1.0, rhoA = 1.0 } },
  { fraction = 0.5, section = { shape = "circle", diameter = 0.0 }, material = "steel" },
]
[links.damping]
modal = 2.0

[[joints]]
name = "j"
type = "revolte"
parent = "ground"
child = "a"
[[sensor]]
name = 'x'
"""
# Line and path of every fault.
FAULTS = [
    (3, "gravty"),
    (7, "links.a.length"),
    (8, "links.a.section.height"),
    (9, "links.a.material"),
    (12, "links.b"),
    (17, "links.b.pieces.1.section.diameter"),
    (20, "links.b.damping.modal"),
    (24, "joints.j.type"),
    (27, "sensor"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_reports_every_fault_with_its_line(folder, capsys):
    (folder / "bad.toml").write_text(BAD)
    assert main(["check", "bad.toml", "two-link", "--json"]) == 1
    bad, good = json.loads(capsys.readouterr().out)["files"]
    assert [(fault["line"], fault["path"]) for fault in bad["faults"]] == FAULTS
    assert good["faults"] == []
    with pytest.raises(fx.RobotError) as caught:
        fx.load_robot("bad.toml")
    assert sorted(caught.value.faults) == sorted(fault["text"] for fault in bad["faults"])
    assert main(["check", "bad.toml"]) == 1
    assert "bad.toml:7: links.a.length = -0.5: expected" in capsys.readouterr().out


def test_check_reports_broken_and_missing_files(folder, capsys):
    (folder / "broken.toml").write_text(BAD.replace('name = "x"', "name = "))
    (folder / "bytes.toml").write_bytes(b"\xff\xfe")
    assert main(["check", "broken.toml", "bytes.toml", "none.toml"]) == 1
    out = capsys.readouterr().out
    assert "broken.toml:2: is not valid TOML" in out
    assert "bytes.toml:1: is not UTF-8" in out and "none.toml:1: cannot be read" in out


def test_check_imports_no_jax(folder):
    (folder / "bad.toml").write_text(BAD)
    code = (
        "import sys; from flexjax.cli import main; "
        "main(['check', 'bad.toml', 'two-link']); main(['new', 'n.toml', '--no-ask']); "
        "print([name for name in ('jax', 'equinox', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", fx.examples())
def test_lines_of_examples(name):
    """Every key of an example has a line, and the line contains the key."""
    from flexjax.robot._examples import example_path

    path = example_path(name)
    assert path is not None
    text = path.read_text()
    lines = text.splitlines()
    found = lines_of(text)
    document = tomllib.loads(text)

    def walk(node, path):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in children:
            here = (*path, key)
            assert isinstance(key, int) or str(key) in lines[found[here] - 1]
            if isinstance(value, dict | list):
                walk(value, here)

    walk(document, ())


def test_fields_from_source_are_those_of_the_classes():
    """The checks read the fields of the classes from their source, without jax."""
    import dataclasses

    import flexjax.robot as robot

    names = ["Robot", "Link", "Joint", "Payload", "Sensor", "Material", "BeamConstants", "Damping"]
    names += ["Body", "Piece", "Friction", "Hub", "Motor", "Stops", "Lowpass", *SECTIONS.values()]
    for name in names:
        fields = dataclasses.fields(getattr(robot, name))
        assert [part.name for part in parts(name)] == [field.name for field in fields]
        for part, field in zip(parts(name), fields, strict=True):
            assert part.required == (field.default is dataclasses.MISSING), (name, part.name)
            assert part.required or part.default == field.default, (name, part.name)
            assert (part.text is not None) == bool(field.metadata.get("static"))
    for shape, name in SECTIONS.items():
        assert getattr(robot, name).shape == shape


@pytest.mark.parametrize(
    ("options", "dofs", "planar"),
    [
        ([], 2, True),
        (["--lengths", "0.3", "0.2", "0.1", "--payload", "0.5"], 3, True),
        (["--space", "--section", "tube:0.03:0.002", "--material", "steel"], 2, False),
    ],
)
def test_new_writes_a_robot_that_loads(options, dofs, planar, folder):
    assert main(["new", "arm.toml", "--no-ask", *options]) == 0
    robot = fx.load_robot("arm.toml")
    assert robot.dofs == dofs and robot.planar == planar and robot.name == "arm"
    assert (folder / "arm.toml").read_text().count("#") > 10
    assert main(["check", "arm.toml"]) == 0
    assert main(["new", "arm.toml", "--no-ask"]) == 1  # never overwrites


def test_new_asks_until_an_answer_is_valid(monkeypatch, capsys):
    answers = "0.3 x\n0.3\n\nstel\nsteel\n-1\n0.1\nmaybe\nno\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    assert main(["new", "arm.toml", "--ask"]) == 0
    asked = capsys.readouterr().err
    assert "'stel'; expected one of aluminium" in asked and "expected yes or no" in asked
    robot = fx.load_robot("arm.toml")
    assert len(robot.links) == 1 and float(robot.payloads[0].mass) == 0.1
    monkeypatch.setattr("sys.stdin", io.StringIO("0.3\n"))
    assert main(["new", "other.toml", "--ask"]) == 1
    assert "no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a.toml", "--lengths", "0.3", "-1"], "one positive number per link"),
        (["a.toml", "--section", "tube:0.03"], "tube:DIAMETER:WALL"),
        (["a.toml", "--section", "square:0.03"], "a shape out of"),
        (["a.toml", "--section", "tube:0.03:0.02"], "less than half the diameter"),
        (["a.toml", "--material", "wood"], "expected one of aluminium"),
        (["a.toml", "--payload", "nan"], "a mass of zero or more"),
        (["a.txt"], "ends in .toml"),
    ],
)
def test_new_refuses(options, message, folder, capsys):
    assert main(["new", "--no-ask", *options]) == 1
    assert message in capsys.readouterr().err and not list(folder.iterdir())


def test_plot_writes_figures(folder, capsys):
    fx.save_trajectory(sample_trajectory(), "run.nc")
    assert main(["plot", "run.nc", "tip", "joints", "--out", "figs/new"]) == 0
    assert {path.name for path in (folder / "figs/new").iterdir()} == {"tip.png", "joints.png"}
    fx.save_trajectory(sample_trajectory(), "other.nc")
    assert main(["plot", "run.nc", "other.nc", "difference", "--format", "svg"]) == 0
    assert (folder / "difference.svg").read_text().startswith("<?xml")


def test_plot_refuses(folder, capsys):
    fx.save_trajectory(sample_trajectory(), "run.nc")
    for words, message in (
        (["tip"], "expected a trajectory"),
        (["none.nc", "tip"], "no such file"),
        (["run.nc", "tips"], "expected one of joints, tip"),
        (["run.nc", "difference"], "at least two"),
        (["run.nc", "tip", "--format", "gif"], "png, pdf, svg"),
        (["run.nc", "tip", "--out", "run.nc"], "expected a folder"),
    ):
        assert main(["plot", *words]) == 1
        assert message in capsys.readouterr().err


def test_names_of_figures_are_those_of_plot():
    from flexjax.viz.figures._plot import OF_RUNS

    assert _check.RUN_FIGURES == tuple(OF_RUNS)


def test_exit_codes_are_documented(capsys):
    assert main(["--help"]) == 0
    assert "Exit codes: 0 success; 1 an error" in capsys.readouterr().out
