"""The algebra of `_algebra` with components first and elements last: (d, ...) vectors and (d, d,
...) matrices.

Loops over the elements of a link are then innermost and contiguous, which XLA vectorises on CPU;
with the components last it does not. What a Newton iteration does with elements and nodes is
written in it, for any axes behind the components: (links, nodes), and behind them the batch of a
Newton iteration in the plane (`_newton.corrections`).
"""

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.formulation.port_hamiltonian._algebra import STRUCTURE, sinc_of_square
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._trig import sincos


def lanes(x, count: int = 1):
    """Move the last ``count`` axes to the front."""
    return jnp.moveaxis(x, tuple(range(-count, 0)), tuple(range(count)))


def unlanes(x, count: int = 1):
    """Move the first ``count`` axes to the end."""
    return jnp.moveaxis(x, tuple(range(count)), tuple(range(-count, 0)))


def _product(c, a):
    return jnp.sum(
        jnp.asarray(c, a.dtype).reshape(*c.shape, *(1,) * (a.ndim - 1)) * a[None, None], axis=2
    )


def _combined(*parts):
    """sum_i c_i x_i of constant matrices c_i and numbers x_i (...). Not stacked entry by entry: XLA
    on CPU does not vectorise a concatenation."""
    return sum(
        jnp.asarray(c, x.dtype).reshape(*c.shape, *(1,) * x.ndim) * x[None, None] for c, x in parts
    )


_ONE, _QUARTER = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])
_TURNED = np.zeros((5, 3, 3))  # of [[s, ws, p], [-ws, s, q], [0, 0, 1]]
_TURNED[0, :2, :2], _TURNED[1, :2, :2], _TURNED[2, 0, 2], _TURNED[3, 1, 2], _TURNED[4, 2, 2] = (
    _ONE,
    -_QUARTER,
    1.0,
    1.0,
    1.0,
)


def ad(a):
    """(d, d, ...) with ad(a) b = [a, b]."""
    return _product(STRUCTURE[a.shape[0]], a)


def coad_of(w):
    """(d, d, ...): the matrix W(w) with ad(a)^T w = W(w) a."""
    return _product(np.transpose(STRUCTURE[w.shape[0]], (1, 2, 0)), w)


def mv(a, x):
    return jnp.sum(a * x[None], axis=1)


def mm(a, b):
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def transpose(a):
    return jnp.swapaxes(a, 0, 1)


def eye_like(a):
    return jnp.eye(a.shape[0], dtype=a.dtype).reshape(a.shape[0], a.shape[0], *(1,) * (a.ndim - 2))


def resolvent(a):
    """(1 + ad(a))^-1 in closed form."""
    if a.shape[0] == 3:
        x, y, w = -a[1], a[0], a[2]
        s = 1.0 / (1.0 + w * w)
        ws = w * s
        return _combined(
            (_TURNED[0], s),
            (_TURNED[1], ws),
            (_TURNED[2], s * x + ws * y),
            (_TURNED[3], s * y - ws * x),
            (_TURNED[4], jnp.ones_like(w)),
        )
    m = ad(a)
    v_hat, w_hat, w = m[:3, 3:], m[3:, 3:], a[3:]
    S = (eye_like(w_hat) + w[:, None] * w[None] - w_hat) / (1.0 + jnp.sum(w * w, axis=0))[
        None, None
    ]
    corner = -mm(S, mm(v_hat, S))
    return jnp.concatenate(
        [jnp.concatenate([S, corner], axis=1), jnp.concatenate([jnp.zeros_like(S), S], axis=1)],
        axis=0,
    )


# --- orientations as (lin, lin, ...) matrices
def rotate_by(R, w):
    """R exp(w) for rotation vectors w (1 or 3, ...)."""
    if R.shape[0] == 2:
        # Written out: sine and cosine are computed once per node.
        (s, c), a, b = sincos(w[0]), R[0, 0], R[1, 0]
        return _combined((_ONE, a * c - b * s), (_QUARTER, b * c + a * s))
    step = jax.vmap(se3.rotation_exp, in_axes=1, out_axes=2)(w.reshape(3, -1)).reshape(
        3, 3, *w.shape[1:]
    )
    return mm(R, step)


def sinc(w):
    """sin(|w|)/|w| (1, ...) of rotation vectors."""
    return sinc_of_square(jnp.sum(w * w, axis=0))[None]


def dipole_torque(D):
    """sum_i c_i x f_i from D = sum_i c_i f_i^T (lin, lin, ...)."""
    if D.shape[0] == 2:
        return (D[0, 1] - D[1, 0])[None]
    return jnp.stack([D[1, 2] - D[2, 1], D[2, 0] - D[0, 2], D[0, 1] - D[1, 0]])
