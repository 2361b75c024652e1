"""A sweep on disk: one zarr array for every output, written chunk by chunk, status last.

A run whose status is the fill value was not simulated. A chunk is complete once its status is
written, and only then.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from flexjax._files import FileError, check_zarr, reading, write_whole

NOT_RUN = -1
FORMAT = "flexjax sweep 1"
EXPECTED = "a folder that fx.sweep made"
REMEDY = "Give another name, or remove it."


class Store:
    """An open store; ``key`` is the text of the problem that it belongs to."""

    def __init__(self, path: Path, group: Any, runs: int, chunk: int):
        self.where = f"store {str(path)!r}"
        self.group, self.runs, self.chunk = group, runs, chunk

    def missing(self) -> list[int]:
        """Numbers of the chunks that have to be simulated."""
        with self._reading():
            status = self.group["status"][:]
        count = -(-self.runs // self.chunk)
        return [
            k
            for k in range(count)
            if np.any(status[k * self.chunk : (k + 1) * self.chunk] == NOT_RUN)
        ]

    def write(self, k: int, rows: dict[str, np.ndarray]) -> None:
        """One chunk: outputs first, status last."""
        at = slice(k * self.chunk, k * self.chunk + len(rows["status"]))
        for name, values in rows.items():
            if name != "status":
                self._array(name, values)[at] = values
        self.group["status"][at] = rows["status"]

    def _array(self, name: str, values: np.ndarray) -> Any:
        if name in self.group:
            return self.group[name]
        shape = (self.runs, *values.shape[1:])
        return self.group.create_array(
            name,
            shape=shape,
            chunks=(self.chunk, *values.shape[1:]),
            dtype=values.dtype,
            fill_value=np.nan if values.dtype.kind == "f" else NOT_RUN,
        )

    def read(self) -> dict[str, np.ndarray]:
        """Everything that was written."""
        with self._reading():
            return {name: array[:] for name, array in self.group.arrays()}

    def _reading(self):
        return reading(self.where, EXPECTED, REMEDY)


def open_store(path: Path, key: dict[str, str], runs: int, chunk: int) -> Store:
    """Create a store, or continue one of the same problem."""
    try:
        import zarr
    except ImportError:
        raise ImportError("store: needs zarr; pip install 'flexjax[zarr]'") from None
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        return _continued(path, key, runs)

    def create(part: Path) -> None:
        group = zarr.open_group(str(part), mode="w")
        group.create_array("status", shape=(runs,), chunks=(chunk,), dtype="i4", fill_value=NOT_RUN)
        group.attrs.update({"format": FORMAT, "key": json.dumps(key), "runs": runs, "chunk": chunk})

    # In one step: an interrupted call leaves no store that a later one could not read.
    write_whole(path, create)
    return Store(path, zarr.open_group(str(path), mode="r+"), runs, chunk)


def _continued(path: Path, key: dict[str, str], runs: int) -> Store:
    """A store that exists; nothing outside of it is read or written."""
    import zarr

    where = f"store {str(path)!r}"
    if not path.is_dir():
        raise FileError(f"{where}: not a sweep; expected {EXPECTED}. {REMEDY}")
    check_zarr(path, where)
    with reading(where, EXPECTED, REMEDY):
        group = zarr.open_group(str(path), mode="r+")
        attributes: dict[str, Any] = dict(group.attrs)
        if attributes.get("format") != FORMAT:
            raise FileError(f"{where}: not a sweep; expected {EXPECTED}. {REMEDY}")
        stored = json.loads(str(attributes["key"]))
        count, chunk = attributes["runs"], attributes["chunk"]
        whole = all(isinstance(n, int) and n > 0 for n in (count, chunk))
        status = group["status"]
        whole = whole and isinstance(status, zarr.Array) and status.dtype == "i4"
    if isinstance(stored, dict):
        _refuse_other(path, stored, key)
    odd = [name for name, array in group.arrays() if array.shape[:1] != (runs,)]
    if not isinstance(stored, dict) or not whole or count != runs or odd:
        raise FileError(
            f"{where}: {count!r} runs in chunks of {chunk!r}, arrays of other lengths: "
            f"{', '.join(odd) or 'none'}; expected {runs} runs. It is damaged. {REMEDY}"
        )
    return Store(path, group, count, chunk)


def _refuse_other(path: Path, old: dict[str, str], new: dict[str, str]) -> None:
    different = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if different:
        shown = "; ".join(
            f"{name}: {_short(old.get(name))} there, {_short(new.get(name))} now"
            for name in different
        )
        raise FileError(
            f"store {str(path)!r}: belongs to another sweep ({shown}). Give another name, or "
            "remove it."
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
