"""Energy-conserving implicit step for second-order terms: a discrete gradient in coordinates and
velocities.

With p = M(q) v, mean velocity u = (v0 + v1)/2 and D = dt u:

    q1 = q0 moved by D
    p1 - p0 = dt (mean along the path of grad_q [v0^T M(q) v1 / 2 - V(q)]
                  + Q(midpoint) + ad*_u (p0 + p1)/2)

The mean value of a gradient along the path, times D, is the exact difference of the function, and
T1 - T0 = u (p1 - p0) - v0^T (M1 - M0) v1 / 2. So T1 + V1 - T0 - V0 = D Q: energy minus work is
conserved for any dt. The path integral uses Lobatto points, because the momenta at both ends are
needed anyway. With three inner points its error is of order (rotation per step)^8, which is
round-off at any sensible step. Where the gradient may jump on the path (a contact that crosses an
element border), each side has its own Gauss points; the term gives the place of the jump. The plain
midpoint rule (one point) conserves energy only if M is constant and V quadratic.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from flexjax._rules import stop
from flexjax._types import Velocities
from flexjax.numerics.solver._base import AbstractStepSolver, Jump
from flexjax.numerics.solver._limits import first_guess
from flexjax.numerics.solver._newton import implicit_solve
from flexjax.numerics.term import AbstractLagrangianTerm, Instant, Mechanical, State, Step


def _stations(
    points: int, kinks: Float[Array, " k"]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """Places on the path, both ends among them, and their weights; exact for polynomials of degree
    2 ``points`` - 1 between places where it has a kink."""
    if points > 1 and not kinks.shape[0]:
        inner = np.polynomial.Legendre.basis(points).deriv().roots()
        nodes = np.concatenate([[-1.0], np.sort(inner.real), [1.0]])
        weights = 1 / (points * (points + 1) * np.polynomial.Legendre.basis(points)(nodes) ** 2)
        return jnp.asarray(0.5 * (nodes + 1), kinks.dtype), jnp.asarray(weights, kinks.dtype)
    nodes, weights = np.polynomial.legendre.leggauss(points)
    nodes, weights = (
        jnp.asarray(0.5 * (nodes + 1), kinks.dtype),
        jnp.asarray(0.5 * weights, kinks.dtype),
    )
    if kinks.shape[0]:
        edges = jnp.concatenate(
            [jnp.zeros(1, kinks.dtype), jnp.sort(kinks), jnp.ones(1, kinks.dtype)]
        )
        span = jnp.diff(edges)
        nodes = (edges[:-1, None] + span[:, None] * nodes[None, :]).reshape(-1)
        weights = (span[:, None] * weights[None, :]).reshape(-1)
    return jnp.concatenate([jnp.zeros(1, nodes.dtype), nodes, jnp.ones(1, nodes.dtype)]), jnp.pad(
        weights, (1, 1)
    )


# Compiled as a function of its own: it is needed four times in a step (Newton, its derivative, the
# end), and is traced once.
@eqx.filter_jit
def _path(
    term: AbstractLagrangianTerm,
    points: int,
    step: Step,
    y0: State,
    v1: Velocities,
    u: Velocities,
) -> tuple[Velocities, Velocities, Velocities, Velocities, Float[Array, ""] | None]:
    """(gap of the momentum balance, change of momenta, mean forces of the drive, of dampers, work
    of a moving base: None if it rests). ``u`` is the mean velocity."""
    dt, q0, v0 = step.dt, y0.mech.q, y0.mech.v
    stations, weights = _stations(points, term.kinks(q0, dt * u))
    # Both ends of the path are stations, if without weight: their momenta come out of the same
    # sweep.
    pa, pb, gradient, ground = jax.vmap(
        lambda s: term.lagrangian_on_ground(step, s, term.move(q0, s * dt * u), v0, v1)
    )(stations)
    p0, p1 = pa[0], pb[-1]
    now = Instant(step.middle, step.piece_time, y0.memory)
    driven, damped = term.forces(now, term.move(q0, 0.5 * dt * u), u)
    gap = p1 - p0 - dt * (weights @ gradient + driven + damped + term.gyration(u, 0.5 * (p0 + p1)))
    # The ground's twist is a given velocity: changing its momentum and lifting the weight on it is
    # work.
    taken = (
        None if ground is None else ground[1][-1] - ground[0][0] + dt * jnp.sum(weights * ground[2])
    )
    return gap, p1 - p0, driven, damped, taken


class DiscreteGradient(AbstractStepSolver):
    """Energy-conserving method of second order without numerical damping: energy, work of the drive
    and dissipation balance to round-off.

    Arguments:
        points: the path of a step is integrated as by so many Gauss points; 1 is the midpoint rule.

    >>> import flexjax as fx
    >>> solver = fx.DiscreteGradient(points=3)
    """

    term_structure: ClassVar = AbstractLagrangianTerm
    points: int = eqx.field(static=True, default=4)

    def begin(self, term: AbstractLagrangianTerm, step: Step, y0: State) -> Int[Array, ""]:
        """The number of Newton's iterations in the last step, for diagnosis only."""
        return jnp.zeros((), jnp.int32)

    def advance(
        self,
        term: AbstractLagrangianTerm,
        step: Step,
        y0: State,
        solver_state: Int[Array, ""],
        made_jump: Jump,
    ):
        dt, q0, v0 = step.dt, y0.mech.q, y0.mech.v
        now = Instant(step.middle, step.piece_time, y0.memory)
        mask, q_p, v_p, _ = term.prescribed(step.t1, step.piece_time)

        def mean(v1):
            # The drive gives rates and displacements of prescribed coordinates: 2 displacement / dt
            # - v0 instead of its rate would alternate from step to step after a jump.
            return jnp.where(mask, term.displacement(q0, mask, q_p) / dt, 0.5 * (v0 + v1))

        def midpoint(v1):
            u = mean(v1)
            return term.move(q0, 0.5 * dt * u), u

        def path(v1):
            return _path(term, self.points, step, y0, v1, mean(v1))

        def residual(v1):
            return jnp.where(mask, v1 - v_p, path(v1)[0])

        # No acceleration as first guess. One of the last step saves a tenth of the iterations of a
        # rigid arm, and leads Newton astray in modes that the step does not resolve.
        guess = stop(jnp.where(mask, v_p, v0))
        fixed, still, length = stop((term, now, dt))
        cv, cq = 0.5 * length, 0.25 * length**2
        factors = fixed.preconditioner(still, *stop(midpoint(guess)), cv, cq)
        guess, precondition = first_guess(
            lambda v1: fixed.limits(still, *stop(midpoint(v1))),
            *(length, cv, cq, guess),
            lambda v1: stop(residual(v1)),
            lambda r: fixed.precondition(factors, r),
        )
        floor = lax.stop_gradient(1e-3 / dt)
        noise = fixed.roundoff(factors, *stop((q0, v0)))
        v1, iterations, ok = implicit_solve(
            residual, precondition, guess, floor, noise, step.running
        )
        u = mean(v1)
        if mask.any() or eqx.filter_eval_shape(path, v1)[4] is not None:
            gap, change, driven, damped, taken = path(v1)
            # In a prescribed row the gap is the impulse of the prescription: the drive does its
            # work.
            given = u * gap + (0.5 * (v0 + v1) - u) * change
            taken = jnp.sum(jnp.where(mask, given, 0.0)) + (0.0 if taken is None else taken)
        else:
            driven, damped = term.forces(now, *midpoint(v1))
            taken = 0.0
        work = y0.work + (dt * jnp.sum(u * driven) + taken)
        dissipated = y0.dissipated - dt * jnp.sum(u * damped)
        q1 = term.impose(term.move(q0, dt * u), mask, q_p)
        return State(Mechanical(q1, v1), work, dissipated, y0.memory), None, iterations, ok
