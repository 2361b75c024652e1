"""Many searches at once: Levenberg-Marquardt as one compiled loop under vmap.

Not the solver of optimistix: under vmap it traces the model in several places and compiles three
times as long. Both end where a Gauss-Newton step gains nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from flexjax._compile import filter_jit
from flexjax.study.identify.fit._problem import Measured, Problem, residuals_and_jacobian


class _Search(eqx.Module):
    z: jax.Array
    residual: jax.Array
    jacobian: jax.Array
    damping: jax.Array
    done: jax.Array


@filter_jit
def solve_batch(
    problem: Problem, measured: Measured, z0: jax.Array, max_steps: int, over_data: bool = False
):
    """Search from the rows of ``z0`` (n, p).

    ``over_data``: each search has its own measured values (a leading axis of n). Returns z (n, p),
    residuals (n, N) and Jacobians (n, N, p).
    """

    def data(values):
        return eqx.tree_at(lambda m: m.values, measured, values)

    def evaluate(z):
        both = jax.vmap(
            lambda z, v: residuals_and_jacobian(z, problem, data(v))[:2],
            in_axes=(0, 0 if over_data else None),
        )
        return both(z, measured.values)

    def trial(search: _Search):
        J, r = search.jacobian, search.residual
        gram = J.T @ J
        # Marquardt's scaling; the floor keeps a parameter without effect where it is.
        scale = jnp.diag(gram) + 1e-12 * jnp.max(jnp.diag(gram)) + 1e-30
        step = -jnp.linalg.solve(gram + search.damping * jnp.diag(scale), J.T @ r)
        return search.z + jnp.clip(step, -1.0, 1.0)

    def judge(search: _Search, z, r, J):
        better = (0.5 * jnp.sum(r**2) < 0.5 * jnp.sum(search.residual**2)) & ~search.done
        new = _Search(
            jnp.where(better, z, search.z),
            jnp.where(better, r, search.residual),
            jnp.where(better, J, search.jacobian),
            jnp.where(better, search.damping * 0.1, search.damping * 10.0).clip(1e-12, 1e12),
            search.done,
        )
        done = search.done | _finished(new) | (new.damping >= 1e10)
        return eqx.tree_at(lambda x: x.done, new, done)

    # The first pass evaluates the start, so that the program contains the model only once.
    n, p = z0.shape
    (shape, _) = jax.eval_shape(evaluate, z0)
    start = jnp.full(shape.shape, 1e100, z0.dtype)
    searches = _Search(
        z0,
        start,
        jnp.zeros((*shape.shape, p), z0.dtype),
        jnp.full(n, 1e-2, z0.dtype),
        jnp.zeros(n, bool),
    )

    def body(carry):
        k, searches = carry
        z = jax.vmap(trial)(searches)
        return k + 1, jax.vmap(judge)(searches, z, *evaluate(z))

    def running(carry):
        return (carry[0] <= max_steps) & ~jnp.all(carry[1].done)

    _, searches = jax.lax.while_loop(running, body, (jnp.zeros((), jnp.int32), searches))
    return searches.z, searches.residual, searches.jacobian


def _finished(search: _Search):
    """Whether a full Gauss-Newton step gains almost nothing, or only rounding is left."""
    J, r = search.jacobian, search.residual
    loss = 0.5 * jnp.sum(r**2)
    slope = J.T @ r
    gram = J.T @ J
    gain = 0.5 * slope @ jnp.linalg.solve(gram + 1e-12 * jnp.diag(jnp.diag(gram) + 1e-30), slope)
    return (gain <= 1e-4 * loss / r.shape[0]) | (loss < 1e-20 * r.shape[0])
