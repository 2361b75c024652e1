"""The documentation: every Python block runs, the site builds strictly, drive files load, links
lead somewhere, pages made from the code are complete.
"""

import dataclasses
import doctest
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import flexjax as fx
from flexjax.io import load_run

DOCS = Path(__file__).resolve().parent.parent / "docs"
SITE = runpy.run_path(str(DOCS / "_site.py"), run_name="site")
PUBLIC = [name for name in fx.__all__ if not name.startswith("__")]
# quickstart.md: test_walkthrough.py; identify.md: tests/identify/test_bench_arm.py
WRITTEN = ("concepts.md", "control.md", "howto.md", "optimise.md", "sweep.md")
# Examples in docstrings whose compiled programs are those of a page: they run behind it.
SHARED = {"optimise.md": ("optimise", "move_report")}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.docs
def test_blocks_that_configure_jax_run_in_their_own_process():
    (block,) = blocks("faq.md", "python")
    subprocess.run([sys.executable, "-c", block], check=True)


def test_every_page_with_python_is_run():
    pages = {
        p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if "```python" in p.read_text()
    }
    assert pages == {*WRITTEN, "faq.md", "quickstart.md", "identify.md"}


@pytest.mark.docs
@pytest.mark.parametrize("page", WRITTEN)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    assert blocks(page, "python")
    with jax.numpy_rank_promotion("allow"):
        for block in blocks(page, "python"):
            exec(compile(block, page, "exec"), space)
    for name in SHARED.get(page, ()):
        check_example(name)


def test_drive_file_loads(tmp_path):
    (block,) = blocks("howto.md", "toml")
    (tmp_path / "drive.toml").write_text(block)
    fx.load_drive(tmp_path / "drive.toml").check(fx.load_robot("two-link"))


def test_links_and_navigation():
    pages = {page.relative_to(DOCS).as_posix(): page for page in DOCS.rglob("*.md")}
    for name, page in pages.items():
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), f"{name}: {link}"
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    notebooks = {f"tutorials/{p.stem}.md" for p in (DOCS.parent / "notebooks").glob("*.ipynb")}
    assert set(re.findall(r": ([\w/]+\.md)", navigation)) == set(pages) | notebooks


def test_every_formulation_has_a_theory_page():
    from flexjax.formulation import REGISTRY, formulation

    for name, dotted in REGISTRY.items():
        text = (DOCS / "theory" / f"{dotted.split('.')[2]}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n")
        for part in (
            "## Equations as implemented",
            "## Derivation",
            "## Not supported",
            "## Verification",
        ):
            assert part in text, f"{name}: {part}"
        options = [field.name for field in dataclasses.fields(formulation(name))]
        named = set(re.findall(r"`(\w+)[=`]", text)) & set(options)
        assert named or not options, f"{name}: no option is named"


def test_tests_that_pages_name_exist():
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in (DOCS.parent / "tests").rglob("test_*.py")
    )
    named = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    assert not [name for name in sorted(named) if f"def {name}(" not in tests]


def build_site(folder: Path) -> Path:
    """The site built strictly in a folder: broken links, missing pages and anchors are refused."""
    target = folder / "site"
    SITE["build"](target)
    return target


@pytest.mark.docs
def test_site_builds_strict_and_needs_no_network(tmp_path):
    """What a page loads (scripts, styles, fonts, pictures) is part of the site.

    That its equations are drawn is shown by tests/viz/test_browser.py.
    """
    pytest.importorskip("zensical", reason="needs the extra [docs]")
    site = build_site(tmp_path)
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "screw_synthesis.html", "minimum_time.html"} <= {p.name for p in pages}
    assert max(page.stat().st_size for page in pages) < 2e6
    _check_reference(site)
    loaded = (
        r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"?([^\s\">]+)"
        r"|<link\b[^>]*?\bhref=\"?([^\s\">]+)"
    )
    for page in pages:
        for found in re.findall(loaded, page.read_text(encoding="utf-8")):
            address = "".join(found)
            assert not address.startswith(("http:", "https:", "//")), f"{page.name}: {address}"
            assert (
                page.name == "404.html"
                or address.startswith("data:")
                or (page.parent / address.split("#")[0]).exists()
            ), f"{page.name}: {address}"
    for style in site.rglob("*.css"):
        assert not re.findall(
            r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\s]*", style.read_text(encoding="utf-8")
        ), style.name


