"""Elements of a link by quadrature along its true axis: stiffness, inertia and weight of sections that change and of axes that curve.

A section at the fraction x of its element moves with the twists of both ends, V(x) = (1 - x) T_a V_a + x T_b V_b, where T turns the axes of a node into those
of the section and adds the way from the chord to the arc (1 for straight elements). That is exact for rigid motions: whatever taper, pieces and curvature,
the elements of a link that does not deform have together its mass, centre of mass and inertia. (Linear in body axes and with mean sections, the inertia was
right to second order in the mesh only: the joints of the contract's arm with rigid links and two elements were 5e-4 of the motion off.)
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.mechanism import beam_properties, centreline_pose
from flexjax.numerics.screw import se3
from flexjax.robot import Link

# Gauss points on every part of an element in one piece: a tapered section's rotary inertia is quartic in s, times two linear shape functions.
_POINTS = 5


class ElementTable(eqx.Module):
    """Of all elements of a link, integrated over each; ``coupling`` as its diagonal (n, 6) for straight links."""

    stiffness: Float[Array, "n 6"]  # per length, compliance averaged
    inertia: Float[Array, "n 6"]  # of the sections, in their own axes
    first: Float[Array, "n 6 6"]  # inertia that belongs to the element's first node
    last: Float[Array, "n 6 6"]
    coupling: Array
    weight: Float[Array, "n 2"]  # mass that weighs on either node
    moment: Float[Array, "n 2 3"]  # and its first moment about the node

    def nodal(self):
        """(inertia (n+1, 6, 6), mass that weighs (n+1,), its first moment (n+1, 3)) of the nodes."""
        return tuple(
            _to_nodes(a, b)
            for a, b in (
                (self.first, self.last),
                (self.weight[:, 0], self.weight[:, 1]),
                (self.moment[:, 0], self.moment[:, 1]),
            )
        )


def _to_nodes(a, b):
    pad = jnp.zeros_like(a[:1])
    return jnp.concatenate([a, pad]) + jnp.concatenate([pad, b])


def curved(link: Link) -> bool:
    """Whether a link's elements are arcs (static)."""
    return link.curvature is not None and not link.rigid


def _shares(link: Link) -> Link:
    """With pieces whose fractions are shares of their sum: each of them then counts, the last one too."""
    if not link.pieces:
        return link
    total = sum(piece.fraction for piece in link.pieces)
    return dataclasses.replace(
        link,
        pieces=tuple(
            dataclasses.replace(piece, fraction=piece.fraction / total) for piece in link.pieces
        ),
    )


def _stations(link: Link, n: int):
    """(fractions x of the elements (n, m), weights (n, m)): Gauss points on every part of an element that lies in one piece."""
    dtype = link.length.dtype
    fractions = jnp.stack([p.fraction for p in link.pieces]) if link.pieces else jnp.ones(1, dtype)
    ends = jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(fractions[:-1]), jnp.ones(1, dtype)])
    begin = jnp.arange(n, dtype=dtype)[:, None] / n
    low, high = jnp.maximum(begin, ends[None, :-1]), jnp.minimum(begin + 1 / n, ends[None, 1:])
    # A border of pieces on a node moves both elements' parts by half: the mean of the slopes to either side.
    span = n * jnp.maximum(high - low, 0.0)
    x, w = np.polynomial.legendre.leggauss(_POINTS)
    x, w = jnp.asarray(0.5 * (x + 1), dtype), jnp.asarray(0.5 * w, dtype)
    at = n * (low - begin)[..., None] + span[..., None] * x[None, None]
    return jnp.clip(at, 0.0, 1.0).reshape(n, -1), (span[..., None] * w[None, None]).reshape(n, -1)


def along(link: Link, n: int, x):
    """(T_a, T_b) (6, 6) of a section at the fraction x of an element, and the way (3,) from the chord to it, in the axes of either node."""
    end, here = (centreline_pose(link, part / n) for part in (jnp.ones_like(x), x))
    off = here.position - x * end.position
    turn, back = end.rotation.T @ here.rotation, end.rotation.T @ off
    return (
        se3.adjoint_inverse(se3.Pose(here.rotation, off)),
        se3.adjoint_inverse(se3.Pose(turn, back)),
        off,
        back,
    )


def element_table(link: Link, n: int, blend: float) -> ElementTable:
    """``blend``: 1 for the consistent inertia, 0 for one that is lumped on the nodes."""
    link = _shares(link)
    l = link.length / n
    x, w = _stations(link, n)
    s = (jnp.arange(n, dtype=x.dtype)[:, None] + x) / n
    p = jax.tree_util.tree_map(lambda v: v.reshape(x.shape), beam_properties(link, s.reshape(-1)))
    # Shear that the link's constants leave out is held as stiff as extension: no stiffer wave than there is already, and slender links do not see it.
    GAy, GAz = (jnp.where(jnp.isinf(g), p.EA, g) for g in (p.GAy, p.GAz))
    stiffness = jnp.stack([p.EA, GAy, GAz, p.GJ, p.EIy, p.EIz], axis=-1)
    # A section without rotary inertia gets that of a piece of the link as long as the element: it vanishes with the square of the mesh.
    least = p.rhoA * l**2 / 12
    turning = [jnp.where(r > 0, r, least) for r in (p.rhoIx, p.rhoIy, p.rhoIz)]
    inertia = jnp.stack([p.rhoA, p.rhoA, p.rhoA, *turning], axis=-1)

    def over(values, shape=None):
        """Integral over each element of ``values`` (n, m, ...) times a shape (n, m)."""
        factor = l * w if shape is None else l * w * shape
        return jnp.sum(factor.reshape(*factor.shape, *(1,) * (values.ndim - 2)) * values, axis=1)

    compliance = over(1.0 / stiffness) / l
    shapes = (1 - x) * (1 - blend * x), x * (1 - blend * (1 - x)), blend * x * (1 - x)
    weight = jnp.stack([over(p.rhoA, 1 - x), over(p.rhoA, x)], axis=1)
    if not curved(link):
        eye = jnp.eye(6, dtype=x.dtype)[None]
        first, last, coupling = (over(inertia, shape) for shape in shapes)
        moment = jnp.zeros((n, 2, 3), x.dtype)
        return ElementTable(
            1.0 / compliance,
            over(inertia),
            first[..., None] * eye,
            last[..., None] * eye,
            coupling,
            weight,
            moment,
        )
    Ta, Tb, off_a, off_b = jax.vmap(jax.vmap(lambda x: along(link, n, x)))(x)

    def seen(left, right):
        return jnp.einsum("nmki,nmk,nmkj->nmij", left, inertia, right)

    blocks = (
        over(seen(*pair), shape)
        for pair, shape in zip(((Ta, Ta), (Tb, Tb), (Ta, Tb)), shapes, strict=True)
    )
    moment = jnp.stack(
        [over(p.rhoA[..., None] * off, shape) for off, shape in ((off_a, 1 - x), (off_b, x))],
        axis=1,
    )
    return ElementTable(1.0 / compliance, over(inertia), *blocks, weight, moment)
