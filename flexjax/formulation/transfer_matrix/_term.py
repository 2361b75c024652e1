"""Equations of motion at the acceleration level: Newmark on the angles of the segments, everything
else by one sweep along the chain."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._balance import Exchange, Forces, exchange
from flexjax.formulation.transfer_matrix._chain import Chain, Layout
from flexjax.formulation.transfer_matrix._lanes import Segments, riccati_segments
from flexjax.formulation.transfer_matrix._laws import (
    Ground,
    Kinds,
    Point,
    ground_motion,
    joint_law,
    joint_laws,
    load_wrenches,
    motor_side,
    on_connections,
    targets,
)
from flexjax.formulation.transfer_matrix._series import (
    BendStep,
    SeriesTorque,
    bend_of,
    joint_torques,
    moved,
    passes,
    relaxed_bend,
    series_joints,
    with_bend,
)
from flexjax.formulation.transfer_matrix._sweep import KEPT, SWEEPS, Solution
from flexjax.formulation.transfer_matrix._turns import cos_sin
from flexjax.numerics.term import AbstractChainStepTerm, Mechanical, State
from flexjax.robot import Robot

LINEARISATIONS = ("history", "extrapolated")


class Carried(eqx.Module):
    """What the end of the last step passes on: accelerations of bodies and motors; the mean rates
    of that step and their change since the one before; its length; the rate of the bends of joints
    in series; and the forces through which energy comes and goes."""

    acceleration: Float[Array, " nv"]
    slope: Float[Array, " nv"]
    bend: Float[Array, " nv"]
    step: Float[Array, ""]
    joint_bend_rate: Float[Array, " D"]
    exchange: Exchange

    def bend_ahead(self, dt) -> Array:
        """``bend`` for a step of length ``dt``. A much shorter step before it (a break close to an
        output) had instantaneous accelerations, many times what modes with dt omega > 1 do on
        average: the step would run away."""
        return jnp.minimum(1.0, 2 * self.step / dt) * self.bend


def perp(v):
    """ez x v for vectors (..., 2)."""
    return jnp.stack([-v[..., 1], v[..., 0]], -1)


def cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def turned(th, v):
    """Body vectors (n, 2) in world axes."""
    c, s = jnp.cos(th), jnp.sin(th)
    return jnp.stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1]], -1)


def before(x, first, whole=False):
    """What stands inboard of each connection: ``first`` for the ground, then x of the bodies
    (``whole``: the last one too)."""
    return jnp.concatenate([jnp.asarray(first, x.dtype)[None], x if whole else x[:-1]])


class TransferTerm(AbstractChainStepTerm):
    """Bodies' angles against the world, then motor angles of flexible joints; one drive."""

    robot: Robot
    chain: Chain
    drive: Drive
    layout: Layout = eqx.field(static=True)
    sweep: str = eqx.field(static=True)
    linearisation: str = eqx.field(static=True)
    passes: int = eqx.field(static=True)

    # --- coordinates
    @property
    def kinds(self) -> Kinds:
        return Kinds(self.robot, self.layout, self.drive.prescribed(self.robot))

    @property
    def series(self) -> np.ndarray:
        """(D,) static: joints whose bend is a state."""
        kinds = self.kinds
        soft = self.layout.compliant()[kinds.first]
        return series_joints(self.robot, self.drive, kinds.free, soft)

    def split(self, x) -> tuple[Array, Array]:
        return x[: self.layout.n], x[self.layout.n :]

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return jax.tree_util.tree_map(jnp.add, mech, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return dx

    def ground(self, t, piece_time) -> Ground:
        return ground_motion(self.drive, self.chain, t, piece_time)

    def impose(self, t, piece_time, mech: Mechanical, ground: Ground) -> Mechanical:
        """Prescribed motors and rigidly held bodies as the drive says."""
        kinds, n = self.kinds, self.layout.n
        q, v = mech.q, mech.v
        if kinds.given_motor.any() or kinds.rigid.any():
            target = targets(self, t, piece_time)
        if kinds.given_motor.any():
            of, given = kinds.dof_of_motor, kinds.given_motor[kinds.dof_of_motor]
            q, v = (
                jnp.concatenate([x[:n], jnp.where(given, target[k, of], x[n:])])
                for k, x in enumerate((q, v))
            )
        if kinds.rigid.any():
            leader, inside = kinds.groups
            value, rate, _ = on_connections(self, target, kinds.given_joint)
            held = jnp.where(
                kinds.rigid[None], jnp.stack([value + self.chain.connections.rest, rate]), 0.0
            )
            th, w = self.split(q)[0], self.split(v)[0]
            led = jnp.stack(
                [before(th, ground.angle, True)[leader], before(w, ground.rate, True)[leader]]
            ) + held @ jnp.asarray(inside.T, held.dtype)
            q = jnp.concatenate([jnp.where(kinds.rigid, led[0], th), q[n:]])
            v = jnp.concatenate([jnp.where(kinds.rigid, led[1], w), v[n:]])
        if kinds.idle_motor.any():
            dofs = np.flatnonzero(kinds.idle_motor)
            p = self.point(moved(mech, q, v), ground)
            q, v = (
                q.at[n + kinds.motor[dofs]].set(p.x[kinds.first[dofs]]),
                v.at[n + kinds.motor[dofs]].set(p.xd[kinds.first[dofs]]),
            )
        return moved(mech, q, v)

    def relative(self, x, ground):
        th = self.split(x)[0]
        return th - before(th, ground)

    def point(self, mech: Mechanical, ground: Ground) -> Point:
        """Rotations of the connections from rest, their rates, the motors and the bends of
        joints."""
        return Point(
            self.relative(mech.q, ground.angle) - self.chain.connections.rest,
            self.relative(mech.v, ground.rate),
            self.split(mech.q)[1],
            self.split(mech.v)[1],
            bend_of(self.series, mech),
        )

    # --- dynamics
    def segments(
        self,
        t,
        piece_time,
        memory,
        star: Mechanical,
        predicted: Mechanical,
        ground: Ground,
        c2,
        c1,
        step: BendStep | None = None,
    ):
        """The chain's elements at the configuration ``star``, in the numbers they are made of;
        springs act at ``predicted`` + (c2, c1) times the acceleration, and so does the spin in the
        centrifugal terms, expanded about that of ``star``."""
        b, reach = self.chain.bodies, self.chain.reach
        (th, _), (w, _) = self.split(star.q), self.split(star.v)
        square, gain = w**2, jnp.zeros_like(w)
        if self.linearisation == "history":
            # w^2 with w = predicted + c1 al, without its square in c1: one part known, one in
            # proportion to al.
            square, gain = w * (2 * self.split(predicted.v)[0] - w), 2 * c1 * w
        force = torque = jnp.zeros_like(b.mass)
        force = (force, force)
        if self.drive.loads:
            force, torque = load_wrenches(self, t, piece_time, th)
            force = force[:, 0], force[:, 1]
        # Connections turn by (c2, c1) times their own acceleration, which is less that of the
        # ground.
        below = ground._replace(
            angle=ground.angle - c2 * ground.acceleration,
            rate=ground.rate - c1 * ground.acceleration,
        )
        points = self.point(star, ground), self.point(predicted, below)
        laws = joint_laws(self, t, piece_time, memory, *points, c2, c1, step)
        cos, sin = cos_sin(th)
        seg = Segments(
            cos=cos,
            sin=sin,
            square=square,
            gain=gain,
            reach_x=reach[:, 0],
            reach_y=reach[:, 1],
            moment_x=b.moment[:, 0],
            moment_y=b.moment[:, 1],
            mass=b.mass,
            spin=b.inertia,
            force_x=force[0],
            force_y=force[1],
            load=torque,
            **{
                k: getattr(laws, k)
                for k in ("stiffness", "torque", "free", "given", "coupling", "inertia", "pull")
            },
        )
        return seg, laws

    def solve(
        self, seg: Segments, laws, ground: Ground, known: bool = False
    ) -> tuple[Array, Solution]:
        """Accelerations of bodies and motors. ``known``: no torque depends on them, so that
        connections have no transfer matrices, and the product is replaced by the sweep."""
        root = jnp.concatenate(
            [ground.point_acceleration - self.chain.gravity, ground.acceleration[None]]
        )
        sweep = "riccati" if known and self.sweep == "product" else self.sweep
        with jax.named_scope(f"transfer_matrix_{sweep}"):
            sol = (
                riccati_segments(seg, root)
                if sweep == "riccati"
                else SWEEPS[sweep](seg.elements(), root)
            )
        alpha = sol.e[:, 2]
        return jnp.concatenate([alpha, laws.motor_acceleration(sol.turn, alpha - sol.turn)]), sol

    def accelerate(self, t, y: State, piece_time) -> tuple[Mechanical, Array]:
        """The state as the drive imposes it, and its accelerations: every spring a known moment."""
        ground = self.ground(t, piece_time)
        mech = self.impose(t, piece_time, y.mech, ground)
        zero = jnp.zeros((), mech.q.dtype)
        seg, laws = self.segments(t, piece_time, y.memory, mech, mech, ground, zero, zero)
        return mech, self.solve(seg, laws, ground, known=True)[0]

    def joints(self, t, mech: Mechanical, piece_time, memory) -> tuple[Point, SeriesTorque]:
        """Where the joints are in a state, and their torques."""
        ground = self.ground(t, piece_time)
        p = self.point(mech, ground)
        x, xd = motor_side(self, p, targets(self, t, piece_time))
        return p, joint_torques(joint_law(self, t, piece_time, memory), x, xd, p.bend)

    def rate(self, t, y: State, piece_time) -> Mechanical:
        mech, a = self.accelerate(t, y, piece_time)
        bend_rate = None
        if self.series.any():
            bend_rate = self.joints(t, mech, piece_time, y.memory)[1].bend_rate
        return with_bend(self.series, Mechanical(mech.v, a), bend_rate)

    def held(self, t, dx: Mechanical) -> Mechanical:
        kinds = self.kinds
        motors = (kinds.given_motor | kinds.idle_motor)[kinds.dof_of_motor]
        mask = jnp.asarray(np.concatenate([kinds.rigid, motors]))
        none = np.zeros(self.series.size, bool)
        return with_bend(self.series, Mechanical(mask, mask), none)

    def complete(self, t, mech: Mechanical, piece_time) -> Mechanical:
        return self.impose(t, piece_time, mech, self.ground(t, piece_time))

    def steady(self, t, piece_time) -> tuple[Array, Array]:
        """Rates and accelerations (nv,) of bodies and motors that follow the base and the joints
        which a Motion moves."""
        ground, target = self.ground(t, piece_time), targets(self, t, piece_time)
        relative = on_connections(self, target, self.kinds.given)
        motors = jnp.where(self.kinds.given, target, 0.0)[:, self.kinds.dof_of_motor]
        rate, acc = (
            jnp.concatenate([base + jnp.cumsum(relative[k]), motors[k]])
            for k, base in ((1, ground.rate), (2, ground.acceleration))
        )
        return rate, acc

    def relative_rate(self, t, y: State, piece_time, about: State) -> Mechanical:
        """Bodies have absolute angles: at rest they follow the base and the joints before them."""
        rate, (v, a) = self.rate(t, y, piece_time), self.steady(t, piece_time)
        return moved(rate, rate.q - v, rate.v - a)

    def imbalance(self, t, y: State, piece_time) -> Mechanical:
        """Torques on connections and motors beyond those that steady motion takes."""
        ground, (v, a) = self.ground(t, piece_time), self.steady(t, piece_time)
        mech = self.impose(t, piece_time, y.mech, ground)
        p, zero = self.point(mech, ground), jnp.zeros((), mech.q.dtype)
        laws = joint_laws(self, t, piece_time, y.memory, p, p, zero, zero)
        needed = self.forces(t, piece_time, mech, a, ground, jnp.zeros_like).n
        torque = jnp.concatenate([laws.torque - needed, laws.motors[1]])
        bend_rate = self.joints(t, mech, piece_time, y.memory)[1].bend_rate
        return with_bend(self.series, Mechanical(mech.v - v, torque), bend_rate)

    def relaxed(self, t0, t1, y: State, piece_time) -> tuple[State, Array]:
        """The state with which accelerations start in a step from t0 to t1, and the rate of the
        bends in ``y``."""
        series = self.series
        if not series.any():
            return y, jnp.zeros(series.size, y.mech.v.dtype)
        mech = self.impose(t0, piece_time, y.mech, self.ground(t0, piece_time))
        p, own = self.joints(t0, mech, piece_time, y.memory)
        x, xd = motor_side(self, p, targets(self, t0, piece_time))
        law = joint_law(self, t0, piece_time, y.memory)
        bend = relaxed_bend(law, x, xd, p.bend, own.bend_rate, t1 - t0)
        mech = with_bend(series, y.mech, bend)
        return State(mech, y.work, y.dissipated, y.memory), own.bend_rate

    def start(self, t0, t1, y: State, piece_time) -> Carried:
        y, bend_rate = self.relaxed(t0, t1, y, piece_time)
        mech, a = self.accelerate(t0, y, piece_time)
        zero = jnp.zeros((), a.dtype)
        exchange = self.exchange(t0, mech, a, piece_time, y.memory)[0]
        return Carried(a, mech.v, jnp.zeros_like(a), zero, bend_rate, exchange)

    def ahead(self, mech: Mechanical, carried: Carried, dt) -> Mechanical:
        """A first guess at the end of the step, where the geometry is taken.

        "extrapolated": from rates and accelerations. Of a mode with dt omega > 1 the latter are
        many times the angles that the step will give, and chains whose segments are short or whose
        bodies are light run away. "history": from the angles of the last steps, as small in such
        modes as the angles are."""
        if self.linearisation == "extrapolated":
            a = carried.acceleration
            return moved(mech, mech.q + dt * mech.v + 0.5 * dt**2 * a, mech.v + dt * a)
        bend = carried.bend_ahead(dt)
        slope = (
            carried.slope + 0.5 * (dt + carried.step) * bend
        )  # the mean rate of the step to come
        return moved(mech, mech.q + dt * slope, slope + 0.5 * dt * bend)

    def advance(self, t0, t1, y: State, carried: Carried, piece_time, beta, gamma):
        # Of a step reverse mode stores where it began and its sweeps: storing and reading some
        # seventy small arrays takes longer than computing them again (gradient of the metal link
        # 2.5 instead of 2.9 simulations).
        policy = jax.checkpoint_policies.save_only_these_names(KEPT)
        step = jax.checkpoint(lambda *x: self._advance(*x), policy=policy, prevent_cse=False)
        return step(t0, t1, y, carried, piece_time, beta, gamma)

    def _advance(self, t0, t1, y: State, carried: Carried, piece_time, beta, gamma):
        dt = t1 - t0
        q0, v0, a0 = y.mech.q, y.mech.v, carried.acceleration
        ground = self.ground(t1, piece_time)
        star = self.impose(t1, piece_time, self.ahead(y.mech, carried, dt), ground)
        predicted = moved(
            y.mech, q0 + dt * v0 + (0.5 - beta) * dt**2 * a0, v0 + (1 - gamma) * dt * a0
        )
        step = self.bend_step(y.mech, carried, dt)
        mech = star
        # Copies: a loop of two takes longer to compile, and stores what reverse mode needs twice.
        for term in passes(self, self.passes):
            seg, laws = term.segments(
                t1, piece_time, y.memory, mech, predicted, ground, beta * dt**2, gamma * dt, step
            )
            a1, _ = self.solve(seg, laws, ground)
            mech = moved(mech, predicted.q + beta * dt**2 * a1, predicted.v + gamma * dt * a1)
            mech = self.impose(t1, piece_time, mech, ground)
        return self.finish(t1, y, carried, piece_time, beta, dt, mech, a1, mech)

    def bend_step(self, mech: Mechanical, carried: Carried, dt) -> BendStep | None:
        """The bends of joints in series at the begin of a step, if there are any."""
        if not self.series.any():
            return None
        return BendStep(dt, bend_of(self.series, mech), carried.joint_bend_rate)

    def finish(self, t1, y: State, carried: Carried, piece_time, beta, dt, mech, a1, small):
        """The new state ``mech`` with the energies exchanged in the step, and what it passes on;
        ``small``: its angles alone."""
        n = small.q.shape[0]
        step = self.bend_step(y.mech, carried, dt)
        new, own = self.exchange(t1, small, a1[:n], piece_time, y.memory, step)
        mech = with_bend(self.series, mech, own.bend)
        work, lost = new.since(carried.exchange)
        slope = y.mech.v + dt * ((0.5 - beta) * carried.acceleration + beta * a1)
        bend = 2 * (slope - carried.slope) / (dt + carried.step)
        state = State(mech, y.work + work, y.dissipated + lost, y.memory)
        return state, Carried(a1, slope, bend, dt, own.bend_rate, new), jnp.asarray(True)

    # --- what follows from the motion
    def points(self, mech: Mechanical, ground: Ground) -> tuple[Array, Array, Array]:
        """Positions, velocities of the bodies' inboard points (n + 1, 2; the last one the tip's),
        and the levers in world axes."""
        (th, _), (w, _) = self.split(mech.q), self.split(mech.v)
        reach = turned(th, self.chain.reach)
        return (
            _along(ground.point, reach),
            _along(ground.point_velocity, w[:, None] * perp(reach)),
            reach,
        )

    def forces(
        self, t, piece_time, mech: Mechanical, a, ground: Ground, rotor_acceleration
    ) -> Forces:
        """Inverse dynamics at given accelerations, by sums along the chain."""
        b = self.chain.bodies
        (th, _), (w, _), (alpha, _) = self.split(mech.q), self.split(mech.v), self.split(a)
        reach, moment = turned(th, self.chain.reach), turned(th, b.moment)
        force, torque = load_wrenches(self, t, piece_time, th)
        acc = _along(
            ground.point_acceleration - self.chain.gravity,
            alpha[:, None] * perp(reach) - (w**2)[:, None] * reach,
        )[:-1]
        own = (
            b.mass[:, None] * acc + alpha[:, None] * perp(moment) - (w**2)[:, None] * moment - force
        )
        q = jnp.cumsum(own[::-1], axis=0)[::-1]
        behind = jnp.concatenate([q[1:], jnp.zeros((1, 2), q.dtype)])
        rotor = rotor_acceleration(before(alpha, ground.acceleration))
        n_own = b.inertia * alpha + cross(moment, acc) - torque + cross(reach, behind)
        n_own = n_own + jnp.concatenate([rotor[1:], jnp.zeros(1, q.dtype)])
        n = jnp.cumsum(n_own[::-1])[::-1]
        return Forces(q, n, n + rotor, acc)

    def exchange(self, t, mech: Mechanical, a, piece_time, memory, step: BendStep | None = None):
        """(Exchange, SeriesTorque) of a state, or at the end of ``step``."""
        return exchange(self, t, mech, a, piece_time, memory, step)

    def power(self, t, y: State, piece_time):
        mech, a = self.accelerate(t, y, piece_time)
        return self.exchange(t, mech, a, piece_time, y.memory)[0].powers()

    def motor_coordinates(self, y: State):
        """Motor-side coordinates as the state alone tells them: a joint that a Motion holds is seen
        through its half springs."""
        kinds = self.kinds
        zero = jnp.zeros((), y.mech.q.dtype)
        at = np.where(kinds.motor >= 0, self.layout.n + kinds.motor, kinds.first)
        x, xd = (
            self.relative(y.mech.q, zero) - self.chain.connections.rest,
            self.relative(y.mech.v, zero),
        )
        q = jnp.concatenate([x, self.split(y.mech.q)[1]])[at] + bend_of(self.series, y.mech)
        return q, jnp.concatenate([xd, self.split(y.mech.v)[1]])[at]


def _along(start, steps):
    return start[None] + jnp.concatenate([jnp.zeros_like(steps[:1]), jnp.cumsum(steps, axis=0)])
