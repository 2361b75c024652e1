"""Trajectories as datasets and files (netCDF, zarr, CSV, MAT); drive files; robots as URDF."""

from flexjax.io._dataset import from_dataset as from_dataset, to_dataset as to_dataset
from flexjax.io._drive import (
    drive_from_dict as drive_from_dict,
    load_drive as load_drive,
    load_run as load_run,
    load_start as load_start,
)
from flexjax.io._files import load_trajectory as load_trajectory, save_trajectory as save_trajectory
from flexjax.io._fmu import to_fmu as to_fmu
from flexjax.io._tables import to_csv as to_csv, to_mat as to_mat
from flexjax.io._urdf import save_urdf as save_urdf
