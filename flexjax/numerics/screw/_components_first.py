"""se(2) and se(3) on arrays of twists with the components first: (3, ...) or (6, ...).

One code serves both groups by their structure constants. The order is [linear; angular]. Axes
behind the components are free: links, nodes, and a batch. A single twist (d,) is a special case.
"""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.numerics.linalg._components_first import eye_like, lift, mm
from flexjax.numerics.screw import se2, se3
from flexjax.numerics.screw._trig import sincos


def _constants(dim: int) -> np.ndarray:
    """c with ad(a)_ij = sum_k c_ijk a_k."""
    c = np.zeros((dim, dim, dim))
    if dim == 3:
        c[0, 1, 2], c[1, 0, 2], c[0, 2, 1], c[1, 2, 0] = -1.0, 1.0, 1.0, -1.0
        return c
    eps = np.zeros((3, 3, 3))
    eps[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
    eps[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0
    skew = np.transpose(eps, (0, 2, 1))  # skew(w)_ij = sum_k eps_ikj w_k
    c[:3, :3, 3:], c[3:, 3:, 3:], c[:3, 3:, :3] = skew, skew, skew
    return c


_AD = {dim: _constants(dim) for dim in (3, 6)}
_COAD = {dim: np.transpose(c, (1, 2, 0)) for dim, c in _AD.items()}
_ONE, _QUARTER = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])
# Parts of [[s, ws, p], [-ws, s, q], [0, 0, 1]] that belong to s, ws, p, q and 1.
_RESOLVENT = np.zeros((5, 3, 3))
_RESOLVENT[0, :2, :2], _RESOLVENT[1, :2, :2] = _ONE, -_QUARTER
_RESOLVENT[2, 0, 2] = _RESOLVENT[3, 1, 2] = _RESOLVENT[4, 2, 2] = 1.0


def space_of(dim: int):
    """The module of the group whose twists have ``dim`` components."""
    return se2 if dim == 3 else se3


def _contract(c: np.ndarray, a: Array) -> Array:
    return jnp.sum(lift(jnp.asarray(c, a.dtype), a.ndim + 2) * a[None, None], axis=2)


def _combine(*parts: tuple[np.ndarray, Array]) -> Array:
    """sum_i c_i x_i of constant matrices c_i and arrays x_i (...).

    Not stacked entry by entry: XLA on CPU does not vectorise a concatenation.
    """
    products = (lift(jnp.asarray(c, x.dtype), x.ndim + 2) * x[None, None] for c, x in parts)
    return functools.reduce(operator.add, products)


def ad(a: Float[Array, "d *n"]) -> Float[Array, "d d *n"]:
    """The matrix with ad(a) b = [a, b]."""
    return _contract(_AD[a.shape[0]], a)


def coad(w: Float[Array, "d *n"]) -> Float[Array, "d d *n"]:
    """The matrix W(w) with ad(a)^T w = W(w) a."""
    return _contract(_COAD[w.shape[0]], w)


@jax.jit
def resolvent(a: Float[Array, "d *n"]) -> Float[Array, "d d *n"]:
    """(1 + ad(a))^-1 in closed form."""
    if a.shape[0] == 3:
        x, y, w = -a[1], a[0], a[2]
        s = 1.0 / (1.0 + w * w)
        ws = w * s
        values = s, ws, s * x + ws * y, s * y - ws * x, jnp.ones_like(w)
        return _combine(*zip(_RESOLVENT, values, strict=True))
    m = ad(a)
    v_hat, w_hat, w = m[:3, 3:], m[3:, 3:], a[3:]
    square = 1.0 + jnp.sum(w * w, axis=0)
    S = (eye_like(w_hat) + w[:, None] * w[None] - w_hat) / square[None, None]
    corner = -mm(S, mm(v_hat, S))
    upper = jnp.concatenate([S, corner], axis=1)
    return jnp.concatenate([upper, jnp.concatenate([jnp.zeros_like(S), S], axis=1)], axis=0)


# --- orientations: an angle (1, ...) in the plane, a quaternion (4, ...) in space
@jax.jit
def orientation_matrix(orientation: Float[Array, "r *n"]) -> Float[Array, "lin lin *n"]:
    """Rotation matrices of orientations."""
    if orientation.shape[0] == 1:
        s, c = sincos(orientation[0])
        return _combine((_ONE, c), (_QUARTER, s))
    flat = jax.vmap(se3.quat_to_matrix, in_axes=1, out_axes=2)(orientation.reshape(4, -1))
    return flat.reshape(3, 3, *orientation.shape[1:])


