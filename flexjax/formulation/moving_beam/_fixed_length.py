"""Kinetic energy of an arm with fixed lengths: material stays in its element.

Displacements are written in Legendre's polynomials on the unit interval, whose product integrals
are 1/(2p + 1) on the diagonal and zero elsewhere. Coefficients are written out one by one, each an
array over the elements: XLA compiles few kernels (PAPER.md).
"""

import functools
from fractions import Fraction
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.moving_beam._shapes import (
    Coefficients,
    PerElement,
    Shapes,
    Unknowns,
    shape_matrices,
)
from flexjax.formulation.moving_beam._strain import plus, scaled
from flexjax.numerics.beam import derivative_matrix


@functools.cache
def legendre(powers: int) -> np.ndarray:
    """From coefficients of powers of xi to those of Legendre's polynomials on [0, 1].

    The entry (order i, power p) is (2i + 1) int P_i xi^p.

    >>> legendre(2).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """

    def coefficient(i, p):
        return (2 * i + 1) * sum(
            Fraction((-1) ** (i + q) * comb(i, q) * comb(i + q, q), p + q + 1) for q in range(i + 1)
        )

    return np.array([[float(coefficient(i, p)) for p in range(powers)] for i in range(powers)])


@functools.cache
def _matrices(shapes: Shapes):
    """From scaled unknowns to displacements and to (alpha, -l uz', l uy'): (unknowns, rows) each.

    Then the number of coefficients of each component; those that are always zero are left out.
    """
    U, twist = shape_matrices(shapes)
    slope = np.einsum("pq,uqc->upc", derivative_matrix(shapes.moving), U)
    fields = [U[:, :, 0], U[:, :, 1], U[:, :, 2], twist, -slope[:, :, 2], slope[:, :, 1]]
    parts = [f @ legendre(f.shape[1]).T for f in fields]
    count = [1 + int(np.flatnonzero(np.abs(x).max(axis=0) > 1e-14).max(initial=-1)) for x in parts]
    used = [x[:, :k] for x, k in zip(parts, count, strict=True)]
    displacement, rotation = (np.concatenate(x, axis=1) for x in (used[:3], used[3:]))
    return displacement, rotation, tuple(count[:3]), tuple(count[3:])


def _components(
    matrix: np.ndarray, counts: tuple[int, ...], h: Float[Array, "u n"]
) -> list[Coefficients]:
    """Coefficients of three components. One split, whose derivative is one concatenation."""
    table = jnp.asarray(matrix.T, h.dtype) @ h
    rows = iter(lax.split(table, (1,) * table.shape[0]))
    return [[next(rows)[0] for _ in range(k)] for k in counts]


def _times(factor: Array | float, p: Coefficients) -> Coefficients:
    return [factor * x for x in p]


def _half_product(weight: PerElement, p: Coefficients, q: Coefficients) -> PerElement:
    """Half the integral of the product of two polynomials."""
    if not p:
        return jnp.zeros_like(weight)
    pairs = enumerate(zip(p, q, strict=True))
    return weight * sum((0.5 / (2 * k + 1)) * (a * b) for k, (a, b) in pairs)


# A function of its own: energies, momenta and their derivatives need it often; traced once.
@functools.partial(jax.jit, static_argnums=(0, 8))
def kinetic(
    shapes: Shapes,
    X: PerElement,
    l: PerElement,
    rhoA: PerElement,
    rhoI: Float[Array, "n 3"],
    y: Unknowns,
    yd: Float[Array, "2 n u"],
    twist: Float[Array, "2 6"],
    flat: bool,
) -> Scalar:
    """va^T M vb / 2 of elements that begin at ``X`` and have the lengths ``l``.

    ``flat``: elements and frame move in the plane and rotate about z.
    """
    move, rotating, moves, rotations = _matrices(shapes)
    R = _components(move, moves, scaled(shapes, y, l).T)
    R[0] = plus(R[0], [X + 0.5 * l, 0.5 * l])
    velocities, spins = [], []
    for rate, z in zip(yd, twist, strict=True):
        h, v, w = scaled(shapes, rate, l).T, z[:3], z[3:]
        v, w = ([jnp.broadcast_to(x, l.shape)] for x in v), list(w)
        across = [
            plus(_times(w[(c + 1) % 3], R[(c + 2) % 3]), _times(-w[(c + 2) % 3], R[(c + 1) % 3]))
            for c in range(3)
        ]
        if flat:
            across = [_times(-w[2], R[1]), _times(w[2], R[0])]
        parts = zip(_components(move, moves, h), across, v, strict=False)
        velocities.append([plus(plus(u, a), first) for u, a, first in parts])
        bending = _components(rotating, rotations, h)
        bending = [b if c == 0 else [x / l for x in b] for c, b in enumerate(bending)]
        spins.append([plus(b, [jnp.broadcast_to(w[c], l.shape)]) for c, b in enumerate(bending)])
    total = sum(_half_product(l * rhoA, a, b) for a, b in zip(*velocities, strict=True))
    for c in (2,) if flat else range(3):
        total = total + _half_product(l * rhoI[:, c], spins[0][c], spins[1][c])
    return jnp.sum(total)
