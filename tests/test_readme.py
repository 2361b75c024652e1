"""Every Python block of the README runs, in order and in one namespace, as a reader would paste it; the drive file loads; the picture is there."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

import flexjax as fx

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    space = {}
    with jax.numpy_rank_promotion("allow"):  # as a user has it
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), space)
    assert "height" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {"tip.png", "arm.html", "run.nc"}
    # What the example prints is right: the height is that of a link turned by 0.5 rad, give or take its bending, and its slope with it.
    height, (by_E, by_angle) = space["height"], space["slopes"]
    assert abs(height - np.sin(0.5)) < 0.05 and abs(by_angle - np.cos(0.5)) < 0.1
    h = 1e-3
    finite = (space["tip"](7e10, 0.5 + h) - space["tip"](7e10, 0.5 - h)) / (2 * h)
    assert float(by_angle) == pytest.approx(float(finite), rel=1e-5)
    assert float(by_E) != 0


def test_example_is_short():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 15


def test_drive_file_loads(tmp_path):
    (block,) = blocks("toml")
    (tmp_path / "drive.toml").write_text(block)
    drive = fx.load_drive(tmp_path / "drive.toml")
    drive.check(fx.load_robot("two-link"))
    assert drive.joints["shoulder"].prescribes and float(drive.joints["elbow"].kp) == 40.0


def test_files_that_it_names_exist():
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert local and all((ROOT / link).exists() for link in local)


def test_commands_that_it_shows_are_known():
    from flexjax.cli._main import COMMANDS
    from flexjax.formulation import REGISTRY

    shown = set(re.findall(r"^    flexjax (\w+)", README, re.M))
    assert shown and shown <= set(COMMANDS)
    assert all(f"`{name}`" in README for name in REGISTRY)
