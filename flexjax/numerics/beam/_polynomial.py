"""Shape functions with rational coefficients, and their exact product integrals on an element.

On an element of length l with xi = x/l in [0, 1], a field is u(x) = sum_i S_i f_i(xi) u_i with
S_i = l^scale_i (an unknown slope has one power of l). Soeffker's eqs. (12)-(14), with the factors
of l that are missing in print:
    int_0^l f_a^(na) f_b^(nb) ... dx = l^(1 - na - nb - ...) S_a S_b ... D_ab..,
    D_ab.. = int_0^1 of the derivatives w.r.t. xi.
"""

import dataclasses
import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Polynomial = tuple[Fraction, ...]


@dataclasses.dataclass(frozen=True)
class ShapeSet:
    """A named set of shape functions.

    ``functions`` has one row of coefficients, of ascending powers of xi, per function; ``scale``
    is the power of l of each unknown.
    """

    name: str
    functions: tuple[Polynomial, ...]
    scale: tuple[int, ...]


def _set(name: str, rows: Sequence[Sequence[Any]], scale: Sequence[int]) -> ShapeSet:
    return ShapeSet(name, tuple(tuple(Fraction(c) for c in row) for row in rows), tuple(scale))


LINEAR = _set("linear", [(1, -1), (0, 1)], (0, 0))
# Value and slope at both ends. With shared slopes (C1) they interpolate bending, with one slope per
# element ("C0 cubic") the axial displacement.
CUBIC = _set("cubic", [(1, 0, -3, 2), (0, 1, -2, 1), (0, 0, 3, -2), (0, 0, -1, 1)], (0, 1, 0, 1))
QUINTIC = _set(
    "quintic",
    [
        (1, 0, 0, -10, 15, -6),
        (0, 1, 0, -6, 8, -3),
        (0, 0, Fraction(1, 2), Fraction(-3, 2), Fraction(3, 2), Fraction(-1, 2)),
        (0, 0, 0, 10, -15, 6),
        (0, 0, 0, -4, 7, -3),
        (0, 0, 0, Fraction(1, 2), -1, Fraction(1, 2)),
    ],
    (0, 1, 2, 0, 1, 2),
)


def differentiate(p: Polynomial, times: int = 1) -> Polynomial:
    for _ in range(times):
        p = tuple(k * c for k, c in enumerate(p))[1:] or (Fraction(0),)
    return p


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] += a * b
    return tuple(out)


def integrate(p: Polynomial) -> Fraction:
    """The integral over [0, 1]."""
    return sum((c / (k + 1) for k, c in enumerate(p)), Fraction(0))


@functools.cache
def product_integrals(factors: tuple[tuple[ShapeSet, int], ...], weight: int = 0) -> np.ndarray:
    """D of eqs. (12)-(14): the array of int_0^1 xi^weight f_a^(na) f_b^(nb) ..., as Fractions.

    ``factors`` is ((set, order of the derivative), ...).

    >>> str(product_integrals(((CUBIC, 1), (CUBIC, 1), (CUBIC, 1)))[0, 0, 0])
    '-54/35'
    """
    out = np.empty([len(s.functions) for s, _ in factors], dtype=object)
    start = tuple([Fraction(0)] * weight + [Fraction(1)])

    def fill(index, p, rest):
        if not rest:
            out[index] = integrate(p)
            return
        shapes, order = rest[0]
        for i, f in enumerate(shapes.functions):
            fill((*index, i), multiply(p, differentiate(f, order)), rest[1:])

    fill((), start, factors)
    return out


@functools.cache
def coefficient_matrix(shapes: ShapeSet, order: int = 0, rows: int | None = None) -> np.ndarray:
    """Coefficients (power of xi, function) of a derivative w.r.t. xi, padded to ``rows`` powers."""
    columns = [differentiate(f, order) for f in shapes.functions]
    size = max(len(c) for c in columns) if rows is None else rows
    return np.array([[float(c[k]) if k < len(c) else 0.0 for c in columns] for k in range(size)])


def hilbert(rows: int, columns: int, weight: int = 0) -> np.ndarray:
    """int_0^1 xi^(i + j + weight): the product integrals of the powers of xi."""
    return np.array(
        [[float(Fraction(1, i + j + weight + 1)) for j in range(columns)] for i in range(rows)]
    )


def derivative_matrix(size: int) -> np.ndarray:
    """Coefficients of dp/dxi from those of p."""
    return np.diag(np.arange(1.0, size), 1)


def shift_matrix(size: int) -> np.ndarray:
    """Coefficients of xi p from those of p, whose last one must be zero."""
    return np.diag(np.ones(size - 1), -1)
