"""The robot at home in space, computed with numpy: for pictures and other file formats.

Formulations have their own kinematics, which can be differentiated; nothing here is used by them.
"""

from typing import NamedTuple

import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from flexjax._html import curves
from flexjax._types import is_traced
from flexjax.robot._robot import GROUND, Robot
from flexjax.robot.parts._joint import Joint
from flexjax.robot.parts._link import Link


class Pose(NamedTuple):
    """Position [m] and rotation of a frame."""

    position: np.ndarray
    rotation: Rotation

    def __matmul__(self, other: "Pose") -> "Pose":  # the pose of a frame given in this one
        return Pose(self.apply(other.position), self.rotation * other.rotation)

    def apply(self, point: np.ndarray) -> np.ndarray:
        """World position of points in this frame."""
        return self.position + self.rotation.apply(point)

    def inverse(self) -> "Pose":
        back = self.rotation.inv()
        return Pose(-back.apply(self.position), back)


IDENTITY = Pose(np.zeros(3), Rotation.identity())


def section_pose(link: Link, s: float) -> Pose:
    """The unstressed section at the station ``s`` of a link, in the axes of its base."""
    length = s * float(link.length)
    if link.curvature is None:
        return Pose(np.array([length, 0.0, 0.0]), Rotation.identity())
    x, y, z = np.array(link.curvature, float)
    twist = np.array([[0, -z, y, 1], [z, 0, -x, 0], [-y, x, 0, 0], [0, 0, 0, 0]], float)
    found = expm(length * twist)
    return Pose(found[:3, 3], Rotation.from_matrix(found[:3, :3]))


def joint_pose(joint: Joint, parent: Link | None, child: Link) -> Pose:
    """The base of the child in the frame of its parent's base, at the joint's home."""
    home = np.zeros(joint.dofs) if joint.home is None else np.array(joint.home, float).reshape(-1)
    if home.size < joint.dofs:
        home = np.broadcast_to(home, (joint.dofs,))
    start = IDENTITY if parent is None else section_pose(parent, 1.0)
    if joint.type == "sliding" and parent is not None:
        start = section_pose(parent, float(home[0]) / float(parent.length))
    return start @ placement(joint) @ motion_pose(joint, home, child)


def placement(joint: Joint) -> Pose:
    """The joint in the axes of the parent's tip section, or of the contact."""
    offset = np.zeros(3) if joint.offset is None else np.array(joint.offset, float)
    turned = np.zeros(3) if joint.rotation is None else np.array(joint.rotation, float)
    return Pose(offset, Rotation.from_rotvec(turned))


def axis_of(joint: Joint, default: tuple[float, float, float]) -> np.ndarray:
    """The unit vector of a joint's axis, in child axes."""
    axis = np.array(default if joint.axis is None else joint.axis, float)
    return axis / np.linalg.norm(axis)


def motion_pose(joint: Joint, q: np.ndarray, child: Link) -> Pose:
    """The base of the child relative to the joint, at joint coordinates (d,)."""
    turn = Rotation.from_rotvec
    zero = np.zeros(3)
    if joint.type == "revolute":
        return Pose(zero, turn(q[0] * axis_of(joint, (0.0, 0.0, 1.0))))
    if joint.telescopes:  # q is the free length ahead of the joint
        return Pose(np.array([q[0] - float(child.length), 0.0, 0.0]), Rotation.identity())
    if joint.type == "prismatic":
        return Pose(q[0] * axis_of(joint, (1.0, 0.0, 0.0)), Rotation.identity())
    if joint.type == "universal":
        second = np.array((0.0, 1.0, 0.0) if joint.axis2 is None else joint.axis2, float)
        second = second / np.linalg.norm(second)
        return Pose(zero, turn(q[0] * axis_of(joint, (0.0, 0.0, 1.0))) * turn(q[1] * second))
    if joint.type == "spherical":
        return Pose(zero, turn(q))
    if joint.type == "free":
        return Pose(q[:3], turn(q[3:]))
    return IDENTITY


def home_poses(robot: Robot) -> dict[str, Pose]:
    """World pose of the base of every link at home."""
    links = {link.name: link for link in robot.links}
    found = {GROUND: IDENTITY}
    waiting = list(robot.tree_joints)
    while waiting:
        joint = next(j for j in waiting if j.parent in found)
        waiting.remove(joint)
        pose = joint_pose(joint, links.get(joint.parent), links[joint.child])
        found[joint.child] = found[joint.parent] @ pose
    del found[GROUND]
    return found


def home_lines(robot: Robot, sections: int = 9) -> dict[str, np.ndarray]:
    """World positions (n, 3) along the axis of every link at home."""
    poses = home_poses(robot)
    return {
        link.name: np.array(
            [
                poses[link.name].apply(section_pose(link, s).position)
                for s in np.linspace(0, 1, sections if link.curvature is not None else 2)
            ]
        )
        for link in robot.links
    }


def picture(robot: Robot) -> str:
    """The arm at home as SVG: in x and y, or in x and z where y is the shorter extent."""
    if any(is_traced(x) or jnp.ndim(x) > 1 for x in jtu.tree_leaves(robot)):
        return ""
    lines = home_lines(robot)
    points = np.concatenate(list(lines.values()))
    extent = np.ptp(points, axis=0)
    up = 1 if robot.planar or extent[1] >= extent[2] else 2
    paths = {name: line[:, [0, up]] for name, line in lines.items()}
    return curves((), paths, "x [m]", f"{'xyz'[up]} [m]", equal=True)
