"""Columns of numbers from CSV, MAT, NPZ and netCDF files, with the units that the file gives. Nothing is unpickled."""

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flexjax.study.identify._units import split_header

MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "missing"}


class Column(NamedTuple):
    values: np.ndarray
    unit: str | None


def read_columns(path: str | os.PathLike) -> dict[str, Column]:
    """Every one-dimensional column of a file by its name."""
    path = Path(path)
    readers = {
        ".csv": _text, ".txt": _text, ".dat": _text, ".tsv": _text, ".mat": _mat, ".npz": _npz,
        ".nc": _netcdf, ".nc4": _netcdf, ".netcdf": _netcdf, ".h5": _netcdf,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"data file {str(path)!r}: expected a name that ends in one of {' '.join(readers)}."
        )
    if not path.is_file():
        raise FileNotFoundError(f"data file {str(path)!r}: no such file.")
    try:
        columns = reader(path)
    except (OSError, KeyError, NotImplementedError) as error:
        raise ValueError(f"data file {str(path)!r}: cannot be read ({error}).") from None
    if not columns:
        raise ValueError(f"data file {str(path)!r}: holds no column of numbers.")
    return columns


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return np.nan if cell.strip().lower() in MISSING else None


def _text(path: Path) -> dict[str, Column]:
    where = f"data file {str(path)!r}"
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{where}: is not UTF-8 text.") from None
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
        found = [c.strip() for c in next(csv.reader([line], delimiter=delimiter))]
        return (
            found[:-1]
            if found and found[-1] == "" and line.rstrip(" ").endswith(delimiter)
            else found
        )

    head = cells(first)
    if all(_number(c) is not None for c in head):
        names = [str(k) for k in range(len(head))]
    else:
        names, rows = head, rows[1:]
    values = np.empty((len(rows), len(names)))
    for r, (line_number, line) in enumerate(rows):
        row = cells(line)
        if len(row) != len(names):
            raise ValueError(
                f"{where}, line {line_number}: {len(row)} values; expected {len(names)} as in the header."
            )
        for c, cell in enumerate(row):
            number = _number(cell)
            if number is None:
                raise ValueError(
                    f"{where}, line {line_number}, column {names[c]!r}: {cell!r}; expected a number, or an empty cell for a gap."
                )
            values[r, c] = number
    columns = {}
    for c, header in enumerate(names):
        name, unit = split_header(header)
        if name in columns:
            raise ValueError(f"{where}: two columns are called {name!r}; expected different names.")
        columns[name] = Column(values[:, c], unit)
    return columns


def _arrays(content: dict, units: dict) -> dict[str, Column]:
    """One-dimensional float columns; matrices give one column for each of theirs, called name.0, name.1, ..."""
    columns = {}
    for header, array in content.items():
        array = np.asarray(array)
        if array.dtype.kind not in "fiu" or array.size < 2:
            continue
        name, unit = split_header(header)
        unit = units.get(header, unit)
        array = np.squeeze(array).astype(float)
        if array.ndim == 1:
            columns[name] = Column(array, unit)
        elif array.ndim == 2:
            columns |= {f"{name}.{k}": Column(array[:, k], unit) for k in range(array.shape[1])}
    return columns


def _mat(path: Path) -> dict[str, Column]:
    from scipy.io import loadmat

    try:
        content = loadmat(path, simplify_cells=True)
    except NotImplementedError:
        raise ValueError(
            f"data file {str(path)!r}: is a MATLAB 7.3 file; save it with '-v7', or as CSV or netCDF."
        ) from None
    units = content.get("units", {})
    units = {k: str(v) for k, v in units.items()} if isinstance(units, dict) else {}
    return _arrays({k: v for k, v in content.items() if not k.startswith("__")}, units)


def _npz(path: Path) -> dict[str, Column]:
    with np.load(path, allow_pickle=False) as content:
        return _arrays({k: content[k] for k in content.files}, {})


def _netcdf(path: Path) -> dict[str, Column]:
    import xarray

    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        units = {
            str(k): str(v.attrs["units"]) for k, v in data.variables.items() if "units" in v.attrs
        }
        return _arrays({str(k): v.values for k, v in data.variables.items() if v.ndim == 1}, units)
