"""Cubic B-splines on n equal elements of [0, 1], clamped at 0: C2, so that a contact that runs along them never meets a jump of the curvature."""

import functools

import numpy as np

from flexjax.numerics.beam._hermite import Cubics, clamped


def _basis(knots: np.ndarray, i: int, degree: int, x: float, element: int) -> float:
    """Cox-de Boor, with the element given: the polynomial piece, valid on its closed interval."""
    if degree == 0:
        return 1.0 if i == element + 3 else 0.0
    value = 0.0
    if knots[i + degree] > knots[i]:
        value += (
            (x - knots[i])
            / (knots[i + degree] - knots[i])
            * _basis(knots, i, degree - 1, x, element)
        )
    if knots[i + degree + 1] > knots[i + 1]:
        value += (
            (knots[i + degree + 1] - x)
            / (knots[i + degree + 1] - knots[i + 1])
            * _basis(knots, i + 1, degree - 1, x, element)
        )
    return value


@functools.cache
def bspline_cubics(elements: int) -> Cubics:
    """n + 1 functions: those of n + 3 that have neither value nor slope at 0.

    >>> bspline_cubics(4).size
    5
    """
    # In units of elements, the knots at both ends four times.
    knots = np.concatenate([np.zeros(3), np.arange(elements + 1.0), np.full(3, float(elements))])
    samples = np.array([0.0, 1 / 3, 2 / 3, 1.0])
    vandermonde = np.vander(samples, 4, increasing=True)
    powers = np.empty((elements, 4, 4))
    # Away from the ends all elements are alike; recursion only where it differs.
    for e in range(elements):
        inner = 3 <= e < elements - 4
        if inner and e > 3:
            powers[e] = powers[3]
            continue
        values = np.array([[_basis(knots, e + a, 3, e + x, e) for a in range(4)] for x in samples])
        powers[e] = np.linalg.solve(vandermonde, values)
    index = np.arange(elements)[:, None] + np.arange(4)[None, :]
    return clamped(powers, index, elements + 3)
