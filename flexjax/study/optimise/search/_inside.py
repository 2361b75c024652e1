"""Searches inside jit: one with a report after every step, or many side by side."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax.simulate import Rest
from flexjax.study.optimise.problem import Problem
from flexjax.study.optimise.search._sqp import Iterate, Proposal, Values, advance, begin, propose
from flexjax.study.optimise.search._values import values_at

SPREAD = 0.3  # of random first guesses, relative to the free parameters


class Setting(eqx.Module):
    """Options of a search that are part of its program."""

    over: str = eqx.field(static=True)
    curved: bool = eqx.field(static=True)


def box(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the free parameters: only the share of the duration has some."""
    none = np.full(problem.parameters.size, np.inf)
    return np.append(-none, 0.0), np.append(none, 1.0 if problem.duration.free else 0.0)


@filter_jit
def values(
    problem: Problem, ends: tuple[Rest, Rest], setting: Setting, x: Float[Array, " n"]
) -> Values:
    return values_at(problem, ends, setting.over, setting.curved, x)


@filter_jit
def proposal(it: Iterate, low: Array, high: Array) -> Proposal:
    return propose(it, low, high)


@filter_jit
def advanced(it: Iterate, step: Proposal, new: Values, tolerance: float) -> Iterate:
    return advance(it, step, new, tolerance)


def search_one(
    problem: Problem,
    setting: Setting,
    x: Float[Array, " n"],
    iterations: int | Array,
    tolerance: float | Array,
) -> Iterate:
    """The whole search as one pure function, for jit and vmap."""
    ends = problem.ends()
    evaluate = lambda x: values_at(problem, ends, setting.over, setting.curved, x)
    low, high = (jnp.asarray(a, x.dtype) for a in box(problem))
    # The first evaluation is one of the loop's, so that the simulation is compiled once.
    shapes = jax.eval_shape(evaluate, x)
    blank = begin(x, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes))

    def body(carry):
        it, begun = carry
        step = propose(it, low, high)
        new = evaluate(jnp.where(begun, it.x + step.d, it.x))
        following = advance(it, step, new, tolerance)
        pick = lambda a, b: jnp.where(begun, a, b)
        return jax.tree.map(pick, following, begin(it.x, new)), jnp.asarray(True)

    def going(carry):
        it, begun = carry
        return ~begun | (~it.done & (it.count < iterations))

    return jax.lax.while_loop(going, body, (blank, jnp.asarray(False)))[0]


@filter_jit
def _from_many(problem: Problem, setting: Setting, x: Array, iterations: Array) -> Iterate:
    return jax.vmap(lambda x: search_one(problem, setting, x, iterations, 1e-4))(x)


def best_of(
    problem: Problem, over: str, curved: bool, x: np.ndarray, count: int, iterations: int
) -> np.ndarray:
    """The best end of ``count`` searches side by side: from x and from random points near it."""
    change = np.random.default_rng(0).normal(0.0, SPREAD, (count, x.size))
    change[0] = 0.0
    low, high = box(problem)
    points = np.clip(x + change, low, high)
    it = _from_many(problem, Setting(over, curved), jnp.asarray(points), jnp.asarray(iterations))
    violation = np.asarray(jax.vmap(lambda at: at.violation)(it.at))
    # Those that failed are last; those within the limits are first.
    cost = np.max(np.asarray(it.at.levels), axis=1)
    rank = np.where(violation > 1e-6, 1e6 * (1 + violation), cost / np.min(it.first))
    ok = np.asarray(it.at.ok) & np.isfinite(rank)
    return np.asarray(it.x[int(np.argmin(np.where(ok, rank, np.inf)))])
