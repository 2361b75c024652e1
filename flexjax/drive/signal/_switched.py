"""Signals with jumps: pieces of constant acceleration between breaks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import NumbersLike, PieceTime, Scalar, ScalarLike, Times, Value, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import (
    Range,
    as_concrete,
    check_finite,
    check_motion,
    check_positive,
    check_same_length,
    check_times,
    in_order,
    refuse,
)
from flexjax.drive.signal._ties import distinct


def pick(rows: jax.Array, k: jax.Array) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(rows, k, axis=0, keepdims=False)


def parabolas(
    t: ScalarLike,
    piece_time: PieceTime,
    times: Times,
    position: Float[Array, "pieces ..."],
    velocity: Float[Array, "pieces ..."],
    acceleration: Float[Array, "pieces ..."],
) -> Motion:
    """Motion on n + 1 pieces between n times; row k holds the motion at the start of piece k."""
    k = jnp.sum((t if piece_time is None else piece_time) >= times)
    dt = t - pick(times, jnp.maximum(k - 1, 0))
    p, v, a = pick(position, k), pick(velocity, k), pick(acceleration, k)
    return p + dt * (v + 0.5 * dt * a), v + dt * a, a


def rows(*values: Value) -> jax.Array:
    return jnp.stack(jnp.broadcast_arrays(*values))


class StepAcceleration(AbstractSignal):
    """See `step_acceleration`."""

    start: Value = eqx.field(converter=as_float)
    end: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("step_acceleration", self.duration, self.begin, start=self.start, end=self.end)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        way = self.end - self.start
        zero, a = jnp.zeros_like(way), 4.0 * way / self.duration**2
        position = rows(self.start, self.start, self.start + 0.5 * way, self.end)
        velocity = rows(zero, zero, 2.0 * way / self.duration, zero)
        return parabolas(t, piece_time, self.breaks(), position, velocity, rows(zero, a, -a, zero))

    @property
    def rate_jumps(self) -> bool:
        return False  # only the acceleration does

    def breaks(self) -> Times:
        return self.begin + self.duration * jnp.asarray([0.0, 0.5, 1.0], self.duration.dtype)


class Trapezoid(AbstractSignal):
    """See `trapezoid`."""

    start: Value = eqx.field(converter=as_float)
    end: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    ramp: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("trapezoid", self.duration, self.begin, start=self.start, end=self.end)
        check_positive("trapezoid", ramp=self.ramp)
        duration, ramp = as_concrete(self.duration), as_concrete(self.ramp)
        if duration is not None and ramp is not None and ramp > 0.5 * duration * (1 + 1e-6):
            expected = f"at most half of duration = {float(duration)}"
            remedy = "Shorten the ramp or lengthen the duration."
            refuse("trapezoid", "ramp", ramp, expected, remedy)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        way = self.end - self.start
        zero, cruise = jnp.zeros_like(way), way / (self.duration - self.ramp)
        a, ramped = cruise / self.ramp, 0.5 * cruise * self.ramp
        position = rows(self.start, self.start, self.start + ramped, self.end - ramped, self.end)
        velocity = rows(zero, zero, cruise, cruise, zero)
        acceleration = rows(zero, a, zero, -a, zero)
        return parabolas(t, piece_time, self.breaks(), position, velocity, acceleration)

    @property
    def rate_jumps(self) -> bool:
        return False  # only the acceleration does

    def ranges(self) -> list[Range]:
        share = self.ramp / self.duration
        expected = "at most 1/2: a shorter ramp or a longer duration"
        limit = Range("ramp / duration", share, lambda x: x <= 0.5 * (1 + 1e-6), expected)
        return [*super().ranges(), limit]

    def breaks(self) -> Times:
        zero = jnp.zeros_like(self.duration)
        times = rows(zero, self.ramp, self.duration - self.ramp, self.duration)
        return distinct(self.begin + times)  # without a cruise the inner two are equal


class Ramp(AbstractSignal):
    """See `ramp`."""

    value: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("ramp", self.duration, self.begin, value=self.value)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        zero = jnp.zeros_like(self.value)
        position, velocity = (
            rows(zero, zero, self.value),
            rows(zero, self.value / self.duration, zero),
        )
        return parabolas(t, piece_time, self.breaks(), position, velocity, jnp.zeros_like(velocity))

    def breaks(self) -> Times:
        return rows(self.begin, self.begin + self.duration)


class PiecewiseConstant(AbstractSignal):
    """See `piecewise_constant`."""

    times: Times = eqx.field(converter=as_float)
    values: Value = eqx.field(converter=as_float)

    def __check_init__(self):
        check_times("piecewise_constant", 1, times=self.times)
        check_same_length("piecewise_constant", self.times, self.values)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        k = jnp.sum((t if piece_time is None else piece_time) >= self.breaks())
        value = pick(jnp.concatenate([jnp.zeros_like(self.values[:1]), self.values]), k)
        zero = jnp.zeros_like(value)
        return value, zero, zero

    def ranges(self) -> list[Range]:
        return [in_order(self.times)]

    def breaks(self) -> Times:
        return distinct(self.times)


class BangBang(AbstractSignal):
    """See `bang_bang`."""

    amplitude: Value = eqx.field(converter=as_float)
    times: Times = eqx.field(converter=as_float)

    def __check_init__(self):
        check_finite("bang_bang", amplitude=self.amplitude)
        check_times("bang_bang", 2, times=self.times)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        k = jnp.sum((t if piece_time is None else piece_time) >= self.breaks())
        outside = (k == 0) | (k == self.times.shape[0])
        sign = jnp.where(outside, 0.0, jnp.where(k % 2 == 1, 1.0, -1.0))
        zero = jnp.zeros_like(self.amplitude)
        return sign.astype(self.amplitude.dtype) * self.amplitude, zero, zero

    def ranges(self) -> list[Range]:
        return [in_order(self.times)]

    def breaks(self) -> Times:
        return distinct(self.times)


def step_acceleration(
    start: NumbersLike, end: NumbersLike, duration: ScalarLike, begin: ScalarLike = 0.0
) -> StepAcceleration:
    """Constant acceleration 4 (end - start)/duration^2, then its opposite; from rest to rest.

    Paper 004, manoeuvres ST.

    Arguments:
        start, end: values before and after.
        duration: duration [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> float(fx.step_acceleration(0.0, 1.0, duration=2.0)(1.0))
    0.5
    """
    return StepAcceleration(start, end, duration, begin)


def trapezoid(
    start: NumbersLike,
    end: NumbersLike,
    duration: ScalarLike,
    ramp: ScalarLike,
    begin: ScalarLike = 0.0,
) -> Trapezoid:
    """Motion from rest to rest with a trapezoidal velocity.

    Arguments:
        start, end: values before and after.
        duration: duration [s].
        ramp: duration of acceleration and of braking [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> round(float(fx.trapezoid(0.0, 1.0, duration=2.0, ramp=0.5)(1.0)), 6)
    0.5
    """
    return Trapezoid(start, end, duration, ramp, begin)


def ramp(value: NumbersLike, duration: ScalarLike, begin: ScalarLike = 0.0) -> Ramp:
    """From zero to a value at constant rate.

    Arguments:
        value: final value.
        duration: duration [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> float(fx.ramp(2.0, duration=4.0)(1.0))
    0.5
    """
    return Ramp(value, duration, begin)


def step(value: NumbersLike, time: ScalarLike = 0.0) -> PiecewiseConstant:
    """Zero before a time, a value from then on.

    Arguments:
        value: final value.
        time: time of the jump [s].

    Returns:
        A signal.

    >>> import flexjax as fx
    >>> fx.step(3.0, time=1.0)([0.5, 1.5]).tolist()
    [0.0, 3.0]
    """
    return PiecewiseConstant(as_float(time)[None], as_float(value)[None])


def piecewise_constant(times: NumbersLike, values: NumbersLike) -> PiecewiseConstant:
    """values[k] from times[k] to the next time; zero before the first.

    Arguments:
        times: increasing times (n,) [s].
        values: values (n, ...).

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.piecewise_constant([0.0, 1.0], [2.0, 5.0])([0.5, 1.5]).tolist()
    [2.0, 5.0]
    """
    return PiecewiseConstant(times, values)


def bang_bang(amplitude: NumbersLike, times: NumbersLike) -> BangBang:
    """+amplitude between the first two times, -amplitude between the next two, and so on.

    Arguments:
        amplitude: amplitude.
        times: increasing times [s]; zero before the first and after the last.

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.bang_bang(1.0, [0.0, 1.0, 2.0])([0.5, 1.5]).tolist()
    [1.0, -1.0]
    """
    return BangBang(amplitude, times)
