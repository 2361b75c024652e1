"""Efforts with limits in an implicit step: which of them are at their limits in its solution.

A limited effort has a kink. An iteration that starts on the wrong side of it may alternate across
the kink without end. With the rest of the step linear, P dx = -r + E f with efforts f on the
rows E, the efforts follow from a small problem: f_i = clip(f_i(guess) - s_i dx_i) within +-bound_i.
It has one solution (it minimises a convex function), which coordinate-wise projection finds.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import ScalarLike
from flexjax.numerics.term import Limits

SWEEPS = 50


def first_guess(
    limits: Callable[[Array], Limits | None],
    weight: ScalarLike,
    cv: ScalarLike,
    cq: ScalarLike,
    guess: Float[Array, " n"],
    residual: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    corrections: int = 3,
) -> tuple[Float[Array, " n"], Callable[[Array], Array]]:
    """(guess with the limited efforts of the solution, ``precondition`` with their slopes there).

    ``precondition`` belongs to ``guess``; with it ``corrections`` are made. The residual has
    ``weight`` times an effort, whose derivative w.r.t. the unknown of its row is cv kd + cq kp."""
    first = limits(guess)
    if first is None:
        return guess, precondition
    rows = jnp.array(first.rows)
    one = jnp.eye(rows.shape[0], dtype=guess.dtype)
    columns = jax.vmap(lambda e: precondition(jnp.zeros_like(guess).at[rows].set(e)))(one).T

    def slopes(at: Limits):
        return jnp.maximum(cv * at.kd + cq * at.kp, 0.0)

    # The preconditioner contains them; without them, rows respond to efforts by ``response``.
    steep = jnp.where(jnp.abs(first.effort) < first.bound, slopes(first), 0.0)
    loose = jnp.linalg.inv(one - columns[rows] * steep[None, :])
    response = loose @ columns[rows]

    def correct(_, carry):
        guess, _, cut = carry
        at = limits(guess)
        assert at is not None  # as at the first guess
        effort, bound, slope = weight * at.effort, weight * at.bound, slopes(at)
        here = jnp.clip(effort, -bound, bound)
        rest = precondition(residual(guess)) + columns @ here
        start = -loose @ rest[rows]
        force, inside = _efforts(effort, slope, bound, response, start, here)
        moved = start + response @ force
        guess = guess - rest + columns @ (force + steep * moved)
        return guess, jnp.where(inside, slope, 0.0), cut | jnp.any(~inside)

    cut = jnp.any(jnp.abs(first.effort) >= first.bound)
    limited, slope, cut = lax.fori_loop(0, corrections, correct, (guess, steep, cut))
    # Without an active limit the iteration starts from the original guess.
    guess, change = jnp.where(cut, limited, guess), jnp.where(cut, slope - steep, 0.0)
    correction = jnp.linalg.inv(one + change[:, None] * columns[rows]) * change[None, :]

    def corrected(r):
        x = precondition(r)
        return x - columns @ (correction @ x[rows])

    return guess, corrected


def _efforts(
    effort: Float[Array, " k"],
    slope: Float[Array, " k"],
    bound: Float[Array, " k"],
    response: Float[Array, "k k"],
    start: Float[Array, " k"],
    first: Float[Array, " k"],
):
    """(efforts, whether they are within their limits), for rows that move by start + response times
    the efforts."""
    n = effort.shape[0]
    own = jnp.diagonal(response)

    def sweep(carry):
        old, _, count = carry

        def one(i, force):
            away = start[i] + response[i] @ force - own[i] * force[i]
            new = (effort[i] - slope[i] * away) / (1 + slope[i] * own[i])
            return force.at[i].set(jnp.clip(new, -bound[i], bound[i]))

        force = lax.fori_loop(0, n, one, old)
        change = jnp.max(jnp.abs(force - old) / bound)
        return force, change, count + 1

    carry = (first, jnp.ones((), first.dtype), 0)
    going = lambda c: (c[1] > 1e-6) & (c[2] < (1 if n == 1 else SWEEPS))
    force, _, _ = lax.while_loop(going, sweep, carry)
    inside = jnp.abs(force) < bound * (1 - 1e-9)
    # Solve exactly for the efforts within their limits; the others are at their limits.
    held = jnp.where(inside, 0.0, jnp.clip(force, -bound, bound))
    s = jnp.where(inside, slope, 0.0)
    known = jnp.where(inside, effort - slope * (start + response @ held), held)
    exact = jnp.linalg.solve(
        jnp.eye(n, dtype=s.dtype) + s[:, None] * response * inside[None, :], known
    )
    return jnp.where(inside, exact, held), inside
