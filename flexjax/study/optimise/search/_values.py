"""Costs, limits and their derivatives for the search inside jit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from flexjax.numerics.term import State
from flexjax.simulate import Rest
from flexjax.study.optimise.problem import Curved, Problem
from flexjax.study.optimise.search._sqp import Values

# Cost of the derivatives of one number by reverse mode, relative to those with respect to one free
# parameter by forward mode. A gradient through TransferMatrix takes 2.2 runs; 20 tangents take 4.8,
# as many as 2.2 gradients.
REVERSE = 5


def reverse_pays(problem: Problem, curved: bool) -> bool:
    """Whether reverse mode costs less than forward mode.

    Forward mode costs about a simulation for every free parameter, reverse mode several for every
    cost of a sample, for every margin, and for all that the curvature follows from.
    """
    if curved or problem.limits or problem.arrive:
        return False
    return REVERSE * problem.samples.count * len(problem.costs) < problem.size


def values_at(
    problem: Problem, ends: tuple[Rest, Rest], over: str, curved: bool, x: Float[Array, " n"]
) -> Values:
    """The values of a search at x, with derivatives in the mode that costs less."""
    free = problem.size  # a duration that is given is the last of x, without a derivative

    def both(y):
        found, bent = problem.outcome_and_curved(jnp.concatenate([y, x[free:]]), ends)
        parts = (found.costs, found.margins, found.missing)
        return (parts, eqx.filter(bent, eqx.is_inexact_array) if curved else None), (found, bent)

    derive = jax.jacrev if reverse_pays(problem, curved) else jax.jacfwd
    slopes, (found, bent) = derive(both, has_aux=True)(x[:free])
    pad = lambda a: jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, x.shape[0] - free)])
    (costs, margins, missing), tangents = jtu.tree_map(pad, slopes)
    weights = jnp.asarray([c.weight for c in problem.costs], x.dtype)
    levels, slopes = found.costs @ weights, jnp.einsum("scn,c->sn", costs, weights)
    curvature = _curvature(problem, x, bent, tangents) if curved else None
    if over == "mean":
        levels, slopes = jnp.mean(levels)[None], jnp.mean(slopes, axis=0)[None]
        curvature = None if curvature is None else jnp.mean(curvature, axis=0)[None]
    n = x.shape[0]
    join = lambda parts, *shape: jnp.concatenate(
        [jnp.zeros((0, *shape), x.dtype), *(a.reshape(-1, *shape) for a in parts)]
    )
    return Values(
        levels,
        slopes,
        curvature,
        join(found.margins),
        join(margins, n),
        # Only the nominal robot can rest exactly: there are more samples than free parameters.
        found.missing[0],
        missing[0],
        found.costs,
        jnp.all(found.ok),
        tuple(a.shape for a in found.margins),
    )


def _curvature(
    problem: Problem, x: Float[Array, " n"], bent: Curved, tangents: Curved
) -> Float[Array, "S n n"]:
    """Gauss-Newton Hessian of the costs of every sample.

    A sum of squares has 2 J^T J. The energy at the end has J^T H J with its own Hessian H in the
    state and the derivatives J of the state: the second derivatives of the simulation are left out,
    which vanish where the dynamics is linear.
    """
    n, S = x.shape[0], problem.samples.count
    total = jnp.zeros((S, n, n), x.dtype)
    for k, cost in enumerate(problem.costs):
        J = tangents.vectors[k]
        total = total + 2 * cost.weight * jnp.einsum("skm,skn->smn", J, J)
        if cost.name == "residual_energy":
            total = total + cost.weight * _energy_hessian(problem, x, bent.final, tangents.final)
    # A state far from rest may have an energy that is not convex.
    sizes, axes = jnp.linalg.eigh(0.5 * (total + jnp.swapaxes(total, 1, 2)))
    return jnp.einsum("smk,sk,snk->smn", axes, jnp.maximum(sizes, 0.0), axes)


def _energy_hessian(
    problem: Problem, x: Float[Array, " n"], final: State, tangents: State
) -> Float[Array, "S n n"]:
    robot, drive, t = problem.robot_of(x), problem.drive_of(x), problem.duration_of(x)
    t = t + problem.hold
    rows = jnp.asarray(problem.samples.values, x.dtype)

    def one(row, state, slopes):
        model = problem.model.rebind(problem.samples.place(robot, row))
        arrays, rest = eqx.partition(state, eqx.is_inexact_array)

        def energy(a):
            near = jtu.tree_map(lambda y, J: y + J @ a, arrays, slopes)
            return model.energy(t, eqx.combine(near, rest), drive).mechanical

        return jax.hessian(energy)(jnp.zeros_like(x))

    return jax.vmap(one)(rows, final, tangents)
