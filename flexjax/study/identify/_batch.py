"""Many searches at once: Levenberg and Marquardt's method as one compiled loop over lanes.

A loop of its own beside optimistix's solver, which a single search uses: optimistix traces the model in several places under vmap and took three
times as long to compile here. Both end where a Gauss-Newton step gains nothing any more.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from flexjax.study.identify._problem import Measured, Problem, residuals_and_jacobian


class _Lane(eqx.Module):
    z: jax.Array
    residual: jax.Array
    jacobian: jax.Array
    damping: jax.Array
    done: jax.Array


@eqx.filter_jit
def solve_batch(
    problem: Problem, measured: Measured, z0: jax.Array, max_steps: int, over_data: bool = False
):
    """Searches from the rows of ``z0`` (n, p), and each with its own measured values (a leading axis of n) where ``over_data``: z (n, p), residuals
    (n, N), Jacobians (n, N, p)."""

    def data(values):
        return eqx.tree_at(lambda m: m.values, measured, values)

    def evaluate(z):
        both = jax.vmap(
            lambda z, v: residuals_and_jacobian(z, problem, data(v))[:2],
            in_axes=(0, 0 if over_data else None),
        )
        return both(z, measured.values)

    def trial(lane: _Lane):
        J, r = lane.jacobian, lane.residual
        gram = J.T @ J
        # Marquardt's scaling: damping relative to what each number does; the floor keeps an unseen number where it is.
        scale = jnp.diag(gram) + 1e-12 * jnp.max(jnp.diag(gram)) + 1e-30
        step = -jnp.linalg.solve(gram + lane.damping * jnp.diag(scale), J.T @ r)
        return lane.z + jnp.clip(step, -1.0, 1.0)

    def judge(lane: _Lane, z, r, J):
        before, after = 0.5 * jnp.sum(lane.residual**2), 0.5 * jnp.sum(r**2)
        better = (after < before) & ~lane.done
        new = _Lane(
            jnp.where(better, z, lane.z), jnp.where(better, r, lane.residual), jnp.where(better, J, lane.jacobian),
            jnp.where(better, lane.damping * 0.1, lane.damping * 10.0).clip(1e-12, 1e12), lane.done,
        )  # fmt: skip
        return eqx.tree_at(
            lambda x: x.done, new, lane.done | _finished(new) | (new.damping >= 1e10)
        )

    # The first pass of the loop evaluates the start itself (no slope, no step): one copy of the model in the program instead of two.
    n, p = z0.shape
    (shape, _) = jax.eval_shape(evaluate, z0)
    start = jnp.full(shape.shape, 1e100, z0.dtype)
    lanes = _Lane(
        z0,
        start,
        jnp.zeros((*shape.shape, p), z0.dtype),
        jnp.full(n, 1e-2, z0.dtype),
        jnp.zeros(n, bool),
    )

    def body(carry):
        k, lanes = carry
        z = jax.vmap(trial)(lanes)
        return k + 1, jax.vmap(judge)(lanes, z, *evaluate(z))

    _, lanes = jax.lax.while_loop(
        lambda c: (c[0] <= max_steps) & ~jnp.all(c[1].done), body, (jnp.zeros((), jnp.int32), lanes)
    )
    return lanes.z, lanes.residual, lanes.jacobian


def _finished(lane: _Lane):
    """A full Gauss-Newton step would gain less than a ten-thousandth of the loss of one sample, or nothing but rounding is left."""
    J, r = lane.jacobian, lane.residual
    loss = 0.5 * jnp.sum(r**2)
    slope = J.T @ r
    gram = J.T @ J
    gain = 0.5 * slope @ jnp.linalg.solve(gram + 1e-12 * jnp.diag(jnp.diag(gram) + 1e-30), slope)
    return (gain <= 1e-4 * loss / r.shape[0]) | (loss < 1e-20 * r.shape[0])
