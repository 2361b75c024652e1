"""Every notebook runs in its short form (FLEXJAX_SHORT=1), as a script, and is a notebook that
jupytext can open.
"""

import ast
import re
import runpy
from pathlib import Path

import jax
import pytest

from flexjax.formulation import REGISTRY

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.py"))


def cells(path: Path) -> list[tuple[str, str]]:
    """(kind, text) of every cell of a notebook in percent format."""
    parts = re.split(
        r"^# %%( \[markdown\])?[^\n]*\n", path.read_text(encoding="utf-8"), flags=re.M
    )[1:]
    return [
        ("markdown" if kind else "code", text)
        for kind, text in zip(parts[::2], parts[1::2], strict=True)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_is_a_notebook(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ---\n# jupyter:\n") and "format_name: percent" in text
    kinds = [kind for kind, _ in cells(path)]
    assert kinds[0] == "markdown" and kinds.count("markdown") >= 3 and kinds.count("code") >= 3
    for kind, cell in cells(path):
        if kind == "code":
            ast.parse(cell)
        else:
            assert all(line.startswith("#") for line in cell.splitlines() if line.strip())
    first = next(cell for kind, cell in cells(path) if kind == "code")
    assert 'jax.config.update("jax_enable_x64", True)' in first


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs_in_short_form(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLEXJAX_SHORT", "1")
    known = set(REGISTRY)
    try:
        with jax.numpy_rank_promotion("allow"):  # as a user has it
            runpy.run_path(str(path), run_name=f"notebook_{path.stem}")
    finally:
        for name in set(REGISTRY) - known:
            del REGISTRY[name]
    assert capsys.readouterr().out
