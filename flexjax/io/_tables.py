"""Sensor channels as CSV and MAT files, units in the headers."""

import csv
import os
import re
from pathlib import Path

import numpy as np
from jaxtyping import PRNGKeyArray

from flexjax._files import write_whole
from flexjax.io._dataset import check_single
from flexjax.robot import sensor_unit
from flexjax.simulate.trajectory import Trajectory, measure


def channels(
    traj: Trajectory, action: str, *, key: PRNGKeyArray | None = None
) -> list[tuple[str, str, np.ndarray]]:
    """(name, unit, values) of the time and of every sensor."""
    check_single(traj, action)
    if not traj.robot.sensors:
        raise ValueError(
            f"{action}: the robot {traj.robot.name!r} has no sensors; add [[sensors]] to it, or "
            "save everything with fx.save_trajectory."
        )
    readings = measure(traj, key=key)
    units = {s.name: sensor_unit(s, traj.robot) for s in traj.robot.sensors}
    return [
        ("time", "s", np.asarray(traj.ts)),
        *((name, units[name], np.asarray(x)) for name, x in readings.items()),
    ]


def to_csv(
    traj: Trajectory, path: str | os.PathLike[str], *, key: PRNGKeyArray | None = None
) -> Path:
    """Write the sensor readings as CSV, with a header such as ``time [s],shoulder-angle [rad]``.

    Arguments:
        traj: one trajectory, not a batch.
        path: the file.
        key: adds the noise of the sensors.

    Returns:
        The path.

    Raises:
        ValueError: the argument is not a trajectory.

    >>> fx.to_csv(traj, "run.csv")  # doctest: +SKIP
    """
    columns = channels(traj, "to_csv", key=key)

    def write(part: Path) -> None:
        with open(part, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow([f"{name} [{unit}]" for name, unit, _ in columns])
            values = (values.tolist() for _, _, values in columns)
            rows.writerows([repr(x) for x in row] for row in zip(*values, strict=True))

    return write_whole(Path(path), write)


def to_mat(
    traj: Trajectory, path: str | os.PathLike[str], *, key: PRNGKeyArray | None = None
) -> Path:
    """Write the sensor readings as a MATLAB file.

    Arguments:
        traj: one trajectory, not a batch.
        path: the file. It has a column vector per sensor, under a valid MATLAB name, and a
            struct ``units``.
        key: adds the noise of the sensors.

    Returns:
        The path.

    Raises:
        ValueError: the argument is not a trajectory.

    >>> fx.to_mat(traj, "run.mat")  # doctest: +SKIP
    """
    from scipy.io import savemat

    content, units = {}, {}
    for name, unit, values in channels(traj, "to_mat", key=key):
        word = re.sub(r"\W", "_", name, flags=re.ASCII)
        word = (word if word[:1].isalpha() else f"x{word}")[:31]
        while word in content or word == "units":
            word = word[:29] + "_2" if not word.endswith("_2") else word[:-2] + "_3"
        content[word], units[word] = values[:, None], unit
    return write_whole(Path(path), lambda part: savemat(part, {**content, "units": units}))
