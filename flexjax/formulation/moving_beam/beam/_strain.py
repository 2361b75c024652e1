"""The strain energy: the list of its terms, exact integrals over the elements, strain measures.

Letters: a = ux', b = ux'', c = uy', d = uy'', e = uz', f = uz'', s = alpha (twist), p = alpha'. The
term "EA a c c" with the factor 1/2 is the density EA ux' uy'^2 / 2. The curvatures are corrected
(PAPER.md):
    k1 = p + d e,   k2 = -f + a f + b e + s d + ...,   k3 = d - a d - b c + s f + ...

Every integral is a product integral of polynomials, D of eq. (14). Gauss points as many as the
degree of the density needs make it exact. First the pairs of letters that occur, then one product
per first factor, with the second factors of all its terms summed. All are arrays over points and
elements, so that few operations are traced and XLA compiles few kernels.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.moving_beam.beam._shapes import (
    SPATIAL,
    Coefficients,
    PerElement,
    Shapes,
    Unknowns,
    field_rows,
    length_powers,
)
from flexjax.numerics.beam import coefficient_matrix

# letter -> (field, order of the derivative)
LETTERS = {
    "a": ("ux", 1),
    "b": ("ux", 2),
    "s": ("alpha", 0),
    "p": ("alpha", 1),
    "c": ("uy", 1),
    "d": ("uy", 2),
    "e": ("uz", 1),
    "f": ("uz", 2),
}
STIFFNESSES = ("EA", "GJ", "EIy", "EIz")
Couplings = dict[str, Array]  # factors of the terms, by name


@dataclasses.dataclass(frozen=True)
class Term:
    """One product in the density of the strain energy: factor * stiffness * product of letters.

    >>> str(Term("EA", "acc", Fraction(1, 2)))
    'EA a c c / 2'
    """

    stiffness: str
    letters: str
    factor: Fraction

    def __post_init__(self):
        object.__setattr__(self, "letters", "".join(sorted(self.letters)))
        object.__setattr__(self, "factor", Fraction(self.factor))
        if self.stiffness not in STIFFNESSES:
            raise ValueError(
                f"term: stiffness {self.stiffness!r}; expected one of {', '.join(STIFFNESSES)}."
            )
        if not 2 <= len(self.letters) <= 4 or any(x not in LETTERS for x in self.letters):
            raise ValueError(
                f"term: letters {self.letters!r}; expected two to four of {', '.join(LETTERS)}."
            )

    @property
    def name(self) -> str:
        return f"{self.stiffness} {' '.join(self.letters)}"

    @property
    def degree(self) -> int:
        return len(self.letters)

    @property
    def derivatives(self) -> int:
        """Sum of the orders of all derivatives."""
        return sum(LETTERS[x][1] for x in self.letters)

    @property
    def planar(self) -> bool:
        """Whether it can differ from zero in a beam that stays in its plane."""
        return all(x in "abcd" for x in self.letters)

    def __str__(self) -> str:
        top, bottom = self.factor.numerator, self.factor.denominator
        sign = {1: "", -1: "-"}.get(top, f"{top} ")
        return f"{sign}{self.name}" + (f" / {bottom}" if bottom != 1 else "")


def _terms(table: str) -> tuple[Term, ...]:
    """Terms from text: one line each with factor, stiffness, letters."""
    rows = (line.split() for line in table.strip().splitlines())
    return tuple(Term(stiffness, letters, Fraction(x)) for x, stiffness, letters in rows)


LINEAR_TERMS = _terms("""
1/2 EA aa
1/2 GJ pp
1/2 EIy ff
1/2 EIz dd
""")
CUBIC_TERMS = _terms("""
1/2 EA acc
1/2 EA aee
1 GJ pde
-1 EIy aff
-1 EIy bef
-1 EIy sdf
-1 EIz add
-1 EIz bcd
1 EIz sdf
""")
# The terms that the printed order lacks: with them the membrane energy is the square
# EA (a + g2/2)^2 / 2 and bounded below.
COMPLETING_TERMS = _terms("""
1/8 EA cccc
1/4 EA ccee
1/8 EA eeee
""")
# All other terms of the fourth weighted order (ux' = O(2), the rest O(1)): squares of the quadratic
# parts of k1..k3, and products of their cubic parts with the linear ones. The cubic parts are
# k2: s^2 f/2 + c^2 f/2 + c d e + e^2 f,   k3: - s^2 d/2 - c^2 d - d e^2/2.
CONSISTENT_TERMS = _terms("""
1/2 GJ ddee
1/2 EIy ssdd
-1/2 EIy ssff
-1/2 EIy ccff
-1 EIy cdef
-1 EIy eeff
1/2 EIz ssff
-1/2 EIz ssdd
-1 EIz ccdd
-1/2 EIz ddee
""")
ORDERS = {
    "linear": LINEAR_TERMS,
    "cubic": LINEAR_TERMS + CUBIC_TERMS,
    "complete": LINEAR_TERMS + CUBIC_TERMS + COMPLETING_TERMS,
    "consistent": LINEAR_TERMS + CUBIC_TERMS + COMPLETING_TERMS + CONSISTENT_TERMS,
}
KNOWN = {t.name: t for t in ORDERS["consistent"]}


def resolve(order: str | Iterable[str | Term]) -> tuple[Term, ...]:
    """The terms of an order.

    Arguments:
        order: "linear", "cubic", "complete", "consistent", or a collection of names ("EA a c c",
            with the factor of the lists above) and :class:`Term` objects. The linear terms are
            always included.

    >>> [str(t) for t in resolve({"EA a c c"})][-1]
    'EA a c c / 2'
    """
    if isinstance(order, str):
        if order not in ORDERS:
            raise ValueError(
                f"order: {order!r}; expected one of {', '.join(ORDERS)}, or a collection of terms "
                "such as {'EA a c c', 'EA c c c c'}."
            )
        return ORDERS[order]
    chosen = {t.name: t for t in LINEAR_TERMS}
    first = list(chosen)
    for item in order:
        if isinstance(item, Term):
            chosen[item.name] = item
            continue
        stiffness, _, letters = item.partition(" ")
        name = f"{stiffness} {' '.join(sorted(letters.replace(' ', '')))}"
        if name not in KNOWN:
            raise ValueError(
                f"order: no term {item!r} in the list; expected one of {', '.join(KNOWN)}, "
                "or a Term with its own factor."
            )
        chosen[name] = KNOWN[name]
    rest = sorted((t for t in chosen.values() if t.name not in first), key=_degree_and_name)
    return (*(chosen[name] for name in first), *rest)


def _degree_and_name(term: Term) -> tuple[int, str]:
    return term.degree, term.name


def is_bounded(terms: Iterable[Term]) -> bool:
    """Whether the membrane energy is bounded below.

    A coupling of extension and slope needs the fourth power of the slope.
    """
    names = {t.name for t in terms}
    return all(f"EA {x} {x} {x} {x}" in names for x in "ce" if f"EA a {x} {x}" in names)


def table(terms: Iterable[Term]) -> str:
    """The terms as text, one per line, with the meaning of the letters."""
    meaning = ", ".join(f"{k} = {field}{chr(39) * n}" for k, (field, n) in LETTERS.items())
    return "\n".join([f"strain energy per length ({meaning}):", *(f"  {t}" for t in terms)])


@dataclasses.dataclass(frozen=True)
class StrainTables:
    """Static tables of one set of terms. Factors are letters or pairs of letters.

    ``products`` has one entry per group: ((first factor, ((second factor, factor of the term, name
    of the term), ...)), ...).
    """

    letters: str
    pairs: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # (index of the stiffness, derivatives in the term)
    products: tuple
    degree: int
    shapes: Shapes

    @property
    def linear(self) -> bool:
        """Whether strains are linear in the displacements."""
        return self.degree == 2


def _split(letters: str, known: list[str]) -> tuple[str, str]:
    """Two factors of a product of letters, with pairs that are known already where possible."""
    if len(letters) == 2:
        return letters[0], letters[1]
    choices = []
    for i in range(len(letters)):
        for j in range(i + 1, len(letters)):
            pair = letters[i] + letters[j]
            rest = "".join(letters[k] for k in range(len(letters)) if k not in (i, j))
            new = {p for p in (pair, rest) if len(p) == 2} - set(known)
            choices.append((len(new), pair, rest))
    return min(choices)[1:]


@functools.cache
def tables(terms: tuple[Term, ...], shapes: Shapes = SPATIAL) -> StrainTables:
    """The tables of these terms."""
    pairs: list[str] = []
    grouped: dict[tuple[int, int], dict[str, list]] = {}
    for t in sorted(terms, key=lambda t: (-len(set(t.letters)) if t.degree == 4 else 0, t.name)):
        left, right = _split(t.letters, pairs)
        pairs += [p for p in dict.fromkeys((left, right)) if len(p) == 2 and p not in pairs]
        group = grouped.setdefault((STIFFNESSES.index(t.stiffness), t.derivatives), {})
        # Either factor may come first: the one that the group has already.
        left, right = (right, left) if right in group and left not in group else (left, right)
        group.setdefault(left, []).append((right, float(t.factor), t.name))
    letters = "".join(x for x in LETTERS if any(x in t.letters for t in terms))
    products = tuple(tuple((x, tuple(y)) for x, y in group.items()) for group in grouped.values())
    degree = max(t.degree for t in terms)
    return StrainTables(letters, tuple(pairs), tuple(grouped), products, degree, shapes)


@functools.cache
def letter_matrix(letters: str, shapes: Shapes) -> np.ndarray:
    """Coefficients in xi of letters from scaled unknowns: (unknowns of an element, letter, power).

    Derivatives are with respect to xi, without their powers of l.
    """
    rows, fields = field_rows(shapes), shapes.fields
    powers = max(
        len(f) - LETTERS[x][1]
        for x in letters
        if LETTERS[x][0] in fields
        for f in fields[LETTERS[x][0]].functions
    )
    out = np.zeros((shapes.size, len(letters), powers))
    for i, x in enumerate(letters):
        field, order = LETTERS[x]
        if field in fields:
            out[list(rows[field]), i] = coefficient_matrix(fields[field], order, powers).T
    return out


def scaled(shapes: Shapes, y: Unknowns, length: PerElement) -> Unknowns:
    """Unknowns times S = l^power."""
    powers = length_powers(shapes)
    out = y
    for k in range(1, int(powers.max(initial=0.0)) + 1):
        mask = jnp.asarray(powers >= k, y.dtype)[None, :]
        out = out * (1 - mask + mask * length[:, None])
    return out


def coefficients(letters: str, shapes: Shapes, h: Unknowns) -> dict[str, Coefficients]:
    """Coefficients in xi of letters from scaled unknowns, without powers of l.

    A letter that is always zero has none.
    """
    C = letter_matrix(letters, shapes)
    count = [1 + np.flatnonzero(C[:, i].any(axis=0)).max(initial=-1) for i in range(len(letters))]
    used = np.concatenate([C[:, i, :k] for i, k in enumerate(count)], axis=1)
    G = jnp.asarray(used.T, h.dtype) @ h.T
    edges = np.cumsum([0, *count])
    return {x: [G[k] for k in range(edges[i], edges[i + 1])] for i, x in enumerate(letters)}


def times(p: Coefficients, q: Coefficients) -> Coefficients:
    """Product of two polynomials; no coefficients mean zero."""
    out: list = [None] * (len(p) + len(q) - 1 if p and q else 0)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] = a * b if out[i + j] is None else out[i + j] + a * b
    return out


def plus(p: Coefficients, q: Coefficients) -> Coefficients:
    """Sum of two polynomials."""
    short, long = sorted((p, q), key=len)
    return [a + b for a, b in zip(short, long, strict=False)] + long[len(short) :]


@functools.cache
def _at_points(tables: StrainTables) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """Rows of the letters that are not always zero; their values at Gauss points (row, point,
    unknown of an element) from scaled unknowns; weights of the points."""
    C = letter_matrix(tables.letters, tables.shapes)
    degree = {
        x: np.flatnonzero(C[:, i].any(axis=0)).max(initial=-1) for i, x in enumerate(tables.letters)
    }
    used = [x for x in tables.letters if degree[x] >= 0]
    highest = max(
        sum(degree[x] for x in first + second)
        for products in tables.products
        for first, seconds in products
        for second, _, _ in seconds
    )
    points, weights = np.polynomial.legendre.leggauss(highest // 2 + 1)
    powers = (0.5 * (points[:, None] + 1)) ** np.arange(C.shape[2])
    rows = [tables.letters.index(x) for x in used]
    return (
        {x: i for i, x in enumerate(used)},
        np.einsum("uxk,gk->xgu", C[:, rows], powers),
        0.5 * weights,
    )


# A function of its own, as the kinetic energy: traced once.
@functools.partial(jax.jit, static_argnums=0)
def strain_energy(
    tables: StrainTables,
    y: Unknowns,
    length: PerElement,
    stiffness: Float[Array, "n 4"],
    couplings: Couplings | None = None,
) -> Scalar:
    """Strain energy of all elements; ``stiffness``: EA, GJ, EIy, EIz of each."""
    rows, values, weights = _at_points(tables)
    flat = jnp.asarray(values.reshape(-1, values.shape[2]), y.dtype)
    at = (flat @ scaled(tables.shapes, y, length).T).reshape(*values.shape[:2], -1)
    f = {x: at[i] for x, i in rows.items()}
    f |= {xy: f[xy[0]] * f[xy[1]] for xy in tables.pairs if xy[0] in f and xy[1] in f}
    total = jnp.zeros_like(at[0])
    for (k, derivatives), products in zip(tables.groups, tables.products, strict=True):
        density = jnp.zeros_like(total)
        for first, seconds in products:
            second = [
                (factor if couplings is None else factor * couplings[term]) * f[name]
                for name, factor, term in seconds
                if first in f and name in f
            ]
            if second:
                density = density + f[first] * functools.reduce(operator.add, second)
        total = total + (stiffness[:, k] * length ** (1 - derivatives))[None] * density
    return jnp.sum(jnp.asarray(weights, y.dtype)[:, None] * total)


def _hessians(energy: Callable[[Array], Array], z: Unknowns) -> Float[Array, "n u u"]:
    """Second derivatives of every element's energy.

    The elements are not coupled, so one direction serves all of them.
    """
    _, product = jax.linearize(jax.grad(energy), z)
    unit = jnp.eye(z.shape[1], dtype=z.dtype)
    H = jax.vmap(lambda e: product(jnp.broadcast_to(e[None], z.shape)), out_axes=1)(unit)
    return 0.5 * (H + jnp.swapaxes(H, 1, 2))


def element_stiffnesses(
    tables: StrainTables,
    y: Unknowns,
    l: PerElement,
    stiffness: Float[Array, "n 4"],
    couplings: Couplings | None = None,
) -> Float[Array, "n u u"]:
    """Tangent stiffness of the elements."""
    return _hessians(lambda y: strain_energy(tables, y, l, stiffness, couplings), y)


def element_hessians(
    tables: StrainTables,
    y: Unknowns,
    l: PerElement,
    stiffness: Float[Array, "n 4"],
    couplings: Couplings | None = None,
) -> Float[Array, "n u+1 u+1"]:
    """Second derivatives with respect to the unknowns of the elements and their lengths."""

    def energy(z):
        return strain_energy(tables, z[:, :-1], z[:, -1], stiffness, couplings)

    return _hessians(energy, jnp.concatenate([y, l[:, None]], axis=1))


def strains(shapes: Shapes, linear: bool, y: Unknowns, l: PerElement) -> list[Coefficients]:
    """Coefficients in xi of the strains (eps, k1, k2, k3) up to their quadratic parts.

    A strain that a planar arm does not have has no coefficients.
    """
    a, b, c, d, e, f, s, p = coefficients("abcdefsp", shapes, scaled(shapes, y, l)).values()

    def total(*parts):
        out: list = []
        for factor, power, x in parts:
            out = plus(out, [factor / l**power * z for z in x])
        return out

    if linear:
        return [total((1.0, 1, a)), total((1.0, 1, p)), total((-1.0, 2, f)), total((1.0, 2, d))]
    return [
        total((1.0, 1, a), (0.5, 2, times(c, c)), (0.5, 2, times(e, e))),
        total((1.0, 1, p), (1.0, 3, times(d, e))),
        total((-1.0, 2, f), (1.0, 3, times(a, f)), (1.0, 3, times(b, e)), (1.0, 2, times(s, d))),
        total((1.0, 2, d), (-1.0, 3, times(a, d)), (-1.0, 3, times(b, c)), (1.0, 2, times(s, f))),
    ]


def measures(
    shapes: Shapes, linear: bool, y: Unknowns, l: PerElement
) -> Float[Array, "n 4 powers"]:
    """:func:`strains` as one array, padded with zeros."""
    rows = strains(shapes, linear, y, l)
    powers, zero = max(len(x) for x in rows), [jnp.zeros_like(l)]
    return jnp.stack([jnp.stack(x + zero * (powers - len(x)), axis=1) for x in rows], axis=1)
