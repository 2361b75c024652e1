"""Signals made of signals; sums and multiples are operators of the signals themselves."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from flexjax._types import PieceTime, Scalar, ScalarLike, Times, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import check_scalar, refuse


class Shifted(AbstractSignal):
    """See `shift`."""

    signal: AbstractSignal
    delay: Scalar = eqx.field(converter=as_float)

    def __check_init__(self):
        check_scalar("shift", delay=self.delay)

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        return self.signal.evaluate(t - self.delay, None if at is None else at - self.delay)

    def breaks(self) -> Times:
        return self.signal.breaks() + self.delay


class Stacked(AbstractSignal):
    """See `stack`."""

    signals: tuple[AbstractSignal, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        if not self.signals or not all(isinstance(s, AbstractSignal) for s in self.signals):
            kinds = [type(s).__name__ for s in self.signals]
            refuse(
                "stack",
                "signals",
                kinds,
                "at least one signal",
                "Wrap plain numbers in constant(...).",
            )

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        return jax.tree.map(lambda *x: jnp.stack(x), *(s.evaluate(t, at) for s in self.signals))

    def breaks(self) -> Times:
        return jnp.concatenate([s.breaks() for s in self.signals])


def shift(signal: AbstractSignal, delay: ScalarLike) -> Shifted:
    """The same signal, `delay` seconds later."""
    return Shifted(signal, delay)


def stack(signals: Sequence[AbstractSignal]) -> Stacked:
    """Several scalar signals as one vector signal, of shape (k,)."""
    return Stacked(signals)
