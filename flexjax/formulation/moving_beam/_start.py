"""Initial unknowns of an arm that is bent to given functions without stretching."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Matrix3, Scalar, Vector3
from flexjax.formulation.moving_beam._carrier import ArmLayout
from flexjax.formulation.moving_beam._link import Arm, element_unknowns
from flexjax.formulation.moving_beam.beam._shapes import (
    CONTINUITY,
    Lengths,
    PerElement,
    Shapes,
    field_rows,
    monomials,
    polynomials,
)
from flexjax.formulation.moving_beam.beam._strain import scaled, times
from flexjax.mechanism import Curve, Shape, directions, untwisted
from flexjax.numerics.beam import derivative_matrix, hilbert

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
ArmUnknowns = Float[Array, " n*(node+own)"]


def _derivative(f: Callable, order: int) -> Callable:
    for _ in range(order):
        f = jax.grad(f)
    return jax.vmap(f)


def _product(p: Float[Array, "*n powers"], q: Float[Array, "*n powers"]) -> Array:
    """Products of polynomials along the last axis."""
    rows = (list(jnp.moveaxis(x, -1, 0)) for x in (p, q))
    return jnp.stack(times(*rows), axis=-1)


def inextensible(
    shapes: Shapes, X: PerElement, l: PerElement, bending: dict[str, Callable]
) -> ArmUnknowns:
    """Unknowns of elements that begin at X, bent without stretching or torsion.

    ``bending`` gives "uy" and "uz" as functions of the distance from the joint frame.
    """
    n, node = X.shape[0], shapes.node
    rows = field_rows(shapes)
    table = jnp.zeros((n, node + shapes.own), X.dtype)

    def place(table, field, j, inner, outer):
        """Set the j-th derivative of a field at both ends of the elements."""
        k = len(rows[field]) // 2
        table = table.at[:, rows[field][k + j] - node].set(outer)
        return table if j < CONTINUITY[field] else table.at[:, rows[field][j] - node].set(inner)

    for field, f in bending.items():
        for j in range(len(rows[field]) // 2):
            table = place(table, field, j, _derivative(f, j)(X), _derivative(f, j)(X + l))
    y = element_unknowns(table.reshape(-1), n, node)
    slope = polynomials(shapes, scaled(shapes, y, l))[1]
    slope = jnp.swapaxes(slope, 1, 2)[:, 1:] / l[:, None, None]

    def grow(table, field, rate):
        """Set a field with this derivative along the arm, a polynomial in each element."""
        size = rate.shape[1]
        end = jnp.cumsum(l * (rate @ jnp.asarray(hilbert(1, size)[0], X.dtype)))
        table = place(table, field, 0, end, end)
        for j in range(1, len(rows[field]) // 2):
            outer = rate @ monomials(jnp.ones((), X.dtype), size)
            table = place(table, field, j, rate[:, 0], outer)
            rate = rate @ jnp.asarray(derivative_matrix(size).T, X.dtype) / l[:, None]
        return table

    # The interpolated bending has neither axial strain nor torsion, alpha' + uy'' uz'.
    table = grow(table, "ux", -0.5 * jnp.sum(_product(slope, slope), axis=1))
    if "uz" in bending:
        D = jnp.asarray(derivative_matrix(slope.shape[2]).T, X.dtype)
        table = grow(table, "alpha", -_product(slope[:, 0] @ D / l[:, None], slope[:, 1]))
    return table.reshape(-1)


def bent_unknowns(
    arm: Arm, layout: ArmLayout, shapes: dict[int, Shape], d: Lengths, d_rate: Lengths
) -> tuple[ArmUnknowns, ArmUnknowns]:
    """Unknowns of the arm and their rates for tubes with these shapes along their free lengths.

    ``shapes`` are by index of the link. Rates are those at a fixed fraction of the free length.
    """
    own = [shapes.get(link) for link in layout.tubes]
    fields = ("uy",) if layout.planar else ("uy", "uz")

    def unknowns(values, d):
        curves = [None if s is None else s.curve(v) for s, v in zip(own, values, strict=True)]
        axis = _axis(arm, curves, d)
        bending = {f: lambda x, k=k: axis(x)[1 + k] for k, f in enumerate(fields)}
        return inextensible(arm.shapes, *arm.mesh(d), bending)

    values = [None if s is None else s.values for s in own]
    rates = [None if s is None else s.rates for s in own]
    return jax.jvp(unknowns, (values, d), (rates, d_rate))


def _axis(arm: Arm, curves: list[Curve | None], d: Lengths) -> Callable[[Scalar], Vector3]:
    """Position of the deflected axis as a function of the distance from the joint frame.

    A tube continues from the tip of the one before, along the tangent there.
    """
    tips = arm.tube_start + arm.tube_slope @ d + arm.tube_length
    zero = jnp.zeros((), tips.dtype)
    begin, origin, R = zero, jnp.zeros(3, tips.dtype), jnp.eye(3, dtype=tips.dtype)
    tubes: list[tuple[Array, Array, Array, Array, Curve | None]] = []
    for k, curve in enumerate(curves):
        tube = (begin, tips[k] - begin, origin, R, curve)
        tubes.append(tube)
        if k + 1 < len(curves):
            origin, R, begin = *_tube_section(*tube, tips[k]), tips[k]

    def axis(x):
        place, _ = _tube_section(*tubes[0], x)
        for tube in tubes[1:]:
            place = jnp.where(x < tube[0], place, _tube_section(*tube, x)[0])
        return place

    return axis


def _tube_section(
    begin: Scalar, free: Scalar, origin: Vector3, R: Matrix3, curve: Curve | None, x: Scalar
) -> tuple[Vector3, Matrix3]:
    """Position and axes of the section at x of a tube that begins at ``begin``.

    ``free``: its free length; ``origin``, ``R``: position and axes of its first section.
    """
    ahead = jnp.zeros(3, x.dtype).at[0].set(x - begin)
    if curve is None:
        return origin + R @ ahead, R
    s = (x - begin) / free
    value, slope, _ = curve(s[None])
    nodes = s * jnp.asarray(0.5 * (_NODES + 1), x.dtype)
    inner = directions(curve(nodes)[1] / free)[:, 0]
    back = free * s * jnp.sum(jnp.asarray(0.5 * _WEIGHTS, x.dtype) * (inner - 1))
    local = jnp.concatenate([(x - begin + back)[None], value[:, 0]])
    return origin + R @ local, R @ untwisted(directions(slope / free))[0]
