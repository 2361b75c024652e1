"""Joint coordinates of a mechanism: plain ones, quaternions of balls, motors of flexible joints.

The order of q: joints in robot order, motors of flexible joints, further coordinates of a
formulation. v has the same order, with three rates for the four numbers of a ball.
"""

from collections.abc import Sequence
from typing import Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Velocities
from flexjax.numerics.screw import se3


class Ball(Protocol):
    """Place of a quaternion in q, and of its angular velocity in v."""

    @property
    def q_start(self) -> int: ...

    @property
    def v_start(self) -> int: ...


class CoordinateLayout(Protocol):
    """Places of joint coordinates in q and v; ``motors`` are the dofs of flexible joints."""

    @property
    def nv(self) -> int: ...

    @property
    def dofs(self) -> int: ...

    @property
    def motors(self) -> tuple[int, ...]: ...

    @property
    def q_motors(self) -> slice: ...

    @property
    def v_motors(self) -> slice: ...

    @property
    def balls(self) -> Sequence[Ball]: ...

    def q_of_v(self) -> np.ndarray:
        """(nv,) position in q of every plain coordinate of v; -1 for the rates of balls."""
        ...


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
