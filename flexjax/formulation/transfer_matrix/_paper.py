"""The published form: positions and angles as unknowns of the chain, Newmark's rule on each of them
(Table I), sine and cosine linearised (eq. 6).

It reproduces the paper and shows the gain of the acceleration level: with (1/4, 1/2) this form
diverges, and in single precision it is useless.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._chain import Carried, Instant
from flexjax.formulation.transfer_matrix._connections import ConnectionLaws, connection_laws
from flexjax.formulation.transfer_matrix._link import before
from flexjax.formulation.transfer_matrix._plane import PlanarTerm
from flexjax.formulation.transfer_matrix._series import (
    deflection_of,
    moved,
    passes,
    with_deflection,
)
from flexjax.formulation.transfer_matrix.sweep import SWEEPS, Elements, Solution
from flexjax.numerics.screw import Plane, along
from flexjax.numerics.term import AbstractChainStepTerm, Mechanical, State

PAPER_LINEARISATIONS = ("newton", "extrapolated", "frozen")


def _mixed(c: Array, s: Array, v: Array):
    """Body vectors (n, 2) rotated by an angle with cosine ``c`` and sine ``s`` (n,)."""
    return jnp.stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1]], -1)


class PaperTerm(AbstractChainStepTerm):
    """q: angles of bodies and motors as in ``inner``, then x, y of the inboard points, then x, y of
    the centres of mass. The published step integrates all of them."""

    inner: PlanarTerm
    linearisation: str = eqx.field(static=True)
    passes: int = eqx.field(static=True)

    @property
    def drive(self) -> Drive:
        return self.inner.drive

    @property
    def angles(self) -> int:
        return self.inner.layout.n + self.inner.layout.motors

    def reduced(self, mech: Mechanical) -> Mechanical:
        return moved(mech, mech.q[: self.angles], mech.v[: self.angles])

    def reduced_state(self, y: State) -> State:
        return State(self.reduced(y.mech), y.work, y.dissipated, y.memory)

    def extended(self, at: Instant, mech: Mechanical) -> Mechanical:
        """Angles, with the positions and velocities of the points."""
        x, v = (z[:-1] for z in self.inner.points(at, mech))
        th, w = self.inner.bodies(mech)
        centre = self._centres(th)
        q = [mech.q, x.reshape(-1), (x + centre).reshape(-1)]
        v = [mech.v, v.reshape(-1), (v + Plane.cross(w, centre)).reshape(-1)]
        return moved(mech, jnp.concatenate(q), jnp.concatenate(v))

    def _centres(self, th: Float[Array, " n"]) -> Float[Array, "n 2"]:
        """Centres of mass from the inboard points, in world axes."""
        b = self.inner.chain.bodies
        return Plane.rotate(th, b.moment) / b.mass[:, None]

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return self.inner.retract(mech, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return dx

    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        small = self.inner.rate(t, self.reduced_state(y), piece_time)
        ground = self.inner.ground(t, piece_time)
        th, w = self.inner.bodies(self.reduced(y.mech))
        alpha = self.inner.split(small.v)[0]

        def acceleration(r: Array) -> Array:
            return Plane.cross(alpha, r) - (w**2)[:, None] * r

        reach = Plane.rotate(th, self.inner.chain.bodies.reach)
        points = along(ground.point_acceleration, acceleration(reach))[:-1]
        centres = points + acceleration(self._centres(th))
        v = jnp.concatenate([small.q, y.mech.v[self.angles :]])
        return moved(small, v, jnp.concatenate([small.v, points.reshape(-1), centres.reshape(-1)]))

    def held(self, t: ScalarLike, dx: Mechanical) -> Mechanical:
        small = self.inner.held(t, self.reduced(dx))
        points = np.ones(dx.q.shape[0] - self.angles, bool)
        mask = jnp.concatenate([small.q, points])
        return moved(small, mask, mask)

    def complete(self, t: ScalarLike, mech: Mechanical, piece_time: PieceTime) -> Mechanical:
        at = self.inner.instant(t, piece_time)
        return self.extended(at, self.inner.impose(at, self.reduced(mech)))

    def relative_rate(
        self, t: ScalarLike, y: State, piece_time: PieceTime, about: State
    ) -> Mechanical:
        states = self.reduced_state(y), piece_time, self.reduced_state(about)
        return self._with_points(self.inner.relative_rate(t, *states), y)

    def imbalance(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        return self._with_points(self.inner.imbalance(t, self.reduced_state(y), piece_time), y)

    def _with_points(self, small: Mechanical, y: State) -> Mechanical:
        """Points follow from the angles and are never free."""
        points = jnp.zeros_like(y.mech.v[self.angles :])
        return moved(small, *(jnp.concatenate([x, points]) for x in (small.q, small.v)))

    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        return self.inner.power(t, self.reduced_state(y), piece_time)

    def motor_coordinates(self, y: State) -> tuple[Array, Array]:
        return self.inner.motor_coordinates(self.reduced_state(y))

    def start(self, t0: ScalarLike, t1: ScalarLike, y: State, piece_time: PieceTime) -> Carried:
        inner, at = self.inner, self.inner.instant(t0, piece_time, y.memory)
        small, rate = inner.relaxed(at, jnp.asarray(t1 - t0), self.reduced(y.mech))
        mech = with_deflection(inner.series, y.mech, deflection_of(inner.series, small))
        a = self.rate(t0, State(mech, y.work, y.dissipated, y.memory), piece_time).v
        ports = inner.ports(at, small, a[: self.angles])[0]
        zero = jnp.zeros((), a.dtype)
        return Carried(a, y.mech.v, jnp.zeros_like(a), zero, rate, ports)

    def advance(
        self,
        t0: ScalarLike,
        t1: ScalarLike,
        y: State,
        carried: Carried,
        piece_time: PieceTime,
        beta: ScalarLike,
        gamma: ScalarLike,
    ) -> tuple[State, Carried, Array]:
        inner, n, dt = self.inner, self.inner.layout.n, jnp.asarray(t1 - t0)
        at = inner.instant(t1, piece_time, y.memory)
        ground = at.ground
        q0, v0, a0 = y.mech.q, y.mech.v, carried.acceleration
        A = 1 / (beta * dt**2)
        predicted = moved(
            y.mech, q0 + dt * v0 + (0.5 - beta) * dt**2 * a0, v0 + (1 - gamma) * dt * a0
        )
        small = self.reduced(predicted)
        ahead = moved(y.mech, q0 + dt * v0 + 0.5 * dt**2 * a0, v0 + dt * a0)
        star = inner.impose(at, self.reduced(ahead))
        history = inner.history(y.mech, carried, dt)
        th_old, w_old = inner.bodies(self.reduced(y.mech))
        root = jnp.concatenate([ground.point, ground.orientation[None]])
        th, held, fixed = inner.split(star.q)[0], None, star
        newton = self.linearisation == "newton"
        # The paper has linear laws only; others are expanded about the pass before.
        for term in passes(inner, self.passes if newton else 1):
            points = inner.point(fixed, ground), inner.point(small, ground)
            laws = connection_laws(term, at, *points, beta * dt**2, gamma * dt, history)
            laws = self._positions(at, laws, small, A)
            el, to_com = self._elements(at, laws, predicted, th, held, th_old, dt * w_old, A)
            sol = SWEEPS[inner.sweep](el, root)
            angle, points = sol.e[:, 2], sol.e[:, :2]
            centres = points + to_com[0] * angle[:, None] + to_com[1]
            relative = A * (sol.rotation - inner.relative(small.q, ground.orientation))
            parent = before(A * (angle - small.q[:n]), ground.acceleration)
            motors = predicted.q[n : self.angles]
            motors = motors + beta * dt**2 * laws.motor_acceleration(relative, parent)
            q1 = jnp.concatenate([angle, motors, points.reshape(-1), centres.reshape(-1)])
            a1 = A * (q1 - predicted.q)
            v1 = predicted.v + gamma * dt * a1
            fixed = inner.impose(at, self.reduced(moved(y.mech, q1, v1)))
            if newton:
                th, held = angle, (el, sol)
        mech = moved(
            y.mech,
            jnp.concatenate([fixed.q, q1[self.angles :]]),
            jnp.concatenate([fixed.v, v1[self.angles :]]),
        )
        return inner.finish(at, y, carried, beta, dt, mech, a1, fixed)

    def _positions(
        self, at: Instant, laws: ConnectionLaws, small: Mechanical, A: Scalar
    ) -> ConnectionLaws:
        """The laws in terms of rotations instead of accelerations: al = A (th - predicted)."""
        inner, ground = self.inner, at.ground.orientation
        relative = inner.relative(small.q, ground)
        parent = before(inner.split(small.q)[0], ground)
        stiffness, coupling, inertia = A * laws.stiffness, A * laws.coupling, A * laws.inertia
        value = inner.masks.to_connections(at.target[0]) + inner.connections.rest
        return eqx.tree_at(
            lambda w: (w.stiffness, w.coupling, w.inertia, w.torque, w.rotor_torque, w.given),
            laws,
            (
                stiffness,
                coupling,
                inertia,
                laws.torque + stiffness * relative + coupling * parent,
                laws.rotor_torque + inertia * parent + coupling * relative,
                jnp.where(inner.masks.rigid, value, 0.0),
            ),
        )

    def _elements(
        self,
        at: Instant,
        laws: ConnectionLaws,
        predicted: Mechanical,
        th: Float[Array, " n"],
        held: tuple[Elements, Solution] | None,
        th_old: Float[Array, " n"],
        advance: Float[Array, " n"],
        A: Scalar,
    ) -> tuple[Elements, tuple[Array, Array]]:
        """Elements of the chain, and the centres of mass as column th + shift."""
        inner, b, g = self.inner, self.inner.chain.bodies, self.inner.chain.gravity
        n = inner.layout.n
        if self.linearisation == "newton":
            c, s = jnp.cos(th), jnp.sin(th)
            cb, sb, G1, G2 = c, s, c + th * s, s - th * c
        else:
            c, s = jnp.cos(th_old), jnp.sin(th_old)
            shrink = 1 - 0.5 * advance**2
            G1, G2 = c * shrink + th_old * s, s * shrink - th_old * c
            cb, sb = (jnp.cos(th), jnp.sin(th)) if self.linearisation == "extrapolated" else (c, s)
        # A vector v of the body is column th + shift.
        column, shift = _mixed(-s, c, b.reach), _mixed(G1, G2, b.reach)
        m_column, m_shift = _mixed(-s, c, b.moment), _mixed(G1, G2, b.moment)
        reach, moment = _mixed(cb, sb, b.reach), _mixed(cb, sb, b.moment)
        force, torque = inner.load_wrenches(at, jnp.arctan2(sb, cb))
        force = force + b.mass[:, None] * g[None]
        torque = torque + Plane.moment(moment, jnp.broadcast_to(g, moment.shape))
        B = -A * predicted.q
        B_th, B_I, B_C = (
            B[:n],
            B[self.angles : self.angles + 2 * n].reshape(n, 2),
            B[self.angles + 2 * n :].reshape(n, 2),
        )
        inertial = A * m_shift + b.mass[:, None] * B_C - force
        bias = b.inertia * B_th + Plane.moment(moment, B_I) - torque
        diagonal = A * b.inertia
        if held is not None:
            # Derivative of the moment row with respect to the angle, with the forces of the last
            # pass.
            el, sol = held
            q_in = jnp.sum(el.mass[:, :2, :3] * sol.e[:, None], axis=2) + el.mass[:, :2, 3]
            outboard = jnp.cumsum(q_in[::-1], axis=0)[::-1] - q_in
            slope = jnp.sum(reach * outboard + moment * (A * sol.e[:, :2] + B_I - g[None]), axis=1)
            diagonal, bias = diagonal - slope, bias + slope * th
        zero, mass = jnp.zeros_like(b.mass), A * b.mass
        table = jnp.stack(
            [
                jnp.stack([mass, zero, A * m_column[:, 0], inertial[:, 0]], -1),
                jnp.stack([zero, mass, A * m_column[:, 1], inertial[:, 1]], -1),
                jnp.stack([-A * moment[:, 1], A * moment[:, 0], diagonal, bias], -1),
            ],
            axis=-2,
        )
        el = Elements(
            column=column,
            row=jnp.stack([-reach[:, 1], reach[:, 0]], -1),
            shift=shift,
            mass=table,
            **laws.elements(),
        )
        return el, (m_column / b.mass[:, None], m_shift / b.mass[:, None])
