"""Forces, forward and inverse dynamics, and the Newton matrix of a serial chain."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from flexjax._types import Coordinates, Scalar, ScalarLike, Velocities
from flexjax.mechanism.chain.equations._condense import condense
from flexjax.mechanism.chain.equations._loads import GeneralisedForce, load_forces
from flexjax.mechanism.chain.equations._motion import AbstractMovingChain
from flexjax.mechanism.chain.equations._records import InverseDynamics, KinematicState
from flexjax.mechanism.chain.equations._recursion import Factors, Loads, factorise, solve
from flexjax.mechanism.chain.geometry._kinematics import (
    Kinematics,
    at_tip,
    behind,
    contacts,
    from_joints,
    from_shapes,
    kinematics,
    mv,
    onto_next,
    outward,
    to_joints,
    to_shapes,
)
from flexjax.mechanism.chain.geometry._links import Eta, Twists, sliding_links
from flexjax.mechanism.joints import _coordinates as coordinates
from flexjax.mechanism.joints._joint_forces import joint_forces, joint_stiffness
from flexjax.numerics.term import EnergyFlow, Instant, Limits

LONG = 16  # links from which a chain reports its round-off to Newton's iteration


class AbstractChainDynamics(AbstractMovingChain):
    """The equations of motion of a chain."""

    # --- forces
    def _coordinate_forces(
        self, now: Instant, q: Coordinates, v: Velocities
    ) -> tuple[Velocities, Velocities, Velocities]:
        """Generalised forces (nv,) with a potential; of the drive; of dampers."""
        hardware = self.parameters.hardware
        forces = joint_forces(self.layout.coordinates, hardware, self.drive, self.robot, now, q, v)
        elastic, driven, damped = forces.elastic, forces.driven, forces.damped
        if self.links is not None:
            eta, rate = to_shapes(self.layout, q), to_shapes(self.layout, v)
            elastic = elastic - from_shapes(self.layout, self.links.elastic_force(eta))
            resisted = self.links.damping_force(eta, rate)
            damped = damped - from_shapes(self.layout, resisted)
        return elastic, driven, damped

    def coordinate_force(self, now: Instant, q: Coordinates, v: Velocities) -> Velocities:
        """Generalised forces (nv,) of joints, motors and material together."""
        elastic, driven, damped = self._coordinate_forces(now, q, v)
        return elastic + driven + damped

    def _loads(self, now: Instant, m: KinematicState) -> GeneralisedForce:
        return load_forces(
            self.robot,
            self.layout,
            self.parameters,
            self.links,
            self.drive,
            now.t,
            now.piece_time,
            m.world,
            m.eta,
        )

    def forces(self, now: Instant, q: Coordinates, v: Velocities) -> tuple[Velocities, Velocities]:
        _, driven, damped = self._coordinate_forces(now, q, v)
        if self.drive.loads:
            m = self.motion(now, q, v)
            driven = driven + self._on_coordinates(m.kin, self._loads(now, m), None)[0]
        return driven, damped

    def energy_flow(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> EnergyFlow:
        driven, damped = self.forces(now, q, v)
        along = v
        if self.locked.any() or self.drive.base is not None:
            needs = self.inverse(now, q, v, a)
            gap = needs.tau - self.coordinate_force(now, q, v)
            driven = driven + jnp.where(self.locked, gap, 0.0)
            if self.drive.base is not None:
                ground, m = needs.ground, needs.motion
                if self.drive.loads:
                    # Loads do work by the motion of the base too; the base loses what they gain.
                    loads = self._loads(now, m)
                    ground = ground + self._on_coordinates(m.kin, loads, None)[2]
                driven = jnp.concatenate([driven, ground])
                along = jnp.concatenate([v, m.base_twist])
        return EnergyFlow(driven, along, damped, v)

    # --- velocity products
    def _bias(self, now: Instant, m: KinematicState) -> GeneralisedForce:
        """Velocity products less loads: what the bodies need beyond mass times acceleration."""
        momentum = mv(self.parameters.inertia, m.z)
        wrench = -jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p)(m.z, momentum)
        shape = jnp.zeros_like(m.eta)
        if self.links is not None:
            extra, shape = self.links.bias(m.eta, m.rate, m.z)
            wrench = wrench + extra
        if self.drive.loads:
            load = self._loads(now, m)
            wrench, shape = wrench - load.wrench, shape - load.shape
        return GeneralisedForce(wrench, shape)

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
        transport = jax.vmap(lambda z, s: self.parameters.space.ad(z) @ s)
        if not self.layout.slides:
            return transport(mv(Xt, m.z), mv(tip.S, m.rate)) + links.tip_rate(m.eta, m.rate)

        def moving(eta, q):
            # The frame of the contact moves with shape and coordinate: one total rate for both.
            tip, along = contacts(self.layout, sliding_links(links), eta, q)
            return mv(tip.S, m.rate) + along * slide[:, None]

        index, _ = self.layout.slide_table()
        slide = m.v[index]
        own, rate = jax.jvp(moving, (m.eta, m.q), (m.rate, m.v))
        return transport(mv(Xt, m.z), own) + rate

    # --- elimination
    def _free(self) -> Bool[np.ndarray, "B n"]:
        index, mask, motor, has = self._tables
        free_v = np.append(~self.locked, False)
        free = mask & free_v[index]
        if not self.layout.coordinates.motors:
            return free
        return np.concatenate([free, (has & free_v[motor])[:, None]], 1)

    def _split(self, per_v: Velocities) -> Float[Array, "B n"]:
        """Unknowns (B, n) of the stages from (nv,)."""
        if not self.layout.coordinates.motors:
            return to_joints(self.layout, per_v)
        index, _, motor, _ = self._tables
        padded = jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])
        return jnp.concatenate([padded[index], padded[motor][:, None]], 1)

    def _join(self, x: Float[Array, "B n"], shape: Eta) -> Velocities:
        """(nv,) from the unknowns of the stages (B, n) and the shape accelerations (B, m)."""
        layout = self.layout
        out = jnp.pad(from_joints(layout, x[:, : layout.width]), (0, layout.nv + 1 - layout.dofs))
        if layout.coordinates.motors:
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
                mass = sliding_links(self.links).stiffen(mass, extra)
            factors = self.links.factor(eta, mass, cv, cq)
            inertia = self.parameters.inertia
            condensed = condense(self.links, inertia, mass, factors, *kin.sections, shape_bias)
        diagonal, spring, motor = (
            to_joints(self.layout, jnp.pad(x, rest)) for x in (diagonal, spring, motor)
        )
        stiffness = (diagonal, spring[:, 0], motor[:, 0])
        return factorise(self.parameters, kin, self._free(), self._tables[3], *stiffness, condensed)

    # --- forward and inverse dynamics
    def accelerate(self, now: Instant, q: Coordinates, v: Velocities) -> Velocities:
        return self.forward(now, self.motion(now, q, v))[0]

    def forward(self, now: Instant, m: KinematicState) -> tuple[Array, Array]:
        """Forward dynamics: accelerations (nv,), and of the frames (B, dim) less gravity."""
        q, v = m.q, m.v
        force = self.coordinate_force(now, q, v)
        zero = jnp.zeros(self.layout.dofs, q.dtype)
        known = jnp.where(self.locked, self.prescribed(now.t, now.piece_time)[3], 0.0)
        section = behind(m.z_tip, m.base_twist)
        rotors = jnp.zeros_like(section)
        if self._rotors:
            given = self._spin(rotors, known)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_force(given)
        bias, tip_rate = self._bias(now, m), self._tip_rate(m)
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

    def inverse(
        self, now: Instant, q: Coordinates, v: Velocities, a: Velocities
    ) -> InverseDynamics:
        """Inverse dynamics."""
        return self.backward(now, self.motion(now, q, v), a)

    def backward(
        self, now: Instant, m: KinematicState, a: Velocities, acc: Twists | None = None
    ) -> InverseDynamics:
        """Inverse dynamics of a motion; ``acc``: accelerations of the frames, if known already."""
        v, shape = m.v, to_shapes(self.layout, a)
        deformation = jnp.zeros_like(m.z)
        if self.links is not None:
            deformation = mv(m.kin.sections[0].S, shape) + self._tip_rate(m)
        if acc is None:
            own = self._joint_rate(m) + mv(m.kin.screw, to_joints(self.layout, a))
            acc = outward(m.kin, m.base_acceleration, own + onto_next(m.kin, deformation))
        force = self._times(self.mass(m.eta), acc, shape) + self._bias(now, m)
        rotors = spins = None
        if self._rotors:
            section = behind(m.z_tip, m.base_twist)
            spin_rate = self._spin(behind(at_tip(m.kin, acc, deformation), m.base_acceleration), a)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_force(
                spin_rate
            )
            spins = self.parameters.rotor * spin_rate
        tau, W, ground = self._on_coordinates(m.kin, force, rotors, spins)
        return InverseDynamics(tau, W, ground, acc, shape, m)

    def balance(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> Velocities:
        force = self.coordinate_force(now, q, v)
        return self.inverse(now, q, v, a).tau - force

    # --- Newton matrix
    def preconditioner(
        self, now: Instant, q: Coordinates, v: Velocities, cv: ScalarLike, cq: ScalarLike
    ) -> Factors:
        hardware = self.parameters.hardware
        stiffness = joint_stiffness(
            self.layout.coordinates, hardware, self.drive, self.robot, now, q, v, cv, cq
        )
        kin = kinematics(self.layout, self.parameters, q, self.links)
        return self._factor(kin, to_shapes(self.layout, q), *stiffness, cv, cq)

    def precondition(self, factors: Factors, r: Velocities) -> Velocities:
        zero = jnp.zeros(factors.X.shape[:2], r.dtype)
        shape_bias = -to_shapes(self.layout, r)
        loads = Loads(self._split(r), zero, zero, zero, zero[0], shape_bias, zero)
        x, _, shape = solve(factors, loads)
        return jnp.where(self.locked, r, self._join(x, shape))

    def limits(self, now: Instant, q: Coordinates, v: Velocities) -> Limits | None:
        side = coordinates.motor_side(self.layout.coordinates, q, v)
        limits = self.drive.limits(self.robot, now.t, now.piece_time, *side, now.memory)
        if limits is None:
            return None
        dofs, effort, bound, kp, kd = limits
        row = np.arange(self.layout.dofs)
        places = self.layout.coordinates
        row[list(places.motors)] = np.arange(places.nv)[places.v_motors]
        return Limits(effort, bound, kp, kd, tuple(int(i) for i in row[dofs]))

    def roundoff(self, factors: Factors, q: Coordinates, v: Velocities) -> Scalar | None:
        # A joint inside a long chain carries the momentum of all links after it, and alone moves
        # little more than one link's inertia: the rounding of the former disturbs the latter.
        if len(self.layout.stages) < LONG:
            return None
        compliance = jnp.diagonal(factors.D_inverse, axis1=1, axis2=2)
        shaken = jnp.abs(self._split(self.momentum(q, v))) * compliance
        return 8 * jnp.finfo(q.dtype).eps * jnp.max(shaken)
