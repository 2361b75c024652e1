"""Cosines and sines of many angles at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

# pi/2 in three parts, and the polynomials on [-pi/4, pi/4], as in fdlibm (s_sin.c, k_sin.c, k_cos.c).
PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


@jax.custom_jvp
def cos_sin(angle: Array) -> tuple[Array, Array]:
    """(cos, sin). In batches by polynomials in double precision: XLA calls a function for each number, which takes four
    times as long."""
    return _one(angle)


@cos_sin.defjvp
def _jvp(primals, tangents):
    c, s = cos_sin(*primals)
    return (c, s), (-s * tangents[0], c * tangents[0])


@jax.custom_batching.custom_vmap
def _one(angle):
    return jnp.cos(angle), jnp.sin(angle)


@_one.def_vmap
def _many(size, batched, angle):
    return (polynomials(angle) if angle.dtype == jnp.float64 else _one(angle)), (True, True)


def polynomials(x: Array) -> tuple[Array, Array]:
    """To rounding for angles up to some 1e5 turns."""
    k = jnp.round(x * (2 / jnp.pi))
    r = x - k * PARTS[0] - k * PARTS[1] - k * PARTS[2]
    z = r * r

    def horner(coefficients):
        out = coefficients[-1]
        for a in coefficients[-2::-1]:
            out = out * z + a
        return out

    s, c = r + r * z * horner(SINE), 1 - 0.5 * z + z * z * horner(COSINE)
    half = 0.5 * k
    odd = half != jnp.floor(half)
    quarter = k - 4 * jnp.floor(0.25 * k)
    cos, sin = jnp.where(odd, s, c), jnp.where(odd, c, s)
    return jnp.where((quarter == 1) | (quarter == 2), -cos, cos), jnp.where(quarter >= 2, -sin, sin)
