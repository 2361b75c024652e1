"""Banded matrices, stacked over links: row i of ``band`` (.., m, 7) is (i, i - 3) .. (i, i + 3).

Factors and solves run over 3 x 3 blocks, in which a half-bandwidth of 3 is block-tridiagonal, for
all links together. The cost grows with the longest link, and the scan is a few fused products.
"""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import custom_derivatives, lax
from jaxtyping import Array, Float

from flexjax.numerics.linalg._small import inverse3, mm, transpose

BAND = 3  # half-bandwidth: coefficients of one cubic element differ by at most 3 in index
BLOCK = 3


def band_apply(band: Float[Array, "B m w"], x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    # Term by term is one kernel, as is its transpose; a sum over stacked slices is slower.
    m = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (BAND, BAND)))
    return functools.reduce(
        operator.add, (band[:, :, k] * padded[:, k : k + m] for k in range(2 * BAND + 1))
    )


@jax.custom_jvp
def band_square(band: Float[Array, "B m w"], x: Float[Array, "B m"]) -> Float[Array, " B"]:
    """x^T A x of symmetric bands; the derivative w.r.t. x is 2 A x, without A^T."""
    return jnp.sum(x * band_apply(band, x), axis=1)


@functools.partial(band_square.defjvp, symbolic_zeros=True)
def _band_square_jvp(primals: Any, tangents: Any):
    (band, x), (d_band, dx) = primals, tangents
    Ax, zero = band_apply(band, x), custom_derivatives.SymbolicZero
    change = [2 * jnp.sum(dx * Ax, axis=1)] if not isinstance(dx, zero) else []
    change += [band_square(d_band, x)] if not isinstance(d_band, zero) else []
    none = jnp.zeros(x.shape[:1], x.dtype)
    return jnp.sum(x * Ax, axis=1), functools.reduce(operator.add, change) if change else none


def to_band(index: Array, blocks: Float[Array, "e a b"], size: int) -> Float[Array, "m w"]:
    """Sum of element matrices with coefficients at ``index`` (e, 4); from ``size`` on dropped."""
    row = jnp.broadcast_to(index[:, :, None], blocks.shape)
    column = jnp.broadcast_to(index[:, None, :], blocks.shape)
    inside = (row < size) & (column < size)
    where = jnp.where(inside, column - row + BAND, 0)
    band = jnp.zeros((size + 1, 2 * BAND + 1), blocks.dtype)
    return band.at[jnp.minimum(row, size), where].add(jnp.where(inside, blocks, 0.0))[:size]


def to_vector(index: Array, parts: Float[Array, "e a"], size: int) -> Float[Array, " m"]:
    kept = jnp.where(index < size, parts, 0.0)
    return jnp.zeros(size + 1, parts.dtype).at[jnp.minimum(index, size)].add(kept)[:size]


def to_elements(x: Float[Array, "B m"], elements: int, stride: int) -> Float[Array, "B e 4"]:
    """Coefficients of every element's four functions: from stride e - 2 on, none before 0."""
    rows = elements + 4 // stride - 1
    padded = jnp.pad(x, ((0, 0), (2, max(0, rows * stride - 2 - x.shape[1]))))
    padded = padded[:, : rows * stride].reshape(-1, rows, stride)
    return jnp.concatenate([padded[:, k : k + elements] for k in range(4 // stride)], axis=2)


def from_elements(parts: Float[Array, "B e 4"], size: int, stride: int) -> Float[Array, "B m"]:
    """Transpose of ``to_elements``."""
    last = 4 // stride - 1
    shifted = [
        jnp.pad(parts[:, :, k * stride : (k + 1) * stride], ((0, 0), (k, last - k), (0, 0)))
        for k in range(last + 1)
    ]
    total = functools.reduce(operator.add, shifted).reshape(parts.shape[0], -1)[:, 2:]
    return jnp.pad(total, ((0, 0), (0, max(0, size - total.shape[1]))))[:, :size]


class BandFactors(eqx.Module):
    """Block elimination from the base: inverses of pivots, and blocks above the diagonal."""

    pivot: Float[Array, "K B 3 3"]
    upper: Float[Array, "K B 3 3"]


def band_factor(band: Float[Array, "B m w"]) -> BandFactors:
    """Factorise symmetric positive definite matrices."""
    B, m = band.shape[:2]
    count = -(-m // BLOCK)
    fill = np.zeros((B, count * BLOCK - m, 2 * BAND + 1))
    fill[:, :, BAND] = 1.0
    band = jnp.concatenate([band, jnp.asarray(fill, band.dtype)], axis=1)
    band = band.reshape(B, count, BLOCK, 2 * BAND + 1)
    band = jnp.moveaxis(jnp.pad(band, ((0, 0), (0, 0), (0, 0), (0, BLOCK - 1))), 1, 0)
    blocks = lambda at: jnp.stack(
        [band[:, :, i, at - i : at - i + BLOCK] for i in range(BLOCK)], axis=2
    )
    diagonal, upper = blocks(BAND), blocks(2 * BAND)

    def onwards(carry, row):
        D, U = row
        pivot = inverse3(D - carry)
        return mm(transpose(U), mm(pivot, U)), pivot

    _, pivot = lax.scan(onwards, jnp.zeros_like(diagonal[0]), (diagonal, upper))
    return BandFactors(pivot, upper)


def band_solve(f: BandFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
    B, m, k = rhs.shape
    count = f.pivot.shape[0]
    blocks = jnp.pad(rhs, ((0, 0), (0, count * BLOCK - m), (0, 0))).reshape(B, count, BLOCK, k)

    def onwards(carry, row):
        pivot, U, b = row
        x = mm(pivot, b - carry)
        return mm(transpose(U), x), x

    start = jnp.zeros((B, BLOCK, k), rhs.dtype)
    _, x = lax.scan(onwards, start, (f.pivot, f.upper, jnp.moveaxis(blocks, 1, 0)))

    def back(later, row):
        pivot, U, x = row
        x = x - mm(pivot, mm(U, later))
        return x, x

    _, x = lax.scan(back, start, (f.pivot, f.upper, x), reverse=True)
    return jnp.moveaxis(x, 0, 1).reshape(B, count * BLOCK, k)[:, :m]
