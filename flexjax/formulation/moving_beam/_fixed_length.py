"""Kinetic energy of an arm whose lengths do not change: material stays in its element, so nothing passes through the mesh.

Displacements are written in Legendre's polynomials of the unit interval instead of powers of xi: their product integrals are 1/(2p + 1) on the diagonal and
nothing beside it, as exact as those of the powers. Coefficients are written out one by one, each an array over the elements, as in the generator: XLA makes a
few kernels of energy and momenta where products of small matrices and terms of a changing length that happen to be zero were sixty.
"""

import functools
from fractions import Fraction
from math import comb

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.moving_beam._shapes import Shapes, derivative_matrix, shape_matrices
from flexjax.formulation.moving_beam._strain import plus, scaled


@functools.cache
def legendre(powers: int) -> np.ndarray:
    """(order, power): coefficients in Legendre's polynomials on [0, 1] from those of the powers, (2i + 1) int P_i xi^p.

    >>> legendre(2).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """

    def coefficient(i, p):
        return (2 * i + 1) * sum(
            Fraction((-1) ** (i + q) * comb(i, q) * comb(i + q, q), p + q + 1) for q in range(i + 1)
        )

    return np.array([[float(coefficient(i, p)) for p in range(powers)] for i in range(powers)])


@functools.cache
def _rows(shapes: Shapes) -> tuple[np.ndarray, np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """(unknowns, rows): from scaled unknowns to displacements, and to rotations (alpha, -uz', uy', the last two without 1/l), each with the number of
    coefficients of its three components; those that are never there are left out."""
    U, twist = shape_matrices(shapes)
    slope = np.einsum("pq,uqc->upc", derivative_matrix(shapes.moving), U)
    fields = [U[:, :, 0], U[:, :, 1], U[:, :, 2], twist, -slope[:, :, 2], slope[:, :, 1]]
    parts = [f @ legendre(f.shape[1]).T for f in fields]
    count = [1 + int(np.flatnonzero(np.abs(x).max(axis=0) > 1e-14).max(initial=-1)) for x in parts]
    used = [x[:, :k] for x, k in zip(parts, count, strict=True)]
    return (
        np.concatenate(used[:3], axis=1),
        np.concatenate(used[3:], axis=1),
        tuple(count[:3]),
        tuple(count[3:]),
    )


def _components(table: Float[Array, "rows ..."], counts: tuple[int, ...]) -> list[list[Array]]:
    """Lists of coefficients by component. One split, whose derivative is one concatenation."""
    rows = iter(lax.split(table, (1,) * table.shape[0]))
    return [[next(rows)[0] for _ in range(k)] for k in counts]


def _times(number: Array | float, p: list) -> list:
    return [number * x for x in p]


def _half_product(weight: Array, p: list, q: list):
    """Half the integral of the product of two polynomials."""
    return (
        weight
        * sum((0.5 / (2 * k + 1)) * (a * b) for k, (a, b) in enumerate(zip(p, q, strict=True)))
        if p
        else jnp.zeros_like(weight)
    )


def kinetic(
    shapes: Shapes, X: Float[Array, " n"], l: Float[Array, " n"], rhoA: Float[Array, " n"], rhoI: Float[Array, "n 3"], y: Float[Array, "n u"],
    yd: Float[Array, "2 n u"], twist: Float[Array, "2 6"], flat: bool,
) -> Float[Array, ""]:  # fmt: skip
    """va^T M vb / 2 of elements that begin at ``X`` and have the lengths ``l``; ``flat``: they and their frame move in the plane, turning about z."""
    move, turn, moves, turns = _rows(shapes)
    R = _components(jnp.asarray(move.T, y.dtype) @ scaled(shapes, y, l).T, moves)
    R[0] = plus(R[0], [X + 0.5 * l, 0.5 * l])
    velocities, spins = [], []
    for rate, z in zip(yd, twist, strict=True):
        h, v, w = scaled(shapes, rate, l).T, z[:3], z[3:]
        U = _components(jnp.asarray(move.T, y.dtype) @ h, moves)
        across = [
            plus(_times(w[(c + 1) % 3], R[(c + 2) % 3]), _times(-w[(c + 2) % 3], R[(c + 1) % 3]))
            for c in range(3)
        ]
        if flat:
            across = [_times(-w[2], R[1]), _times(w[2], R[0])]
        velocities.append(
            [
                plus(plus(u, a), [jnp.broadcast_to(v[c], l.shape)])
                for c, (u, a) in enumerate(zip(U, across, strict=False))
            ]
        )
        bend = _components(jnp.asarray(turn.T, y.dtype) @ h, turns)
        spins.append(
            [
                plus(b if c == 0 else [x / l for x in b], [jnp.broadcast_to(w[c], l.shape)])
                for c, b in enumerate(bend)
            ]
        )
    total = sum(_half_product(l * rhoA, a, b) for a, b in zip(*velocities, strict=True))
    for c in (2,) if flat else range(3):
        total = total + _half_product(l * rhoI[:, c], spins[0][c], spins[1][c])
    return jnp.sum(total)
