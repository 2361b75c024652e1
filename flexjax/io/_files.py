"""Trajectories to and from files. A file appears whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

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
        return write_whole(
            path, lambda part: dataset.to_zarr(part, consolidated=False, zarr_format=2)
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
    import xarray

    path = Path(path)
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(f"trajectory file {str(path)!r}: no such file.")
    options: dict = (
        {"engine": "zarr", "consolidated": False} if kind == "zarr" else {"engine": "h5netcdf"}
    )
    if kind == "zarr":
        _need_zarr()
    try:
        dataset = xarray.open_dataset(path, decode_times=False, mask_and_scale=False, **options)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"trajectory file {str(path)!r}: cannot be read ({error}); expected what fx.save_trajectory writes."
        ) from None
    with dataset:
        try:
            return from_dataset(dataset.load())
        except ValueError as error:
            raise ValueError(f"trajectory file {str(path)!r}: {error}") from None


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


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Call ``write`` on a temporary name beside ``path``, then rename: what was there before stays until the new one is complete."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"path: {str(path)!r}; the folder {str(path.parent)!r} does not exist. Make it first."
        )
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        part = Path(folder) / path.name
        write(part)
        if path.is_dir() and not path.is_symlink():
            if part.is_file() or not any(
                (path / name).exists() for name in (".zgroup", "zarr.json")
            ):
                raise FileExistsError(
                    f"path: {str(path)!r} is a folder with something else in it; choose another name."
                )
            shutil.move(path, Path(folder) / "before")  # removed with the temporary folder
        os.replace(part, path)
    return path
