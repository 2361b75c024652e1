"""Shape functions over the whole length of a link: polynomials, eigenfunctions or the user's own.

All are Legendre series in s in [0, 1], which can be evaluated at a traced station. Unlike monomials
they are accurate at high degree. The series do not depend on the robot, so gradients with respect
to the robot involve no eigenproblem. For a uniform link, the functions of one direction are
orthogonal w.r.t. mass and stiffness; for any other link only their span matters.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.polynomial import Legendre, legendre

from flexjax._types import ScalarLike

DIRECTIONS = ("axial", "y", "z", "torsion")


class ShapeFunctions(eqx.Module):
    """m functions of s, each in one direction.

    The directions are 0: axial displacement u, 1: deflection v along y, 2: deflection w along z,
    3: torsion angle. ``series`` are the Legendre coefficients of values, first and second
    derivatives.
    """

    series: Float[Array, "3 m degree"]
    direction: tuple[int, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        return len(self.direction)

    def __call__(self, s: ScalarLike) -> Float[Array, "3 m"]:
        """Values, first and second derivatives with respect to s, at one station."""
        x = 2.0 * s - 1.0
        rows = [jnp.ones_like(x), x]
        for k in range(2, self.series.shape[2]):
            rows.append(((2 * k - 1) * x * rows[-1] - (k - 1) * rows[-2]) / k)
        return self.series @ jnp.stack(rows[: self.series.shape[2]])


def _monomial(k: int) -> Legendre:
    return Legendre.basis(0, [0, 1]) if k == 0 else Legendre.identity([0, 1]) ** k


def _inner(f: Legendre, g: Legendre) -> float:
    h = (f * g).integ()
    return h(1.0) - h(0.0)


def _orthogonal(functions: list[Legendre], order: int) -> list[Legendre]:
    """Modes of a uniform link in the given span.

    They are orthonormal, and their derivatives of the given order are orthogonal.
    """
    if not functions:
        return []
    derivatives = [f.deriv(order) for f in functions]
    mass = np.array([[_inner(f, g) for g in functions] for f in functions])
    stiff = np.array([[_inner(f, g) for g in derivatives] for f in derivatives])
    lower = np.linalg.cholesky(mass)
    back = np.linalg.inv(lower)
    _, vectors = np.linalg.eigh(back @ stiff @ back.T)
    combined = [
        sum((c * f for c, f in zip(column, functions, strict=True)), 0 * functions[0])
        for column in (back.T @ vectors).T
    ]
    return [f if f(1.0) > 0 else -f for f in combined]


def polynomials(count: int, bending: bool) -> list[Legendre]:
    """Modes in the span of x^2, ..., x^(count+1) (bending) or of x, ..., x^count.

    They satisfy only the conditions of the clamped end, so they converge for any load at the tip.
    """
    first = _monomial(2 if bending else 1)
    return _orthogonal(
        [first * Legendre.basis(k, [0, 1]) for k in range(count)], 2 if bending else 1
    )


def _root_clamped_free(k: int) -> float:
    """Root k of cos(b) cosh(b) = -1, by Newton's iteration from the zeros of the cosine."""
    b = 1.8751 if k == 0 else (k + 0.5) * np.pi
    for _ in range(8):
        b -= (np.cos(b) + 1 / np.cosh(b)) / (-np.sin(b) - np.tanh(b) / np.cosh(b))
    return b


