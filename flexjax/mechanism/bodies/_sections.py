"""Stiffness and inertia per length along a link, however it is described."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.robot import BeamConstants, Link, Piece
from flexjax.robot.parts._section import AbstractSection


class BeamProperties(eqx.Module):
    """Stiffness (axial, shear, torsion, bending) and inertia per length, at stations (S,).

    ``GAy`` and ``GAz`` are infinite if the link's constants leave shear out.
    """

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
    fields = ("section", "section_end", "material", "constants")
    return (Piece(jnp.ones_like(link.length), **{f: getattr(link, f) for f in fields}),)


def section_at(piece: Piece, x: Scalar) -> AbstractSection:
    """The section at the local coordinate x in [0, 1] of a piece."""
    section = piece.section
    assert section is not None  # the robot's checks refuse a piece without
    if piece.section_end is None:
        return section
    return jtu.tree_map(lambda a, b: (1 - x) * a + x * b, section, piece.section_end)


def _piece_properties(piece: Piece, x: Scalar) -> BeamProperties:
    """At the local coordinate x in [0, 1] of a piece."""
    if piece.constants is not None:
        return _from_constants(piece.constants)
    m, p = piece.material, section_at(piece, x).properties()
    assert m is not None  # the robot's checks refuse a piece without
    G = m.shear_modulus
    return BeamProperties(
        EA=m.E * p.A,
        GAy=G * p.ky * p.A,
        GAz=G * p.kz * p.A,
        GJ=G * p.J,
        EIy=m.E * p.Iy,
        EIz=m.E * p.Iz,
        rhoA=m.rho * p.A,
        rhoIx=m.rho * (p.Iy + p.Iz),
        rhoIy=m.rho * p.Iy,
        rhoIz=m.rho * p.Iz,
    )


def _from_constants(c: BeamConstants) -> BeamProperties:
    absent: dict[str, Array] = dict.fromkeys(("GAy", "GAz"), jnp.full_like(c.EA, jnp.inf))
    absent |= dict.fromkeys(("rhoIx", "rhoIy", "rhoIz"), jnp.zeros_like(c.EA))
    given = {k: getattr(c, k) for k in BeamProperties.__annotations__}
    return BeamProperties(**{k: absent[k] if v is None else v for k, v in given.items()})


def _starts(pieces: Sequence[Piece]) -> Array:
    fractions = jnp.stack([p.fraction for p in pieces])
    return jnp.concatenate([jnp.zeros(1, fractions.dtype), jnp.cumsum(fractions)])


def _along(link: Link, s: Float[Array, " S"], read: Callable[[Piece, Scalar], Any]) -> Any:
    """``read`` at stations ``s`` in [0, 1]; at a border that of the outboard piece."""
    pieces = _pieces(link)
    starts = _starts(pieces)

    def of_piece(i: int):
        local = jnp.clip((s - starts[i]) / pieces[i].fraction, 0.0, 1.0)
        return jax.vmap(lambda x: read(pieces[i], x))(local)

    result = of_piece(0)
    for i in range(1, len(pieces)):
        outboard = s >= starts[i]
        result = jtu.tree_map(lambda a, b, m=outboard: jnp.where(m, b, a), result, of_piece(i))
    return result


def beam_properties(link: Link, s: Float[Array, " S"]) -> BeamProperties:
    """Properties at stations ``s`` in [0, 1]; at a border those of the outboard piece."""
    return _along(link, s, _piece_properties)


def half_sizes(link: Link, s: Float[Array, " S"]) -> tuple[Float[Array, " S"], Float[Array, " S"]]:
    """Distances of the surface from the axis along local y and z, at stations ``s`` [m]."""

    def read(piece: Piece, x: Scalar) -> tuple[Array, Array]:
        size = None if piece.section is None else section_at(piece, x).half_sizes()
        if size is None:
            raise ValueError(
                f"links.{link.name}: its section has no dimensions, and its surface strain is "
                "unknown; describe the link by a section with dimensions, e.g. fx.Rectangle."
            )
        return size

    return _along(link, s, read)


def link_quadrature(link: Link, points: int = 4) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Gauss stations and weights over [0, 1], ``points`` on every piece."""
    x, w = np.polynomial.legendre.leggauss(points)
    starts = _starts(_pieces(link))
    span = jnp.diff(starts)
    x, w = jnp.asarray(0.5 * (x + 1), span.dtype), jnp.asarray(0.5 * w, span.dtype)
    stations = starts[:-1, None] + span[:, None] * x[None, :]
    return stations.reshape(-1), (span[:, None] * w[None, :]).reshape(-1)
