"""SE(3): poses, twists [linear; angular] and wrenches [force; moment] in body axes.

It has the same names as `se2`. z_outer = adjoint(g) z_inner maps a twist from the inner to the
outer frame; transport_wrench maps a wrench so that their power stays the same. Functions take one
pose or one 6-vector; use jax.vmap for many.
"""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax._types import Matrix3, Pose7, Scalar, Vector3
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.screw._pose import (
    Pose as Pose,
    act as act,
    compose as compose,
    inverse as inverse,
)
from flexjax.numerics.screw._quaternion import (
    cross,
    matrix_to_quat as matrix_to_quat,
    outer,
    quat_exp as quat_exp,
    quat_log as quat_log,
    quat_multiply as quat_multiply,
    quat_retract as quat_retract,
    quat_to_matrix as quat_to_matrix,
    rotation_exp as rotation_exp,
    rotation_log as rotation_log,
    skew,
    skew_square,
    so3_dexp as so3_dexp,
    so3_dexp_inv as so3_dexp_inv,
    unskew,
)
from flexjax.numerics.screw._stumpff import dexp_inv_coefficient, dexp_inv_coefficients, stumpff

DIM, LIN, ANG = 6, 3, 3
Twist = Float[Array, "6"]
Wrench = Float[Array, "6"]
Matrix6 = Float[Array, "6 6"]


def identity(dtype: DTypeLike | None = None) -> Pose:
    return Pose(jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype=dtype))


def _triangular(diagonal: Matrix3, corner: Matrix3) -> Matrix6:
    """[[D, C], [0, D]]: every operator on twists has this form, that of a dual number D + eps C."""
    upper = jnp.concatenate([diagonal, corner], axis=1)
    lower = jnp.concatenate([jnp.zeros_like(corner), diagonal], axis=1)
    return jnp.concatenate([upper, lower], axis=0)


@jax.jit
def exp(twist: Twist) -> Pose:
    """The pose reached after unit time with a constant body twist."""
    v, w = twist[:3], twist[3:]
    _, c1, c2, c3, _ = stumpff(jnp.sum(w * w), 4)
    w_hat, w_hat2, eye = skew(w), skew_square(w), jnp.eye(3, dtype=twist.dtype)
    return Pose(eye + c1 * w_hat + c2 * w_hat2, mv(eye + c2 * w_hat + c3 * w_hat2, v))


@jax.jit
def log(pose: Pose) -> Twist:
    """The twist with exp(twist) = pose and an angle of at most pi."""
    w = rotation_log(pose.rotation)
    e = dexp_inv_coefficient(jnp.sum(w * w))
    wp = cross(w, pose.position)
    return jnp.concatenate([pose.position - 0.5 * wp + e * cross(w, wp), w])


def adjoint(pose: Pose) -> Matrix6:
    """z_outer = adjoint(pose) @ z_inner."""
    return _triangular(pose.rotation, mm(skew(pose.position), pose.rotation))


@jax.jit
def adjoint_inverse(pose: Pose) -> Matrix6:
    """z_inner = adjoint_inverse(pose) @ z_outer."""
    back = pose.rotation.T
    return _triangular(back, -mm(back, skew(pose.position)))


def ad(twist: Twist) -> Matrix6:
    """The matrix of the Lie bracket: ad(a) @ b = [a, b] = d/dt adjoint(exp(t a)) b at t = 0."""
    return _triangular(skew(twist[3:]), skew(twist[:3]))


def ad_star(twist: Twist) -> Matrix6:
    """The dual of ad, its transpose: d/dt (M z) = ad_star(z) @ (M z) + wrench for a free body."""
    return ad(twist).T


def transport_wrench(pose: Pose, wrench: Wrench) -> Wrench:
    """Transform a wrench from the inner to the outer frame: <adjoint z, result> = <z, wrench>."""
    force, moment = mv(pose.rotation, wrench[:3]), mv(pose.rotation, wrench[3:])
    return jnp.concatenate([force, moment + cross(pose.position, force)])


@jax.jit
def dexp(twist: Twist) -> Matrix6:
    """Derivative of exp in body axes (right Jacobian): exp(x)^-1 d exp(x)[dx] = dexp(x) dx."""
    v, w = twist[:3], twist[3:]
    _, _, c2, c3, c4, c5, _ = stumpff(jnp.sum(w * w), 6)
    w_hat, w_hat2, eye = skew(w), skew_square(w), jnp.eye(3, dtype=twist.dtype)
    wv = jnp.sum(w * v)
    # Derivatives of c2 and c3 along dx = 2 w.v.
    d2, d3 = (2.0 * c4 - c3) * wv, (3.0 * c5 - c4) * wv
    corner = -c2 * skew(v) + c3 * _anticommutator(w, v, wv) - d2 * w_hat + d3 * w_hat2
    return _triangular(eye - c2 * w_hat + c3 * w_hat2, corner)


@jax.jit
def dexp_inv(twist: Twist) -> Matrix6:
    """The inverse of dexp; singular at an angle of 2 pi."""
    v, w = twist[:3], twist[3:]
    e, de = dexp_inv_coefficients(jnp.sum(w * w))
    w_hat, w_hat2, eye = skew(w), skew_square(w), jnp.eye(3, dtype=twist.dtype)
    wv = jnp.sum(w * v)
    corner = 0.5 * skew(v) + e * _anticommutator(w, v, wv) + (2.0 * de * wv) * w_hat2
    return _triangular(eye + 0.5 * w_hat + e * w_hat2, corner)


def _anticommutator(w: Vector3, v: Vector3, wv: Scalar) -> Matrix3:
    """skew(w) skew(v) + skew(v) skew(w)."""
    return outer(v, w) + outer(w, v) - 2.0 * wv * jnp.eye(3, dtype=w.dtype)


def hat(twist: Twist) -> Float[Array, "4 4"]:
    """The twist as a matrix on homogeneous coordinates."""
    upper = jnp.concatenate([skew(twist[3:]), twist[:3, None]], axis=1)
    return jnp.concatenate([upper, jnp.zeros((1, 4), twist.dtype)], axis=0)


def vee(matrix: Float[Array, "4 4"]) -> Twist:
    """The inverse of hat."""
    return jnp.concatenate([matrix[:3, 3], unskew(matrix[:3, :3])])


@jax.jit
def to_pose7(pose: Pose) -> Pose7:
    """x y z qw qx qy qz, with qw >= 0."""
    return jnp.concatenate([pose.position, matrix_to_quat(pose.rotation)])


def from_pose7(pose7: Pose7) -> Pose:
    return Pose(quat_to_matrix(pose7[3:]), pose7[:3])


def body_inertia(mass: Scalar, com: Vector3, inertia_about_com: Matrix3) -> Matrix6:
    """The 6x6 mass matrix about the frame's origin; the inertia is about the centre of mass."""
    com = jnp.asarray(com)
    lever = mass * skew(com)
    linear = mass * jnp.eye(3, dtype=com.dtype)
    upper = jnp.concatenate([linear, -lever], axis=1)
    lower = jnp.concatenate([lever, inertia_about_com - mass * skew_square(com)], axis=1)
    return jnp.concatenate([upper, lower], axis=0)
