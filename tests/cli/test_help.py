"""Every example in the help of `flexjax` and of its commands runs; shell completion works."""

import ast
import inspect
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

import flexjax as fx
from flexjax.cli import main
from flexjax.cli._main import COMMANDS, EXAMPLES
from flexjax.robot._examples import example_path
from flexjax.study.identify.records._dataset import FOLDER
from tests._sample import sample_trajectory

DRIVE = """[[loads]]
link = "fore"
wrench = { constant = { value = [0.0, -1.0, 0.0, 0.0, 0.0, 0.0] } }
"""
# Examples that compile little run always; the rest in `make test-full`.
QUICK = ("new", "check", "describe", "examples", "schema", "plot", "view")


def examples() -> list[str]:
    texts = [import_module(module).__doc__ or "" for module, _ in COMMANDS.values()]
    lines = [line for text in (*texts, EXAMPLES) for line in joined_lines(text)]
    return [line for line in lines if line.startswith("flexjax ")]


def joined_lines(text: str) -> list[str]:
    """The lines of a text, without indentation, continued lines joined."""
    return [" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines()]


def quick(line: str) -> bool:
    words = line.split()
    return words[1] in QUICK or words == ["flexjax", "reproduce"]


def case(line: str):
    return pytest.param(
        line, marks=() if quick(line) else pytest.mark.slow, id=line.replace("flexjax ", "")[:60]
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the examples refer to, and a browser that opens nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    shutil.copy(FOLDER / "bench-arm.toml", "arm.toml")
    for source, target in (("fit", "run.csv"), ("check", "run2.csv")):
        shutil.copy(FOLDER / f"bench-arm-{source}.csv", target)
    rows = [line.split(",") for line in Path("run.csv").read_text().splitlines()[1:]]
    Path("other.csv").write_text(
        "t_s,i,th\n" + "\n".join(f"{t},{1e3 * float(i)},{th}" for t, i, th, _ in rows)
    )
    return tmp_path


# The command prints warnings as lines; the example arm causes one about a fast link.
@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("line", [case(line) for line in dict.fromkeys(examples())])
def test_example_runs(line, folder, capsys):
    argv = shlex.split(line.split(" > ")[0])[1:]
    if argv[:2] == ["examples", "--copy"]:
        Path("arm.toml").unlink()
    if argv[:2] == ["simulate", "arm.toml"]:
        shutil.copy(example_path("two-link"), "arm.toml")
    if argv[:2] == ["check", "my-arm.toml"]:
        assert main(["new", "my-arm.toml", "--no-ask"]) == 0
    if argv[0] in ("plot", "view"):
        fx.save_trajectory(sample_trajectory(), "run.nc")
        Path("drive.toml").write_text(DRIVE)
    if argv[0] == "reproduce" and len(argv) > 1:
        pytest.skip("an experiment of its own: `make experiments`")
    assert main(argv) == 0
    assert capsys.readouterr().out.strip()


def test_every_command_shows_an_example():
    assert {line.split()[1] for line in examples()} == set(COMMANDS)


def test_options_have_one_meaning():
    """An option that several commands have is described in the same words, and --json is in all."""
    words: dict[str, set[str]] = {}
    for module, _ in COMMANDS.values():
        (args,) = (
            node
            for node in ast.parse(inspect.getsource(import_module(module))).body
            if isinstance(node, ast.ClassDef) and node.name == "Args"
        )
        for field, text in zip(args.body, args.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                assert isinstance(field.target, ast.Name)
                first = ast.literal_eval(text.value).split(";")[0]
                words.setdefault(field.target.id, set()).add(first)
    assert len(words["json"]) == 2  # `schema` prints nothing else
    for name in ("dt", "end", "outputs", "motion"):
        allowed = {"motion": 2}.get(name, 1)  # of identify: columns of the recording
        assert len(words[name]) == allowed, (name, words[name])
    for name, start in (
        ("drive", "path of "),
        ("robot", "path of a robot file"),
        ("report", "path of a report with "),
        ("save", "path"),
        ("formulation", "name"),
        ("progress", "show "),
        ("file", "path of the file"),
    ):
        assert all(text.startswith(start) for text in words[name]), (name, words[name])


def test_help_names_every_signal(capsys):
    from flexjax._registry import SIGNALS

    assert main(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in SIGNALS if name not in shown] == []


def test_examples_keep_their_lines(capsys):
    """The help prints every example on its own line."""
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        shown = joined_lines(capsys.readouterr().out)
        own = [
            line
            for line in examples()
            if line.startswith(f"flexjax {name}") and line not in EXAMPLES
        ]
        assert all(line in shown for line in own), name


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_shell_completion_completes(tmp_path, capsys):
    assert main(["--completion", "fish"]) == 2 and "expected one of bash" in capsys.readouterr().err
    assert main(["--completion", "bash"]) == 0
    (tmp_path / "flexjax").write_text(capsys.readouterr().out)
    script = """
        source "$1"
        ask() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            "$(complete -p flexjax | sed 's/.*-F \\([^ ]*\\).*/\\1/')"; echo "${COMPREPLY[@]}"
        }
        ask flexjax sim; ask flexjax simulate --mo
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(tmp_path / "flexjax")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["simulate", "--motion"]
