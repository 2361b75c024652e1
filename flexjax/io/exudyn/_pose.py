"""Where every link is at the start, and how fast: the tree from the ground outwards, in numpy."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

from flexjax._types import ScalarLike
from flexjax.drive import Drive
from flexjax.mechanism import Start, joint_start, unit
from flexjax.robot import Joint, Robot


@dataclasses.dataclass(frozen=True)
class Frame:
    """Position, rotation matrix, velocity and angular velocity in world axes."""

    place: np.ndarray
    turned: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def at(self, offset: np.ndarray) -> "Frame":
        """The frame that a body with this one has at a point given in its axes."""
        arm = self.turned @ offset
        return Frame(
            self.place + arm, self.turned, self.velocity + np.cross(self.spin, arm), self.spin
        )

    @property
    def euler_parameters(self) -> np.ndarray:
        x, y, z, w = Rotation.from_matrix(self.turned).as_quat()
        return np.array([w, x, y, z])

    @property
    def euler_rates(self) -> np.ndarray:
        w, x, y, z = self.euler_parameters
        rows = np.array([[-x, -y, -z], [w, z, -y], [-z, w, x], [y, -x, w]])
        return 0.5 * rows @ self.spin


def joint_axis(joint: Joint) -> np.ndarray:
    """Unit vector along the axis of a revolute or prismatic joint, in child axes."""
    default = [0.0, 0.0, 1.0] if joint.type == "revolute" else [1.0, 0.0, 0.0]
    return np.asarray(unit(joint.axis, default, jnp.zeros(())))


def aligned(axis: np.ndarray, along: int) -> np.ndarray:
    """A rotation that takes a coordinate axis (0: x, 2: z) into ``axis``."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    second = np.cross(axis, other)
    second /= np.linalg.norm(second)
    third = np.cross(axis, second)
    columns = [axis, second, third]
    return np.stack(columns if along == 0 else [second, third, axis], axis=1)


def mounting(joint: Joint) -> np.ndarray:
    """Rotation from the axes of the parent's tip section to the joint's."""
    vector = np.zeros(3) if joint.rotation is None else np.array(joint.rotation)
    return Rotation.from_rotvec(vector).as_matrix()


def shift(joint: Joint) -> np.ndarray:
    return np.zeros(3) if joint.offset is None else np.asarray(joint.offset, float)


def start_frames(
    robot: Robot, drive: Drive, start: Start, t0: ScalarLike
) -> tuple[dict[str, Frame], np.ndarray]:
    """The frames of ground and links at their bases, links undeformed, and the coordinates."""
    q, qd, _, _ = (np.asarray(x) for x in joint_start(robot, drive, t0, start))
    ground = Frame(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3))
    if drive.base is not None:
        pose, twist, _ = drive.base.motion(t0)
        R, twist = np.asarray(pose.rotation), np.asarray(twist)
        ground = Frame(np.asarray(pose.position), R, R @ twist[:3], R @ twist[3:])
    frames = {"ground": ground}
    lengths = {link.name: float(link.length) for link in robot.links} | {"ground": 0.0}
    slices, waiting = robot.dof_slices(), list(robot.tree_joints)
    while waiting:
        joint = next(j for j in waiting if j.parent in frames)
        waiting.remove(joint)
        x, rate = q[slices[joint.name]], qd[slices[joint.name]]
        tip = np.array([lengths[joint.parent], 0.0, 0.0])
        frame = frames[joint.parent].at(tip + shift(joint))
        frame = dataclasses.replace(frame, turned=frame.turned @ mounting(joint))
        if joint.type == "prismatic":
            along = joint_axis(joint)
            frame = frame.at(along * x[0])
            speed = frame.velocity + frame.turned @ along * rate[0]
            frame = dataclasses.replace(frame, velocity=speed)
        elif joint.type == "revolute":
            axis = joint_axis(joint)
            turned = frame.turned @ Rotation.from_rotvec(axis * x[0]).as_matrix()
            spin = frame.spin + turned @ axis * rate[0]
            frame = dataclasses.replace(frame, turned=turned, spin=spin)
        frames[joint.child] = frame
    return frames, q
