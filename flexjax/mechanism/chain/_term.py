"""The second-order term of a serial chain of rigid bodies and flexible links under a drive."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.mechanism.chain import _coordinates as coordinates
from flexjax.mechanism.chain._condense import condense
from flexjax.mechanism.chain._hardware import (
    joint_energy,
    joint_forces,
    joint_stiffness,
    spring_forces,
)
from flexjax.mechanism.chain._kinematics import (
    Kinematics,
    at_tip,
    behind,
    contacts,
    from_joints,
    from_shapes,
    inward,
    kinematics,
    mtv,
    mv,
    onto_next,
    outward,
    poses,
    tip_wrench,
    to_joints,
    to_shapes,
)
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._links import AbstractLinks, Eta, Mass, Twists
from flexjax.mechanism.chain._loads import GeneralisedForce, load_forces
from flexjax.mechanism.chain._parameters import PLANAR, Parameters
from flexjax.mechanism.chain._records import InverseDynamics, KinematicState, Momenta
from flexjax.mechanism.chain._recursion import Factors, Loads, factorise, solve
from flexjax.numerics.screw import se3
from flexjax.numerics.term import (
    AbstractLagrangianTerm,
    EnergyFlow,
    Limits,
    Mechanical,
    State,
)
from flexjax.robot import Robot

LONG = 16  # links from which a chain reports its round-off to Newton's iteration


class ChainTerm(AbstractLagrangianTerm):
    """Equations of motion of a serial chain under one drive; ``links`` is None if all are rigid."""

    robot: Robot
    parameters: Parameters
    drive: Drive
    layout: Layout = eqx.field(static=True)
    links: AbstractLinks | None = None

    # --- coordinates
    @property
    def _tables(self):
        index, mask = self.layout.dof_table()
        motor = self.layout.motor_table()
        return index, mask, motor, motor < self.layout.nv

    def move(self, q: Coordinates, dx: Velocities) -> Coordinates:
        return coordinates.move(self.layout, q, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return Mechanical(coordinates.ambient_rate(self.layout, mech.q, dx.q), dx.v)

    @property
    def locked(self) -> np.ndarray:
        return coordinates.locked(self.layout, self.drive.prescribed(self.robot))

    def prescribed(
        self, t: ScalarLike, piece_time: PieceTime
    ) -> tuple[np.ndarray, Velocities, Velocities, Velocities]:
        layout, (x, xd, xdd) = self.layout, self.drive.motion(self.robot, t, piece_time)
        return (
            self.locked,
            coordinates.to_v(layout, x),
            coordinates.to_v(layout, xd),
            coordinates.to_v(layout, xdd),
        )

    def impose(self, q: Coordinates, target: Velocities) -> Coordinates:
        where = np.flatnonzero(self.locked)
        return q.at[self.layout.q_of_v()[where]].set(target[where])

    def displacement(self, q: Coordinates, target: Velocities) -> Velocities:
        where = np.flatnonzero(self.locked)
        return jnp.zeros_like(target).at[where].set(target[where] - q[self.layout.q_of_v()[where]])

    def coordinates(self, q: Coordinates) -> Float[Array, " D"]:
        """Link-side joint coordinates (D,): rotation vectors for balls."""
        return coordinates.joint_coordinates(self.layout, q)

    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        return coordinates.motor_side(self.layout, y.mech.q, y.mech.v)

    def _rows(
        self, joints: Float[Array, " D"], shapes: Eta, rotors: Velocities | None = None
    ) -> Velocities:
        """(nv,) from generalised forces on joints (D,), shape coordinates (B, m), rotors (nv,)."""
        motors = jnp.zeros(len(self.layout.motors), joints.dtype)
        rest = jnp.zeros(sum(self.layout.shapes), joints.dtype)
        out = jnp.concatenate([joints, motors, rest]) + from_shapes(self.layout, shapes)
        return out if rotors is None else out + rotors

    # --- kinematics
    def _base(
        self, t: ScalarLike, piece_time: PieceTime
    ) -> tuple[se3.Pose, Float[Array, " dim"], Float[Array, " dim"]]:
        """Pose, twist and acceleration of the base."""
        space, dtype = self.parameters.space, self.parameters.gravity.dtype
        if self.drive.base is None:
            still = jnp.zeros(space.DIM, dtype)
            return space.identity(dtype), still, still
        pose, twist, acc = self.drive.base.motion(t, piece_time)
        if self.layout.planar:
            pose = se3.Pose(pose.rotation[:2, :2], pose.position[:2])
            twist, acc = twist[PLANAR], acc[PLANAR]
        return pose, twist, acc

    def motion(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime
    ) -> KinematicState:
        parameters, space = self.parameters, self.parameters.space
        kin = kinematics(self.layout, parameters, q, self.links)
        base, twist, acc = self._base(t, piece_time)
        # Linear accelerations are component derivatives u'; gravity g enters as u' - R^T g.
        acc = acc - jnp.pad(base.rotation.T @ parameters.gravity, (0, space.DIM - space.LIN))
        own = mv(kin.screw, to_joints(self.layout, v))
        eta, rate = to_shapes(self.layout, q), to_shapes(self.layout, v)
        bend = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
        z = outward(kin, twist, own + onto_next(kin, bend))
        world, tips = poses(parameters, kin, base), at_tip(kin, z, bend)
        return KinematicState(kin, world, z, own, tips, eta, rate, q, v, twist, acc)

    @property
    def _rotors(self) -> bool:
        """Whether any joint has a rotor."""
        return any(j.motor is not None and j.motor.rotor is not None for j in self.robot.joints)

    def _spin(self, section_rate: Twists, v: Velocities) -> Float[Array, " B"]:
        """Rate (or acceleration) of every rotor about its axis."""
        index, _, motor, has = self._tables
        padded = jnp.concatenate([v, jnp.zeros(1, v.dtype)])
        spin = self.parameters.gear * padded[np.where(has, motor, index[:, 0])]
        return jnp.sum(self.parameters.rotor_axis * section_rate, axis=1) + spin

    def _on_rotor_coordinates(self, per_stage: Float[Array, " B"]) -> Velocities:
        """Generalised forces (nv,) of the rotors from their torques (B,)."""
        index, _, motor, has = self._tables
        where = np.where(has, motor, index[:, 0])
        out = jnp.zeros(self.layout.nv + 1, per_stage.dtype)
        return out.at[where].add(self.parameters.gear * per_stage)[:-1]

    # --- inertia
    def mass(self, eta: Eta) -> Mass:
        """Mass matrices of bodies and links together."""
        if self.links is None:
            none = jnp.zeros((*self.parameters.inertia.shape[:2], 0), eta.dtype)
            return Mass(self.parameters.inertia, none, None)
        mass = self.links.mass(eta)
        return Mass(self.parameters.inertia + mass.zz, mass.ze, mass.ee)

    def _times(self, mass: Mass, z: Twists, x: Eta) -> GeneralisedForce:
        """The mass matrices of the bodies times (z, x)."""
        shape = mtv(mass.ze, z)
        shape = shape if self.links is None else shape + self.links.apply(mass, x)
        return GeneralisedForce(mv(mass.zz, z) + mv(mass.ze, x), shape)

    def _on_coordinates(
        self,
        kin: Kinematics,
        force: GeneralisedForce,
        rotors: Twists | None,
        spins: Float[Array, " B"] | None = None,
    ) -> tuple[Velocities, Twists, Float[Array, " dim"]]:
        """Generalised forces (nv,), wrenches, and wrench on the ground.

        They balance ``force`` on the bodies, ``rotors`` on the sections, and torques ``spins``
        about the rotors' axes.
        """
        W, ground = inward(kin, force.wrench, rotors)
        shape = force.shape
        if kin.tip is not None:
            shape = shape + mtv(kin.tip.S, tip_wrench(kin, W, rotors))
        turning = None if spins is None else self._on_rotor_coordinates(spins)
        return self._rows(from_joints(self.layout, mtv(kin.screw, W)), shape, turning), W, ground

    def _bias(self, t: ScalarLike, piece_time: PieceTime, m: KinematicState) -> GeneralisedForce:
        """Velocity products less loads: what the bodies need beyond mass times acceleration."""
        momentum = mv(self.parameters.inertia, m.z)
        wrench = -jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p)(m.z, momentum)
        shape = jnp.zeros_like(m.eta)
        if self.links is not None:
            extra, shape = self.links.bias(m.eta, m.rate, m.z)
            wrench = wrench + extra
        if self.drive.loads:
            load = self._loads(t, piece_time, m)
            wrench, shape = wrench - load.wrench, shape - load.shape
        return GeneralisedForce(wrench, shape)

    def _loads(self, t: ScalarLike, piece_time: PieceTime, m: KinematicState) -> GeneralisedForce:
        return load_forces(
            self.robot,
            self.layout,
            self.parameters,
            self.links,
            self.drive,
            t,
            piece_time,
            m.world,
            m.eta,
        )

    def _gyroscopic(self, section: Twists, spin: Float[Array, " B"]) -> Twists:
        """Wrench on the section that rotates the spin of the rotors with it."""
        momentum = self._rotor_force(spin)
        return -jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p)(section, momentum)

    def _rotor_force(self, spin: Float[Array, " B"]) -> Twists:
        return (self.parameters.rotor * spin)[:, None] * self.parameters.rotor_axis

    # --- forces of coordinates: joints, motors, material
    def _coordinate_forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities, Velocities]:
        """Generalised forces (nv,) with a potential; of the drive; of dampers."""
        elastic, driven, damped = joint_forces(
            self.layout, self.parameters, self.drive, self.robot, t, q, v, piece_time, memory
        )
        if self.links is not None:
            eta, rate = to_shapes(self.layout, q), to_shapes(self.layout, v)
            elastic = elastic - from_shapes(self.layout, self.links.elastic_force(eta))
            resisted = self.links.damping_force(eta, rate)
            damped = damped - from_shapes(self.layout, resisted)
        return elastic, driven, damped

    def coordinate_force(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> Velocities:
        """Generalised forces (nv,) of joints, motors and material together."""
        elastic, driven, damped = self._coordinate_forces(t, q, v, piece_time, memory)
        return elastic + driven + damped

    def forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities]:
        _, driven, damped = self._coordinate_forces(t, q, v, piece_time, memory)
        if self.drive.loads:
            m = self.motion(t, q, v, piece_time)
            driven = driven + self._on_coordinates(m.kin, self._loads(t, piece_time, m), None)[0]
        return driven, damped

    # --- dynamics
    def _free(self) -> Bool[np.ndarray, "B n"]:
        index, mask, motor, has = self._tables
        free_v = np.append(~self.locked, False)
        free = mask & free_v[index]
        if not self.layout.motors:
            return free
        return np.concatenate([free, (has & free_v[motor])[:, None]], 1)

    def _split(self, per_v: Velocities) -> Float[Array, "B n"]:
        """Unknowns (B, n) of the stages from (nv,)."""
        if not self.layout.motors:
            return to_joints(self.layout, per_v)
        index, _, motor, _ = self._tables
        padded = jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])
        return jnp.concatenate([padded[index], padded[motor][:, None]], 1)

    def _join(self, x: Float[Array, "B n"], shape: Eta) -> Velocities:
        """(nv,) from the unknowns of the stages (B, n) and the shape accelerations (B, m)."""
        layout = self.layout
        out = jnp.pad(from_joints(layout, x[:, : layout.width]), (0, layout.nv + 1 - layout.dofs))
        if layout.motors:
            out = out.at[layout.motor_table()].set(x[:, -1])
        return out[:-1] + from_shapes(layout, shape)

    def _factor(
        self,
        kin: Kinematics,
        eta: Eta,
        diagonal: Float[Array, " D"],
        spring: Float[Array, " D"],
        motor: Float[Array, " D"],
        cv: ScalarLike | None = None,
        cq: ScalarLike | None = None,
        shape_bias: Eta | None = None,
    ) -> Factors:
        rest = (0, self.layout.nv - self.layout.dofs)
        condensed = None
        if self.links is not None:
            mass = self.links.mass(eta)
            if self.layout.extends:
                extra = to_shapes(self.layout, jnp.pad(diagonal, rest))
                mass = self.links.stiffen(mass, extra)
            factors = self.links.factor(eta, mass, cv, cq)
            inertia = self.parameters.inertia
            condensed = condense(self.links, inertia, mass, factors, *kin.sections, shape_bias)
        diagonal, spring, motor = (
            to_joints(self.layout, jnp.pad(x, rest)) for x in (diagonal, spring, motor)
        )
        stiffness = (diagonal, spring[:, 0], motor[:, 0])
        return factorise(self.parameters, kin, self._free(), self._tables[3], *stiffness, condensed)

    def accelerate(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> Velocities:
        return self.forward(t, self.motion(t, q, v, piece_time), piece_time, memory)[0]

    def forward(
        self, t: ScalarLike, m: KinematicState, piece_time: PieceTime, memory: PyTree
    ) -> tuple[Array, Array]:
        """Forward dynamics: accelerations (nv,), and of the frames (B, dim) less gravity."""
        q, v = m.q, m.v
        force = self.coordinate_force(t, q, v, piece_time, memory)
        zero = jnp.zeros(self.layout.dofs, q.dtype)
        known = jnp.where(self.locked, self.prescribed(t, piece_time)[3], 0.0)
        section = behind(m.z_tip, m.base_twist)
        rotors = jnp.zeros_like(section)
        if self._rotors:
            given = self._spin(rotors, known)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_force(given)
        bias, tip_rate = self._bias(t, piece_time, m), self._tip_rate(m)
        if self.layout.extends:
            given = to_shapes(self.layout, known)
            bias = bias + self._times(self.mass(m.eta), jnp.zeros_like(m.z), given)
            tip_rate = tip_rate + mv(m.kin.sections[0].S, given)
        shape_bias = bias.shape - to_shapes(self.layout, force)
        factors = self._factor(m.kin, m.eta, zero, zero, zero, shape_bias=shape_bias)
        loads = Loads(
            self._split(force),
            bias.wrench,
            self._joint_rate(m) + mv(m.kin.screw, to_joints(self.layout, known)),
            rotors,
            m.base_acceleration,
            shape_bias,
            tip_rate,
        )
        x, acceleration, shape = solve(factors, loads)
        return jnp.where(self.locked, known, self._join(x, shape)), acceleration

    def _joint_rate(self, m: KinematicState) -> Twists:
        """ad_z A v: acceleration of a body by rotating joint axes; of sliding contacts see tips."""
        own = (
            mv(self.parameters.screw, to_joints(self.layout, m.v)) if self.layout.slides else m.own
        )
        return jax.vmap(lambda z, s: self.parameters.space.ad(z) @ s)(m.z, own)

    def _tip_rate(self, m: KinematicState) -> Twists:
        """The part of a tip's acceleration beyond X_t z' + S eta'': ad_(X_t z) S eta' + S' eta'."""
        links = self.links
        if links is None:
            return jnp.zeros_like(m.z)
        tip, Xt = m.kin.sections
        turn = jax.vmap(lambda z, s: self.parameters.space.ad(z) @ s)
        if not self.layout.slides:
            return turn(mv(Xt, m.z), mv(tip.S, m.rate)) + links.tip_rate(m.eta, m.rate)

        def moving(eta, q):
            # The frame of the contact moves with shape and coordinate: one total rate for both.
            tip, along = contacts(self.layout, links, eta, q)
            return mv(tip.S, m.rate) + along * slide[:, None]

        index, _ = self.layout.slide_table()
        slide = m.v[index]
        own, rate = jax.jvp(moving, (m.eta, m.q), (m.rate, m.v))
        return turn(mv(Xt, m.z), own) + rate

    def inverse(
        self, t: ScalarLike, q: Coordinates, v: Velocities, a: Velocities, piece_time: PieceTime
    ) -> InverseDynamics:
        """Inverse dynamics."""
        return self.backward(t, self.motion(t, q, v, piece_time), a, piece_time)

    def backward(
        self,
        t: ScalarLike,
        m: KinematicState,
        a: Velocities,
        piece_time: PieceTime,
        acc: Twists | None = None,
    ) -> InverseDynamics:
        """Inverse dynamics of a motion; ``acc``: accelerations of the frames, if known already."""
        v, shape = m.v, to_shapes(self.layout, a)
        bend = jnp.zeros_like(m.z)
        if self.links is not None:
            bend = mv(m.kin.sections[0].S, shape) + self._tip_rate(m)
        if acc is None:
            own = self._joint_rate(m) + mv(m.kin.screw, to_joints(self.layout, a))
            acc = outward(m.kin, m.base_acceleration, own + onto_next(m.kin, bend))
        force = self._times(self.mass(m.eta), acc, shape) + self._bias(t, piece_time, m)
        rotors = spins = None
        if self._rotors:
            section = behind(m.z_tip, m.base_twist)
            spin_rate = self._spin(behind(at_tip(m.kin, acc, bend), m.base_acceleration), a)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_force(
                spin_rate
            )
            spins = self.parameters.rotor * spin_rate
        tau, W, ground = self._on_coordinates(m.kin, force, rotors, spins)
        return InverseDynamics(tau, W, ground, acc, shape, m)

    def balance(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        piece_time: PieceTime,
        memory: PyTree,
    ) -> Velocities:
        force = self.coordinate_force(t, q, v, piece_time, memory)
        return self.inverse(t, q, v, a, piece_time).tau - force

    def preconditioner(self, t, q, v, cm, cv, cq, piece_time, memory):
        joint, spring, motor = joint_stiffness(
            self.layout,
            self.parameters,
            self.drive,
            self.robot,
            t,
            q,
            v,
            cv,
            cq,
            piece_time,
            memory,
        )
        kin = kinematics(self.layout, self.parameters, q, self.links)
        eta = to_shapes(self.layout, q)
        factors = self._factor(kin, eta, joint / cm, spring / cm, motor / cm, cv / cm, cq / cm)
        return factors, cm

    def limits(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> Limits | None:
        side = coordinates.motor_side(self.layout, q, v)
        limits = self.drive.limits(self.robot, t, piece_time, *side, memory)
        if limits is None:
            return None
        dofs, effort, bound, kp, kd = limits
        row = np.arange(self.layout.dofs)
        row[list(self.layout.motors)] = np.arange(self.layout.nv)[self.layout.v_motors]
        return Limits(effort, bound, kp, kd, tuple(int(i) for i in row[dofs]))

    def precondition(self, factors: PyTree, r: Velocities) -> Velocities:
        f, cm = factors
        r_, zero = r / cm, jnp.zeros(f.X.shape[:2], r.dtype)
        shape_bias = -to_shapes(self.layout, r_)
        loads = Loads(self._split(r_), zero, zero, zero, zero[0], shape_bias, zero)
        x, _, shape = solve(f, loads)
        return jnp.where(self.locked, r, self._join(x, shape))

    def roundoff(self, factors: PyTree, q: Coordinates, v: Velocities) -> Scalar | None:
        # A joint inside a long chain carries the momentum of all links after it, and alone moves
        # little more than one link's inertia: the rounding of the former disturbs the latter.
        if len(self.layout.stages) < LONG:
            return None
        compliance = jnp.diagonal(factors[0].D_inverse, axis1=1, axis2=2)
        shaken = jnp.abs(self._split(self.momentum(q, v))) * compliance
        return 8 * jnp.finfo(q.dtype).eps / factors[1] * jnp.max(shaken)

    # --- energy
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        return self._momenta(kin, mass, v[None], self._still(1))[0].p[0]

    def _still(self, count: int) -> Float[Array, "k dim"]:
        """Twists of a base at rest."""
        return jnp.zeros((count, self.parameters.space.DIM), self.parameters.gravity.dtype)

    def _kinematics_and_mass(self, q: Coordinates) -> tuple[Kinematics, Mass]:
        kin = kinematics(self.layout, self.parameters, q, self.links)
        return kin, self.mass(to_shapes(self.layout, q))

    def _momenta(
        self,
        kin: Kinematics,
        mass: Mass,
        v: Float[Array, "k nv"],
        base: Float[Array, "k dim"],
        *others: GeneralisedForce,
    ) -> tuple[Momenta, Array, Array]:
        """Momenta at k velocities and twists of the base, forces that balance ``others``, and the
        parts of both that the base carries (k + others, dim)."""

        def moving(v, base):
            rate, own = to_shapes(self.layout, v), mv(kin.screw, to_joints(self.layout, v))
            bend = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
            z = outward(kin, base, own + onto_next(kin, bend))
            rotors = spins = None
            if self._rotors:
                spin = self._spin(behind(at_tip(kin, z, bend), base), v)
                rotors, spins = self._rotor_force(spin), self.parameters.rotor * spin
            slide = v[self.layout.slide_table()[0]] if self.layout.slides else z[:, 0]
            return self._times(mass, z, rate), rotors, spins, z, z - own, rate, slide

        force, rotors, spins, *rest = jax.vmap(moving)(v, base)
        k, more = v.shape[0], len(others)
        tree = jax.tree.map
        carried = tree(lambda x, *y: jnp.concatenate([x, *(z[None] for z in y)]), force, *others)
        padding = lambda x: jnp.pad(x, [(0, more)] + [(0, 0)] * (x.ndim - 1))
        p, W, ground = jax.vmap(lambda force, rotors: self._on_coordinates(kin, force, *rotors))(
            carried, tree(padding, (rotors, spins))
        )
        T = jax.vmap(lambda W, rotors: tip_wrench(kin, W, rotors))(W[:k], rotors)
        return Momenta(p[:k], W[:k], T, *rest), p[k:], ground

    def lagrangian(
        self, q: Coordinates, va: Velocities, vb: Velocities
    ) -> tuple[Velocities, Velocities, Velocities]:
        rest = self.parameters.space.identity(q.dtype)
        return self._lagrangian(q, va, vb, rest, self._still(2))[0]

    def _lagrangian(
        self,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        pose: se3.Pose,
        twists: Float[Array, "2 dim"],
    ) -> tuple[tuple[Velocities, Velocities, Velocities], Float[Array, "3 dim"]]:
        """``lagrangian`` on a base with this pose and these twists; its momenta, and the weight
        that it carries."""
        # One mass matrix for both: XLA merges two equal ones, but not their derivatives.
        kin, mass = self._kinematics_and_mass(q)
        both, (weight,), ground = self._momenta(
            kin, mass, jnp.stack([va, vb]), twists, self._weight(kin, mass, pose)
        )
        gradient = self._kinetic_gradient(q, both) + weight - self._elastic_gradient(q)
        return (both.p[0], both.p[1], gradient), ground

    def lagrangian_on_ground(
        self,
        s: ScalarLike,
        t0: ScalarLike,
        dt: ScalarLike,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        args: PieceTime,
    ) -> tuple[Velocities, Velocities, Velocities, tuple[Scalar, Scalar, Scalar] | None]:
        if self.drive.base is None:
            return (*self.lagrangian(q, va, vb), None)
        za, zb = self._base(t0, args)[1], self._base(t0 + dt, args)[1]
        pose, twist, _ = self._base(t0 + s * dt, args)
        own, (Pa, Pb, weight) = self._lagrangian(q, va, vb, pose, jnp.stack([za, zb]))
        mean = 0.5 * (za + zb)
        return (*own, (jnp.sum(mean * Pa), jnp.sum(mean * Pb), -jnp.sum(twist * weight)))

    def kinks(self, q: Coordinates, dx: Velocities) -> Float[Array, " k"]:
        links = self.links
        if links is None or not self.layout.slides:
            return jnp.zeros(0, q.dtype)
        index, sliding = self.layout.slide_table()
        station, rate = (jnp.where(sliding, x[index] / links.length, 0.0) for x in (q, dx))
        eta, eta_rate = to_shapes(self.layout, q), to_shapes(self.layout, dx)
        return links.kink(eta, station, eta_rate, rate)[np.flatnonzero(sliding)]

    def kinetic_gradient(self, q: Coordinates, va: Velocities, vb: Velocities) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        both = self._momenta(kin, mass, jnp.stack([va, vb]), self._still(2))[0]
        return self._kinetic_gradient(q, both)

    def _kinetic_gradient(self, q: Coordinates, both: Momenta) -> Velocities:
        star = jax.vmap(jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p))
        turned = jnp.sum(star(both.arriving, both.W[::-1]), axis=0)
        joints = from_joints(self.layout, 0.5 * mtv(self.parameters.screw, turned))
        eta = to_shapes(self.layout, q)
        links = self.links
        if links is None:
            return self._rows(joints, eta)

        # Momenta are the multipliers of the recursion of twists: with them fixed, the dependence
        # on the shape of a link is local to it.
        own = links.kinetic_gradient(eta, both.z, both.rate)
        if not self.layout.slides:
            tips = links.tip_gradient(eta, both.z, both.rate, both.T[::-1], self.parameters.space)
            return self._rows(joints, own + tips)

        def on_contacts(eta, q):
            tip, along = contacts(self.layout, links, eta, q)
            Xt = jax.vmap(self.parameters.space.adjoint_inverse)(tip.pose)
            twists = [
                mv(Xt, both.z[i]) + mv(tip.S, both.rate[i]) + along * both.slide[i][:, None]
                for i in range(2)
            ]
            return 0.5 * (jnp.sum(both.T[1] * twists[0]) + jnp.sum(both.T[0] * twists[1]))

        shape, contact = jax.grad(on_contacts, argnums=(0, 1))(eta, q)
        return self._rows(joints + contact[: self.layout.dofs], own + shape)

    def potential_gradient(self, q: Coordinates) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        rest = self.parameters.space.identity(q.dtype)
        weight = self._on_coordinates(kin, self._weight(kin, mass, rest), None)[0]
        return self._elastic_gradient(q) - weight

    def _weight(self, kin: Kinematics, mass: Mass, base: se3.Pose) -> GeneralisedForce:
        lin = self.parameters.space.LIN
        world = poses(self.parameters, kin, base)
        down = jax.vmap(lambda R: R.T @ self.parameters.gravity)(world.rotation)
        return GeneralisedForce(mv(mass.zz[:, :, :lin], down), mtv(mass.ze[:, :lin, :], down))

    def _elastic_gradient(self, q: Coordinates) -> Velocities:
        eta = to_shapes(self.layout, q)
        shapes = jnp.zeros_like(eta) if self.links is None else self.links.elastic_force(eta)
        joints = jnp.zeros(self.layout.dofs, q.dtype)
        return self._rows(joints, shapes) - spring_forces(self.layout, self.parameters, q)

    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        out = jnp.zeros_like(p)
        for s in self.layout.balls:
            sl = slice(s.v_start, s.v_start + 3)
            out = out.at[sl].set(jnp.cross(p[sl], v[sl]))
        return out

    def elastic_energy(self, q: Coordinates) -> Scalar:
        joints = joint_energy(self.layout, self.parameters, q)
        if self.links is None:
            return joints
        return joints + jnp.sum(self.links.elastic_energy(to_shapes(self.layout, q)))

    def energies(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        piece_time: PieceTime,
        motion: KinematicState | None = None,
    ) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        parameters, m = (
            self.parameters,
            self.motion(t, q, v, piece_time) if motion is None else motion,
        )
        mass = self.mass(m.eta)
        own = self._times(mass, m.z, m.rate)
        kinetic = 0.5 * (jnp.sum(m.z * own.wrench) + jnp.sum(m.rate * own.shape))
        if self._rotors:
            spin = self._spin(behind(m.z_tip, m.base_twist), v)
            kinetic = kinetic + 0.5 * jnp.sum(parameters.rotor * spin**2)
        moment = jax.vmap(lambda inertia: _mass_moment(inertia, parameters.space.LIN))(mass.zz)
        first = mv(m.world.rotation, moment)
        gravity = -jnp.sum((mass.zz[:, 0, :1] * m.world.position + first) @ parameters.gravity)
        return kinetic, self.elastic_energy(q), gravity

    def energy_flow(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        piece_time: PieceTime,
        memory: PyTree,
    ) -> EnergyFlow:
        driven, damped = self.forces(t, q, v, piece_time, memory)
        along = v
        if self.locked.any() or self.drive.base is not None:
            needs = self.inverse(t, q, v, a, piece_time)
            gap = needs.tau - self.coordinate_force(t, q, v, piece_time, memory)
            driven = driven + jnp.where(self.locked, gap, 0.0)
            if self.drive.base is not None:
                ground, m = needs.ground, needs.motion
                if self.drive.loads:
                    # Loads do work by the motion of the base too; the base loses what they gain.
                    loads = self._loads(t, piece_time, m)
                    ground = ground + self._on_coordinates(m.kin, loads, None)[2]
                driven = jnp.concatenate([driven, ground])
                along = jnp.concatenate([v, m.base_twist])
        return EnergyFlow(driven, along, damped, v)


def _mass_moment(inertia: Float[Array, "dim dim"], lin: int) -> Float[Array, " lin"]:
    """Mass times the centre of mass, from the coupling block of a body's inertia."""
    if lin == 2:
        return jnp.stack([inertia[1, 2], -inertia[0, 2]])
    return jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
