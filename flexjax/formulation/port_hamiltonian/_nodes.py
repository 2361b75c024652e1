"""Nodes and elements of all links in a stage: what the nodes lack, and its derivative by their
twists. Components first throughout (see _lanes)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._forces import NodeForces
from flexjax.formulation.port_hamiltonian._lanes import ad, coad_of, eye_like, mm, mv, transpose
from flexjax.formulation.port_hamiltonian._link import LaneElements


def _pad(x, front: int, back: int):
    """Zeros on nodes that an element does not touch: the axis of nodes is the third of vectors (d,
    L, N, ...)."""
    return jnp.pad(x, ((0, 0), (0, 0), (front, back), *((0, 0),) * (x.ndim - 3)))


def _pad_blocks(x, front: int, back: int):
    return jnp.pad(x, ((0, 0), (0, 0), (0, 0), (front, back), *((0, 0),) * (x.ndim - 4)))


def momentum(mass, off, V):
    """M V with the diagonal blocks (d, d, L, K) and the coupling of neighbours, as its diagonal (d,
    L, N) or in full (d, d, L, N)."""
    ahead, behind = V[:, :, 1:], V[:, :, :-1]
    to_first, to_last = (
        (off * ahead, off * behind)
        if off.ndim == V.ndim
        else (mv(off, ahead), mv(transpose(off), behind))
    )
    return mv(mass, V) + _pad(to_first, 0, 1) + _pad(to_last, 1, 0)


class Nodes(eqx.Module):
    """What a stage starts from; h has the axes of a vector."""

    h: Float[Array, "1 1 1 *b"]
    Q: Float[Array, "d L N *b"]
    momentum: Float[Array, "d L K *b"]
    rotation: Float[Array, "lin lin L K *b"]
    mass: Float[Array, "d d L K *b"]
    off: Array  # (d, L, N, ...) or (d, d, L, N, ...)
    elements: LaneElements
    pull: NodeForces

    def needs(self, V):
        """(wrenches that the nodes lack because of weight, loads and drag, power that drag
        takes)."""
        lost, damped = self.pull.damping(V)
        return damped - self.pull.wrench(self.rotation, self.h, V), lost

    def begin(self, V):
        """What rows and blocks share."""
        return self.elements.begin(self.Q, self.h, V)

    def rows(self, V, begun=None):
        """(wrenches that the nodes lack (d, L, K), Q (d, L, N), power dissipated)."""
        begun = self.begin(V) if begun is None else begun
        P = momentum(self.mass, self.off, V)
        needs, lost = self.needs(V)
        fa, fb, Q, loss = self.elements.forces(self.Q, self.h, begun)
        return (
            (P - self.momentum) / self.h
            - mv(coad_of(P), V)
            - _pad(fa, 0, 1)
            - _pad(fb, 1, 0)
            + needs,
            Q,
            loss + lost,
        )

    def blocks(self, V, begun=None):
        """Derivative of the rows by the twists as (lower, diagonal, upper) blocks (d, d, L, K)."""
        begun = self.begin(V) if begun is None else begun
        h, adT = self.h[None], transpose(ad(V))
        P = momentum(self.mass, self.off, V)
        diag = (
            self.mass / h
            - mm(adT, self.mass)
            - coad_of(P)
            - self.pull.tangent(self.rotation, self.h, V)
        )
        carry = eye_like(adT) / h - adT  # what a unit of momentum gives
        aa, ab, ba, bb = self.elements.tangent(self.Q, self.h, begun)
        before, after = carry[:, :, :, :-1], carry[:, :, :, 1:]
        if self.off.ndim == V.ndim:
            upper, lower = before * self.off[None] - ab, after * self.off[None] - ba
        else:
            upper, lower = mm(before, self.off) - ab, mm(after, transpose(self.off)) - ba
        return (
            _pad_blocks(lower, 1, 0),
            diag - _pad_blocks(aa, 0, 1) - _pad_blocks(bb, 1, 0),
            _pad_blocks(upper, 0, 1),
        )
