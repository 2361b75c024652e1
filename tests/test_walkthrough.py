"""A new user's way: every command and every block of the README, of the quickstart and of the page
about commands, in order, in an empty folder.

Commands of flexjax run in this process (they share what is compiled); `make` targets are looked up;
whatever else a page shows fails here, so that no command goes unseen.
"""

import re
import shlex
from pathlib import Path

import jax
import numpy as np
import pytest

import flexjax as fx
from flexjax.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README": ROOT / "README.md",
    "quickstart": ROOT / "docs" / "quickstart.md",
    "commands": ROOT / "docs" / "commands.md",
}
# What is not run, and why.
NOT_RUN = {
    r"make \w[\w-]*": "a target of the Makefile; looked up there",
    r"\. \.venv/bin/activate": "the tests run in that environment",
}
SLOW = ("compare", "demo", "optimise", "sweep")  # they take minutes to compile
BLOCK = r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<block>.*?)^```$"
# A command may go on in the next line after a backslash.
COMMANDS = r"(?P<commands>(?:^    (?:flexjax|make|pip|python|git) (?:[^\n]*\\\n)*[^\n]*\n)+)"
STEP = re.compile(f"{BLOCK}|{COMMANDS}", re.M | re.S)


def steps(page: str) -> list[tuple[str, str, str]]:
    """(kind, name, text) in the order of the page; commands one by one, without their comments."""
    found = []
    for match in STEP.finditer(PAGES[page].read_text(encoding="utf-8")):
        language = match["language"]
        if match["commands"] or language == "sh":
            lines = re.sub(r"\s*\\\n\s*", " ", match["commands"] or match["block"]).splitlines()
            found += [
                ("command", "", line.split("  #")[0].split("   #")[0].strip())
                for line in lines
                if line.strip()
            ]
        else:
            found.append((language, match["title"] or "", match["block"]))
    return found


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def run_command(line: str) -> None:
    for pattern in NOT_RUN:
        if re.fullmatch(pattern, line):
            assert not line.startswith("make ") or line.split()[1] in targets(), line
            return
    program, *arguments = shlex.split(line)
    assert program == "flexjax", f"no way to run {line!r} here: add one, or a reason to NOT_RUN"
    assert main(arguments) == 0, line


def walk(page: str, space: dict, slow: bool, skip: int = 0) -> None:
    """Everything that a page shows, but for its first ``skip`` Python blocks."""
    for kind, name, text in steps(page):
        if kind == "python" and skip:
            skip -= 1
            continue
        heavy = kind == "command" and text.startswith("flexjax ") and text.split()[1] in SLOW
        if kind == "command" and (slow or not heavy):
            run_command(text)
        elif kind == "python" and not slow:
            exec(compile(text, page, "exec"), space)
        elif kind == "toml":
            Path(name or "drive.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with jax.numpy_rank_promotion("allow"):  # as a user has it
        yield tmp_path


@pytest.mark.docs
def test_quickstart(user, capsys):
    space = {}
    walk("quickstart", space, slow=False)
    out = capsys.readouterr().out
    assert "my arm" in out and "supported by" in out
    assert {"arm.toml", "other.toml", "run.nc", "record.csv", "arm.html", "deflection.png"} <= {
        p.name for p in user.iterdir()
    }
    # The same run in Python and by the command gives the same record.
    np.testing.assert_allclose(
        fx.load_trajectory("run.nc").tip, space["traj"].tip, rtol=0, atol=1e-12
    )
    assert abs(float(space["traj"].q[-1, 0]) - 1.0) < 1e-12
    # The robot that the record was made with is found again; between its samples the motor's motion
    # is a spline.
    assert float(fx.load_robot("found.toml").links[0].material.E) == pytest.approx(7e10, rel=1e-3)
    assert Path("found.html").stat().st_size > 10_000


@pytest.mark.docs
def test_readme(user, capsys, monkeypatch):
    space, compiled, jit = {}, [], jax.jit
    with monkeypatch.context() as patch:
        patch.setattr(
            jax, "jit", lambda fn, **options: compiled.append(jit(fn, **options)) or compiled[-1]
        )
        exec(
            compile(
                next(text for kind, _, text in steps("README") if kind == "python"),
                "README",
                "exec",
            ),
            space,
        )
    walk("README", space, slow=False, skip=1)
    assert "height" in capsys.readouterr().out
    made = {p.relative_to(user).as_posix() for p in user.rglob("*")}
    assert {"my-arm.toml", "run.nc", "record.csv", "arm.html", "figs/tip.png"} <= made
    height, (by_E, by_angle) = space["height"], space["slopes"]
    assert abs(height - np.sin(0.5)) < 0.05 and abs(by_angle - np.cos(0.5)) < 0.1
    # The program that the example has compiled; tracing it compiles others.
    h, (both,) = 1e-3, [program for program in compiled if program.__name__ == "tip"]
    finite = (both(7e10, 0.5 + h)[0] - both(7e10, 0.5 - h)[0]) / (2 * h)
    assert float(by_angle) == pytest.approx(float(finite), rel=1e-5)
    assert float(by_E) != 0


@pytest.mark.docs
def test_commands(user):
    walk("commands", {}, slow=False)
    assert {"run.nc", "arm.toml", "sensors.csv", "again.html"} <= {p.name for p in user.iterdir()}
    fx.load_drive("drive.toml").check(fx.load_robot("two-link"))


@pytest.mark.docs
@pytest.mark.slow
@pytest.mark.filterwarnings("default::UserWarning")  # a user reads it as a line of the output
def test_commands_that_compile_everything(user):
    assert main(["examples", "--copy", "two-link", "arm.toml"]) == 0
    assert main(["new", "my-arm.toml", "--lengths", "0.5", "0.4", "--payload", "0.2"]) == 0
    for page in PAGES:
        for kind, name, text in steps(page):
            if kind == "toml" and name:
                Path(name).write_text(text, encoding="utf-8")
            if kind == "command" and text.startswith("flexjax ") and text.split()[1] in SLOW:
                run_command(text)
    assert Path("compare.html").stat().st_size > 100_000
    assert Path("move.html").stat().st_size > 100_000


def test_pages_show_what_they_should():
    """The parser sees the pages as a reader does: commands, blocks and files are all there."""
    for page in PAGES:
        kinds = [kind for kind, _, _ in steps(page)]
        assert kinds.count("command") >= 5
        assert kinds.count("python") >= 1 or kinds.count("toml") >= 1
        text = PAGES[page].read_text(encoding="utf-8")
        assert text.count("```") == 2 * (len(re.findall(r"^```\w", text, re.M)))
        shown = len(re.findall(r"^(?:    )?flexjax \w", text, re.M)) + text.count(
            "flexjax --help\n"
        )
        assert shown == len(
            [t for k, _, t in steps(page) if k == "command" and t.startswith("flexjax")]
        )
