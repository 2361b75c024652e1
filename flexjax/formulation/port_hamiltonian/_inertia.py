"""Elements of a link by quadrature along its true axis: stiffness, inertia and weight of sections
that change and of axes that curve.

A section at the fraction x of its element moves with the twists of both ends, V(x) = (1 - x) T_a
V_a + x T_b V_b, where T turns the axes of a node into those of the section and adds the way from
the chord to the arc (1 for straight elements). That is exact for rigid motions: whatever taper,
pieces and curvature, the elements of a link that does not deform have together its mass, centre of
mass and inertia. (Linear in body axes and with mean sections, the inertia was right to second order
in the mesh only: the joints of the contract's arm with rigid links and two elements were 5e-4 of
the motion off.)

Constants without shear stiffness or rotary inertia are those of an Euler-Bernoulli beam. Sections
then move across the link by the cubic between both ends (`_cubic`), and a force across the element
meets the compliance of the element's own bending (`_across`). For small deflections this is
Hermite's element: exact under end loads, frequencies of fourth order, and inertia of the rotations
of nodes without rotary inertia of the sections.
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

# Gauss points on every part of an element in one piece: a tapered section's rotary inertia is
# quartic in s, times two linear shape functions.
_POINTS = 5


class ElementTable(eqx.Module):
    """Of all elements of a link, integrated over each; ``coupling`` as its diagonal (n, 6) for
    straight links."""

    stiffness: Float[Array, "n 6"]  # per length, compliance averaged
    inertia: Float[Array, "n 6"]  # of the sections, in their own axes
    first: Float[Array, "n 6 6"]  # inertia that belongs to the element's first node
    last: Float[Array, "n 6 6"]
    coupling: Array
    weight: Float[Array, "n 2"]  # mass that weighs on either node
    moment: Float[Array, "n 2 3"]  # and its first moment about the node

    def nodal(self):
        """(inertia (n+1, 6, 6), mass that weighs (n+1,), its first moment (n+1, 3)) of the
        nodes."""
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


def without_shear(link: Link) -> tuple[bool, bool]:
    """Whether the constants of a link leave out its shear along y, and along z (static)."""
    return _left_out(link, "GAy"), _left_out(link, "GAz")


def cubic_planes(link: Link) -> tuple[bool, bool]:
    """Whether sections move along y, and along z, by a cubic (static): where shear or rotary
    inertia is left out."""
    y, z = without_shear(link)
    return y or _left_out(link, "rhoIz"), z or _left_out(link, "rhoIy")


def _left_out(link: Link, key: str) -> bool:
    given = [piece.constants for piece in link.pieces or (link,)]
    return any(c is not None and getattr(c, key) is None for c in given)


def couples_fully(link: Link) -> bool:
    """Whether inertia couples the translation of a node with the rotation of the next (static)."""
    return not link.rigid and (curved(link) or any(cubic_planes(link)))


def _shares(link: Link) -> Link:
    """With pieces whose fractions are shares of their sum: each of them then counts, the last one
    too."""
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
    """(fractions x of the elements (n, m), weights (n, m)): Gauss points on every part of an
    element that lies in one piece."""
    dtype = link.length.dtype
    fractions = jnp.stack([p.fraction for p in link.pieces]) if link.pieces else jnp.ones(1, dtype)
    ends = jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(fractions[:-1]), jnp.ones(1, dtype)])
    begin = jnp.arange(n, dtype=dtype)[:, None] / n
    low, high = jnp.maximum(begin, ends[None, :-1]), jnp.minimum(begin + 1 / n, ends[None, 1:])
    # A border of pieces on a node moves both elements' parts by half: the mean of the slopes to
    # either side.
    span = n * jnp.maximum(high - low, 0.0)
    x, w = np.polynomial.legendre.leggauss(_POINTS)
    x, w = jnp.asarray(0.5 * (x + 1), dtype), jnp.asarray(0.5 * w, dtype)
    at = n * (low - begin)[..., None] + span[..., None] * x[None, None]
    return jnp.clip(at, 0.0, 1.0).reshape(n, -1), (span[..., None] * w[None, None]).reshape(n, -1)


def along(link: Link, n: int, x):
    """(T_a, T_b) (6, 6) of a section at the fraction x of an element, and the way (3,) from the
    chord to it, in the axes of either node."""
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
    planes = cubic_planes(link)

    def over(values, shape=None):
        """Integral over each element of ``values`` (n, m, ...) times a shape (n, m)."""
        factor = l * w if shape is None else l * w * shape
        return jnp.sum(factor.reshape(*factor.shape, *(1,) * (values.ndim - 2)) * values, axis=1)

    shear = jnp.stack([_across(g, EI, x, l) for g, EI in ((p.GAy, p.EIz), (p.GAz, p.EIy))], -1)
    others = 1.0 / jnp.stack([p.EA, p.GJ, p.EIy, p.EIz], axis=-1)
    compliance = over(jnp.concatenate([others[..., :1], shear, others[..., 1:]], axis=-1)) / l
    # Torsion, and lumped nodes, need an inertia. Left out, it is that of a body as long as the
    # element, which vanishes with the square of the mesh.
    least = p.rhoA * l**2 / 12
    turning = [jnp.where(r > 0, r, least) for r in (p.rhoIx, p.rhoIy, p.rhoIz)]
    inertia = jnp.stack([p.rhoA, p.rhoA, p.rhoA, *turning], axis=-1)
    shapes = (1 - x) * (1 - blend * x), x * (1 - blend * (1 - x)), blend * x * (1 - x)
    weight = jnp.stack([over(p.rhoA, 1 - x), over(p.rhoA, x)], axis=1)
    if not couples_fully(link):
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

    def seen(left, inertia, right):
        return jnp.einsum("nmki,nmk,nmkj->nmij", left, inertia, right)

    moment = jnp.stack(
        [over(p.rhoA[..., None] * off, shape) for off, shape in ((off_a, 1 - x), (off_b, x))],
        axis=1,
    )
    if not any(planes):
        first, last, coupling = (
            over(seen(left, inertia, right), shape)
            for (left, right), shape in zip(((Ta, Ta), (Tb, Tb), (Ta, Tb)), shapes, strict=True)
        )
        return ElementTable(1.0 / compliance, over(inertia), first, last, coupling, weight, moment)
    ratios = [
        12 * over(_finite_inverse(g)) / (over(1.0 / EI) * l**2)
        for g, EI in ((p.GAy, p.EIz), (p.GAz, p.EIy))
    ]
    A, B = _cubic(link, n, x, ratios, planes)
    A, B = A @ Ta, B @ Tb
    own = jnp.stack([p.rhoA, p.rhoA, p.rhoA, turning[0], p.rhoIy, p.rhoIz], axis=-1)
    lumped = (over(seen(T, inertia, T), share) for T, share in ((Ta, 1 - x), (Tb, x)))
    first, last = (
        blend * over(seen(N, own, N)) + (1 - blend) * at_node
        for N, at_node in zip((A, B), lumped, strict=True)
    )
    if all(planes):
        # The weight of the sections acts on the nodes by the same cubic: half of it, and a moment.
        chord, turned = _chord(link, n)
        lever = 0.5 * blend * over(p.rhoA, x * (1 - x))[:, None]
        moment = moment + jnp.stack([lever * chord[None], -lever * turned[None]], axis=1)
    return ElementTable(
        1.0 / compliance, over(inertia), first, last, blend * over(seen(A, own, B)), weight, moment
    )


def _finite_inverse(stiffness):
    left_out = jnp.isinf(stiffness)
    return jnp.where(left_out, 0.0, 1.0 / jnp.where(left_out, 1.0, stiffness))


def _across(GA, EI, x, l):
    """Compliance per length against a force across the element. Without shear: that of the bending
    which the force adds to the constant curvature of the element; its mean is l^2 / (12 EI)."""
    return jnp.where(jnp.isinf(GA), (l * (x - 0.5)) ** 2 / EI, _finite_inverse(GA))


def _chord(link: Link, n: int):
    """An element's chord (3,), from its first node to its last, in the axes of either."""
    end = centreline_pose(link, jnp.ones_like(link.length) / n)
    return end.position, end.rotation.T @ end.position


