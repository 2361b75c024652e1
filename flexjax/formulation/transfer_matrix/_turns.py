"""Cosines and sines of many angles at once."""

import jax.numpy as jnp
from jaxtyping import Array

from flexjax._rules import ruled
from flexjax.numerics.screw._trig import sincos


@ruled
def cos_sin(angle: Array) -> tuple[Array, Array]:
    """(cos, sin). In batches by polynomials in double precision: XLA calls a function for each
    number, which takes four times as long; for the few angles of one arm that is no loss."""
    return jnp.cos(angle), jnp.sin(angle)


@cos_sin.def_jvp
def _jvp(primals, tangents):
    c, s = cos_sin(*primals)
    return (c, s), (-s * tangents[0], c * tangents[0])


@cos_sin.def_vmap
def _many(size, batched, angle):
    return (sincos(angle)[::-1]) if angle.dtype == jnp.float64 else (jnp.cos(angle), jnp.sin(angle))
