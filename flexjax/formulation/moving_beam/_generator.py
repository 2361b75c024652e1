"""From the list of terms and the polynomial coefficients of the shape functions to the element's strain energy: no quadrature over the length.

Every integral is a product integral of polynomials, D of eq. (14). The dense tensors (:func:`dense_tensor`) are there to read and to check; in the time
loop they are used in factored form. D_ijkl = sum_mn Q_ijm H_mn Q_kln, where Q multiplies two polynomials (ones and zeros) and H_mn = 1/(m + n + 1):
first the pairs of fields that occur, then one bilinear form. That is 10 pairs instead of 4^4 products for each of the 13 quartic terms.
"""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam._polynomial import CUBIC, LINEAR, coefficient_matrix, hilbert, product_integrals
from flexjax.formulation.moving_beam._terms import LETTERS, STIFFNESSES, Term

SHAPES = {"ux": CUBIC, "alpha": LINEAR, "uy": CUBIC, "uz": CUBIC}
POWERS = 3  # a first derivative of a cubic has three coefficients
PRODUCT = 2 * POWERS - 1

# Derivatives in xi as maps of coefficients: d/dxi of four coefficients.
_D4 = np.diag([1.0, 2.0, 3.0], 1)
_MULTIPLY = np.zeros((POWERS, POWERS, PRODUCT))
for _m in range(POWERS):
    for _n in range(POWERS):
        _MULTIPLY[_m, _n, _m + _n] = 1.0
_HILBERT = hilbert(PRODUCT, PRODUCT)


@dataclasses.dataclass(frozen=True)
class Tables:
    """What one set of terms needs, all static. Rows of the factor table: the letters, the pairs, and the constant one."""

    letters: str
    pairs: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # (index of the stiffness, derivatives in the term)
    weights: tuple  # per group: ((row, row, factor), ...)
    degree: int

    def left(self) -> np.ndarray:
        return np.array([[x == pair[0] for x in self.letters] for pair in self.pairs], float).reshape(len(self.pairs), len(self.letters))

    def right(self) -> np.ndarray:
        return np.array([[x == pair[1] for x in self.letters] for pair in self.pairs], float).reshape(len(self.pairs), len(self.letters))

    def matrices(self) -> np.ndarray:
        """(group, row, row), symmetric."""
        rows = len(self.letters) + len(self.pairs)
        out = np.zeros((len(self.groups), rows, rows))
        for g, entries in enumerate(self.weights):
            for i, j, factor in entries:
                out[g, i, j] += 0.5 * factor
                out[g, j, i] += 0.5 * factor
        return out


def _split(letters: str, known: list[str]) -> tuple[str, str]:
    """A product of three or four letters as pair times rest, with pairs that are there already where possible."""
    if len(letters) == 2:
        return letters[0], letters[1]
    choices = []
    for i in range(len(letters)):
        for j in range(i + 1, len(letters)):
            pair, rest = letters[i] + letters[j], "".join(letters[k] for k in range(len(letters)) if k not in (i, j))
            new = {p for p in (pair, rest) if len(p) == 2} - set(known)
            choices.append((len(new), pair, rest))
    return min(choices)[1:]


@functools.lru_cache(maxsize=None)
def tables(terms: tuple[Term, ...]) -> Tables:
    letters = "".join(x for x in LETTERS if any(x in t.letters for t in terms))
    pairs: list[str] = []
    products = []
    for t in sorted(terms, key=lambda t: (-len(set(t.letters)) if t.degree == 4 else 0, t.name)):
        left, right = _split(t.letters, pairs)
        for p in (left, right):
            if len(p) == 2 and p not in pairs:
                pairs.append(p)
        products.append((t, left, right))
    row = {x: i for i, x in enumerate(letters)} | {p: len(letters) + i for i, p in enumerate(pairs)}
    grouped: dict[tuple[int, int], list] = {}
    for t, left, right in products:
        grouped.setdefault((STIFFNESSES.index(t.stiffness), t.derivatives), []).append((row[left], row[right], float(t.factor)))
    return Tables(letters, tuple(pairs), tuple(grouped), tuple(tuple(g) for g in grouped.values()), max(t.degree for t in terms))


def letter_polynomials(letters: str, U: Float[Array, "4 3"], twist: Float[Array, " 2"]) -> Float[Array, "letters 3"]:
    """Coefficients of the letters' derivatives in xi (without their powers of l), from those of the displacements and of the twist."""
    first = jnp.asarray(_D4, U.dtype) @ U
    second = jnp.asarray(_D4, U.dtype) @ first
    zero = jnp.zeros(1, U.dtype)
    rows = {
        "a": first[:3, 0], "b": second[:3, 0], "c": first[:3, 1], "d": second[:3, 1], "e": first[:3, 2], "f": second[:3, 2],
        "s": jnp.concatenate([twist, zero]), "p": jnp.concatenate([twist[1:], zero, zero]),
    }  # fmt: skip
    return jnp.stack([rows[x] for x in letters])


def strain_energy(tab: Tables, U, twist, length, stiffness: Float[Array, " 4"]) -> Float[Array, ""]:
    """Strain energy of one element: EA, GJ, EIy, EIz and the coefficients of its fields in xi."""
    dtype = U.dtype
    F = letter_polynomials(tab.letters, U, twist)
    A = jnp.pad(F, ((0, 0), (0, PRODUCT - POWERS)))
    if tab.pairs:
        left, right = jnp.asarray(tab.left(), dtype) @ F, jnp.asarray(tab.right(), dtype) @ F
        P = jnp.einsum("rm,rn,mnk->rk", left, right, jnp.asarray(_MULTIPLY, dtype))
        A = jnp.concatenate([A, P])
    scale = jnp.stack([stiffness[k] * length ** (1 - n) for k, n in tab.groups])
    weight = jnp.tensordot(scale, jnp.asarray(tab.matrices(), dtype), 1)
    return jnp.sum(weight * (A @ jnp.asarray(_HILBERT, dtype) @ A.T))


def of_degree(terms: tuple[Term, ...], degree: int) -> tuple[Term, ...]:
    return tuple(t for t in terms if t.degree == degree)


def dense_tensor(term: Term) -> np.ndarray:
    """The product-integral tensor D of a term in its shape functions, exact (Fractions): the library that eqs. (12)-(14) ask for."""
    return product_integrals(tuple((SHAPES[LETTERS[x][0]], LETTERS[x][1]) for x in term.letters))


def dense_energy(terms: tuple[Term, ...], unknowns: dict[str, Array], length, stiffness) -> Array:
    """The same energy by the dense tensors: unknowns of each field ("ux", "alpha", "uy", "uz") of one element. Slow; for checks and comparison."""
    total = 0.0
    for t in terms:
        D = jnp.asarray(dense_tensor(t).astype(float))
        for x in t.letters:
            field = LETTERS[x][0]
            D = jnp.tensordot(unknowns[field] * length ** np.array(SHAPES[field].scale, float), D, axes=(0, 0))
        total = total + float(t.factor) * stiffness[STIFFNESSES.index(t.stiffness)] * length ** (1 - t.derivatives) * D
    return total


CUBIC_COEFFICIENTS = coefficient_matrix(CUBIC)
