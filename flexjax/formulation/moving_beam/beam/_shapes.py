"""Shape functions of the fields of an element, and the positions of their unknowns.

A set is of Hermite's kind: 2k functions, one per derivative of order below k at the inner end, then
at the outer end. A field that must be continuous up to its derivative c - 1 (c = 1 for ux and
alpha, 2 for uy and uz) shares the first c derivatives of a node with the next element. The others
belong to the element alone, so they may jump where the section does: the cubic set is C0 for ux and
C1 for bending. Unknowns of an element: [inner node, outer node, own], with (ux, alpha, uy, uy', uz,
uz') per node in space and (ux, uy, uy') in the plane.
"""

import dataclasses
import functools
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.numerics.beam import (
    CUBIC,
    LINEAR,
    QUINTIC,
    ShapeSet,
    coefficient_matrix,
    derivative_matrix,
    differentiate,
    shift_matrix,
)

Unknowns = Float[Array, "n u"]  # [inner node, outer node, own] of every element
PerElement = Float[Array, " n"]
Coefficients = list[PerElement]  # of a polynomial in xi, in ascending powers
Lengths = Float[Array, " m"]  # coordinates that change lengths

SETS = {s.name: s for s in (LINEAR, CUBIC, QUINTIC)}
CONTINUITY = {"ux": 1, "alpha": 1, "uy": 2, "uz": 2}
DEFAULT = {"ux": "cubic", "alpha": "linear", "uy": "cubic", "uz": "cubic"}


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The sets of all fields, in the order of :data:`CONTINUITY`; planar elements use ux and uy.

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
        sets = (DEFAULT | dict(chosen)).values()
        return Shapes(tuple(x if isinstance(x, ShapeSet) else SETS[x] for x in sets), planar)

    @property
    def fields(self) -> dict[str, ShapeSet]:
        fields = dict(zip(CONTINUITY, self.sets, strict=True))
        return {f: fields[f] for f in ("ux", "uy")} if self.planar else fields

    @property
    def node(self) -> int:
        """Number of unknowns of a node."""
        return sum(CONTINUITY[f] for f in self.fields)

    @property
    def own(self) -> int:
        """Number of unknowns of an element that no other element shares."""
        return sum(len(s.functions) - 2 * CONTINUITY[f] for f, s in self.fields.items())

    @property
    def size(self) -> int:
        """Number of unknowns of an element."""
        return 2 * self.node + self.own

    @property
    def moving(self) -> int:
        """Number of coefficients in xi of a displacement."""
        return max(_powers(s) for f, s in self.fields.items() if f != "alpha")

    @property
    def rotating(self) -> int:
        """Number of coefficients in xi of a rotation (alpha, -uz', uy')."""
        return max(_powers(s) - (f != "alpha") for f, s in self.fields.items() if f != "ux")


def _powers(shapes: ShapeSet) -> int:
    return max(len(f) for f in shapes.functions)


def _check(field: str, shapes: ShapeSet):
    count, k = len(shapes.functions), len(shapes.functions) // 2
    if 2 * k != count or k < CONTINUITY[field]:
        raise ValueError(
            f"shapes.{field}: {shapes.name} has {count} functions; expected value"
            f"{' and slope' * (CONTINUITY[field] - 1)} (and perhaps more derivatives) at both ends."
        )
    ends = [
        [differentiate(f, j)[0] for j in range(k)] + [sum(differentiate(f, j)) for j in range(k)]
        for f in shapes.functions
    ]
    scale = 2 * tuple(range(k))
    if (np.array(ends) != np.eye(2 * k, dtype=int)).any() or tuple(shapes.scale) != scale:
        raise ValueError(
            f"shapes.{field}: {shapes.name} is not of Hermite's kind; expected the j-th derivative "
            "at one end as unknown of each function."
        )


SPATIAL = Shapes()


@functools.cache
def field_rows(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Index of the unknown of an element that multiplies each function of a field."""
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
    """Power of l by which an unknown is scaled: 1 for a slope, 2 for a curvature."""
    out = np.zeros(shapes.size)
    for field, rows in field_rows(shapes).items():
        out[list(rows)] = shapes.fields[field].scale
    return out


@functools.cache
def shape_matrices(shapes: Shapes) -> tuple[np.ndarray, np.ndarray]:
    """From scaled unknowns to coefficients in xi.

    Of (ux, uy, uz), shape (unknowns, moving, 3), and of the twist about x, (unknowns, rotating).
    """
    U, twist = np.zeros((shapes.size, shapes.moving, 3)), np.zeros((shapes.size, shapes.rotating))
    for field, rows in field_rows(shapes).items():
        out = twist if field == "alpha" else U[:, :, ("ux", "uy", "uz").index(field)]
        out[list(rows)] = coefficient_matrix(shapes.fields[field], 0, out.shape[1]).T
    return U, twist


def along_axis(powers: int) -> tuple[np.ndarray, np.ndarray]:
    """The polynomials e1 and xi e1."""
    e1 = np.zeros((powers, 3))
    e1[0, 0] = 1.0
    return e1, shift_matrix(powers) @ e1


def slope_matrix(shapes: Shapes) -> np.ndarray:
    """From scaled unknowns to d(ux, uy, uz)/dxi: (unknowns, moving, 3)."""
    U, _ = shape_matrices(shapes)
    return np.einsum("pq,uqc->upc", derivative_matrix(shapes.moving), U)


@functools.cache
def _motion_matrices(shapes: Shapes) -> np.ndarray:
    """From scaled unknowns to the coefficients of all fields of :func:`polynomials`."""
    U, twist = shape_matrices(shapes)
    k, slope = shapes.rotating, slope_matrix(shapes)
    bending = np.zeros((U.shape[0], k, 3))
    # Bending slopes fit into k powers, whatever the degree of ux.
    fit = min(shapes.moving, k)
    bending[:, :fit, 1], bending[:, :fit, 2] = -slope[:, :fit, 2], slope[:, :fit, 1]
    torsion = np.zeros_like(bending)
    torsion[:, :, 0] = twist
    dtorsion, dbending = (
        np.einsum("pq,uqc->upc", derivative_matrix(k), x) for x in (torsion, bending)
    )
    parts = [U, slope, torsion, dtorsion, bending, dbending]
    return np.concatenate([p.reshape(U.shape[0], -1) for p in parts], axis=1)


def polynomials(shapes: Shapes, h: Unknowns) -> list[Array]:
    """(U, dU/dxi, twist, d twist/dxi, bending, d bending/dxi) of all elements from scaled unknowns.

    ``bending`` is (0, -uz', uy') times l.
    """
    flat = h @ jnp.asarray(_motion_matrices(shapes), h.dtype)
    n, out, at = h.shape[0], [], 0
    for k in (shapes.moving, shapes.moving, *[shapes.rotating] * 4):
        out.append(flat[:, at : at + 3 * k].reshape(n, k, 3))
        at += 3 * k
    return out


def monomials(xi: Scalar, count: int) -> Float[Array, " p"]:
    """1, xi, xi^2, ..."""
    powers = jnp.broadcast_to(xi[None], (count - 1,))
    return jnp.cumprod(jnp.concatenate([jnp.ones(1, xi.dtype), powers]))
