"""SO(3): skew matrices, rotation vectors, unit quaternions (wxyz), rotation matrices.

Functions of more than a few operations are compiled ones, here and in `se2`, `se3`: a program that
calls one a dozen times traces and lowers it once. XLA inlines the calls.
"""

import jax
import jax.numpy as jnp
import jaxlie
import numpy as np

from flexjax._types import Matrix3, Quaternion, Vector3
from flexjax.numerics.screw._stumpff import dexp_inv_coefficient, stumpff

# skew(w)[i, j] = -sum_k eps_ijk w_k: one fused operation; stacking nine scalars takes a dozen.
_LEVI_CIVITA = np.zeros((3, 3, 3))
_LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
_LEVI_CIVITA[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0


def _product(i: int, side: float) -> np.ndarray:
    """The matrix of q -> e_i q (side 1) or q -> q e_i (side -1)."""
    matrix = np.zeros((4, 4))
    matrix[i + 1, 0], matrix[0, i + 1] = 1.0, -1.0
    matrix[1:, 1:] = -side * _LEVI_CIVITA[:, :, i]
    return matrix


# R_ij = <e_i q, q e_j> = q^T B_ij q. The identity and the nine B_ij form an orthogonal basis:
# 4 q q^T = 1 + sum_ij R_ij B_ij.
_BASIS = np.array([[_product(i, 1.0).T @ _product(j, -1.0) for j in range(3)] for i in range(3)])


def skew(w: Vector3) -> Matrix3:
    """The matrix of the cross product with w."""
    return jnp.sum(jnp.asarray(-_LEVI_CIVITA, w.dtype) * w[None, None, :], axis=2)


def unskew(m: Matrix3) -> Vector3:
    """The vector of the skew-symmetric part."""
    return jnp.sum(jnp.asarray(-0.5 * _LEVI_CIVITA, m.dtype) * m[:, :, None], axis=(0, 1))


def cross(a: Vector3, b: Vector3) -> Vector3:
    return jnp.sum(skew(a) * b[None, :], axis=1)


def outer(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[:, None] * b[None, :]


def skew_square(w: Vector3) -> Matrix3:
    return outer(w, w) - jnp.sum(w * w) * jnp.eye(3, dtype=w.dtype)


@jax.jit
def rotation_exp(rotvec: Vector3) -> Matrix3:
    """The rotation matrix of a rotation vector."""
    c0, c1, c2 = stumpff(jnp.sum(rotvec * rotvec), 2)
    return c0 * jnp.eye(3, dtype=rotvec.dtype) + c1 * skew(rotvec) + c2 * outer(rotvec, rotvec)


@jax.jit
def rotation_log(rotation: Matrix3) -> Vector3:
    """The rotation vector of a rotation matrix, of length at most pi."""
    return quat_log(matrix_to_quat(rotation))


@jax.jit
def so3_dexp(rotvec: Vector3) -> Matrix3:
    """Body angular velocity per rate of the rotation vector.

    exp(x)^-1 d exp(x)[dx] = hat(so3_dexp(x) dx).
    """
    _, _, c2, c3, _ = stumpff(jnp.sum(rotvec * rotvec), 4)
    return jnp.eye(3, dtype=rotvec.dtype) - c2 * skew(rotvec) + c3 * skew_square(rotvec)


@jax.jit
def so3_dexp_inv(rotvec: Vector3) -> Matrix3:
    """Rate of the rotation vector per body angular velocity; singular at length 2 pi."""
    e = dexp_inv_coefficient(jnp.sum(rotvec * rotvec))
    return jnp.eye(3, dtype=rotvec.dtype) + 0.5 * skew(rotvec) + e * skew_square(rotvec)


@jax.jit
def quat_exp(rotvec: Vector3) -> Quaternion:
    """The unit quaternion of a rotation vector."""
    return jaxlie.SO3.exp(rotvec).wxyz


@jax.jit
def quat_log(quat: Quaternion) -> Vector3:
    """The rotation vector of a quaternion, of length at most pi; q and -q give the same.

    jaxlie's function drops the derivative w.r.t. w within 1e-10 (float32: 1e-5) of the angle pi.
    """
    quat = jnp.where(quat[0] < 0.0, -quat, quat)
    w, v = quat[0], quat[1:]
    n2 = jnp.sum(v * v)
    near = n2 < 1e-4 * w * w
    u2 = jnp.where(near, n2 / jnp.where(near, w * w, 1.0), 0.0)
    n = jnp.sqrt(jnp.where(near, 1.0, n2))
    series = 1.0 - u2 * (1.0 / 3.0 - u2 * (1.0 / 5.0 - u2 * (1.0 / 7.0 - u2 / 9.0)))
    series = series / jnp.where(near, w, 1.0)
    return 2.0 * jnp.where(near, series, jnp.arctan2(n, w) / n) * v


@jax.jit
def quat_multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    # jaxlie's product gathers with index arrays, which XLA on CPU does not fuse.
    w = a[:1] * b[:1] - jnp.sum(a[1:] * b[1:], keepdims=True)
    return jnp.concatenate([w, a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])])


@jax.jit
def quat_to_matrix(quat: Quaternion) -> Matrix3:
    """The rotation matrix; the quaternion need not be of unit length."""
    w, v = quat[0], quat[1:]
    s = 2.0 / jnp.sum(quat * quat)
    return jnp.eye(3, dtype=quat.dtype) + s * (w * skew(v) + skew_square(v))


@jax.jit
def matrix_to_quat(rotation: Matrix3) -> Quaternion:
    """The unit quaternion with w >= 0.

    4 q q^T is affine in the rotation matrix. Its row with the largest diagonal entry is q times a
    factor of at least 2. jaxlie's four explicit formulas need three times the operations.
    """
    eye = jnp.eye(4, dtype=rotation.dtype)
    outer4 = eye + jnp.sum(
        jnp.asarray(_BASIS, rotation.dtype) * rotation[:, :, None, None], axis=(0, 1)
    )
    chosen = jnp.arange(4) == jnp.argmax(jnp.sum(outer4 * eye, axis=1))
    row = jnp.sum(jnp.where(chosen[:, None], outer4, 0.0), axis=0)
    return row * jnp.where(row[0] < 0.0, -1.0, 1.0) / jnp.sqrt(jnp.sum(row * row))


@jax.jit
def quat_retract(quat: Quaternion, rotvec: Vector3) -> Quaternion:
    """quat * exp(rotvec), normalised: a step from quat by a rotation vector in body axes."""
    moved = quat_multiply(quat, quat_exp(rotvec))
    return moved / jnp.sqrt(jnp.sum(moved * moved))
