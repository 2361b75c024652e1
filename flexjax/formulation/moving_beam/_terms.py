"""The strain energy as a readable list of terms: what a user prints, selects and extends.

Letters: a = ux', b = ux'', c = uy', d = uy'', e = uz', f = uz'', s = alpha (twist), p = alpha'. A term "EA a c c" with factor 1/2 is the density
EA ux' uy'^2 / 2. Corrected curvatures (the print mixes conventions, see PAPER.md):
    k1 = p + d e,   k2 = -f + a f + b e + s d + ...,   k3 = d - a d - b c + s f + ...
"""

import dataclasses
from collections.abc import Iterable
from fractions import Fraction

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
