"""Implicit midpoint and TR-BDF2 for port-Hamiltonian terms: Newton with the structured matrix of
the mechanism, gradients by one transposed solve.

References: Gonzalez (1996) for midpoint as discrete gradient of a quadratic energy; Bank et al.
(1985), Hosea and Shampine (1996) for TR-BDF2.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float, Int, PyTree

from flexjax._rules import stop
from flexjax._types import ScalarLike, ravel
from flexjax.numerics.linalg._batch_last import to_last, widened
from flexjax.numerics.linalg._krylov import residual_minimising
from flexjax.numerics.solver._base import AbstractStepSolver, Jump
from flexjax.numerics.solver._limits import first_guess
from flexjax.numerics.solver._root import AbstractJacobianSolve, differentiable_root
from flexjax.numerics.term import (
    AbstractBatchedTerm,
    AbstractMultistageTerm,
    AbstractPortHamiltonianTerm,
    State,
    Step,
)

MAX_ITERATIONS = 25
Running = Bool[Array, ""] | bool  # False: a run of a batch that has ended


def _size(tree: PyTree):
    return jnp.max(jnp.stack([jnp.max(jnp.abs(x), initial=0.0) for x in jtu.tree_leaves(tree)]))


def _subtract(a: PyTree, b: PyTree):
    return jtu.tree_map(jnp.subtract, a, b)


def _verdict(
    exact: bool,
    eps: Any,
    k: Int[Array, ""],
    now: Float[Array, ""],
    last: Float[Array, ""],
    scale: Float[Array, ""],
):
    """(whether Newton goes on, whether it has converged) after the k-th correction, of size
    ``now``."""
    # Newton's next correction is about now^3/last^2 if the matrix is exact, otherwise now^2/last.
    # Stop when it is below round-off; corrections of pure round-off have 50 to 100 eps.
    ahead = now * (now / last) ** (2 if exact else 1)
    done = (now <= 4 * eps * scale) | ((k > 0) & (ahead <= 16 * eps * scale) & (now < 1e-3 * scale))
    stalled = (k > 3) & (now > 0.5 * last) & (now < eps**0.5 * scale)
    return ~done & ~stalled & jnp.isfinite(now), jnp.isfinite(now) & (done | stalled)


def _speed(u: Any):
    # Multipliers of loops have other units: convergence is measured in velocities.
    return _size((u.joints, u.nodes))


def _newton(
    term: AbstractPortHamiltonianTerm,
    stage: PyTree,
    guess: PyTree,
    floor: Float[Array, ""],
    running: Running,
):
    """Newton's iteration: (unknowns, whether it converged). Never differentiated."""
    eps = jnp.finfo(floor.dtype).eps

    def body(carry):
        u, last, k, _, _ = carry
        r, matrix = term.linearise(stage, u)
        du = matrix.solve(r)
        now = _speed(du)
        return (
            _subtract(u, du),
            now,
            k + 1,
            *_verdict(term.exact, eps, k, now, last, _speed(u) + floor),
        )

    def cond(carry):
        _, _, k, going, _ = carry
        return going & (k < MAX_ITERATIONS)

    start = (
        guess,
        jnp.ones_like(floor),
        jnp.zeros((), jnp.int32),
        running,
        jnp.asarray(False),
    )
    u, _, _, _, ok = lax.while_loop(cond, body, start)
    return u, ok


_iterate = jax.custom_batching.custom_vmap(_newton)


