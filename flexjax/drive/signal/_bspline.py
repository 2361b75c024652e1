"""B-splines: smooth motions from few numbers, with exact ends."""

import functools
import math
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from flexjax._types import NumbersLike, PieceTime, Scalar, ScalarLike, Times, Value, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion, no_breaks
from flexjax.drive.signal._check import check_finite, check_positive, check_scalar, refuse
from flexjax.drive.signal._switched import pick

DEGREES = (3, 4, 5)
Ends = Literal["rest", "free"]


@functools.cache
def _pieces(n: int, degree: int) -> np.ndarray:
    """From n control values to the polynomial of every piece: (pieces, degree + 1, n), lowest
    power of the local coordinate in [0, 1] first. The knots are even."""
    from scipy.interpolate import BSpline as ScipySpline  # a fifth of the time of every import

    count = n - degree
    inner = np.arange(count + 1.0)
    knots = np.concatenate([np.zeros(degree), inner, np.full(degree, float(count))])
    spline = ScipySpline(knots, np.eye(n), degree)
    taylor = [spline(inner[:-1], m) / math.factorial(m) for m in range(degree + 1)]
    return np.stack(taylor, axis=1)


class BSpline(AbstractSignal):
    """See `bspline`."""

    values: Value = eqx.field(converter=as_float)
    duration: Scalar = eqx.field(converter=as_float)
    begin: Scalar = eqx.field(converter=as_float, default=0.0)
    degree: int = eqx.field(static=True, default=5)
    ends: Ends = eqx.field(static=True, default="rest")

    def __check_init__(self):
        check_positive("bspline", duration=self.duration)
        check_scalar("bspline", begin=self.begin)
        check_finite("bspline", values=self.values)
        if self.degree not in DEGREES:
            refuse("bspline", "degree", self.degree, "3, 4 or 5", "Choose one of these.")
        if self.ends not in ("rest", "free"):
            refuse("bspline", "ends", self.ends, "'rest' or 'free'", "Choose one of these.")
        least = max(2, self.degree - 3) if self.ends == "rest" else self.degree + 1
        shape = np.shape(self.values)
        if not shape or shape[0] < least:
            remedy = "Give more control values, or choose a lower degree."
            refuse("bspline", "shape of values", shape, f"at least {least} rows", remedy)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        values = self.values
        if self.ends == "rest":
            values = jnp.concatenate([values[:1], values[:1], values, values[-1:], values[-1:]])
        table = _pieces(values.shape[0], self.degree)
        scale = table.shape[0] / self.duration
        x = (t - self.begin) * scale
        # t selects the piece: nothing jumps at inner knots, so a step may cross one.
        k = jnp.clip(jnp.floor(x), 0, table.shape[0] - 1).astype(jnp.int32)
        powers = jnp.tensordot(pick(jnp.asarray(table, values.dtype), k), values, axes=1)
        value = velocity = acceleration = jnp.zeros_like(powers[0])
        for c in powers[::-1]:
            acceleration = acceleration * (x - k) + 2.0 * velocity
            velocity = velocity * (x - k) + value
            value = value * (x - k) + c
        # At rest nothing jumps at the ends, and t selects there too.
        now = t if piece_time is None or self.ends == "rest" else piece_time
        before, after = now < self.begin, now >= self.begin + self.duration
        rest = before | after
        value = jnp.where(before, values[0], jnp.where(after, values[-1], value))
        velocity, acceleration = velocity * scale, acceleration * scale**2
        return value, jnp.where(rest, 0.0, velocity), jnp.where(rest, 0.0, acceleration)

    def breaks(self) -> Times:
        if self.ends == "rest":
            return no_breaks(self.begin)
        return jnp.stack([self.begin, self.begin + self.duration])


def bspline(
    values: NumbersLike,
    duration: ScalarLike,
    begin: ScalarLike = 0.0,
    *,
    degree: int = 5,
    ends: Ends = "rest",
) -> BSpline:
    """A B-spline with even knots, constant before its begin and after its end.

    It starts at the first control value, ends at the last, and stays between the smallest and the
    largest. Its derivatives up to ``degree - 1`` are continuous in between.

    Arguments:
        values: control values (n,) or (n, k).
        duration: duration [s].
        begin: begin [s].
        degree: 3, 4 or 5.
        ends: "rest" repeats the first and the last value, so that velocity and acceleration are
            zero there, whatever the values are. "free" takes the values as they are, n > degree.

    Returns:
        A signal.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> move = fx.bspline([0.0, 1.0], 2.0)  # the quintic from rest to rest
    >>> round(float(move(1.0)), 6)
    0.5
    """
    return BSpline(values, duration, begin, degree, ends)


def control_values(u: np.ndarray, curve: np.ndarray, n: int, degree: int = 5) -> np.ndarray:
    """The n control values of the B-spline at rest at both ends that is nearest to a curve.

    The curve is given at ``u`` in [0, 1]; its ends are met exactly.
    """
    padded = np.concatenate([np.zeros(2, int), np.arange(n), np.full(2, n - 1)])
    table = _pieces(n + 4, degree)
    x = np.asarray(u) * table.shape[0]
    k = np.clip(np.floor(x), 0, table.shape[0] - 1).astype(int)
    powers = (x - k)[:, None] ** np.arange(degree + 1)[None]
    rows = np.einsum("tm,tmn->tn", powers, table[k])
    A = np.zeros((len(x), n))
    np.add.at(A.T, padded, rows.T)
    ends = np.array([curve[0], curve[-1]])
    left = np.asarray(curve) - A[:, [0, -1]] @ ends
    inner = np.linalg.lstsq(A[:, 1:-1], left, rcond=None)[0]
    return np.concatenate([ends[:1], inner, ends[1:]])