def _cubic(link: Link, n: int, x, ratios, planes):
    """(N_a, N_b) (n, m, 6, 6) with V(x) = N_a T_a V_a + N_b T_b V_b: along y and z, as ``planes``
    mark, the deflection of a beam whose ends move and rotate, with the ratios 12 EI/(GA l^2) (n,)
    of shear to bending. Exact for rigid motion."""
    chord, _ = _chord(link, n)
    towards = jax.vmap(jax.vmap(lambda x: centreline_pose(link, x / n).rotation.T @ chord))(x)
    eye = jnp.eye(6, dtype=x.dtype)[None, None]
    a, b = (1 - x)[..., None, None] * eye, x[..., None, None] * eye
    # What a rotation w adds across the link: w x chord.
    zero = jnp.zeros_like(x)
    across = (
        jnp.stack([-towards[..., 2], zero, towards[..., 0]], axis=-1),
        jnp.stack([towards[..., 1], -towards[..., 0], zero], axis=-1),
    )
    for row, phi, arm, on in zip((1, 2), ratios, across, planes, strict=True):
        if not on:
            continue
        phi = phi[:, None]
        shift = (2 * x**3 - 3 * x**2 + x) / (1 + phi)
        turn_a = (x**3 - (2 + phi / 2) * x**2 + (1 + phi / 2) * x) / (1 + phi)
        turn_b = (x**3 - (1 - phi / 2) * x**2 - phi / 2 * x) / (1 + phi)
        a = a.at[..., row, row].add(shift).at[..., row, 3:].add(turn_a[..., None] * arm)
        b = b.at[..., row, row].add(-shift).at[..., row, 3:].add(turn_b[..., None] * arm)
    return a, b
