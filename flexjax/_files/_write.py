"""Whole writes: after a crash at any moment the old or the new file is in place, complete.

A new file is written in a hidden folder beside its destination and renamed. A folder (a zarr store)
cannot be renamed over another one, so the two exchange names in one system call. Where the system
has no such call the old folder moves aside first, and :func:`recover` completes what a crash left.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

BEFORE = "before"  # the old folder, moved aside
STORE_MARKS = (".zgroup", "zarr.json")


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Call ``write`` on a temporary name, then put the result at ``path`` in one step.

    The result of ``write`` is a file or a zarr store. What was at ``path`` before stays until the
    new one is complete. Remains of saves that were killed are removed.
    """
    path = Path(path)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path: {str(path)!r}; the folder {str(target.parent)!r} does not exist. Make it first."
        )
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise FileExistsError(f"path: {str(path)!r} is a device; choose another name.")
    recover(target)
    with _workplace(target) as folder:
        part = folder / target.name
        write(part)
        _check_kind(path, target, part)
        _sync(part)
        if part.is_dir():
            _put_folder(part, target)
        else:
            os.replace(part, target)
        _sync_folder(target.parent)
    return path


def recover(path: Path) -> None:
    """Remove the remains of killed saves to ``path``; complete a half-done replacement."""
    for folder in path.parent.glob(f".{_escaped(path.name)}.*.part"):
        with _lock(folder, wait=False) as owned:
            if not owned:
                continue  # in use by another save
            new = folder / path.name
            if (folder / BEFORE).exists() and not path.exists():
                os.rename(new if new.exists() else folder / BEFORE, path)
            shutil.rmtree(folder, ignore_errors=True)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


@contextlib.contextmanager
def _workplace(path: Path) -> Iterator[Path]:
    """A hidden folder beside ``path``, locked while in use, removed afterwards."""
    while True:
        made = tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        folder = Path(made)
        with _lock(folder, wait=True) as owned:
            if not owned:
                continue  # another save took it for remains before it was locked
            try:
                yield folder
            finally:
                _restore(folder, path)
                shutil.rmtree(folder, ignore_errors=True)
            return


def _restore(folder: Path, path: Path) -> None:
    """After an interruption between two renames, move the old folder back."""
    if (folder / BEFORE).exists() and not path.exists():
        os.rename(folder / BEFORE, path)


@contextlib.contextmanager
def _lock(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Whether this process owns the folder. The system releases the lock of a killed process."""
    if fcntl is None:
        yield wait or _abandoned(folder)
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            yield wait or _abandoned(folder)
            return
        yield os.fstat(handle).st_nlink > 0 and folder.exists()
    finally:
        os.close(handle)


def _abandoned(folder: Path) -> bool:
    """Where nothing can be locked: no save takes an hour."""
    try:
        return time.time() - folder.stat().st_mtime > 3600
    except FileNotFoundError:
        return False


def _check_kind(path: Path, target: Path, part: Path) -> None:
    if part.is_dir() and target.is_file():
        raise FileExistsError(f"path: {str(path)!r} is a file; choose another name for a store.")
    if target.is_dir():
        store = any((target / name).exists() for name in STORE_MARKS)
        if part.is_file() or (any(target.iterdir()) and not store):
            raise FileExistsError(
                f"path: {str(path)!r} is a folder with something else in it; choose another name."
            )


def _put_folder(part: Path, path: Path) -> None:
    try:
        os.rename(part, path)  # in place of nothing, or of an empty folder
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM):
            raise
        if not path.is_dir():
            raise
    if exchange(part, path):
        return
    os.rename(path, part.parent / BEFORE)
    os.rename(part, path)


def exchange(one: Path, two: Path) -> bool:
    """Let two paths exchange names in one step; False where the system cannot."""
    first, second = os.fsencode(one), os.fsencode(two)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = libc.renamex_np(first, second, ctypes.c_uint(2))  # RENAME_SWAP
        else:
            here = ctypes.c_int(-100)  # AT_FDCWD
            failed = libc.renameat2(here, first, here, second, ctypes.c_uint(2))  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):  # no such function; no C library to open
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(two))


def _sync(part: Path) -> None:
    """Put the content on the disk before its name: a power failure leaves no empty file."""
    for root, _, names in os.walk(part):
        for name in names:
            _sync_file(Path(root) / name)
        _sync_folder(Path(root))
    if part.is_file():
        _sync_file(part)


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(handle)
    finally:
        os.close(handle)
