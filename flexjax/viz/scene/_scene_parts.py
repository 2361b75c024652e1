"""What the 3D page draws beside the links: joints, their seats on the ground, loads, curves."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from flexjax.drive import Drive
from flexjax.io._dataset import dof_names, dof_units
from flexjax.robot import GROUND, Joint, Robot
from flexjax.robot._home import Pose, axis_of, motion_pose
from flexjax.robot._units import sensor_unit
from flexjax.simulate.trajectory import Trajectory, measure
from flexjax.viz.scene._encode import encode

CURVES = 1000  # samples of a curve: more than a screen shows


def joint_parts(robot: Robot) -> list[dict[str, Any]]:
    """How each joint is drawn: its kind, the end of the child that it is at, and its axes there."""
    index = {link.name: i for i, link in enumerate(robot.links)}
    return [
        {
            "name": joint.name,
            "kind": "telescope" if joint.telescopes else joint.type,
            "link": index[joint.child],
            "end": joint.child_at if joint.loop else "base",
            "axis": _axis(joint).round(9).tolist(),
            "axis2": _axis2(joint).round(9).tolist(),
            "ground": joint.parent == GROUND,
        }
        for joint in robot.joints
    ]


def _axis(joint: Joint) -> np.ndarray:
    slides = joint.type in ("prismatic", "sliding")
    return axis_of(joint, (1.0, 0.0, 0.0) if slides else (0.0, 0.0, 1.0))


def _axis2(joint: Joint) -> np.ndarray:
    axis = np.array((0.0, 1.0, 0.0) if joint.axis2 is None else joint.axis2, float)
    return axis / np.linalg.norm(axis)


def joint_motion(traj: Trajectory, pick: np.ndarray) -> list[dict[str, str | None]]:
    """For each joint at the picked outputs: where on the child it is, and its seat on the ground.

    A telescope moves along its child. A seat (n, 7) is the frame that the ground carries; it moves
    with the base, and is given once where it stays.
    """
    robot, q = traj.robot, np.asarray(traj.q, float)[pick]
    base = np.asarray(traj.frames, float)[pick][:, :, 0]
    slices = robot.dof_slices()
    found = []
    for joint in robot.joints:
        at = seat = None
        if not joint.loop:
            i = robot.link_index(joint.child)
            coordinates, child = q[:, slices[joint.name]], robot.links[i]
            if joint.telescopes:
                at = encode(1 - coordinates[:, 0] / float(child.length))
            if joint.parent == GROUND and joint.type != "free":
                seat = encode(_seats(joint, coordinates, base[:, i], child))
        found.append({"at": at, "seat": seat})
    return found


def _seats(joint: Joint, q: np.ndarray, frames: np.ndarray, child: Any) -> np.ndarray:
    """The frame before the joint's motion (n, 7); one row if it does not move."""
    found = np.empty_like(frames)
    for k, frame in enumerate(frames):
        if not np.linalg.norm(frame[3:]) > 0:  # no orientation, as after a failure
            found[k] = frame
            continue
        here = Pose(frame[:3], Rotation.from_quat(frame[[4, 5, 6, 3]]))
        seat = here @ motion_pose(joint, q[k], child).inverse()
        x, y, z, w = seat.rotation.as_quat()
        found[k] = [*seat.position, w, x, y, z]
    still = np.allclose(np.abs(found), np.abs(found[0]), atol=1e-6)
    return found[:1] if still else found


def load_parts(traj: Trajectory, drive: Drive | None, pick: np.ndarray) -> list[dict[str, Any]]:
    """The loads of a drive at the picked outputs, as wrenches (n, 6)."""
    times = np.asarray(traj.ts)[pick]
    return [
        {
            "link": traj.robot.link_index(load.link),
            "s": float(load.s),
            "follows": load.frame == "section",
            "wrench": encode(np.asarray(load.wrench(times), float)),
        }
        for load in (() if drive is None else drive.loads)
    ]


def payload_parts(robot: Robot) -> list[dict[str, Any]]:
    """Where payloads are and how large they are drawn: as balls of one density."""
    masses = [float(p.mass) for p in robot.payloads]
    return [
        {
            "link": robot.link_index(p.link),
            "s": float(p.s),
            "offset": [0.0] * 3 if p.offset is None else np.array(p.offset, float).tolist(),
            "size": round(float(np.cbrt(max(mass, 0.0) / (max(masses) or 1.0))), 4),
        }
        for p, mass in zip(robot.payloads, masses, strict=True)
    ]


def up_and_floor(robot: Robot) -> tuple[list[float], list[float]]:
    """The direction that the page shows upwards, and the normal of the floor.

    A planar arm without gravity in its plane is seen from above: the floor lies behind it.
    """
    gravity = np.array(robot.gravity, float)
    if robot.planar:
        gravity[2] = 0.0
    size = float(np.linalg.norm(gravity))
    if size > 0:
        up = (-gravity / size).round(9).tolist()
        return up, up
    z = [0.0, 0.0, 1.0]
    return ([0.0, 1.0, 0.0], z) if robot.planar else (z, z)


def curves(traj: Trajectory, good: np.ndarray) -> dict[str, Any]:
    """Curves over time below the scene: groups of channels with units, at most ``CURVES`` times."""
    pick = good[:: max(1, -(-len(good) // CURVES))]
    pick = np.unique(np.append(pick, good[-1]))
    rows = _channels(traj)
    values = np.stack([np.asarray(row[3], float)[pick] for row in rows])
    return {
        "channels": [{"group": g, "name": n, "unit": u} for g, n, u, _ in rows],
        "times": encode(np.asarray(traj.ts)[pick]),
        "values": encode(values),
    }


def _channels(traj: Trajectory) -> list[tuple[str, str, str, np.ndarray]]:
    """Group, name, unit and values (T,) of every curve."""
    robot = traj.robot
    names, units = dof_names(robot), dof_units(robot)
    q, qd, effort, tip = (np.asarray(x) for x in (traj.q, traj.qd, traj.effort, traj.tip))
    of_joints = [(k, name, unit) for k, (name, unit) in enumerate(zip(names, units, strict=True))]
    rows = [("joints", name, unit, q[:, k]) for k, name, unit in of_joints]
    rows += [("joint rates", name, f"{unit}/s", qd[:, k]) for k, name, unit in of_joints]
    rows += [
        ("efforts", name, "N m" if unit == "rad" else "N", effort[:, k])
        for k, name, unit in of_joints
    ]
    axes = "xy" if robot.planar else "xyz"
    rows += [("tip", axis, "m", tip[:, k]) for k, axis in enumerate(axes)]
    deflection = np.asarray(traj.deflection)[:, :, -1]
    for i, link in enumerate(robot.links):
        if link.elastic:
            rows += [
                ("deflections", f"{link.name} {axis}", "mm", 1e3 * deflection[:, i, k])
                for k, axis in enumerate(axes)
                if k
            ]
    for name in ("kinetic", "elastic", "gravity"):
        rows.append(("energies", name, "J", np.asarray(getattr(traj.energy, name))))
    if robot.sensors:
        readings = measure(traj)
        rows += [
            ("sensors", sensor.name, sensor_unit(sensor, robot), np.asarray(readings[sensor.name]))
            for sensor in robot.sensors
        ]
    return rows
