"""Bordered block-tridiagonal solve: elements along the arm, joints as dense columns, in O(n).

Unknowns of one element alone (its axial slopes) are eliminated first, all elements at once. The
rest is block-tridiagonal in the nodes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.numerics.linalg import gauss_jordan, inverse2, mm, mv


class Factors(eqx.Module):
    """Eliminated unknowns of elements (inverse, coupling), nodes (inverse diagonal, multipliers)
    and joints (columns, inverse)."""

    own_inverse: Float[Array, "n own own"]
    own_coupling: Float[Array, "n own 2*node"]
    inverse: Float[Array, "n node node"]
    multiplier: Float[Array, "n node node"]  # L_k D_(k-1)^-1; zero for the first
    columns: Float[Array, "D n*(node+own)"]  # A_ee^-1 A_ej
    border: Float[Array, "D n*(node+own)"]
    joint_inverse: Float[Array, "D D"]


def factorise(
    node: int,
    E: Float[Array, "n size size"],
    border: Float[Array, "D n*(node+own)"],
    joint: Float[Array, "D D"],
    free: np.ndarray,
) -> Factors:
    """Factorise symmetric element matrices ``E``.

    ``border``: rows of the joints over the elastic unknowns; ``joint``: their own block. Joints
    that are not ``free`` have unit rows.
    """
    k = 2 * node
    invert = {0: lambda m: m, 2: inverse2}.get(E.shape[1] - k, gauss_jordan)
    own_inverse = jax.vmap(invert)(E[:, k:, k:])
    coupling = mm(own_inverse, E[:, k:, :k])
    C = E[:, :k, :k] - jnp.einsum("nsi,nsj->nij", E[:, k:, :k], coupling)
    lower = C[:, node:, :node]  # outer row, inner column: couples node k with node k - 1
    after = jnp.concatenate([C[1:, :node, :node], jnp.zeros((1, node, node), E.dtype)])
    diagonal = C[:, node:, node:] + after
    lower = lower.at[0].set(0.0)  # the first node is clamped

    def outwards(previous, row):
        L, D = row
        G = mm(L, previous)
        inverse = gauss_jordan(D - mm(G, L.T))
        inverse = 0.5 * (inverse + inverse.T)
        return inverse, (inverse, G)

    start = jnp.zeros((node, node), E.dtype)
    _, (inverse, multiplier) = lax.scan(outwards, start, (lower, diagonal))
    none = (jnp.zeros_like(border), border, jnp.zeros_like(joint))
    f = Factors(own_inverse, coupling, inverse, multiplier, *none)
    if joint.shape[0] == 0:
        return f
    columns = jax.vmap(lambda b: solve_elastic(f, b))(border)
    both = free[:, None] & free[None, :]
    schur = jnp.where(both, joint - border @ columns.T, jnp.eye(joint.shape[0], dtype=E.dtype))
    joints = (columns, jnp.where(both, gauss_jordan(schur), 0.0))
    return eqx.tree_at(lambda f: (f.columns, f.joint_inverse), f, joints)


def solve_elastic(f: Factors, r: Float[Array, " n*(node+own)"]) -> Array:
    n, node = f.inverse.shape[:2]
    table = r.reshape(n, -1)
    own = mv(f.own_inverse, table[:, node:])
    passed = jnp.einsum("nsi,ns->ni", f.own_coupling, table[:, node:])
    after = jnp.concatenate([passed[1:, :node], jnp.zeros((1, node), r.dtype)])
    rhs = table[:, :node] - passed[:, node:] - after

    def outwards(previous, row):
        G, b = row
        y = b - mv(G, previous)
        return y, y

    _, y = lax.scan(outwards, jnp.zeros(node, r.dtype), (f.multiplier, rhs))
    y = mv(f.inverse, y)

    def inwards(carry, row):
        G, y = row
        x = y - carry
        return jnp.sum(G * x[:, None], axis=0), x

    _, x = lax.scan(inwards, jnp.zeros(node, r.dtype), (f.multiplier, y), reverse=True)
    inner = jnp.concatenate([jnp.zeros((1, node), r.dtype), x[:-1]])
    own = own - jnp.einsum("nsi,ni->ns", f.own_coupling, jnp.concatenate([inner, x], axis=1))
    return jnp.concatenate([x, own], axis=1).reshape(-1)


def solve(
    f: Factors, r_joint: Float[Array, " D"], r_elastic: Float[Array, " n*(node+own)"]
) -> tuple[Array, Array]:
    """Unknowns of the joints (zero where not free) and of the elements."""
    x0 = solve_elastic(f, r_elastic)
    if f.border.shape[0] == 0:
        return r_joint, x0
    joints = f.joint_inverse @ (r_joint - f.border @ x0)
    return joints, x0 - joints @ f.columns
