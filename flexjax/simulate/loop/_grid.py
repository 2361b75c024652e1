"""The time grid: output times, even substeps between them, and a step boundary on every break of
the drive."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


class TimeGrid(eqx.Module):
    """Rows of steps. Spare rows have no length and are no tie."""

    t0: Float[Array, " n"]
    t1: Float[Array, " n"]
    piece: Float[Array, " n"]  # a time that picks the piece of every signal
    before: Float[Array, " n"]  # that of the row before; of the first row its own
    jump: Bool[Array, " n"]  # whether the row begins on a break
    # Between two times that coincide (breaks, or a break and an output): no length, so the state
    # stays, but its derivative with respect to either time is that of a step.
    tie: Bool[Array, " n"]
    slot: Int[Array, " n"]  # the output that the row ends on; the number of outputs if on none


def time_grid(
    ts: Float[Array, " T"],
    substeps: int,
    breaks: Float[Array, " b"],
    stagger: Float[Array, ""] | float = 0.0,
) -> TimeGrid:
    """All steps of a run: ``substeps`` to an output interval, and one more for every break.

    A break replaces the nearest boundary between two outputs, and the steps beside it are divided
    evenly. No step is longer than an even one, and only breaks close to each other or to an output
    leave a step shorter than half of it. Times closer than a millionth of a step count as one, the
    break before the output (and after the start). ``stagger`` bounds how far
    :func:`~flexjax.drive.signal.separate` moved equal breaks apart.
    """
    count = ts.shape[0] - 1
    fraction = jnp.arange(substeps, dtype=ts.dtype) / substeps
    inner = ts[:-1, None] + jnp.diff(ts)[:, None] * fraction[None, :]
    even = jnp.concatenate([inner.reshape(-1), ts[-1:]])
    index = jnp.arange(1, even.shape[0])
    slot = jnp.where(index % substeps == 0, index // substeps - 1, count)
    if breaks.shape[0] == 0:
        no = jnp.zeros(even.shape[0] - 1, bool)
        middle = lax.stop_gradient(0.5 * (even[:-1] + even[1:]))
        return TimeGrid(even[:-1], even[1:], middle, middle, no, no, slot)
    return _with_breaks(ts, even, slot, breaks, stagger)


def _with_breaks(
    ts: Float[Array, " T"],
    even: Float[Array, " n+1"],
    slot: Int[Array, " n"],
    breaks: Float[Array, " b"],
    stagger: Float[Array, ""] | float,
) -> TimeGrid:
    many, count = breaks.shape[0], ts.shape[0] - 1
    fixed = lax.stop_gradient(even)
    step = jnp.diff(fixed)
    breaks = breaks[jnp.argsort(lax.stop_gradient(breaks))]
    raw = lax.stop_gradient(breaks)
    ulp = jnp.finfo(ts.dtype).eps * jnp.max(jnp.abs(fixed))
    margin = 4 * ulp + stagger
    real = (raw >= fixed[0] - margin) & (raw <= fixed[-1] + margin)

    def distinct(step):
        """The distance below which two times count as one."""
        return jnp.maximum(1e-6 * step, 2 * margin)

    # A break very close to an output moves onto it; it replaces any other boundary.
    cell = jnp.clip(jnp.searchsorted(fixed, raw), 1, even.shape[0] - 1) - 1
    left = raw - fixed[cell] < fixed[cell + 1] - raw
    nearest = jnp.where(left, cell, cell + 1)
    output = jnp.concatenate([jnp.ones(1, bool), slot < count])
    snap = output[nearest] & (jnp.abs(raw - fixed[nearest]) < distinct(step[cell]))
    replaced = jnp.zeros(even.shape[0] + 1, bool)
    replaced = replaced.at[jnp.where(real, nearest, even.shape[0])].set(True)[:-1] & ~output

    # Anchors in the order of time: the start, breaks before an output at the same time. Those that
    # are not needed come last.
    needed = jnp.concatenate([jnp.ones(1, bool), real, ~replaced[1:]])
    value = jnp.concatenate([fixed[:1], jnp.where(snap, fixed[nearest], raw), fixed[1:]])
    order = jnp.argsort(jnp.where(needed, value, jnp.inf))
    times = jnp.concatenate([even[:1], breaks, even[1:]])[order]
    slots = jnp.concatenate([jnp.full(1 + many, count), slot])[order]
    value, needed, is_break = value[order], needed[order], (order >= 1) & (order <= many)
    is_break = is_break & needed
    anchors = _Anchors(times, value, slots, needed, is_break)
    return _divided(anchors, ts, fixed, step, many, ulp, distinct)


class _Anchors(NamedTuple):
    """Step boundaries in the order of time; those that are not needed come last."""

    times: Float[Array, " m"]
    value: Float[Array, " m"]  # of the times, without derivatives
    slot: Int[Array, " m"]
    needed: Bool[Array, " m"]
    is_break: Bool[Array, " m"]


def _divided(
    anchors: _Anchors,
    ts: Float[Array, " T"],
    fixed: Float[Array, " n+1"],
    step: Float[Array, " n"],
    many: int,
    ulp: Float[Array, ""],
    distinct: Callable[[Array], Array],
) -> TimeGrid:
    """The rows between the anchors; ``many``: number of breaks."""
    times, value, slots, needed, is_break = anchors
    rows, count = step.shape[0] + many, ts.shape[0] - 1
    # A break very close to the one before it takes its value. Derivatives stay those of the break.
    whole = step[jnp.clip(jnp.searchsorted(fixed, value) - 1, 0, step.shape[0] - 1)][1:]
    apart = jnp.concatenate([jnp.ones(1, bool), jnp.diff(value) >= distinct(whole)])
    value = value[lax.cummax(jnp.where(apart, jnp.arange(apart.shape[0]), 0))]
    moved = value + (times - lax.stop_gradient(times))

    # Each gap is divided into even parts, one row each.
    parts = jnp.ceil((jnp.diff(value) - distinct(whole)) / whole)
    parts = jnp.where(needed[1:], jnp.maximum(parts, 1), 0).astype(jnp.int32)
    ends = jnp.cumsum(parts)
    row = jnp.arange(rows)
    used = row < ends[-1]
    k = jnp.minimum(jnp.searchsorted(ends, row, side="right"), parts.shape[0] - 1)
    n = jnp.maximum(parts[k], 1)
    j = row - ends[k] + parts[k]
    t0, t1 = (jnp.where(used, _between(moved[k], moved[k + 1], i, n), ts[-1]) for i in (j, j + 1))
    v0, v1 = lax.stop_gradient((t0, t1))
    broken = jnp.sort(jnp.where(is_break, value, jnp.nan))[:many]
    jump = used & jnp.any(v0[:, None] == broken[None, :], axis=1)
    # A piece lies between the breaks as the signals have them, not as they were moved.
    raw = lax.stop_gradient(times)
    lower = lax.cummax(jnp.where(is_break, raw, -jnp.inf))[k]
    upper = lax.cummin(jnp.where(is_break, raw, jnp.inf), reverse=True)[k + 1]
    pad = jnp.minimum(ulp, 0.25 * (upper - lower))
    piece = jnp.clip(0.5 * (v0 + v1), lower + pad, upper - pad)
    slot = jnp.where(used & (j + 1 == n), slots[k + 1], count)
    before = jnp.concatenate([piece[:1], piece[:-1]])
    return TimeGrid(t0, t1, piece, before, jump, used & ~(v1 > v0), slot)


def _between(
    a: Float[Array, "..."], b: Float[Array, "..."], i: Int[Array, "..."], n: Int[Array, "..."]
) -> Float[Array, "..."]:
    """The i-th of n + 1 evenly spaced times from a to b, both ends exact."""
    share = i / n
    return jnp.where(i == n, b, a + share.astype(a.dtype) * (b - a))
