"""Newton's iteration of an implicit step, with an approximate (structured, symmetric) matrix and
exact implicit-function gradients.

The approximate matrix only speeds up the convergence, of the iteration and of the linear solve
behind the derivative: the gradient is exact although the matrix is not.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from flexjax._rules import stop
from flexjax._types import ScalarLike
from flexjax.numerics.linalg._krylov import residual_minimising
from flexjax.numerics.solver._root import AbstractJacobianSolve, differentiable_root

MAX_ITERATIONS = 30
DENSE_BELOW = 16
SECANTS = 8


class _Secants(eqx.Module):
    """Secants of the preconditioned Jacobian: steps, and the changes of the residual that they
    caused (orthonormal).

    If the approximate matrix neglects much (velocity products on an axis of little inertia,
    unresolved modes), plain iterations contract slowly or not at all. In the span of the secants
    the correction is that of the exact matrix. This is Anderson acceleration, equal to GMRES for a
    linear residual.
    """

    steps: Float[Array, "m n"]
    changes: Float[Array, "m n"]

    @classmethod
    def none(cls, x: Float[Array, " n"]) -> "_Secants":
        zeros = jnp.zeros((max(1, min(SECANTS, x.shape[0])), x.shape[0]), x.dtype)
        return cls(zeros, zeros)

    def step(self, gap: Float[Array, " n"]) -> Float[Array, " n"]:
        """The correction for a preconditioned residual ``gap``."""
        known = self.changes @ gap
        return known @ (self.changes - self.steps) - gap

    def learn(
        self, step: Float[Array, " n"], change: Float[Array, " n"], count: Int[Array, ""]
    ) -> "_Secants":
        """Add the ``count``-th step and its change, in place of the oldest. Nothing is added before
        the first step, nor for a change in the span of the others."""
        here = (jnp.arange(self.steps.shape[0]) == (count - 1) % self.steps.shape[0])[:, None]
        steps, changes = jnp.where(here, 0.0, self.steps), jnp.where(here, 0.0, self.changes)
        known = changes @ change
        p, q = step - known @ steps, change - known @ changes
        length = jnp.linalg.norm(q)
        scale = jnp.where((count > 0) & (length > 1e-3 * jnp.linalg.norm(change)), 1 / length, 0.0)
        return _Secants(
            jnp.where(here, scale * p[None], steps), jnp.where(here, scale * q[None], changes)
        )


class _Iteration(eqx.Module):
    x: Float[Array, " n"]
    step: Float[Array, " n"]  # that led to x
    gap: Float[Array, " n"]  # preconditioned residual before it
    secants: _Secants
    best: Float[Array, ""]  # least correction so far
    rate: Float[Array, ""]  # of the last correction to the least before it
    close: Bool[Array, ""]
    stalled: Int[Array, ""]  # corrections since the last that was clearly smaller
    count: Int[Array, ""]
    going: Bool[Array, ""]


def _iterate(
    residual: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    guess: Float[Array, " n"],
    floor: ScalarLike,
    noise: ScalarLike,
    running: Bool[Array, ""] | bool,
):
    """(root, number of iterations, whether they converged). Never differentiated."""
    eps = jnp.finfo(guess.dtype).eps
    # Round-off of a residual grows with its number of terms: corrections of 100 links in space (500
    # unknowns) end in noise of 2e4 eps. In single precision 4096 eps would exceed ``loose``.
    tight, near, loose = 16 * eps, min(max(4096, 64 * guess.shape[0]) * eps, eps**0.5), eps**0.5

    def size(x):
        return jnp.max(jnp.abs(x), initial=0.0)

    def body(s: _Iteration) -> _Iteration:
        gap = precondition(residual(s.x))
        secants = s.secants.learn(s.step, gap - s.gap, s.count)
        step = secants.step(gap)
        x, now = s.x + step, size(step)
        scale = size(x) + floor
        # Corrections below ``quiet`` may be round-off, and an error below ``still`` surely is:
        # ``noise`` is a few times too large.
        unsure = jnp.minimum(noise, loose * scale)
        quiet, still = jnp.maximum(near * scale, unsure), jnp.maximum(tight * scale, unsure / 8)
        # A correction leaves an error of its size times the rate of convergence, for which the
        # worse of the last two counts. Near round-off, slow convergence is noise. Elsewhere three
        # corrections must fail to shrink, because accelerated ones need not shrink one by one.
        rate = jnp.where(s.count > 0, now / s.best, jnp.inf)
        stalled = jnp.where(rate < 0.7, 0, s.stalled + 1)
        reached = (now <= still) | (now * jnp.maximum(rate, s.rate) <= still)
        done = reached | ((rate > 0.1) & (now <= quiet)) | ((stalled > 3) & (now <= loose * scale))
        best, close, going = (
            jnp.minimum(now, s.best),
            reached | (now <= loose * scale),
            ~done & jnp.isfinite(now),
        )
        return _Iteration(x, step, gap, secants, best, rate, close, stalled, s.count + 1, going)

    zero, zeros, no = jnp.zeros((), jnp.int32), jnp.zeros_like(guess), jnp.asarray(False)
    big, going = jnp.asarray(jnp.inf, guess.dtype), jnp.asarray(running)
    first = _Iteration(guess, zeros, zeros, _Secants.none(guess), big, big, no, zero, zero, going)
    end = lax.while_loop(lambda s: s.going & (s.count < MAX_ITERATIONS), body, first)
    return end.x, end.count, end.close


class _Preconditioned(AbstractJacobianSolve):
    recompute = True
    precondition: Callable[[Array], Array]

    def __call__(
        self, root: Float[Array, " n"], jacobian: Callable[[Array], Array], b: Float[Array, " n"]
    ):
        if root.shape[0] <= DENSE_BELOW:
            # Few unknowns: the exact Jacobian, column by column, costs less to compile and to run
            # than iterating.
            columns = jax.vmap(jacobian, out_axes=1)(jnp.eye(root.shape[0], dtype=root.dtype))
            return jnp.linalg.solve(columns, b)
        solve = functools.partial(residual_minimising, self.precondition)
        return lax.custom_linear_solve(jacobian, b, solve, solve)


def implicit_solve(
    residual: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    guess: Float[Array, " n"],
    floor: ScalarLike,
    noise: Float[Array, ""] | None = None,
    running: Bool[Array, ""] | bool = True,
) -> tuple[Float[Array, " n"], Int[Array, ""], Bool[Array, ""]]:
    """Root of ``residual``, the number of iterations, and whether they converged.

    ``precondition(r)`` applies a symmetric approximate inverse of the Jacobian, so corrections are
    in the units of the unknown and the tolerance accounts for the stiffness. ``floor``: size of the
    unknown below which a correction is round-off, whatever the unknown's own size. ``noise``: a few
    times the corrections that round-off of the residual causes; None if it is of the usual size.
    ``running``: False for a run of a batch that has ended, which then makes no iteration.
    """
    level = jnp.zeros((), guess.dtype) if noise is None else noise
    # What the functions close over becomes part of them, so that derivatives w.r.t. it are found.
    residual = eqx.filter_closure_convert(residual, guess)
    precondition = stop(eqx.filter_closure_convert(precondition, guess))
    quiet, guess, floor, level = stop((residual, guess, floor, level))
    x, count, close = _iterate(quiet, precondition, guess, floor, level, running)
    return differentiable_root(residual, _Preconditioned(precondition), x), count, close
