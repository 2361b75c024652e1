"""A dense convex quadratic program, inside jit and vmap.

A primal-dual interior-point method with Mehrotra's predictor and corrector. qpax has the same
method, but multiplies the m constraints by an m x m matrix; a move has thousands of constraints and
tens of unknowns.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float

ITERATIONS = 40
SMALLEST = 1e-14  # slack and multiplier, which keep the matrix finite


class Solution(NamedTuple):
    """Unknowns, multipliers of the constraints, and whether the tolerance was met."""

    x: Float[Array, " n"]
    multipliers: Float[Array, " m"]
    ok: Bool[Array, ""]


def solve_quadratic(
    Q: Float[Array, "n n"],
    q: Float[Array, " n"],
    G: Float[Array, "m n"],
    h: Float[Array, " m"],
    x: Float[Array, " n"],
    tolerance: float = 1e-11,
) -> Solution:
    """Minimise x Q x / 2 + q x subject to G x <= h, from a point ``x``."""
    eye = 1e-14 * jnp.eye(q.shape[0], dtype=q.dtype)
    first = h - G @ x
    slack = jnp.maximum(first, 1.0)
    start = (x, slack, jnp.ones_like(h), jnp.asarray(jnp.inf, q.dtype), jnp.asarray(0))

    def longest(a, da):
        """Largest step up to 1 that keeps ``a`` positive."""
        return jnp.minimum(1.0, jnp.min(jnp.where(da < 0, -a / jnp.where(da < 0, da, -1.0), 1.0)))

    def body(carry):
        x, s, z, _, count = carry
        dual = Q @ x + q + G.T @ z
        primal = G @ x + s - h
        gap = jnp.mean(s * z)
        left = jnp.maximum(jnp.maximum(jnp.max(jnp.abs(dual)), jnp.max(jnp.abs(primal))), gap)
        weight = z / s
        factor = cho_factor(Q + eye + G.T @ (weight[:, None] * G))

        def direction(centre):
            dx = cho_solve(factor, -dual - G.T @ (weight * primal - z + centre / s))
            ds = -primal - G @ dx
            return dx, ds, (centre - z * ds) / s - z

        _, ds, dz = direction(jnp.zeros_like(s))
        ahead = jnp.mean((s + longest(s, ds) * ds) * (z + longest(z, dz) * dz))
        # Where the gap is zero there is nothing to centre.
        share = (ahead / jnp.where(gap > 0, gap, 1.0)) ** 3
        dx, ds, dz = direction(share * gap - ds * dz)
        along = 0.995 * jnp.minimum(longest(s, ds), longest(z, dz))
        good = jnp.all(jnp.isfinite(dx)) & jnp.all(jnp.isfinite(dz)) & (left > tolerance)
        along = jnp.where(good, along, 0.0)
        move = lambda a, da: a + along * jnp.where(good, da, 0.0)
        s, z = jnp.maximum(move(s, ds), SMALLEST), jnp.maximum(move(z, dz), SMALLEST)
        return move(x, dx), s, z, left, jnp.where(good, count + 1, ITERATIONS)

    end = jax.lax.while_loop(lambda c: c[4] < ITERATIONS, body, start)
    return Solution(end[0], end[2], end[3] <= 1e3 * tolerance)
