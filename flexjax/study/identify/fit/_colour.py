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
from jaxtyping import Array, Float


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
        valid, sensors = weight > 0, jnp.arange(error.shape[2])[None, None]
        length, present, past = jnp.zeros(error.shape, jnp.int32), jnp.ones_like(valid), []
        for back in range(1, self.order + 1):
            shift = lambda x, back=back: jnp.pad(x, ((0, 0), (back, 0), (0, 0)))[:, :-back]
            present = present & shift(valid)
            length = length + present
            past.append(shift(error))
        known = self.coefficients[sensors, length]
        predicted = jnp.sum(known * jnp.stack(past, -1), axis=-1)
        return jnp.where(valid, (error - predicted) * self.gains[sensors, length], 0.0)


def colour_of(reflections: Sequence[np.ndarray], dtype) -> Colour:
    """From the reflection coefficients (p,) of every sensor: Levinson's recursion."""
    tables, gains = [], []
    for own in reflections:
        p = len(own)
        table, variance = np.zeros((p + 1, p)), np.ones(p + 1)
        for m, k in enumerate(own):
            table[m + 1, :m] = table[m, :m] - k * table[m, :m][::-1]
            table[m + 1, m] = k
            variance[m + 1] = variance[m] * (1 - k**2)
        tables.append(table)
        gains.append(1 / np.sqrt(variance))
    return Colour(jnp.asarray(np.stack(tables), dtype), jnp.asarray(np.stack(gains), dtype))


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
