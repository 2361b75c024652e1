"""Products and inverses of small matrices, with any axes in front.

Products multiply and sum: XLA on CPU fuses them with their neighbours, where a dot becomes a
kernel of its own. Inverses are written out: a LAPACK call inside a loop costs more than the loop.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def mv(a: Float[Array, "*#n i j"], x: Float[Array, "*#n j"]) -> Float[Array, "... i"]:
    """Matrix times vector."""
    return jnp.sum(a * x[..., None, :], axis=-1)


def mtv(a: Float[Array, "*#n i j"], x: Float[Array, "*#n i"]) -> Float[Array, "... j"]:
    """Transpose of a matrix times a vector."""
    return jnp.sum(a * x[..., :, None], axis=-2)


def mm(a: Float[Array, "*#n i j"], b: Float[Array, "*#n j k"]) -> Float[Array, "... i k"]:
    """Matrix times matrix."""
    return jnp.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)


def transpose(a: Float[Array, "*n i j"]) -> Float[Array, "*n j i"]:
    """Transpose of a matrix."""
    return jnp.swapaxes(a, -1, -2)


def inverse2(m: Float[Array, "*n 2 2"]) -> Float[Array, "*n 2 2"]:
    """Inverse of a 2 x 2 matrix."""
    a, b, c, d = m[..., 0, 0], m[..., 0, 1], m[..., 1, 0], m[..., 1, 1]
    rows = jnp.stack([jnp.stack([d, -b], -1), jnp.stack([-c, a], -1)], -2)
    return rows / (a * d - b * c)[..., None, None]


def inverse3(m: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3 3"]:
    """Inverse of a 3 x 3 matrix by cross products."""
    x, y, z = m[..., :, 0], m[..., :, 1], m[..., :, 2]
    rows = jnp.stack([jnp.cross(y, z), jnp.cross(z, x), jnp.cross(x, y)], -2)
    return rows / jnp.sum(x * rows[..., 0, :], -1)[..., None, None]


def _eliminate(work: Float[Array, "n m"], i: int | Array) -> Float[Array, "n m"]:
    row = work[i] / work[i, i]
    return (work - work[:, i][:, None] * row[None, :]).at[i].set(row)


def gauss_jordan(m: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a positive definite matrix without pivoting; one loop, a small program."""
    n = m.shape[0]
    work = jnp.concatenate([m, jnp.eye(n, dtype=m.dtype)], axis=1)
    return lax.fori_loop(0, n, lambda i, work: _eliminate(work, i), work)[:, n:]


def small_cholesky(m: Float[Array, "*n i i"]) -> Float[Array, "*n i i"]:
    """Lower triangular root of a positive definite matrix, unrolled; NaN if it is not."""
    n = m.shape[-1]
    columns = []
    for j in range(n):
        below = jnp.arange(n) >= j
        column = jnp.where(below, m[..., :, j] / jnp.sqrt(m[..., j, j])[..., None], 0.0)
        m = m - column[..., :, None] * column[..., None, :]
        columns.append(column)
    return jnp.stack(columns, axis=-1)


def small_inverse(m: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a positive definite matrix, unrolled: the fastest inside a scan."""
    n = m.shape[0]
    if n == 1:
        return 1.0 / m
    if n == 3:
        return inverse3(m)
    work = jnp.concatenate([m, jnp.eye(n, dtype=m.dtype)], axis=1)
    for i in range(n):
        work = _eliminate(work, i)
    return work[:, n:]
