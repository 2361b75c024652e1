"""A sweep on disk: one zarr array for every output, written unit by unit, status last.

A run whose status is the fill value was not simulated. A unit is complete once its status is
written, and only then. Runs are in the order of the work: "run" is the number of each in the
design, whose values are in "design".
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flexjax._files import FileError, check_zarr, reading, write_whole

NOT_RUN = -1
FORMAT = "flexjax sweep 2"
EXPECTED = "a folder that fx.sweep made"
REMEDY = "Give another name, or remove it."
OWN = ("run", "design")  # arrays that are no outputs
NAME = "name"  # attribute of an output's array


class Store:
    """An open store. ``unit``: runs of one zarr chunk; ``chunk``: runs computed at once."""

    def __init__(self, path: Path | str, group: Any):
        self.where = f"store {str(path)!r}"
        self.group = group
        self._open: dict[str, Any] = {}
        self.runs, self.unit, self.chunk = (int(group.attrs[k]) for k in ("runs", "unit", "chunk"))

    def span(self, k: int) -> tuple[int, int]:
        """First and last place of a unit."""
        return k * self.unit, min((k + 1) * self.unit, self.runs)

    @property
    def units(self) -> int:
        return -(-self.runs // self.unit)

    def missing(self) -> list[int]:
        """Numbers of the units that have to be simulated."""
        with reading(self.where, EXPECTED, REMEDY):
            status = self.group["status"][:]
        return [k for k in range(self.units) if np.any(status[slice(*self.span(k))] == NOT_RUN)]

    def lacks(self, k: int) -> bool:
        """Whether one unit has to be simulated."""
        return bool(np.any(self._array("status")[slice(*self.span(k))] == NOT_RUN))

    def write(self, k: int, rows: dict[str, np.ndarray]) -> None:
        """One unit: outputs first, status last."""
        at = slice(*self.span(k))
        for name in [*(name for name in rows if name != "status"), "status"]:
            self._array(name)[at] = rows[name]

    def _array(self, name: str) -> Any:
        if name not in self._open:
            self._open[name] = self.group[_file_name(name)]
        return self._open[name]

    def declare(
        self, rows: dict[str, np.ndarray], dims: Callable[[str, int], tuple[str, ...]]
    ) -> None:
        """Create the arrays of the outputs, before any of them is written."""
        for name, values in rows.items():
            if _file_name(name) not in self.group:
                self.group.create_array(
                    _file_name(name),
                    shape=(self.runs, *values.shape[1:]),
                    chunks=(self.unit, *values.shape[1:]),
                    dtype=values.dtype,
                    fill_value=np.nan if values.dtype.kind == "f" else NOT_RUN,
                    dimension_names=("place", *dims(name, values.ndim - 1)),
                    attributes={NAME: name},
                )

    def arrays(self) -> dict[str, Any]:
        """The arrays of outputs and ends, in the order of the work."""
        with reading(self.where, EXPECTED, REMEDY):
            found = {key: x for key, x in self.group.arrays() if key not in OWN}
            return {str(x.attrs.get(NAME, key)): x for key, x in found.items()}


def _file_name(name: str) -> str:
    """The name of an output as a folder: itself, or a digest of a name that would be a path."""
    plain = re.fullmatch(r"\w[\w .:,=()+-]{,120}", name, re.ASCII)
    if plain and name not in OWN and not name.startswith("zarr"):
        return name
    return f"output-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def open_store(path: Path, key: dict[str, str], runs: int) -> Store | None:
    """The store of an interrupted sweep, or None where there is none yet. Nothing outside of it is
    read or written."""
    zarr = _import_zarr()
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return None
    where = f"store {str(path)!r}"
    if not path.is_dir():
        raise FileError(f"{where}: not a sweep; expected {EXPECTED}. {REMEDY}")
    _remove_unfinished(path)
    check_zarr(path, where, filling=True)
    with reading(where, EXPECTED, REMEDY):
        group = zarr.open_group(str(path), mode="r+")
        attributes: dict[str, Any] = dict(group.attrs)
        if attributes.get("format") != FORMAT:
            raise FileError(f"{where}: not a sweep; expected {EXPECTED}. {REMEDY}")
        stored = json.loads(str(attributes["key"]))
        counts = [attributes[name] for name in ("runs", "chunk", "unit")]
        whole = all(isinstance(n, int) and n > 0 for n in counts)
        status = group["status"]
        whole = whole and isinstance(status, zarr.Array) and status.dtype == "i4"
        odd = [name for name, array in group.arrays() if array.shape[:1] != (runs,)]
    if isinstance(stored, dict):
        _refuse_other(path, stored, key)
    if not isinstance(stored, dict) or not whole or counts[0] != runs or odd:
        raise FileError(
            f"{where}: {counts[0]!r} runs in chunks of {counts[1]!r}, arrays of other lengths: "
            f"{', '.join(odd) or 'none'}; expected {runs} runs. It is damaged. {REMEDY}"
        )
    return Store(path, group)


def _remove_unfinished(path: Path) -> None:
    """Remove what a killed process was writing: zarr writes a file beside the chunk, then renames
    it."""
    for file in path.rglob("*.partial"):
        if re.fullmatch(r".*\.[0-9a-f]{32}\.partial", file.name) and not file.is_symlink():
            file.unlink(missing_ok=True)


def reopen_store(path: str) -> Store:
    """A store that the process which started the sweep has opened, from a worker."""
    return Store(path, _import_zarr().open_group(path, mode="r+"))


def create_store(
    path: Path,
    key: dict[str, str],
    sizes: tuple[int, int],
    order: np.ndarray,
    values: np.ndarray,
    paths: list[str],
) -> Store:
    """A new store for runs in the given order; ``sizes``: runs of a chunk and of a unit."""
    zarr, runs = _import_zarr(), len(order)

    def create(part: Path) -> None:
        group = zarr.open_group(str(part), mode="w")
        status = dict(dtype="i4", fill_value=NOT_RUN, dimension_names=("place",))
        group.create_array("status", shape=(runs,), chunks=(sizes[1],), **status)
        whole = group.create_array("run", shape=(runs,), chunks=(runs,), dtype="i8")
        whole[:] = order
        if values.shape[1]:
            design = group.create_array(
                "design", shape=values.shape, chunks=values.shape, dtype="f8"
            )
            design[:] = values
        named = {"format": FORMAT, "key": json.dumps(key), "paths": paths}
        group.attrs.update({**named, "runs": runs, "chunk": sizes[0], "unit": sizes[1]})

    # In one step: an interrupted call leaves no store that a later one could not read.
    write_whole(path, create)
    return Store(path, zarr.open_group(str(path), mode="r+"))


def _import_zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError("store: needs zarr; pip install 'flexjax[zarr]'") from None
    return zarr


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
