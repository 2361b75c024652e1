"""The time grid: output times, even substeps between them, and a step boundary on every break of the drive."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def interval_grid(t0, t1, substeps: int, breaks: Float[Array, " b"]) -> tuple[Float[Array, " n"], Bool[Array, " n-1"]]:
    """Boundaries of the steps in one output interval, and which steps start on a break.

    The number of steps is static (``substeps`` plus the number of breaks); breaks outside give empty steps at the ends, which the march skips. A
    break within a millionth of a step of an even boundary is moved onto it, lest a step be too short to compute with.
    """
    even = t0 + (t1 - t0) * jnp.arange(substeps + 1, dtype=jnp.result_type(t0)) / substeps
    even = even.at[-1].set(t1)
    if breaks.shape[0] == 0:
        return even, jnp.zeros(substeps, bool)
    inside = jnp.clip(breaks, t0, t1)
    nearest = even[jnp.argmin(jnp.abs(inside[:, None] - even[None, :]), axis=1)]
    snapped = jnp.where(jnp.abs(inside - nearest) < 1e-6 * (t1 - t0) / substeps, nearest, inside)
    grid = jnp.sort(jnp.concatenate([even, snapped]))
    real = (breaks >= t0) & (breaks <= t1)
    jump = jnp.any((grid[:-1, None] == snapped[None, :]) & real[None, :], axis=1)
    return grid, jump
