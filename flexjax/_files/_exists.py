"""Whether a file to read is there, and of a known format."""

import os
from pathlib import Path

from flexjax._files._write import recover

TEXT = (".csv", ".txt", ".dat", ".tsv")
NETCDF = (".nc", ".nc4", ".netcdf", ".h5")
DATA = (*TEXT, ".mat", ".npz", *NETCDF)
ZARR = (".zarr",)


def check_data_file(path: str | os.PathLike[str]) -> None:
    """Refuse a data file of an unknown format or that does not exist."""
    path = Path(path)
    if path.suffix.lower() not in DATA:
        raise ValueError(
            f"data file {str(path)!r}: expected a name that ends in one of {' '.join(DATA)}."
        )
    if not path.is_file():
        raise FileNotFoundError(f"data file {str(path)!r}: no such file.")


def check_trajectory_name(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a trajectory whose suffix is not that of a format."""
    if Path(path).suffix.lower() not in (*NETCDF, *ZARR):
        raise ValueError(
            f"path: {str(path)!r}; expected a name that ends in .nc (netCDF) or .zarr."
        )


def check_trajectory_file(path: str | os.PathLike[str]) -> None:
    """Refuse a trajectory of an unknown format or that does not exist."""
    check_trajectory_name(path)
    recover(Path(path))  # a write that was interrupted may have left it beside its place
    if not Path(path).exists():
        raise FileNotFoundError(f"trajectory file {str(path)!r}: no such file.")
