"""Equations of motion of a chain: Newmark's rule on the rotations of the segments, one sweep per
pass.

Step, energies and loads are written once for the plane and for space. `PlanarTerm` and
`SpatialTerm` add their coordinates and connections.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._layout import JointAxes, Layout, Span
from flexjax.formulation.transfer_matrix._link import Chain, locate, on_segment, section_between
from flexjax.formulation.transfer_matrix._series import (
    JointHistory,
    JointLaw,
    SeriesTorque,
    deflection_of,
    joint_torques,
    passes,
    relaxed_deflection,
    with_deflection,
)
from flexjax.mechanism import Shape, Sides, Start, advanced_bristles, centreline_pose
from flexjax.numerics.screw import Plane, along
from flexjax.numerics.term import AbstractChainStepTerm, Mechanical, State
from flexjax.robot import Robot

LINEARISATIONS = ("history", "extrapolated")

Rates: TypeAlias = Float[Array, " nv"]


class Ground(NamedTuple):
    """Motion of the ground: orientation with derivatives, and the motion of the first joint's
    point."""

    orientation: Array
    rate: Array
    acceleration: Array
    point: Array
    point_velocity: Array
    point_acceleration: Array


class Instant(NamedTuple):
    """A time with all that the drive prescribes then, evaluated once."""

    t: ScalarLike
    piece_time: PieceTime
    memory: PyTree  # of sampled controllers
    ground: Ground
    target: Float[Array, "3 D"]  # coordinates, rates, accelerations; zero where none is prescribed

    def before(self, c2: Scalar, c1: Scalar) -> "Instant":
        """Coordinates and rates less (c2, c1) times the accelerations, which a step adds."""
        ground, (value, rate, acceleration) = self.ground, self.target
        below = ground._replace(
            orientation=ground.orientation - c2 * ground.acceleration,
            rate=ground.rate - c1 * ground.acceleration,
        )
        target = jnp.stack([value - c2 * acceleration, rate - c1 * acceleration, acceleration])
        return self._replace(ground=below, target=target)


class PowerPorts(eqx.Module):
    """Forces through which energy enters (drive, loads, base) and leaves (dampers, friction), the
    coordinates along which they act, and their rates.

    Torques at joints act along the angles of the bodies beside them: half segments beside a joint
    that is free to rotate contain no part of the energy.
    """

    force: Float[Array, " k"]
    place: Float[Array, " k"]
    rate: Float[Array, " k"]
    loss: Float[Array, " m"]
    loss_place: Float[Array, " m"]
    loss_rate: Float[Array, " m"]

    def powers(self) -> tuple[Scalar, Scalar]:
        """(power of the drive, power dissipated)."""
        return jnp.sum(self.force * self.rate), jnp.sum(self.loss * self.loss_rate)

    def since(self, old: "PowerPorts") -> tuple[Scalar, Scalar]:
        """(work, dissipated energy) between two instants: mean forces times displacements.

        This is the quadrature of Newmark's rule: with (1/4, 1/2) a linear chain keeps its balance
        to rounding, also where stiff modes alternate from step to step.
        """
        work = 0.5 * jnp.sum((old.force + self.force) * (self.place - old.place))
        return work, 0.5 * jnp.sum((old.loss + self.loss) * (self.loss_place - old.loss_place))


Port = tuple[Array, Array, Array]  # force, place, rate


class Forces(NamedTuple):
    """Inverse dynamics: force (n, d) and torque (n, ...) on every body at its inboard point, the
    torque on the joint from its parent, and the acceleration of the points less gravity."""

    force: Array
    torque: Array
    parent_torque: Array
    acceleration: Array


class Efforts(NamedTuple):
    """At the joints (D,): effort of the motors, coordinates and rates on the motors' side, the
    deflection of the half segments beside free joints, and torques; ports of the dampers."""

    effort: Array
    x: Array
    xd: Array
    deflection: Array
    joints: SeriesTorque
    viscous: Port
    stops: Port | None
    reactions: Forces | None  # where they were asked for


class Carried(eqx.Module):
    """What a step passes to the next: accelerations; the mean rates of the step and their change
    since the one before; its length; the rate of the deflections beside joints; the ports."""

    acceleration: Rates
    slope: Rates
    slope_change: Rates
    step: Scalar
    deflection_rate: Float[Array, " D"]
    ports: PowerPorts

    def change_ahead(self, dt: Scalar) -> Rates:
        """``slope_change`` for a step of length ``dt``.

        A much shorter step before it (a break close to an output) has the accelerations of an
        instant, many times the mean of modes with dt omega > 1. The bound keeps the step stable.
        """
        return jnp.minimum(1.0, 2 * self.step / dt) * self.slope_change


class AbstractTransferTerm(AbstractChainStepTerm):
    """A chain of bodies under one drive."""

    robot: Robot
    chain: Chain
    drive: Drive
    layout: Layout = eqx.field(static=True)
    tables: JointAxes = eqx.field(static=True)
    sweep: str = eqx.field(static=True)
    linearisation: str = eqx.field(static=True)
    passes: int = eqx.field(static=True)

    space: ClassVar[Any]
    unroll: ClassVar[bool]  # the passes over a step are copies of the code, not a loop

    @property
    def series(self) -> np.ndarray:
        """(D,) static: joints whose deflection is a state."""
        return self.tables.series

    # --- what the plane and space define
    @abc.abstractmethod
    def bodies(self, mech: Mechanical) -> tuple[Array, Array]:
        """Orientations and angular velocities of the bodies, in world axes."""

    @abc.abstractmethod
    def placed(self, at: Instant, mech: Mechanical, rotation: Rates, rate: Rates) -> Mechanical:
        """``mech`` rotated by ``rotation`` and with ``rate``; prescribed bodies from the drive."""

    @abc.abstractmethod
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
        """Accelerations at the end of a step, with the geometry of ``guess``.

        Both pairs are rotations since ``mech`` and rates. The solution is ``predicted`` plus
        (c2, c1) times the accelerations.
        """

    @abc.abstractmethod
    def accelerate(self, at: Instant, mech: Mechanical) -> tuple[Mechanical, Rates]:
        """The state with the coordinates that the drive prescribes, and its accelerations."""

    @abc.abstractmethod
    def joint_state(self, at: Instant, mech: Mechanical) -> tuple[JointLaw, Array, Array]:
        """The law of the joints, and their motor-side coordinates and rates (D,)."""

    @abc.abstractmethod
    def efforts(
        self,
        at: Instant,
        mech: Mechanical,
        a: Rates,
        history: JointHistory | None = None,
        forces: bool = False,
    ) -> Efforts:
        """Torques of a state, or at the end of the step that ``history`` starts. ``forces``: with
        the reactions."""

    @abc.abstractmethod
    def stored(self, at: Instant, mech: Mechanical) -> tuple[ScalarLike, Scalar]:
        """Kinetic energy of the rotors, and elastic energy."""

    # --- the drive
    def ground(self, t: ScalarLike, piece_time: PieceTime) -> Ground:
        """Motion of the base; at rest unless overridden."""
        zero = jnp.zeros_like(self.chain.offset)
        eye = jnp.eye(3, dtype=zero.dtype)
        return Ground(eye, zero, zero, self.chain.offset, zero, zero)

    def impose(self, at: Instant, mech: Mechanical) -> Mechanical:
        """``mech`` with the coordinates that the drive prescribes."""
        return mech

    def instant(self, t: ScalarLike, piece_time: PieceTime, memory: PyTree = ()) -> Instant:
        """The drive at one time."""
        dtype = self.chain.gravity.dtype
        target = jnp.zeros((3, self.layout.dofs), dtype)
        if self.tables.given.any():
            target = jnp.stack(self.drive.motion(self.robot, t, piece_time))
        return Instant(t, piece_time, memory, self.ground(t, piece_time), target)

    # --- the step
    def law(
        self, at: Instant, compliance: Float[Array, " D"], compliance_times_lag: Float[Array, " D"]
    ) -> JointLaw:
        """Torques of drive, dampers and friction at motor-side coordinates."""
        hardware, tables = self.chain.hardware, self.tables
        # The damper of a flexible joint acts along its spring.
        damping = jnp.where(tables.flexible, 0.0, hardware.damping)
        drive = (self.robot, self.drive, at.t, at.piece_time, at.memory)
        return JointLaw(*drive, damping, hardware, compliance, compliance_times_lag, tables)

    def joints(self, at: Instant, mech: Mechanical) -> SeriesTorque:
        law, x, xd = self.joint_state(at, mech)
        return joint_torques(law, x, xd, deflection_of(self.series, mech))

    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        at = self.instant(t, piece_time, y.memory)
        mech, a = self.accelerate(at, y.mech)
        rate = self.joints(at, mech).deflection_rate if self.series.any() else None
        return with_deflection(self.series, Mechanical(mech.v, a), rate)

    def joint_sides(self, at: Instant, mech: Mechanical) -> tuple[Sides, Sides]:
        """Coordinates and rates (D,) along which friction acts: on the link's and on the motor's
        side, which differ at flexible joints only."""
        _, x, xd = self.joint_state(at, mech)
        x = x + deflection_of(self.series, mech)
        return (x, x), (xd, xd)

    def next_memory(
        self, t0: ScalarLike, t1: ScalarLike, y: State, strains: PyTree = None
    ) -> PyTree:
        memory = super().next_memory(t0, t1, y, strains)
        sides = self.joint_sides(self.instant(t0, None, y.memory), y.mech)
        return advanced_bristles(self.chain.hardware, memory, *sides)

    def relaxed(self, at: Instant, dt: Scalar, mech: Mechanical) -> tuple[Mechanical, Array]:
        """The state from which a step of length ``dt`` computes its first accelerations, and the
        rate (D,) of the deflections in ``mech``."""
        series = self.series
        if not series.any():
            return mech, jnp.zeros(series.size, mech.v.dtype)
        law, x, xd = self.joint_state(at, self.impose(at, mech))
        deflection = deflection_of(series, mech)
        rate = joint_torques(law, x, xd, deflection).deflection_rate
        deflection = relaxed_deflection(law, x, xd, deflection, rate, dt)
        return with_deflection(series, mech, deflection), rate

    def start(self, t0: ScalarLike, t1: ScalarLike, y: State, piece_time: PieceTime) -> Carried:
        at = self.instant(t0, piece_time, y.memory)
        mech, rate = self.relaxed(at, jnp.asarray(t1 - t0), y.mech)
        mech, a = self.accelerate(at, mech)
        ports = self.ports(at, mech, a)[0]
        return Carried(a, mech.v, jnp.zeros_like(a), jnp.zeros((), a.dtype), rate, ports)

    def ahead(self, mech: Mechanical, carried: Carried, dt: Scalar) -> tuple[Array, Array]:
        """A first guess of rotation and rate at the end of the step, where the geometry is taken.

        "extrapolated": from rates and accelerations. For modes with dt omega > 1 the latter are
        many times the rotations of the step, and chains with short segments or light bodies
        diverge. "history": from the rotations of the last steps, in which such modes are small.
        """
        if self.linearisation == "extrapolated":
            a = carried.acceleration
            return dt * mech.v + 0.5 * dt**2 * a, mech.v + dt * a
        change = carried.change_ahead(dt)
        slope = carried.slope + 0.5 * (dt + carried.step) * change  # mean rate of this step
        return dt * slope, slope + 0.5 * dt * change

    def history(self, mech: Mechanical, carried: Carried, dt: Scalar) -> JointHistory | None:
        """Deflections beside joints in series at the start of a step, if there are any."""
        if not self.series.any():
            return None
        return JointHistory(dt, deflection_of(self.series, mech), carried.deflection_rate)

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
        dt = jnp.asarray(t1 - t0)
        v0, a0 = y.mech.v, carried.acceleration
        c2, c1 = beta * dt**2, gamma * dt
        predicted = dt * v0 + (0.5 - beta) * dt**2 * a0, v0 + (1 - gamma) * dt * a0
        history = self.history(y.mech, carried, dt)

        at = self.instant(t1, piece_time, y.memory)

        def once(term: AbstractTransferTerm, guess: tuple[Rates, Rates]):
            a1 = term.implicit(at, y.mech, guess, predicted, c2, c1, history)
            return (predicted[0] + c2 * a1, predicted[1] + c1 * a1), a1

        guess, a1 = self._repeat(once, self.ahead(y.mech, carried, dt))
        mech = self.placed(at, y.mech, *guess)
        return self.finish(at, y, carried, beta, dt, mech, a1, mech)

    def _repeat(
        self, once: Callable[..., Any], guess: tuple[Rates, Rates]
    ) -> tuple[tuple[Rates, Rates], Rates]:
        """All passes over a step: the solution, and its accelerations."""
        each, a1 = passes(self, self.passes), guess[0]
        first = len(each) if self.unroll else sum(term is not self for term in each)
        for term in each[:first]:
            guess, a1 = once(term, guess)
        if first < len(each):
            guess, many = lax.scan(lambda g, _: once(self, g), guess, length=len(each) - first)
            a1 = many[-1]
        return guess, a1

    def finish(
        self,
        at: Instant,
        y: State,
        carried: Carried,
        beta: ScalarLike,
        dt: Scalar,
        mech: Mechanical,
        a1: Rates,
        angles: Mechanical,
    ) -> tuple[State, Carried, Array]:
        """The new state ``mech`` with the energies exchanged in the step, and what it passes on;
        ``angles``: its rotations alone."""
        history, n = self.history(y.mech, carried, dt), angles.v.shape[0]
        new, own = self.ports(at, angles, a1[:n], history)
        mech = with_deflection(self.series, mech, own.deflection)
        work, loss = new.since(carried.ports)
        slope = y.mech.v + dt * ((0.5 - beta) * carried.acceleration + beta * a1)
        change = 2 * (slope - carried.slope) / (dt + carried.step)
        state = State(mech, y.work + work, y.dissipated + loss, y.memory)
        carried = Carried(a1, slope, change, dt, own.deflection_rate, new)
        return state, carried, jnp.asarray(True)

    # --- energies and power
    def points(self, at: Instant, mech: Mechanical) -> tuple[Array, Array]:
        """Positions and velocities (n + 1, d) of the bodies' inboard points, and of the tip."""
        g, w = self.bodies(mech)
        reach = self.space.rotate(g, self.chain.bodies.reach)
        velocity = along(at.ground.point_velocity, self.space.cross(w, reach))
        return along(at.ground.point, reach), velocity

    def load_wrenches(self, at: Instant, g: Array) -> tuple[Float[Array, "n d"], Array]:
        """Forces on the bodies and torques about their inboard points, in world axes, of the loads
        on the links."""
        space, n = self.space, self.layout.n
        force = jnp.zeros((n, space.dim), g.dtype)
        torque = jnp.zeros((n,) if space is Plane else (n, 3), g.dtype)
        for load in self.drive.loads:
            index = self.robot.link_index(load.link)
            span = next(s for s in self.layout.spans if s.link == index)
            where, arm, section = self._station(span, load.s, g[span.segments])
            f, m = space.wrench(load.wrench.evaluate(at.t, at.piece_time)[0])
            if load.frame == "section":
                f, m = space.rotate(section, f), space.rotate_axial(section, m)
            f, where = jnp.broadcast_to(f, arm.shape), where[:, None]
            force = force.at[span.segments].add(where * f)
            moment = space.moment(arm, f) + m[None]
            where = where.reshape((-1,) + (1,) * m.ndim)
            torque = torque.at[span.segments].add(where * moment)
        return force, torque

    def _station(self, span: Span, s: Scalar, g: Array) -> tuple[Array, Array, Array]:
        """A station of a link: weights of its bodies, its position from their inboard points in
        world axes, and the orientation of the section."""
        space, link = self.space, self.robot.links[span.link]
        if span.rigid:
            pose = centreline_pose(link, s)
            arm = space.rotate(g, pose.position[None, : space.dim])
            return jnp.ones(1, g.dtype), arm, space.compose(g[0], pose.rotation)
        where, distance = locate(span.count, s, link.length)
        x, y, _ = on_segment(link, span.count, distance)
        arm = space.rotate(g, jnp.stack([x, y, jnp.zeros_like(x)], -1)[:, : space.dim])
        root, tip = g[:1], g[-1:]
        if link.curvature is not None:
            rest = self.chain.bodies.rest_angle[span.segments]
            root = space.rotated(root, -space.about_z(rest[:1, 0]))
            tip = space.rotated(tip, space.about_z(rest[-1:, 1]))
        ends = jnp.concatenate([root, g, tip])
        j, share = section_between(span.count, s)
        return where, arm, space.between(ends[j], ends[j + 1], share)

    def ports(
        self, at: Instant, mech: Mechanical, a: Rates, history: JointHistory | None = None
    ) -> tuple[PowerPorts, SeriesTorque]:
        """Of a state, or at the end of the step that ``history`` starts."""
        base = self.drive.base is not None
        found = self.efforts(at, mech, a, history, forces=base)
        # Static: what is absent costs no code, neither here nor in reverse mode.
        joints, links = self.robot.tree_joints, self.robot.links
        across = self.chain.hardware.across is not None
        gain: list[Port] = []
        loss: list[Port] = []
        if self.drive.acts(self.robot):
            gain.append((found.effort, found.x, found.xd))
        if any(part.damping is not None for part in (*links, *joints)) or across:
            loss.append(found.viscous)
        if any(joint.damping is not None or joint.friction is not None for joint in joints):
            loss.append((found.joints.resistance, found.x, found.xd))
        if found.stops is not None:
            loss.append(found.stops)
        if self.drive.loads:
            force, torque = self.load_wrenches(at, self.bodies(mech)[0])
            place, rate = (x[:-1].reshape(-1) for x in self.points(at, mech))
            gain += [(force.reshape(-1), place, rate), self.torque_port(mech, torque)]
        if base and found.reactions is not None:
            ground, reactions = at.ground, found.reactions
            gain.append((reactions.force[0], ground.point, ground.point_velocity))
            angle, rate = ground.orientation[None], ground.rate[None]
            gain.append((reactions.parent_torque[:1], angle, rate))
        none = jnp.zeros(0, found.effort.dtype)
        columns = [
            jnp.concatenate([none, *(port[k] for port in ports)])
            for ports in (gain, loss)
            for k in range(3)
        ]
        return PowerPorts(*columns), found.joints

    def torque_port(self, mech: Mechanical, torque: Array) -> Port:
        """Port of torques on the bodies."""
        return (torque, *self.bodies(mech))

    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        at = self.instant(t, piece_time, y.memory)
        return self.ports(at, *self.accelerate(at, y.mech))[0].powers()

    def energies(self, at: Instant, mech: Mechanical) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        b, (g, w) = self.chain.bodies, self.bodies(mech)
        position, velocity = self.points(at, mech)
        moment, v = self.space.rotate(g, b.moment), velocity[:-1]
        kinetic = 0.5 * jnp.sum(b.mass * jnp.sum(v**2, axis=1))
        kinetic = kinetic + self.space.rotary_energy(g, b.inertia, w)
        kinetic = kinetic + jnp.sum(v * self.space.cross(w, moment))
        first = b.mass[:, None] * position[:-1] + moment
        gravity = -jnp.sum(first * self.chain.gravity[None])
        rotors, elastic = self.stored(at, mech)
        return kinetic + rotors, elastic, gravity

    def start_coordinates(self, at: Instant, start: Start) -> tuple[Array, Array, Array, Array]:
        """(D,) joint coordinates and rates on the link's side, motor coordinates and rates.

        Under a Motion a flexible joint starts unstretched on its motor unless the start names it.
        """
        x, xd, xm = start.vectors(self.robot)
        value, rate, _ = at.target
        given, flexible, slices = self.tables.given, self.tables.flexible, self.robot.dof_slices()

        def follows(named: dict[str, Array]) -> np.ndarray:
            mask = given.copy()
            for name in named:
                mask[slices[name]] &= ~flexible[slices[name]]
            return mask

        q = jnp.where(follows(start.joints), value, x)
        qd = jnp.where(follows(start.rates), rate, xd)
        return q, qd, jnp.where(given, value, xm), jnp.where(given, rate, xd)

    def shapes(self, start: Start) -> dict[int, Shape]:
        elastic = {span.link for span in self.layout.spans if not span.rigid}
        return start.shapes(self.robot, elastic.__contains__, "TransferMatrix")
