"""A start that does not ring: the arm bent to given functions without stretching."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.formulation.moving_beam._generator import multiply, scaled
from flexjax.formulation.moving_beam._link import element_unknowns, monomials, polynomials
from flexjax.formulation.moving_beam._shapes import (
    CONTINUITY,
    Shapes,
    derivative_matrix,
    field_rows,
)
from flexjax.numerics.beam._polynomial import hilbert


def _derivative(f: Callable, order: int) -> Callable:
    for _ in range(order):
        f = jax.grad(f)
    return jax.vmap(f)


def inextensible(
    shapes: Shapes, X: Float[Array, " n"], l: Float[Array, " n"], bending: dict[str, Callable]
) -> Float[Array, " n*(node+own)"]:
    """Unknowns of the arm (elements from X, of length l) bent to ``bending`` ("uy", "uz"), with ux' = -(uy'^2 + uz'^2)/2."""
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
    stretch = -0.5 * jnp.sum(
        multiply(slope, slope), axis=1
    )  # ux' of the elements, as they are interpolated
    size = stretch.shape[1]
    ux = jnp.cumsum(l * (stretch @ jnp.asarray(hilbert(1, size)[0], X.dtype)))
    table = place(table, "ux", 0, ux, ux)
    for j in range(1, len(rows["ux"]) // 2):
        table = place(
            table, "ux", j, stretch[:, 0], stretch @ monomials(jnp.ones((), X.dtype), size)
        )
        stretch = stretch @ jnp.asarray(derivative_matrix(size).T, X.dtype) / l[:, None]
    return table.reshape(-1)
