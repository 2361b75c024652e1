"""Associative scans along a planar chain, for devices with many cores."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix.sweep._riccati import (
    Elements,
    Solution,
    body_maps,
    finish,
    rotation_rows,
)
from flexjax.numerics.linalg import inverse3


def parallel(el: Elements, root: Float[Array, "3"]) -> Solution:
    """The same by associative scans: logarithmic depth, for devices with many cores.

    Each element maps (e_I, f_O) to (e_O, f_I); composing two such maps (Redheffer's star product)
    keeps the stability of the Riccati sweep, which a tree of products of transfer matrices would
    lose."""
    right, left = body_maps(el)
    T, t, M, b = right[:, :3, :3], right[:, :3, 3], el.mass[:, :, :3], el.mass[:, :, 3]
    third = jnp.zeros((1, 3), root.dtype).at[0, 2].set(1.0)
    g = el.free / (el.stiffness + M[:, 2, 2])
    # D = De . e_I + Df . f_O + D1 with n = M3 . (e + D third) + left3 . f_O + b3
    De = -g[:, None] * (M[:, 2] + el.coupling[:, None] * third)
    Df = -g[:, None] * left[:, 2]
    D1 = g * (el.torque - b[:, 2]) + el.given
    response = M[:, :, 2] + el.coupling[:, None] * third
    A = T + T[:, :, 2:] * De[:, None]
    B = T[:, :, 2:] * Df[:, None]
    c = t + T[:, :, 2] * D1[:, None]
    C = M + response[:, :, None] * De[:, None] + el.inertia[:, None, None] * (third.T * third)[None]
    F = left + response[:, :, None] * Df[:, None]
    d = b + response * D1[:, None] - el.rotor_torque[:, None] * third

    def mul(x, y):
        return jnp.sum(x[..., :, :, None] * y[..., None, :, :], axis=-2)

    def vec(x, y):
        return jnp.sum(x * y[..., None, :], axis=-1)

    eye = jnp.eye(3, dtype=root.dtype)[None]

    def star(outer, inner):  # reverse=True passes the outboard part first
        A2, B2, c2, C2, F2, d2 = outer
        A1, B1, c1, C1, F1, d1 = inner
        inv = inverse3(eye - mul(B1, C2))
        AI, X = mul(A2, inv), mul(F1, inverse3(eye - mul(C2, B1)))
        return (
            mul(AI, A1),
            B2 + mul(mul(AI, B1), F2),
            vec(AI, c1 + vec(B1, d2)) + c2,
            C1 + mul(mul(X, C2), A1),
            mul(X, F2),
            vec(X, d2 + vec(C2, c1)) + d1,
        )

    suffix = lax.associative_scan(star, (A, B, c, C, F, d), reverse=True)
    S, p = suffix[3], suffix[5]  # of the chain from the connection i outwards
    zero3 = jnp.zeros((1, 3, 3), root.dtype)
    S1, p1 = jnp.concatenate([S[1:], zero3]), jnp.concatenate([p[1:], zero3[:, 0]])
    # Row of n behind the connection i.
    rows = M[:, 2] + jnp.sum(left[:, 2, :, None] * mul(S1, T), axis=1)
    rows = jnp.concatenate(
        [rows, (b[:, 2] + jnp.sum(left[:, 2] * (vec(S1, t) + p1), axis=1))[:, None]], axis=1
    )
    rotation = rotation_rows(el, rows)
    step, shift = T + T[:, :, 2:] * rotation[:, None, :3], t + T[:, :, 2] * rotation[:, 3:]

    def then(first, second):
        (A1, b1), (A2, b2) = first, second
        return mul(A2, A1), vec(A2, b1) + b2

    A, b = lax.associative_scan(then, (step, shift))
    e = jnp.concatenate([root[None], jnp.sum(A[:-1] * root[None, None], axis=-1) + b[:-1]])
    return finish(rows, rotation, e)
