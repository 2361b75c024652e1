"""The scalar functions behind exp, log and dexp of rotations and rigid motions.

With x = theta^2 the Stumpff functions c_k(x) = sum_j (-x)^j / (2j + k)! are entire, so nothing is singular at zero:
c0 = cos(theta), c1 = sin(theta)/theta, c2 = (1 - cos(theta))/theta^2, c3 = (theta - sin(theta))/theta^3, ...
Two identities make every other coefficient free of cancellation:
c_k = 1/k! - x c_{k+2}   and   dc_k/dx = (k c_{k+2} - c_{k+1})/2.
"""

from math import factorial

import jax
import jax.numpy as jnp

# Below theta = 2 the series of c5, c6 are summed: with 11 terms what is left out is under 1e-17 of the sum, in second
# derivatives too. A threshold near the rounding unit (the usual choice) leaves first derivatives of the closed forms
# with errors eps/x just above it; at theta = 2 the closed forms lose no digits, in float32 as in float64.
_LIMIT = 4.0
_TERMS = 11


def _series(x: jax.Array, k: int) -> jax.Array:
    coefficients = [(-1.0) ** j / factorial(2 * j + k) for j in range(_TERMS)]
    total = coefficients[-1] * jnp.ones_like(x)
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def stumpff(x: jax.Array) -> tuple[jax.Array, ...]:
    """c0, ..., c6 at the squared angle x >= 0; what the caller does not use costs nothing after compilation."""
    near = x < _LIMIT
    y = jnp.where(near, x, 0.0)
    n5, n6 = _series(y, 5), _series(y, 6)
    n3, n4 = 1.0 / 6.0 - y * n5, 1.0 / 24.0 - y * n6
    n1, n2 = 1.0 - y * n3, 0.5 - y * n4
    n0 = 1.0 - y * n2
    # upwards, not by the same recursion downwards: that would lose theta^4 eps in the cosine of many turns
    y = jnp.where(near, _LIMIT, x)
    theta = jnp.sqrt(y)
    f0, f1 = jnp.cos(theta), jnp.sin(theta) / theta
    f2, f3 = (1.0 - f0) / y, (1.0 - f1) / y
    f4, f5 = (0.5 - f2) / y, (1.0 / 6.0 - f3) / y
    f6 = (1.0 / 24.0 - f4) / y
    pairs = ((n0, f0), (n1, f1), (n2, f2), (n3, f3), (n4, f4), (n5, f5), (n6, f6))
    return tuple(jnp.where(near, n, f) for n, f in pairs)


def dexp_inv_coefficient(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """e = (1 - (theta/2) cot(theta/2))/theta^2 and de/dx; regular up to theta = 2 pi, where dexp is singular."""
    _, _, c2, c3, c4, c5, c6 = stumpff(x)
    e = (c3 - 2.0 * c4) / (2.0 * c2)
    d2 = c4 - 0.5 * c3
    d34 = 0.5 * (3.0 * c5 - c4) - (4.0 * c6 - c5)
    return e, (0.5 * d34 - e * d2) / c2
