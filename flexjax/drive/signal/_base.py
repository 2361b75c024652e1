"""A signal: a function of time with exact first and second derivatives, and the times at which they jump."""

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
from flexjax.drive.signal._check import check_finite

Motion = tuple[Value, Value, Value]


class AbstractSignal(eqx.Module):
    """An input in time. Every leaf is a float array: a changed number never recompiles, every number has a gradient."""

    # numpy numbers on the left (np.float64(2) * signal) must leave the product to the signal
    __array_ufunc__ = None

    def __hash__(self) -> int:
        return hash_by_leaves(self)

    @abc.abstractmethod
    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        """Value, velocity and acceleration at time t.

        `at` picks the piece between breaks (a step passes its midpoint), so that both ends of a step that lies between
        two breaks see the same smooth piece; None means t itself, and then a break belongs to the piece after it.
        Where pieces join without a jump in value, velocity and acceleration, t alone decides: there a step may
        lie across the joint, and the value at its end must not depend on which step asks.
        """

    @abc.abstractmethod
    def breaks(self) -> Times:
        """The times at which value, velocity or acceleration jump: a static number of traced times."""

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
                "the product of two signals is not defined: multiply a signal by a number, or add signals"
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

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        zero = jnp.zeros_like(self.value)
        return self.value, zero, zero

    def breaks(self) -> Times:
        return no_breaks(self.value)


class Sum(AbstractSignal):
    """a + b."""

    a: AbstractSignal
    b: AbstractSignal

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        return jax.tree.map(jnp.add, self.a.evaluate(t, at), self.b.evaluate(t, at))

    def breaks(self) -> Times:
        return jnp.concatenate([self.a.breaks(), self.b.breaks()])


class Scaled(AbstractSignal):
    """factor * signal."""

    factor: Value = eqx.field(converter=as_float)
    signal: AbstractSignal

    def __check_init__(self):
        check_finite("scaled signal", factor=self.factor)

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        return jax.tree.map(lambda x: self.factor * x, self.signal.evaluate(t, at))

    def breaks(self) -> Times:
        return self.signal.breaks()


def constant(value: NumbersLike) -> Constant:
    """The same value (a number or a vector) at all times."""
    return Constant(value)
