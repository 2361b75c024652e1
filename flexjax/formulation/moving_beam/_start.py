"""A start that does not ring: the arm bent to given functions without stretching."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.moving_beam._layout import Layout
from flexjax.formulation.moving_beam._link import (
    Arm,
    element_unknowns,
    monomials,
    polynomials,
)
from flexjax.formulation.moving_beam._shapes import (
    CONTINUITY,
    Shapes,
    derivative_matrix,
    field_rows,
)
from flexjax.formulation.moving_beam._strain import multiply, scaled
from flexjax.mechanism import Curve, Shape, directions, untwisted
from flexjax.numerics.beam._polynomial import hilbert


def _derivative(f: Callable, order: int) -> Callable:
    for _ in range(order):
        f = jax.grad(f)
    return jax.vmap(f)


def inextensible(
    shapes: Shapes, X: Float[Array, " n"], l: Float[Array, " n"], bending: dict[str, Callable]
) -> Float[Array, " n*(node+own)"]:
    """Unknowns of the arm (elements from X, of length l) bent to ``bending`` ("uy", "uz") without stretching or
    torsion."""
    n, node = X.shape[0], shapes.node
    rows = field_rows(shapes)
    table = jnp.zeros((n, node + shapes.own), X.dtype)

    def place(table, field, j, inner, outer):
        """The j-th derivative of a field at both ends of the elements."""
        k = len(rows[field]) // 2
        table = table.at[:, rows[field][k + j] - node].set(outer)
        return table if j < CONTINUITY[field] else table.at[:, rows[field][j] - node].set(inner)

    for field, f in bending.items():
        for j in range(len(rows[field]) // 2):
            table = place(table, field, j, _derivative(f, j)(X), _derivative(f, j)(X + l))
    y = element_unknowns(table.reshape(-1), n, node)
    slope = (
        jnp.swapaxes(polynomials(shapes, scaled(shapes, y, l))[1], 1, 2)[:, 1:] / l[:, None, None]
    )

    def grow(table, field, rate):
        """A field with this derivative along the arm, a polynomial in each element."""
        size = rate.shape[1]
        end = jnp.cumsum(l * (rate @ jnp.asarray(hilbert(1, size)[0], X.dtype)))
        table = place(table, field, 0, end, end)
        for j in range(1, len(rows[field]) // 2):
            outer = rate @ monomials(jnp.ones((), X.dtype), size)
            table = place(table, field, j, rate[:, 0], outer)
            rate = rate @ jnp.asarray(derivative_matrix(size).T, X.dtype) / l[:, None]
        return table

    # Of the bending as it is interpolated: neither axial strain nor torsion, alpha' + uy'' uz'.
    table = grow(table, "ux", -0.5 * jnp.sum(multiply(slope, slope), axis=1))
    if "uz" in bending:
        D = jnp.asarray(derivative_matrix(slope.shape[2]).T, X.dtype)
        twist = -multiply(slope[:, 0] @ D / l[:, None], slope[:, 1])
        table = grow(table, "alpha", twist)
    return table.reshape(-1)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def bent_unknowns(
    arm: Arm,
    lay: Layout,
    shapes: dict[int, Shape],
    d: Float[Array, " m"],
    d_rate: Float[Array, " m"],
):
    """Unknowns of the elements and their rates where tubes have these shapes (by the index of their link) along their
    free lengths; rates are those at a fixed fraction of the free length."""
    own = [shapes.get(link) for link in lay.tubes]
    fields = ("uy",) if lay.planar else ("uy", "uz")

    def unknowns(values, d):
        curves = [None if s is None else s.curve(v) for s, v in zip(own, values, strict=True)]
        axis = _axis(arm, curves, d)
        bending = {f: lambda x, k=k: axis(x)[1 + k] for k, f in enumerate(fields)}
        return inextensible(arm.shapes, *arm.mesh(d), bending)

    values, rates = (
        [None if s is None else getattr(s, field) for s in own] for field in ("values", "rates")
    )
    return jax.jvp(unknowns, (values, d), (rates, d_rate))


def _axis(arm: Arm, curves: list[Curve | None], d: Float[Array, " m"]) -> Callable:
    """Position of the deflected axis at the distance x from the joint frame. A tube goes on from the tip of the one
    before, along the tangent there."""
    tips = arm.tube_start + arm.tube_slope @ d + arm.tube_length
    zero = jnp.zeros((), tips.dtype)
    begin, origin, R = zero, jnp.zeros(3, tips.dtype), jnp.eye(3, dtype=tips.dtype)
    tubes: list[tuple[Array, Array, Array, Array, Curve | None]] = []
    for k, curve in enumerate(curves):
        tube = (begin, tips[k] - begin, origin, R, curve)
        tubes.append(tube)
        if k + 1 < len(curves):
            origin, R, begin = *_section(*tube, tips[k]), tips[k]

    def axis(x):
        place, _ = _section(*tubes[0], x)
        for tube in tubes[1:]:
            place = jnp.where(x < tube[0], place, _section(*tube, x)[0])
        return place

    return axis


def _section(
    begin: Scalar,
    free: Scalar,
    origin: Float[Array, "3"],
    R: Float[Array, "3 3"],
    curve: Curve | None,
    x: Scalar,
):
    """Position and rotation of the section at x of a tube that leaves ``begin`` with the free length ``free``."""
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
