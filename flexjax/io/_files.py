"""Write trajectories to files and read them; writes are atomic."""

import os
from pathlib import Path

from flexjax._files import (
    COMPLETE,
    ZARR,
    FileError,
    check_hdf5,
    check_trajectory_name,
    check_zarr,
    read_whole,
    reading,
    write_whole,
)
from flexjax.io._dataset import from_dataset, to_dataset
from flexjax.simulate.trajectory import Trajectory


def save_trajectory(traj: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a trajectory to a file, which :func:`load_trajectory` reads.

    Arguments:
        traj: one trajectory, not a batch.
        path: a name that ends in ``.nc`` (netCDF-4) or ``.zarr`` (a store; needs
            ``pip install 'flexjax[zarr]'``).

    Returns:
        The path.

    Raises:
        ImportError: the path ends in .zarr and zarr is not installed.

    >>> fx.save_trajectory(traj, "run.nc")  # doctest: +SKIP
    """
    path = Path(path)
    kind = _kind(path)
    dataset = to_dataset(traj)
    if kind == "zarr":
        _need_zarr()
        dataset.attrs[COMPLETE] = True  # a missing chunk is a fault instead of zeros
        options = {"consolidated": False, "zarr_format": 2, "write_empty_chunks": True}
        return write_whole(path, lambda part: dataset.to_zarr(part, **options))
    floats = [str(name) for name, v in dataset.variables.items() if v.dtype.kind == "f"]
    plain = dict.fromkeys(floats, {"_FillValue": None})
    return write_whole(
        path, lambda part: dataset.to_netcdf(part, engine="h5netcdf", encoding=plain)
    )


def load_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory from a file of :func:`save_trajectory`.

    Arguments:
        path: the file or store.

    Returns:
        The trajectory.

    Raises:
        FileNotFoundError: there is no such file.
        FileError: the file is damaged.

    >>> fx.load_trajectory("run.nc")  # doctest: +SKIP
    """
    kind = _kind(Path(path))
    if kind == "zarr":
        _need_zarr()
    return read_whole(path, lambda path: _load(path, kind))


def _load(path: Path, kind: str) -> Trajectory:
    import xarray

    where = f"trajectory file {str(path)!r}"
    if not path.exists():
        raise FileNotFoundError(f"{where}: no such file.")
    if not (path.is_dir() if kind == "zarr" else path.is_file()):
        expected = "a folder" if kind == "zarr" else "a file"
        raise FileError(f"{where}: expected {expected}. Save the trajectory again.")
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
    check_trajectory_name(path)
    return "zarr" if path.suffix.lower() in ZARR else "netcdf"


def _need_zarr() -> None:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError(
            "zarr stores need the package zarr: pip install 'flexjax[zarr]'."
        ) from None
