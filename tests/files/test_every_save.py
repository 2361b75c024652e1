"""Every function that saves a file: an end before the last step, and kill -9 at any moment, leave
the old file or the new one, whole."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import flexjax as fx
from flexjax._files import _write
from flexjax.simulate.analysis._state_space import Matrices, write_mat
from flexjax.study.identify.fit._fit import _keep
from flexjax.study.optimise import _table
from flexjax.study.optimise._guess import writer
from flexjax.study.sweep._store import create_store
from flexjax.viz import Report
from tests.fuzz.loaders import trajectory

ROOT = Path(__file__).resolve().parents[2]
T = np.linspace(0.0, 1.0, 50)
PROBLEM = SimpleNamespace(
    parameters=SimpleNamespace(names=("a",), start=T, values=lambda z: z),
    duration_of=lambda x: 1.0,
)


def _move(path):
    keep = writer(PROBLEM, path)
    assert keep is not None
    keep(T[:2])


def _table_of_a_move(path):
    with mock.patch.object(_table, "columns", return_value={"time [s]": T, "q [rad]": T}):
        _table.write_table(SimpleNamespace(duration=1.0), path, 100.0)


SAVES = {
    "run.nc": lambda path: fx.save_trajectory(trajectory(), path),
    "run.zarr": lambda path: fx.save_trajectory(trajectory(), path),
    "run.csv": lambda path: fx.to_csv(trajectory(), path),
    "run.mat": lambda path: fx.to_mat(trajectory(), path),
    "arm.toml": lambda path: fx.save_robot(fx.load_robot("rigid-3r"), path),
    "arm.urdf": lambda path: fx.save_urdf(fx.load_robot("rigid-3r"), path),
    "run.glb": lambda path: fx.save_gltf(trajectory(), path),
    "view.html": lambda path: fx.animate(trajectory(), path),
    "film.gif": lambda path: fx.animate(trajectory(), path),
    "report.html": lambda path: Report("a", "b").text("c").save(path),
    "plot.png": lambda path: fx.plot(trajectory(), "joints").savefig(path),
    "fit.npz": lambda path: _keep(path, PROBLEM, (1.0, T), [1.0]),
    "move.npz": _move,
    "move.csv": _table_of_a_move,
    "system.mat": lambda path: write_mat(Matrices(*[np.eye(2)] * 4), {"inputs": ["a"]}, path),
    "sweep.zarr": lambda path: create_store(path, {}, (2, 2), T, np.ones((len(T), 1)), ["x"]),
    "arm.fmu": lambda path: fx.to_fmu(fx.RigidArm().bind(fx.load_robot("two-link")), path),
}


def content(path):
    """Names and bytes of a file or a store."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [(p.relative_to(path), p.read_bytes()) for p in files]


SLOW = ("film.gif", "arm.fmu")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SAVES]
)
def test_a_save_that_ends_early_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    SAVES[name](path)
    before = content(path)
    assert before and all(len(x) for _, x in before)

    def killed(part):
        assert part != path and part.exists()  # complete, under another name
        raise KeyboardInterrupt

    monkeypatch.setattr(_write, "_sync", killed)
    with pytest.raises(KeyboardInterrupt):
        SAVES[name](path)
    assert content(path) == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_the_list_of_saves_is_complete():
    """Every public function whose name says that it saves is above, or has a test of its own."""
    own = {"to_fmu", "to_dataset", "to_exudyn"}  # tests/io/test_fmu.py; the others write no file
    names = {n for n in dir(fx) if n.startswith(("save_", "to_"))} - own
    used = {n for save in SAVES.values() for n in save.__code__.co_names}
    assert names <= used, names - used


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path, record_number):
    """Every save in a process that is killed at random moments (tests/files/killed.py)."""
    command = [sys.executable, "-m", "tests.files.killed", str(tmp_path / "files"), "--kills", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-3000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert set(counts) == set(SAVES) - {"arm.fmu"}
    record_number(
        "saves killed at random moments", sum(x["kills"] for x in counts.values()), 100, ">="
    )
    assert sum(x["saves"] for x in counts.values()) > 0 and any(
        x["remains"] for x in counts.values()
    )


# Calls that write a file.
WRITES = {
    "write_text",
    "write_bytes",
    "savez",
    "savez_compressed",
    "savemat",
    "to_netcdf",
    "to_zarr",
}
WRITES |= {"savefig", "copyfile", "copytree", "tofile", "open_group", "rename", "symlink_to"}
# They write into a part that the caller put through write_whole, into memory or a temporary folder,
# through the atomic savefig of a Picture, or open a store whose units are written status last.
INSIDE = {
    ("_fmu.py", "_write"),
    ("_fmu.py", "export"),
    ("_style.py", "savefig"),
    ("_style.py", "png"),
    ("_store.py", "open_store"),
    ("_store.py", "reopen_store"),
    ("_store.py", "create_store"),
    ("_common.py", "save"),
    ("_modes.py", "run"),
}


def _wholes(tree):
    """Functions and lambdas that write_whole calls."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    calls = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "write_whole"]
    given = [c.args[1] for c in calls]
    names = {g.id for g in given if isinstance(g, ast.Name)}
    return {id(g) for g in given}, names


def _outside(tree):
    """(function, line) of every call that writes without write_whole."""
    given, names = _wholes(tree)

    def visit(node, where, whole):
        if isinstance(node, ast.FunctionDef):
            where, whole = node.name, whole or node.name in names
        whole = whole or id(node) in given
        if isinstance(node, ast.Call) and not whole:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            mode = [ast.unparse(x) for x in [*node.args[1:2], *(k.value for k in node.keywords)]]
            opens = name == "open" and any(m in ("'w'", "'wb'", "'a'", "'x'") for m in mode)
            if name in WRITES or opens:
                yield where, node.lineno
        for child in ast.iter_child_nodes(node):
            yield from visit(child, where, whole)

    return list(visit(tree, "", False))


def test_every_write_is_atomic():
    """No module writes a file past flexjax/_files."""
    package = ROOT / "flexjax"
    found = {
        (path.name, where): line
        for path in package.rglob("*.py")
        if path.parent.name != "_files"
        for where, line in _outside(ast.parse(path.read_text("utf-8")))
    }
    assert set(found) <= INSIDE, {k: found[k] for k in set(found) - INSIDE}
    bad = """def f(p):
    p.write_text("")
    open(p, "w")
    write_whole(p, lambda q: q.write_text(""))"""
    assert _outside(ast.parse(bad)) == [("f", 2), ("f", 3)]  # the check itself
