"""`flexjax sweep`: a file, its faults, a dry run, a sweep and its continuation; `flexjax bench`."""

import json

import pytest

from flexjax.cli import main

FILE = """
robot = "rigid-3r"
end = 0.02
times = 3
dt = 5e-3
outputs = ["tip"]
store = "results.zarr"
chunk = 2

[design]
kind = "grid"

[design.parameters]
"links.fore.body.mass" = [2.0, 2.5, 3.0]
"""


def write(tmp_path, text=FILE):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("end = 0.02", "", "end: missing"),
        ("dt = 5e-3", "step = 5e-3", "step: unknown; expected some of robot"),
        ('kind = "grid"', 'kind = "box"', "design.kind: 'box'; expected one of grid"),
        ('kind = "grid"', 'kind = "sobol"', "design.runs: missing"),
        ("links.fore", "links.for", "the robot has no link 'for'; did you mean 'fore'"),
        ("rigid-3r", "rigid-4r", "rigid-4r"),
    ],
)
def test_faults_of_the_file(tmp_path, capsys, old, new, words):
    assert main(["sweep", write(tmp_path, FILE.replace(old, new))]) == 1
    assert words in capsys.readouterr().err


def test_a_sweep_and_its_continuation(tmp_path, capsys):
    path = write(tmp_path)
    assert main(["sweep", path, "--dry-run"]) == 0
    assert "3 runs with 1 program(s), in chunks of 2" in capsys.readouterr().out
    assert not (tmp_path / "results.zarr").exists()
    assert main(["sweep", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] == 3 and found["reasons"] == {"ok": 3} and found["failed"] == []
    assert main(["sweep", path]) == 1
    assert "exists; continue it with --resume" in capsys.readouterr().err
    assert main(["sweep", path, "--resume"]) == 0
    assert "3 runs (3 ok)" in capsys.readouterr().out


@pytest.mark.slow
def test_bench_reports_a_device(capsys):
    assert main(["bench", "--only", "RigidArm", "--batches", "2", "--steps", "2"]) == 0
    assert "RigidArm" in capsys.readouterr().out


def test_bench_refuses_a_missing_device(capsys):
    assert main(["bench", "--device", "gpu"]) == 1
    assert "jax finds no gpu here" in capsys.readouterr().err
