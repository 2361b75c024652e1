"""Static layout of a serial chain: the stages of each joint, and the places of coordinates."""

import dataclasses
import functools

import numpy as np

from flexjax.mechanism.joints._coordinates import CoordinateLayout, coordinate_layout
from flexjax.robot import Robot
from flexjax.robot._serial import chain_order

# Stages of each type of joint: (kind, degrees of freedom, entries in q), with massless bodies
# between them.
_STAGES = {
    "revolute": [("screw", 1, 1)],
    "prismatic": [("screw", 1, 1)],
    "sliding": [("screw", 1, 1)],
    "fixed": [("screw", 0, 0)],
    "universal": [("screw", 1, 1), ("screw", 1, 1)],
    "spherical": [("ball", 3, 4)],
    "free": [("screw", 3, 3), ("ball", 3, 4)],
}


@dataclasses.dataclass(frozen=True)
class Stage:
    """One step along the chain: a joint (or part of one) and the body after it."""

    joint: int  # index among the robot's joints
    part: int  # which part of that joint
    kind: str  # "screw" or "ball"
    dofs: int
    v_start: int
    q_start: int
    link: int  # index of the link that is this stage's body; -1 for a massless body
    hub: bool  # the hub of a prismatic joint sits on a body of its own, at the joint
    # The contact slides along an elastic link, whose shape gives its place and its screw.
    slides: bool = False
    # The elastic link runs through the joint: a weld; the coordinate is the link's last shape one.
    extends: bool = False
    # Welded to a node of the carrier's mesh; the coordinate is the carrier's last shape one.
    rides: bool = False
    # Index in v of the joint coordinate that is the last shape coordinate of this link; -1: none.
    border: int = -1


@dataclasses.dataclass(frozen=True)
class Layout:
    """Order of q: joints in robot order, motors of flexible joints, shape coordinates.

    v is alike, with three rates for the four numbers of a ball.
    """

    stages: tuple[Stage, ...]
    coordinates: CoordinateLayout
    planar: bool
    shapes: tuple[int, ...] = ()  # number of shape coordinates by stage; () for rigid links

    @property
    def nq(self) -> int:
        return self.coordinates.nq

    @property
    def nv(self) -> int:
        return self.coordinates.nv

    @property
    def dofs(self) -> int:
        return self.coordinates.dofs

    @property
    def shape_count(self) -> int:
        """Number to which the shape coordinates of every stage are padded."""
        return max(self.shapes, default=0)

    @property
    def q_shapes(self) -> slice:
        return slice(self.nq - sum(self.shapes), self.nq)

    @property
    def v_shapes(self) -> slice:
        return slice(self.nv - sum(self.shapes), self.nv)

    @property
    def slides(self) -> bool:
        return any(s.slides for s in self.stages)

    def slide_table(self) -> tuple[np.ndarray, np.ndarray]:
        """Index in q and v of the joint that slides along each stage's link (0: none), and mask."""
        following = [*self.stages[1:], None]
        index = np.array([s.q_start if s is not None and s.slides else 0 for s in following])
        return index, np.array([s is not None and s.slides for s in following])

    @property
    def extends(self) -> bool:
        """Whether a joint coordinate is a shape coordinate of any link."""
        return any(s.border >= 0 for s in self.stages)

    def shape_table(self) -> tuple[np.ndarray, np.ndarray]:
        """Index (stages, shape_count) of shape coordinates, behind the last where padded; and mask.

        If joint coordinates shape links, a last column refers to them, after the shape coordinates.
        """
        total = sum(self.shapes)
        index = np.full(
            (len(self.stages), self.shape_count), total + self.dofs if self.extends else total
        )
        start = 0
        for i, count in enumerate(self.shapes):
            index[i, :count] = np.arange(start, start + count)
            start += count
        if self.extends:
            last = [total + s.border if s.border >= 0 else total + self.dofs for s in self.stages]
            index = np.concatenate([index, np.array(last)[:, None]], axis=1)
            return index, index < total + self.dofs
        return index, index < total

    @property
    def width(self) -> int:
        """Number of columns to which every stage's screw is padded."""
        return 3 if any(s.dofs > 1 for s in self.stages) else 1

    def dof_table(self) -> tuple[np.ndarray, np.ndarray]:
        """Index into v (stages, width), behind the last entry where padded; and mask."""
        index = np.full((len(self.stages), self.width), self.nv)
        for i, s in enumerate(self.stages):
            index[i, : s.dofs] = np.arange(s.v_start, s.v_start + s.dofs)
        return index, index < self.nv

    def motor_table(self) -> np.ndarray:
        """Index into v of the motor of each stage, behind the last entry where there is none."""
        table, motors = np.full(len(self.stages), self.nv), self.coordinates.motors
        for i, s in enumerate(self.stages):
            if s.dofs == 1 and s.v_start in motors:
                table[i] = self.dofs + motors.index(s.v_start)
        return table


def serial_layout(
    robot: Robot,
    shapes: dict[str, int] | None = None,
    planar: bool | None = None,
    pinned: frozenset[str] = frozenset(),
) -> Layout:
    """The layout of a serial robot.

    Arguments:
        robot: a serial robot.
        shapes: number of shape coordinates by name of a flexible link.
        planar: twists of three components (default: if the robot is planar).
        pinned: links whose mesh has a node at the contact of the joint that slides along them.
    """
    stages, elastic = [], shapes or {}
    coordinates = coordinate_layout(robot, sum(elastic.values()))
    for i in chain_order(robot):
        joint = robot.joints[i]
        dv, dq = coordinates.v_start[i], coordinates.q_start[i]
        child = robot.link_index(joint.child)
        place = {"v_start": dv, "q_start": dq, "link": child, "hub": False}
        weld = functools.partial(Stage, i, 0, "screw", **place)
        if joint.telescopes and joint.child in elastic:
            stages.append(weld(dofs=0, extends=True, border=dv))
            continue
        if joint.type == "sliding" and joint.parent in pinned:
            stages[-1] = dataclasses.replace(stages[-1], border=dv)
            stages.append(weld(dofs=0, rides=True))
            continue
        if joint.type == "sliding" and joint.parent in elastic:
            stages.append(weld(dofs=1, slides=True))
            continue
        if joint.type == "prismatic" and (joint.hub is not None or joint.mass is not None):
            stages.append(Stage(i, -1, "screw", 0, dv, dq, -1, True))
        parts = _STAGES[joint.type]
        for part, (kind, dofs, numbers) in enumerate(parts):
            body = child if part == len(parts) - 1 else -1
            stages.append(Stage(i, part, kind, dofs, dv, dq, body, False))
            dv, dq = dv + dofs, dq + numbers
    counts = tuple(
        elastic.get(robot.links[s.link].name, 0) if s.link >= 0 else 0 for s in stages if shapes
    )
    planar = robot.planar if planar is None else planar
    return Layout(tuple(stages), coordinates, planar, counts)