@jax.jit
def move_orientation(
    orientation: Float[Array, "r *n"], w: Float[Array, "a *n"]
) -> Float[Array, "r *n"]:
    """Orientations rotated by body rotation vectors."""
    if orientation.shape[0] == 1:
        return orientation + w
    flat = jax.vmap(se3.quat_retract, in_axes=1, out_axes=1)(
        orientation.reshape(4, -1), w.reshape(3, -1)
    )
    return flat.reshape(orientation.shape)


def orientation_rate(
    orientation: Float[Array, "r *n"], w: Float[Array, "a *n"]
) -> Float[Array, "r *n"]:
    """Time derivative of orientations at body angular velocities."""
    if orientation.shape[0] == 1:
        return w
    spin = jnp.concatenate([jnp.zeros_like(w[:1]), w]).reshape(4, -1)
    multiply = jax.vmap(se3.quat_multiply, in_axes=1, out_axes=1)
    return 0.5 * multiply(orientation.reshape(4, -1), spin).reshape(orientation.shape)


@jax.jit
def orientation_of(R: Float[Array, "lin lin"]) -> Float[Array, " r"]:
    """The orientation of one rotation matrix."""
    return jnp.arctan2(R[1, :1], R[0, :1]) if R.shape[0] == 2 else se3.matrix_to_quat(R)


@jax.jit
def rotate_by(R: Float[Array, "lin lin *n"], w: Float[Array, "a *n"]) -> Float[Array, "lin lin *n"]:
    """R exp(w) for rotation vectors w."""
    if R.shape[0] == 2:
        # Written out: sine and cosine are computed once per node.
        (s, c), a, b = sincos(w[0]), R[0, 0], R[1, 0]
        return _combine((_ONE, a * c - b * s), (_QUARTER, b * c + a * s))
    step = jax.vmap(se3.rotation_exp, in_axes=1, out_axes=2)(w.reshape(3, -1))
    return mm(R, step.reshape(3, 3, *w.shape[1:]))


def cross(w: Float[Array, "a *n"], o: Float[Array, "lin *n"]) -> Float[Array, "lin *n"]:
    """w x o for rotation vectors w."""
    if o.shape[0] == 2:
        return w * jnp.stack([-o[1], o[0]])
    return jnp.cross(w, o, axis=0)


def dipole_torque(D: Float[Array, "lin lin *n"]) -> Float[Array, "a *n"]:
    """sum_i c_i x f_i from D = sum_i c_i f_i^T."""
    if D.shape[0] == 2:
        return (D[0, 1] - D[1, 0])[None]
    return jnp.stack([D[1, 2] - D[2, 1], D[2, 0] - D[0, 2], D[0, 1] - D[1, 0]])


@jax.jit
def sinc(w: Float[Array, "a *n"]) -> Float[Array, "1 *n"]:
    """sin(|w|)/|w| of rotation vectors, with all derivatives at zero."""
    x = jnp.sum(w * w, axis=0, keepdims=True)
    near = x < 1e-2
    r = jnp.sqrt(jnp.where(near, 1.0, x))
    z = jnp.where(near, x, 0.0)
    series = 1.0 - z / 6 * (1.0 - z / 20 * (1.0 - z / 42 * (1.0 - z / 72 * (1.0 - z / 110))))
    return jnp.where(near, series, jnp.sin(r) / r)


def _half_tangent(x: Float[Array, ""]) -> Float[Array, ""]:
    """tan(r/2)/(r/2) of x = r^2, with all derivatives at zero."""
    near = x < 1e-2
    half = 0.5 * jnp.sqrt(jnp.where(near, 1.0, x))
    z = 0.25 * jnp.where(near, x, 0.0)
    series = jnp.zeros_like(z)
    for c in (21844 / 6081075, 1382 / 155925, 62 / 2835, 17 / 315, 2 / 15, 1 / 3, 1.0):
        series = c + z * series
    return jnp.where(near, series, jnp.tan(half) / half)


def cayley_screw(xi: Float[Array, " 6"]) -> Float[Array, " 6"]:
    """kappa with (1 + ad(kappa)/2)^-1 (1 - ad(kappa)/2) = Ad(exp(xi))^-1.

    The tangent of half the angle replaces the angle, in dual numbers; the linear part is its
    derivative. Defined for arcs of less than half a revolution; a straight xi is its own result.
    """
    half = lambda w: _half_tangent(jnp.sum(w * w)) * w
    angular, linear = jax.jvp(half, (xi[3:],), (xi[:3],))
    return jnp.concatenate([linear, angular])
