"""Carriers whose mesh has a node at the contact (arbitrary Lagrangian-Eulerian).

Half of the elements lies on either side of the contact, and all nodes move with its coordinate d.
The functions are Hermite cubics with slopes in physical units, since elements of different length
meet. A material point keeps its x, so its deflection changes at the rate
    w_t = N_j c_j' + d' c_j (dN_j/dd at fixed x),
and mass, stiffness and the coupling of d with the frame depend on d. Curvature may jump at the
contact, where a rider transmits a moment. The mass matrix is singular at the ends of the link.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.numerics.beam import Cubics
from flexjax.numerics.linalg._banded import to_band, to_vector

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


class Pinned(eqx.Module):
    """Integrals of one pinned link at one shape, padded like all links."""

    M: Float[Array, "m w"]  # rotary inertia included
    moment: Float[Array, "m w"]  # mu f f, for the moment of inertia
    K: Float[Array, "m w"]
    a: Float[Array, " m"]  # mu f
    b: Float[Array, " m"]  # mu x f + rhoI f'
    column: Float[Array, " 3"]  # coupling of d with the frame's twist
    side: Float[Array, " m"]
    corner: Float[Array, ""]


def halves(elements: int) -> tuple[int, int]:
    """Number of elements before and after the contact."""
    return elements // 2, elements - elements // 2


def contact_node(elements: int) -> tuple[int, int]:
    """Indices of deflection and slope at the contact among the coefficients."""
    node = 2 * (halves(elements)[0] - 1)
    return node, node + 1


def _mesh(d: Scalar, length: Scalar, elements: int):
    """Start and length of the elements, both linear in d."""
    before, behind = halves(elements)
    i, j = jnp.arange(before, dtype=d.dtype) / before, jnp.arange(behind, dtype=d.dtype) / behind
    start = jnp.concatenate([d * i, d + (length - d) * j])
    h = [jnp.full(before, 1.0) * d / before, jnp.full(behind, 1.0) * (length - d) / behind]
    return start, jnp.concatenate(h)


def mesh_nodes(d: Scalar, length: Scalar, elements: int):
    """Positions of all nodes but the first."""
    start, h = _mesh(d, length, elements)
    return start + h


def _functions(powers: np.ndarray | Array, start: Scalar, h: Scalar, x: Scalar):
    """Functions (3, 4) of an element at x with their first and second derivative in x."""
    z, one = (x - start) / h, jnp.ones_like(x)
    none = jnp.zeros_like(x)
    rows = jnp.stack(
        [
            jnp.stack([one, z, z**2, z**3]),
            jnp.stack([none, one, 2 * z, 3 * z**2]),
            jnp.stack([none, none, 2 * one, 6 * z]),
        ]
    )
    scale = jnp.stack([one, h, one, h])
    rows = rows / jnp.stack([one, h, h**2])[:, None]
    return rows @ jnp.asarray(powers, x.dtype) * scale[None, :]


def pinned_integrals(
    cubics: Cubics,
    size: int,
    length: Scalar,
    mu: Scalar,
    EI: Scalar,
    rhoI: Scalar,
    d: Scalar,
    c: Float[Array, " m"],
) -> Pinned:
    n = cubics.elements
    index = jnp.asarray(np.where(cubics.index < cubics.size, cubics.index, size))
    start, h = _mesh(d, length, n)
    x = start[:, None] + h[:, None] * jnp.asarray(0.5 * (_NODES + 1), d.dtype)[None, :]
    weight = h[:, None] * jnp.asarray(0.5 * _WEIGHTS, d.dtype)[None, :]
    powers = jnp.asarray(cubics.powers, d.dtype)

    def on_mesh(d):
        # At fixed points x.
        start, h = _mesh(d, length, n)
        along = jax.vmap(_functions, in_axes=(None, None, None, 0))
        return jax.vmap(along)(powers, start, h, x)

    f, f_d = jax.jvp(on_mesh, (d,), (jnp.ones_like(d),))
    local = jnp.concatenate([c, jnp.zeros(1, c.dtype)])[index]
    # dw/dd and its slope at fixed x
    drag, turn = (jnp.einsum("eqa,ea->eq", f_d[:, :, k], local) for k in (0, 1))
    f0, f1, f2 = f[:, :, 0], f[:, :, 1], f[:, :, 2]

    def band(c, values):
        return to_band(index, jnp.einsum("eq,eqa,eqb->eab", c, values, values), size)

    def vector(c, values):
        return to_vector(index, jnp.einsum("eq,eqa->ea", c, values), size)

    mass, rotary, moment = mu * weight, rhoI * weight, band(mu * weight, f0)
    M = (moment + band(rotary, f1)).at[cubics.size :, 3].set(1.0)
    a, b = vector(mass, f0), vector(mass * x, f0) + vector(rotary, f1)
    side = vector(mass * drag, f0) + vector(rotary * turn, f1)
    convected = jnp.sum(mass * drag * x + rotary * turn)
    column = jnp.stack([jnp.zeros_like(d), jnp.sum(mass * drag), convected])
    corner = jnp.sum(mass * drag**2 + rotary * turn**2)
    return Pinned(M, moment, band(EI * weight, f2), a, b, column, side, corner)


def pinned_station(
    cubics: Cubics, size: int, length: Scalar, d: Scalar, x: Scalar
) -> tuple[Float[Array, "3 m"], Float[Array, "3 m"], Array]:
    """Functions and derivatives in x of the section at x, their rate per d, and the element."""
    n = cubics.elements
    index = jnp.asarray(np.where(cubics.index < cubics.size, cubics.index, size))
    nodes = jax.lax.stop_gradient(_mesh(d, length, n)[0])
    place = jnp.searchsorted(nodes, jax.lax.stop_gradient(x), side="right") - 1
    element = jnp.clip(place, 0, n - 1)
    powers = jnp.asarray(cubics.powers, d.dtype)[element]

    def at(d):
        start, h = _mesh(d, length, n)
        own = _functions(powers, start[element], h[element], x)
        return jnp.zeros((3, size + 1), d.dtype).at[:, index[element]].add(own)[:, :size]

    f, f_d = jax.jvp(at, (d,), (jnp.ones_like(d),))
    return f, f_d, element
