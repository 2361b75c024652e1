"""Newmark's family and the generalised-alpha method for second-order terms, on vectors and
rotations alike.

Reference: Chung, Hulbert (1993); Arnold, Brüls (2007) for the form with an auxiliary acceleration,
which keeps second order for a mass matrix that depends on the configuration; Simo, Vu-Quoc (1988)
for Newmark on the rotation group.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax
from jaxtyping import Array, Bool, Float

from flexjax._rules import stop
from flexjax._types import ScalarLike, Velocities, as_float
from flexjax.numerics.solver._base import AbstractStepSolver, Jump
from flexjax.numerics.solver._limits import first_guess
from flexjax.numerics.solver._newton import implicit_solve
from flexjax.numerics.term import (
    AbstractSecondOrderTerm,
    EnergyFlow,
    Instant,
    Mechanical,
    State,
    Step,
)


class Accelerations(eqx.Module):
    """Solver state: the true acceleration at the last time, the averaged one of the
    generalised-alpha method, and the forces of drive and dampers there."""

    true: Velocities
    averaged: Velocities
    flow: EnergyFlow


# A function of its own: Newton and its derivative need it several times, and it is traced once.
@eqx.filter_jit
def _balance(term: AbstractSecondOrderTerm, *args: Any):
    return term.balance(*args)


class Coefficients(NamedTuple):
    """Of Newmark's rule, and of the averages of the generalised-alpha method."""

    beta: ScalarLike
    gamma: ScalarLike
    alpha_m: ScalarLike = 0.0
    alpha_f: ScalarLike = 0.0


class _AbstractNewmark(AbstractStepSolver):
    """The step of Newmark's method and of its generalisation."""

    term_structure: ClassVar = AbstractSecondOrderTerm

    @abc.abstractmethod
    def coefficients(self) -> Coefficients:
        """The coefficients of the method."""

    def begin(self, term: AbstractSecondOrderTerm, step: Step, y0: State) -> Accelerations:
        now, q, v = Instant(step.t0, step.piece_time, y0.memory), y0.mech.q, y0.mech.v
        a = term.accelerate(now, q, v)
        return Accelerations(a, a, term.energy_flow(now, q, v, a))

    def advance(
        self,
        term: AbstractSecondOrderTerm,
        step: Step,
        y0: State,
        solver_state: Accelerations,
        made_jump: Jump,
    ):
        # Accelerations jump with the drive. A grid without breaks passes a plain False, which saves
        # the code for it.
        old = solver_state
        if made_jump is not False:
            old = lax.cond(made_jump, lambda: self.begin(term, step, y0), lambda: solver_state)
        return _advance(term, step, y0, old, self.coefficients())


def _advance(
    term: AbstractSecondOrderTerm, step: Step, y0: State, old: Accelerations, rule: Coefficients
) -> tuple[State, State, Accelerations, Bool[Array, ""]]:
    beta, gamma, alpha_m, alpha_f = rule
    dt, now = step.dt, Instant(step.t1, step.piece_time, y0.memory)
    q0, v0 = y0.mech.q, y0.mech.v
    mask, q_p, v_p, a_p = term.prescribed(step.t1, step.piece_time)

    def advance(acc):
        averaged = ((1 - alpha_f) * acc + alpha_f * old.true - alpha_m * old.averaged) / (
            1 - alpha_m
        )
        q1 = term.move(q0, dt * v0 + dt**2 * ((0.5 - beta) * old.averaged + beta * averaged))
        v1 = v0 + dt * ((1 - gamma) * old.averaged + gamma * averaged)
        return term.impose(q1, mask, q_p), jnp.where(mask, v_p, v1), averaged

    def residual(acc):
        q1, v1, _ = advance(acc)
        return jnp.where(mask, acc - a_p, _balance(term, now, q1, v1, acc))

    share = (1 - alpha_f) / (1 - alpha_m)
    cv, cq = stop((gamma * dt * share, beta * dt**2 * share))
    guess = stop(jnp.where(mask, a_p, old.true))
    fixed, still = stop((term, now))

    def at(acc):
        return stop(advance(acc)[:2])

    factors = fixed.preconditioner(still, *at(guess), cv, cq)
    guess, precondition = first_guess(
        lambda acc: fixed.limits(still, *at(acc)),
        *(1.0, cv, cq, guess),
        lambda acc: stop(residual(acc)),
        lambda r: fixed.precondition(factors, r),
    )
    # A displacement of one unit of length per step belongs to an acceleration 1/dt^2: below
    # round-off of that nothing can be resolved.
    floor = lax.stop_gradient(1e-3 / dt**2)
    acc, _, ok = implicit_solve(residual, precondition, guess, floor, running=step.running)
    q1, v1, averaged = advance(acc)
    flow = term.energy_flow(now, q1, v1, acc)
    work, lost = old.flow.until(flow, dt)
    y1 = State(Mechanical(q1, v1), y0.work + work, y0.dissipated + lost, y0.memory)
    error = _error(term, y0, dt, (1 / 6 - beta) * (averaged - old.averaged))
    return y1, error, Accelerations(acc, averaged, flow), ok


def _error(term: AbstractSecondOrderTerm, y0: State, dt: ScalarLike, change: Velocities) -> State:
    """Zienkiewicz and Xie's estimate: the cubic term that a constant mean acceleration leaves
    out."""
    missed = dt**2 * change
    zero = jnp.zeros_like(y0.work)
    memory = jtu.tree_map(jnp.zeros_like, y0.memory)
    return State(term.ambient(y0.mech, Mechanical(missed, missed / dt)), zero, zero, memory)


class Newmark(_AbstractNewmark):
    """Newmark's method: beta = 1/4, gamma = 1/2 is the trapezoidal rule, of second order;
    gamma > 1/2 damps and is of first order.

    Arguments:
        beta: weight of the new acceleration in the displacement.
        gamma: weight of the new acceleration in the velocity.

    >>> import flexjax as fx
    >>> solver = fx.Newmark(beta=0.3025, gamma=0.6)
    """

    beta: Float[Array, ""] = eqx.field(converter=as_float, default=0.25)
    gamma: Float[Array, ""] = eqx.field(converter=as_float, default=0.5)

    def coefficients(self) -> Coefficients:
        return Coefficients(self.beta, self.gamma)


class GeneralisedAlpha(_AbstractNewmark):
    """Generalised-alpha method: second order, unconditionally stable for linear systems, with
    damping of the highest frequencies.

    Arguments:
        spectral_radius: of the highest frequencies. 1: no damping; 0: they vanish in one step.

    >>> import flexjax as fx
    >>> solver = fx.GeneralisedAlpha(spectral_radius=0.9)
    """

    spectral_radius: Float[Array, ""] = eqx.field(converter=as_float, default=0.8)

    def coefficients(self) -> Coefficients:
        rho = self.spectral_radius
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 - alpha_m + alpha_f
        return Coefficients(0.25 * (1 - alpha_m + alpha_f) ** 2, gamma, alpha_m, alpha_f)
