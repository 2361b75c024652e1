"""Atomic writes: after a killed or interrupted save a reader finds the old or the new file."""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flexjax._files import _read_whole, _write, read_whole, write_whole

ROOT = Path(__file__).resolve().parents[2]
FILES = 12
# The saver imports no jax, so that a child starts in milliseconds.
SAVER = """
import sys
from pathlib import Path
from flexjax._files import _write, write_whole
kind, path, swap = sys.argv[1:]
if swap == "no":
    _write.exchange = lambda one, two: False

def store(part, n):
    part.mkdir()
    (part / ".zgroup").write_text(str(n))
    for k in range(12):
        (part / f"{k}").write_text(str(n))

print("ready", flush=True)
n = 0
while True:
    n += 1
    if kind == "store":
        write_whole(Path(path), lambda part: store(part, n))
    else:
        write_whole(Path(path), lambda part: part.write_text(str(n) * 20000))
"""


def spawn(kind: str, path: Path, swap: str = "yes") -> subprocess.Popen:
    child = subprocess.Popen(
        [sys.executable, "-c", SAVER, kind, str(path), swap], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    return child


def kill(child: subprocess.Popen) -> None:
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()


def content(path: Path) -> str:
    """The one number in it; fails for a mixture or a part."""
    if path.is_file():
        text = path.read_text()
        number = text[: len(text) // 20000]
        assert number and text == number * 20000
        return number
    numbers = {f.read_text() for f in path.iterdir()}
    assert len(numbers) == 1 and len(list(path.iterdir())) == FILES + 1
    return numbers.pop()


def save(kind: str, path: Path, n: int) -> None:
    write_whole(path, lambda part: store(part, n) if kind == "store" else text(part, n))


@pytest.mark.parametrize(("kind", "swap"), [("store", "yes"), ("store", "no"), ("file", "yes")])
def test_a_killed_save_leaves_the_old_or_the_new(tmp_path, kind, swap):
    path, random_ = tmp_path / "run.zarr", random.Random(1)
    save(kind, path, 0)
    for _ in range(12):
        child = spawn(kind, path, swap)
        time.sleep(random_.uniform(0.0, 0.08))
        kill(child)
        # Without the exchange of names the next read or save completes a replacement.
        read_whole(path, content) if swap == "no" else content(path)
    save(kind, path, 7)
    assert content(path) == "7"
    assert [p.name for p in tmp_path.iterdir()] == ["run.zarr"]  # what was left is removed


def text(part: Path, n: int) -> None:
    part.write_text(str(n) * 20000)


def store(part: Path, n: int) -> None:
    part.mkdir()
    for name in (".zgroup", *map(str, range(FILES))):
        (part / name).write_text(str(n))


@pytest.mark.parametrize("swap", ["yes", "no"])
def test_a_reader_beside_a_saver_sees_one_state(tmp_path, swap):
    path = tmp_path / "run.zarr"
    write_whole(path, lambda part: store(part, 0))
    child = spawn("store", path, swap)
    try:
        end = time.monotonic() + 1.5
        seen = set()
        while time.monotonic() < end:
            seen.add(read_whole(path, content))
        assert len(seen) > 3
    finally:
        kill(child)


@pytest.mark.parametrize("moment", ["before the check", "after the check"])
def test_a_reader_waits_for_a_file_that_is_absent_between_two_renames(
    tmp_path, monkeypatch, moment
):
    path, part = tmp_path / "run.nc", tmp_path / ".run.nc.1.part"
    part.write_text("new")
    (tmp_path / ".run.nc.2.part").write_text("other")  # ends a search early
    being_replaced = _read_whole._being_replaced

    def finishing(path):
        if moment == "before the check" and part.exists():
            part.rename(path)
        found = being_replaced(path)
        if moment == "after the check" and part.exists():
            part.rename(path)
        return found

    monkeypatch.setattr(_read_whole, "recover", lambda path: None)
    monkeypatch.setattr(_read_whole, "_being_replaced", finishing)
    assert read_whole(path, Path.read_text) == "new"
    gc.collect()  # an open search of the folder would warn here


def test_a_reader_of_an_absent_file_does_not_wait(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "run.nc", Path.read_text)


@pytest.mark.parametrize("moment", [1, 2])
def test_an_interruption_between_the_renames_keeps_the_old(tmp_path, monkeypatch, moment):
    path = tmp_path / "run.zarr"
    write_whole(path, lambda part: store(part, 1))
    monkeypatch.setattr(_write, "exchange", lambda one, two: False)
    rename, count = os.rename, 0

    def interrupted(one, two):
        nonlocal count
        if Path(two).name == "before" or Path(one).name == "run.zarr":
            if path.exists() and Path(two) == path:
                return rename(one, two)  # finds the folder not empty
            count += 1
            if count == moment:
                raise KeyboardInterrupt
        return rename(one, two)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, lambda part: store(part, 2))
    monkeypatch.undo()
    assert content(path) == "1" and [p.name for p in tmp_path.iterdir()] == ["run.zarr"]


def test_another_save_that_runs_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"

    def slow(part: Path) -> None:
        write_whole(path, lambda inner: inner.write_text("inner"))  # cleans up, but not this one
        part.write_text("outer")

    write_whole(path, slow)
    assert path.read_text() == "outer" and [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_links_devices_and_kinds(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("1")
    link.symlink_to(real)
    assert write_whole(link, lambda part: part.write_text("2")) == link
    assert link.is_symlink() and real.read_text() == "2"
    with pytest.raises(FileExistsError, match="device"):
        write_whole("/dev/null", lambda part: part.write_text("2"))
    with pytest.raises(FileExistsError, match="is a file"):
        write_whole(real, lambda part: store(part, 1))
    with pytest.raises(FileExistsError, match="something else"):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "mine").write_text("keep")
        write_whole(tmp_path / "folder", lambda part: store(part, 1))
    mode = real.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    assert mode == 0o666 & ~umask
    assert len(list(tmp_path.iterdir())) == 3
