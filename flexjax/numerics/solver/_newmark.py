"""Newmark's family and the generalised-alpha method for second-order terms, on vectors and
rotations alike.

Reference: Chung, Hulbert (1993); Arnold, Brüls (2007) for the form with an auxiliary acceleration,
which keeps second order for a mass matrix that depends on the configuration; Simo, Vu-Quoc (1988)
for Newmark on the rotation group.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import PieceTime, ScalarLike, Velocities, as_float
from flexjax.numerics.solver._base import AbstractStepSolver, after_jump, outcome
from flexjax.numerics.solver._limits import first_guess
from flexjax.numerics.solver._newton import implicit_solve, stop
from flexjax.numerics.term import AbstractSecondOrderTerm, EnergyFlow, Mechanical, State, unwrap


class Accelerations(eqx.Module):
    """Solver state: the true acceleration at the last time, the averaged one of the
    generalised-alpha method, and the forces of drive and dampers there."""

    true: Velocities
    averaged: Velocities
    flow: EnergyFlow


def _start(
    term: AbstractSecondOrderTerm, t0: ScalarLike, y0: State, args: PieceTime
) -> Accelerations:
    q, v = y0.mech.q, y0.mech.v
    a = term.accelerate(t0, q, v, args, y0.memory)
    return Accelerations(a, a, term.energy_flow(t0, q, v, a, args, y0.memory))


def _after_jump(
    made_jump: Bool[Array, ""] | bool,
    term: AbstractSecondOrderTerm,
    t0: ScalarLike,
    y0: State,
    args: PieceTime,
    state: Accelerations,
) -> Accelerations:
    """Accelerations jump with the drive; a grid without breaks says so with a plain False and saves
    the code for it."""
    if made_jump is False:
        return state
    return lax.cond(made_jump, lambda: _start(term, t0, y0, args), lambda: state)


# A function of its own: Newton and its derivative need it several times, and it is traced once.
@eqx.filter_jit
def _balance(term: AbstractSecondOrderTerm, *args: Any):
    return term.balance(*args)


def _step(
    term: AbstractSecondOrderTerm,
    t0: ScalarLike,
    t1: ScalarLike,
    y0: State,
    args: PieceTime,
    old: Accelerations,
    beta: ScalarLike,
    gamma: ScalarLike,
    alpha_m: ScalarLike,
    alpha_f: ScalarLike,
) -> tuple[State, State, Accelerations, Bool[Array, ""]]:
    dt = t1 - t0
    q0, v0 = y0.mech.q, y0.mech.v
    mask, q_p, v_p, a_p = term.prescribed(t1, args)

    def advance(acc):
        averaged = ((1 - alpha_f) * acc + alpha_f * old.true - alpha_m * old.averaged) / (
            1 - alpha_m
        )
        q1 = term.move(q0, dt * v0 + dt**2 * ((0.5 - beta) * old.averaged + beta * averaged))
        v1 = v0 + dt * ((1 - gamma) * old.averaged + gamma * averaged)
        return term.impose(q1, q_p), jnp.where(mask, v_p, v1), averaged

    def residual(acc):
        q1, v1, _ = advance(acc)
        return jnp.where(mask, acc - a_p, _balance(term, t1, q1, v1, acc, args, y0.memory))

    guess = stop(jnp.where(mask, a_p, old.true))
    share = (1 - alpha_f) / (1 - alpha_m)
    cv, cq = stop((gamma * dt * share, beta * dt**2 * share))
    fixed, rest = stop((term, (args, y0.memory)))

    def at(acc):
        return stop((t1, *advance(acc)[:2]))

    factors = fixed.preconditioner(*at(guess), 1.0, cv, cq, *rest)
    guess, precondition = first_guess(
        lambda acc: fixed.limits(*at(acc), *rest),
        *(1.0, cv, cq, guess),
        lambda acc: stop(residual(acc)),
        lambda r: fixed.precondition(factors, r),
    )
    # A displacement of one unit of length per step belongs to an acceleration 1/dt^2: below
    # round-off of that nothing can be resolved.
    floor = lax.stop_gradient(1e-3 / dt**2)
    acc, _, ok = implicit_solve(residual, precondition, guess, floor)
    q1, v1, averaged = advance(acc)
    flow = term.energy_flow(t1, q1, v1, acc, args, y0.memory)
    work, lost = old.flow.until(flow, dt)
    y1 = State(Mechanical(q1, v1), y0.work + work, y0.dissipated + lost, y0.memory)
    # Zienkiewicz and Xie's estimate: the cubic term that a constant mean acceleration leaves out.
    missed = dt**2 * (1 / 6 - beta) * (averaged - old.averaged)
    zero = jnp.zeros_like(work)
    error = State(
        term.ambient(y0.mech, Mechanical(missed, missed / dt)),
        zero,
        zero,
        jtu.tree_map(jnp.zeros_like, y0.memory),
    )
    return y1, error, Accelerations(acc, averaged, flow), ok


class Newmark(AbstractStepSolver):
    """Newmark's method with free ``beta`` and ``gamma``: (1/4, 1/2) is the trapezoidal rule, second
    order; gamma > 1/2 damps and is first order.

    >>> import flexjax as fx
    >>> solver = fx.Newmark(beta=0.3025, gamma=0.6)
    """

    term_structure: ClassVar = AbstractSecondOrderTerm
    beta: Float[Array, ""] = eqx.field(converter=as_float, default=0.25)
    gamma: Float[Array, ""] = eqx.field(converter=as_float, default=0.5)

    def init(
        self, terms: PyTree, t0: ScalarLike, t1: ScalarLike, y0: State, args: PieceTime
    ) -> Accelerations:
        return _start(unwrap(terms), t0, y0, args)

    def step(
        self,
        terms: PyTree,
        t0: ScalarLike,
        t1: ScalarLike,
        y0: State,
        args: PieceTime,
        solver_state: Accelerations,
        made_jump: Bool[Array, ""] | bool,
    ):
        term = unwrap(terms)
        y0 = after_jump(made_jump, term, t0, y0, args)
        old = _after_jump(made_jump, term, t0, y0, args, solver_state)
        y1, error, state, ok = _step(term, t0, t1, y0, args, old, self.beta, self.gamma, 0.0, 0.0)
        return y1, error, dict(y0=y0, y1=y1), state, outcome(ok)


class GeneralisedAlpha(AbstractStepSolver):
    """Generalised-alpha method: second order, unconditionally stable for linear systems, with the
    damping of the highest frequencies chosen by ``spectral_radius`` (1: none, 0: they vanish in one
    step)."""

    term_structure: ClassVar = AbstractSecondOrderTerm
    spectral_radius: Float[Array, ""] = eqx.field(converter=as_float, default=0.8)

    def init(
        self, terms: PyTree, t0: ScalarLike, t1: ScalarLike, y0: State, args: PieceTime
    ) -> Accelerations:
        return _start(unwrap(terms), t0, y0, args)

    def step(
        self,
        terms: PyTree,
        t0: ScalarLike,
        t1: ScalarLike,
        y0: State,
        args: PieceTime,
        solver_state: Accelerations,
        made_jump: Bool[Array, ""] | bool,
    ):
        term = unwrap(terms)
        rho = self.spectral_radius
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 - alpha_m + alpha_f
        beta = 0.25 * (1 - alpha_m + alpha_f) ** 2
        y0 = after_jump(made_jump, term, t0, y0, args)
        old = _after_jump(made_jump, term, t0, y0, args, solver_state)
        y1, error, state, ok = _step(term, t0, t1, y0, args, old, beta, gamma, alpha_m, alpha_f)
        return y1, error, dict(y0=y0, y1=y1), state, outcome(ok)
