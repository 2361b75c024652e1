"""Stumpff functions: the scalar functions in exp, log and dexp of rotations and rigid motions.

With x = theta^2, the functions c_k(x) = sum_j (-x)^j / (2j + k)! are entire, so nothing is singular
at zero: c0 = cos(theta), c1 = sin(theta)/theta, c2 = (1 - cos(theta))/theta^2,
c3 = (theta - sin(theta))/theta^3, ... Two identities avoid cancellation, in derivatives too:
c_k = 1/k! - x c_{k+2}   and   dc_k/dx = (k c_{k+2} - c_{k+1})/2.
"""

from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax._rules import ruled
from flexjax._types import Scalar

# Below theta = 2 the two highest functions are series: 11 terms have a relative error below 1e-17.
# With a threshold near the rounding unit, the closed forms would have errors eps/x just above it.
_LIMIT = 4.0
_TERMS = 11


def _pair(k: int, dtype: DTypeLike) -> jax.Array:
    """1/k! and 1/(k + 1)!: one array for the odd and even functions halves the operations."""
    return jnp.asarray([1.0 / factorial(k), 1.0 / factorial(k + 1)], dtype)


@ruled
def stumpff(x: Scalar, order: int) -> Float[Array, "{order}+1"]:
    """c_0, ..., c_order at the squared angle x >= 0, for an even order."""
    near = x < _LIMIT
    y = jnp.where(near, x, 0.0)
    total = _pair(2 * _TERMS + order - 3, x.dtype)
    for j in reversed(range(_TERMS - 1)):
        total = _pair(2 * j + order - 1, x.dtype) - y * total
    series = [total]
    for k in range(order - 3, 0, -2):
        series.append(_pair(k, x.dtype) - y * series[-1])
    # Upward recursion: the downward one would lose theta^4 eps in the cosine of a large angle.
    y = jnp.where(near, _LIMIT, x)
    theta = jnp.sqrt(y)
    cosine = jnp.cos(theta)
    closed = [jnp.stack([jnp.sin(theta) / theta, (1.0 - cosine) / y])]
    for k in range(1, order - 1, 2):
        closed.append((_pair(k, x.dtype) - closed[-1]) / y)
    c = jnp.where(near, jnp.concatenate(series[::-1]), jnp.concatenate(closed))
    return jnp.concatenate([jnp.where(near, 1.0 - x * c[1:2], cosine), c])


# Second derivatives compile three times faster with the identity than with the series.
@stumpff.def_jvp
def _stumpff_jvp(primals: tuple[Array, int], tangents: tuple[Array, None]):
    x, order = primals
    c = stumpff(x, order + 2)
    k = jnp.asarray(np.arange(order + 1.0), c.dtype)
    return c[:-2], 0.5 * (k * c[2:] - c[1:-1]) * tangents[0]


def dexp_inv_coefficients(x: Scalar) -> tuple[Scalar, Scalar]:
    """e = (1 - (theta/2) cot(theta/2))/theta^2 and de/dx; regular below theta = 2 pi."""
    _, _, c2, c3, c4, c5, c6 = stumpff(x, 6)
    e = (c3 - 2.0 * c4) / (2.0 * c2)
    return e, (1.25 * c5 - 0.25 * c4 - 2.0 * c6 - e * (c4 - 0.5 * c3)) / c2


def dexp_inv_coefficient(x: Scalar) -> Scalar:
    """The coefficient e of :func:`dexp_inv_coefficients`."""
    _, _, c2, c3, c4 = stumpff(x, 4)
    return (c3 - 2.0 * c4) / (2.0 * c2)
