"""se(2) and se(3) on stacked twists, written with structure constants so that one code serves both;
orders are [linear; angular].

The paper's ad has the order (angular; linear); its matrix [[To^, 0], [Tt^, To^]] is the same map
with rows and columns exchanged.
"""

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.numerics.linalg import mm
from flexjax.numerics.screw import se2, se3
from flexjax.numerics.screw._trig import sincos


def _constants(space) -> np.ndarray:
    """c with ad(a)_ij = sum_k c_ijk a_k."""
    d = space.DIM
    if d == 3:
        c = np.zeros((3, 3, 3))
        c[0, 1, 2], c[1, 0, 2], c[0, 2, 1], c[1, 2, 0] = -1.0, 1.0, 1.0, -1.0
        return c
    eps = np.zeros((3, 3, 3))
    eps[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
    eps[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0
    skew = np.transpose(eps, (0, 2, 1))  # skew(w)_ij = sum_k eps_ikj w_k
    c = np.zeros((6, 6, 6))
    c[:3, :3, 3:], c[3:, 3:, 3:], c[:3, 3:, :3] = skew, skew, skew
    return c


STRUCTURE = {3: _constants(se2), 6: _constants(se3)}


def lift(x, ndim: int):
    """``x`` with leading axes of length one, up to ``ndim`` axes."""
    return x.reshape((1,) * (ndim - x.ndim) + x.shape)


def eye_like(a, size: int | None = None):
    """The unit matrix with as many axes as ``a`` has."""
    return lift(jnp.eye(a.shape[-1] if size is None else size, dtype=a.dtype), a.ndim)


def space_of(dim: int):
    return se2 if dim == 3 else se3


def ad(a):
    """(..., d, d) with ad(a) b = [a, b]."""
    c = jnp.asarray(STRUCTURE[a.shape[-1]], a.dtype)
    return jnp.sum(lift(c, a.ndim + 2) * a[..., None, None, :], axis=-1)


def coad_of(w):
    """(..., d, d): the matrix W(w) with ad(a)^T w = W(w) a."""
    c = jnp.asarray(np.transpose(STRUCTURE[w.shape[-1]], (1, 2, 0)), w.dtype)
    return jnp.sum(lift(c, w.ndim + 2) * w[..., None, None, :], axis=-1)


def _quarter(p):
    return jnp.stack([-p[..., 1], p[..., 0]], axis=-1)


def resolvent(a):
    """(1 + ad(a))^-1 in closed form."""
    d = a.shape[-1]
    if d == 3:
        v, w = a[..., :2], a[..., 2]
        s = 1.0 / (1.0 + w * w)
        ws = w * s
        turned = _quarter(v)
        x, y = turned[..., 0], turned[..., 1]
        zero = jnp.zeros_like(w)
        rows = [s, ws, s * x + ws * y, -ws, s, s * y - ws * x, zero, zero, zero + 1.0]
        return jnp.stack(rows, axis=-1).reshape(*w.shape, 3, 3)
    m = ad(a)
    eye = eye_like(m, 3)
    v_hat, w_hat, w = m[..., :3, 3:], m[..., 3:, 3:], a[..., 3:]
    S = (eye + w[..., :, None] * w[..., None, :] - w_hat) / (1.0 + jnp.sum(w * w, axis=-1))[
        ..., None, None
    ]
    corner = -mm(S, mm(v_hat, S))
    upper = jnp.concatenate([S, corner], axis=-1)
    return jnp.concatenate([upper, jnp.concatenate([jnp.zeros_like(S), S], axis=-1)], axis=-2)


# --- orientations: an angle (1,) in the plane, a quaternion (4,) in space
def turn_identity(planar: bool, dtype):
    return jnp.zeros(1, dtype) if planar else jnp.array([1.0, 0.0, 0.0, 0.0], dtype)


def turn_matrix(turn):
    """(..., D, D) of orientations (..., 1) or (..., 4)."""
    if turn.shape[-1] == 1:
        s, c = sincos(turn[..., 0])
        return jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2)
    flat = turn.reshape(-1, 4)
    return jax.vmap(se3.quat_to_matrix)(flat).reshape(*turn.shape[:-1], 3, 3)


def turn_move(turn, w):
    """Orientations moved by body rotation vectors w (..., 1 or 3)."""
    if turn.shape[-1] == 1:
        return turn + lift(w, turn.ndim)
    return jax.vmap(se3.quat_retract)(turn.reshape(-1, 4), w.reshape(-1, 3)).reshape(turn.shape)


def turn_from_matrix(R):
    """One orientation from one rotation matrix."""
    return jnp.arctan2(R[1, :1], R[0, :1]) if R.shape[-1] == 2 else se3.matrix_to_quat(R)


def rotate_by(R, w):
    """R exp(w) for stacked R (..., D, D) and rotation vectors w."""
    if R.shape[-1] == 2:
        return mm(R, turn_matrix(w))
    step = jax.vmap(se3.rotation_exp)(w.reshape(-1, 3)).reshape(R.shape)
    return mm(R, step)


def sinc(w):
    """sin(|w|)/|w| (...,) of rotation vectors: what makes a lever's end travel exactly R w x lever
    per step (see PAPER.md)."""
    return sinc_of_square(jnp.sum(w * w, axis=-1))


def sinc_of_square(x):
    """sin(r)/r of r^2, with all derivatives at zero."""
    near = x < 1e-2
    y = jnp.where(near, 1.0, x)
    r = jnp.sqrt(y)
    z = jnp.where(near, x, 0.0)
    series = 1.0 - z / 6 * (1.0 - z / 20 * (1.0 - z / 42 * (1.0 - z / 72 * (1.0 - z / 110))))
    return jnp.where(near, series, jnp.sin(r) / r)


def _half_tangent(x):
    """tan(r/2)/(r/2) of x = r^2, with all derivatives at zero."""
    near = x < 1e-2
    half = 0.5 * jnp.sqrt(jnp.where(near, 1.0, x))
    z = 0.25 * jnp.where(near, x, 0.0)
    series = 1.0 + z * (
        1 / 3
        + z
        * (2 / 15 + z * (17 / 315 + z * (62 / 2835 + z * (1382 / 155925 + z * 21844 / 6081075))))
    )
    return jnp.where(near, series, jnp.tan(half) / half)


def cayley_screw(xi):
    """kappa (6,) with (1 + ad(kappa)/2)^-1 (1 - ad(kappa)/2) = Ad(exp(xi))^-1: elements carry
    twists by this Cayley map, arcs by the exponential. The tangent of half the angle in its place,
    in dual numbers [moment = change of the direction]; for a straight xi it is xi. Arcs of less
    than half a turn have one."""
    turned, moved = jax.jvp(lambda w: _half_tangent(jnp.sum(w * w)) * w, (xi[3:],), (xi[:3],))
    return jnp.concatenate([moved, turned])


def lever_cross(w, o):
    """w x o for rotation vectors w (..., 1 or 3)."""
    return w * _quarter(o) if o.shape[-1] == 2 else jnp.cross(w, o)