@_iterate.def_vmap
def _iterate_batch(
    size: int,
    batched: Any,
    term: Any,
    stage: PyTree,
    guess: PyTree,
    floor: Float[Array, "..."],
    running: Bool[Array, "..."],
):
    """The batch stays in the last axis in all iterations, if the term has corrections for that: one
    copy per step, not one per iteration."""
    args = (term, stage, guess, floor, running)
    if not isinstance(term, AbstractBatchedTerm):
        leaves, tree = jtu.tree_flatten(args)
        axes = [0 if here else None for here in jtu.tree_leaves(batched)]
        out = jax.vmap(lambda leaves: _newton(*jtu.tree_unflatten(tree, leaves)), in_axes=(axes,))(
            leaves
        )
        return out, jtu.tree_map(lambda _: True, out)
    term, stage, guess, floor, running = jtu.tree_map(to_last, args, tuple(batched))
    eps = jnp.finfo(floor.dtype).eps
    guess = widened(guess, batched[2], size)
    speed = jax.vmap(_speed, in_axes=-1)

    def body(carry):
        u, last, k, going, ok = carry
        du = term.corrections(stage, u, batched[:2], size)
        now = speed(du)
        further, converged = _verdict(term.exact, eps, k, now, last, speed(u) + floor)
        # Runs that have converged, or ended before, stay as they are.
        u = jtu.tree_map(lambda x, dx: x - jnp.where(going, dx, 0.0), u, du)
        return (
            u,
            jnp.where(going, now, last),
            k + 1,
            going & further,
            jnp.where(going, converged, ok),
        )

    def cond(carry):
        _, _, k, going, _ = carry
        return jnp.any(going) & (k < MAX_ITERATIONS)

    ones = jnp.ones(size, floor.dtype)
    start = (guess, ones, jnp.zeros((), jnp.int32), running & (ones > 0), ones < 0)
    u, _, _, _, ok = lax.while_loop(cond, body, start)
    return (jtu.tree_map(lambda x: jnp.moveaxis(x, -1, 0), u), ok), (
        jtu.tree_map(lambda _: True, u),
        True,
    )


def _within_limits(term: AbstractPortHamiltonianTerm, stage: PyTree, guess: PyTree):
    """The guess with the limited efforts of the solution."""
    if term.limits(stage, guess) is None:
        return guess
    flat, restore = ravel(guess)
    matrix = term.linearise(stage, guess)[1]
    flat, _ = first_guess(
        lambda x: term.limits(stage, restore(x)),
        *(1.0, 1.0, 0.0, flat),
        lambda x: ravel(term.residual(stage, restore(x)))[0],
        lambda r: ravel(matrix.solve(restore(r)))[0],
        corrections=1,  # the iteration that follows has a new matrix for each
    )
    return restore(flat)


class _Residual(eqx.Module):
    """The residual of a stage, as a function of one vector."""

    term: AbstractPortHamiltonianTerm
    stage: PyTree
    restore: Callable[[Array], PyTree] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " n"]):
        return ravel(self.term.residual(self.stage, self.restore(x)))[0]


class _StageMatrix(AbstractJacobianSolve):
    """Newton's matrix at the root. If it omits something, it preconditions an iteration with the
    exact matrix."""

    recompute = False
    term: AbstractPortHamiltonianTerm
    stage: PyTree
    restore: Callable[[Array], PyTree] = eqx.field(static=True)

    def __call__(
        self, root: Float[Array, " n"], jacobian: Callable[[Array], Array], b: Float[Array, " n"]
    ):
        u = self.restore(lax.stop_gradient(root))
        matrix = self.term.linearise(self.stage, u)[1]
        return lax.custom_linear_solve(
            jacobian, b, self._solve(matrix), self._solve(matrix.transpose())
        )

    def _solve(self, matrix: Any):
        def direct(b):
            return ravel(matrix.solve(self.restore(b)))[0]

        if self.term.exact:
            return lambda matvec, b: direct(b)
        return functools.partial(residual_minimising, direct)


def solve_stage(
    term: AbstractPortHamiltonianTerm,
    stage: PyTree,
    guess: PyTree,
    floor: ScalarLike,
    running: Running = True,
):
    """Unknowns of a stage, and whether Newton's iteration converged. It runs on values without
    derivatives."""
    quiet, quiet_stage = stop(term), stop(stage)
    dtype = jtu.tree_leaves(guess)[0].dtype
    guess = _within_limits(quiet, quiet_stage, stop(guess))
    given = (quiet, quiet_stage, guess, jnp.asarray(floor, dtype), jnp.asarray(running))
    u, ok = checkpoint_name(_iterate(*given), "root")
    # One flat vector: a part of the residual that depends on no parameter would have no cotangent,
    # which the transposed solve does not accept.
    flat, restore = ravel(u)
    solve = _StageMatrix(quiet, quiet_stage, restore)
    return restore(differentiable_root(_Residual(term, stage, restore), solve, flat)), ok


# Reverse mode stores the roots of a step and evaluates the rest of it once more: two thirds of the
# time of storing all that the derivative needs.
_recomputed = functools.partial(
    eqx.filter_checkpoint,
    prevent_cse=False,
    policy=jax.checkpoint_policies.save_only_these_names("root"),
)


