"""Joint coordinates of a mechanism: plain ones, quaternions of balls, motors of flexible joints.

The order of q: joints in robot order, motors of flexible joints, further coordinates of a
formulation. v has the same order, with three rates for the four numbers of a ball.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from flexjax._types import Coordinates, Velocities
from flexjax.numerics.screw import se3
from flexjax.robot import Robot

# Where the three rates of a ball begin among those of its joint.
BALL_COLUMN = {"spherical": 0, "free": 3}


class Ball(NamedTuple):
    """Place of a quaternion in q, and of its angular velocity in v."""

    joint: int  # index among the robot's joints
    q_start: int
    v_start: int


@dataclasses.dataclass(frozen=True)
class CoordinateLayout:
    """Places of joint coordinates in q and v."""

    q_start: tuple[int, ...]  # of each joint of the robot; -1: it closes a loop
    v_start: tuple[int, ...]
    nq: int
    nv: int
    dofs: int
    motors: tuple[int, ...]  # dofs of the flexible joints, in robot order
    balls: tuple[Ball, ...]

    @property
    def q_motors(self) -> slice:
        start = self.dofs + len(self.balls)
        return slice(start, start + len(self.motors))

    @property
    def v_motors(self) -> slice:
        return slice(self.dofs, self.dofs + len(self.motors))

    def q_of_v(self) -> Int[np.ndarray, " nv"]:
        """Index in q of every plain coordinate of v; -1 for the rates of balls."""
        table = np.arange(self.nv)
        for ball in self.balls:
            table[ball.v_start + 3 :] += 1
        for ball in self.balls:
            table[ball.v_start : ball.v_start + 3] = -1
        return table


def coordinate_layout(robot: Robot, more: int = 0) -> CoordinateLayout:
    """Joints in robot order, motors of flexible joints, ``more`` coordinates of a formulation."""
    q_start, v_start, motors, balls, q, v = [], [], [], [], 0, 0
    for i, joint in enumerate(robot.joints):
        q_start.append(-1 if joint.loop else q)
        v_start.append(-1 if joint.loop else v)
        if joint.loop:
            continue
        if joint.flexible:
            motors.append(v)
        if joint.type in BALL_COLUMN:
            column = BALL_COLUMN[joint.type]
            balls.append(Ball(i, q + column, v + column))
        v += joint.dofs
        q = v + len(balls)
    more += len(motors)
    starts = tuple(q_start), tuple(v_start)
    return CoordinateLayout(*starts, q + more, v + more, v, tuple(motors), tuple(balls))


def joint_configuration(
    layout: CoordinateLayout, x: Float[Array, " D"], motors: Float[Array, " D"]
) -> Coordinates:
    """q at joint coordinates ``x`` and motor-side coordinates ``motors``; zero behind these."""
    parts, at = [], 0
    for ball in layout.balls:
        end = ball.v_start + 3
        parts += [x[at : ball.v_start], se3.quat_exp(x[ball.v_start : end])]
        at = end
    parts.append(x[at:])
    if layout.motors:
        parts.append(motors[np.array(layout.motors, int)])
    behind = layout.nq - layout.q_motors.stop
    return jnp.concatenate([*parts, jnp.zeros(behind, x.dtype)])


def move(layout: CoordinateLayout, q: Coordinates, dx: Velocities) -> Coordinates:
    """``q`` displaced by ``dx`` (nv,)."""
    table = layout.q_of_v()
    if not layout.balls:
        return q + dx
    plain = table >= 0
    q1 = q.at[table[plain]].add(dx[plain])
    for s in layout.balls:
        own = slice(s.q_start, s.q_start + 4)
        q1 = q1.at[own].set(se3.quat_retract(q[own], dx[s.v_start : s.v_start + 3]))
    return q1


def ambient_rate(layout: CoordinateLayout, q: Coordinates, v: Velocities) -> Coordinates:
    """Time derivative of q at the rates v."""
    table = layout.q_of_v()
    plain = table >= 0
    rate = jnp.zeros_like(q).at[table[plain]].set(v[plain])
    for s in layout.balls:
        own = slice(s.q_start, s.q_start + 4)
        spin = jnp.concatenate([jnp.zeros(1, v.dtype), v[s.v_start : s.v_start + 3]])
        rate = rate.at[own].set(0.5 * se3.quat_multiply(q[own], spin))
    return rate


def locked(layout: CoordinateLayout, prescribed: np.ndarray) -> np.ndarray:
    """Static mask (nv,) of what a Motion fixes: the motor of a flexible joint, or the joint."""
    mask = np.zeros(layout.nv, bool)
    mask[: layout.dofs] = prescribed
    for k, dof in enumerate(layout.motors):
        mask[layout.dofs + k], mask[dof] = prescribed[dof], False
    return mask


def to_v(layout: CoordinateLayout, per_dof: Float[Array, " D"]) -> Velocities:
    """Motor-side values (D,) as (nv,); those of flexible joints at their motors."""
    if not layout.motors:
        return jnp.pad(per_dof, (0, layout.nv - layout.dofs))
    motors = np.array(layout.motors, int)
    on_joint = jnp.zeros(layout.nv, per_dof.dtype).at[: layout.dofs].set(per_dof)
    return on_joint.at[motors].set(0.0).at[layout.v_motors].set(per_dof[motors])


def joint_coordinates(layout: CoordinateLayout, q: Coordinates) -> Float[Array, " D"]:
    """Link-side joint coordinates (D,): rotation vectors for balls."""
    table = layout.q_of_v()[: layout.dofs]
    if not layout.balls:
        return q[: layout.dofs]
    out = q[np.maximum(table, 0)]
    for s in layout.balls:
        out = out.at[s.v_start : s.v_start + 3].set(se3.quat_log(q[s.q_start : s.q_start + 4]))
    return out


def motor_side(
    layout: CoordinateLayout, q: Coordinates, v: Velocities
) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Motor-side joint coordinates and rates (D,)."""
    x, xd = joint_coordinates(layout, q), v[: layout.dofs]
    if not layout.motors:
        return x, xd
    motors = np.array(layout.motors, int)
    return x.at[motors].set(q[layout.q_motors]), xd.at[motors].set(v[layout.v_motors])


def flexible(layout: CoordinateLayout) -> np.ndarray:
    """Static mask (D,) of the coordinates of flexible joints."""
    mask = np.zeros(layout.dofs, bool)
    mask[list(layout.motors)] = True
    return mask
