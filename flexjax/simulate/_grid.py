"""The time grid: output times, even substeps between them, and a step boundary on every break of the drive."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class TimeGrid(eqx.Module):
    """Rows of steps. ``slot`` is the index of the output that a step ends on, or the number of outputs if it ends on none; a step of no length stands
    for a break outside the run or on another boundary."""

    t0: Float[Array, " n"]
    t1: Float[Array, " n"]
    jump: Bool[Array, " n"]
    slot: Int[Array, " n"]


def time_grid(ts: Float[Array, " T"], substeps: int, breaks: Float[Array, " b"]) -> TimeGrid:
    """All steps of a run: ``substeps`` to an output interval, and one more for every break.

    A break within a millionth of a step of an even boundary is moved onto it, lest a step be too short to compute with.
    """
    count = ts.shape[0] - 1
    fraction = jnp.arange(substeps, dtype=ts.dtype) / substeps
    inner = ts[:-1, None] + jnp.diff(ts)[:, None] * fraction[None, :]
    even = jnp.concatenate([inner.reshape(-1), ts[-1:]])
    if breaks.shape[0] == 0:
        ends = jnp.arange(1, count * substeps + 1)
        slot = jnp.where(ends % substeps == 0, ends // substeps - 1, count)
        return TimeGrid(even[:-1], even[1:], jnp.zeros(count * substeps, bool), slot)
    inside = jnp.clip(breaks, ts[0], ts[-1])
    after = jnp.clip(jnp.searchsorted(even, jax.lax.stop_gradient(inside)), 1, even.shape[0] - 1)
    left, right = even[after - 1], even[after]
    nearest = jnp.where(inside - left < right - inside, left, right)
    snapped = jnp.where(jnp.abs(inside - nearest) < 1e-6 * (right - left), nearest, inside)
    grid = jnp.sort(jnp.concatenate([even, snapped]))
    real = (breaks >= ts[0]) & (breaks <= ts[-1])
    jump = jnp.any((grid[:-1, None] == snapped[None, :]) & real[None, :], axis=1)
    last = jnp.searchsorted(jax.lax.stop_gradient(grid), jax.lax.stop_gradient(ts[1:])) - 1
    slot = jnp.full(grid.shape[0] - 1, count).at[last].set(jnp.arange(count))
    return TimeGrid(grid[:-1], grid[1:], jump, slot)
