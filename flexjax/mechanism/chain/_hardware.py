"""Generalised forces of the joints of a chain, their energy and stiffness."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Scalar, ScalarLike, Velocities
from flexjax.mechanism.chain._coordinates import joint_coordinates, motor_side, to_v
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._parameters import Parameters
from flexjax.numerics.term import Instant

if TYPE_CHECKING:
    from flexjax.mechanism.chain._motion import AbstractMovingChain


def _flexible(layout: Layout) -> np.ndarray:
    mask = np.zeros(layout.dofs, bool)
    mask[list(layout.motors)] = True
    return mask


def _between(
    layout: Layout, on_joint: Float[Array, " D"], on_motor: Float[Array, " D"]
) -> Velocities:
    """(nv,) from forces on joints (D,) and forces (D,) on motors of flexible joints."""
    if not layout.motors:
        return to_v(layout, on_joint)
    rest = jnp.zeros(layout.nv - layout.dofs, on_joint.dtype)
    flexible = jnp.where(_flexible(layout), on_motor, 0.0)
    return jnp.concatenate([on_joint, rest]) + to_v(layout, flexible)


def spring_forces(layout: Layout, parameters: Parameters, q: Coordinates) -> Velocities:
    """(nv,) of joint springs and end stops."""
    hardware = parameters.hardware
    if hardware.stops is None and not layout.motors:
        return jnp.zeros(layout.nv, q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    stretch = hardware.stiffness * (x - xm)
    return _between(layout, hardware.stop_force(x) - stretch, stretch)


def joint_forces(
    chain: "AbstractMovingChain", now: Instant, q: Coordinates, v: Velocities
) -> tuple[Velocities, Velocities, Velocities]:
    """Generalised forces (nv,) of springs and stops; of motors; of dampers, also of stops."""
    layout, parameters, hardware = chain.layout, chain.parameters, chain.parameters.hardware
    x, xd = joint_coordinates(layout, q), v[: layout.dofs]
    xm, xmd = motor_side(layout, q, v)
    rate = jnp.where(_flexible(layout), xd - xmd, xd) if layout.motors else xd
    damper = hardware.damping * rate
    elastic = spring_forces(layout, parameters, q)
    driven = to_v(
        layout, chain.drive.effort(chain.robot, now.t, now.piece_time, xm, xmd, now.memory)
    )
    stopped = 0.0 if hardware.stops is None else hardware.stop_slopes(x)[1] * xd
    damped = _between(layout, -damper - stopped, damper)
    if hardware.coulomb is not None:
        damped = damped - to_v(layout, hardware.friction(xmd))
    return elastic, driven, damped


def joint_energy(layout: Layout, parameters: Parameters, q: Coordinates) -> Scalar:
    """Energy of joint springs and end stops."""
    hardware = parameters.hardware
    if hardware.stops is None and not layout.motors:
        return jnp.zeros((), q.dtype)
    x = joint_coordinates(layout, q)
    xm, _ = motor_side(layout, q, jnp.zeros(layout.nv, q.dtype))
    springs = 0.5 * hardware.stiffness * (x - xm) ** 2
    return jnp.sum(springs + hardware.stop_energy(x))


def joint_stiffness(
    chain: "AbstractMovingChain",
    now: Instant,
    q: Coordinates,
    v: Velocities,
    cv: ScalarLike,
    cq: ScalarLike,
) -> tuple[Float[Array, " D"], Float[Array, " D"], Float[Array, " D"]]:
    """-(cq dQ/dq + cv dQ/dv), (D,) each: of the joint, of the spring to its motor, of the motor."""
    layout, hardware = chain.layout, chain.parameters.hardware
    flexible = _flexible(layout)
    x = joint_coordinates(layout, q)
    xm, xmd = motor_side(layout, q, v)
    kp, kd = chain.drive.slopes(chain.robot, now.t, now.piece_time, xm, xmd, now.memory)
    controller = cq * kp + cv * kd
    if hardware.coulomb is not None:
        controller = controller + cv * hardware.friction_slope(xmd)
    joint = jnp.where(flexible, 0.0, cv * hardware.damping + controller)
    if hardware.stops is not None:
        stiffness, damping = hardware.stop_slopes(x)
        joint = joint + cq * stiffness + cv * damping
    spring = jnp.where(flexible, cq * hardware.stiffness + cv * hardware.damping, 0.0)
    return joint, spring, jnp.where(flexible, controller, 0.0)
