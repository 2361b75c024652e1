"""The acceleration level in space: thirteen numbers at a cut [a, alpha, force, moment, 1], one sweep with 6 x 6
matrices.

Rotations of the segments are unit quaternions, moved by rotation vectors in world axes; no angles are added.
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
from flexjax.formulation.transfer_matrix._laws import Series, has_lag, in_series, stop_torque
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
        return Mechanical(self.moved(mech.q, dx.q), mech.v + dx.v)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        spin = jnp.concatenate(
            [jnp.zeros((self.layout.n, 1), dx.q.dtype), dx.q.reshape(-1, 3)], axis=1
        )
        return Mechanical(
            0.5 * jax.vmap(se3.quat_multiply)(spin, mech.q.reshape(-1, 4)).reshape(-1), dx.v
        )

    def bends(self, t, args, R, w) -> Bends:
        value, rate, _ = self.drive.motion(self.robot, t, args)
        return bends(self.chain, self.sites, R, w, value, rate)

    # --- dynamics
    def stops(self, b: Bends) -> tuple[Array, Array, Array]:
        """(D,) torque of the end stops, its slopes (taken positive) in angle and rate; none where a Motion holds."""
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        torque, by_angle, by_rate = (
            jnp.where(self.sites.given, 0.0, z) for z in stop_torque(self.chain.joints, x, xd)
        )
        return torque, by_angle, by_rate

    @property
    def has_lag(self) -> bool:
        return has_lag(self.robot, self.drive, ~self.sites.given, True)

    def own_effort(self, t, args, memory, b: Bends, lag=None) -> Series:
        """Of drive, dampers and friction at the joints."""
        c, sites = self.chain, self.sites
        x, xd = sites.gather(b.angle), sites.gather(b.angle_rate)
        losses = c.damping, c.joints
        return in_series(
            self.drive, self.robot, t, args, memory, x, xd, sites.gather(b.give), losses, lag
        )

    def sweep(self, t, args, memory, R, w, turn_ahead, w_ahead, c2, c1, lag=None):
        """(e (n, 6) of the bodies' inboard points, f (n, 6) on the bodies there) at rotations R and angular velocities
        w. The motion to find lies ``turn_ahead`` + c2 alpha and ``w_ahead`` + c1 alpha from these (n, 3)."""
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
        force, torque = load_wrenches(self, t, args, R)
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
        b = self.bends(t, args, R, w)
        stiffness, torque = self._laws(t, args, memory, b, turn_ahead, w_ahead, c2, c1, lag)
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

    def _laws(self, t, args, memory, b: Bends, turn_ahead, w_ahead, c2, c1, lag):
        """Moments on the outboard bodies: torque - stiffness (al_O - al_I), world axes."""
        sites = self.sites
        turn, spin = _across(turn_ahead), _across(w_ahead)
        own = self.own_effort(t, args, memory, b, lag)
        push, ks, cs = self.stops(b)
        tau, kx, kd = (
            sites.spread(x)
            for x in (own.effort - own.lost + push, own.of_angle + ks, own.of_rate + cs)
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

    def solve(self, t, y: State, args):
        """(rotations, angular velocities, e, f) of a state."""
        R, w = self.rotations(y.mech.q), y.mech.v.reshape(-1, 3)
        zero = jnp.zeros((), w.dtype)
        return (
            R,
            w,
            *self.sweep(t, args, y.memory, R, w, jnp.zeros_like(w), jnp.zeros_like(w), zero, zero),
        )

    def rate(self, t, y: State, args) -> Mechanical:
        return Mechanical(y.mech.v, self.solve(t, y, args)[2][:, 3:].reshape(-1))

    def start(self, t, y: State, args) -> Carried:
        a = self.rate(t, y, args).v
        exchange = self.exchange(t, y, args)
        return Carried(a, y.mech.v, jnp.zeros_like(a), jnp.zeros((), a.dtype), exchange)

    def advance(self, t0, t1, y: State, carried: Carried, args, beta, gamma):
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

        lag = carried.lag(dt)

        def once(ahead, _):
            R, w = self.rotations(self.moved(y.mech.q, ahead[0])), ahead[1].reshape(-1, 3)
            rest = (turn - ahead[0]).reshape(-1, 3), (spin - ahead[1]).reshape(-1, 3)
            e, _ = self.sweep(t1, args, y.memory, R, w, *rest, beta * dt**2, gamma * dt, lag)
            a1 = e[:, 3:].reshape(-1)
            return (turn + beta * dt**2 * a1, spin + gamma * dt * a1), a1

        (whole, v1), a1 = lax.scan(once, ahead, length=self.passes)
        mech = Mechanical(self.moved(y.mech.q, whole), v1)
        new = self.exchange(t1, State(mech, y.work, y.dissipated, y.memory), args, lag)
        work, lost = new.since(carried.exchange)
        slope = v0 + dt * ((0.5 - beta) * a0 + beta * a1[-1])
        bend = 2 * (slope - carried.slope) / (dt + carried.step)
        state = State(mech, y.work + work, y.dissipated + lost, y.memory)
        return state, Carried(a1[-1], slope, bend, dt, new), jnp.asarray(True)

    # --- what follows from the motion
    def efforts(self, t, args, memory, b: Bends, lag=None) -> tuple[Array, Array]:
        """(D,) efforts of the motors, and what dampers and friction take of them."""
        effort, lost, _, _ = self.own_effort(t, args, memory, b, lag)
        held = mv(transpose(b.axes), -mv(transpose(b.of_bend), b.moment()))
        return jnp.where(self.sites.given, self.sites.gather(held + b.drag) + lost, effort), lost

    def exchange(self, t, y: State, args, lag=None) -> Exchange:
        b = self.bends(t, args, self.rotations(y.mech.q), y.mech.v.reshape(-1, 3))
        effort, lost = self.efforts(t, args, y.memory, b, lag)
        x, xd = self.sites.gather(b.angle), self.sites.gather(b.angle_rate)
        viscous = mv(b.damping, b.bend_rate).reshape(-1)
        loss = [
            (viscous, b.bend.reshape(-1), b.bend_rate.reshape(-1)),
            (lost, x, xd),
            (self.stops(b)[2] * xd, x, xd),
        ]
        gain = [(effort, x, xd)]
        if self.drive.loads:
            force, torque = load_wrenches(self, t, args, self.rotations(y.mech.q))
            position, velocity = self.points(y.mech)
            gain.append(tuple(z.reshape(-1) for z in (force, position[:-1], velocity[:-1])))
            # Torques act along quaternions: M . w = 2 ((0, M) q) . q', smooth however far a body turns.
            on_quat = 4 * self.ambient(y.mech, Mechanical(torque.reshape(-1), y.mech.v)).q
            gain.append((on_quat, y.mech.q, self.ambient(y.mech, Mechanical(y.mech.v, y.mech.v)).q))
        columns = [
            jnp.concatenate([row[k] for row in rows]) for rows in (gain, loss) for k in range(3)
        ]
        torque = jnp.where(self.sites.given, 0.0, effort - lost)
        place = x + self.sites.gather(b.give) * torque
        joint = (
            jnp.stack([place, xd if lag is None else lag.at(place)])
            if self.has_lag
            else jnp.zeros(0, x.dtype)
        )
        return Exchange(*columns, joint)

    def power(self, t, y: State, args):
        return self.exchange(t, y, args).powers()

    def motor_coordinates(self, y: State):
        zero = jnp.zeros(self.layout.dofs, y.mech.v.dtype)
        w = y.mech.v.reshape(-1, 3)
        free = bends(self.chain, _all_free(self), self.rotations(y.mech.q), w, zero, zero)
        return self.sites.gather(free.angle), self.sites.gather(free.angle_rate)

    def points(self, mech: Mechanical):
        """Positions and velocities (n + 1, 3) of the bodies' inboard points, the last one the tip's."""
        reach = mv(self.rotations(mech.q), self.chain.reach)
        swept = jnp.cross(mech.v.reshape(-1, 3), reach)
        return _along(self.chain.offset, reach), _along(jnp.zeros_like(self.chain.offset), swept)

    def energies(self, t, y: State, args) -> tuple[Array, Array, Array]:
        """(kinetic, elastic, gravity)."""
        c, R, w = self.chain, self.rotations(y.mech.q), y.mech.v.reshape(-1, 3)
        position, velocity = self.points(y.mech)
        moment, v = mv(R, c.moment), velocity[:-1]
        inner = mv(transpose(R), w)
        kinetic = 0.5 * jnp.sum(c.mass * jnp.sum(v**2, axis=1)) + 0.5 * jnp.sum(
            inner * mv(c.inertia, inner)
        )
        kinetic = kinetic + jnp.sum(v * jnp.cross(w, moment))
        b = self.bends(t, args, R, w)
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
