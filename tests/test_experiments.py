"""Experiments have one layout, so that `flexjax reproduce` can run each;
nothing is computed here.
"""

import json
import re
from pathlib import Path

import pytest

from flexjax.viz import Report

FOLDER = Path(__file__).parent.parent / "experiments"
NAMES = sorted(
    path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"
)


def test_every_paper_is_there():
    assert [name.split("_")[0] for name in NAMES if name[0].isdigit()] == [
        "000",
        "001",
        "002",
        "003",
        "004",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_shape_of_an_experiment(name):
    folder = FOLDER / name
    assert {"README.md", "config.toml", "run.py", "plot.py", "expected.json"} <= {
        path.name for path in folder.iterdir()
    }
    expected = json.loads((folder / "expected.json").read_text())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", expected["date"]) and len(expected["reason"]) > 20
    command = next(
        line.split()
        for line in (folder / "README.md").read_text().splitlines()
        if line.startswith("    ")
    )
    assert command[:2] == ["flexjax", "reproduce"]
    # The word after it names this experiment and no other.
    assert [n for n in NAMES if n == command[2] or n.split("_")[0] == command[2]] == [name]
    assert "--quick" in (folder / "run.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_index_page_keeps_every_word_of_a_readme(name):
    text = (FOLDER / name / "README.md").read_text()
    shown = re.sub(r"<[^>]+>", " ", Report("x").markdown(text).parts[0]["html"])
    for code, letter in {
        "&lt;": "<",
        "&gt;": ">",
        "&quot;": '"',
        "&#x27;": "'",
        "&amp;": "&",
    }.items():
        shown = shown.replace(code, letter)
    assert re.findall(r"\w+", re.sub(r"\]\([^)\s]*\)", "]", text)) == re.findall(r"\w+", shown)


def test_markdown_is_escaped_and_formed():
    page = (
        Report("x")
        .markdown(
            "# T\n\ntext <b> and `a<b` **c** [d](http://e)\n- one\n  more\n- two\n\n"
            "| a | b |\n|---|---|\n| 1 | 2 |\n\n    code <i>"
        )
        .html
    )
    for part in (
        "&lt;b&gt;",
        "<code>a&lt;b</code>",
        "<strong>c</strong>",
        "<li>one\n  more\n</li>",
        "<td>2</td>",
        "<pre>code &lt;i&gt;</pre>",
        "<h3>T</h3>",
    ):
        assert part in page, part
    assert "http://e" not in page