def eigenfunctions(count: int, bending: bool) -> list[Legendre]:
    """Modes of the uniform link with clamped base and free tip.

    Their bending moment vanishes at the tip. They converge slowly (like 1/count) where the next
    joint transmits a moment, and fast where it does not.
    """

    def curvature(k):
        b = _root_clamped_free(k)
        # cosh + cos - sigma (sinh + sin) without the cancellation of growing exponentials.
        denominator = np.cosh(b) + np.cos(b)
        sigma = (np.sinh(b) - np.sin(b)) / denominator
        growing = (np.cos(b) + np.sin(b) + np.exp(-b)) / (2 * denominator)  # (1 - sigma)/2
        decaying = 0.5 * (1 + sigma)
        exponentials = lambda x: growing * np.exp(b * x) + decaying * np.exp(-b * x)
        return lambda x: b**2 * (exponentials(x) + np.cos(b * x) - sigma * np.sin(b * x))

    def slope(k):
        b = (k + 0.5) * np.pi
        return lambda x: np.sqrt(2) * b * np.cos(b * x)

    # Integrating the series of the highest derivative from the clamp satisfies its conditions and
    # damps round-off. Differentiating a series multiplies round-off by the square of the degree.
    derivative, order = (curvature, 2) if bending else (slope, 1)
    return [
        series_of(derivative(k), 24 + 4 * count).integ(order, lbnd=0.0) * (1 if k % 2 == 0 else -1)
        for k in range(count)
    ]


def series_of(function: Callable, degree: int = 40) -> Legendre:
    """The Legendre series of a smooth function of s in [0, 1], accurate to 1e-10 or refused."""
    x, w = legendre.leggauss(degree + 8)
    values = np.array([float(function(s)) for s in 0.5 * (x + 1)])
    k = np.arange(degree + 1)
    coefficients = (2 * k + 1) / 2 * (legendre.legvander(x, degree).T @ (w * values))
    series = Legendre(coefficients, [0, 1])
    between = np.linspace(0.0, 1.0, 37)
    exact = np.array([float(function(s)) for s in between])
    if not np.max(np.abs(series(between) - exact)) <= 1e-10 * np.max(np.abs(exact)):
        raise ValueError(
            "basis: a function is not smooth over [0, 1]; expected one with continuous derivatives "
            "of all orders, e.g. lambda s: s**2."
        )
    return series


def shape_functions(
    counts: Sequence[int],
    basis: str | dict = "polynomial",
    frame: float = 0.0,
    dtype: DTypeLike | None = None,
) -> ShapeFunctions:
    """Shape functions that are clamped at one station.

    Arguments:
        counts: number of functions in the directions (axial, y, z, torsion).
        basis: "polynomial", "clamped-free", or a dict from direction ("axial", "y", "z",
            "torsion") to ``counts`` functions of s.
        frame: station of the clamp. Clamping away from the base subtracts a rigid motion, which
            changes neither the span nor the model.
        dtype: type of the coefficients.

    Returns:
        The shape functions.

    >>> basis = shape_functions((0, 2, 0, 0))
    >>> basis(1.0).shape
    (3, 2)
    """
    if isinstance(basis, str) and basis not in ("polynomial", "clamped-free"):
        raise ValueError(
            f"basis: {basis!r}; expected 'polynomial', 'clamped-free', or a dict of functions, "
            "e.g. {'y': (lambda s: s**2,)}."
        )
    functions, direction = [], []
    for d, count in enumerate(counts):
        bending = d in (1, 2)
        if isinstance(basis, dict):
            given = [
                f if isinstance(f, Legendre) else series_of(f) for f in basis.get(DIRECTIONS[d], ())
            ]
            if len(given) != count:
                raise ValueError(
                    f"basis.{DIRECTIONS[d]}: {len(given)} functions; expected {count}."
                )
        else:
            given = (polynomials if basis == "polynomial" else eigenfunctions)(count, bending)
        x = _monomial(1)
        rigid = [
            f(frame) + f.deriv()(frame) * (x - frame) if bending else f(frame) + 0 * x
            for f in given
        ]
        functions += [f - r for f, r in zip(given, rigid, strict=True)]
        direction += [d] * count
    degree = 1 + max((len(f.coef) for f in functions), default=1)
    table = np.zeros((3, len(functions), degree))
    for j, f in enumerate(functions):
        for order in range(3):
            coefficients = f.deriv(order).coef if order else f.coef
            table[order, j, : len(coefficients)] = coefficients
    return ShapeFunctions(jnp.asarray(table, dtype), tuple(direction))
