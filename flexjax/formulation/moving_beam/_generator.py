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

from flexjax.beam._polynomial import coefficient_matrix, hilbert, product_integrals
from flexjax.formulation.moving_beam._shapes import SPATIAL, Shapes, field_rows, length_powers
from flexjax.formulation.moving_beam._terms import LETTERS, STIFFNESSES, Term


@dataclasses.dataclass(frozen=True)
class Tables:
    """What one set of terms needs, all static. Rows of the factor table: the letters, then the pairs."""

    letters: str
    pairs: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # (index of the stiffness, derivatives in the term)
    weights: tuple  # per group: ((row, row, factor), ...)
    names: tuple[str, ...]  # of the terms, in the order of the weights
    degree: int
    shapes: Shapes

    def left(self) -> np.ndarray:
        return np.array([[x == pair[0] for x in self.letters] for pair in self.pairs], float).reshape(len(self.pairs), len(self.letters))

    def right(self) -> np.ndarray:
        return np.array([[x == pair[1] for x in self.letters] for pair in self.pairs], float).reshape(len(self.pairs), len(self.letters))

    def selections(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One-hot (row, term) of both factors of every term, and (group, term) with the terms' rational factors."""
        entries = [(g, *entry) for g, group in enumerate(self.weights) for entry in group]
        rows = len(self.letters) + len(self.pairs)
        first, second, group = np.zeros((rows, len(entries))), np.zeros((rows, len(entries))), np.zeros((len(self.groups), len(entries)))
        for t, (g, i, j, factor) in enumerate(entries):
            first[i, t], second[j, t], group[g, t] = 1.0, 1.0, factor
        return first, second, group


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


@functools.cache
def tables(terms: tuple[Term, ...], shapes: Shapes = SPATIAL) -> Tables:
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
        grouped.setdefault((STIFFNESSES.index(t.stiffness), t.derivatives), []).append((row[left], row[right], float(t.factor), t.name))
    weights = tuple(tuple(entry[:3] for entry in g) for g in grouped.values())
    names = tuple(entry[3] for g in grouped.values() for entry in g)
    return Tables(letters, tuple(pairs), tuple(grouped), weights, names, max(t.degree for t in terms), shapes)


@functools.cache
def letter_matrix(letters: str, shapes: Shapes) -> np.ndarray:
    """(unknowns of an element, letter, power): coefficients of the letters' derivatives in xi, without their powers of l, from scaled unknowns."""
    rows, fields = field_rows(shapes), shapes.fields
    powers = max(len(f) - LETTERS[x][1] for x in letters if LETTERS[x][0] in fields for f in fields[LETTERS[x][0]].functions)
    out = np.zeros((shapes.size, len(letters), powers))
    for i, x in enumerate(letters):
        field, order = LETTERS[x]
        for k, row in enumerate(rows.get(field, ())):
            out[row, i] = coefficient_matrix(fields[field], order, powers)[:, k]
    return out


def scaled(shapes: Shapes, y: Float[Array, "n unknowns"], length: Float[Array, " n"]) -> Float[Array, "n unknowns"]:
    """Unknowns times S = l^power."""
    powers = length_powers(shapes)
    out = y
    for k in range(1, int(powers.max(initial=0.0)) + 1):
        mask = jnp.asarray(powers >= k, y.dtype)[None, :]
        out = out * (1 - mask + mask * length[:, None])
    return out


def factor_table(tab: Tables, h: Float[Array, "n unknowns"]) -> Float[Array, "n rows powers"]:
    """Coefficients in xi of every letter and pair, from scaled unknowns: two products with constant matrices."""
    dtype = h.dtype
    C = letter_matrix(tab.letters, tab.shapes)
    # letters, then left and right factors of the pairs, in one product
    wide = np.concatenate([C, np.einsum("url,pr->upl", C, tab.left()), np.einsum("url,pr->upl", C, tab.right())], axis=1)
    n, letters, pairs, powers = h.shape[0], len(tab.letters), len(tab.pairs), C.shape[2]
    G = (h @ jnp.asarray(wide.reshape(wide.shape[0], -1), dtype)).reshape(n, letters + 2 * pairs, powers)
    A = jnp.pad(G[:, :letters], ((0, 0), (0, 0), (0, powers - 1)))
    if pairs:
        left, right = G[:, letters : letters + pairs], G[:, letters + pairs :]
        A = jnp.concatenate([A, multiply(left, right)], axis=1)
    return A


@functools.cache
def _products(powers: int) -> np.ndarray:
    out = np.zeros((powers, powers, 2 * powers - 1))
    for m in range(powers):
        for n in range(powers):
            out[m, n, m + n] = 1.0
    return out.reshape(-1, 2 * powers - 1)


def multiply(p, q):
    """Products of polynomials along the last axis."""
    powers = p.shape[-1]
    outer = (p[..., :, None] * q[..., None, :]).reshape(*p.shape[:-1], powers * powers)
    return outer @ jnp.asarray(_products(powers), p.dtype)


def strain_energy(
    tab: Tables, y: Float[Array, "n unknowns"], length: Float[Array, " n"], stiffness: Float[Array, "n 4"], couplings: dict[str, Array] | None = None
) -> Float[Array, ""]:
    """Strain energy of all elements together: their unknowns, lengths, and EA, GJ, EIy, EIz. ``couplings`` multiply the terms of their names."""
    dtype = y.dtype
    A = factor_table(tab, scaled(tab.shapes, y, length))
    powers = hilbert(A.shape[2], A.shape[2])
    first, second, group = tab.selections()
    left = jnp.einsum("nrk,rt->nkt", A, jnp.asarray(first, dtype))
    right = jnp.einsum("nrk,kl,rt->nlt", A, jnp.asarray(powers, dtype), jnp.asarray(second, dtype))
    scale = jnp.stack([stiffness[:, k] * length ** (1 - n) for k, n in tab.groups], axis=1)
    factors = scale @ jnp.asarray(group, dtype)
    if couplings is not None:
        factors = factors * jnp.stack([couplings[name] for name in tab.names])[None, :]
    return jnp.sum(left * right * factors[:, None, :])


def of_degree(terms: tuple[Term, ...], degree: int) -> tuple[Term, ...]:
    return tuple(t for t in terms if t.degree == degree)


def dense_tensor(term: Term, shapes: Shapes = SPATIAL) -> np.ndarray:
    """The product-integral tensor D of a term in its shape functions, exact (Fractions): the library that eqs. (12)-(14) ask for."""
    return product_integrals(tuple((shapes.fields[LETTERS[x][0]], LETTERS[x][1]) for x in term.letters))


def dense_energy(terms: tuple[Term, ...], y: Float[Array, " unknowns"], length, stiffness, shapes: Shapes = SPATIAL) -> Array:
    """The same energy of one element by the dense tensors. Slow; for checks and comparison."""
    rows, total = field_rows(shapes), 0.0
    h = y * length ** jnp.asarray(length_powers(shapes))
    for t in terms:
        D = jnp.asarray(dense_tensor(t, shapes).astype(float))
        for x in t.letters:
            D = jnp.tensordot(h[np.array(rows[LETTERS[x][0]])], D, axes=(0, 0))
        total = total + float(t.factor) * stiffness[STIFFNESSES.index(t.stiffness)] * length ** (1 - t.derivatives) * D
    return total
