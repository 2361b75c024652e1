"""Vectorised sine and cosine in double precision.

XLA on CPU calls the C library for every element; polynomials are vectorised. The angle is reduced
by pi/2 in three parts (Cody and Waite), followed by fdlibm's polynomials (__kernel_sin,
__kernel_cos). The error is below 1.5e-16 up to angles of 1e5; beyond, it grows with the rounding
error of the angle.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._rules import ruled

_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SIN = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COS = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


def _horner(coefficients: tuple[float, ...], z: Float[Array, "..."]):
    out = jnp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        out = out * z + c
    return out


@ruled
def sincos(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """(sin x, cos x), elementwise."""
    if x.dtype != jnp.float64:
        return jnp.sin(x), jnp.cos(x)
    k = jnp.round(x * (2.0 / jnp.pi))
    r = ((x - k * _HALF_PI[0]) - k * _HALF_PI[1]) - k * _HALF_PI[2]
    z = r * r
    s = r + r * z * _horner(_SIN, z)
    c = 1.0 - (0.5 * z - z * z * _horner(_COS, z))
    quadrant = k - 4.0 * jnp.floor(0.25 * k)
    odd = (quadrant == 1.0) | (quadrant == 3.0)
    sine, cosine = jnp.where(odd, c, s), jnp.where(odd, s, c)
    sine = jnp.where(quadrant >= 2.0, -sine, sine)
    return sine, jnp.where((quadrant == 1.0) | (quadrant == 2.0), -cosine, cosine)


@sincos.def_jvp
def _sincos_jvp(primals: tuple[Array], tangents: tuple[Array]):
    (x,), (dx,) = primals, tangents
    s, c = sincos(x)
    return (s, c), (c * dx, -s * dx)
