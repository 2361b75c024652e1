"""Notebooks: each runs in its short form (FLEXJAX_SHORT=1), as a script; what is stored of it has
outputs that are as new as its text form; it asks a question, and its first screen has a figure.
"""

import ast
import base64
import json
import os
import runpy
from pathlib import Path

import jax
import pytest

from flexjax.formulation import REGISTRY

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
MAKE = runpy.run_path(str(FOLDER / "_make.py"), run_name="make")
NOTEBOOKS, cells = MAKE["sources"](), MAKE["cells"]
MEASURED = {"identify_a_rig": "quanser_2dsfl/steps"}  # notebooks that need measured data


def test_there_are_ten():
    assert len(NOTEBOOKS) == 10


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_is_a_notebook(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ---\n# jupyter:\n") and "formats: ipynb,py:percent" in text
    kinds = [kind for kind, _ in cells(path)]
    assert kinds[0] == "markdown" and kinds.count("markdown") >= 3 and kinds.count("code") >= 3
    for kind, cell in cells(path):
        if kind == "code":
            ast.parse(cell)
    first = next(cell for kind, cell in cells(path) if kind == "code")
    assert 'jax.config.update("jax_enable_x64", True)' in first


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_asks_and_answers_below_a_figure(path):
    _, opening = cells(path)[0]
    assert opening.startswith("# ") and opening.split("\n")[0].endswith("?")
    assert f"(images/{path.stem}.png)" in opening
    assert opening.index("![") < opening.index("**Question.**") < opening.index("**Answer.**")
    assert any("## Conclusion" in cell for _, cell in cells(path))


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_outputs_are_current(path):
    """What is stored was made by the cells of the text form, and is as small as a page may be."""
    assert not MAKE["faults"](path)
    stored = path.with_suffix(".ipynb")
    book = json.loads(stored.read_text(encoding="utf-8"))
    outputs = [x for cell in book["cells"] for x in cell.get("outputs", [])]
    assert not [x for x in outputs if x["output_type"] == "error"]
    assert book["metadata"]["jupytext"]["formats"] == "ipynb,py:percent"
    assert stored.stat().st_size < 1e6
    pictures = [x["data"]["image/png"] for x in outputs if "image/png" in x.get("data", {})]
    cover = (FOLDER / "images" / f"{path.stem}.png").read_bytes()
    assert cover in [base64.b64decode(picture) for picture in pictures]


def test_stale_outputs_are_found(tmp_path):
    path = tmp_path / "small.py"
    path.write_text("# %% [markdown]\n# # Why?\n\n# %%\nx = 1\n")
    assert "missing" in MAKE["faults"](path)[0]
    stored = [{"cell_type": kind, "source": [text], "outputs": []} for kind, text in cells(path)]
    book = {"cells": stored, "metadata": {"flexjax": {"source": MAKE["digest"](path)}}}
    path.with_suffix(".ipynb").write_text(json.dumps(book))
    assert not MAKE["faults"](path)
    path.write_text(path.read_text().replace("Why?", "How?"))
    assert "older" in MAKE["faults"](path)[0] and MAKE["only_text_changed"](path)
    path.write_text(path.read_text().replace("x = 1", "x = 2"))
    assert "older" in MAKE["faults"](path)[0] and not MAKE["only_text_changed"](path)


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs_in_short_form(path, tmp_path, monkeypatch, capsys, experiment_data):
    if path.stem in MEASURED:
        folder = experiment_data(MEASURED[path.stem])
        root = os.fspath(folder).removesuffix(MEASURED[path.stem])
        monkeypatch.setenv("FLEXJAX_DATA", root)
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
