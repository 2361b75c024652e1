"""Products of small matrices with the components first: vectors (d, ...), matrices (d, d, ...).

Loops over the axes behind the components are innermost and contiguous, which XLA vectorises on
CPU. With the components last it does not.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def components_first(x: Array, count: int = 1) -> Array:
    """``x`` with its last ``count`` axes moved to the front."""
    return jnp.moveaxis(x, tuple(range(-count, 0)), tuple(range(count)))


def components_last(x: Array, count: int = 1) -> Array:
    """``x`` with its first ``count`` axes moved to the end."""
    return jnp.moveaxis(x, tuple(range(count)), tuple(range(-count, 0)))


def mv(a: Float[Array, "i j *#n"], x: Float[Array, "j *#n"]) -> Float[Array, "i ..."]:
    """Matrix times vector."""
    return jnp.sum(a * x[None], axis=1)


def mtv(a: Float[Array, "i j *#n"], x: Float[Array, "i *#n"]) -> Float[Array, "j ..."]:
    """Transpose of a matrix times a vector."""
    return jnp.sum(a * x[:, None], axis=0)


def mm(a: Float[Array, "i j *#n"], b: Float[Array, "j k *#n"]) -> Float[Array, "i k ..."]:
    """Matrix times matrix."""
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def transpose(a: Float[Array, "i j *n"]) -> Float[Array, "j i *n"]:
    """Transpose of a matrix."""
    return jnp.swapaxes(a, 0, 1)


def lift(x: Array, ndim: int) -> Array:
    """``x`` with axes of length one behind it, up to ``ndim`` axes."""
    return x.reshape(x.shape + (1,) * (ndim - x.ndim))


def eye_like(a: Float[Array, "d e *n"]) -> Array:
    """The unit matrix (d, d, 1, ...) with as many axes as ``a``."""
    return lift(jnp.eye(a.shape[0], dtype=a.dtype), a.ndim)
