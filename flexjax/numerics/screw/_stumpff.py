"""The scalar functions behind exp, log and dexp of rotations and rigid motions.

With x = theta^2 the Stumpff functions c_k(x) = sum_j (-x)^j / (2j + k)! are entire, so nothing is singular at zero:
c0 = cos(theta), c1 = sin(theta)/theta, c2 = (1 - cos(theta))/theta^2, c3 = (theta - sin(theta))/theta^3, ...
Two identities make everything else free of cancellation, derivatives of all orders included:
c_k = 1/k! - x c_{k+2}   and   dc_k/dx = (k c_{k+2} - c_{k+1})/2.
"""

import functools
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar

# Below theta = 2 the two highest functions are summed as series: 11 terms leave out less than 1e-17 of the sum. A
# threshold near the rounding unit (the usual choice) would leave the closed forms with errors eps/x just above it; at
# theta = 2 they lose no digits that matter, in float32 as in float64.
_LIMIT = 4.0
_TERMS = 11


def _pair(k: int, dtype) -> jax.Array:
    """1/k! and 1/(k + 1)!: odd and even functions go side by side, which halves the number of operations."""
    return jnp.asarray([1.0 / factorial(k), 1.0 / factorial(k + 1)], dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def stumpff(x: Scalar, order: int) -> Float[Array, " order+1"]:
    """c_0, ..., c_order at the squared angle x >= 0, for an even order."""
    near = x < _LIMIT
    y = jnp.where(near, x, 0.0)
    total = _pair(2 * _TERMS + order - 3, x.dtype)
    for j in reversed(range(_TERMS - 1)):
        total = _pair(2 * j + order - 1, x.dtype) - y * total
    series = [total]
    for k in range(order - 3, 0, -2):
        series.append(_pair(k, x.dtype) - y * series[-1])
    # upwards, not by the same recursion downwards: that would lose theta^4 eps in the cosine of many turns
    y = jnp.where(near, _LIMIT, x)
    theta = jnp.sqrt(y)
    cosine = jnp.cos(theta)
    closed = [jnp.stack([jnp.sin(theta) / theta, (1.0 - cosine) / y])]
    for k in range(1, order - 1, 2):
        closed.append((_pair(k, x.dtype) - closed[-1]) / y)
    c = jnp.where(near, jnp.concatenate(series[::-1]), jnp.concatenate(closed))
    return jnp.concatenate([jnp.where(near, 1.0 - x * c[1:2], cosine), c])


# The identity as the rule: differentiating series and closed forms instead takes three times as long to compile in
# second derivatives, and gains nothing.
@stumpff.defjvp
def _stumpff_jvp(order, primals, tangents):
    c = stumpff(primals[0], order + 2)
    k = jnp.asarray(np.arange(order + 1.0), c.dtype)
    return c[:-2], 0.5 * (k * c[2:] - c[1:-1]) * tangents[0]


def dexp_inv_coefficients(x: Scalar) -> tuple[Scalar, Scalar]:
    """e = (1 - (theta/2) cot(theta/2))/theta^2 and de/dx; regular up to theta = 2 pi, where dexp is singular."""
    _, _, c2, c3, c4, c5, c6 = stumpff(x, 6)
    e = (c3 - 2.0 * c4) / (2.0 * c2)
    return e, (1.25 * c5 - 0.25 * c4 - 2.0 * c6 - e * (c4 - 0.5 * c3)) / c2


def dexp_inv_coefficient(x: Scalar) -> Scalar:
    """e alone."""
    _, _, c2, c3, c4 = stumpff(x, 4)
    return (c3 - 2.0 * c4) / (2.0 * c2)
