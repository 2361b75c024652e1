"""Carriers whose mesh has a node at the contact (arbitrary Lagrangian-Eulerian): half of the elements lies on either side of it, and all nodes move with d.

Hermite cubics with slopes in physical units, since elements of different length meet. A material point keeps its x, so its deflection changes at the rate
    w_t = N_j c_j' + d' c_j (dN_j/dd at fixed x),
and mass, stiffness and the coupling of d with the frame depend on d. Curvature may jump at the contact, as it does where a rider hands a moment over. The
mass matrix becomes singular as the contact nears an end of the link.
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
    """What one pinned link contributes at one shape, padded like all links."""

    M: Float[Array, "m w"]
    K: Float[Array, "m w"]
    a: Float[Array, " m"]  # mu f
    b: Float[Array, " m"]  # mu x f
    column: Float[Array, " 3"]  # of d towards the frame's twist
    side: Float[Array, " m"]
    corner: Float[Array, ""]


def halves(elements: int) -> tuple[int, int]:
    """Elements before and behind the contact."""
    return elements // 2, elements - elements // 2


def contact_node(elements: int) -> tuple[int, int]:
    """Where deflection and slope at the contact stand among the coefficients."""
    node = 2 * (halves(elements)[0] - 1)
    return node, node + 1


def _mesh(d: Scalar, length: Scalar, elements: int):
    """(start, length) of the elements, both linear in d."""
    before, behind = halves(elements)
    i, j = jnp.arange(before, dtype=d.dtype) / before, jnp.arange(behind, dtype=d.dtype) / behind
    start = jnp.concatenate([d * i, d + (length - d) * j])
    return start, jnp.concatenate(
        [jnp.full(before, 1.0) * d / before, jnp.full(behind, 1.0) * (length - d) / behind]
    )


def mesh_nodes(d: Scalar, length: Scalar, elements: int):
    """Positions of all nodes but the first."""
    start, h = _mesh(d, length, elements)
    return start + h


def _functions(powers: np.ndarray | Array, start: Scalar, h: Scalar, x: Scalar):
    """(3, 4): functions of an element at x with their first and second derivative in x."""
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
    return (
        (rows / jnp.stack([one, h, h**2])[:, None]) @ jnp.asarray(powers, x.dtype) * scale[None, :]
    )


def pinned_integrals(
    cubics: Cubics,
    size: int,
    length: Scalar,
    mu: Scalar,
    EI: Scalar,
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
        # At points that stay where they are.
        start, h = _mesh(d, length, n)
        return jax.vmap(lambda p, s, h, row: jax.vmap(lambda x: _functions(p, s, h, x))(row))(
            powers, start, h, x
        )

    f, f_d = jax.jvp(on_mesh, (d,), (jnp.ones_like(d),))
    local = jnp.concatenate([c, jnp.zeros(1, c.dtype)])[index]
    drag = jnp.einsum("eqa,ea->eq", f_d[:, :, 0], local)  # dw/dd at fixed x
    f0, f2 = f[:, :, 0], f[:, :, 2]
    M = (
        to_band(index, jnp.einsum("eq,eqa,eqb->eab", mu * weight, f0, f0), size)
        .at[cubics.size :, 3]
        .set(1.0)
    )
    K = to_band(index, jnp.einsum("eq,eqa,eqb->eab", EI * weight, f2, f2), size)
    a, b, side = (
        to_vector(index, jnp.einsum("eq,eqa->ea", mu * weight * k, f0), size)
        for k in (jnp.ones_like(x), x, drag)
    )
    pull = mu * weight * drag
    column = jnp.stack([jnp.zeros_like(d), jnp.sum(pull), jnp.sum(pull * x)])
    return Pinned(M, K, a, b, column, side, jnp.sum(pull * drag))


def pinned_station(
    cubics: Cubics, size: int, length: Scalar, d: Scalar, x: Scalar
) -> tuple[Float[Array, "3 m"], Float[Array, "3 m"], Array]:
    """(functions and derivatives in x, their rate per d at fixed x, element) of the section at x."""
    n = cubics.elements
    index = jnp.asarray(np.where(cubics.index < cubics.size, cubics.index, size))
    nodes = jax.lax.stop_gradient(_mesh(d, length, n)[0])
    element = jnp.clip(
        jnp.searchsorted(nodes, jax.lax.stop_gradient(x), side="right") - 1, 0, n - 1
    )
    powers = jnp.asarray(cubics.powers, d.dtype)[element]

    def at(d):
        start, h = _mesh(d, length, n)
        return (
            jnp.zeros((3, size + 1), d.dtype)
            .at[:, index[element]]
            .add(_functions(powers, start[element], h[element], x))[:, :size]
        )

    f, f_d = jax.jvp(at, (d,), (jnp.ones_like(d),))
    return f, f_d, element
