"""Dense linear equations without LAPACK, for use inside large programs.

jaxlib 0.10.1 (its conversion of a program to XLA's form, on a process that may use one core only) loses the configuration of LAPACK's calls in the functions
that it reaches after certain large ones; the program then ends with "No registered implementation for untyped custom call to lapack_dgetrf_ffi". Whether
LAPACK was used before makes no difference. Small programs of their own were never seen to fail.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def _eliminate(matrix, rhs):
    """Gauss and Jordan with the largest pivot of each column; rows stay where they are, and ``rows`` remembers which belongs to which unknown."""
    n = rhs.shape[0]
    at = jnp.arange(n)

    def column(k, carry):
        table, free, rows = carry
        this = lax.dynamic_index_in_dim(table, k, axis=1, keepdims=False)
        p = jnp.argmax(jnp.where(free, jnp.abs(this), -1.0))
        pivot = lax.dynamic_index_in_dim(table, p, axis=0, keepdims=False)
        pivot = pivot / lax.dynamic_index_in_dim(this, p, keepdims=False)
        table = jnp.where((at == p)[:, None], pivot[None, :], table - this[:, None] * pivot[None, :])
        return table, free & (at != p), jnp.where(at == k, p, rows)

    start = (jnp.concatenate([matrix, rhs[:, None]], axis=1), jnp.ones(n, bool), at)
    table, _, rows = lax.fori_loop(0, n, column, start)
    return table[rows, n]


def dense_solve(matrix: Float[Array, "n n"], rhs: Float[Array, " n"]) -> Float[Array, " n"]:
    """x of ``matrix @ x = rhs``, with derivatives in both modes. A singular matrix gives numbers that are not finite."""
    return lax.custom_linear_solve(lambda x: matrix @ x, rhs, lambda _, b: _eliminate(matrix, b), lambda _, b: _eliminate(matrix.T, b))
