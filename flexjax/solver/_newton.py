"""Newton's iteration of an implicit step, with an approximate (structured, symmetric) matrix and exact implicit-function gradients.

The iteration is never differentiated: ``lax.custom_root`` gives the derivative of the root in forward and reverse mode and to any order, at the
cost of one linear solve with the exact Jacobian, in which the approximate matrix only speeds up the convergence: the gradient is exact although the
matrix is not.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax.solver._krylov import residual_minimising

MAX_ITERATIONS = 30
DENSE_BELOW = 16


def implicit_solve(
    residual: Callable[[Array], Array], precondition: Callable[[Array], Array], guess: Float[Array, " n"], floor: Float[Array, ""]
) -> tuple[Float[Array, " n"], Array, Array]:
    """Root of ``residual``, the number of iterations, and whether they converged.

    ``precondition(r)`` applies a symmetric approximate inverse of the Jacobian, so corrections are in the units of the unknown and the
    tolerance knows the stiffness. ``floor`` is the size of the unknown below which a correction is round-off whatever the unknown's own size.
    """
    eps = jnp.finfo(guess.dtype).eps
    tight, loose = 16 * eps, eps**0.5

    def iterate(f, start):
        def size(x):
            return jnp.max(jnp.abs(x), initial=0.0)

        def cond(carry):
            _, _, _, k, going = carry
            return going & (k < MAX_ITERATIONS)

        def body(carry):
            x, last, _, k, _ = carry
            dx = precondition(f(x))
            now = size(dx)
            scale = size(x) + floor
            # Go on while the correction is above round-off and still shrinks (two free iterations: the first ones may grow).
            going = (now > tight * scale) & ((now < 0.7 * last) | (k < 2) | (now > loose * scale)) & jnp.isfinite(now)
            return x - dx, now, scale, k + 1, going

        big = jnp.asarray(jnp.inf, guess.dtype)
        x, last, scale, k, _ = lax.while_loop(cond, body, (start, big, jnp.ones((), guess.dtype), jnp.zeros((), jnp.int32), jnp.asarray(True)))
        # As floats: custom_root gives auxiliary outputs tangents of their own type.
        return x, (k.astype(guess.dtype), (last <= loose * scale).astype(guess.dtype))

    def tangent_solve(g, b):
        if b.shape[0] <= DENSE_BELOW:
            # Few unknowns: the exact Jacobian, column by column, costs less to compile and to run than iterating.
            return jnp.linalg.solve(jax.vmap(g, out_axes=1)(jnp.eye(b.shape[0], dtype=b.dtype)), b)
        solve = functools.partial(residual_minimising, precondition)
        return lax.custom_linear_solve(g, b, solve, solve)

    x, (iterations, converged) = lax.custom_root(residual, lax.stop_gradient(guess), iterate, tangent_solve, has_aux=True)
    return x, lax.stop_gradient(iterations), lax.stop_gradient(converged) > 0.5


def stop(tree):
    """Values without their derivatives, for Newton matrices and first guesses."""
    return jax.tree_util.tree_map(lax.stop_gradient, tree)
