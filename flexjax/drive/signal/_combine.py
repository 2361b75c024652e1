"""Signals made of signals; see the operators of `AbstractSignal` for sums and multiples."""

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

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return self.signal.evaluate(
            t - self.delay, None if piece_time is None else piece_time - self.delay
        )

    @property
    def rate_jumps(self) -> bool:
        return self.signal.rate_jumps

    def breaks(self) -> Times:
        return self.signal.breaks() + self.delay


class Stacked(AbstractSignal):
    """See `stack`."""

    signals: tuple[AbstractSignal, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        if not self.signals or not all(isinstance(s, AbstractSignal) for s in self.signals):
            kinds = [type(s).__name__ for s in self.signals]
            remedy = "Wrap plain numbers in constant(...)."
            refuse("stack", "signals", kinds, "at least one signal", remedy)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return jax.tree.map(
            lambda *x: jnp.stack(x), *(s.evaluate(t, piece_time) for s in self.signals)
        )

    @property
    def rate_jumps(self) -> bool:
        return any(s.rate_jumps for s in self.signals)

    def breaks(self) -> Times:
        return jnp.concatenate([s.breaks() for s in self.signals])


def shift(signal: AbstractSignal, delay: ScalarLike) -> Shifted:
    """Delay a signal.

    Arguments:
        signal: the signal.
        delay: delay [s].

    Returns:
        A signal.

    >>> import flexjax as fx
    >>> float(fx.shift(fx.ramp(2.0, duration=4.0), 1.0)(2.0))
    0.5
    """
    return Shifted(signal, delay)


def stack(signals: Sequence[AbstractSignal]) -> Stacked:
    """Combine scalar signals into one vector signal of shape (k,).

    Arguments:
        signals: k signals of shape ().

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.stack([fx.constant(1.0), fx.constant(2.0)])(0.0).tolist()
    [1.0, 2.0]
    """
    return Stacked(signals)
