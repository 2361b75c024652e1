"""Which shape functions interpolate which field, and where their unknowns stand: what the generator and the motion need to know of an element.

A set is of Hermite's kind: 2k functions, the j-th derivative at the inner end (j < k), then at the outer end. A field that must be continuous to the order
c - 1 (ux, alpha: c = 1; uy, uz: c = 2) shares the first c derivatives of each node with its neighbour; the rest belong to the element alone. So the cubic
set is the "C0 cubic" of the axial field and the C1 Hermite cubic of bending, and a quintic has curvatures that may jump where EI does.
Unknowns of an element: [inner node, outer node, its own], nodes (ux, alpha, uy, uy', uz, uz'), in the plane (ux, uy, uy').
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from flexjax.numerics.beam._polynomial import (
    CUBIC,
    LINEAR,
    QUINTIC,
    ShapeSet,
    coefficient_matrix,
    differentiate,
)

SETS = {s.name: s for s in (LINEAR, CUBIC, QUINTIC)}
CONTINUITY = {"ux": 1, "alpha": 1, "uy": 2, "uz": 2}
DEFAULT = {"ux": "cubic", "alpha": "linear", "uy": "cubic", "uz": "cubic"}


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The sets of all fields, in the order of :data:`CONTINUITY`; a planar element has ux and uy only.

    >>> Shapes().node, Shapes().own, Shapes.of({"uy": "quintic"}, planar=True).own
    (6, 2, 4)
    """

    sets: tuple[ShapeSet, ...] = tuple(SETS[name] for name in DEFAULT.values())
    planar: bool = False

    def __post_init__(self):
        for field, shapes in zip(CONTINUITY, self.sets, strict=True):
            _check(field, shapes)

    @staticmethod
    def of(chosen: Mapping[str, str | ShapeSet], planar: bool = False) -> "Shapes":
        """From names or sets for some of the fields; the others keep their default."""
        for field, name in chosen.items():
            if field not in CONTINUITY:
                raise ValueError(
                    f"shapes: field {field!r}; expected one of {', '.join(CONTINUITY)}."
                )
            if not isinstance(name, ShapeSet) and name not in SETS:
                raise ValueError(
                    f"shapes.{field}: {name!r}; expected one of {', '.join(SETS)}, or a ShapeSet."
                )
        return Shapes(
            tuple(
                x if isinstance(x, ShapeSet) else SETS[x] for x in (DEFAULT | dict(chosen)).values()
            ),
            planar,
        )

    def flat(self) -> "Shapes":
        return Shapes(self.sets, True)

    @property
    def fields(self) -> dict[str, ShapeSet]:
        return {
            f: s
            for f, s in zip(CONTINUITY, self.sets, strict=True)
            if not self.planar or f in ("ux", "uy")
        }

    @property
    def node(self) -> int:
        """Unknowns of a node."""
        return sum(CONTINUITY[f] for f in self.fields)

    @property
    def own(self) -> int:
        """Unknowns of an element that no neighbour shares."""
        return sum(len(s.functions) - 2 * CONTINUITY[f] for f, s in self.fields.items())

    @property
    def size(self) -> int:
        return 2 * self.node + self.own

    @property
    def moving(self) -> int:
        """Coefficients in xi of a displacement."""
        return max(_length(s) for f, s in self.fields.items() if f != "alpha")

    @property
    def turning(self) -> int:
        """Coefficients in xi of a rotation (alpha, -uz', uy')."""
        return max(_length(s) - (f != "alpha") for f, s in self.fields.items() if f != "ux")


def _length(shapes: ShapeSet) -> int:
    return max(len(f) for f in shapes.functions)


def _check(field: str, shapes: ShapeSet):
    k = len(shapes.functions) // 2
    if 2 * k != len(shapes.functions) or k < CONTINUITY[field]:
        raise ValueError(
            f"shapes.{field}: {shapes.name} has {len(shapes.functions)} functions; expected value{' and slope' * (CONTINUITY[field] - 1)} (and perhaps more "
            "derivatives) at both ends."
        )
    at = [
        [differentiate(f, j)[0] for j in range(k)] + [sum(differentiate(f, j)) for j in range(k)]
        for f in shapes.functions
    ]
    if (np.array(at) != np.eye(2 * k, dtype=int)).any() or tuple(shapes.scale) != 2 * tuple(
        range(k)
    ):
        raise ValueError(
            f"shapes.{field}: {shapes.name} is not of Hermite's kind; expected the j-th derivative at one end as unknown of each function."
        )


SPATIAL = Shapes()


@functools.cache
def field_rows(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Which unknown of an element multiplies which function of a field."""
    rows, at, own = {}, 0, 2 * shapes.node
    for field, s in shapes.fields.items():
        c, k = CONTINUITY[field], len(s.functions) // 2
        inner = [at + j if j < c else own + j - c for j in range(k)]
        outer = [shapes.node + at + j if j < c else own + k - c + j - c for j in range(k)]
        rows[field] = (*inner, *outer)
        at, own = at + c, own + 2 * (k - c)
    return rows


@functools.cache
def length_powers(shapes: Shapes) -> np.ndarray:
    """Power of l that an unknown carries: 1 for a slope, 2 for a curvature."""
    out = np.zeros(shapes.size)
    for field, rows in field_rows(shapes).items():
        out[list(rows)] = shapes.fields[field].scale
    return out


def derivative_matrix(size: int) -> np.ndarray:
    """Coefficients of dp/dxi from those of p."""
    return np.diag(np.arange(1.0, size), 1)


def shift_matrix(size: int) -> np.ndarray:
    """Coefficients of xi p (the last one of p must be zero)."""
    return np.diag(np.ones(size - 1), -1)


@functools.cache
def shape_matrices(shapes: Shapes) -> tuple[np.ndarray, np.ndarray]:
    """From scaled unknowns to the coefficients in xi of (ux, uy, uz) (unknowns, moving, 3), and of the twist about x (unknowns, turning)."""
    U, twist = np.zeros((shapes.size, shapes.moving, 3)), np.zeros((shapes.size, shapes.turning))
    for field, rows in field_rows(shapes).items():
        for k, row in enumerate(rows):
            if field == "alpha":
                twist[row] = coefficient_matrix(shapes.fields[field], 0, shapes.turning)[:, k]
            else:
                U[row, :, ("ux", "uy", "uz").index(field)] = coefficient_matrix(
                    shapes.fields[field], 0, shapes.moving
                )[:, k]
    return U, twist
