"""Read files that another process may replace meanwhile."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from flexjax._files._error import FileError
from flexjax._files._write import recover

Result = TypeVar("Result")
ATTEMPTS = 20


def read_whole(path: str | os.PathLike[str], read: Callable[[Path], Result]) -> Result:
    """``read(path)`` of one state of a file or store; repeated if it was replaced meanwhile."""
    path = Path(path)
    for attempt in range(ATTEMPTS):
        before = _identity(path)
        if before is None:
            recover(path)
            before = _identity(path)
        try:
            result = read(path)
        except Exception:
            # In this order: a writer that ends between the two has left the new file.
            absent_for_now = before is None and _being_replaced(path)
            if _identity(path) == before and not absent_for_now:
                raise
        else:
            if _identity(path) == before:
                return result
        time.sleep(0.005 * attempt)
    raise FileError(
        f"file {str(path)!r}: replaced by another process during each of {ATTEMPTS} reads; "
        "expected a file that stays for the time of a read. Read it when the other has ended."
    )


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _being_replaced(path: Path) -> bool:
    start = f".{path.name}."
    names = os.listdir(path.parent)  # scandir stays open when a match ends the search
    return any(name.startswith(start) and name.endswith(".part") for name in names)
