"""The command line: fast help, results as text and JSON, one paragraph for every mistake."""

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flexjax as fx
from flexjax._registry import REGISTRY, SIGNALS
from flexjax._source import check_options, fields_of, parameters_of
from flexjax.cli import _check, main
from flexjax.cli._common import make_formulation
from flexjax.cli._main import COMMANDS
from flexjax.robot._examples import example_path
from flexjax.robot.files._described import describe_file
from tests._sample import sample_trajectory

ROOT = Path(__file__).resolve().parents[2]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from flexjax.cli import main; code = main(['--help']);"
        "heavy = {'jax', 'numpy', 'tyro', 'matplotlib', 'xarray', 'jinja2'};"
        "print(sorted({m.split('.')[0] for m in sys.modules} & heavy)); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_help_of_a_command_needs_no_jax():
    code = (
        "import sys; from flexjax.cli import main; "
        "main(['simulate', '--help']); print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False" and "--motion" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"flexjax {name}" in text.split("usage", 1)[1].split("\n", 1)[1] and "--json" in text


def test_wrong_command_and_arguments(capsys):
    assert main(["simulat"]) == 2
    assert "Did you mean 'simulate'?" in capsys.readouterr().err
    assert main([]) == 2
    assert main(["simulate"]) == 2
    assert main(["--version"]) == 0


# Refused before jax is imported.
MISTAKES = [
    (["describe", "nothing.toml"], "cannot be read"),
    (["simulate", "two-link", "--motion", "shoulder=quintc:0:1:1"], "did you mean 'quintic'?"),
    (["simulate", "two-link", "--motion", "shoulder=quintic:0:1"], "start, end, duration"),
    (["simulate", "two-link", "--motion", "wrist=quintic:0:1:1"], "no such joint"),
    (["simulate", "two-link", "--motion", "shoulder"], "expected <joint>=<signal>"),
    (["simulate", "two-link", "--formulation", "Nonesuch"], "expected one of RigidArm"),
    (["simulate", "two-link", "--formulation", "RigidArm:elements=3"], "elements"),
    (["simulate", "two-link", "--save", "run.docx"], "expected a name that ends in"),
    (["simulate", "two-link", "--save", "no/such/run.nc"], "Create it first"),
    (["simulate", "two-link", "--end", "-1"], "expected a positive time"),
    (["simulate", "two-link", "--drive", "nothing.toml"], "cannot be read"),
    (["simulate", "two-link", "--end", "inf"], "expected a positive time"),
    (["simulate", "two-link", "--dt", "0"], "expected a positive step"),
    (["simulate", "two-link", "--outputs", "1"], "at least 2"),
    (
        ["simulate", "two-link", "--motion", "shoudler=quintic:0:1:1"],
        "Did you mean 'shoulder'?",
    ),
    (
        ["simulate", "two-link", "--formulation", "FiniteElment"],
        "Did you mean 'FiniteElement'?",
    ),
    (
        ["simulate", "two-link", "--formulation", "FiniteElement:elments=3"],
        "did you mean 'elements'?",
    ),
    (
        ["simulate", "two-link", "--formulation", "FiniteElement:elements=many"],
        "a value such as 5",
    ),
    (["describe", "two-lnik"], "did you mean 'two-link'?"),
    (["describe", "."], "Is a directory"),
    (["modes", "two-link", "--n", "0"], "at least 1 mode"),
    (["modes", "two-link", "--save", "modes.nc"], "ends in one of .png .pdf .svg"),
    (["compare", "two-link", "--out", "compare.pdf"], "ends in .html"),
    (
        ["identify", "two-link", "--free", "links.upper.material.E"],
        "expected data files or --frequencies",
    ),
    (["identify", "two-link"], "expected at least one free parameter"),
    (
        ["identify", "two-link", "nothing.csv", "--free", "links.upper.material.E"],
        "no such file",
    ),
    (
        ["identify", "two-link", "--frequencies", "-3", "--free", "links.upper.material.E"],
        "positive numbers in Hz",
    ),
    (
        ["identify", "bench-arm", "--free", "joints.shoulder.stiffness", "--report", "fit.pdf"],
        "ends in .html",
    ),
    (["examples", "--copy", "two-link"], "expected the name of an example"),
    (["examples", "--copy", "two-lnik", "x.toml"], "Did you mean 'two-link'?"),
    (["modes", "two-link", "--at", "elbow"], "JOINT=NUMBER"),
    (["view", "nothing.nc"], "no such file"),
    (["examples", "--copy", "nonesuch", "x.toml"], "expected one of"),
    (["reproduce", "no-such-paper"], "expected one of"),
    (["modes", "two-link", "--at", "elbwo=1"], "Did you mean 'elbow'?"),
    (["modes", "two-link", "--formulation", "Finite:elements=3"], "is unknown"),
    (["modes", "nothing.toml"], "cannot be read"),
    (["compare", "nothing.toml"], "cannot be read"),
    (["compare", "two-link", "--motion", "elbwo=constant:1"], "Did you mean 'elbow'?"),
    (["compare", "two-link", "--formulations", "RigidArm", "Nonesuch"], "is unknown"),
    (["compare", "two-link", "--dt", "nan"], "expected a positive step"),
    (["view", "run.docx"], "ends in .nc (netCDF) or .zarr"),
    (["simulate", "two-link", "--motion", "shoulder=quintic:0:a:1"], "expected numbers"),
    (["simulate", "two-link", "--motion", "shoulder=constant:1:2"], "constant takes value"),
    (
        ["identify", "two-link", "--frequencies", "3", "--free", "links.uper.material.E"],
        "did you mean 'upper'?",
    ),
    (
        ["identify", "two-link", "--frequencies", "3", "--free", "links.upper.material.E=a:b"],
        "expected PATH=LOWER:UPPER",
    ),
    (
        ["identify", "bench-arm", "--free", "links.*.material.E", "--motion", "sholder=a"],
        "Did you mean 'shoulder'?",
    ),
    (
        ["identify", "bench-arm", "--free", "links.*.material.E", "--sensor", "tp=a"],
        "no such sensor",
    ),
    (["identify", "bench-arm", "--free", "joints.*.stiffness", "--dt", "0"], "positive step"),
    (["identify", "bench-arm", "--free", "joints.*.stiffness", "--unit", "a"], "NAME=COLUMN"),
    (["identify", "nothing.toml", "--free", "joints.*.stiffness"], "cannot be read"),
    (["identify", "bench-arm", "--free", "joints.a.damping", "--rate", "-1"], "in Hz"),
    (["simulate", "two-link", "--formulation", "PortHamiltonian:elements=0"], "at least 1"),
    (["simulate", "two-link", "--formulation", "FiniteElement:basis=none"], "'hermite' or"),
    (["simulate", "two-link", "--formulation", "ScrewSynthesis:frame=2"], "from 0 (base)"),
    (["simulate", "two-link", "--formulation", "TransferMatrix:segments=0"], "at least 1"),
    (["modes", "two-link", "--formulation", "TransferMatrix:chain=none"], "one of riccati"),
    (["compare", "two-link", "--formulations", "MovingBeam:elements=0"], "at least 1"),
    (
        ["identify", "two-link", "--frequencies", "3", "--free", "links.upper.material.Q"],
        "a Material has no field 'Q'",
    ),
    (
        ["identify", "two-link", "--frequencies", "3", "--free", "joints.*.stifness"],
        "did you mean 'stiffness'?",
    ),
    (
        ["identify", "two-link", "--frequencies", "3", "--free", "links.upper.section.hight"],
        "did you mean 'height'?",
    ),
    (["optimise", "two-link", "--duration", "0.4"], "expected the goal, e.g. --to"),
    (["optimise", "two-link", "--to", "sholder=1"], "Did you mean 'shoulder'?"),
    (["optimise", "two-link", "--to", "shoulder"], "to: 'shoulder'; expected JOINT=NUMBER"),
    *(
        (["optimise", "two-link", "--to", "shoulder=1", *rest], message)
        for rest, message in (
            (["--duration", "0"], "duration: '0'; expected a time in seconds"),
            (["--duration", "0.4:0.2"], "duration: '0.4:0.2'"),
            (["--duration", "1", "--minimise", "vibration"], "minimise: 'vibration'; expected one"),
            (["--duration", "1", "--robust", "payloads.tool.mass=10%"], "no payload 'tool'"),
            (["--duration", "1", "--robust", "payloads.gripper.mass=10"], "expected PATH=SHARE%"),
            (["--duration", "1", "--limit", "speed=1"], "limit: 'speed=1'; expected one of vel"),
            (["--duration", "1", "--limit", "velocity=-1"], "expected LIMIT=NUMBER above zero"),
            (["--duration", "1", "--limit", "effort.wrist=1"], "expected one of shoulder, elbow"),
            (["--duration", "1", "--limit", "jerk=1", "jerk=2"], "jerk is given twice"),
            (["--duration", "1", "--report", "move.pdf"], "ends in .html"),
            (["--duration", "1", "--robust", "payloads.gripper.mas=5%"], "robust: 'payloads.gri"),
            (["--duration", "1", "--steps", "1"], "at least 2 steps"),
        )
    ),
]
# Refused by a formulation's own checks.
UNSUPPORTED = [
    (
        ["simulate", "macchelli-parallelogram", "--formulation", "FiniteElement"],
        "Supported by: PortHamiltonian",
    ),
]


@pytest.mark.parametrize(("argv", "message"), MISTAKES + UNSUPPORTED)
def test_mistakes_are_one_paragraph(argv, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err and out == ""
    assert main([*argv, "--json"]) == 1
    assert message in json.loads(capsys.readouterr().out)["error"]


def test_refusals_import_no_jax(tmp_path):
    """Importing jax takes longer than a refusal should; the drive file names a missing joint."""
    drive = tmp_path / "drive.toml"
    drive.write_text("[joints.wrist]\nmotion = { constant = { value = 1.0 } }\n")
    mistakes = [argv for argv, _ in MISTAKES] + [["simulate", "two-link", "--drive", str(drive)]]
    arm = tmp_path / "arm.toml"
    arm.write_text(example_path("metal-link").read_text().replace("length = ", "length = -"))
    mistakes += [["modes", str(arm)], *(argv for argv, _ in UNSUPPORTED)]
    code = (
        "import sys; from flexjax.cli import main\n"
        f"for argv in {mistakes!r}:\n"
        "    assert main(argv) == 1, argv\n"
        "    assert 'jax' not in sys.modules, argv\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for message in (
        "drive.joints.wrist: no such joint",
        "links.link.length = -1.0: expected",
        "closes a loop",
    ):
        assert message in done.stderr, message


@pytest.mark.parametrize("robot", fx.examples())
def test_refusals_without_jax_are_those_of_the_formulations(robot):
    loaded, read = fx.load_robot(robot), describe_file(robot)
    for name in REGISTRY:
        assert _check._refusals(name, {}, read) == getattr(fx, name)().refusals(loaded)


def test_fields_from_source_are_those_of_the_robots():
    """No path of a parameter is refused before the robot is loaded."""
    for name in fx.examples():
        names = _check.check_robot(name)
        for path in fx.paths(fx.load_robot(name)):
            assert _check.read_free(str(path), names) == (str(path), None)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("FiniteElement", {"elements": -1}),
        ("FiniteElement", {"contact": "ale", "basis": "bspline"}),
        ("MovingBeam", {"elements": 0}),
        ("MovingBeam", {"inertia": "none"}),
        ("PortHamiltonian", {"mass": 2.0}),
        ("PortHamiltonian", {"alpha": 0.0}),
        ("ScrewSynthesis", {"basis": "modes", "frame": 0.5}),
        ("TransferMatrix", {"variant": "none"}),
        ("TransferMatrix", {"linearisation": "none"}),
        ("TransferMatrix", {"beta": 0.0}),
    ],
)
def test_options_are_refused_from_source_as_by_the_constructor(name, options):
    folder = "/".join(REGISTRY[name].split(".")[1:-1])
    with pytest.raises(ValueError) as early:
        check_options(folder, name, options)
    with pytest.raises(ValueError) as late:
        getattr(fx, name)(**options)
    assert str(early.value) == str(late.value)


