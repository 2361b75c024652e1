"""Signals without jumps in value, velocity and acceleration: they have no breaks."""

from math import pi

import equinox as eqx
import jax.numpy as jnp

from flexjax._types import (
    NumbersLike,
    PieceTime,
    Scalar,
    ScalarLike,
    Times,
    Value,
    Vector,
    as_float,
)
from flexjax.drive.signal._base import AbstractSignal, Motion, no_breaks
from flexjax.drive.signal._check import (
    check_broadcast,
    check_finite,
    check_motion,
    refuse,
)


def unit_time(t: ScalarLike, begin: ScalarLike, duration: ScalarLike) -> Scalar:
    """(t - begin)/duration within [0, 1]. Not clip, which halves derivatives at the ends."""
    u = (t - begin) / duration
    return jnp.where(u < 0.0, 0.0, jnp.where(u > 1.0, 1.0, u))


class Quintic(AbstractSignal):
    """See `quintic`."""

    start: Value = eqx.field(converter=as_float)
    end: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("quintic", self.duration, self.begin, start=self.start, end=self.end)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        u, way = unit_time(t, self.begin, self.duration), self.end - self.start
        value = self.start + way * (u**3 * (10.0 + u * (6.0 * u - 15.0)))
        velocity = way * (30.0 * u**2 * (1.0 - u) ** 2 / self.duration)
        return value, velocity, way * (60.0 * u * (1.0 + u * (2.0 * u - 3.0)) / self.duration**2)

    def breaks(self) -> Times:
        return no_breaks(self.begin)


class Cycloid(AbstractSignal):
    """See `cycloid`."""

    start: Value = eqx.field(converter=as_float)
    end: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("cycloid", self.duration, self.begin, start=self.start, end=self.end)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        u, way = unit_time(t, self.begin, self.duration), self.end - self.start
        sine, cosine = jnp.sin(2 * pi * u), jnp.cos(2 * pi * u)
        value = self.start + way * (u - sine / (2 * pi))
        return (
            value,
            way * ((1.0 - cosine) / self.duration),
            way * (2 * pi * sine / self.duration**2),
        )

    def breaks(self) -> Times:
        return no_breaks(self.begin)


class SpinUp(AbstractSignal):
    """See `spin_up`."""

    speed: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_motion("spin_up", self.duration, self.begin, speed=self.speed)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        u = unit_time(t, self.begin, self.duration)
        sine, cosine = jnp.sin(2 * pi * u), jnp.cos(2 * pi * u)
        past = t - self.begin - self.duration
        angle = self.duration * (0.5 * u**2 + (cosine - 1.0) / (2 * pi) ** 2)
        angle = angle + jnp.where(past > 0.0, past, 0.0)
        return (
            self.speed * angle,
            self.speed * (u - sine / (2 * pi)),
            self.speed * (1.0 - cosine) / self.duration,
        )

    def breaks(self) -> Times:
        return no_breaks(self.begin)


class Sine(AbstractSignal):
    """See `sine`."""

    amplitude: Value = eqx.field(converter=as_float)
    frequency: Value = eqx.field(converter=as_float)
    phase: Value = eqx.field(converter=as_float, default=0.0)

    def __check_init__(self):
        check_broadcast(
            "sine", amplitude=self.amplitude, frequency=self.frequency, phase=self.phase
        )

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        w = 2 * pi * self.frequency
        value = self.amplitude * jnp.sin(w * t + self.phase)
        return value, self.amplitude * w * jnp.cos(w * t + self.phase), -(w**2) * value

    def breaks(self) -> Times:
        return no_breaks(self.frequency)


class Polynomial(AbstractSignal):
    """See `polynomial`."""

    coefficients: Vector = eqx.field(converter=as_float)

    def __check_init__(self):
        shape = self.coefficients.shape
        if len(shape) < 1 or shape[0] < 1:
            remedy = "Give a list, constant term first."
            refuse("polynomial", "shape of coefficients", shape, "(n,), n >= 1", remedy)
        check_finite("polynomial", coefficients=self.coefficients)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        value = self.coefficients[-1] + jnp.zeros_like(t)
        velocity = half = jnp.zeros_like(value)
        for c in self.coefficients[-2::-1]:
            half = half * t + velocity
            velocity = velocity * t + value
            value = value * t + c
        return value, velocity, 2.0 * half

    def breaks(self) -> Times:
        return no_breaks(self.coefficients)


def quintic(
    start: NumbersLike, end: NumbersLike, duration: ScalarLike, begin: ScalarLike = 0.0
) -> Quintic:
    """Motion from rest to rest with zero velocity and acceleration at both ends.

    Paper 004, manoeuvres PP: start + (end - start) u^3 (10 - 15 u + 6 u^2).

    Arguments:
        start, end: values before and after.
        duration: duration [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> float(fx.quintic(0.0, 1.0, duration=2.0)(1.0))
    0.5
    """
    return Quintic(start, end, duration, begin)


def cycloid(
    start: NumbersLike, end: NumbersLike, duration: ScalarLike, begin: ScalarLike = 0.0
) -> Cycloid:
    """Motion from rest to rest: start + (end - start) (u - sin(2 pi u)/(2 pi)).

    Arguments:
        start, end: values before and after.
        duration: duration [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> round(float(fx.cycloid(0.0, 1.0, duration=2.0)(1.0)), 6)
    0.5
    """
    return Cycloid(start, end, duration, begin)


def spin_up(speed: NumbersLike, duration: ScalarLike, begin: ScalarLike = 0.0) -> SpinUp:
    """An angle from rest to constant speed, the classical test of centrifugal stiffening.

    Paper 003: speed/T (t^2/2 + (T/2 pi)^2 (cos(2 pi t/T) - 1)) for t < T, then speed (t - T/2).

    Arguments:
        speed: final speed [rad/s].
        duration: time T to reach it [s].
        begin: time at which it begins [s].

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> round(float(fx.spin_up(6.0, duration=15.0)(15.0)), 3)
    45.0
    """
    return SpinUp(speed, duration, begin)


def sine(amplitude: NumbersLike, frequency: NumbersLike, phase: NumbersLike = 0.0) -> Sine:
    """amplitude sin(2 pi frequency t + phase), at all times.

    Arguments:
        amplitude: amplitude.
        frequency: frequency [Hz].
        phase: phase [rad].

    Returns:
        A signal.

    >>> import flexjax as fx
    >>> round(float(fx.sine(2.0, frequency=0.25)(1.0)), 6)
    2.0
    """
    return Sine(amplitude, frequency, phase)


def polynomial(coefficients: NumbersLike) -> Polynomial:
    """coefficients[0] + coefficients[1] t + coefficients[2] t^2 + ..., at all times.

    Arguments:
        coefficients: constant term first.

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> float(fx.polynomial([1.0, 2.0])(3.0))
    7.0
    """
    return Polynomial(coefficients)
