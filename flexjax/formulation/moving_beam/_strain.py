"""The strain energy as a readable list of terms: what a user prints, selects and extends.

Letters: a = ux', b = ux'', c = uy', d = uy'', e = uz', f = uz'', s = alpha (twist), p = alpha'. A term "EA a c c" with factor 1/2 is the density
EA ux' uy'^2 / 2. Corrected curvatures (the print mixes conventions, see PAPER.md):
    k1 = p + d e,   k2 = -f + a f + b e + s d + ...,   k3 = d - a d - b c + s f + ...
"""

import dataclasses
import functools
from collections.abc import Iterable
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.moving_beam._shapes import SPATIAL, Shapes, field_rows, length_powers
from flexjax.numerics.beam._polynomial import coefficient_matrix, product_integrals

# letter -> (field, derivative order)
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


@dataclasses.dataclass(frozen=True)
class Term:
    """One product in the density of the strain energy: ``factor`` * ``stiffness`` * the product of ``letters``.

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
        return sum(LETTERS[x][1] for x in self.letters)

    @property
    def planar(self) -> bool:
        """Whether it is there for a beam that stays in its plane."""
        return all(x in "abcd" for x in self.letters)

    def __str__(self) -> str:
        top, bottom = self.factor.numerator, self.factor.denominator
        sign = {1: "", -1: "-"}.get(top, f"{top} ")
        return f"{sign}{self.name}" + (f" / {bottom}" if bottom != 1 else "")


def _terms(table: str) -> tuple[Term, ...]:
    out = []
    for line in table.strip().splitlines():
        factor, stiffness, letters = line.split()
        out.append(Term(stiffness, letters, Fraction(factor)))
    return tuple(out)


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
# The one term that the printed order lacks: with it the membrane energy is the square EA (a + g2/2)^2 / 2 and bounded below.
COMPLETING_TERMS = _terms("""
1/8 EA cccc
1/4 EA ccee
1/8 EA eeee
""")
# All other terms of the fourth weighted order (ux' = O(2), the rest O(1)): squares of the quadratic parts of k1..k3, and their cubic parts
# k2: + s^2 f/2 + c^2 f/2 + c d e + e^2 f,   k3: - s^2 d/2 - c^2 d - d e^2/2, times the linear ones.
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
    """The terms of an order: "linear", "cubic", "complete", "consistent", or a collection of names ("EA a c c", with the factor of the list above)
    and :class:`Term` objects. The linear terms are always in: without them there is no beam.

    >>> [str(t) for t in resolve({"EA a c c"})][-1]
    'EA a c c / 2'
    """
    if isinstance(order, str):
        if order not in ORDERS:
            raise ValueError(
                f"order: {order!r}; expected one of {', '.join(ORDERS)}, or a collection of terms such as {{'EA a c c', 'EA c c c c'}}."
            )
        return ORDERS[order]
    chosen = {t.name: t for t in LINEAR_TERMS}
    for item in order:
        if isinstance(item, Term):
            chosen[item.name] = item
            continue
        stiffness, _, letters = item.partition(" ")
        name = f"{stiffness} {' '.join(sorted(letters.replace(' ', '')))}"
        if name not in KNOWN:
            raise ValueError(
                f"order: no term {item!r} in the list; expected one of {', '.join(KNOWN)}, or a Term with its own factor."
            )
        chosen[name] = KNOWN[name]
    first = [t.name for t in LINEAR_TERMS]
    return tuple(
        sorted(
            chosen.values(),
            key=lambda t: (
                first.index(t.name) if t.name in first else len(first),
                t.degree,
                t.name,
            ),
        )
    )


def is_bounded(terms: Iterable[Term]) -> bool:
    """Whether the membrane energy is bounded below: a coupling of extension and slope needs the fourth power of the slope."""
    names = {t.name for t in terms}
    return all(f"EA {x} {x} {x} {x}" in names for x in "ce" if f"EA a {x} {x}" in names)


def table(terms: Iterable[Term]) -> str:
    """The terms as text, one per line, with what each letter means."""
    meaning = ", ".join(
        f"{k} = {field}{'' if not n else chr(39) * n}" for k, (field, n) in LETTERS.items()
    )
    return "\n".join([f"strain energy per length ({meaning}):", *(f"  {t}" for t in terms)])


@dataclasses.dataclass(frozen=True)
class Tables:
    """What one set of terms needs, all static. Factors are letters or pairs of them."""

    letters: str
    pairs: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]  # (index of the stiffness, derivatives in the term)
    products: (
        tuple  # per group: ((first factor, ((second factor, number, name of the term), ...)), ...)
    )
    degree: int
    shapes: Shapes


def _split(letters: str, known: list[str]) -> tuple[str, str]:
    """A product of three or four letters as pair times rest, with pairs that are there already where possible."""
    if len(letters) == 2:
        return letters[0], letters[1]
    choices = []
    for i in range(len(letters)):
        for j in range(i + 1, len(letters)):
            pair, rest = (
                letters[i] + letters[j],
                "".join(letters[k] for k in range(len(letters)) if k not in (i, j)),
            )
            new = {p for p in (pair, rest) if len(p) == 2} - set(known)
            choices.append((len(new), pair, rest))
    return min(choices)[1:]


@functools.cache
def tables(terms: tuple[Term, ...], shapes: Shapes = SPATIAL) -> Tables:
    pairs: list[str] = []
    grouped: dict[tuple[int, int], dict[str, list]] = {}
    for t in sorted(terms, key=lambda t: (-len(set(t.letters)) if t.degree == 4 else 0, t.name)):
        left, right = _split(t.letters, pairs)
        pairs += [p for p in dict.fromkeys((left, right)) if len(p) == 2 and p not in pairs]
        group = grouped.setdefault((STIFFNESSES.index(t.stiffness), t.derivatives), {})
        # Either factor may come first: the one that is there already.
        left, right = (right, left) if right in group and left not in group else (left, right)
        group.setdefault(left, []).append((right, float(t.factor), t.name))
    letters = "".join(x for x in LETTERS if any(x in t.letters for t in terms))
    products = tuple(
        tuple((left, tuple(rest)) for left, rest in group.items()) for group in grouped.values()
    )
    return Tables(
        letters, tuple(pairs), tuple(grouped), products, max(t.degree for t in terms), shapes
    )


@functools.cache
def letter_matrix(letters: str, shapes: Shapes) -> np.ndarray:
    """(unknowns of an element, letter, power): coefficients of the letters' derivatives in xi, without their powers of l, from scaled unknowns."""
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
        for k, row in enumerate(rows.get(field, ())):
            out[row, i] = coefficient_matrix(fields[field], order, powers)[:, k]
    return out


