"""SE(2): poses, twists [vx, vy, omega] and wrenches [fx, fy, moment] in body axes.

It has the same names as `se3`, and the same results for the plane z = 0. A rotation vector has
shape (1,), so that twist[LIN:] is one, as in `se3`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax._types import Matrix2, Pose7, Scalar, Vector2
from flexjax.numerics.linalg import mv
from flexjax.numerics.screw._pose import (
    Pose as Pose,
    act as act,
    compose as compose,
    inverse as inverse,
)
from flexjax.numerics.screw._stumpff import dexp_inv_coefficient, stumpff

DIM, LIN, ANG = 3, 2, 1
Twist = Float[Array, "3"]
Wrench = Float[Array, "3"]
Matrix3 = Float[Array, "3 3"]
RotationVector = Float[Array, "1"]


def identity(dtype: DTypeLike | None = None) -> Pose:
    return Pose(jnp.eye(2, dtype=dtype), jnp.zeros(2, dtype=dtype))


def _quarter(p: Vector2) -> Vector2:
    """p rotated by +90 degrees: e_z x p in the plane."""
    return p[::-1] * np.array([-1.0, 1.0], p.dtype)


def _similarity(a: Scalar, b: Scalar) -> Matrix2:
    """a 1 + b J, where J rotates by +90 degrees."""
    return jnp.stack([jnp.stack([a, -b]), jnp.stack([b, a])])


def _with_bottom(block: Matrix2, column: Vector2, last: float) -> Matrix3:
    """[[block, column], [0 0 last]]: the form of every operator on planar twists."""
    bottom = np.array([[0.0, 0.0, last]], column.dtype)
    return jnp.concatenate([jnp.concatenate([block, column[:, None]], axis=1), bottom], axis=0)


# ad(twist) = _AD @ twist: one product instead of a matrix assembled from its entries.
_AD = np.zeros((3, 3, 3))
_AD[0, 1, 2], _AD[1, 0, 2], _AD[0, 2, 1], _AD[1, 2, 0] = -1.0, 1.0, 1.0, -1.0


def rotation_exp(rotvec: RotationVector) -> Matrix2:
    """The rotation matrix of an angle, which is a vector of one entry."""
    return _similarity(jnp.cos(rotvec[0]), jnp.sin(rotvec[0]))


def rotation_log(rotation: Matrix2) -> RotationVector:
    """The angle in [-pi, pi], as a vector of one entry."""
    return jnp.arctan2(rotation[1, :1], rotation[0, :1])


@jax.jit
def exp(twist: Twist) -> Pose:
    """The pose reached after unit time with a constant body twist."""
    w = twist[2]
    _, c1, c2 = stumpff(w * w, 2)
    return Pose(rotation_exp(twist[2:]), c1 * twist[:2] + w * c2 * _quarter(twist[:2]))


@jax.jit
def log(pose: Pose) -> Twist:
    """The twist with exp(twist) = pose and an angle of at most pi."""
    w = rotation_log(pose.rotation)
    e = dexp_inv_coefficient(w[0] * w[0])
    linear = (1.0 - w[0] * w[0] * e) * pose.position - 0.5 * w[0] * _quarter(pose.position)
    return jnp.concatenate([linear, w])


def adjoint(pose: Pose) -> Matrix3:
    """z_outer = adjoint(pose) @ z_inner."""
    return _with_bottom(pose.rotation, -_quarter(pose.position), 1.0)


@jax.jit
def adjoint_inverse(pose: Pose) -> Matrix3:
    """z_inner = adjoint_inverse(pose) @ z_outer."""
    back = pose.rotation.T
    return _with_bottom(back, mv(back, _quarter(pose.position)), 1.0)


def ad(twist: Twist) -> Matrix3:
    """The matrix of the Lie bracket: ad(a) @ b = [a, b] = d/dt adjoint(exp(t a)) b at t = 0."""
    return jnp.sum(_AD.astype(twist.dtype) * twist[None, None, :], axis=2)


def ad_star(twist: Twist) -> Matrix3:
    """The dual of ad, its transpose: d/dt (M z) = ad_star(z) @ (M z) + wrench for a free body."""
    return ad(twist).T


def transport_wrench(pose: Pose, wrench: Wrench) -> Wrench:
    """Transform a wrench from the inner to the outer frame: <adjoint z, result> = <z, wrench>."""
    force = mv(pose.rotation, wrench[:2])
    moment = wrench[2:] + jnp.sum(_quarter(pose.position) * force, keepdims=True)
    return jnp.concatenate([force, moment])


@jax.jit
def dexp(twist: Twist) -> Matrix3:
    """Derivative of exp in body axes (right Jacobian): exp(x)^-1 d exp(x)[dx] = dexp(x) dx."""
    v, w = twist[:2], twist[2]
    _, c1, c2, c3, _ = stumpff(w * w, 4)
    return _with_bottom(_similarity(c1, -c2 * w), c2 * _quarter(v) + c3 * w * v, 1.0)


@jax.jit
def dexp_inv(twist: Twist) -> Matrix3:
    """The inverse of dexp; singular at an angle of 2 pi."""
    v, w = twist[:2], twist[2]
    e = dexp_inv_coefficient(w * w)
    return _with_bottom(_similarity(1.0 - w * w * e, 0.5 * w), -0.5 * _quarter(v) + e * w * v, 1.0)


def hat(twist: Twist) -> Matrix3:
    """The twist as a matrix on homogeneous coordinates."""
    return _with_bottom(_similarity(jnp.zeros_like(twist[2]), twist[2]), twist[:2], 0.0)


def vee(matrix: Matrix3) -> Twist:
    """The inverse of hat."""
    return jnp.concatenate([matrix[:2, 2], 0.5 * (matrix[1, :1] - matrix[0, 1:2])])


def to_pose7(pose: Pose) -> Pose7:
    """x y 0 qw 0 0 qz, with qw >= 0: the pose in the plane z = 0 of space."""
    half = 0.5 * rotation_log(pose.rotation)
    zero = jnp.zeros_like(half)
    return jnp.concatenate([pose.position, zero, jnp.cos(half), zero, zero, jnp.sin(half)])


def from_pose7(pose7: Pose7) -> Pose:
    """The planar part of a spatial pose; z, qx and qy are ignored."""
    w, z = pose7[3], pose7[6]
    scale = 1.0 / (w * w + z * z)
    return Pose(_similarity((w * w - z * z) * scale, 2.0 * w * z * scale), pose7[:2])


def body_inertia(mass: Scalar, com: Vector2, inertia_about_com: Scalar) -> Matrix3:
    """The 3x3 mass matrix about the frame's origin; the inertia is about the centre of mass."""
    com = jnp.asarray(com)
    lever = mass * _quarter(com)
    upper = jnp.concatenate([mass * jnp.eye(2, dtype=com.dtype), lever[:, None]], axis=1)
    polar = jnp.reshape(inertia_about_com + mass * jnp.sum(com * com), (1,))
    return jnp.concatenate([upper, jnp.concatenate([lever, polar])[None, :]], axis=0)
