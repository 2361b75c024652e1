"""Geometry and inertia of joints and payloads: placement, axes, hub, rotor. Written in space."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.numerics.screw import se3
from flexjax.robot import Joint, Payload

PLANAR = np.array([0, 1, 5])  # rows of a spatial twist that a planar one keeps


def or_zero(x: Array | None, like: Array, shape: tuple[int, ...] = ()) -> Array:
    """``x``, or zeros where the robot does not give it, in the precision of ``like``."""
    return jnp.zeros(shape, like.dtype) if x is None else jnp.asarray(x, like.dtype)


def unit(axis: Array | None, default: list[float], like: Array) -> Float[Array, " 3"]:
    """A unit vector along ``axis``."""
    axis = jnp.array(default, like.dtype) if axis is None else axis
    return axis / jnp.linalg.norm(axis)


def placement(joint: Joint, like: Array) -> se3.Pose:
    """Pose of the joint in the axes of the parent's tip section, or of the contact."""
    rotation = (
        jnp.eye(3, dtype=like.dtype) if joint.rotation is None else se3.rotation_exp(joint.rotation)
    )
    return se3.Pose(rotation, or_zero(joint.offset, like, (3,)))


def rotation_axis(joint: Joint, part: int, like: Array) -> Float[Array, " 3"]:
    """Axis of a revolute joint, or of one ``part`` of a universal joint, in child axes."""
    if part == 1:
        return unit(joint.axis2, [0.0, 1.0, 0.0], like)
    return unit(joint.axis, [0.0, 0.0, 1.0], like)


def shift_axis(joint: Joint, like: Array) -> Float[Array, " 3"]:
    """Direction of a prismatic or sliding joint."""
    return unit(None if joint.type == "sliding" else joint.axis, [1.0, 0.0, 0.0], like)


def inertia_tensor(inertia: Array | None, like: Array) -> Float[Array, "3 3"]:
    """One number: the same about every axis; three: about x, y, z."""
    return jnp.diag(jnp.broadcast_to(or_zero(inertia, like), (3,)))


def payload_inertia(payload: Payload, pose: se3.Pose) -> Float[Array, "6 6"]:
    """Inertia about the origin of ``pose`` of a payload on the section there."""
    like = payload.mass
    offset = se3.Pose(jnp.eye(3, dtype=like.dtype), or_zero(payload.offset, like, (3,)))
    back = se3.adjoint_inverse(se3.compose(pose, offset))
    centre = jnp.zeros(3, like.dtype)
    about_com = inertia_tensor(payload.inertia, like)
    return back.T @ se3.body_inertia(payload.mass, centre, about_com) @ back


def hub_inertia(joint: Joint, like: Array) -> Float[Array, "6 6"]:
    """Inertia of hub and joint mass about the joint, in child axes."""
    mass = or_zero(joint.mass, like)
    about = jnp.zeros((3, 3), like.dtype)
    if joint.hub is not None:
        mass = mass + joint.hub.mass
        if joint.hub.inertia.ndim == 0 and joint.type == "revolute":
            axis = rotation_axis(joint, 0, like)
            about = joint.hub.inertia * jnp.outer(axis, axis)
        else:
            about = inertia_tensor(joint.hub.inertia, like)
    return se3.body_inertia(mass, jnp.zeros(3, like.dtype), about)


def rotor_and_gear(joint: Joint, like: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Rotor inertia (zero without one) and gear ratio of a joint's motor."""
    motor = joint.motor if joint.dofs == 1 else None
    rotor = or_zero(None if motor is None else motor.rotor, like)
    return rotor, jnp.ones((), like.dtype) if motor is None else motor.gear
