"""Banded matrices of the links, stacked over stages: row i of ``band`` (.., m, 7) holds the entries (i, i - 3) .. (i, i + 3).

Factors and solves run over 3 x 3 blocks (a half-bandwidth of 3 is block-tridiagonal in them), all links of the chain side by side, so the cost grows with
the elements of the longest link and the scan's body is a few fused products.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.beam import BAND

BLOCK = 3


def band_apply(band: Float[Array, "B m w"], x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    m = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (BAND, BAND)))
    windows = jnp.stack([lax.slice_in_dim(padded, k, k + m, axis=1) for k in range(2 * BAND + 1)], axis=2)
    return jnp.sum(band * windows, axis=2)


def band_apply_transpose(band: Float[Array, "B m w"], x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    m = x.shape[1]
    total = jnp.zeros((x.shape[0], m + 2 * BAND), x.dtype)
    for k in range(2 * BAND + 1):
        total = total.at[:, k : k + m].add(band[:, :, k] * x)
    return total[:, BAND : BAND + m]


def to_band(index: Array, blocks: Float[Array, "e a b"], size: int) -> Float[Array, "m w"]:
    """Sum of element matrices whose coefficients stand at ``index`` (e, 4); those at ``size`` and beyond are dropped."""
    row = jnp.broadcast_to(index[:, :, None], blocks.shape)
    column = jnp.broadcast_to(index[:, None, :], blocks.shape)
    inside = (row < size) & (column < size)
    where = jnp.where(inside, column - row + BAND, 0)
    band = jnp.zeros((size + 1, 2 * BAND + 1), blocks.dtype)
    return band.at[jnp.minimum(row, size), where].add(jnp.where(inside, blocks, 0.0))[:size]


def to_vector(index: Array, parts: Float[Array, "e a"], size: int) -> Float[Array, " m"]:
    return jnp.zeros(size + 1, parts.dtype).at[jnp.minimum(index, size)].add(jnp.where(index < size, parts, 0.0))[:size]


def to_elements(x: Float[Array, "B m"], elements: int, stride: int) -> Float[Array, "4 B e"]:
    """Coefficients of every element's four functions: those of element e stand at stride e - 2 onwards, and nothing before 0 (``clamped``)."""
    count = stride * (elements - 1) + 4
    padded = jnp.pad(x, ((0, 0), (2, max(0, count - 2 - x.shape[1]))))
    return jnp.stack([padded[:, a : a + stride * (elements - 1) + 1 : stride] for a in range(4)])


def from_elements(parts: Float[Array, "4 B e"], size: int, stride: int) -> Float[Array, "B m"]:
    """Transpose of ``to_elements``."""
    zero = jnp.zeros((), parts.dtype)
    total = sum(lax.pad(part, zero, ((0, 0, 0), (a, 3 - a, stride - 1))) for a, part in enumerate(parts))[:, 2:]
    return jnp.pad(total, ((0, 0), (0, max(0, size - total.shape[1]))))[:, :size]


def _inverse(a: Float[Array, "B 3 3"]) -> Array:
    x, y, z = a[:, :, 0], a[:, :, 1], a[:, :, 2]
    cross = jnp.cross(y, z), jnp.cross(z, x), jnp.cross(x, y)
    return jnp.stack(cross, axis=1) / jnp.sum(x * cross[0], axis=1)[:, None, None]


def _mm(a, b):
    return jnp.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)


class BandFactors(eqx.Module):
    """Block elimination from the base: inverses of the pivots and the blocks above the diagonal (K, B, 3, 3)."""

    pivot: Float[Array, "K B 3 3"]
    upper: Float[Array, "K B 3 3"]


def band_factor(band: Float[Array, "B m w"]) -> BandFactors:
    """Of symmetric positive definite matrices."""
    B, m = band.shape[:2]
    count = -(-m // BLOCK)
    fill = np.zeros((B, count * BLOCK - m, 2 * BAND + 1))
    fill[:, :, BAND] = 1.0
    band = jnp.concatenate([band, jnp.asarray(fill, band.dtype)], axis=1).reshape(B, count, BLOCK, 2 * BAND + 1)
    band = jnp.moveaxis(jnp.pad(band, ((0, 0), (0, 0), (0, 0), (0, BLOCK - 1))), 1, 0)
    diagonal = jnp.stack([band[:, :, i, BAND - i : BAND - i + BLOCK] for i in range(BLOCK)], axis=2)
    upper = jnp.stack([band[:, :, i, 2 * BAND - i : 2 * BAND - i + BLOCK] for i in range(BLOCK)], axis=2)

    def onwards(carry, row):
        D, U = row
        pivot = _inverse(D - carry)
        return _mm(jnp.swapaxes(U, 1, 2), _mm(pivot, U)), pivot

    _, pivot = lax.scan(onwards, jnp.zeros_like(diagonal[0]), (diagonal, upper))
    return BandFactors(pivot, upper)


def band_solve(f: BandFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
    B, m, k = rhs.shape
    count = f.pivot.shape[0]
    blocks = jnp.pad(rhs, ((0, 0), (0, count * BLOCK - m), (0, 0))).reshape(B, count, BLOCK, k)

    def onwards(carry, row):
        pivot, U, b = row
        x = _mm(pivot, b - carry)
        return _mm(jnp.swapaxes(U, 1, 2), x), x

    start = jnp.zeros((B, BLOCK, k), rhs.dtype)
    _, x = lax.scan(onwards, start, (f.pivot, f.upper, jnp.moveaxis(blocks, 1, 0)))

    def back(later, row):
        pivot, U, x = row
        x = x - _mm(pivot, _mm(U, later))
        return x, x

    _, x = lax.scan(back, start, (f.pivot, f.upper, x), reverse=True)
    return jnp.moveaxis(x, 0, 1).reshape(B, count * BLOCK, k)[:, :m]
