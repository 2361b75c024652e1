"""Linear-quadratic problems along a horizon, solved stage by stage.

The cost of a solution grows linearly with the number of stages. Bounds on the inputs enter as
barriers, which change the matrices of the stages and not their structure.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

ITERATIONS = 25  # of the interior-point method


class Stages(NamedTuple):
    """Of H stages: s[k+1] = A s[k] + B u[k] + c, and the cost of s[k+1] and u[k]:
    s Q s / 2 + q s + u R u / 2 + r u."""

    A: Float[Array, "H n n"]
    B: Float[Array, "H n m"]
    c: Float[Array, "H n"]
    Q: Float[Array, "H n n"]
    q: Float[Array, "H n"]
    R: Float[Array, "H m m"]
    r: Float[Array, "H m"]


def solve_free(stages: Stages, s0: Float[Array, " n"]) -> tuple[Array, Array]:
    """Inputs (H, m) and states (H, n) of the minimum without bounds, by Riccati's recursion."""

    def backward(carry, stage: Stages):
        P, p = carry
        # Cost to go from s[k+1], with the stage's own.
        P, p = P + stage.Q, p + stage.q
        PA, PB, Pc = P @ stage.A, P @ stage.B, P @ stage.c + p
        # Cholesky: the matrix is positive definite with R.
        factor = jax.scipy.linalg.cho_factor(stage.R + stage.B.T @ PB)
        K = jax.scipy.linalg.cho_solve(factor, stage.B.T @ PA)
        k = jax.scipy.linalg.cho_solve(factor, stage.B.T @ Pc + stage.r)
        P_new = stage.A.T @ PA - (stage.B.T @ PA).T @ K
        p_new = stage.A.T @ Pc - (stage.B.T @ PA).T @ k
        return (0.5 * (P_new + P_new.T), p_new), (K, k)

    n = s0.shape[0]
    zero = (jnp.zeros((n, n), s0.dtype), jnp.zeros(n, s0.dtype))
    _, (K, k) = jax.lax.scan(backward, zero, stages, reverse=True)

    def forward(s, stage):
        A, B, c, K, k = stage
        u = -K @ s - k
        s = A @ s + B @ u + c
        return s, (u, s)

    return jax.lax.scan(forward, s0, (stages.A, stages.B, stages.c, K, k))[1]


def solve_bounded(
    stages: Stages, s0: Float[Array, " n"], low: Float[Array, "H m"], high: Float[Array, "H m"]
) -> tuple[Array, Array]:
    """As :func:`solve_free`, with ``low <= u <= high``, which may be infinite."""
    finite = (low > -jnp.inf, high < jnp.inf)
    u = jnp.where(finite[0] & finite[1], 0.5 * (low + high), 0.0)
    width = jnp.where(finite[0] & finite[1], high - low, 1.0)
    # An input at its bound keeps a gap, by which the barrier is divided.
    least = 1e-12 * width
    gaps = lambda u: (
        jnp.where(finite[0], jnp.maximum(u - low, least), 1.0),
        jnp.where(finite[1], jnp.maximum(high - u, least), 1.0),
    )
    size = jnp.max(jnp.abs(stages.r)) + jnp.max(jnp.abs(stages.R)) * jnp.max(width) + 1e-12
    z = tuple(jnp.where(f, size, 0.0) for f in finite)

    def body(k, carry):
        u, z = carry
        g = gaps(u)
        count = jnp.maximum(jnp.sum(finite[0]) + jnp.sum(finite[1]), 1)
        mu = 0.2 * (jnp.sum(g[0] * z[0]) + jnp.sum(g[1] * z[1])) / count
        weight = z[0] / g[0] + z[1] / g[1]
        push = jnp.where(finite[0], mu / g[0], 0.0) - jnp.where(finite[1], mu / g[1], 0.0)
        eye = jnp.eye(u.shape[1], dtype=u.dtype)
        # The barrier is expanded about the present inputs.
        R = stages.R + weight[:, :, None] * eye[None]
        r = stages.r - push - weight * u
        new, _ = solve_free(stages._replace(R=R, r=r), s0)
        du = new - u
        dz = (
            jnp.where(finite[0], mu / g[0] - z[0] - z[0] / g[0] * du, 0.0),
            jnp.where(finite[1], mu / g[1] - z[1] + z[1] / g[1] * du, 0.0),
        )
        ratio = lambda a, d: jnp.min(jnp.where(d < 0, -a / jnp.where(d < 0, d, -1.0), jnp.inf))
        moves = [
            ratio(g[0], jnp.where(finite[0], du, 0.0)),
            ratio(g[1], jnp.where(finite[1], -du, 0.0)),
        ]
        along = jnp.minimum(1.0, 0.99 * jnp.min(jnp.stack(moves)))
        along_z = jnp.minimum(1.0, 0.99 * jnp.minimum(ratio(z[0], dz[0]), ratio(z[1], dz[1])))
        return u + along * du, (z[0] + along_z * dz[0], z[1] + along_z * dz[1])

    u, _ = jax.lax.fori_loop(0, ITERATIONS, body, (u, z))
    u = jnp.clip(u, low, high)

    def forward(s, stage):
        A, B, c, u = stage
        s = A @ s + B @ u + c
        return s, s

    return u, jax.lax.scan(forward, s0, (stages.A, stages.B, stages.c, u))[1]


def find_costates(stages: Stages, s: Float[Array, "H n"]) -> Float[Array, "H n"]:
    """Derivative of the cost of states ``s`` with respect to each ``c``, at fixed inputs."""

    def backward(later, stage):
        A, Q, q, s = stage
        here = later + Q @ s + q
        return A.T @ here, here

    last = jnp.zeros_like(s[-1])
    return jax.lax.scan(backward, last, (stages.A, stages.Q, stages.q, s), reverse=True)[1]
