"""Generalised forces of joint hardware and motors, their energy and stiffness."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.mechanism.joints._bristles import Sides, friction_torque
from flexjax.mechanism.joints._coordinates import (
    CoordinateLayout,
    flexible,
    joint_coordinates,
    motor_side,
    to_v,
)
from flexjax.mechanism.joints._hardware import DryFriction, JointHardware
from flexjax.numerics.term import Instant
from flexjax.robot import Robot


class JointForces(eqx.Module):
    """Generalised forces (nv,): of springs and end stops; of motors; of dampers and friction."""

    elastic: Velocities
    driven: Velocities
    damped: Velocities

    @property
    def total(self) -> Velocities:
        return self.elastic + self.driven + self.damped


def _between(
    layout: CoordinateLayout, on_joint: Float[Array, " D"], on_motor: Float[Array, " D"]
) -> Velocities:
    """(nv,) from forces on joints (D,) and forces (D,) on motors of flexible joints."""
    if not layout.motors:
        return to_v(layout, on_joint)
    rest = jnp.zeros(layout.nv - layout.dofs, on_joint.dtype)
    sprung = jnp.where(flexible(layout), on_motor, 0.0)
    return jnp.concatenate([on_joint, rest]) + to_v(layout, sprung)


def spring_forces(layout: CoordinateLayout, hardware: JointHardware, q: Coordinates) -> Velocities:
    """(nv,) of joint springs and end stops."""
    if hardware.stops is None and not layout.motors:
        return jnp.zeros(layout.nv, q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    torque = hardware.spring.force(x - xm)
    return _between(layout, hardware.stop_force(x) - torque, torque)


def joint_forces(
    layout: CoordinateLayout,
    hardware: JointHardware,
    drive: Drive,
    robot: Robot,
    now: Instant,
    q: Coordinates,
    v: Velocities,
) -> JointForces:
    """Generalised forces at the coordinates q and the rates v."""
    x, xd = joint_coordinates(layout, q), v[: layout.dofs]
    xm, xmd = motor_side(layout, q, v)
    sides = (x, xm), (xd, xmd)
    rate = jnp.where(flexible(layout), xd - xmd, xd) if layout.motors else xd
    damper = hardware.damping * rate
    friction = lambda place: friction_torque(getattr(hardware, place), place, now.memory, *sides)
    if hardware.across is not None:
        damper = damper + friction("across")
    elastic = spring_forces(layout, hardware, q)
    driven = to_v(layout, drive.effort(robot, now.t, now.piece_time, xm, xmd, now.memory))
    stopped = 0.0 if hardware.stops is None else hardware.stop_slopes(x)[1] * xd
    if hardware.output is not None:
        stopped = stopped + friction("output")
    damped = _between(layout, -damper - stopped, damper)
    if hardware.motor is not None:
        damped = damped - to_v(layout, friction("motor"))
    return JointForces(elastic, driven, damped)


def joint_energy(layout: CoordinateLayout, hardware: JointHardware, q: Coordinates) -> Scalar:
    """Energy of joint springs and end stops."""
    if hardware.stops is None and not layout.motors:
        return jnp.zeros((), q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    springs = hardware.spring.energy(x - xm)
    return jnp.sum(springs + hardware.stop_energy(x))


def _resisting(
    friction: DryFriction, rate: Float[Array, " D"], cv: ScalarLike, cq: ScalarLike
) -> Float[Array, " D"]:
    """Slopes of the friction where it rises; a falling one would make the matrix indefinite.

    That of bristles is their stiffness, which they have while they stick.
    """
    slope = cv * jnp.maximum(friction.slope(rate), 0.0)
    return slope if friction.bristle is None else slope + cq * friction.bristle


def joint_sides(layout: CoordinateLayout, q: Coordinates, v: Velocities) -> tuple[Sides, Sides]:
    """Coordinates and rates of the joints, on the link's and on the motor's side."""
    xm, xmd = motor_side(layout, q, v)
    return (joint_coordinates(layout, q), xm), (v[: layout.dofs], xmd)


def joint_stiffness(
    layout: CoordinateLayout,
    hardware: JointHardware,
    drive: Drive,
    robot: Robot,
    now: Instant,
    q: Coordinates,
    v: Velocities,
    cv: ScalarLike,
    cq: ScalarLike,
) -> tuple[Float[Array, " D"], Float[Array, " D"], Float[Array, " D"]]:
    """-(cq dQ/dq + cv dQ/dv), (D,) each: of the joint, of the spring to its motor, of the motor."""
    sprung = flexible(layout)
    x = joint_coordinates(layout, q)
    xm, xmd = motor_side(layout, q, v)
    kp, kd = drive.slopes(robot, now.t, now.piece_time, xm, xmd, now.memory)
    controller = cq * kp + cv * kd
    if hardware.motor is not None:
        controller = controller + _resisting(hardware.motor, xmd, cv, cq)
    joint = jnp.where(sprung, 0.0, cv * hardware.damping + controller)
    if hardware.output is not None:
        joint = joint + _resisting(hardware.output, v[: layout.dofs], cv, cq)
    if hardware.stops is not None:
        stiffness, damping = hardware.stop_slopes(x)
        joint = joint + cq * stiffness + cv * damping
    along = cq * hardware.spring.slope(x - xm) + cv * hardware.damping
    if hardware.across is not None:
        along = along + _resisting(hardware.across, v[: layout.dofs] - xmd, cv, cq)
    spring = jnp.where(sprung, along, 0.0)
    return joint, spring, jnp.where(sprung, controller, 0.0)
