"""Trajectories to and from files. A file appears whole or not at all."""

import os
from pathlib import Path

from flexjax._files import (
    COMPLETE,
    check_hdf5,
    check_zarr,
    read_whole,
    reading,
    write_whole,
)
from flexjax.io._dataset import from_dataset, to_dataset
from flexjax.simulate.trajectory import Trajectory

NETCDF = (".nc", ".nc4", ".netcdf", ".h5")
ZARR = (".zarr",)


def save_trajectory(traj: Trajectory, path: str | os.PathLike) -> Path:
    """Write a trajectory: netCDF-4 for ``.nc``, a zarr store for ``.zarr`` (``pip install 'flexjax[zarr]'``). :func:`load_trajectory` reads it back.

    >>> fx.save_trajectory(traj, "run.nc")  # doctest: +SKIP
    """
    path = Path(path)
    kind = _kind(path)
    dataset = to_dataset(traj)
    if kind == "zarr":
        _need_zarr()
        dataset.attrs[COMPLETE] = True  # a chunk that is missing later is a fault, and no zeros
        return write_whole(
            path,
            lambda part: dataset.to_zarr(
                part, consolidated=False, zarr_format=2, write_empty_chunks=True
            ),
        )
    plain = {
        str(name): {"_FillValue": None}
        for name, variable in dataset.variables.items()
        if variable.dtype.kind == "f"
    }
    return write_whole(
        path, lambda part: dataset.to_netcdf(part, engine="h5netcdf", encoding=plain)
    )


def load_trajectory(path: str | os.PathLike) -> Trajectory:
    """Read a trajectory that :func:`save_trajectory` wrote."""
    kind = _kind(Path(path))
    if kind == "zarr":
        _need_zarr()
    return read_whole(path, lambda path: _load(path, kind))


def _load(path: Path, kind: str) -> Trajectory:
    import xarray

    where = f"trajectory file {str(path)!r}"
    if not path.exists():
        raise FileNotFoundError(f"{where}: no such file.")
    (check_zarr if kind == "zarr" else check_hdf5)(path, where)
    options: dict = (
        {"engine": "zarr", "consolidated": False} if kind == "zarr" else {"engine": "h5netcdf"}
    )
    with (
        reading(where, "a file that fx.save_trajectory wrote", "Save the trajectory again."),
        xarray.open_dataset(path, decode_times=False, mask_and_scale=False, **options) as dataset,
    ):
        return from_dataset(dataset.load())


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in NETCDF:
        return "netcdf"
    if suffix in ZARR:
        return "zarr"
    raise ValueError(f"path: {str(path)!r}; expected a name that ends in .nc (netCDF) or .zarr.")


def _need_zarr() -> None:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError(
            "zarr stores need the package zarr: pip install 'flexjax[zarr]'."
        ) from None
