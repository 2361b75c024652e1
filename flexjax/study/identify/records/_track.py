"""Recorded inputs as signals on their own time grid: no breaks, lookup in constant time."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive.signal import AbstractSignal

Hold = Literal["cubic", "linear", "zero"]


class Track(AbstractSignal):
    """Cubic pieces between samples, without breaks.

    Only for time grids that contain all its samples. No step crosses a sample then, so even a
    value held from sample to sample needs no break (unlike :func:`flexjax.recorded`).
    """

    times: Float[Array, " n"]
    # Value and derivatives over 0!, 1!, 2!, 3! at the start of each piece.
    pieces: Float[Array, "n-1 4"]
    even: bool = eqx.field(static=True)
    smooth: bool = eqx.field(static=True)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None):
        # Where pieces jump, the middle of the step selects the piece.
        where = t if self.smooth or piece_time is None else piece_time
        last = self.pieces.shape[0] - 1
        if self.even:
            step = (self.times[-1] - self.times[0]) / (last + 1)
            k = jnp.floor((where - self.times[0]) / step + 1e-9).astype(jnp.int32)
        else:
            k = jnp.sum(where >= self.times[1:-1]).astype(jnp.int32)
        k = jnp.clip(k, 0, last)
        c0, c1, c2, c3 = self.pieces[k]
        x = t - self.times[k]
        return (
            c0 + x * (c1 + x * (c2 + x * c3)),
            c1 + x * (2 * c2 + 3 * x * c3),
            2 * c2 + 6 * x * c3,
        )

    def breaks(self):
        return jnp.zeros((0,), self.times.dtype)


def track(times: np.ndarray, values: np.ndarray, hold: Hold = "cubic") -> Track:
    """Samples as a signal.

    ``hold``: "cubic" is a C2 spline, "linear" straight lines, "zero" holds each sample until the
    next, as a digital controller does.
    """
    steps = np.diff(times)
    even = bool(np.all(np.abs(steps - steps.mean()) < 1e-6 * steps.mean()))
    if hold == "cubic":
        from scipy.interpolate import CubicSpline

        c = CubicSpline(times, values).c[::-1].T
    elif hold == "linear":
        c = np.stack([values[:-1], np.diff(values) / steps, 0 * steps, 0 * steps], axis=1)
    elif hold == "zero":
        c = np.stack([values[:-1], 0 * steps, 0 * steps, 0 * steps], axis=1)
    else:
        raise ValueError(f"hold: {hold!r}; expected 'cubic', 'linear' or 'zero'.")
    return Track(jnp.asarray(times), jnp.asarray(c), even, hold == "cubic")
