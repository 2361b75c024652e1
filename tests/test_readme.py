"""The README: its example is short, its drive file loads, what it names exists.

That it runs is shown by test_walkthrough.py.
"""

import re
from pathlib import Path

import flexjax as fx

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


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
