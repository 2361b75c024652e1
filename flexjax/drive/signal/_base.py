"""A signal: a function of time with exact derivatives, and the times at which they jump."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from flexjax._types import (
    NumbersLike,
    PieceTime,
    ScalarLike,
    Times,
    Value,
    as_float,
    hash_by_leaves,
)
from flexjax.drive.signal._check import Range, check_finite, positive_times

Motion = tuple[Value, Value, Value]


class AbstractSignal(eqx.Module):
    """An input in time. Parameters are float leaves: they have gradients and never recompile."""

    # Leave np.float64(2) * signal to the signal.
    __array_ufunc__ = None

    def __hash__(self) -> int:
        return hash_by_leaves(self)

    @abc.abstractmethod
    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        """Value, velocity and acceleration at time t.

        `piece_time` selects the piece between two breaks. A step passes its midpoint, so that both
        of its ends use the same smooth piece. None means t; a break belongs to the piece after it.
        Where value, velocity and acceleration are continuous, only t counts: a step may cross the
        joint of two pieces, and the value there must not depend on the step.
        """

    @abc.abstractmethod
    def breaks(self) -> Times:
        """Times at which value, velocity or acceleration jump; their number is static."""

    @property
    def rate_jumps(self) -> bool:
        """Static: whether the velocity may jump at a break."""
        return self.breaks().shape[0] > 0

    def ranges(self) -> list[Range]:
        """The ranges of its parameters; every leaf must be finite anyway."""
        return positive_times(self)

    def __call__(self, t: NumbersLike) -> Value:
        """The value at t; an array of times gives values of shape t.shape + value.shape."""
        t = as_float(t)
        value = jax.vmap(lambda ti: self.evaluate(ti)[0])(t.reshape(-1))
        return value.reshape(t.shape + value.shape[1:])

    def __add__(self, other: "AbstractSignal | NumbersLike") -> "AbstractSignal":
        return Sum(self, other if isinstance(other, AbstractSignal) else Constant(other))

    def __radd__(self, other: NumbersLike) -> "AbstractSignal":
        return self + other

    def __sub__(self, other: "AbstractSignal | ArrayLike") -> "AbstractSignal":
        return self + -1.0 * other

    def __rsub__(self, other: ArrayLike) -> "AbstractSignal":
        return -1.0 * self + other

    def __mul__(self, factor: NumbersLike) -> "AbstractSignal":
        if isinstance(factor, AbstractSignal):
            raise TypeError(
                "the product of two signals is not defined: multiply a signal by a number, or add "
                "signals"
            )
        return Scaled(factor, self)

    def __rmul__(self, factor: NumbersLike) -> "AbstractSignal":
        return Scaled(factor, self)

    def __truediv__(self, divisor: ScalarLike) -> "AbstractSignal":
        return self * (1.0 / divisor)

    def __neg__(self) -> "AbstractSignal":
        return -1.0 * self


def no_breaks(like: Value) -> Times:
    return jnp.zeros((0,), jnp.result_type(like))


class Constant(AbstractSignal):
    """See `constant`."""

    value: Value = eqx.field(converter=as_float)

    def __check_init__(self):
        check_finite("constant", value=self.value)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        zero = jnp.zeros_like(self.value)
        return self.value, zero, zero

    def breaks(self) -> Times:
        return no_breaks(self.value)


class Sum(AbstractSignal):
    """a + b."""

    a: AbstractSignal
    b: AbstractSignal

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return jax.tree.map(jnp.add, self.a.evaluate(t, piece_time), self.b.evaluate(t, piece_time))

    @property
    def rate_jumps(self) -> bool:
        return self.a.rate_jumps or self.b.rate_jumps

    def breaks(self) -> Times:
        return jnp.concatenate([self.a.breaks(), self.b.breaks()])


class Scaled(AbstractSignal):
    """factor * signal."""

    factor: Value = eqx.field(converter=as_float)
    signal: AbstractSignal

    def __check_init__(self):
        check_finite("scaled signal", factor=self.factor)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return jax.tree.map(lambda x: self.factor * x, self.signal.evaluate(t, piece_time))

    @property
    def rate_jumps(self) -> bool:
        return self.signal.rate_jumps

    def breaks(self) -> Times:
        return self.signal.breaks()


def constant(value: NumbersLike) -> Constant:
    """A constant signal.

    Arguments:
        value: a number or a vector.

    Returns:
        A signal.

    Raises:
        ValueError: the value is not numeric.

    >>> import flexjax as fx
    >>> float(fx.constant(0.5)(1.0))
    0.5
    """
    return Constant(value)
