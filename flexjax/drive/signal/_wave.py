"""Waves that begin and end: smooth inside, with jumps at both ends."""

from math import pi

import equinox as eqx
import jax.numpy as jnp

from flexjax._types import NumbersLike, PieceTime, Scalar, ScalarLike, Times, Value, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import check_finite, check_motion, check_positive, check_scalar


def between(
    t: ScalarLike, piece_time: PieceTime, breaks: Times, inside: Motion, after: Value
) -> Motion:
    """Zero before the first break, `inside` up to the second, then `after` at rest."""
    piece_time = t if piece_time is None else piece_time
    on, past = (piece_time >= breaks[0]) & (piece_time < breaks[1]), piece_time >= breaks[1]
    value, velocity, acceleration = inside
    value = jnp.where(on, value, jnp.where(past, after, 0.0))
    return value, jnp.where(on, velocity, 0.0), jnp.where(on, acceleration, 0.0)


class Cosine(AbstractSignal):
    """See `cosine`."""

    amplitude: Value = eqx.field(converter=as_float)
    period: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_positive("cosine", period=self.period)
        check_scalar("cosine", begin=self.begin)
        check_finite("cosine", amplitude=self.amplitude)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        w = 2 * pi / self.period
        sine, cosine = jnp.sin(w * (t - self.begin)), jnp.cos(w * (t - self.begin))
        inside = (
            self.amplitude * (1.0 - cosine),
            self.amplitude * (w * sine),
            self.amplitude * (w**2 * cosine),
        )
        return between(t, piece_time, self.breaks(), inside, 2.0 * self.amplitude)

    @property
    def rate_jumps(self) -> bool:
        return False  # only the acceleration does

    def breaks(self) -> Times:
        return jnp.stack([self.begin, self.begin + 0.5 * self.period])


class Chirp(AbstractSignal):
    """See `chirp`."""

    amplitude: Value = eqx.field(converter=as_float)
    first: Value = eqx.field(converter=as_float)
    last: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    phase: Value = eqx.field(converter=as_float, default=0.0)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion(
            "chirp",
            self.duration,
            self.begin,
            amplitude=self.amplitude,
            first=self.first,
            last=self.last,
            phase=self.phase,
        )

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        tau = t - self.begin
        rate = 2 * pi * (self.last - self.first) / self.duration
        w = 2 * pi * self.first + rate * tau
        angle = (2 * pi * self.first + 0.5 * rate * tau) * tau + self.phase
        sine, cosine = self.amplitude * jnp.sin(angle), self.amplitude * jnp.cos(angle)
        inside = (sine, w * cosine, rate * cosine - w**2 * sine)
        return between(t, piece_time, self.breaks(), inside, jnp.zeros_like(sine))

    def breaks(self) -> Times:
        return jnp.stack([self.begin, self.begin + self.duration])


def cosine(amplitude: NumbersLike, period: ScalarLike, begin: ScalarLike = 0.0) -> Cosine:
    """amplitude (1 - cos(2 pi t/period)) for half a period, then 2 amplitude.

    Accelerations jump at both ends. Paper 002, eq. 17, which prints the final value as `amplitude`.

    Arguments:
        amplitude: half the final value.
        period: period [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    >>> import flexjax as fx
    >>> round(float(fx.cosine(1.0, period=4.0)(1.0)), 6)
    1.0
    """
    return Cosine(amplitude, period, begin)


def chirp(
    amplitude: NumbersLike,
    first: NumbersLike,
    last: NumbersLike,
    duration: ScalarLike,
    phase: NumbersLike = 0.0,
    begin: ScalarLike = 0.0,
) -> Chirp:
    """A sine with linearly changing frequency; zero before and after.

    Arguments:
        amplitude: amplitude.
        first, last: frequency at the beginning and at the end [Hz].
        duration: duration [s].
        phase: phase at the beginning [rad].
        begin: time at which it begins [s].

    Returns:
        A signal.

    >>> import flexjax as fx
    >>> float(fx.chirp(1.0, 1.0, 5.0, duration=2.0)(3.0))
    0.0
    """
    return Chirp(amplitude, first, last, duration, phase, begin)
