"""Banded matrices with a rank-two part for the shortening and a border for the free length."""

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
    """A banded matrix with a rank-two part, and a border around both.

    ``side``, ``corner``: row, column and corner of the free length; None if no link runs through
    its joint. ``wide``: stiffening adds wide spread^-1 wide^T.
    """

    band: Float[Array, "B m w"]
    side: Float[Array, "B m"] | None
    corner: Float[Array, " B"] | None
    wide: Float[Array, "B m 2"] | None = None
    spread: Float[Array, "B 2 2"] | None = None


class BorderedFactors(eqx.Module):
    band: BandFactors
    side: Array | None
    column: Array | None  # inner^-1 side
    pivot: Array | None  # inverse of the Schur complement; zero where the free length is no unknown
    wide: Array | None = None
    columns: Array | None = None  # band^-1 wide, times the inverse of spread + wide^T band^-1 wide


def _inner_apply(ee: Bordered, x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    own = band_apply(ee.band, x)
    if ee.wide is None or ee.spread is None:
        return own
    return own + mv(ee.wide, mv(inverse2(ee.spread), mtv(ee.wide, x)))


def _inner_solve(factors: BorderedFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
    y = band_solve(factors.band, rhs)
    if factors.wide is None or factors.columns is None:
        return y
    return y - mm(factors.columns, mm(jnp.swapaxes(factors.wide, 1, 2), y))


def bordered_apply(ee: Bordered, x: Float[Array, "B m"]) -> Float[Array, "B m"]:
    if ee.side is None or ee.corner is None:
        return _inner_apply(ee, x)
    c, d = x[:, :-1], x[:, -1]
    last = jnp.sum(ee.side * c, axis=1) + ee.corner * d
    return jnp.concatenate([_inner_apply(ee, c) + ee.side * d[:, None], last[:, None]], axis=1)


def bordered_factor(ee: Bordered, free: np.ndarray) -> BorderedFactors:
    """Factorise; ``free``: where the free length is an unknown."""
    band, columns = band_factor(ee.band), None
    if ee.wide is not None and ee.spread is not None:
        columns = band_solve(band, ee.wide)
        columns = mm(columns, inverse2(ee.spread + mm(jnp.swapaxes(ee.wide, 1, 2), columns)))
    factors = BorderedFactors(band, None, None, None, ee.wide, columns)
    if ee.side is None or ee.corner is None:
        return factors
    column = _inner_solve(factors, ee.side[:, :, None])[:, :, 0]
    schur = jnp.where(free, ee.corner - jnp.sum(ee.side * column, axis=1), 1.0)
    pivot = jnp.where(free, 1.0 / schur, 0.0)
    return BorderedFactors(band, ee.side, column, pivot, ee.wide, columns)


def bordered_solve(factors: BorderedFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
    if factors.side is None or factors.column is None or factors.pivot is None:
        return _inner_solve(factors, rhs)
    y = _inner_solve(factors, rhs[:, :-1])
    d = factors.pivot[:, None] * (rhs[:, -1] - jnp.sum(factors.side[:, :, None] * y, axis=1))
    return jnp.concatenate([y - factors.column[:, :, None] * d[:, None, :], d[:, None, :]], axis=1)
