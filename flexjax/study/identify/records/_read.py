"""Read columns of numbers with units from CSV, MAT, NPZ and netCDF; nothing is unpickled."""

import csv
import os
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
from flexjax.study.identify.records._units import split_header

MOST = 10_000  # columns of a file
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "missing"}


class Column(NamedTuple):
    values: np.ndarray
    unit: str | None


def read_columns(path: str | os.PathLike) -> dict[str, Column]:
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