class _AbstractStageSolver(AbstractStepSolver):
    """A method made of implicit stages; its own state is the last solution."""

    term_structure: ClassVar = AbstractPortHamiltonianTerm

    @abc.abstractmethod
    def stages(
        self, term: AbstractPortHamiltonianTerm, step: Step, y0: State, before: Any
    ) -> tuple[State, PyTree, Bool[Array, ""]]:
        """(state at the end, unknowns of the last stage, whether all converged)."""

    def begin(self, term: AbstractPortHamiltonianTerm, step: Step, y0: State) -> PyTree:
        return stop(term.guess(y0.mech))

    def advance(
        self,
        term: AbstractPortHamiltonianTerm,
        step: Step,
        y0: State,
        solver_state: PyTree,
        made_jump: Jump,
    ):
        y1, u, ok = _recomputed(self.stages)(term, step, y0, solver_state)
        return y1, None, u, ok


class ImplicitMidpoint(_AbstractStageSolver):
    """Implicit midpoint rule on the group: second order, without numerical damping. Energy, work of
    the drive and dissipation balance to round-off at any dt.

    It does not damp the waves that a jump of the drive excites: use :class:`TRBDF2` there, or
    smaller steps.

    >>> import flexjax as fx
    >>> solver = fx.ImplicitMidpoint()
    """

    def stages(self, term: AbstractPortHamiltonianTerm, step: Step, y0: State, before: PyTree):
        t1, dt, piece_time = step.t1, step.dt, step.piece_time
        stage = term.prepare(step.middle, y0.mech, 0.5 * dt, (t1, 2.0), piece_time, y0.memory)
        here = term.guess(y0.mech)
        # Extrapolated from the last midpoint through the present state.
        guess = stop(jtu.tree_map(lambda now, before: 2 * now - before, here, before))
        guess = eqx.tree_at(lambda u: u.loops, guess, stop(before.loops))
        u, ok = solve_stage(term, stage, guess, lax.stop_gradient(1e-3 / dt), step.running)
        mech, power, dissipation = term.arrive(stage, u, 2.0)
        mech = term.settle(t1, mech, piece_time)
        y1 = State(mech, y0.work + dt * power, y0.dissipated + dt * dissipation, y0.memory)
        return y1, stop(u), ok


class TRBDF2(_AbstractStageSolver):
    """Midpoint rule to an inner time, then the second-order backward difference: second order and
    L-stable.

    It damps the stiff waves that jumps of the drive excite within a few steps. The energy balance
    falls by the energy that this dissipates.

    >>> import flexjax as fx
    >>> solver = fx.TRBDF2()
    """

    term_structure: ClassVar = AbstractMultistageTerm

    def stages(self, term: AbstractPortHamiltonianTerm, step: Step, y0: State, before: PyTree):
        assert isinstance(term, AbstractMultistageTerm)  # ``term_structure`` requires it
        t0, t1, dt, piece_time = step.t0, step.t1, step.dt, step.piece_time
        gamma = 2.0 - 2.0**0.5  # the inner time that gives both stages the same h
        inner = gamma * dt
        h = 0.5 * inner
        floor = lax.stop_gradient(1e-3 / dt)
        first = term.prepare(t0 + h, y0.mech, h, (t0 + inner, 2.0), piece_time, y0.memory)
        u, ok1 = solve_stage(
            term,
            first,
            stop(eqx.tree_at(lambda u: u.loops, term.guess(y0.mech), before.loops)),
            floor,
            step.running,
        )
        middle, power1, loss1 = term.arrive(first, u, 2.0)
        middle = term.settle(t0 + inner, middle, piece_time)
        # z1 = z_inner + w (z0 - z_inner) + h f(z1) with w = -(1-gamma)^2 / (gamma (2-gamma))
        weight = -((1 - gamma) ** 2) / (gamma * (2 - gamma))
        star = term.blend(y0.mech, middle, weight, inner, u)
        second = term.prepare(t1, star, h, (t1, 1.0), piece_time, y0.memory)
        guess = stop(eqx.tree_at(lambda u: u.loops, term.guess(middle), u.loops))
        u, ok2 = solve_stage(term, second, guess, floor, step.running)
        mech, power2, loss2 = term.arrive(second, u, 1.0)
        mech = term.settle(t1, mech, piece_time)
        # The same formula for the work and the dissipated energy.
        work = (1 - weight) * inner * power1 + h * power2
        loss = (1 - weight) * inner * loss1 + h * loss2
        y1 = State(mech, y0.work + work, y0.dissipated + loss, y0.memory)
        return y1, stop(u), ok1 & ok2
