"""Banded matrices with a border for the free length, or a rank-two part for the shortening."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.numerics.linalg import inverse2, mm, mtv, mv
from flexjax.numerics.linalg._banded import (
    BandFactors,
    band_apply,
    band_factor,
    band_solve,
)


class Bordered(eqx.Module):
    """A banded matrix, bordered or with a rank-two part.

    ``side``, ``corner``: row, column and corner of the free length; None if no link runs through
    its joint. ``wide``: stiffening adds wide spread^-1 wide^T to links that do not.
    """

    band: Float[Array, "B m w"]
    side: Float[Array, "B m"] | None
    corner: Float[Array, " B"] | None
    wide: Float[Array, "B m 2"] | None = None
    spread: Float[Array, "B 2 2"] | None = None


class BorderedFactors(eqx.Module):
    band: BandFactors
    side: Array | None
    column: Array | None  # band^-1 side
    pivot: Array | None  # inverse of the Schur complement; zero where the free length is no unknown
    wide: Array | None = None
    columns: Array | None = None  # band^-1 wide, times the inverse of spread + wide^T band^-1 wide


def bordered_apply(ee: Bordered, x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    if ee.wide is not None and ee.spread is not None:
        return band_apply(ee.band, x) + mv(ee.wide, mv(inverse2(ee.spread), mtv(ee.wide, x)))
    if ee.side is None or ee.corner is None:
        return band_apply(ee.band, x)
    c, d = x[:, :-1], x[:, -1]
    last = jnp.sum(ee.side * c, axis=1) + ee.corner * d
    return jnp.concatenate([band_apply(ee.band, c) + ee.side * d[:, None], last[:, None]], axis=1)


def bordered_factor(ee: Bordered, free: np.ndarray) -> BorderedFactors:
    """Factorise; ``free``: where the free length is an unknown."""
    factors = band_factor(ee.band)
    if ee.wide is not None and ee.spread is not None:
        columns = band_solve(factors, ee.wide)
        columns = mm(columns, inverse2(ee.spread + mm(jnp.swapaxes(ee.wide, 1, 2), columns)))
        return BorderedFactors(factors, None, None, None, ee.wide, columns)
    if ee.side is None or ee.corner is None:
        return BorderedFactors(factors, None, None, None)
    column = band_solve(factors, ee.side[:, :, None])[:, :, 0]
    schur = jnp.where(free, ee.corner - jnp.sum(ee.side * column, axis=1), 1.0)
    return BorderedFactors(factors, ee.side, column, jnp.where(free, 1.0 / schur, 0.0))


def bordered_solve(factors: BorderedFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
    if factors.wide is not None and factors.columns is not None:
        y = band_solve(factors.band, rhs)
        return y - mm(factors.columns, mm(jnp.swapaxes(factors.wide, 1, 2), y))
    if factors.side is None or factors.column is None or factors.pivot is None:
        return band_solve(factors.band, rhs)
    y = band_solve(factors.band, rhs[:, :-1])
    d = factors.pivot[:, None] * (rhs[:, -1] - jnp.sum(factors.side[:, :, None] * y, axis=1))
    return jnp.concatenate([y - factors.column[:, :, None] * d[:, None, :], d[:, None, :]], axis=1)
