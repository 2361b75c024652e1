"""Cubic B-splines on n equal elements of [0, 1], clamped at 0.

They are C2: a contact that slides along them meets no jump of the curvature.
"""

import functools

import numpy as np

from flexjax.numerics.beam._hermite import Cubics, clamped


def _basis(knots: np.ndarray, i: int, degree: int, x: float, element: int) -> float:
    """Cox-de Boor recursion for the polynomial on one element, valid on the closed element."""
    if degree == 0:
        return 1.0 if i == element + 3 else 0.0
    value = 0.0
    width = knots[i + degree] - knots[i]
    if width > 0:
        value += (x - knots[i]) / width * _basis(knots, i, degree - 1, x, element)
    end = knots[i + degree + 1]
    width = end - knots[i + 1]
    if width > 0:
        value += (end - x) / width * _basis(knots, i + 1, degree - 1, x, element)
    return value


@functools.cache
def bspline_cubics(elements: int) -> Cubics:
    """n + 1 of the n + 3 B-splines: those with zero value and zero slope at 0.

    >>> bspline_cubics(4).size
    5
    """
    # Knots in units of the element length; both ends have multiplicity four.
    knots = np.concatenate([np.zeros(3), np.arange(elements + 1.0), np.full(3, float(elements))])
    samples = np.array([0.0, 1 / 3, 2 / 3, 1.0])
    vandermonde = np.vander(samples, 4, increasing=True)
    powers = np.empty((elements, 4, 4))
    # Elements away from the ends have the same polynomials.
    for e in range(elements):
        inner = 3 <= e < elements - 4
        if inner and e > 3:
            powers[e] = powers[3]
            continue
        values = np.array([[_basis(knots, e + a, 3, e + x, e) for a in range(4)] for x in samples])
        powers[e] = np.linalg.solve(vandermonde, values)
    index = np.arange(elements)[:, None] + np.arange(4)[None, :]
    return clamped(powers, index, elements + 3)
