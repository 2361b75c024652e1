"""Curves through samples: cubic splines with continuous acceleration, and straight lines."""

from typing import Any, Literal

import equinox as eqx
import interpax
import jax
import jax.numpy as jnp

from flexjax._types import NumbersLike, PieceTime, ScalarLike, Times, Value, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import check_same_length, check_times, refuse
from flexjax.drive.signal._switched import parabolas, pick

Ends = Literal["not-a-knot", "natural", "clamped"]


def knot_slopes(times: Times, values: Value, ends: Ends) -> Value:
    """The slopes at the knots that make the cubic Hermite curve C2: one tridiagonal solve."""

    def solve(column):
        # as numbers, because interpax makes the zeros of its named conditions in the default dtype
        zero = jnp.zeros((), column.dtype)
        order = {"clamped": 1, "natural": 2}.get(ends)
        bc = (ends if order is None else (order, zero),) * 2
        return interpax.approx_df(times, column, method="cubic2", axis=0, bc_type=bc)

    columns = values.reshape(values.shape[0], -1)
    return jax.vmap(solve, in_axes=1, out_axes=1)(columns).reshape(values.shape)


class Hermite(AbstractSignal):
    """Cubics through the values with given slopes at the knots; holds outside. What `prepare` makes of a spline."""

    times: Times
    values: Value
    slopes: Value

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        at = t if at is None else at
        # inner knots by t: nothing jumps there, so they are no breaks and a step may lie across one
        k = jnp.sum(t >= self.times[1:-1])
        t0, t1 = pick(self.times, k), pick(self.times, k + 1)
        p0, p1 = pick(self.values, k), pick(self.values, k + 1)
        m0, m1 = pick(self.slopes, k), pick(self.slopes, k + 1)
        h = t1 - t0
        chord = (p1 - p0) / h
        curve, twist = (3.0 * chord - 2.0 * m0 - m1) / h, (m0 + m1 - 2.0 * chord) / h**2
        dt = t - t0
        value = p0 + dt * (m0 + dt * (curve + dt * twist))
        velocity, acceleration = (
            m0 + dt * (2.0 * curve + 3.0 * dt * twist),
            2.0 * curve + 6.0 * dt * twist,
        )
        before, after = at < self.times[0], at >= self.times[-1]
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
            refuse(
                "spline",
                "ends",
                self.ends,
                "'not-a-knot', 'natural' or 'clamped'",
                "Choose one of these.",
            )

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        return self.prepared().evaluate(t, at)

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

    def evaluate(self, t: ScalarLike, at: PieceTime = None) -> Motion:
        zero = jnp.zeros_like(self.values[:1])
        widths = jnp.diff(self.times).reshape((-1,) + (1,) * (self.values.ndim - 1))
        velocity = jnp.concatenate([zero, jnp.diff(self.values, axis=0) / widths, zero])
        position = jnp.concatenate([self.values[:1], self.values])
        return parabolas(t, at, self.times, position, velocity, jnp.zeros_like(velocity))

    def breaks(self) -> Times:
        return self.times


def spline(times: NumbersLike, values: NumbersLike, ends: Ends = "not-a-knot") -> Spline:
    """The C2 cubic spline through values (n, ...) at increasing times (n,); holds before and after.

    `ends="clamped"` starts and stops with zero velocity, the choice for a motion from rest to rest; "natural" with
    zero acceleration; "not-a-knot" follows a smooth curve best. The breaks are the first and the last time.
    """
    return Spline(times, values, ends)


def recorded(
    times: NumbersLike, values: NumbersLike, method: Literal["cubic2", "linear"] = "cubic2"
) -> AbstractSignal:
    """Samples as a signal: "cubic2" is the C2 spline, "linear" joins them by straight lines.

    With "linear" the velocity jumps at every sample, so every sample is a break and becomes the end of a step: for
    dense recordings take "cubic2".
    """
    if method not in ("cubic2", "linear"):
        refuse("recorded", "method", method, "'cubic2' or 'linear'", "Choose one of these.")
    return Spline(times, values) if method == "cubic2" else Polyline(times, values)


def prepare(tree: Any) -> Any:
    """The same pytree with the tridiagonal systems of all its splines solved: call it once before a time loop.

    Inside the trace and not at construction, so that gradients in times and values stay whole.
    """
    is_spline = lambda x: isinstance(x, Spline)
    return jax.tree.map(lambda x: x.prepared() if is_spline(x) else x, tree, is_leaf=is_spline)
