"""Sequential quadratic programming as pure functions: one step, inside jit and vmap.

A step solves a quadratic program with all limits, relaxed by one slack with a penalty, so that it
always has a solution. Damping takes the place of a line search: every step costs one simulation
with its derivatives, whether it is accepted or not, and the runs of a batch stay together.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from flexjax.study.optimise.search._quadratic import solve_quadratic

FIRST_DAMPING, LARGEST_DAMPING, SMALLEST_DAMPING = 1e-3, 1e8, 1e-12
FIRST_PENALTY, LARGEST_PENALTY = 10.0, 1e9
FEASIBLE = 1e-8  # violation below which a move is within its limits
HOPELESS = 1e-6  # share of the violation that a step must promise to remove, at a large penalty
NOTHING = 1e-16  # cost, relative to the first guess, below which moves are equally good


class Values(eqx.Module):
    """What one evaluation gives: levels to be minimised (K,) whose largest counts, margins (M,),
    what is missing to rest (R,), their slopes, and the curvature of every level."""

    levels: Float[Array, " K"]
    slopes: Float[Array, "K n"]
    curvature: Float[Array, "K n n"] | None
    margins: Float[Array, " M"]
    margin_slopes: Float[Array, "M n"]
    missing: Float[Array, " R"]
    missing_slopes: Float[Array, "R n"]
    costs: Float[Array, "S C"]
    ok: Bool[Array, ""]
    # Numbers of samples, times and columns of every limit, in the order of the margins.
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True, default=())

    @property
    def violation(self) -> Float[Array, ""]:
        outside = jnp.max(-self.margins, initial=0.0)
        return jnp.maximum(outside, jnp.max(jnp.abs(self.missing), initial=0.0))


class Iterate(eqx.Module):
    """A point of the search with what the next step needs."""

    x: Float[Array, " n"]
    at: Values
    first: Float[Array, ""]  # largest level of the first guess
    steepness: Float[Array, ""]  # and its slope
    hessian: Float[Array, "n n"]  # of the Lagrangian, where the levels have no curvature
    shares: Float[Array, " K"]  # multipliers of the levels
    damping: Float[Array, ""]
    penalty: Float[Array, ""]
    kkt: Float[Array, ""]
    count: Int[Array, ""]
    converged: Bool[Array, ""]
    stuck: Bool[Array, ""]

    @property
    def done(self) -> Bool[Array, ""]:
        return self.converged | self.stuck


class Proposal(eqx.Module):
    """A step, and what the quadratic model expects of it."""

    d: Float[Array, " n"]
    multipliers: Float[Array, " m"]
    slack: Float[Array, ""]
    scale: Float[Array, ""]  # of the levels
    expected: Float[Array, ""]  # decrease of the merit
    left: Float[Array, ""]  # slope that no multiplier balances


def begin(x: Float[Array, " n"], at: Values) -> Iterate:
    """The first point of a search."""
    n, K, dtype = x.shape[0], at.levels.shape[0], x.dtype
    number = lambda value: jnp.asarray(value, dtype)
    return Iterate(
        x=x,
        at=at,
        first=jnp.maximum(jnp.max(at.levels), 1e-300),
        steepness=jnp.maximum(jnp.max(jnp.linalg.norm(at.slopes, axis=1)), 1e-300),
        hessian=jnp.eye(n, dtype=dtype),
        shares=jnp.full(K, 1.0 / K, dtype),
        damping=number(FIRST_DAMPING),
        penalty=number(FIRST_PENALTY),
        kkt=number(jnp.inf),
        count=jnp.asarray(0),
        converged=jnp.asarray(False),
        stuck=~at.ok,
    )


def propose(it: Iterate, low: Float[Array, " n"], high: Float[Array, " n"]) -> Proposal:
    """The step from a point, between bounds of x."""
    at, n = it.at, it.x.shape[0]
    scale = jnp.maximum(jnp.max(at.levels), NOTHING * it.first)
    if at.curvature is None:
        model = it.hessian
    else:
        model = jnp.tensordot(it.shares, at.curvature, axes=1) / scale
    # Relative to the size of the matrix, so that units do not matter.
    size = jnp.maximum(jnp.max(jnp.abs(jnp.diagonal(model))), 1e-12)
    model = model + it.damping * size * jnp.eye(n, dtype=it.x.dtype)
    d, top, slack, multipliers = _subproblem(it, scale, model, low, high)
    merit = jnp.max(at.levels) / scale + it.penalty * at.violation
    expected = merit - (top + it.penalty * slack + 0.5 * d @ model @ d)
    return Proposal(d, multipliers, slack, scale, expected, jnp.linalg.norm(model @ d))


def settled(it: Iterate, step: Proposal, tolerance: float | Array) -> Bool[Array, ""]:
    """Whether a step from a point within the limits promises less than the tolerance."""
    nothing = jnp.max(it.at.levels) <= NOTHING * it.first
    # The change of a cost, or of its amplitude where it is a square, relative to the first guess.
    share = step.scale / it.first
    square = it.at.curvature is not None
    change = 0.5 * step.expected * jnp.sqrt(share) if square else step.expected * share
    return ((change <= tolerance) | nothing) & (it.at.violation <= FEASIBLE)


def finished(it: Iterate, step: Proposal, sure: Bool[Array, ""]) -> Iterate:
    """A point at which the search ends without its last step, where that is ``sure``."""
    going = lambda a, b: jnp.where(sure & ~it.done, a, b)
    return dataclasses.replace(
        it,
        kkt=going(step.left * step.scale / it.steepness, it.kkt),
        count=it.count + (sure & ~it.done),
        converged=it.converged | (sure & ~it.stuck),
    )


def advance(it: Iterate, step: Proposal, new: Values, tolerance: float | Array) -> Iterate:
    """The next point, given the values at the proposed one; a point that is done stays."""
    at, K = it.at, it.at.levels.shape[0]
    violation, expected = at.violation, step.expected
    merit = lambda p: jnp.max(p.levels) / step.scale + it.penalty * p.violation
    bad = ~new.ok | ~jnp.isfinite(merit(new))
    ratio = jnp.where(bad, -1.0, (merit(at) - merit(new)) / jnp.maximum(expected, 1e-300))
    converged = settled(it, step, tolerance)
    accept = (ratio > 1e-4) & ~it.done & (expected > 0)
    # Nielsen's rule: smooth in the ratio, so that steps are not rejected in turn.
    less = jnp.clip(1 - (2 * jnp.minimum(ratio, 1.0) - 1) ** 3, 0.2, 2.0)
    damping = jnp.maximum(it.damping * jnp.where(accept, less, 4.0), SMALLEST_DAMPING)
    shares = step.multipliers[:K] / jnp.maximum(jnp.sum(step.multipliers[:K]), 1e-300)
    # The slack stays where the penalty is too small to remove it.
    weak = (step.slack > 0.1 * FEASIBLE) & (step.slack > 0.5 * violation)
    penalty = jnp.where(weak, jnp.minimum(10 * it.penalty, LARGEST_PENALTY), it.penalty)
    # The limits contradict each other: even where nothing else counts, no step comes nearer.
    near = (it.damping <= FIRST_DAMPING) & (it.penalty >= LARGEST_PENALTY)
    hopeless = near & (violation > FEASIBLE) & (expected <= HOPELESS * it.penalty * violation)
    going = lambda a, b: jnp.where(it.done, b, a)
    return Iterate(
        x=jnp.where(accept, it.x + step.d, it.x),
        at=jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, at),
        first=it.first,
        steepness=it.steepness,
        hessian=_updated(it, new, step, accept),
        shares=going(shares, it.shares),
        damping=going(damping, it.damping),
        penalty=going(penalty, it.penalty),
        kkt=going(step.left * step.scale / it.steepness, it.kkt),
        count=it.count + ~it.done,
        converged=it.converged | (~it.stuck & converged),
        stuck=it.stuck | (~it.converged & ~converged & ((damping > LARGEST_DAMPING) | hopeless)),
    )


def _subproblem(it: Iterate, scale, model, low, high):
    """Step, level and slack of the quadratic program, and its multipliers."""
    at, n = it.at, it.x.shape[0]
    dtype = it.x.dtype
    block = lambda rows, level, slack: jnp.concatenate(
        [
            rows,
            jnp.full((rows.shape[0], 1), level, dtype),
            jnp.full((rows.shape[0], 1), slack, dtype),
        ],
        axis=1,
    )
    eye = jnp.eye(n, dtype=dtype)
    wide = (high < jnp.inf) | (low > -jnp.inf)
    rows = [
        block(at.slopes / scale, -1.0, 0.0),
        block(-at.margin_slopes, 0.0, -1.0),
        block(at.missing_slopes, 0.0, -1.0),
        block(-at.missing_slopes, 0.0, -1.0),
        block(jnp.zeros((1, n), dtype), 0.0, -1.0),
        block(jnp.where(wide[:, None], eye, 0.0), 0.0, 0.0),
        block(jnp.where(wide[:, None], -eye, 0.0), 0.0, 0.0),
    ]
    right = [
        -at.levels / scale,
        at.margins,
        -at.missing,
        at.missing,
        jnp.zeros(1, dtype),
        jnp.where(wide, high - it.x, 1.0),
        jnp.where(wide, it.x - low, 1.0),
    ]
    Q = jnp.zeros((n + 2, n + 2), dtype).at[:n, :n].set(model)
    # The level and the slack have no curvature of their own.
    Q = Q.at[n, n].set(1e-9).at[n + 1, n + 1].set(1e-9)
    q = jnp.zeros(n + 2, dtype).at[n].set(1.0).at[n + 1].set(it.penalty)
    first = jnp.zeros(n + 2, dtype).at[n].set(jnp.max(at.levels) / scale + 1.0)
    first = first.at[n + 1].set(at.violation + 1.0)
    found = solve_quadratic(Q, q, jnp.concatenate(rows), jnp.concatenate(right), first)
    d = jnp.clip(it.x + found.x[:n], low, high) - it.x
    good = jnp.all(jnp.isfinite(d))
    d = jnp.where(good, d, 0.0)
    top = jnp.max(at.levels / scale + at.slopes @ d / scale)
    outside = jnp.max(-(at.margins + at.margin_slopes @ d), initial=0.0)
    apart = jnp.max(jnp.abs(at.missing + at.missing_slopes @ d), initial=0.0)
    return d, top, jnp.maximum(outside, apart), found.multipliers


def _updated(it: Iterate, new: Values, step: Proposal, accept: Bool[Array, ""]):
    """Powell's damped update of the Hessian of the Lagrangian (BFGS)."""
    if it.at.curvature is not None:
        return it.hessian
    K, M, R = it.at.levels.shape[0], it.at.margins.shape[0], it.at.missing.shape[0]
    d, scale, multipliers = step.d, step.scale, step.multipliers
    u, v = multipliers[:K], multipliers[K : K + M]
    w = multipliers[K + M : K + M + R] - multipliers[K + M + R : K + M + 2 * R]
    slope = lambda p: u @ p.slopes / scale - v @ p.margin_slopes + w @ p.missing_slopes
    y, B = slope(new) - slope(it.at), it.hessian
    Bd = B @ d
    dBd = d @ Bd
    theta = jnp.where(d @ y >= 0.2 * dBd, 1.0, 0.8 * dBd / jnp.maximum(dBd - d @ y, 1e-300))
    y = theta * y + (1 - theta) * Bd
    dy = d @ y
    good = accept & (dBd > 1e-30) & (dy > 1e-30) & jnp.all(jnp.isfinite(y))
    safe = lambda a: jnp.where(good, a, 1.0)
    new_B = B - jnp.outer(Bd, Bd) / safe(dBd) + jnp.outer(y, y) / safe(dy)
    return jnp.where(good, new_B, B)
