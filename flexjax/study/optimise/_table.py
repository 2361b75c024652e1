"""A move as a table for a motor controller."""

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from flexjax._files import write_whole
from flexjax.drive import Motion
from flexjax.robot._units import effort_unit
from flexjax.simulate import rest, simulate
from flexjax.study.optimise.problem import at_rest

if TYPE_CHECKING:
    from flexjax.study.optimise._result import Optimisation


def write_table(res: "Optimisation", path: str | os.PathLike[str], rate: float) -> Path:
    """Write the columns of :func:`columns` at a sampling rate [Hz] as CSV."""
    if not (np.isfinite(rate) and rate > 0):
        raise ValueError(f"rate: {rate}; expected a positive sampling rate in Hz, e.g. 1000.")
    if rate * res.duration < 1:
        raise ValueError(
            f"rate: {rate:g} Hz; expected at least one sample in the move of {res.duration:g} s, "
            f"{1 / res.duration:.4g} Hz or more."
        )
    found = columns(res, rate)

    def write(part: Path) -> None:
        with open(part, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(found)
            values = (column.tolist() for column in found.values())
            rows.writerows([repr(x) for x in row] for row in zip(*values, strict=True))

    return write_whole(Path(path), write)


def columns(res: "Optimisation", rate: float) -> dict[str, np.ndarray]:
    """Time, and coordinate, velocity, acceleration and effort of every joint.

    A joint with a Motion has those of its motor, from the signal itself. The last sample is the
    first at which the move has ended.
    """
    robot, slices = res.model.robot, res.model.robot.dof_slices()
    count = max(1, int(np.ceil(res.duration * rate - 1e-9)))
    ts = np.arange(count + 1) / rate
    start = at_rest(robot, res.drive, rest(res.model, res.start).state)
    traj = simulate(res.model, res.drive, ts, dt=res.dt, start=start, stations=2)
    found = {"time [s]": ts}
    for joint in robot.tree_joints:
        if not joint.dofs:
            continue
        at = slices[joint.name]
        motion = [np.asarray(x)[:, at] for x in (traj.q, traj.qd, traj.qdd)]
        driven = res.drive.joints.get(joint.name)
        if isinstance(driven, Motion):
            exact = jax.vmap(driven.signal.evaluate)(jnp.asarray(ts))
            motion = [np.asarray(x).reshape(len(ts), -1) for x in exact]
        force = effort_unit(joint)
        unit = "rad" if force == "N m" else "m"
        names = (
            [joint.name] if joint.dofs == 1 else [f"{joint.name}.{k}" for k in range(joint.dofs)]
        )
        for k, name in enumerate(names):
            for label, values, per in zip(
                ("position", "velocity", "acceleration"), motion, ("", "/s", "/s2"), strict=True
            ):
                found[f"{name}.{label} [{unit}{per}]"] = values[:, k]
            found[f"{name}.effort [{force}]"] = np.asarray(traj.effort)[:, at][:, k]
    return found
