"""The exception of a failed run: status, time and place."""

import numpy as np
from jax import lax

from flexjax._results import SimulationError, Status
from flexjax._types import is_traced
from flexjax.drive import Drive
from flexjax.robot import robot_faults
from flexjax.simulate.trajectory import Trajectory


def raise_failure(traj: Trajectory, drive: Drive) -> None:
    if is_traced(traj.status) or traj.status.ndim or traj.ok:
        return
    raise failure_of(traj, drive)


def failure_of(traj: Trajectory, drive: Drive) -> SimulationError:
    """Why a run under ``drive`` failed, with time and place."""
    status, where = Status(int(traj.status)), int(traj.where)
    if status == Status.invalid_parameter:
        # Outside jit, parameters that are differentiated have values too.
        robot, drive = lax.stop_gradient((traj.robot, drive))
        faults = [*robot_faults(robot), *drive.value_faults()]
        return SimulationError(status, float(traj.t_fail), None, " ".join(faults))
    place = f"joint {traj.robot.joints[where].name!r}" if where >= 0 else _busiest(traj)
    return SimulationError(status, float(traj.t_fail), place)


def _busiest(traj: Trajectory) -> str | None:
    """Where to look if a whole step failed: the fastest joint and the most deflected link at the
    last good output."""
    robot, traj = traj.robot, traj.whole()
    good = np.flatnonzero(np.isfinite(np.asarray(traj.tip)).all(axis=1))
    if not len(good):
        return None
    k, parts = good[-1], []
    if robot.dofs:
        rates = np.abs(np.asarray(traj.qd[k]))
        joint = next(
            j
            for j, s in zip(robot.tree_joints, robot.dof_slices().values(), strict=True)
            if np.argmax(rates) in range(*s.indices(robot.dofs))
        )
        parts.append(
            f"joint {joint.name!r} (the fastest, {np.max(rates):.3g} "
            f"{'m' if joint.type in ('prismatic', 'sliding') else 'rad'}/s)"
        )
    bent = np.max(np.abs(np.asarray(traj.deflection[k])), axis=(1, 2)) / np.array(
        [float(link.length) for link in robot.links]
    )
    if np.max(bent) > 0:
        link = robot.links[int(np.argmax(bent))].name
        parts.append(f"link {link!r} (the most deflected, {np.max(bent):.2g} of its length)")
    return (
        f"{' or '.join(parts)} at the last output, t = {float(traj.ts[k]):.6g} s" if parts else None
    )
