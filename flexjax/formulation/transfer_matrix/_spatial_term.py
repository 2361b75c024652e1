"""The acceleration level in space: thirteen numbers at a cut [a, alpha, force, moment, 1], one
sweep with 6 x 6 matrices.

Rotations of the segments are unit quaternions, moved by rotation vectors in world axes; no angles
are added.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._balance import Exchange
from flexjax.formulation.transfer_matrix._chain import Layout
from flexjax.formulation.transfer_matrix._laws import stop_torque
from flexjax.formulation.transfer_matrix._series import (
    BendStep,
    JointLaw,
    SeriesTorque,
    bend_of,
    joint_torques,
    moved,
    passes,
    relaxed_bend,
    series_joints,
    with_bend,
)
from flexjax.formulation.transfer_matrix._spatial_chain import SpatialChain
from flexjax.formulation.transfer_matrix._spatial_joints import (
    Bends,
    Sites,
    bends,
    inverse3,
)
from flexjax.formulation.transfer_matrix._spatial_loads import load_wrenches
from flexjax.formulation.transfer_matrix._term import Carried
from flexjax.numerics.linalg import mm, mv, transpose
from flexjax.numerics.screw import se3
from flexjax.numerics.term import AbstractChainStepTerm, Mechanical, State
from flexjax.robot import Robot

skew = jax.vmap(se3.skew)


def _around(point, spin):
    """Derivative (n, 3, 3) of w x (w x point) by w, and the value."""
    swung = jnp.cross(spin, point)
    return -(skew(swung) + mm(skew(spin), skew(point))), jnp.cross(spin, swung)


class SpatialTerm(AbstractChainStepTerm):
    """q: quaternions of the bodies; v: their angular velocities in world axes."""

    robot: Robot
    chain: SpatialChain
    drive: Drive
    layout: Layout = eqx.field(static=True)
    linearisation: str = eqx.field(static=True)
    passes: int = eqx.field(static=True)

    # --- coordinates
    @property
    def sites(self) -> Sites:
        return Sites(self.robot, self.layout, self.drive.prescribed(self.robot))

    def rotations(self, q) -> Float[Array, "n 3 3"]:
        return jax.vmap(se3.quat_to_matrix)(q.reshape(-1, 4))

    def moved(self, q, turn):
        """``q`` moved by rotation vectors in world axes."""
        quat = jax.vmap(se3.quat_multiply)(
            jax.vmap(se3.quat_exp)(turn.reshape(-1, 3)), q.reshape(-1, 4)
        )
        return (quat / jnp.sqrt(jnp.sum(quat**2, axis=1))[:, None]).reshape(-1)

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        bend = bend_of(self.series, mech) + bend_of(self.series, dx)
        moved = Mechanical(self.moved(mech.q, dx.q), mech.v + dx.v)
        return with_bend(self.series, moved, bend)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        spin = jnp.concatenate(
            [jnp.zeros((self.layout.n, 1), dx.q.dtype), dx.q.reshape(-1, 3)], axis=1
        )
        quat = 0.5 * jax.vmap(se3.quat_multiply)(spin, mech.q.reshape(-1, 4)).reshape(-1)
        return moved(dx, quat, dx.v)

    def bends(self, t, piece_time, R, w) -> Bends:
        value, rate, _ = self.drive.motion(self.robot, t, piece_time)
        return bends(self.chain, self.sites, R, w, value, rate)

    # --- dynamics
    def stops(self, b: Bends) -> tuple[Array, Array, Array]:
        """(D,) torque of the end stops, its slopes (taken positive) in angle and rate; none where a
        Motion holds."""
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        torque, by_angle, by_rate = (
            jnp.where(self.sites.given, 0.0, z) for z in stop_torque(self.chain.joints, x, xd)
        )
        return torque, by_angle, by_rate

    @property
    def series(self) -> np.ndarray:
        """(D,) static: joints whose bend is a state."""
        return series_joints(self.robot, self.drive, ~self.sites.given, True)

    def joint_law(self, t, piece_time, memory, b: Bends) -> JointLaw:
        """Torques of drive, dampers and friction at the joints."""
        c = self.chain
        return JointLaw(
            robot=self.robot,
            drive=self.drive,
            t=t,
            piece_time=piece_time,
            memory=memory,
            damping=c.damping,
            hardware=c.joints,
            compliance=self.sites.gather(b.give),
            lag=self.sites.gather(b.lag),
            series=tuple(bool(x) for x in self.series),
        )

    def joints(
        self, t, piece_time, memory, b: Bends, bend, step: BendStep | None = None
    ) -> SeriesTorque:
        """Their torques at half segments bent by ``bend`` (D,), or at the end of ``step``."""
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        return joint_torques(self.joint_law(t, piece_time, memory, b), x, xd, bend, step)

    def sweep(self, t, piece_time, memory, R, w, turn_ahead, w_ahead, c2, c1, bend, step=None):
        """(e (n, 6) of the bodies' inboard points, f (n, 6) on the bodies there) at rotations R and
        angular velocities w. The motion to find lies ``turn_ahead`` + c2 alpha and ``w_ahead`` + c1
        alpha from these (n, 3). ``bend`` (D,) of the half segments beside joints counts unless
        there is a ``step``."""
        chain, n = self.chain, self.layout.n
        reach, moment = mv(R, chain.reach), mv(R, chain.moment)
        inertia = mm(mm(R, chain.inertia), transpose(R))
        swing, known = _around(reach, w)
        push_slope, push = _around(moment, w)
        spun = mv(inertia, w)
        gyro_slope, gyro = mm(skew(w), inertia) - skew(spun), jnp.cross(w, spun)
        if self.linearisation == "extrapolated":
            swing, push_slope, gyro_slope = (
                jnp.zeros_like(x) for x in (swing, push_slope, gyro_slope)
            )
        known, push, gyro = (
            x + mv(s, w_ahead) for x, s in ((known, swing), (push, push_slope), (gyro, gyro_slope))
        )
        force, torque = load_wrenches(self, t, piece_time, R)
        push, gyro = push - force, gyro - torque
        eye, zero = (
            jnp.broadcast_to(jnp.eye(3, dtype=R.dtype)[None], (n, 3, 3)),
            jnp.zeros((n, 3, 3), R.dtype),
        )
        r, s = skew(reach), skew(moment)
        column = jnp.zeros((n, 3, 1), R.dtype)
        right = _blocks([[eye, -r + c1 * swing, known[:, :, None]], [zero, eye, column]])
        left = _blocks([[eye, zero], [r, eye]])
        mass = chain.mass[:, None, None] * eye
        body = _blocks(
            [
                [mass, -s + c1 * push_slope, push[:, :, None]],
                [s, inertia + c1 * gyro_slope, gyro[:, :, None]],
            ]
        )
        b = self.bends(t, piece_time, R, w)
        stiffness, torque = self._laws(
            t, piece_time, memory, b, turn_ahead, w_ahead, c2, c1, bend, step
        )
        last = jnp.zeros((1, 7), R.dtype).at[0, 6].set(1.0)

        def inwards(Z, x):
            right, left, body, stiffness, torque = x
            X = mm(left, mm(Z, jnp.concatenate([right, last]))) + body
            D = mm(inverse3(stiffness + X[3:, 3:6]), torque[:, None] * last - X[3:])
            return X + mm(X[:, 3:6], D), (X, D)

        start = jnp.zeros((6, 7), R.dtype)
        _, (X, D) = lax.scan(inwards, start, (right, left, body, stiffness, torque), reverse=True)

        def outwards(e, x):
            right, D = x
            turned = e + jnp.concatenate([jnp.zeros(3, e.dtype), mv(D[:, :6], e) + D[:, 6]])
            return mv(right[:, :6], turned) + right[:, 6], turned

        root = jnp.concatenate([-chain.gravity, jnp.zeros(3, R.dtype)])
        _, e = lax.scan(outwards, root, (right, D))
        return e, mv(X[:, :, :6], e) + X[:, :, 6]

    def _laws(self, t, piece_time, memory, b: Bends, turn_ahead, w_ahead, c2, c1, bend, step):
        """Moments on the outboard bodies: torque - stiffness (al_O - al_I), world axes."""
        sites = self.sites
        turn, spin = _across(turn_ahead), _across(w_ahead)
        own = self.joints(t, piece_time, memory, b, bend, step)
        push, ks, cs = self.stops(b)
        tau, kx, kd = (
            sites.spread(x) for x in (own.torque + push, own.of_angle + ks, own.of_rate + cs)
        )
        tau = tau - b.drag  # of_angle takes the free axes only
        bend = b.bend + mv(b.of_bend, turn)
        rate = b.bend_rate + mv(b.of_bend, spin)
        elastic = mv(b.stiffness, bend) + mv(b.damping, rate)
        tau = tau - kx * mv(b.of_angle, turn) - kd * mv(b.of_angle, spin)
        torque = mv(transpose(b.of_angle), tau) - mv(transpose(b.of_bend), elastic)
        soft = mm(transpose(b.of_bend), mm(c2 * b.stiffness + c1 * b.damping, b.of_bend))
        held = (c2 * kx + c1 * kd)[:, :, None] * b.of_angle
        return soft + mm(transpose(b.of_angle), held), torque

    def solve(self, t, y: State, piece_time):
        """(rotations, angular velocities, e, f) of a state."""
        R, w = self.rotations(y.mech.q), y.mech.v.reshape(-1, 3)
        zero, none = jnp.zeros((), w.dtype), jnp.zeros_like(w)
        bend = bend_of(self.series, y.mech)
        return R, w, *self.sweep(t, piece_time, y.memory, R, w, none, none, zero, zero, bend)

    def rate(self, t, y: State, piece_time) -> Mechanical:
        R, w, e, _ = self.solve(t, y, piece_time)
        bend_rate = None
        if self.series.any():
            b, bend = self.bends(t, piece_time, R, w), bend_of(self.series, y.mech)
            bend_rate = self.joints(t, piece_time, y.memory, b, bend).bend_rate
        mech = Mechanical(y.mech.v, e[:, 3:].reshape(-1))
        return with_bend(self.series, mech, bend_rate)

    def relative_rate(self, t, y: State, piece_time, about: State) -> Mechanical:
        """Bodies have absolute rotations: at rest they follow the joints before them, and a
        velocity beside that rotates with its body."""

        def steady(t, q):
            value, rate, _ = self.drive.motion(self.robot, t, piece_time)
            w = jnp.zeros((self.layout.n, 3), q.dtype)
            b = bends(self.chain, self.sites, self.rotations(q), w, value, rate)
            return jnp.cumsum(mv(b.axes, self.sites.spread(rate)), axis=0)

        q = about.mech.q
        w = steady(t, q)
        along = self.ambient(about.mech, moved(about.mech, w.reshape(-1), about.mech.v)).q
        _, change = jax.jvp(steady, (t, q), (jnp.ones_like(t), along))
        beside = jnp.cross(w, y.mech.v.reshape(-1, 3) - w)
        rate = self.rate(t, y, piece_time)
        return moved(rate, rate.q - w.reshape(-1), rate.v - (change + beside).reshape(-1))

    def relaxed(self, t0, t1, y: State, piece_time) -> tuple[State, Array]:
        """The state with which accelerations start in a step from t0 to t1, and the rate of the
        bends in ``y``."""
        series = self.series
        if not series.any():
            return y, jnp.zeros(series.size, y.mech.v.dtype)
        b = self.bends(t0, piece_time, self.rotations(y.mech.q), y.mech.v.reshape(-1, 3))
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        law, bend = self.joint_law(t0, piece_time, y.memory, b), bend_of(series, y.mech)
        rate = joint_torques(law, x, xd, bend).bend_rate
        mech = with_bend(series, y.mech, relaxed_bend(law, x, xd, bend, rate, t1 - t0))
        return State(mech, y.work, y.dissipated, y.memory), rate

    def start(self, t0, t1, y: State, piece_time) -> Carried:
        y, bend_rate = self.relaxed(t0, t1, y, piece_time)
        a = self.rate(t0, y, piece_time).v
        exchange, _ = self.exchange(t0, y, piece_time)
        zero = jnp.zeros((), a.dtype)
        return Carried(a, y.mech.v, jnp.zeros_like(a), zero, bend_rate, exchange)

    def advance(self, t0, t1, y: State, carried: Carried, piece_time, beta, gamma):
        dt = t1 - t0
        v0, a0 = y.mech.v, carried.acceleration
        # Turns of the whole step, in world axes: what the plane has in angles.
        turn, spin = dt * v0 + (0.5 - beta) * dt**2 * a0, v0 + (1 - gamma) * dt * a0
        if self.linearisation == "extrapolated":
            ahead = dt * v0 + 0.5 * dt**2 * a0, v0 + dt * a0
        else:
            bend = carried.bend_ahead(dt)
            slope = carried.slope + 0.5 * (dt + carried.step) * bend
            ahead = dt * slope, slope + 0.5 * dt * bend

        bend = bend_of(self.series, y.mech)
        step = BendStep(dt, bend, carried.joint_bend_rate) if self.series.any() else None

        def once(ahead, _, term=self):
            R, w = self.rotations(self.moved(y.mech.q, ahead[0])), ahead[1].reshape(-1, 3)
            rest = (turn - ahead[0]).reshape(-1, 3), (spin - ahead[1]).reshape(-1, 3)
            c2, c1 = beta * dt**2, gamma * dt
            e, _ = term.sweep(t1, piece_time, y.memory, R, w, *rest, c2, c1, bend, step)
            a1 = e[:, 3:].reshape(-1)
            return (turn + beta * dt**2 * a1, spin + gamma * dt * a1), a1

        each = passes(self, self.passes)
        if each[0] is not self:
            (ahead, _), each = once(ahead, None, each[0]), each[1:]
        (whole, v1), a1 = lax.scan(once, ahead, length=len(each))
        mech = moved(y.mech, self.moved(y.mech.q, whole), v1)
        end = State(mech, y.work, y.dissipated, y.memory)
        new, own = self.exchange(t1, end, piece_time, step)
        mech = with_bend(self.series, mech, own.bend)
        work, lost = new.since(carried.exchange)
        slope = v0 + dt * ((0.5 - beta) * a0 + beta * a1[-1])
        change = 2 * (slope - carried.slope) / (dt + carried.step)
        state = State(mech, y.work + work, y.dissipated + lost, y.memory)
        carried = Carried(a1[-1], slope, change, dt, own.bend_rate, new)
        return state, carried, jnp.asarray(True)

    # --- what follows from the motion
    def efforts(
        self, t, piece_time, memory, b: Bends, bend, step: BendStep | None = None
    ) -> tuple[Array, SeriesTorque]:
        """(D,) efforts of the motors, and the torques at the joints."""
        own = self.joints(t, piece_time, memory, b, bend, step)
        held = mv(transpose(b.axes), -mv(transpose(b.of_bend), b.moment()))
        held = self.sites.gather(held + b.drag) + own.lost
        return jnp.where(self.sites.given, held, own.effort), own

    def exchange(
        self, t, y: State, piece_time, step: BendStep | None = None
    ) -> tuple[Exchange, SeriesTorque]:
        """Of a state, or at the end of ``step``."""
        b = self.bends(t, piece_time, self.rotations(y.mech.q), y.mech.v.reshape(-1, 3))
        effort, own = self.efforts(t, piece_time, y.memory, b, bend_of(self.series, y.mech), step)
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        viscous = mv(b.damping, b.bend_rate).reshape(-1)
        loss = [
            (viscous, b.bend.reshape(-1), b.bend_rate.reshape(-1)),
            (own.lost, x, xd),
            (self.stops(b)[2] * xd, x, xd),
        ]
        gain = [(effort, x, xd)]
        if self.drive.loads:
            force, torque = load_wrenches(self, t, piece_time, self.rotations(y.mech.q))
            position, velocity = self.points(y.mech)
            place, rate = position[:-1].reshape(-1), velocity[:-1].reshape(-1)
            gain.append((force.reshape(-1), place, rate))
            # Torques act along quaternions: M . w = 2 ((0, M) q) . q', smooth however far a body
            # turns.
            on_quat = 4 * self.ambient(y.mech, Mechanical(torque.reshape(-1), y.mech.v)).q
            gain.append((on_quat, y.mech.q, self.ambient(y.mech, Mechanical(y.mech.v, y.mech.v)).q))
        columns = [
            jnp.concatenate([row[k] for row in rows]) for rows in (gain, loss) for k in range(3)
        ]
        return Exchange(*columns), own

    def power(self, t, y: State, piece_time):
        return self.exchange(t, y, piece_time)[0].powers()

    def motor_coordinates(self, y: State):
        zero = jnp.zeros(self.layout.dofs, y.mech.v.dtype)
        w = y.mech.v.reshape(-1, 3)
        free = bends(self.chain, _all_free(self), self.rotations(y.mech.q), w, zero, zero)
        q = self.sites.gather(free.angle) + bend_of(self.series, y.mech)
        return q, self.sites.gather(free.angle_rate)

    def points(self, mech: Mechanical):
        """Positions and velocities (n + 1, 3) of the bodies' inboard points, the last one the
        tip's."""
        reach = mv(self.rotations(mech.q), self.chain.reach)
        swept = jnp.cross(mech.v.reshape(-1, 3), reach)
        return _along(self.chain.offset, reach), _along(jnp.zeros_like(self.chain.offset), swept)

    def energies(self, t, y: State, piece_time) -> tuple[Array, Array, Array]:
        """(kinetic, elastic, gravity)."""
        c, R, w = self.chain, self.rotations(y.mech.q), y.mech.v.reshape(-1, 3)
        position, velocity = self.points(y.mech)
        moment, v = mv(R, c.moment), velocity[:-1]
        inner = mv(transpose(R), w)
        kinetic = 0.5 * jnp.sum(c.mass * jnp.sum(v**2, axis=1)) + 0.5 * jnp.sum(
            inner * mv(c.inertia, inner)
        )
        kinetic = kinetic + jnp.sum(v * jnp.cross(w, moment))
        b = self.bends(t, piece_time, R, w)
        gravity = -jnp.sum((c.mass[:, None] * position[:-1] + moment) * c.gravity[None])
        stops = c.joints.stop_energy(self.sites.gather(b.angle))
        pressed = jnp.sum(jnp.where(self.sites.given, 0.0, stops))
        return kinetic, 0.5 * jnp.sum(b.bend * mv(b.stiffness, b.bend)) + pressed, gravity


def _all_free(term: SpatialTerm) -> Sites:
    return Sites(term.robot, term.layout, np.zeros(term.layout.dofs, bool))


def _across(x):
    """Difference of each body's vector from its parent's; the ground stands still."""
    return x - jnp.concatenate([jnp.zeros((1, 3), x.dtype), x[:-1]])


def _along(start, steps):
    return start[None] + jnp.concatenate([jnp.zeros_like(steps[:1]), jnp.cumsum(steps, axis=0)])


def _blocks(rows):
    return jnp.concatenate([jnp.concatenate(r, axis=2) for r in rows], axis=1)
