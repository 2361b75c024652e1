"""Files: atomic writes, and checks before a foreign file is read. Imports no jax."""

from flexjax._files._error import FileError as FileError, reading as reading
from flexjax._files._exists import (
    NETCDF as NETCDF,
    TEXT as TEXT,
    ZARR as ZARR,
    check_data_file as check_data_file,
    check_trajectory_file as check_trajectory_file,
    check_trajectory_name as check_trajectory_name,
)
from flexjax._files._hdf5 import check_hdf5 as check_hdf5
from flexjax._files._limit import check_declared as check_declared
from flexjax._files._mat import read_mat as read_mat
from flexjax._files._npz import read_npz as read_npz
from flexjax._files._read_whole import read_whole as read_whole
from flexjax._files._toml import (
    parse_toml as parse_toml,
    read_bounded as read_bounded,
    read_toml as read_toml,
)
from flexjax._files._write import recover as recover, write_whole as write_whole
from flexjax._files._zarr import COMPLETE as COMPLETE, check_zarr as check_zarr
