"""Shape coordinates condensed out of the sweeps: whatever their number, the scan along the chain sees matrices of the
size of a twist.

With E1 = Mee^-1 Mez and E2 = Mee^-1 S^T (computed for all links at once, outside the scan), a link is
    P = Mzz - Mze E1 (what the base feels with the tip free),  Y = X_t - S E1 (tip acceleration per base acceleration),
    F = S E2 (flexibility of the tip)
and with the inertia IA that hangs on the tip the base feels  P + Y^T K Y,  K = IA (1 + F IA)^-1 = IA - IA N IA,  N = F
(1 + IA F)^-1.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._rules import ruled
from flexjax.mechanism.chain._links import AbstractLinks, Mass, Tip
from flexjax.numerics.linalg import mm, small_inverse


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
    E3: Float[Array, "B m"] | None = None  # of shape rows that were known already

    def reduce(
        self,
        bias: Float[Array, "B dim"],
        shape_bias: Float[Array, "B m"],
        tip_rate: Float[Array, "B dim"],
    ) -> tuple[Array, Array, Array]:
        """(E3, bias of the base, known acceleration of the tip) when the shape rows need ``shape_bias`` beyond mass
        times acceleration."""
        E3 = (
            self.links.solve(self.factors, shape_bias[:, :, None])[:, :, 0]
            if self.E3 is None
            else self.E3
        )
        return (
            E3,
            bias - jnp.sum(self.ze * E3[:, None, :], axis=2),
            tip_rate - jnp.sum(self.S * E3[:, None, :], axis=2),
        )

    def recover(
        self, E3: Float[Array, "B m"], a: Float[Array, "B dim"], tip_force: Float[Array, "B dim"]
    ) -> Array:
        """Shape accelerations (B, m) from those of the frames and the forces on the tips."""
        return (
            jnp.sum(self.E2 * tip_force[:, None, :], axis=2)
            - jnp.sum(self.E1 * a[:, None, :], axis=2)
            - E3
        )


def _half(m: Float[Array, "*n i i"]) -> Float[Array, "*n i i"]:
    return 0.5 * (m + jnp.swapaxes(m, -1, -2))


def condense(
    links: AbstractLinks,
    rigid: Float[Array, "B dim dim"],
    mass: Mass,
    factors: PyTree,
    tip: Tip,
    Xt: Float[Array, "B dim dim"],
    shape_bias: Float[Array, "B m"] | None = None,
) -> Condensed:
    """``rigid``: inertia of what sits rigidly on the frame (hubs, rigid links); ``shape_bias`` where it is known
    already, so that one solve serves all columns."""
    dim = rigid.shape[1]
    columns = [jnp.swapaxes(mass.ze, 1, 2), jnp.swapaxes(tip.S, 1, 2)]
    all_columns = links.solve(
        factors,
        jnp.concatenate(
            columns if shape_bias is None else [*columns, shape_bias[:, :, None]], axis=2
        ),
    )
    E1, E2 = all_columns[:, :, :dim], all_columns[:, :, dim : 2 * dim]
    E3 = None if shape_bias is None else all_columns[:, :, 2 * dim]
    # The same block on both sides and symmetrised: otherwise the error grows exponentially along the chain.
    P = _half(rigid + mass.zz - mass.ze @ E1)
    F = _half(tip.S @ E2)
    return Condensed(
        P,
        Xt - tip.S @ E1,
        F,
        _root(jax.lax.stop_gradient(F)),
        E1,
        E2,
        mass.ze,
        tip.S,
        links,
        factors,
        E3,
    )


def _root(F: Float[Array, "B i i"]) -> Float[Array, "B i i"]:
    """A triangular factor of F, which is singular where the shape functions cannot move the tip: lifted by a few units
    of round-off."""
    eps = jnp.finfo(F.dtype).eps
    diagonal = jnp.maximum(jnp.diagonal(F, axis1=1, axis2=2), 0.0)
    # Translations and rotations have different units; where nothing moves at all, a number that is nothing beside any
    # inertia.
    lin = 2 if F.shape[1] == 3 else 3
    scale = jnp.concatenate(
        [
            jnp.broadcast_to(jnp.max(d, axis=1, keepdims=True), d.shape)
            for d in (diagonal[:, :lin], diagonal[:, lin:])
        ],
        axis=1,
    )
    lift = 32 * eps * jnp.where(scale > 0, scale, eps**2)
    return jnp.linalg.cholesky(F + lift[:, :, None] * jnp.eye(F.shape[1], dtype=F.dtype)[None])


@ruled
def admittance(
    F: Float[Array, "n n"], root: Float[Array, "n n"], IA: Float[Array, "n n"]
) -> Float[Array, "n n"]:
    """N = F (1 + IA F)^-1, symmetric. Through the root, because 1 + root^T IA root is positive definite and needs no
    pivots, while 1 + IA F may."""
    n = F.shape[0]
    inner = small_inverse(jnp.eye(n, dtype=F.dtype) + mm(root.T, mm(IA, root)))
    return mm(root, mm(inner, root.T))


@admittance.def_jvp
def _admittance_jvp(primals: Any, tangents: Any):
    # The root has no derivative where F is singular; N has, and it does not need the root's.
    F, root, IA = primals
    N = admittance(F, root, IA)
    left = jnp.eye(F.shape[0], dtype=F.dtype) - mm(N, IA)
    return N, mm(left, mm(tangents[0], left.T)) - mm(N, mm(tangents[2], N))
