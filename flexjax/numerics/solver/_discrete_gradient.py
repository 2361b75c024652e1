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
from jaxtyping import Array, Bool, Float, Int, PyTree

from flexjax._types import Coordinates, PieceTime, ScalarLike, Velocities
from flexjax.numerics.solver._base import AbstractStepSolver, after_jump, outcome
from flexjax.numerics.solver._limits import first_guess
from flexjax.numerics.solver._newton import implicit_solve, stop
from flexjax.numerics.term import AbstractLagrangianTerm, Mechanical, State, unwrap


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
    tm: ScalarLike,
    dt: ScalarLike,
    q0: Coordinates,
    v0: Velocities,
    v1: Velocities,
    u: Velocities,
    args: PieceTime,
    memory: PyTree,
) -> tuple[Velocities, Velocities, Velocities, Velocities, Float[Array, ""] | None]:
    """(what is missing of the momentum balance, change of momenta, mean forces of the drive, of
    dampers, work of a base that moves: None if it does not). ``u`` is the mean velocity."""
    stations, weights = _stations(points, term.kinks(q0, dt * u))
    # Both ends of the path are stations, if without weight: their momenta come out of the same
    # sweep.
    pa, pb, gradient, ground = jax.vmap(
        lambda s: term.lagrangian_on_ground(
            s, tm - 0.5 * dt, dt, term.move(q0, s * dt * u), v0, v1, args
        )
    )(stations)
    p0, p1 = pa[0], pb[-1]
    driven, damped = term.forces(tm, term.move(q0, 0.5 * dt * u), u, args, memory)
    gap = p1 - p0 - dt * (weights @ gradient + driven + damped + term.gyration(u, 0.5 * (p0 + p1)))
    # The ground's twist is a velocity like the others, but given: what its momentum takes is work,
    # and so is lifting the weight that stands on it.
    taken = (
        None if ground is None else ground[1][-1] - ground[0][0] + dt * jnp.sum(weights * ground[2])
    )
    return gap, p1 - p0, driven, damped, taken


class DiscreteGradient(AbstractStepSolver):
    """Energy-conserving, second order, no numerical damping: energy, work of the drive and
    dissipation balance to rounding.

    The path of one step is integrated as by ``points`` Gauss points; ``points=1`` is the midpoint
    rule.
    """

    term_structure: ClassVar = AbstractLagrangianTerm
    points: int = eqx.field(static=True, default=4)

    def init(
        self, terms: PyTree, t0: ScalarLike, t1: ScalarLike, y0: State, args: PieceTime
    ) -> Int[Array, ""]:
        """The number of Newton's iterations in the last step: nothing depends on it, but who asks
        can see it."""
        return jnp.zeros((), jnp.int32)

    def step(
        self,
        terms: PyTree,
        t0: ScalarLike,
        t1: ScalarLike,
        y0: State,
        args: PieceTime,
        solver_state: Int[Array, ""],
        made_jump: Bool[Array, ""] | bool,
    ):
        term = unwrap(terms)
        dt, tm = t1 - t0, 0.5 * (t0 + t1)
        y0 = after_jump(made_jump, term, t0, y0, args)
        q0, v0 = y0.mech.q, y0.mech.v
        mask, q_p, v_p, _ = term.prescribed(t1, args)

        def mean(v1):
            # Of prescribed coordinates the drive gives the rates and the way: 2 way / dt - v0
            # instead of its rate would alternate from step to step after a jump.
            return jnp.where(mask, term.displacement(q0, q_p) / dt, 0.5 * (v0 + v1))

        def path(v1):
            return _path(term, self.points, tm, dt, q0, v0, v1, mean(v1), args, y0.memory)

        def residual(v1):
            return jnp.where(mask, v1 - v_p, path(v1)[0])

        # No acceleration as first guess. One carried over from the last step saves a tenth of the
        # iterations of a rigid arm, hardly any of screw synthesis, and leads Newton astray where it
        # belongs to a mode that the step does not resolve, which has changed its sign since.
        guess = stop(jnp.where(mask, v_p, v0))
        fixed, step, rest = stop((term, dt, (args, y0.memory)))
        cv, cq = 0.5 * step, 0.25 * step**2

        def at(v1):
            u = mean(v1)
            return stop((tm, term.move(q0, 0.5 * dt * u), u))

        factors = fixed.preconditioner(*at(guess), 1.0, cv, cq, *rest)
        guess, precondition = first_guess(
            lambda v1: fixed.limits(*at(v1), *rest),
            *(step, cv, cq, guess),
            lambda v1: stop(residual(v1)),
            lambda r: fixed.precondition(factors, r),
        )
        floor = lax.stop_gradient(1e-3 / dt)
        noise = fixed.roundoff(factors, *stop((q0, v0)))
        v1, iterations, ok = implicit_solve(residual, precondition, guess, floor, noise)
        u = mean(v1)
        q1 = term.impose(term.move(q0, dt * u), q_p)
        if mask.any() or eqx.filter_eval_shape(path, v1)[4] is not None:
            gap, change, driven, damped, taken = path(v1)
            # In a prescribed row the gap is the impulse that the prescription takes: its work is
            # the drive's.
            given = u * gap + (0.5 * (v0 + v1) - u) * change
            taken = jnp.sum(jnp.where(mask, given, 0.0)) + (0.0 if taken is None else taken)
        else:
            driven, damped = term.forces(tm, term.move(q0, 0.5 * dt * u), u, args, y0.memory)
            taken = 0.0
        work = dt * jnp.sum(u * driven) + taken
        y1 = State(
            Mechanical(q1, v1), y0.work + work, y0.dissipated - dt * jnp.sum(u * damped), y0.memory
        )
        return y1, None, dict(y0=y0, y1=y1), iterations, outcome(ok)
