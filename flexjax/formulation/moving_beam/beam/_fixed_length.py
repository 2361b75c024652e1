"""Kinetic energy of an arm with fixed lengths: material stays in its element.

Displacements are written in Legendre's polynomials on the unit interval, whose product integrals
are 1/(2p + 1) on the diagonal and zero elsewhere. Coefficients are one array (component, order,
element), so that few operations are traced and XLA compiles few kernels.
"""

import functools
from fractions import Fraction
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.moving_beam.beam._shapes import (
    PerElement,
    Shapes,
    Unknowns,
    shape_matrices,
)
from flexjax.formulation.moving_beam.beam._strain import scaled
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
def _matrices(shapes: Shapes) -> tuple[np.ndarray, np.ndarray]:
    """From scaled unknowns to displacements and to (alpha, -l uz', l uy'): (component, order,
    unknown of an element) each."""
    U, twist = shape_matrices(shapes)
    slope = np.einsum("pq,uqc->upc", derivative_matrix(shapes.moving), U)
    moves = [U[:, :, 0], U[:, :, 1], U[:, :, 2]]
    return _orders(moves, 2), _orders([twist, -slope[:, :, 2], slope[:, :, 1]], 1)


def _orders(components: list[np.ndarray], least: int) -> np.ndarray:
    """Coefficients of Legendre's polynomials from those of powers (unknown, power), without orders
    that are always zero; at least so many."""
    parts = [x @ legendre(x.shape[1]).T for x in components]
    count = [1 + int(np.flatnonzero(np.abs(x).max(axis=0) > 1e-14).max(initial=-1)) for x in parts]
    size = max(least, *count)
    padded = [np.pad(x, ((0, 0), (0, max(0, size - x.shape[1]))))[:, :size] for x in parts]
    return np.transpose(np.stack(padded), (0, 2, 1))


def _half_product(weight: Float[Array, "c 1 n"], p: Array, q: Array) -> Scalar:
    """Half the integral of the product of polynomials (component, order, element)."""
    half = jnp.asarray(0.5 / (2 * np.arange(p.shape[1]) + 1), p.dtype)
    return jnp.sum(weight * half[None, :, None] * p * q)


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
    move, rotate = _matrices(shapes)
    move, rotate, axes = (move[:2], rotate[2:], [2]) if flat else (move, rotate, [0, 1, 2])
    first, second = (jnp.eye(move.shape[1], dtype=l.dtype)[k][:, None] for k in (0, 1))

    def components(matrix: np.ndarray, y: Unknowns) -> Float[Array, "c order n"]:
        rows = jnp.asarray(matrix.reshape(-1, matrix.shape[2]), y.dtype)
        return (rows @ scaled(shapes, y, l).T).reshape(*matrix.shape[:2], -1)

    along = first * (X + 0.5 * l)[None] + second * (0.5 * l)[None]
    R = components(move, y) + jnp.pad(along[None], ((0, move.shape[0] - 1), (0, 0), (0, 0)))

    def velocities(rate: Unknowns, z: Float[Array, "6"]) -> tuple[Array, Array]:
        v, w = z[:3, None, None], z[3:, None, None]
        if flat:
            across = w[2:] * jnp.stack([-R[1], R[0]])
        else:
            plus, minus = (jnp.roll(w, k, 0) * jnp.roll(R, -k, 0) for k in (-1, 1))
            across = plus - minus
        bending = np.array(axes)[:, None, None] > 0
        spin = components(rotate, rate) / jnp.where(bending, l[None, None], 1.0)
        constant = jnp.eye(rotate.shape[1], dtype=l.dtype)[0][None, :, None]
        return (
            components(move, rate) + across + v[: move.shape[0]] * first[None],
            spin + w[np.array(axes)] * constant,
        )

    (va, wa), (vb, wb) = (velocities(rate, z) for rate, z in zip(yd, twist, strict=True))
    spins = _half_product((l[:, None] * rhoI[:, np.array(axes)]).T[:, None], wa, wb)
    return _half_product((l * rhoA)[None, None], va, vb) + spins
