"""Coloured noise: residuals of an autoregression, which are white where the readings' noise is not.

The noise of a sensor is r_t = a_1 r_(t-1) + ... + a_p r_(t-p) + e_t. A sample with fewer samples
before it (at the start, behind a gap) is predicted from those that are there, by the lower orders
that Levinson's recursion gives. Every e_t is divided by its standard deviation in units of r's, so
that weights remain one over the standard deviation of the noise itself.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int


class Colour(eqx.Module):
    """Autoregressions of the sensors of a group: for every order up to p, coefficients and one over
    the standard deviation of what they leave."""

    coefficients: Float[Array, "S q p"]
    gains: Float[Array, "S q"]

    @property
    def order(self) -> int:
        return self.coefficients.shape[-1]

    def coloured(self, white: Float[Array, "*n T S"]) -> Float[Array, "*n T S"]:
        """Stationary noise of standard deviation one from independent normal numbers."""
        white = jnp.moveaxis(white, -2, 0)

        def step(past: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
            e, n = row
            known = jnp.einsum("sp,...sp->...s", self.coefficients[:, n], past)
            new = known + e / jnp.broadcast_to(self.gains[:, n], e.shape)
            return jnp.concatenate([new[..., None], past[..., :-1]], axis=-1), new

        orders = jnp.minimum(jnp.arange(white.shape[0]), self.order)
        none = jnp.zeros((*white.shape[1:], self.order), white.dtype)
        return jnp.moveaxis(lax.scan(step, none, (white, orders))[1], 0, -2)

    def whitened(
        self, error: Float[Array, "E T S"], weight: Float[Array, "E T S"]
    ) -> Float[Array, "E T S"]:
        """The weighted ``error`` less its prediction from the samples before it."""
        past = [_shifted(error, back) for back in range(1, self.order + 1)]
        known = self.coefficients[jnp.arange(error.shape[2])[None, None], self._length(weight)]
        predicted = jnp.sum(known * jnp.stack(past, -1), axis=-1)
        return jnp.where(weight > 0, (error - predicted) * self.gain_of(weight), 0.0)

    def gain_of(self, weight: Float[Array, "E T S"]) -> Float[Array, "E T S"]:
        """One over the standard deviation of what is left of every sample."""
        return self.gains[jnp.arange(weight.shape[2])[None, None], self._length(weight)]

    def _length(self, weight: Float[Array, "E T S"]) -> Int[Array, "E T S"]:
        """Number of samples before each one, without a gap, that predict it."""
        valid = weight > 0
        length, present = jnp.zeros(weight.shape, jnp.int32), jnp.ones_like(valid)
        for back in range(1, self.order + 1):
            present = present & _shifted(valid, back)
            length = length + present
        return length


def _shifted(x: Array, back: int) -> Array:
    return jnp.pad(x, ((0, 0), (back, 0), (0, 0)))[:, :-back]


def colour_of(reflections: Float[Array, "S p"]) -> Colour:
    """From the reflection coefficients of every sensor: Levinson's recursion."""
    reflections = jnp.asarray(reflections)
    order, zero = reflections.shape[1], jnp.zeros_like(reflections)
    table, variance = [zero], [jnp.ones_like(reflections[:, 0])]
    for m in range(order):
        k, last = reflections[:, m], table[-1]
        new = last.at[:, :m].add(-k[:, None] * last[:, :m][:, ::-1])
        table.append(new.at[:, m].set(k))
        variance.append(variance[-1] * (1 - k**2))
    return Colour(jnp.stack(table, axis=1), 1 / jnp.sqrt(jnp.stack(variance, axis=1)))


def reflections_of(series: Sequence[np.ndarray], order: int) -> np.ndarray:
    """Reflection coefficients (p,) of series with NaN in gaps: Burg's method over all pieces.

    They are below one in size, so that the autoregression is stable.
    """
    pieces = []
    for x in series:
        good = np.concatenate([[False], np.isfinite(x), [False]])
        ends = np.flatnonzero(good[1:] != good[:-1]).reshape(-1, 2)
        pieces += [(x[a:b], x[a:b]) for a, b in ends]
    found = np.zeros(order)
    for m in range(order):
        # Prediction errors of the samples ahead, and of those behind one step before.
        pairs = [(ahead[1:], behind[:-1]) for ahead, behind in pieces if len(ahead) > 1]
        power = sum(float(f @ f + b @ b) for f, b in pairs)
        if power <= 0:
            break
        k = 2 * sum(float(f @ b) for f, b in pairs) / power
        found[m] = np.clip(k, -0.9999, 0.9999)
        pieces = [(f - found[m] * b, b - found[m] * f) for f, b in pairs]
    return found