def scaled(
    shapes: Shapes, y: Float[Array, "n unknowns"], length: Float[Array, " n"]
) -> Float[Array, "n unknowns"]:
    """Unknowns times S = l^power."""
    powers = length_powers(shapes)
    out = y
    for k in range(1, int(powers.max(initial=0.0)) + 1):
        mask = jnp.asarray(powers >= k, y.dtype)[None, :]
        out = out * (1 - mask + mask * length[:, None])
    return out


def coefficients(
    letters: str, shapes: Shapes, h: Float[Array, "n unknowns"]
) -> dict[str, list[Float[Array, " n"]]]:
    """Coefficients in xi of letters, without their powers of l, from scaled unknowns: one array over the elements each; none of what is never there."""
    C = letter_matrix(letters, shapes)
    count = [1 + np.flatnonzero(C[:, i].any(axis=0)).max(initial=-1) for i in range(len(letters))]
    used = np.concatenate([C[:, i, :k] for i, k in enumerate(count)], axis=1)
    G = jnp.asarray(used.T, h.dtype) @ h.T
    edges = np.cumsum([0, *count])
    return {x: [G[k] for k in range(edges[i], edges[i + 1])] for i, x in enumerate(letters)}


def factors(tab: Tables, h: Float[Array, "n unknowns"]) -> dict[str, list[Float[Array, " n"]]]:
    """The same of every letter and pair of the tables."""
    out = coefficients(tab.letters, tab.shapes, h)
    return out | {pair: times(out[pair[0]], out[pair[1]]) for pair in tab.pairs}


