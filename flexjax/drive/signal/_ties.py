"""Simultaneous breaks of several signals, separated by rounding errors.

Each break then has its place in an order. The derivative w.r.t. a break needs the drive between it
and the next one, even if no time passes in between.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from flexjax._types import PieceTime, Scalar, ScalarLike, Times
from flexjax.drive.signal._base import AbstractSignal, Motion

ULPS = 4


class Delayed(AbstractSignal):
    """A signal that changes its piece ``lag`` later; its value at a time is the same."""

    signal: AbstractSignal
    lag: Scalar

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return self.signal.evaluate(t, (t if piece_time is None else piece_time) - self.lag)

    @property
    def rate_jumps(self) -> bool:
        return self.signal.rate_jumps

    def breaks(self) -> Times:
        return self.signal.breaks() + self.lag


def _is_simple(x: Any) -> bool:
    """A signal that is not made of signals."""
    parts = jax.tree.leaves(x, is_leaf=lambda y: y is not x and isinstance(y, AbstractSignal))
    return isinstance(x, AbstractSignal) and not any(isinstance(y, AbstractSignal) for y in parts)


def separate(tree: Any, scale: Scalar) -> tuple[Any, Scalar]:
    """Separate simultaneous breaks of the signals in a pytree.

    ``scale``: the largest time of the run. Returns the pytree and the largest displacement.
    """
    signals = jax.tree.leaves(tree, is_leaf=_is_simple)
    many = sum(isinstance(x, AbstractSignal) and x.breaks().shape[0] > 0 for x in signals)
    if many < 2:
        return tree, jnp.zeros_like(scale)
    unit = lax.stop_gradient(ULPS * jnp.finfo(scale.dtype).eps * scale)
    count = iter(range(many))

    def delayed(x):
        if not isinstance(x, AbstractSignal) or x.breaks().shape[0] == 0:
            return x
        return Delayed(x, next(count) * unit)

    return jax.tree.map(delayed, tree, is_leaf=_is_simple), many * unit


def distinct(times: jax.Array) -> jax.Array:
    """Breaks of one signal with equal neighbours separated; derivatives are unchanged."""
    unit = ULPS * jnp.finfo(times.dtype).eps * jnp.max(jnp.abs(times))
    gap = lax.stop_gradient(jnp.diff(times))
    return times.at[1:].add(jnp.where((gap >= 0) & (gap < unit), unit, 0.0))
