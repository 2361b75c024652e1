"""Curves through samples: cubic splines with continuous acceleration, and straight lines."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from flexjax._types import NumbersLike, PieceTime, ScalarLike, Times, Value, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import Range, check_same_length, check_times, increasing, refuse
from flexjax.drive.signal._switched import parabolas, pick

Ends = Literal["not-a-knot", "natural", "clamped"]


def knot_slopes(times: Times, values: Value, ends: Ends) -> Value:
    """Slopes at the knots that make the cubic Hermite curve C2: one tridiagonal solve."""
    from interpax import approx_df  # importing takes a while, and few drives need it

    def solve(column):
        # interpax would create the zeros of named conditions in the default dtype.
        zero = jnp.zeros((), column.dtype)
        order = {"clamped": 1, "natural": 2}.get(ends)
        bc = (ends if order is None else (order, zero),) * 2
        return approx_df(times, column, method="cubic2", axis=0, bc_type=bc)

    columns = values.reshape(values.shape[0], -1)
    return jax.vmap(solve, in_axes=1, out_axes=1)(columns).reshape(values.shape)


class Hermite(AbstractSignal):
    """Cubics through values with given slopes at the knots: a spline after `prepare`."""

    times: Times
    values: Value
    slopes: Value

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        piece_time = t if piece_time is None else piece_time
        # t selects the piece: nothing jumps at inner knots, so a step may cross one.
        k = jnp.sum(t >= self.times[1:-1])
        t0, t1 = pick(self.times, k), pick(self.times, k + 1)
        p0, p1 = pick(self.values, k), pick(self.values, k + 1)
        m0, m1 = pick(self.slopes, k), pick(self.slopes, k + 1)
        h = t1 - t0
        chord = (p1 - p0) / h
        curve, twist = (3.0 * chord - 2.0 * m0 - m1) / h, (m0 + m1 - 2.0 * chord) / h**2
        dt = t - t0
        value = p0 + dt * (m0 + dt * (curve + dt * twist))
        velocity = m0 + dt * (2.0 * curve + 3.0 * dt * twist)
        acceleration = 2.0 * curve + 6.0 * dt * twist
        before, after = piece_time < self.times[0], piece_time >= self.times[-1]
        rest = before | after
        value = jnp.where(before, self.values[0], jnp.where(after, self.values[-1], value))
        return value, jnp.where(rest, 0.0, velocity), jnp.where(rest, 0.0, acceleration)

    def breaks(self) -> Times:
        return jnp.stack([self.times[0], self.times[-1]])


class Spline(AbstractSignal):
    """See `spline`."""

    times: Times = eqx.field(converter=as_float)
    values: Value = eqx.field(converter=as_float)
    ends: Ends = eqx.field(static=True, default="not-a-knot")

    def __check_init__(self):
        check_times("spline", 2, times=self.times)
        check_same_length("spline", self.times, self.values)
        if self.ends not in ("not-a-knot", "natural", "clamped"):
            expected = "'not-a-knot', 'natural' or 'clamped'"
            refuse("spline", "ends", self.ends, expected, "Choose one of these.")

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        return self.prepared().evaluate(t, piece_time)

    def ranges(self) -> list[Range]:
        return [increasing(self.times)]

    def breaks(self) -> Times:
        return jnp.stack([self.times[0], self.times[-1]])

    def prepared(self) -> Hermite:
        return Hermite(self.times, self.values, knot_slopes(self.times, self.values, self.ends))


class Polyline(AbstractSignal):
    """See `recorded` with method "linear"."""

    times: Times = eqx.field(converter=as_float)
    values: Value = eqx.field(converter=as_float)

    def __check_init__(self):
        check_times("recorded", 2, times=self.times)
        check_same_length("recorded", self.times, self.values)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        zero = jnp.zeros_like(self.values[:1])
        widths = jnp.diff(self.times).reshape((-1,) + (1,) * (self.values.ndim - 1))
        velocity = jnp.concatenate([zero, jnp.diff(self.values, axis=0) / widths, zero])
        position = jnp.concatenate([self.values[:1], self.values])
        return parabolas(t, piece_time, self.times, position, velocity, jnp.zeros_like(velocity))

    def ranges(self) -> list[Range]:
        return [increasing(self.times)]

    def breaks(self) -> Times:
        return self.times


def spline(times: NumbersLike, values: NumbersLike, ends: Ends = "not-a-knot") -> Spline:
    """C2 cubic spline through samples; constant before the first and after the last.

    Its breaks are the first and the last time.

    Arguments:
        times: increasing times (n,) [s].
        values: values (n, ...).
        ends: "clamped" starts and stops with zero velocity, for a motion from rest to rest;
            "natural" has zero acceleration there; "not-a-knot" follows a smooth curve best.

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> round(float(fx.spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], ends="clamped")(1.0)), 6)
    1.0
    """
    return Spline(times, values, ends)


def recorded(
    times: NumbersLike, values: NumbersLike, method: Literal["cubic2", "linear"] = "cubic2"
) -> AbstractSignal:
    """Samples as a signal.

    Arguments:
        times: increasing times (n,) [s].
        values: values (n, ...).
        method: "cubic2" is the C2 spline; "linear" joins samples by straight lines. A line makes
            every sample a break and the end of a step: use "cubic2" for dense recordings.

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> float(fx.recorded([0.0, 1.0], [0.0, 2.0], method="linear")(0.25))
    0.5
    """
    if method not in ("cubic2", "linear"):
        refuse("recorded", "method", method, "'cubic2' or 'linear'", "Choose one of these.")
    return Spline(times, values) if method == "cubic2" else Polyline(times, values)


def prepare(tree: Any) -> Any:
    """Solve the tridiagonal systems of all splines in a pytree; call it once before a time loop.

    Not done at construction, so that gradients w.r.t. times and values stay complete.
    """
    is_spline = lambda x: isinstance(x, Spline)
    return jax.tree.map(lambda x: x.prepared() if is_spline(x) else x, tree, is_leaf=is_spline)
