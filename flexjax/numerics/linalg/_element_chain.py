"""Linear systems of a chain of elements with dense border rows, at a cost linear in the elements.

Every element has unknowns of its inner node, its outer node and of its own. The first node is
clamped. The own unknowns are eliminated first, all elements at once; what remains is
block-tridiagonal in the nodes. A few coordinates (of joints) couple with all of them: the border.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.numerics.linalg._small import gauss_jordan, inverse2, mm, mtv, mv

Unknowns = Float[Array, " n*(node+own)"]
Border = Float[Array, "D n*(node+own)"]


class ElementChainFactors(eqx.Module):
    """Elimination of the elements' own unknowns, of the nodes, and of the border."""

    own_inverse: Float[Array, "n own own"]
    own_coupling: Float[Array, "n own 2*node"]
    inverse: Float[Array, "n node node"]  # of the pivots D_k
    multiplier: Float[Array, "n node node"]  # L_k D_(k-1)^-1; zero for the first
    border: Border
    columns: Border  # solutions with the rows of the border as right-hand side
    border_inverse: Float[Array, "D D"]  # of the Schur complement; zero where not free


def _to_nodes(x: Float[Array, "n 2*node *c"], node: int) -> Float[Array, "n node *c"]:
    """Sum over the elements at each outer node: its own outer part and the next inner one."""
    return x[:, node:] + jnp.concatenate([x[1:, :node], jnp.zeros_like(x[:1, :node])])


def factor_elements(
    node: int,
    matrices: Float[Array, "n size size"],
    border: Border,
    corner: Float[Array, "D D"],
    free: np.ndarray,
) -> ElementChainFactors:
    """Factors of symmetric element matrices with a border.

    Arguments:
        node: unknowns of a node.
        matrices: of the elements, over [inner node, outer node, own].
        border, corner: rows of the border coordinates over the chain and over themselves.
        free: static mask; coordinates of the border that are not free have unit rows.
    """
    k = 2 * node
    # A loop costs more than the inverse it computes where elements own two unknowns.
    invert = {0: lambda m: m, 2: inverse2}.get(matrices.shape[1] - k, gauss_jordan)
    own_inverse = jax.vmap(invert)(matrices[:, k:, k:])
    coupling = mm(own_inverse, matrices[:, k:, :k])
    C = matrices[:, :k, :k] - jnp.einsum("nsi,nsj->nij", matrices[:, k:, :k], coupling)
    lower = C[:, node:, :node].at[0].set(0.0)
    diagonal = C[:, node:, node:] + jnp.concatenate(
        [C[1:, :node, :node], jnp.zeros_like(C[:1, :node, :node])]
    )

    def outward(previous, row):
        L, D = row
        G = mm(L, previous)
        inverse = gauss_jordan(D - mm(G, L.T))
        inverse = 0.5 * (inverse + inverse.T)
        return inverse, (inverse, G)

    _, (inverse, multiplier) = lax.scan(outward, jnp.zeros_like(lower[0]), (lower, diagonal))
    none = jnp.zeros_like(border)
    factors = ElementChainFactors(
        own_inverse, coupling, inverse, multiplier, border, none, jnp.zeros_like(corner)
    )
    if corner.shape[0] == 0:
        return factors
    columns = jax.vmap(lambda b: _solve_chain(factors, b))(border)
    both = free[:, None] & free[None, :]
    unit = jnp.eye(corner.shape[0], dtype=corner.dtype)
    schur = gauss_jordan(jnp.where(both, corner - border @ columns.T, unit))
    return eqx.tree_at(
        lambda f: (f.columns, f.border_inverse), factors, (columns, jnp.where(both, schur, 0.0))
    )


def _solve_chain(f: ElementChainFactors, r: Unknowns) -> Unknowns:
    """Solution without the border."""
    n, node = f.inverse.shape[:2]
    table = r.reshape(n, -1)
    own = mv(f.own_inverse, table[:, node:])
    # As dots: sums of products are slower here.
    passed_on = jnp.einsum("nsi,ns->ni", f.own_coupling, table[:, node:])
    b = table[:, :node] - _to_nodes(passed_on, node)

    def outward(previous, row):
        G, b = row
        y = b - mv(G, previous)
        return y, y

    def inward(carry, row):
        G, y = row
        x = y - carry
        return mtv(G, x), x

    none = jnp.zeros(node, r.dtype)
    y = mv(f.inverse, lax.scan(outward, none, (f.multiplier, b))[1])
    x = lax.scan(inward, none, (f.multiplier, y), reverse=True)[1]
    inner = jnp.concatenate([none[None], x[:-1]])
    own = own - jnp.einsum("nsi,ni->ns", f.own_coupling, jnp.concatenate([inner, x], axis=1))
    return jnp.concatenate([x, own], axis=1).reshape(-1)


def solve_elements(
    f: ElementChainFactors, r_border: Float[Array, " D"], r: Unknowns
) -> tuple[Float[Array, " D"], Unknowns]:
    """Coordinates of the border (zero where not free) and unknowns of the chain."""
    x = _solve_chain(f, r)
    if f.border.shape[0] == 0:
        return r_border, x
    border = f.border_inverse @ (r_border - f.border @ x)
    return border, x - border @ f.columns