def times(p: list, q: list) -> list:
    """Product of two polynomials given by their coefficients; none at all is zero."""
    out: list = [None] * (len(p) + len(q) - 1 if p and q else 0)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] = a * b if out[i + j] is None else out[i + j] + a * b
    return out


def plus(p: list, q: list) -> list:
    """Sum of two polynomials given by their coefficients."""
    short, long = sorted((p, q), key=len)
    return [a + b for a, b in zip(short, long, strict=False)] + long[len(short) :]


@functools.cache
def _products(powers: int) -> np.ndarray:
    out = np.zeros((powers, powers, 2 * powers - 1))
    for m in range(powers):
        for n in range(powers):
            out[m, n, m + n] = 1.0
    return out.reshape(-1, 2 * powers - 1)


def multiply(
    p: Float[Array, "*n powers"], q: Float[Array, "*n powers"]
) -> Float[Array, "*n 2*powers-1"]:
    """Products of polynomials along the last axis."""
    powers = p.shape[-1]
    outer = (p[..., :, None] * q[..., None, :]).reshape(*p.shape[:-1], powers * powers)
    return outer @ jnp.asarray(_products(powers), p.dtype)


def strain_energy(
    tab: Tables,
    y: Float[Array, "n unknowns"],
    length: Float[Array, " n"],
    stiffness: Float[Array, "n 4"],
    couplings: dict[str, Array] | None = None,
) -> Float[Array, ""]:
    """Strain energy of all elements together: their unknowns, lengths, and EA, GJ, EIy, EIz. ``couplings`` multiply the terms of their names."""
    f = factors(tab, scaled(tab.shapes, y, length))
    total = jnp.zeros_like(length)
    for (k, derivatives), products in zip(tab.groups, tab.products, strict=True):
        density = jnp.zeros_like(length)
        for first, seconds in products:
            second: list = []
            for name, number, term in seconds:
                weight = number if couplings is None else number * couplings[term]
                second = plus(second, [weight * x for x in f[name]])
            for m, a in enumerate(f[first]):
                density = density + a * sum(b * (1 / (m + n + 1)) for n, b in enumerate(second))
        total = total + stiffness[:, k] * length ** (1 - derivatives) * density
    return jnp.sum(total)


def of_degree(terms: tuple[Term, ...], degree: int) -> tuple[Term, ...]:
    return tuple(t for t in terms if t.degree == degree)


def dense_tensor(term: Term, shapes: Shapes = SPATIAL) -> np.ndarray:
    """The product-integral tensor D of a term in its shape functions, exact (Fractions): the library that eqs. (12)-(14) ask for."""
    return product_integrals(
        tuple((shapes.fields[LETTERS[x][0]], LETTERS[x][1]) for x in term.letters)
    )


def dense_energy(
    terms: tuple[Term, ...],
    y: Float[Array, " unknowns"],
    length: Float[Array, ""],
    stiffness: Float[Array, "4"],
    shapes: Shapes = SPATIAL,
) -> Array:
    """The same energy of one element by the dense tensors. Slow; for checks and comparison."""
    rows, total = field_rows(shapes), jnp.zeros((), y.dtype)
    h = y * length ** jnp.asarray(length_powers(shapes))
    for t in terms:
        D = jnp.asarray(dense_tensor(t, shapes).astype(float))
        for x in t.letters:
            D = jnp.tensordot(h[np.array(rows[LETTERS[x][0]])], D, axes=(0, 0))
        total = (
            total
            + float(t.factor)
            * stiffness[STIFFNESSES.index(t.stiffness)]
            * length ** (1 - t.derivatives)
            * D
        )
    return total
