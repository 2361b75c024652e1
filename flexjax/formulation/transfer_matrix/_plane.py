"""Planar chains: angles of the bodies, motors of flexible joints, and a moving base."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._chain import (
    AbstractTransferTerm,
    Carried,
    Efforts,
    Forces,
    Ground,
    Instant,
    Rates,
)
from flexjax.formulation.transfer_matrix._connections import (
    ConnectionLaws,
    Point,
    connection_laws,
    link_acceleration,
    link_side,
    motor_side,
    output_torque,
    springs,
    stop_torque,
)
from flexjax.formulation.transfer_matrix._layout import ConnectionMasks
from flexjax.formulation.transfer_matrix._link import Chain, PlanarConnections, before, rise
from flexjax.formulation.transfer_matrix._observe import Readings
from flexjax.formulation.transfer_matrix._series import (
    JointHistory,
    JointLaw,
    deflection_of,
    joint_torques,
    moved,
    with_deflection,
)
from flexjax.formulation.transfer_matrix.sweep import (
    KEPT,
    SWEEPS,
    Segments,
    Solution,
    cos_sin,
    riccati_segments,
)
from flexjax.mechanism import Sides, Start
from flexjax.numerics.screw import Plane, along
from flexjax.numerics.term import Mechanical, State


def ground_motion(drive: Drive, chain: Chain, t: ScalarLike, piece_time: PieceTime) -> Ground:
    """Motion of the base."""
    zero, none = jnp.zeros((), chain.gravity.dtype), jnp.zeros(2, chain.gravity.dtype)
    base = drive.base
    if base is None:
        return Ground(zero, zero, zero, chain.offset, none, none)
    x, v, a = none, none, none
    angle, rate, acc = zero, zero, zero
    if base.translation is not None:
        x, v, a = (z[:2] for z in base.translation.evaluate(t, piece_time))
    if base.angle is not None:
        sense = base.axis[2] / jnp.linalg.norm(base.axis)
        angle, rate, acc = (sense * z for z in base.angle.evaluate(t, piece_time))
    o = Plane.rotate(angle, chain.offset)
    across = Plane.cross(jnp.ones_like(angle), o)
    return Ground(angle, rate, acc, x + o, v + rate * across, a + acc * across - rate**2 * o)


class PlanarTerm(AbstractTransferTerm):
    """q: angles of the bodies in world axes, then motor angles of flexible joints."""

    space: ClassVar = Plane
    unroll: ClassVar = True  # a loop of two compiles longer and stores more for reverse mode

    # --- coordinates
    @property
    def masks(self) -> ConnectionMasks:
        assert isinstance(self.tables, ConnectionMasks)
        return self.tables

    @property
    def connections(self) -> PlanarConnections:
        assert isinstance(self.chain.connections, PlanarConnections)
        return self.chain.connections

    def split(self, x: Array) -> tuple[Array, Array]:
        """Bodies and motors."""
        return x[: self.layout.n], x[self.layout.n :]

    def bodies(self, mech: Mechanical) -> tuple[Array, Array]:
        return self.split(mech.q)[0], self.split(mech.v)[0]

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return jax.tree_util.tree_map(jnp.add, mech, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return dx

    def ground(self, t: ScalarLike, piece_time: PieceTime) -> Ground:
        return ground_motion(self.drive, self.chain, t, piece_time)

    def impose(self, at: Instant, mech: Mechanical) -> Mechanical:
        """Prescribed motors and rigidly held bodies as in the drive."""
        masks, n = self.masks, self.layout.n
        q, v, target, ground = mech.q, mech.v, at.target, at.ground
        if masks.given_motor.any():
            of, given = masks.dof_of_motor, masks.given_motor[masks.dof_of_motor]
            q, v = (
                jnp.concatenate([x[:n], jnp.where(given, target[k, of], x[n:])])
                for k, x in enumerate((q, v))
            )
        if masks.rigid.any():
            leader, inside = masks.groups
            value, rate, _ = masks.to_connections(target, masks.given_joint)
            held = jnp.stack([value + self.connections.rest, rate])
            held = jnp.where(masks.rigid[None], held, 0.0)
            th, w = self.split(q)[0], self.split(v)[0]
            leading = jnp.stack(
                [before(th, ground.orientation, True), before(w, ground.rate, True)]
            )
            led = leading[:, leader] + held @ jnp.asarray(inside.T, held.dtype)
            q = jnp.concatenate([jnp.where(masks.rigid, led[0], th), q[n:]])
            v = jnp.concatenate([jnp.where(masks.rigid, led[1], w), v[n:]])
        if masks.idle_motor.any():
            dofs = np.flatnonzero(masks.idle_motor)
            p = self.point(moved(mech, q, v), ground)
            q = q.at[n + masks.motor[dofs]].set(p.x[masks.first[dofs]])
            v = v.at[n + masks.motor[dofs]].set(p.xd[masks.first[dofs]])
        return moved(mech, q, v)

    def placed(self, at: Instant, mech: Mechanical, rotation: Rates, rate: Rates) -> Mechanical:
        return self.impose(at, moved(mech, mech.q + rotation, rate))

    def complete(self, t: ScalarLike, mech: Mechanical, piece_time: PieceTime) -> Mechanical:
        return self.impose(self.instant(t, piece_time), mech)

    def held(self, t: ScalarLike, dx: Mechanical) -> Mechanical:
        masks = self.masks
        motors = (masks.given_motor | masks.idle_motor)[masks.dof_of_motor]
        mask = jnp.asarray(np.concatenate([masks.rigid, motors]))
        return with_deflection(
            self.series, Mechanical(mask, mask), np.zeros(self.series.size, bool)
        )

    def relative(self, x: Array, ground: Array) -> Float[Array, " n"]:
        """Differences across the connections."""
        th = self.split(x)[0]
        return th - before(th, ground)

    def point(self, mech: Mechanical, ground: Ground) -> Point:
        """Rotations of the connections from rest, motors and deflections beside joints."""
        return Point(
            self.relative(mech.q, ground.orientation) - self.connections.rest,
            self.relative(mech.v, ground.rate),
            self.split(mech.q)[1],
            self.split(mech.v)[1],
            deflection_of(self.series, mech),
        )

    def motor_coordinates(self, y: State) -> tuple[Array, Array]:
        """Motor-side coordinates as they follow from the state alone: the half springs deflect a
        joint that a Motion holds."""
        masks, zero = self.masks, jnp.zeros((), y.mech.q.dtype)
        at = np.where(masks.flexible, self.layout.n + masks.motor, masks.first)
        x, xd = self.relative(y.mech.q, zero) - self.connections.rest, self.relative(y.mech.v, zero)
        q = jnp.concatenate([x, self.split(y.mech.q)[1]])[at]
        qd = jnp.concatenate([xd, self.split(y.mech.v)[1]])[at]
        return q + deflection_of(self.series, y.mech), qd

    def joint_sides(self, at: Instant, mech: Mechanical) -> tuple[Sides, Sides]:
        motors = super().joint_sides(at, mech)
        if not self.masks.flexible.any():
            return motors
        links = link_side(self, self.point(mech, at.ground), at.target)
        on = self.masks.flexible
        x, xd = ((jnp.where(on, z, m), m) for z, (_, m) in zip(links, motors, strict=True))
        return x, xd

    def initial(self, at: Instant, start: Start) -> Mechanical:
        """Links and joints as in ``start``; prescribed joints as in the drive."""
        layout, masks, ground = self.layout, self.masks, at.ground
        q, qd, motor, motor_rate = self.start_coordinates(at, start)
        deflected = deflected_rate = jnp.zeros(layout.n, q.dtype)
        shapes = self.shapes(start)
        for s in layout.spans:
            if s.link in shapes:
                length = self.robot.links[s.link].length
                angle, rate = shapes[s.link].push(
                    lambda curve, s=s, length=length: jnp.diff(
                        jnp.arcsin(rise(curve, s.count, length)[0]), prepend=0.0
                    )
                )
                # The last is between the last segment and the tip: it rotates the next link.
                last = min(s.start + s.count + 1, layout.n)
                deflected = deflected.at[s.start : last].add(angle[: last - s.start])
                deflected_rate = deflected_rate.at[s.start : last].add(rate[: last - s.start])
        rotation = self.connections.rest + masks.to_connections(q) + deflected
        spin = masks.to_connections(qd) + deflected_rate
        of = masks.dof_of_motor
        mech = Mechanical(
            jnp.concatenate([ground.orientation + jnp.cumsum(rotation), motor[of]]),
            jnp.concatenate([ground.rate + jnp.cumsum(spin), motor_rate[of]]),
        )
        # The joint is where the start places it; the bodies beside it have rotated further.
        mech = with_deflection(self.series, mech, -deflected[masks.first])
        return self.impose(at, mech)

    # --- dynamics
    def joint_law(self, at: Instant) -> JointLaw:
        own, first = self.connections, self.masks.first
        halves = (own.compliance[first], own.compliance_times_lag[first])
        return self.law(at, *halves)

    def joint_state(self, at: Instant, mech: Mechanical) -> tuple[JointLaw, Array, Array]:
        x, xd = motor_side(self.masks, self.point(mech, at.ground), at.target)
        return self.joint_law(at), x, xd

    def segments(
        self,
        at: Instant,
        star: Mechanical,
        predicted: Mechanical,
        c2: Scalar,
        c1: Scalar,
        history: JointHistory | None = None,
    ) -> tuple[Segments, ConnectionLaws]:
        """Parameters of the elements at the configuration ``star``.

        Springs act at ``predicted`` plus (c2, c1) times the acceleration. So does the angular
        velocity in the centrifugal terms, expanded about that of ``star``.
        """
        b = self.chain.bodies
        th, w = self.bodies(star)
        square, gain = w**2, jnp.zeros_like(w)
        if self.linearisation == "history":
            # w^2 with w = predicted + c1 al, without the square of c1: a known part, and one in
            # proportion to al.
            square, gain = w * (2 * self.split(predicted.v)[0] - w), 2 * c1 * w
        force, torque = jnp.zeros((2, th.shape[0]), th.dtype), jnp.zeros_like(th)
        if self.drive.loads:
            force, torque = self.load_wrenches(at, th)
            force = force.T
        # Connections rotate by (c2, c1) times their own acceleration, without that of the ground.
        below = at.before(c2, c1).ground
        points = self.point(star, at.ground), self.point(predicted, below)
        laws = connection_laws(self, at, *points, c2, c1, history)
        cos, sin = cos_sin(th)
        segments = Segments(
            cos=cos,
            sin=sin,
            square=square,
            gain=gain,
            reach_x=b.reach[:, 0],
            reach_y=b.reach[:, 1],
            moment_x=b.moment[:, 0],
            moment_y=b.moment[:, 1],
            mass=b.mass,
            rotary=b.inertia,
            force_x=force[0],
            force_y=force[1],
            load=torque,
            **laws.elements(),
        )
        return segments, laws

    def solve(
        self, segments: Segments, laws: ConnectionLaws, ground: Ground, known: bool = False
    ) -> tuple[Array, Solution]:
        """Accelerations of bodies and motors.

        ``known``: no torque depends on them, so connections have no transfer matrices, and the
        sweep replaces the product.
        """
        point = ground.point_acceleration - self.chain.gravity
        root = jnp.concatenate([point, ground.acceleration[None]])
        sweep = "riccati" if known and self.sweep == "product" else self.sweep
        with jax.named_scope(f"transfer_matrix_{sweep}"):
            if sweep == "riccati":
                sol = riccati_segments(segments, root)
            else:
                sol = SWEEPS[sweep](segments.elements(), root)
        alpha = sol.e[:, 2]
        motors = laws.motor_acceleration(sol.rotation, alpha - sol.rotation)
        return jnp.concatenate([alpha, motors]), sol

    def implicit(
        self,
        at: Instant,
        mech: Mechanical,
        guess: tuple[Rates, Rates],
        predicted: tuple[Rates, Rates],
        c2: Scalar,
        c1: Scalar,
        history: JointHistory | None,
    ) -> Rates:
        star = self.placed(at, mech, *guess)
        ahead = moved(mech, mech.q + predicted[0], predicted[1])
        if self.masks.given.any() or self.drive.base is not None:
            # Newmark's rule leaves prescribed bodies dt^3 / 12 times the third derivative of their
            # rotation off, which the stiff springs beside them would see.
            ahead = self.impose(at.before(c2, c1), ahead)
        return self.solve(*self.segments(at, star, ahead, c2, c1, history), at.ground)[0]

    def advance(self, *args: Any) -> tuple[State, Carried, Array]:
        # Reverse mode stores the start of a step and its sweeps. Storing and reading some seventy
        # small arrays takes longer than computing them again.
        policy = jax.checkpoint_policies.save_only_these_names(KEPT)
        step = jax.checkpoint(super().advance, policy=policy, prevent_cse=False)
        return step(*args)

    def accelerate(self, at: Instant, mech: Mechanical) -> tuple[Mechanical, Rates]:
        mech, zero = self.impose(at, mech), jnp.zeros((), mech.q.dtype)
        # Every spring is a known moment.
        return mech, self.solve(*self.segments(at, mech, mech, zero, zero), at.ground, known=True)[
            0
        ]

    def steady(self, at: Instant) -> tuple[Rates, Rates]:
        """Rates and accelerations (nv,) of bodies and motors that follow the base and the joints
        that a Motion moves."""
        masks = self.masks
        ground, target = at.ground, at.target
        relative = masks.to_connections(target, masks.given)
        motors = jnp.where(masks.given[None], target, 0.0)[:, masks.dof_of_motor]
        rate, acc = (
            jnp.concatenate([base + jnp.cumsum(relative[k]), motors[k]])
            for k, base in ((1, ground.rate), (2, ground.acceleration))
        )
        return rate, acc

    def relative_rate(
        self, t: ScalarLike, y: State, piece_time: PieceTime, about: State
    ) -> Mechanical:
        """Angles are absolute: at rest they follow the base and the joints before them."""
        rate, (v, a) = self.rate(t, y, piece_time), self.steady(self.instant(t, piece_time))
        return moved(rate, rate.q - v, rate.v - a)

    def imbalance(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        """Torques on connections and motors beyond those that steady motion takes."""
        at = self.instant(t, piece_time, y.memory)
        (v, a), mech = self.steady(at), self.impose(at, y.mech)
        p, zero = self.point(mech, at.ground), jnp.zeros((), y.mech.q.dtype)
        laws = connection_laws(self, at, p, p, zero, zero)
        torque = jnp.concatenate([laws.torque - self.forces(at, mech, a).torque, laws.motors[1]])
        rate = self.joints(at, mech).deflection_rate
        return with_deflection(self.series, Mechanical(mech.v - v, torque), rate)

    # --- torques and energies
    def forces(
        self, at: Instant, mech: Mechanical, a: Rates, motors: Float[Array, " D"] | None = None
    ) -> Forces:
        """Inverse dynamics at given accelerations, by sums along the chain; ``motors``:
        accelerations of the motor-side coordinates, to include the rotors."""
        b, (th, w), alpha = self.chain.bodies, self.bodies(mech), self.split(a)[0]
        reach, moment = Plane.rotate(th, b.reach), Plane.rotate(th, b.moment)
        force, torque = self.load_wrenches(at, th)
        ground = at.ground

        def acceleration(r):
            return Plane.cross(alpha, r) - (w**2)[:, None] * r

        acc = along(ground.point_acceleration - self.chain.gravity, acceleration(reach))[:-1]
        own = b.mass[:, None] * acc + acceleration(moment) - force
        q = jnp.cumsum(own[::-1], axis=0)[::-1]
        behind = jnp.concatenate([q[1:], jnp.zeros((1, 2), q.dtype)])
        n_own = b.inertia * alpha + Plane.moment(moment, acc) - torque + Plane.moment(reach, behind)
        rotor = self.rotor_torque(motors, before(alpha, ground.acceleration))
        n_own = n_own + jnp.concatenate([rotor[1:], jnp.zeros(1, q.dtype)])
        n = jnp.cumsum(n_own[::-1])[::-1]
        return Forces(q, n, n + rotor, acc)

    def rotor_torque(self, motors: Array | None, parent: Float[Array, " n"]) -> Float[Array, " n"]:
        """Torque of the rotors on their parents, whose angular accelerations are ``parent``."""
        masks, hardware = self.masks, self.chain.hardware
        if motors is None or not masks.rotor.any():
            return jnp.zeros_like(parent)
        torque = hardware.rotor * (parent[masks.first] + hardware.gear * motors)
        return masks.to_connections(torque, masks.rotor)

    def motor_accelerations(self, at: Instant, a: Rates) -> Float[Array, " D"]:
        """Accelerations of the motor-side coordinates."""
        masks, motors = self.masks, self.split(a)[1]
        x = self.relative(a, at.ground.acceleration)[masks.first]
        if masks.dof_of_motor.size:
            x = jnp.where(masks.flexible, motors[np.maximum(masks.motor, 0)], x)
        return jnp.where(masks.given, at.target[2], x)

    def efforts(
        self,
        at: Instant,
        mech: Mechanical,
        a: Rates,
        history: JointHistory | None = None,
        forces: bool = False,
    ) -> Efforts:
        masks, hardware = self.masks, self.chain.hardware
        ground, target = at.ground, at.target
        p = self.point(mech, ground)
        sp = springs(self, p, target, at.memory)
        n = sp.elastic + sp.viscous
        motors = self.motor_accelerations(at, a)
        inverse = None
        # Where a connection is rigid, only the inverse dynamics gives its torque.
        if forces or masks.rigid[masks.first[masks.given_joint]].any():
            inverse = self.forces(at, mech, a, motors)
            n = jnp.where(masks.rigid, inverse.torque, n)
        x, xd = motor_side(masks, p, target)
        law = self.joint_law(at)
        own = joint_torques(law, x, xd, p.deflection, history)
        effort = n[masks.first] + own.resistance
        if masks.rotor.any():
            parent = before(self.split(a)[0], ground.acceleration)
            effort = effort + hardware.gear * self.rotor_torque(motors, parent)[masks.first]
        if not masks.given.all():
            effort = jnp.where(masks.given, effort, own.effort)
        stops = None
        if masks.stops.any() or hardware.output is not None:
            q, qd = link_side(self, p, target)
            lost = (
                stop_torque(hardware, q, qd)[2] * qd + output_torque(hardware, q, qd, at.memory)[0]
            )
            stops = jnp.where(masks.given_joint, 0.0, lost), q, qd
        deflection = law.compliance * jnp.where(masks.free, own.torque, 0.0)
        deflection = jnp.where(self.series, own.deflection, deflection)
        viscous = -sp.viscous, sp.stretch, sp.stretch_rate
        return Efforts(effort, x, xd, deflection, own, viscous, stops, inverse)

    def stored(self, at: Instant, mech: Mechanical) -> tuple[ScalarLike, Scalar]:
        masks, hardware = self.masks, self.chain.hardware
        ground, target = at.ground, at.target
        p = self.point(mech, ground)
        rotors, elastic = 0.0, jnp.sum(springs(self, p, target, at.memory).energy)
        if masks.rotor.any():
            parent = before(self.split(mech.v)[0], ground.rate)[masks.first]
            spin = parent + hardware.gear * motor_side(masks, p, target)[1]
            rotors = 0.5 * jnp.sum(hardware.rotor * spin**2)
        if masks.stops.any():
            contact = hardware.stop_energy(link_side(self, p, target)[0])
            elastic = elastic + jnp.sum(jnp.where(masks.given_joint, 0.0, contact))
        return rotors, elastic

    def readings(self, at: Instant, mech: Mechanical) -> Readings:
        """What a snapshot reports."""
        masks, ground, target = self.masks, at.ground, at.target
        mech, a = self.accelerate(at, mech)
        p = self.point(mech, ground)
        found = self.efforts(at, mech, a, forces=True)
        inverse = found.reactions
        assert inverse is not None  # asked for
        q, qd = link_side(self, p, target)
        motors = self.motor_accelerations(at, a)
        relative = self.relative(a, ground.acceleration)[masks.first]
        return Readings(
            mech=mech,
            q=q + found.deflection,
            qd=qd + found.joints.deflection_rate,
            qdd=link_acceleration(self, p, target, motors, relative),
            motor=found.x + found.deflection,
            effort=found.effort,
            acceleration=inverse.acceleration + self.chain.gravity[None],
            alpha=self.split(a)[0],
            force=inverse.force,
            torque=inverse.torque,
            elastic=jnp.where(masks.springs, springs(self, p, target).elastic, inverse.torque),
        )
