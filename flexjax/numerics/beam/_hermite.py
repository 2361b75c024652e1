"""Piecewise cubics on n equal elements of [0, 1], clamped at 0, as tables: polynomials of every element and where their coefficients stand.

Hermite cubics have value and slope at the nodes (C1). The slope is counted per element (its rise over one element at that slope), so that the functions do
not know the length of the link: a mesh that stretches with a link of variable length has the same tables.
"""

import dataclasses
import functools

import numpy as np

BAND = 3  # coefficients further apart than this never share an element, for Hermite cubics and for cubic B-splines alike


@dataclasses.dataclass(frozen=True, eq=False)
class Cubics:
    """``powers`` (n, 4, 4): coefficients of 1, x, x^2, x^3 (x in [0, 1] on the element) of the element's four functions. ``index`` (n, 4): where their
    coefficients stand; ``size`` (one behind the last) for clamped ones."""

    powers: np.ndarray
    index: np.ndarray
    size: int

    @property
    def elements(self) -> int:
        return self.powers.shape[0]


def clamped(powers: np.ndarray, index: np.ndarray, size: int) -> Cubics:
    """Without the first two functions, the only ones with value or slope at 0."""
    return Cubics(powers, np.where(index < 2, size - 2, index - 2), size - 2)


@functools.cache
def hermite_cubics(elements: int) -> Cubics:
    """2 n functions: value and slope at every node but the first.

    >>> hermite_cubics(3).size
    6
    """
    one = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]], float)
    index = 2 * np.arange(elements)[:, None] + np.arange(4)[None, :]
    return clamped(np.broadcast_to(one, (elements, 4, 4)), index, 2 * elements + 2)
