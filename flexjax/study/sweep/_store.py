"""A sweep on disk: one zarr array for every output, written chunk by chunk, status last.

A run whose status is the fill value was not simulated. A chunk is complete once its status is
written, and only then.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from flexjax._files import FileError, write_whole

NOT_RUN = -1
FORMAT = "flexjax sweep 1"


class Store:
    """An open store; ``key`` is the text of the problem that it belongs to."""

    def __init__(self, group: Any, runs: int, chunk: int):
        self.group, self.runs, self.chunk = group, runs, chunk

    def missing(self) -> list[int]:
        """Numbers of the chunks that have to be simulated."""
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
        return {name: array[:] for name, array in self.group.arrays()}


def open_store(path: Path, key: dict[str, str], runs: int, chunk: int) -> Store:
    """Create a store, or continue one of the same problem."""
    try:
        import zarr
    except ImportError:
        raise ImportError("store: needs zarr; pip install 'flexjax[zarr]'") from None
    if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
        try:
            group = zarr.open_group(str(path), mode="r+")
            attributes: dict[str, Any] = dict(group.attrs)
        except Exception as error:
            raise FileError(
                f"store {str(path)!r}: cannot be read as a sweep ({error}); expected a folder "
                "that fx.sweep made. Give another name, or remove it."
            ) from error
        if attributes.get("format") != FORMAT:
            raise FileError(
                f"store {str(path)!r}: not a sweep; expected a folder that fx.sweep made. Give "
                "another name, or remove it."
            )
        _refuse_other(path, json.loads(str(attributes["key"])), key)
        return Store(group, int(attributes["runs"]), int(attributes["chunk"]))

    def create(part: Path) -> None:
        group = zarr.open_group(str(part), mode="w")
        group.create_array("status", shape=(runs,), chunks=(chunk,), dtype="i4", fill_value=NOT_RUN)
        group.attrs.update({"format": FORMAT, "key": json.dumps(key), "runs": runs, "chunk": chunk})

    # In one step: an interrupted call leaves no store that a later one could not read.
    write_whole(path, create)
    return Store(zarr.open_group(str(path), mode="r+"), runs, chunk)


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
