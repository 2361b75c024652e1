"""The README: it and its example are short, and what it names exists.

That it runs is shown by test_walkthrough.py.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_example_is_short():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 15


def test_it_is_short():
    assert len(README.splitlines()) < 150


def test_its_moving_picture_is_small():
    picture = (ROOT / "docs" / "images" / "moves.gif").read_bytes()
    assert "docs/images/moves.gif" in README and len(picture) < 2e6
    assert picture[:6] == b"GIF89a" and picture.count(b"\x21\xf9\x04") > 50  # frames


def test_files_that_it_names_exist():
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert local and all((ROOT / link).exists() for link in local)


def test_commands_that_it_shows_are_known():
    from flexjax.cli._main import COMMANDS
    from flexjax.formulation import REGISTRY

    shown = set(re.findall(r"^    flexjax (\w+)", README, re.M))
    assert shown and shown <= set(COMMANDS)
    assert all(f"`{name}`" in README for name in REGISTRY)