def test_good_options_pass_from_source():
    for name in REGISTRY:
        folder = "/".join(REGISTRY[name].split(".")[1:-1])
        check_options(folder, name, {})
    check_options("formulation/finite_element", "FiniteElement", {"elements": {"upper": 8}})


def test_signatures_from_source_are_those_of_the_package():
    """The command line reads them without importing the package; they must not differ."""
    for name in SIGNALS:
        real = inspect.signature(getattr(fx, name)).parameters
        assert parameters_of("drive/signal", name) == {
            key: p.default is p.empty for key, p in real.items() if p.kind is not p.KEYWORD_ONLY
        }
    for name in REGISTRY:
        folder = "/".join(REGISTRY[name].split(".")[1:-1])
        real = {f.name: f.default for f in dataclasses.fields(getattr(fx, name))}
        assert fields_of(folder, name) == real


def test_examples_describe_schema(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "--json"]) == 0
    assert "two-link" in json.loads(capsys.readouterr().out)
    assert main(["examples", "--copy", "rigid-3r", "arm.toml"]) == 0
    assert main(["examples", "--copy", "rigid-3r", "arm.toml"]) == 1  # nothing is overwritten
    capsys.readouterr()
    assert main(["describe", "arm.toml", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["robot"] == "rigid-3r" and "RigidArm" in about["formulations"]
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == fx.robot_schema()


def test_view_and_simulate_write_files(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fx.save_trajectory(sample_trajectory(), "run.nc")
    assert main(["view", "run.nc", "--out", "again.html"]) == 0
    assert "two-link" in Path("again.html").read_text()
    capsys.readouterr()
    argv = [
        "simulate",
        "metal-link",
        "--formulation",
        "rigid-arm",
        "--motion",
        "pin=quintic:0:0.5:0.05",
        "--end",
        "0.05",
        "--outputs",
        "3",
        "--dt",
        "0.025",
    ]
    assert main([*argv, "--save", "r.nc", "tip.png", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["files"] == ["r.nc", "tip.png"] and Path("tip.png").stat().st_size > 0
    np.testing.assert_allclose(result["tip"][-1][:2], [np.cos(0.5), np.sin(0.5)], atol=1e-9)
    np.testing.assert_array_equal(fx.load_trajectory("r.nc").tip, result["tip"])


def test_formulation_from_text():
    robot = fx.load_robot("two-link")
    name, made = make_formulation("screw-synthesis:modes=2", robot)
    assert name == "ScrewSynthesis" and made.modes == 2
    assert make_formulation("", fx.load_robot("rigid-3r"))[0] == "RigidArm"
    assert make_formulation("", robot)[0] != "RigidArm"


@pytest.mark.docs
def test_demo_without_any_flexible_formulation(tmp_path, monkeypatch, capsys):
    from flexjax.formulation import _registry

    only = {"RigidArm": _registry.REGISTRY["RigidArm"]}
    monkeypatch.setattr(_registry, "REGISTRY", only)
    monkeypatch.setattr(_check, "REGISTRY", only)
    assert main(["demo", "--quick", "--out", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["formulation"] for row in result["formulations"]] == ["RigidArm"] and all(
        c["passed"] for c in result["checks"]
    )
    assert Path(result["report"]).stat().st_size < 2_000_000


def test_reproduce_all_writes_one_page(tmp_path, capsys):
    """Two experiments, one with an unconfirmed claim: counted verdicts, page and exit code."""
    for name, lines, code in (
        ("000_good", "agrees   mass        2.0   2.0", 0),
        ("001_bad", "DIFFERS  <b>length</b> 1.0 2.0", 1),
    ):
        folder = tmp_path / "experiments" / name
        (folder / "results").mkdir(parents=True)
        (folder / "README.md").write_text(f"# The paper {name}\n")
        results = "import pathlib, sys\nresults = pathlib.Path(__file__).with_name('results')\n"
        (folder / "run.py").write_text(
            f"{results}print({lines!r}, '--quick' in sys.argv)\n"
            f"(results / 'n.json').write_text('1')\nsys.exit({code})\n"
        )
        (folder / "plot.py").write_text(
            f"from matplotlib.figure import Figure\n{results}Figure().savefig(results / 'a.png')\n"
        )
    assert (
        main(["reproduce", "all", "--quick", "--folder", str(tmp_path / "experiments"), "--json"])
        == 1
    )
    result = json.loads(capsys.readouterr().out)
    assert [(e["name"], e["holds"], e["differs"]) for e in result["experiments"]] == [
        ("000_good", 1, 0),
        ("001_bad", 0, 1),
    ]
    page = Path(result["index"]).read_text()
    assert (
        page.count("data:image/png") == 2
        and "The paper 001_bad" in page
        and "<b>length" not in page
        and "True" in page
    )
    assert main(["reproduce", "000", "--folder", str(tmp_path / "experiments")]) == 0
    assert "agrees" in capsys.readouterr().out


def test_drive_files(tmp_path):
    path = tmp_path / "drive.toml"
    path.write_text(
        "[joints.a]\nmotion = { sine = { amplitude = 1.0 } }\n[joints.b]\nspin = 1\n"
        '[[loads]]\nlink = "x"\n[extra]\n'
    )
    with pytest.raises(ValueError) as caught:
        fx.load_drive(path)
    text = str(caught.value)
    assert all(
        part in text
        for part in (
            "joints.a.motion.sine.frequency: missing",
            "joints.b",
            "loads.0",
            "extra: unknown key",
        )
    )
    path.write_text(
        "[joints.a]\neffort = { constant = { value = 2.0 } }\n"
        '[[loads]]\nlink = "x"\nwrench = { constant = { value = [1, 0, 0, 0, 0, 0] } }\n'
    )
    drive = fx.load_drive(path)
    assert float(drive.joints["a"].signal.evaluate(0.0)[0]) == 2.0 and drive.loads[0].link == "x"
    path.write_text("[joints.a]\nmotion = { __import__ = { name = 1 } }\n")
    with pytest.raises(ValueError, match="is no signal"):
        fx.load_drive(path)
