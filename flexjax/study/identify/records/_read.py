"""Read columns of numbers with units from CSV, MAT, NPZ and netCDF; nothing is unpickled."""

import csv
import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flexjax._files import (
    NETCDF,
    TEXT,
    FileError,
    check_data_file,
    check_declared,
    check_hdf5,
    read_mat,
    read_npz,
    reading,
)
from flexjax.study.identify.records._units import parse_unit, split_header

MOST = 10_000  # columns of a file
TIME_NAMES = ("time", "t", "ts", "t_s", "time_s", "Time", "seconds")
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "missing"}


class Column(NamedTuple):
    values: np.ndarray
    unit: str | None


def read_columns(path: str | os.PathLike[str]) -> dict[str, Column]:
    """Every one-dimensional column of a file by its name."""
    path = Path(path)
    check_data_file(path)
    readers = {
        **dict.fromkeys(TEXT, _text),
        ".mat": _mat,
        ".npz": _npz,
        **dict.fromkeys(NETCDF, _netcdf),
    }
    columns = readers[path.suffix.lower()](path, f"data file {str(path)!r}")
    if not columns:
        raise ValueError(f"data file {str(path)!r}: contains no column of numbers.")
    return columns


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return np.nan if cell.strip().lower() in MISSING else None


# Not pandas: it fills short rows with NaN, and its message about a bad cell names neither line nor
# column.
def _text(path: Path, where: str) -> dict[str, Column]:
    with reading(where, "UTF-8 text, one row per sample", "Save it again as UTF-8."):
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    rows = [
        (i + 1, line)
        for i, line in enumerate(lines)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not rows:
        return {}
    first = rows[0][1]
    delimiter = next((d for d in ("\t", ";", ",") if d in first.strip()), None)

    def cells(line: str) -> list[str]:
        if delimiter is None:
            return line.split()
        return [c.strip() for c in next(csv.reader([line], delimiter=delimiter))]

    with reading(where, "rows of numbers", "Look for a quote that is not closed."):
        table = [(number, cells(line)) for number, line in rows]
    names, table = _names(table)
    if len(names) > MOST:
        raise FileError(f"{where}: {len(names)} columns; expected at most {MOST}.")
    for number, row in table:
        if len(row) != len(names):
            raise ValueError(
                f"{where}, line {number}: {len(row)} values; "
                f"expected {len(names)} as in the header."
            )
    values = np.empty((len(table), len(names)))
    for r, (line_number, row) in enumerate(table):
        for c, cell in enumerate(row):
            number = _number(cell)
            if number is None:
                raise ValueError(
                    f"{where}, line {line_number}, column {names[c]!r}: {cell!r}; "
                    "expected a number, or an empty cell for a gap."
                )
            values[r, c] = number
    columns = {}
    for c, header in enumerate(names):
        name, unit = split_header(header)
        if name in columns:
            raise ValueError(f"{where}: two columns are called {name!r}; expected different names.")
        columns[name] = Column(values[:, c], unit)
    return columns


def _names(table: list[tuple[int, list[str]]]) -> tuple[list[str], list]:
    """Names of the columns, and the rows of numbers.

    A delimiter at the end of a line makes an empty cell: a gap where the column has a name, nothing
    where it has none.
    """
    head = table[0][1]
    titled = any(_number(c) is None for c in head)
    body = table[1:] if titled else table
    width = len(head)
    if head[-1] == "" and all(row[-1] == "" for _, row in body if len(row) >= width):
        width -= 1
    names = head[:width] if titled else [str(k) for k in range(width)]
    trimmed = [
        (number, row[:-1] if len(row) == width + 1 and row[-1] == "" else row)
        for number, row in body
    ]
    return names, trimmed


def _arrays(content: dict, units: dict, path: Path, where: str) -> dict[str, Column]:
    """One-dimensional float columns; a matrix gives columns name.0, name.1, ..."""
    columns, declared = {}, 0
    for header, array in content.items():
        array = np.asarray(array)
        if array.dtype.kind not in "fiu" or array.size < 2:
            continue
        name, unit = split_header(header)
        unit = units.get(header, unit)
        declared += 8 * array.size  # bytes of a file may become numbers of eight bytes each
        check_declared(f"{where}: {name!r}", declared, path.stat().st_size)
        array = np.squeeze(array)
        if array.ndim == 2 and array.shape[1] + len(columns) > MOST:
            raise FileError(
                f"{where}: {name!r} has shape {array.shape}; expected at most {MOST} columns, with "
                "one row for each sample. Transpose it, or leave it out of the file."
            )
        array = array.astype(float)
        if array.ndim == 1:
            columns[name] = Column(array, unit)
        elif array.ndim == 2:
            columns |= {f"{name}.{k}": Column(array[:, k], unit) for k in range(array.shape[1])}
    return columns


def _mat(path: Path, where: str) -> dict[str, Column]:
    content = read_mat(path, where)
    units = content.get("units", {})
    units = {k: str(v) for k, v in units.items()} if isinstance(units, dict) else {}
    content = {k: v for k, v in content.items() if not k.startswith("__")}
    return _arrays(content, units, path, where)


def _npz(path: Path, where: str) -> dict[str, Column]:
    return _arrays(read_npz(path, where), {}, path, where)


def _netcdf(path: Path, where: str) -> dict[str, Column]:
    import xarray

    check_hdf5(path, where)
    with (
        reading(where, "a netCDF-4 file with named dimensions", "Save it again, or as CSV."),
        xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data,
    ):
        units = {
            str(k): str(v.attrs["units"]) for k, v in data.variables.items() if "units" in v.attrs
        }
        content = {str(k): v.values for k, v in data.variables.items() if v.ndim == 1}
        return _arrays(content, units, path, where)


def _did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else otherwise


class Table:
    """The columns of a file by name, with their units applied."""

    def __init__(self, columns: dict[str, Column], units: dict[str, str], where: str):
        self.columns, self.units, self.where = columns, units, where
        unknown = [u for u in units if u not in columns]
        if unknown:
            raise ValueError(
                f"{where}: units.{unknown[0]}: no such column; {self._has(unknown[0])}"
            )

    def _has(self, name: str) -> str:
        return _did_you_mean(name, self.columns, f"the file has {', '.join(self.columns)}.")

    def unit(self, column: str):
        text = self.units.get(column, self.columns[column].unit)
        return None if text is None else parse_unit(text, f"{self.where}, column {column!r}")

    def values(self, column: str, field: str) -> np.ndarray:
        if column not in self.columns:
            raise ValueError(
                f"{self.where}: {field}: there is no column {column!r}; {self._has(column)}"
            )
        unit = self.unit(column)
        return self.columns[column].values * (1.0 if unit is None else unit.factor)

    def time(self, name: str | None, rate: float | None) -> tuple[np.ndarray, str]:
        if rate is not None:
            if not rate > 0:
                raise ValueError(f"rate: {rate}; expected a positive sampling rate in Hz.")
            return np.arange(len(next(iter(self.columns.values())).values)) / rate, ""
        name = name or next((n for n in TIME_NAMES if n in self.columns), None)
        if name is None:
            raise ValueError(
                f"{self.where}: no time column ({', '.join(TIME_NAMES[:3])}); it has "
                f"{', '.join(self.columns)}. Name it (time=..., on the command line --time), or "
                "give the sampling rate in Hz (rate=..., --rate)."
            )
        values, unit = self.values(name, "time"), self.unit(name)
        if unit is not None and unit.kind != "time":
            raise ValueError(
                f"{self.where}: time: column {name!r} is in units of {unit.kind}; expected seconds."
            )
        return values, name

    def pick(self, field: str, mapping: dict[str, str]) -> dict[str, np.ndarray]:
        wanted = {
            "motions": ("angle", "length"),
            "efforts": ("torque", "force"),
            "currents": ("current",),
        }.get(field)
        for name, column in mapping.items():
            unit = self.unit(column) if column in self.columns else None
            if wanted and unit is not None and unit.kind not in wanted:
                raise ValueError(
                    f"{self.where}: {field}.{name}: column {column!r} is in units of "
                    f"{unit.kind}; expected {' or '.join(wanted)}."
                )
        return {name: self.values(column, f"{field}.{name}") for name, column in mapping.items()}
