"""The published form: positions and angles as unknowns of the chain, Newmark on each of them (Table
I), sine and cosine linearised (eq. 6).

Kept to reproduce the paper and to show what the acceleration level gains: with (1/4, 1/2) this form
diverges, and in single precision it is useless.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from flexjax.formulation.transfer_matrix._laws import (
    Ground,
    joint_laws,
    load_wrenches,
    on_connections,
    targets,
)
from flexjax.formulation.transfer_matrix._series import bend_of, moved, passes, with_bend
from flexjax.formulation.transfer_matrix._sweep import SWEEPS, Elements
from flexjax.formulation.transfer_matrix._term import (
    Carried,
    TransferTerm,
    before,
    cross,
    perp,
    turned,
)
from flexjax.numerics.term import AbstractChainStepTerm, Mechanical, State

LINEARISATIONS = ("newton", "extrapolated", "frozen")


def _mixed(c, s, v):
    """Body vectors (n, 2) turned by an angle whose cosine and sine are ``c`` and ``s`` (n,)."""
    return jnp.stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1]], -1)


class PaperTerm(AbstractChainStepTerm):
    """q: angles of bodies and motors as in ``inner``, then x, y of the inboard points, then x, y of
    the centres of mass: the paper's step integrates all of them."""

    inner: TransferTerm
    linearisation: str = eqx.field(static=True)
    passes: int = eqx.field(static=True)

    @property
    def drive(self):
        return self.inner.drive

    @property
    def angles(self) -> int:
        return self.inner.layout.n + len(self.inner.layout.motors)

    def reduced(self, mech: Mechanical) -> Mechanical:
        return moved(mech, mech.q[: self.angles], mech.v[: self.angles])

    def reduced_state(self, y: State) -> State:
        return State(self.reduced(y.mech), y.work, y.dissipated, y.memory)

    def extended(self, t, piece_time, mech: Mechanical) -> Mechanical:
        """Angles completed by the points' positions and velocities."""
        ground = self.inner.ground(t, piece_time)
        x, v, _ = self.inner.points(mech, ground)
        to_com = self._centres(self.inner.split(mech.q)[0])
        w = self.inner.split(mech.v)[0]
        q = jnp.concatenate([mech.q, x[:-1].reshape(-1), (x[:-1] + to_com).reshape(-1)])
        return moved(
            mech,
            q,
            jnp.concatenate(
                [mech.v, v[:-1].reshape(-1), (v[:-1] + w[:, None] * perp(to_com)).reshape(-1)]
            ),
        )

    def _centres(self, th):
        b = self.inner.chain.bodies
        return turned(th, b.moment) / b.mass[:, None]

    def retract(self, mech, dx):
        return self.inner.retract(mech, dx)

    def ambient(self, mech, dx):
        return dx

    def rate(self, t, y: State, piece_time) -> Mechanical:
        small = self.inner.rate(t, self.reduced_state(y), piece_time)
        mech = self.reduced(y.mech)
        ground = self.inner.ground(t, piece_time)
        (th, _), (w, _), (alpha, _) = (self.inner.split(z) for z in (mech.q, mech.v, small.v))
        reach, to_com = turned(th, self.inner.chain.reach), self._centres(th)
        steps = alpha[:, None] * perp(reach) - (w**2)[:, None] * reach
        acc = ground.point_acceleration[None] + jnp.concatenate(
            [jnp.zeros_like(steps[:1]), jnp.cumsum(steps, axis=0)[:-1]]
        )
        com = acc + alpha[:, None] * perp(to_com) - (w**2)[:, None] * to_com
        v = jnp.concatenate([small.q, y.mech.v[self.angles :]])
        return moved(small, v, jnp.concatenate([small.v, acc.reshape(-1), com.reshape(-1)]))

    def held(self, t, dx: Mechanical) -> Mechanical:
        small = self.inner.held(t, self.reduced(dx))
        points = np.ones(dx.q.shape[0] - self.angles, bool)
        mask = np.concatenate([small.q, points])
        return moved(small, mask, mask)

    def complete(self, t, mech: Mechanical, piece_time) -> Mechanical:
        return self.extended(t, piece_time, self.inner.complete(t, self.reduced(mech), piece_time))

    def relative_rate(self, t, y: State, piece_time, about: State) -> Mechanical:
        states = self.reduced_state(y), piece_time, self.reduced_state(about)
        return self._with_points(self.inner.relative_rate(t, *states), y)

    def imbalance(self, t, y: State, piece_time) -> Mechanical:
        return self._with_points(self.inner.imbalance(t, self.reduced_state(y), piece_time), y)

    def _with_points(self, small: Mechanical, y: State) -> Mechanical:
        """Points follow from the angles, and are never free."""
        points = jnp.zeros_like(y.mech.v[self.angles :])
        return moved(small, *(jnp.concatenate([x, points]) for x in (small.q, small.v)))

    def power(self, t, y: State, piece_time):
        return self.inner.power(t, self.reduced_state(y), piece_time)

    def motor_coordinates(self, y: State):
        return self.inner.motor_coordinates(self.reduced_state(y))

    def start(self, t0, t1, y: State, piece_time) -> Carried:
        small, bend_rate = self.inner.relaxed(t0, t1, self.reduced_state(y), piece_time)
        mech = with_bend(self.inner.series, y.mech, bend_of(self.inner.series, small.mech))
        a = self.rate(t0, State(mech, y.work, y.dissipated, y.memory), piece_time).v
        exchange = self.inner.exchange(t0, small.mech, a[: self.angles], piece_time, y.memory)[0]
        zero = jnp.zeros((), a.dtype)
        return Carried(a, y.mech.v, jnp.zeros_like(a), zero, bend_rate, exchange)

    def advance(self, t0, t1, y: State, carried: Carried, piece_time, beta, gamma):
        inner, n = self.inner, self.inner.layout.n
        dt = t1 - t0
        q0, v0, a0 = y.mech.q, y.mech.v, carried.acceleration
        A = 1 / (beta * dt**2)
        predicted = moved(
            y.mech, q0 + dt * v0 + (0.5 - beta) * dt**2 * a0, v0 + (1 - gamma) * dt * a0
        )
        ground = inner.ground(t1, piece_time)
        small = self.reduced(predicted)
        ahead = moved(y.mech, q0 + dt * v0 + 0.5 * dt**2 * a0, v0 + dt * a0)
        star = inner.impose(t1, piece_time, self.reduced(ahead), ground)
        th_old, w_old = inner.split(q0[: self.angles])[0], inner.split(v0[: self.angles])[0]
        th, held, fixed = inner.split(star.q)[0], None, star
        newton = self.linearisation == "newton"
        # The paper has linear laws only; others are expanded about the pass before.
        for term in passes(inner, self.passes if newton else 1):
            laws = self._positions(
                joint_laws(
                    term,
                    t1,
                    piece_time,
                    y.memory,
                    inner.point(fixed, ground),
                    inner.point(small, ground),
                    beta * dt**2,
                    gamma * dt,
                    inner.bend_step(y.mech, carried, dt),
                ),
                t1,
                piece_time,
                small,
                ground,
                A,
            )
            el, to_com = self._elements(
                t1, piece_time, laws, predicted, th, held, th_old, dt * w_old, A
            )
            sol = SWEEPS[inner.sweep](el, jnp.concatenate([ground.point, ground.angle[None]]))
            angle = sol.e[:, 2]
            centre = sol.e[:, :2] + to_com[0] * angle[:, None] + to_com[1]
            turn_acc = A * (sol.turn - inner.relative(small.q, ground.angle))
            parent = before(A * (angle - small.q[:n]), ground.acceleration)
            motors = laws.motor_acceleration(turn_acc, parent)
            q1 = jnp.concatenate(
                [
                    angle,
                    predicted.q[n : self.angles] + beta * dt**2 * motors,
                    sol.e[:, :2].reshape(-1),
                    centre.reshape(-1),
                ]
            )
            a1 = A * (q1 - predicted.q)
            v1 = predicted.v + gamma * dt * a1
            fixed = inner.impose(t1, piece_time, self.reduced(moved(y.mech, q1, v1)), ground)
            if newton:
                th, held = angle, (el, sol)
        mech = moved(
            y.mech,
            jnp.concatenate([fixed.q, q1[self.angles :]]),
            jnp.concatenate([fixed.v, v1[self.angles :]]),
        )
        return inner.finish(t1, y, carried, piece_time, beta, dt, mech, a1, fixed)

    def _positions(self, laws, t, piece_time, small: Mechanical, ground: Ground, A):
        """The connections' laws in terms of rotations instead of accelerations: al = A (th -
        predicted)."""
        inner = self.inner
        turn, parent = (
            inner.relative(small.q, ground.angle),
            before(inner.split(small.q)[0], ground.angle),
        )
        stiffness, coupling, inertia = A * laws.stiffness, A * laws.coupling, A * laws.inertia
        value = (
            on_connections(inner, targets(inner, t, piece_time))[0] + inner.chain.connections.rest
        )
        return eqx.tree_at(
            lambda w: (w.stiffness, w.coupling, w.inertia, w.torque, w.pull, w.given),
            laws,
            (
                stiffness,
                coupling,
                inertia,
                laws.torque + stiffness * turn + coupling * parent,
                laws.pull + inertia * parent + coupling * turn,
                jnp.where(inner.kinds.rigid, value, 0.0),
            ),
        )

    def _elements(self, t, piece_time, laws, predicted, th, held, th_old, advance, A):
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
        column, shift = _mixed(-s, c, inner.chain.reach), _mixed(G1, G2, inner.chain.reach)
        m_column, m_shift = _mixed(-s, c, b.moment), _mixed(G1, G2, b.moment)
        reach, moment = _mixed(cb, sb, inner.chain.reach), _mixed(cb, sb, b.moment)
        force, torque = load_wrenches(inner, t, piece_time, jnp.arctan2(sb, cb))
        force = force + b.mass[:, None] * g[None]
        torque = torque + cross(moment, jnp.broadcast_to(g, moment.shape))
        B = -A * predicted.q
        B_th, B_I, B_C = (
            B[:n],
            B[self.angles : self.angles + 2 * n].reshape(n, 2),
            B[self.angles + 2 * n :].reshape(n, 2),
        )
        push = A * m_shift + b.mass[:, None] * B_C - force
        bias = b.inertia * B_th + cross(moment, B_I) - torque
        diagonal = A * b.inertia
        if held is not None:
            # Derivative of the moment row by the angle, with the forces and accelerations of the
            # last pass.
            el, sol = held
            q_in = jnp.sum(el.mass[:, :2, :3] * sol.e[:, None], axis=2) + el.mass[:, :2, 3]
            outboard = jnp.cumsum(q_in[::-1], axis=0)[::-1] - q_in
            slope = jnp.sum(reach * outboard + moment * (A * sol.e[:, :2] + B_I - g[None]), axis=1)
            diagonal, bias = diagonal - slope, bias + slope * th
        zero, mass = jnp.zeros_like(b.mass), A * b.mass
        table = jnp.stack(
            [
                jnp.stack([mass, zero, A * m_column[:, 0], push[:, 0]], -1),
                jnp.stack([zero, mass, A * m_column[:, 1], push[:, 1]], -1),
                jnp.stack([-A * moment[:, 1], A * moment[:, 0], diagonal, bias], -1),
            ],
            axis=-2,
        )
        el = Elements(
            column=column,
            row=perp(reach),
            shift=shift,
            mass=table,
            stiffness=laws.stiffness,
            torque=laws.torque,
            free=laws.free,
            given=laws.given,
            coupling=laws.coupling,
            inertia=laws.inertia,
            pull=laws.pull,
        )
        return el, (m_column / b.mass[:, None], m_shift / b.mass[:, None])
