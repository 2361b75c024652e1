"""Lagrange's equations of the carrier and the arm as a second-order term.

Kinetic and potential energy are written once; the forces are their derivatives. Coordinates: joints
in robot order (angles, shifts, lengths), then the elastic unknowns. The balance is
d/dt dT/dv - dT/dq + dV/dq - Q, with the time derivative taken by jvp along (v, a). So it contains
all products of velocities, the terms of a changing length, and the row of a length (at fixed
material).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._rules import stop
from flexjax._types import Coordinates, Matrix3, PieceTime, Scalar, ScalarLike, Vector3, Velocities
from flexjax.drive import Drive, Load
from flexjax.formulation.moving_beam import _link
from flexjax.formulation.moving_beam._carrier import (
    ArmLayout,
    Carrier,
    JointValues,
    frames,
    twists,
)
from flexjax.formulation.moving_beam._link import Arm, Payloads, Rates
from flexjax.formulation.moving_beam.beam._shapes import Lengths, PerElement, Unknowns
from flexjax.formulation.moving_beam.beam._strain import (
    Couplings,
    StrainTables,
    element_hessians,
    element_stiffnesses,
    strain_energy,
)
from flexjax.mechanism import (
    JointHardware,
    advanced_bristles,
    centreline_pose,
    friction_torque,
)
from flexjax.numerics.linalg import ElementChainFactors, factor_elements, solve_elements
from flexjax.numerics.screw import se3
from flexjax.numerics.term import (
    AbstractLagrangianTerm,
    EnergyFlow,
    Instant,
    Limits,
    OnGround,
    Prescribed,
    State,
    Step,
)
from flexjax.robot import Robot

Ground = Float[Array, "2 6"]  # twists of the ground beside a pair of velocities


def load_wrench(
    load: Load, t: ScalarLike, piece_time: PieceTime, frame: Matrix3, section: Matrix3
) -> tuple[Vector3, Vector3]:
    """Force and moment in body axes, from the axes of the body and of the section."""
    axes = frame.T if load.frame == "world" else section
    w = load.wrench.evaluate(t, piece_time)[0]
    return axes @ w[:3], axes @ w[3:]


class MovingBeamTerm(AbstractLagrangianTerm):
    """Equations of motion under one drive."""

    robot: Robot
    drive: Drive
    carrier: Carrier
    arm: Arm
    payloads: Payloads
    hardware: JointHardware
    couplings: Couplings
    layout: ArmLayout = eqx.field(static=True)
    tables: StrainTables = eqx.field(static=True)
    constant: bool = eqx.field(static=True)

    # --- coordinates
    def split(self, q: Coordinates) -> tuple[JointValues, Lengths, Unknowns]:
        """Joint coordinates, lengths, and unknowns of the elements."""
        layout = self.layout
        x, rest = q[: layout.dofs], q[layout.dofs :]
        y = _link.element_unknowns(rest, layout.elements, layout.node)
        return x, x[np.array(layout.lengths, int)], y

    def motor_coordinates(self, y: State) -> tuple[JointValues, JointValues]:
        return y.mech.q[: self.layout.dofs], y.mech.v[: self.layout.dofs]

    def joint_sides(self, q: Coordinates, v: Velocities):
        """Coordinates and rates of the joints, twice: none has a spring to its motor."""
        x, xd = q[: self.layout.dofs], v[: self.layout.dofs]
        return (x, x), (xd, xd)

    def next_memory(
        self, t0: ScalarLike, t1: ScalarLike, y: State, strains: PyTree = None
    ) -> PyTree:
        memory = super().next_memory(t0, t1, y, strains)
        return advanced_bristles(self.hardware, memory, *self.joint_sides(y.mech.q, y.mech.v))

    @property
    def locked(self) -> np.ndarray:
        mask = np.zeros(self.layout.nv, bool)
        mask[: self.layout.dofs] = self.drive.prescribed(self.robot)
        return mask

    def prescribed(self, t: ScalarLike, piece_time: PieceTime) -> Prescribed:
        rest = jnp.zeros(self.layout.nv - self.layout.dofs, self.robot.gravity.dtype)
        motion = self.drive.motion(self.robot, t, piece_time)
        x, xd, xdd = (jnp.concatenate([x, rest]) for x in motion)
        return self.locked, x, xd, xdd

    # --- energies
    def base(self, t: ScalarLike, piece_time: PieceTime) -> tuple[se3.Pose, se3.Twist, se3.Twist]:
        """Pose, twist and acceleration of the ground."""
        dtype = self.robot.gravity.dtype
        if self.drive.base is None:
            return se3.identity(dtype), jnp.zeros(6, dtype), jnp.zeros(6, dtype)
        return self.drive.base.motion(t, piece_time)

    def _ground(self, za: se3.Twist, zb: se3.Twist) -> Ground | None:
        return None if self.drive.base is None else jnp.stack([za, zb])

    def kinetic(
        self, q: Coordinates, va: Velocities, vb: Velocities, ground: Ground | None = None
    ) -> Scalar:
        """va^T M vb / 2, with the twists of the ground beside the velocities (None: at rest)."""
        x, d, y = self.split(q)

        def motion(v, base):
            xd, dd, yd = self.split(v)
            z, spins = twists(self.carrier, self.layout, x, xd, base)
            return jnp.stack(z), jnp.stack(spins), Rates(z[-1], dd, yd)

        # Both velocities in one sweep: half the program.
        axes = (0, None if ground is None else 0)
        z, spins, rates = jax.vmap(motion, in_axes=axes)(jnp.stack([va, vb]), ground)
        flat = self.layout.planar and ground is None
        bodies = jnp.einsum("kij,kj->ki", self.carrier.inertia, z[1])
        return (
            _link.kinetic(self.arm, d, y, rates, self.constant, flat)
            + 0.5 * jnp.sum(z[0] * bodies)
            + 0.5 * jnp.sum(self.carrier.rotor * spins[0] * spins[1])
            + _link.payload_kinetic(self.arm, self.payloads, d, y, rates)
        )

    def strain(self, q: Coordinates) -> Scalar:
        """Strain energy of the arm."""
        _, d, y = self.split(q)
        return strain_energy(
            self.tables, y, self.arm.mesh(d)[1], self.arm.stiffness, self.couplings
        )

    def elastic_energy(self, q: Coordinates) -> Scalar:
        """Strain energy, and energy of the end stops."""
        return self.strain(q) + jnp.sum(self.hardware.stop_energy(q[: self.layout.dofs]))

    def gravity_energy(self, q: Coordinates, base: se3.Pose) -> Scalar:
        x, d, y = self.split(q)
        poses = frames(self.carrier, self.layout, x, base)
        total = jnp.zeros(3, q.dtype)
        for pose, inertia in zip(poses, self.carrier.inertia, strict=True):
            moment = jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
            total = total + inertia[0, 0] * pose.position + pose.rotation @ moment
        mass, moment = _link.first_moment(self.arm, d, y)
        for k, load in enumerate(self.payloads.mass):
            position, _ = _link.payload_position(self.arm, self.payloads, k, d, y)
            mass, moment = mass + load, moment + load * position
        total = total + mass * poses[-1].position + poses[-1].rotation @ moment
        return -jnp.sum(self.robot.gravity * total)

    def energies(
        self, now: Instant, q: Coordinates, v: Velocities
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Kinetic, elastic and gravity energy."""
        pose, z, _ = self.base(now.t, now.piece_time)
        kinetic = self.kinetic(q, v, v, self._ground(z, z))
        return kinetic, self.elastic_energy(q), self.gravity_energy(q, pose)

    def _lagrangian(
        self,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        ground: Ground | None,
        base: se3.Pose,
    ) -> Scalar:
        potential = self.elastic_energy(q) + self.gravity_energy(q, base)
        return self.kinetic(q, va, vb, ground) - potential

    # --- methods of the energy-conserving step
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        return 2 * jax.grad(lambda va: self.kinetic(q, va, v))(jnp.zeros_like(v))

    def lagrangian_on_ground(
        self, step: Step, s: ScalarLike, q: Coordinates, va: Velocities, vb: Velocities
    ) -> OnGround:
        # One reverse sweep gives the gradient and the momenta.
        if self.drive.base is None:
            rest = se3.identity(q.dtype)
            g, pb, pa = jax.grad(self._lagrangian, (0, 1, 2))(q, va, vb, None, rest)
            return 2 * pa, 2 * pb, g, None
        za, zb = (self.base(t, step.piece_time)[1] for t in (step.t0, step.t1))
        pose, twist, _ = self.base(step.t0 + s * step.dt, step.piece_time)

        def moved(q, va, vb, ground, shift):
            return self._lagrangian(q, va, vb, ground, se3.compose(pose, se3.exp(shift)))

        g, pb, pa, (Pb, Pa), lift = jax.grad(moved, (0, 1, 2, 3, 4))(
            q, va, vb, jnp.stack([za, zb]), jnp.zeros_like(za)
        )
        z = za + zb
        powers = (jnp.sum(z * Pa), jnp.sum(z * Pb), -jnp.sum(lift * twist))
        return 2 * pa, 2 * pb, g, powers

    # --- forces
    def forces(self, now: Instant, q: Coordinates, v: Velocities) -> tuple[Velocities, Velocities]:
        hardware = self.hardware
        x, d, y = self.split(q)
        xd = v[: self.layout.dofs]
        rest = jnp.zeros(self.layout.nv - self.layout.dofs, q.dtype)
        effort = self.drive.effort(self.robot, now.t, now.piece_time, x, xd, now.memory)
        driven = jnp.concatenate([effort, rest])
        if self.drive.loads:
            # Generalised forces of the loads: slopes of their power.
            driven = driven + jax.grad(lambda v: self._load_power(now, q, v))(jnp.zeros_like(q))
        joint = -(hardware.damping + hardware.stop_slopes(x)[1]) * xd
        if hardware.motor is not None:
            sides = self.joint_sides(q, v)
            joint = joint - friction_torque(hardware.motor, "motor", now.memory, *sides)
        damped = jnp.concatenate([joint, rest])
        if self.arm.viscous or self.arm.dragged:

            def dissipation(v):
                _, dd, yd = self.split(v)
                rates = Rates(jnp.zeros(6, q.dtype), dd, yd)
                return _link.dissipation(self.arm, self.tables.linear, d, y, rates)

            damped = damped - jax.grad(dissipation)(v)
        return driven, damped

    def load_site(self, load: Load) -> tuple[int, int, Callable]:
        """Body and section of a load.

        Returns:
            Index of the body (the last one is the joint frame), index among the bodies of the
            carrier followed by the tubes, and a function of (d, y) that gives (position, rotation)
            of the section in body axes, and the axes of the section.
        """
        link, stages = self.robot.link_index(load.link), len(self.layout.stages)
        if link in self.layout.tubes:
            tube = self.layout.tubes.index(link)

            def site(d: Lengths, y: Unknowns):
                r, theta = _link.point(self.arm, d, y, tube, load.s)
                return (r, theta), se3.rotation_exp(theta)

            return stages - 1, stages + tube, site
        body = self.layout.stage_of_link(link)
        pose = centreline_pose(self.robot.links[link], load.s)
        fixed = (pose.position, jnp.zeros_like(pose.position)), pose.rotation
        return body, body, lambda d, y: fixed

    def _load_power(self, now: Instant, q: Coordinates, v: Velocities) -> Scalar:
        """Power of the loads at velocities relative to the ground."""
        x, d, y = self.split(q)
        xd, dd, yd = self.split(v)
        poses = frames(self.carrier, self.layout, x, self.base(now.t, now.piece_time)[0])
        z, _ = twists(self.carrier, self.layout, x, xd)
        total = jnp.zeros((), q.dtype)
        for load in self.drive.loads:
            body, _, site = self.load_site(load)
            (r, _), (rd, wd), section = jax.jvp(site, (d, y), (dd, yd), has_aux=True)
            force, moment = load_wrench(load, now.t, now.piece_time, poses[body].rotation, section)
            linear, angular = z[body][:3], z[body][3:]
            velocity = linear + jnp.cross(angular, r) + rd
            total = total + jnp.sum(force * velocity) + jnp.sum(moment * (angular + wd))
        return total

    # --- dynamics
    def balance(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> Velocities:
        driven, damped = self.forces(now, q, v)
        pose, twist, acceleration = self.base(now.t, now.piece_time)

        def momentum(q, v, z):
            return 2 * jax.grad(self.kinetic, 1)(q, v, v, self._ground(z, z))

        # M a + (dM/dt v) - dT/dq, the first two by the derivative of the momenta along the motion.
        rate = jax.jvp(momentum, (q, v, twist), (v, a, acceleration))[1]
        gradient = jax.grad(self._lagrangian)(q, v, v, self._ground(twist, twist), pose)
        return rate - gradient - driven - damped

    def accelerate(self, now: Instant, q: Coordinates, v: Velocities) -> Velocities:
        return self.dynamics(now, q, v)[0]

    def dynamics(
        self, now: Instant, q: Coordinates, v: Velocities
    ) -> tuple[Velocities, Velocities]:
        """Acceleration, and the efforts of prescribed coordinates (zero elsewhere)."""
        locked = self.locked
        known = jnp.where(locked, self.prescribed(now.t, now.piece_time)[3], 0.0)
        r = self.balance(now, q, v, known)
        frozen = stop(self)
        factors = frozen.preconditioner(*stop((now, q, v)), 0.0, 0.0)

        def mass(x):
            return jnp.where(locked, x, self.momentum(q, jnp.where(locked, 0.0, x)))

        x = lax.custom_linear_solve(
            mass,
            jnp.where(locked, 0.0, -r),
            lambda _, b: frozen.precondition(factors, b),
            symmetric=True,
        )
        if not locked.any():
            return x, jnp.zeros_like(r)
        return known + x, jnp.where(locked, r + self.momentum(q, x), 0.0)

    def preconditioner(
        self, now: Instant, q: Coordinates, v: Velocities, cv: ScalarLike, cq: ScalarLike
    ) -> ElementChainFactors:
        layout, hardware, D = self.layout, self.hardware, self.layout.dofs
        x, d, y = self.split(q)
        xd = v[:D]
        E, H_length, H_lengths = self._element_matrices(d, y, cv, cq)
        rows = jnp.zeros((0, layout.nv), q.dtype)
        if D:
            unit = jnp.eye(D, layout.nv, dtype=q.dtype)
            rows = jax.vmap(lambda e: self.momentum(q, e))(unit)
        joint, border = rows[:, :D], rows[:, D:]
        if layout.lengths:
            stretch = jnp.diff(self.arm.slope, axis=0)
            at = np.array(layout.lengths, int)
            coupling = jax.vmap(lambda g: self._assemble(H_length * g[:, None]), in_axes=1)(stretch)
            border = border.at[at].add(coupling)
            joint = joint.at[at[:, None], at[None, :]].add(
                jnp.einsum("n,na,nb->ab", H_lengths, stretch, stretch)
            )
        kp, kd = self.drive.slopes(self.robot, now.t, now.piece_time, x, xd, now.memory)
        stiffness, damping = hardware.stop_slopes(x)
        damping = hardware.damping + kd + damping
        if hardware.motor is not None:
            damping = damping + jnp.maximum(hardware.motor.slope(xd), 0.0)
            if hardware.motor.bristle is not None:
                stiffness = stiffness + hardware.motor.bristle
        diagonal = cv * damping + cq * (kp + stiffness)
        return factor_elements(layout.node, E, border, joint + jnp.diag(diagonal), ~self.locked[:D])

    def limits(self, now: Instant, q: Coordinates, v: Velocities) -> Limits | None:
        D = self.layout.dofs
        limits = self.drive.limits(self.robot, now.t, now.piece_time, q[:D], v[:D], now.memory)
        if limits is None:
            return None
        dofs, effort, bound, kp, kd = limits
        return Limits(effort, bound, kp, kd, tuple(int(i) for i in dofs))

    def precondition(self, factors: ElementChainFactors, r: Velocities) -> Velocities:
        D = self.layout.dofs
        joints, rest = solve_elements(factors, r[:D], r[D:])
        return jnp.concatenate([jnp.where(self.locked[:D], r[:D], joints), rest])

    def _assemble(self, rows: Unknowns) -> Float[Array, " n*(node+own)"]:
        """Transpose of :func:`_link.element_unknowns`."""
        node = self.layout.node
        inner = jnp.concatenate([rows[1:, :node], jnp.zeros_like(rows[:1, :node])])
        outer = rows[:, node : 2 * node] + inner
        return jnp.concatenate([outer, rows[:, 2 * node :]], axis=1).reshape(-1)

    def _element_matrices(
        self, d: Lengths, y: Unknowns, cv: ScalarLike, cq: ScalarLike
    ) -> tuple[Float[Array, "n u u"], Unknowns, PerElement]:
        """M + cv C + cq K of the elements; coupling of K to the length, and its diagonal there.

        Exact but for gyroscopic, centrifugal and weight terms.
        """
        arm, tables = self.arm, self.tables
        _, l = arm.mesh(d)
        M = _link.element_masses(arm.shapes, l, *arm.inertia_per_length)
        for k in range(len(self.payloads.tube)):
            M = M + _link.payload_mass(arm, self.payloads, k, d, y)
        E, no_coupling = M, (jnp.zeros_like(y), jnp.zeros_like(l))
        if isinstance(cq, float) and cq == 0.0:  # the mass matrix alone, for accelerations
            return E, *no_coupling
        if arm.dragged:
            no_rotary = jnp.zeros_like(arm.rhoI[:, 0])
            E = E + cv * _link.element_masses(arm.shapes, l, jnp.sum(arm.drag, 1), no_rotary)
        if not self.layout.lengths:
            # Strain-rate damping acts as a stiffness, and second derivatives are linear in it.
            stiffness = cq * arm.stiffness + (cv * arm.viscosity if arm.viscous else 0.0)
            return E + element_stiffnesses(tables, y, l, stiffness, self.couplings), *no_coupling
        H = element_hessians(tables, y, l, cq * arm.stiffness, self.couplings)
        if arm.viscous:
            # Not coupled to the length: strains of the material do not follow the mesh.
            E = E + element_stiffnesses(tables, y, l, cv * arm.viscosity, self.couplings)
        return E + H[:, :-1, :-1], H[:, :-1, -1], H[:, -1, -1]

    def energy_flow(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> EnergyFlow:
        flow = super().energy_flow(now, q, v, a)
        if self.drive.base is None:
            return flow
        wrench, twist = self._on_base(now, q, v, a)
        force, along = (jnp.concatenate(x) for x in ((flow.force, wrench), (flow.along, twist)))
        return EnergyFlow(force, along, flow.damped, flow.v)

    def _on_base(
        self, now: Instant, q: Coordinates, v: Velocities, a: Velocities
    ) -> tuple[Float[Array, " 6"], Float[Array, " 6"]]:
        """(wrench, twist) of the prescribed motion of the ground.

        With P = dT/d(twist), the wrench on the ground's frame is P' - ad*_twist P less weight. The
        power of loads at the ground's velocity is both taken from it and counted as theirs.
        """
        pose, twist, acceleration = self.base(now.t, now.piece_time)

        def momentum(q, v, z):
            return 2 * jax.grad(lambda za: self.kinetic(q, v, v, jnp.stack([za, z])))(z)

        P, rate = jax.jvp(momentum, (q, v, twist), (v, a, acceleration))
        wrench = rate - se3.ad_star(twist) @ P
        weight = jax.grad(lambda dx: self.gravity_energy(q, se3.compose(pose, se3.exp(dx))))
        return wrench + weight(jnp.zeros(6, q.dtype)), twist
