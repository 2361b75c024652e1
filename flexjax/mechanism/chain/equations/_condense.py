"""Static condensation of shape coordinates: the scan along the chain uses matrices of twist size.

With E1 = Mee^-1 Mez and E2 = Mee^-1 S^T, computed for all links before the scan, a link has
    P = Mzz - Mze E1     inertia at the base with the tip free
    Y = X_t - S E1       tip acceleration per base acceleration
    F = S E2             compliance of the tip
An inertia IA at the tip adds Y^T K Y to P at the base, with
    K = IA (1 + F IA)^-1 = IA - IA N IA,   N = F (1 + IA F)^-1.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._rules import ruled
from flexjax.mechanism.chain.geometry._links import AbstractLinks, Mass, Tip
from flexjax.numerics.linalg import mm, mv, small_cholesky, small_inverse, transpose


class Condensed(eqx.Module):
    """Links with their shape coordinates condensed, stacked over stages."""

    P: Float[Array, "B dim dim"]
    Y: Float[Array, "B dim dim"]
    F: Float[Array, "B dim dim"]
    root: Float[Array, "B dim dim"]  # root root^T = F
    E1: Float[Array, "B m dim"]
    E2: Float[Array, "B m dim"]
    ze: Float[Array, "B dim m"]
    S: Float[Array, "B dim m"]
    links: AbstractLinks
    factors: PyTree
    E3: Float[Array, "B m"] | None = None  # of shape rows that are already known

    def reduce(
        self,
        bias: Float[Array, "B dim"],
        shape_bias: Float[Array, "B m"],
        tip_rate: Float[Array, "B dim"],
    ) -> tuple[Array, Array, Array]:
        """E3, bias of the base, and known acceleration of the tip.

        ``shape_bias``: what the shape rows need beyond mass times acceleration.
        """
        E3 = self.E3
        if E3 is None:
            E3 = self.links.solve(self.factors, shape_bias[:, :, None])[:, :, 0]
        return E3, bias - mv(self.ze, E3), tip_rate - mv(self.S, E3)

    def recover(
        self, E3: Float[Array, "B m"], a: Float[Array, "B dim"], tip_force: Float[Array, "B dim"]
    ) -> Array:
        """Shape accelerations (B, m) from those of the frames and the forces on the tips."""
        return mv(self.E2, tip_force) - mv(self.E1, a) - E3


def _half(m: Float[Array, "*n i i"]) -> Float[Array, "*n i i"]:
    return 0.5 * (m + transpose(m))


def condense(
    links: AbstractLinks,
    rigid: Float[Array, "B dim dim"],
    mass: Mass,
    factors: PyTree,
    tip: Tip,
    Xt: Float[Array, "B dim dim"],
    shape_bias: Float[Array, "B m"] | None = None,
) -> Condensed:
    """Condense the shape coordinates of all links.

    ``rigid``: inertia fixed to the frames (hubs, rigid links). ``shape_bias``, if it is already
    known, shares the solve.
    """
    dim = rigid.shape[1]
    columns = [transpose(mass.ze), transpose(tip.S)]
    if shape_bias is not None:
        columns.append(shape_bias[:, :, None])
    all_columns = links.solve(factors, jnp.concatenate(columns, axis=2))
    E1, E2 = all_columns[:, :, :dim], all_columns[:, :, dim : 2 * dim]
    E3 = None if shape_bias is None else all_columns[:, :, 2 * dim]
    # Symmetrised, or the error grows exponentially along the chain.
    P = _half(rigid + mass.zz - mass.ze @ E1)
    F = _half(tip.S @ E2)
    root, Y = _root(jax.lax.stop_gradient(F)), Xt - tip.S @ E1
    return Condensed(P, Y, F, root, E1, E2, mass.ze, tip.S, links, factors, E3)


def _root(F: Float[Array, "B i i"]) -> Float[Array, "B i i"]:
    """A triangular factor of F, lifted by round-off: F is singular if no shape moves the tip."""
    eps = jnp.finfo(F.dtype).eps
    diagonal = jnp.maximum(jnp.diagonal(F, axis1=1, axis2=2), 0.0)
    # Translations and rotations have different units. Where nothing moves, the lift is negligible
    # beside any inertia.
    lin = 2 if F.shape[1] == 3 else 3
    largest = lambda d: jnp.broadcast_to(jnp.max(d, axis=1, keepdims=True), d.shape)
    scale = jnp.concatenate([largest(diagonal[:, :lin]), largest(diagonal[:, lin:])], axis=1)
    lift = 32 * eps * jnp.where(scale > 0, scale, eps**2)
    return small_cholesky(F + lift[:, :, None] * jnp.eye(F.shape[1], dtype=F.dtype)[None])


@ruled
def admittance(
    F: Float[Array, "n n"], root: Float[Array, "n n"], IA: Float[Array, "n n"]
) -> Float[Array, "n n"]:
    """N = F (1 + IA F)^-1, symmetric.

    By the root, because 1 + root^T IA root is positive definite and needs no pivots.
    """
    n = F.shape[0]
    inner = small_inverse(jnp.eye(n, dtype=F.dtype) + mm(root.T, mm(IA, root)))
    return mm(root, mm(inner, root.T))


@admittance.def_jvp
def _admittance_jvp(primals: Any, tangents: Any):
    # The root has no derivative where F is singular; N has one, without that of the root.
    F, root, IA = primals
    N = admittance(F, root, IA)
    left = jnp.eye(F.shape[0], dtype=F.dtype) - mm(N, IA)
    return N, mm(left, mm(tangents[0], left.T)) - mm(N, mm(tangents[2], N))
