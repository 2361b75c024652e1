"""The documentation: every Python block runs, drive files load, links lead somewhere, pages made from the code are complete."""

import re
import runpy
import sys
from pathlib import Path

import jax
import pytest

import flexjax as fx

DOCS = Path(__file__).resolve().parent.parent / "docs"
WRITTEN = ("quickstart.md", "concepts.md", "howto.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", WRITTEN)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    assert blocks(page, "python")
    with jax.numpy_rank_promotion("allow"):
        for block in blocks(page, "python"):
            exec(compile(block, page, "exec"), space)


def test_drive_file_loads(tmp_path):
    (block,) = blocks("howto.md", "toml")
    (tmp_path / "drive.toml").write_text(block)
    fx.load_drive(tmp_path / "drive.toml").check(fx.load_robot("two-link"))


def test_links_and_navigation():
    pages = {page.name for page in DOCS.glob("*.md")}
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text(encoding="utf-8")):
            assert "://" in link or (DOCS / link).exists(), f"{page}: {link}"
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert set(re.findall(r": (\w+\.md)", navigation)) == pages


def test_made_pages_name_everything():
    from flexjax.formulation import REGISTRY

    api, matrix = ((DOCS / page).read_text(encoding="utf-8") for page in ("api.md", "formulations.md"))
    assert all(f"## {name}\n" in matrix for name in REGISTRY)
    missing = [name for name in fx.__all__ if not name.startswith("__") and f"### fx.{name}" not in api]
    assert not missing, f"run python docs/_make.py: {missing}"


@pytest.mark.slow
def test_made_pages_are_current(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["_make.py", "--check"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(DOCS / "_make.py"), run_name="__main__")
    assert stop.value.code == 0
