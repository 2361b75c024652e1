"""Stiffness and inertia per length along a link, from whichever way the link was described."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from flexjax.robot import BeamConstants, Link, Piece


class BeamProperties(eqx.Module):
    """Per length at stations s (S,): stiffness of extension, shear, torsion and bending, inertia of translation and rotation.

    ``GAy`` and ``GAz`` are infinite where the link's constants leave shear out."""

    EA: Array
    GAy: Array
    GAz: Array
    GJ: Array
    EIy: Array
    EIz: Array
    rhoA: Array
    rhoIx: Array
    rhoIy: Array
    rhoIz: Array


def _pieces(link: Link) -> tuple[Piece, ...]:
    if link.pieces:
        return link.pieces
    one = jnp.ones_like(link.length)
    return (
        Piece(
            one,
            section=link.section,
            section_end=link.section_end,
            material=link.material,
            constants=link.constants,
        ),
    )


def _piece_properties(piece: Piece, x) -> BeamProperties:
    """At the local coordinate x in [0, 1] of a piece."""
    if piece.constants is not None:
        return _from_constants(piece.constants)
    section = piece.section
    if piece.section_end is not None:
        section = jtu.tree_map(lambda a, b: (1 - x) * a + x * b, piece.section, piece.section_end)
    p, m = section.properties(), piece.material
    G = m.shear_modulus
    return BeamProperties(
        EA=m.E * p.A, GAy=G * p.ky * p.A, GAz=G * p.kz * p.A, GJ=G * p.J, EIy=m.E * p.Iy, EIz=m.E * p.Iz,
        rhoA=m.rho * p.A, rhoIx=m.rho * (p.Iy + p.Iz), rhoIy=m.rho * p.Iy, rhoIz=m.rho * p.Iz,
    )  # fmt: skip


def _from_constants(c: BeamConstants) -> BeamProperties:
    absent = {"GAy": jnp.full_like(c.EA, jnp.inf), "GAz": jnp.full_like(c.EA, jnp.inf)} | {
        k: jnp.zeros_like(c.EA) for k in ("rhoIx", "rhoIy", "rhoIz")
    }
    given = {k: getattr(c, k) for k in BeamProperties.__annotations__}
    return BeamProperties(**{k: absent[k] if v is None else v for k, v in given.items()})


def _starts(pieces) -> Array:
    fractions = jnp.stack([p.fraction for p in pieces])
    return jnp.concatenate([jnp.zeros(1, fractions.dtype), jnp.cumsum(fractions)])


def beam_properties(link: Link, s: Float[Array, " S"]) -> BeamProperties:
    """Properties at stations ``s`` in [0, 1]; at a border between pieces those of the outboard piece."""
    pieces = _pieces(link)
    starts = _starts(pieces)
    result: BeamProperties = None  # pyright: ignore[reportAssignmentType]  # a link has one piece at least
    for i, piece in enumerate(pieces):
        local = jnp.clip((s - starts[i]) / piece.fraction, 0.0, 1.0)
        here = jax.vmap(lambda x, piece=piece: _piece_properties(piece, x))(local)
        result = (
            here
            if result is None
            else jtu.tree_map(lambda a, b, i=i: jnp.where(s >= starts[i], b, a), result, here)
        )
    return result


def link_quadrature(link: Link, points: int = 4) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Gauss stations and weights over [0, 1], ``points`` on every piece, so that jumps of the section cost no accuracy."""
    x, w = np.polynomial.legendre.leggauss(points)
    starts = _starts(_pieces(link))
    span = jnp.diff(starts)
    x, w = jnp.asarray(0.5 * (x + 1), span.dtype), jnp.asarray(0.5 * w, span.dtype)
    return (starts[:-1, None] + span[:, None] * x[None, :]).reshape(-1), (
        span[:, None] * w[None, :]
    ).reshape(-1)