def _check_reference(site: Path) -> None:
    """Every public name has its signature, its source, and arguments and result as sections."""
    pages = {p.stem: p.read_text(encoding="utf-8") for p in (site / "reference").glob("*.html")}
    for name, page in reference_names().items():
        text = pages[page]
        begin = text.index(f'id="fx.{name}"')
        following = re.search(r'<a href="" id="fx\.\w+"', text[begin + 10 :])
        entry = text[begin : begin + 10 + following.start() if following else None]
        value = getattr(fx, name)
        assert "Source code in" in entry, f"{name}: no source"
        if inspect.isfunction(value):
            assert "doc-signature" in entry, f"{name}: no signature"
            assert "Returns:" in entry, f"{name}: no result"
            for argument, given in inspect.signature(value).parameters.items():
                assert f"<code>{argument}</code>" in entry, f"{name}: no argument {argument}"
                assert given.annotation is not inspect.Parameter.empty, f"{name}: {argument}"


def reference_names() -> dict[str, str]:
    return json.loads((DOCS / "reference" / "names.json").read_text(encoding="utf-8"))


def test_made_pages_name_everything():
    from flexjax.formulation import REGISTRY

    matrix = (DOCS / "formulations.md").read_text(encoding="utf-8")
    assert all(f"### {name}\n" in matrix for name in REGISTRY)
    assert set(reference_names()) == set(PUBLIC), "run python docs/_make.py"


def test_reference_and_files_pages_are_current(monkeypatch):
    """They compile nothing; the capability matrix does, below."""
    monkeypatch.syspath_prepend(str(DOCS))
    pages = runpy.run_path(str(DOCS / "_make.py"), run_name="make")["PAGES"]
    for page, make in pages.items():
        if page != "formulations.md":
            assert (DOCS / page).read_text(encoding="utf-8") == make(), (
                f"{page}: run python docs/_make.py"
            )


# They raise nothing of their own.
RAISES_NOTHING = (
    "paths examples robot_schema step cosine sine chirp shift cite measure peak_deflection "
    "surface_strain jit grad value_and_grad datasets plot_style identification_report "
    "move_report comparison_report"
).split()


def test_public_names_are_documented():
    """Every argument, the result, what is raised, and an example, which the next test runs."""
    faults = []
    for name in PUBLIC:
        value = getattr(fx, name)
        doc = inspect.getdoc(value) or ""
        if not inspect.isfunction(value):
            faults += [f"{name}: no example"] if ">>>" not in doc else []
            continue
        if ("Raises:" in doc) is (name in RAISES_NOTHING):
            faults.append(f"{name}: document what it raises")
        listed = re.search(r"Arguments:\n((?: +.*\n)+)", doc)
        named = re.findall(r"^    ([\w, ]+):", listed[1] if listed else "", re.M)
        missing = set(inspect.signature(value).parameters) - set(", ".join(named).split(", "))
        faults += [f"{name}: argument {argument}" for argument in sorted(missing)]
        faults += [f"{name}: no {part}" for part in ("Returns:", ">>>") if part not in doc]
    assert not faults, "\n".join(faults)


def check_example(name: str) -> None:
    value = getattr(fx, name)
    module = inspect.getmodule(value)
    for test in doctest.DocTestFinder().find(value, name, module=module):
        failed, _ = doctest.DocTestRunner().run(test)
        assert not failed, f"{test.name}: the captured output shows the difference"


@pytest.mark.docs
@pytest.mark.parametrize("name", sorted(set(PUBLIC) - {n for s in SHARED.values() for n in s}))
def test_docstring_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "sample_posterior":
        pytest.importorskip("blackjax")
    check_example(name)


def test_files_page_shows_files_that_load(tmp_path):
    robot, drive = blocks("files.md", "toml")
    (tmp_path / "arm.toml").write_text(robot)
    (tmp_path / "drive.toml").write_text(drive)
    arm = fx.load_robot(tmp_path / "arm.toml")
    for part in load_run(tmp_path / "drive.toml"):
        part.check(arm)


@pytest.mark.slow
def test_made_pages_are_current(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["_make.py", "--check"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(DOCS / "_make.py"), run_name="__main__")
    assert stop.value.code == 0
