"""The second-order term of a serial chain: rigid bodies and flexible links, flexible joints, motors, friction, end
stops, controllers, loads, a moving base."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.mechanism.chain import _coordinates as at
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
    gather,
    kinematics,
    mtv,
    mv,
    onto_next,
    pad,
    pad_shapes,
    poses,
    scatter,
    scatter_shapes,
    spread,
    tip_wrench,
)
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._links import AbstractLinks, Eta, Mass, Twists
from flexjax.mechanism.chain._loads import Pull, load_pull
from flexjax.mechanism.chain._motion import Momenta, Motion, Needs
from flexjax.mechanism.chain._parameters import PLANAR, Parameters
from flexjax.mechanism.chain._recursion import Factors, Loads, factorise, solve
from flexjax.numerics.screw import se3
from flexjax.numerics.term import AbstractSecondOrderTerm, Limits, Mechanical, State
from flexjax.robot import Robot

LONG = 16  # links from which a chain tells Newton's iteration of its round-off


class ChainTerm(AbstractSecondOrderTerm):
    """Equations of motion of a serial chain under one drive; ``links`` is None where all links are rigid."""

    robot: Robot
    par: Parameters
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
        return at.move(self.layout, q, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return Mechanical(at.ambient_rate(self.layout, mech.q, dx.q), dx.v)

    @property
    def locked(self) -> np.ndarray:
        return at.locked(self.layout, self.drive.prescribed(self.robot))

    def prescribed(
        self, t: ScalarLike, args: PieceTime
    ) -> tuple[np.ndarray, Velocities, Velocities, Velocities]:
        lay, (x, xd, xdd) = self.layout, self.drive.motion(self.robot, t, args)
        return self.locked, at.to_v(lay, x), at.to_v(lay, xd), at.to_v(lay, xdd)

    def impose(self, q: Coordinates, target: Velocities) -> Coordinates:
        where = np.flatnonzero(self.locked)
        return q.at[self.layout.q_of_v()[where]].set(target[where])

    def displacement(self, q: Coordinates, target: Velocities) -> Velocities:
        where = np.flatnonzero(self.locked)
        return jnp.zeros_like(target).at[where].set(target[where] - q[self.layout.q_of_v()[where]])

    def coordinates(self, q: Coordinates) -> Float[Array, " D"]:
        """Link-side joint coordinates (D,): rotation vectors for balls."""
        return at.joint_coordinates(self.layout, q)

    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        return at.motor_side(self.layout, y.mech.q, y.mech.v)

    def _rows(
        self, joints: Float[Array, " D"], shapes: Eta, rotors: Velocities | None = None
    ) -> Velocities:
        """(nv,) from generalised forces on joints (D,), shape coordinates (B, m) and rotors (nv,)."""
        motors = jnp.zeros(len(self.layout.motors), joints.dtype)
        rest = jnp.zeros(sum(self.layout.shapes), joints.dtype)
        out = jnp.concatenate([joints, motors, rest]) + scatter_shapes(self.layout, shapes)
        return out if rotors is None else out + rotors

    # --- kinematics
    def motion(self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime) -> Motion:
        par, dtype = self.par, self.par.gravity.dtype
        kin = kinematics(self.layout, par, q, self.links)
        space = par.space
        if self.drive.base is None:
            base, twist, acc = (
                space.identity(dtype),
                jnp.zeros(space.DIM, dtype),
                jnp.zeros(space.DIM, dtype),
            )
        else:
            base, twist, acc = self.drive.base.motion(t, args)
            if self.layout.planar:
                base, twist, acc = (
                    se3.Pose(base.rotation[:2, :2], base.position[:2]),
                    twist[PLANAR],
                    acc[PLANAR],
                )
        # The linear part of a body acceleration here is the component derivative u'; gravity g enters as u' - R^T g.
        acc = acc - jnp.pad(base.rotation.T @ par.gravity, (0, space.DIM - space.LIN))
        own = mv(kin.screw, pad(self.layout, v))
        eta, rate = pad_shapes(self.layout, q), pad_shapes(self.layout, v)
        bend = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
        z = spread(kin, twist, own + onto_next(kin, bend))
        return Motion(
            kin, poses(par, kin, base), z, own, at_tip(kin, z, bend), eta, rate, q, v, twist, acc
        )

    @property
    def _rotors(self) -> bool:
        """Whether any joint has one: absent ones cost no program."""
        return any(j.motor is not None and j.motor.rotor is not None for j in self.robot.joints)

    def _spin(self, section_rate: Twists, v: Velocities) -> Float[Array, " B"]:
        """Rate (or acceleration) of every rotor about its axis."""
        index, _, motor, has = self._tables
        padded = jnp.concatenate([v, jnp.zeros(1, v.dtype)])
        return (
            jnp.sum(self.par.rotor_axis * section_rate, axis=1)
            + self.par.gear * padded[np.where(has, motor, index[:, 0])]
        )

    def _on_rotor_coordinates(self, per_stage: Float[Array, " B"]) -> Velocities:
        """(nv,) generalised forces of the rotors from their torques (B,)."""
        index, _, motor, has = self._tables
        where = np.where(has, motor, index[:, 0])
        return (
            jnp.zeros(self.layout.nv + 1, per_stage.dtype)
            .at[where]
            .add(self.par.gear * per_stage)[:-1]
        )

    # --- inertia
    def mass(self, eta: Eta) -> Mass:
        """Of bodies and links together."""
        if self.links is None:
            return Mass(
                self.par.inertia, jnp.zeros((*self.par.inertia.shape[:2], 0), eta.dtype), None
            )
        mass = self.links.mass(eta)
        return Mass(self.par.inertia + mass.zz, mass.ze, mass.ee)

    def _times(self, mass: Mass, z: Twists, x: Eta) -> Pull:
        """The mass matrices of the bodies times (z, x)."""
        shape = (
            mtv(mass.ze, z) if self.links is None else mtv(mass.ze, z) + self.links.apply(mass, x)
        )
        return Pull(mv(mass.zz, z) + mv(mass.ze, x), shape)

    def _on_coordinates(
        self,
        kin: Kinematics,
        pull: Pull,
        rotors: Twists | None,
        spins: Float[Array, " B"] | None = None,
    ) -> tuple[Velocities, Twists, Float[Array, " dim"]]:
        """(generalised forces (nv,), wrenches, wrench on the ground) that carry ``pull`` on the bodies, ``rotors`` on
        the sections, and torques
        ``spins`` about the rotors' axes."""
        W, ground = gather(kin, pull.wrench, rotors)
        shape = (
            pull.shape
            if kin.tip is None
            else pull.shape + mtv(kin.tip.S, tip_wrench(kin, W, rotors))
        )
        turning = None if spins is None else self._on_rotor_coordinates(spins)
        return self._rows(scatter(self.layout, mtv(kin.screw, W)), shape, turning), W, ground

    def _bias(self, t: ScalarLike, args: PieceTime, m: Motion) -> Pull:
        """What the bodies need beyond mass times acceleration: velocity products, less loads."""
        wrench = -jax.vmap(lambda z, p: self.par.space.ad_star(z) @ p)(
            m.z, mv(self.par.inertia, m.z)
        )
        shape = jnp.zeros_like(m.eta)
        if self.links is not None:
            extra, shape = self.links.bias(m.eta, m.rate, m.z)
            wrench = wrench + extra
        if self.drive.loads:
            load = self._loads(t, args, m)
            wrench, shape = wrench - load.wrench, shape - load.shape
        return Pull(wrench, shape)

    def _loads(self, t: ScalarLike, args: PieceTime, m: Motion) -> Pull:
        return load_pull(
            self.robot, self.layout, self.par, self.links, self.drive, t, args, m.world, m.eta
        )

    def _gyroscopic(self, section: Twists, spin: Float[Array, " B"]) -> Twists:
        """Wrench on the section that turns the spin of the rotors with it."""
        return -jax.vmap(lambda z, p: self.par.space.ad_star(z) @ p)(
            section, self._rotor_pull(spin)
        )

    def _rotor_pull(self, spin: Float[Array, " B"]) -> Twists:
        return (self.par.rotor * spin)[:, None] * self.par.rotor_axis

    # --- forces of coordinates: joints, motors, material
    def _coordinate_forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities, Velocities]:
        """(nv,) with a potential; of the drive; of dampers."""
        elastic, driven, damped = joint_forces(
            self.layout, self.par, self.drive, self.robot, t, q, v, args, memory
        )
        if self.links is not None:
            elastic = elastic - scatter_shapes(
                self.layout, self.links.elastic_force(pad_shapes(self.layout, q))
            )
            resisted = self.links.damping_force(
                pad_shapes(self.layout, q), pad_shapes(self.layout, v)
            )
            damped = damped - scatter_shapes(self.layout, resisted)
        return elastic, driven, damped

    def coordinate_force(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> Velocities:
        """Generalised forces (nv,) of joints, motors and material together."""
        elastic, driven, damped = self._coordinate_forces(t, q, v, args, memory)
        return elastic + driven + damped

    def forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities]:
        _, driven, damped = self._coordinate_forces(t, q, v, args, memory)
        if self.drive.loads:
            m = self.motion(t, q, v, args)
            driven = driven + self._on_coordinates(m.kin, self._loads(t, args, m), None)[0]
        return driven, damped

    # --- dynamics
    def _free(self) -> Bool[np.ndarray, "B n"]:
        index, mask, motor, has = self._tables
        free_v = np.append(~self.locked, False)
        free = mask & free_v[index]
        return (
            np.concatenate([free, (has & free_v[motor])[:, None]], 1)
            if self.layout.motors
            else free
        )

    def _split(self, per_v: Velocities) -> Float[Array, "B n"]:
        """(B, n) unknowns of the stages from (nv,)."""
        if not self.layout.motors:
            return pad(self.layout, per_v)
        index, _, motor, _ = self._tables
        padded = jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])
        return jnp.concatenate([padded[index], padded[motor][:, None]], 1)

    def _join(self, x: Float[Array, "B n"], shape: Eta) -> Velocities:
        """(nv,) from the unknowns of the stages (B, n) and the shape accelerations (B, m)."""
        lay = self.layout
        out = jnp.pad(scatter(lay, x[:, : lay.width]), (0, lay.nv + 1 - lay.dofs))
        if lay.motors:
            out = out.at[lay.motor_table()].set(x[:, -1])
        return out[:-1] + scatter_shapes(lay, shape)

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
        has = self._tables[3]
        condensed = None
        if self.links is not None:
            mass = self.links.mass(eta)
            if self.layout.extends:
                rest = jnp.zeros(self.layout.nv - self.layout.dofs, eta.dtype)
                mass = self.links.stiffen(
                    mass, pad_shapes(self.layout, jnp.concatenate([diagonal, rest]))
                )
            condensed = condense(
                self.links,
                self.par.inertia,
                mass,
                self.links.factor(eta, mass, cv, cq),
                *kin.sections,
                shape_bias,
            )
        rest = self.layout.nv - self.layout.dofs
        diagonal, spring, motor = (
            pad(self.layout, jnp.pad(x, (0, rest))) for x in (diagonal, spring, motor)
        )
        return factorise(
            self.par,
            kin,
            self._free(),
            has,
            diagonal,
            spring[:, 0],
            motor[:, 0],
            condensed,
        )

    def accelerate(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> Velocities:
        return self.forward(t, self.motion(t, q, v, args), args, memory)[0]

    def forward(
        self, t: ScalarLike, m: Motion, args: PieceTime, memory: PyTree
    ) -> tuple[Array, Array]:
        """Forward dynamics: accelerations of the coordinates (nv,), and of the frames (B, dim), less gravity."""
        q, v = m.q, m.v
        force = self.coordinate_force(t, q, v, args, memory)
        zero = jnp.zeros(self.layout.dofs, q.dtype)
        known = jnp.where(self.locked, self.prescribed(t, args)[3], 0.0)
        section = behind(m.z_tip, m.base_twist)
        rotors = jnp.zeros_like(section)
        if self._rotors:
            given = self._spin(rotors, known)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_pull(given)
        bias, tip_rate = self._bias(t, args, m), self._tip_rate(m)
        if self.layout.extends:
            given = pad_shapes(self.layout, known)
            bias = bias + self._times(self.mass(m.eta), jnp.zeros_like(m.z), given)
            tip_rate = tip_rate + mv(m.kin.sections[0].S, given)
        shape_bias = bias.shape - pad_shapes(self.layout, force)
        factors = self._factor(m.kin, m.eta, zero, zero, zero, shape_bias=shape_bias)
        loads = Loads(
            self._split(force),
            bias.wrench,
            self._joint_rate(m) + mv(m.kin.screw, pad(self.layout, known)),
            rotors,
            m.base_acceleration,
            shape_bias,
            tip_rate,
        )
        x, acceleration, shape = solve(factors, loads)
        return jnp.where(self.locked, known, self._join(x, shape)), acceleration

    def _joint_rate(self, m: Motion) -> Twists:
        """ad_z A v: the part of a body's acceleration that comes of turning joint axes. That of contacts that slide is
        in the tips' rate."""
        own = mv(self.par.screw, pad(self.layout, m.v)) if self.layout.slides else m.own
        return jax.vmap(lambda z, s: self.par.space.ad(z) @ s)(m.z, own)

    def _tip_rate(self, m: Motion) -> Twists:
        """The part of a tip's acceleration beyond X_t z' + S eta'': ad_(X_t z) S eta' + S' eta'."""
        links = self.links
        if links is None:
            return jnp.zeros_like(m.z)
        tip, Xt = m.kin.sections
        turn = jax.vmap(lambda z, s: self.par.space.ad(z) @ s)
        if not self.layout.slides:
            return turn(mv(Xt, m.z), mv(tip.S, m.rate)) + links.tip_rate(m.eta, m.rate)

        def moving(eta, q):
            # The contact's own frame moves with shape and coordinate alike: one total rate for both.
            tip, along = contacts(self.layout, links, eta, q)
            return mv(tip.S, m.rate) + along * slide[:, None]

        index, _ = self.layout.slide_table()
        slide = m.v[index]
        own, rate = jax.jvp(moving, (m.eta, m.q), (m.rate, m.v))
        return turn(mv(Xt, m.z), own) + rate

    def inverse(
        self, t: ScalarLike, q: Coordinates, v: Velocities, a: Velocities, args: PieceTime
    ) -> Needs:
        """Inverse dynamics."""
        return self.backward(t, self.motion(t, q, v, args), a, args)

    def backward(
        self, t: ScalarLike, m: Motion, a: Velocities, args: PieceTime, acc: Twists | None = None
    ) -> Needs:
        """Inverse dynamics of a motion, with the accelerations of the frames where they are known already: no compiler sees that two sweeps are the same."""
        v, shape = m.v, pad_shapes(self.layout, a)
        bend = (
            jnp.zeros_like(m.z)
            if self.links is None
            else mv(m.kin.sections[0].S, shape) + self._tip_rate(m)
        )
        if acc is None:
            own = (
                self._joint_rate(m) + mv(m.kin.screw, pad(self.layout, a)) + onto_next(m.kin, bend)
            )
            acc = spread(m.kin, m.base_acceleration, own)
        pull = self._times(self.mass(m.eta), acc, shape) + self._bias(t, args, m)
        rotors = spins = None
        if self._rotors:
            section = behind(m.z_tip, m.base_twist)
            spin_rate = self._spin(behind(at_tip(m.kin, acc, bend), m.base_acceleration), a)
            rotors = self._gyroscopic(section, self._spin(section, v)) + self._rotor_pull(spin_rate)
            spins = self.par.rotor * spin_rate
        tau, W, ground = self._on_coordinates(m.kin, pull, rotors, spins)
        return Needs(tau, W, ground, acc, shape, m)

    def balance(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        args: PieceTime,
        memory: PyTree,
    ) -> Velocities:
        force = self.coordinate_force(t, q, v, args, memory)
        return self.inverse(t, q, v, a, args).tau - force

    def preconditioner(self, t, q, v, cm, cv, cq, args, memory):
        joint, spring, motor = joint_stiffness(
            self.layout, self.par, self.drive, self.robot, t, q, v, cv, cq, args, memory
        )
        kin = kinematics(self.layout, self.par, q, self.links)
        eta = pad_shapes(self.layout, q)
        factors = self._factor(kin, eta, joint / cm, spring / cm, motor / cm, cv / cm, cq / cm)
        return factors, cm

    def limits(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> Limits | None:
        side = at.motor_side(self.layout, q, v)
        limits = self.drive.limits(self.robot, t, args, *side, memory)
        if limits is None:
            return None
        dofs, effort, bound, kp, kd = limits
        row = np.arange(self.layout.dofs)
        row[list(self.layout.motors)] = np.arange(self.layout.nv)[self.layout.v_motors]
        return Limits(effort, bound, kp, kd, tuple(int(i) for i in row[dofs]))

    def precondition(self, factors: PyTree, r: Velocities) -> Velocities:
        f, cm = factors
        zero = jnp.zeros(f.X.shape[:2], r.dtype)
        x, _, shape = solve(
            f,
            Loads(
                self._split(r / cm),
                zero,
                zero,
                zero,
                zero[0],
                -pad_shapes(self.layout, r / cm),
                zero,
            ),
        )
        return jnp.where(self.locked, r, self._join(x, shape))

    def roundoff(self, factors: PyTree, q: Coordinates, v: Velocities) -> Scalar | None:
        # A joint far inside a long chain carries the momentum of all that hangs on it (it grows with the square of their number) and, alone, moves little
        # more than one link's inertia: rounding the former shakes the latter. Of 20 to 100 links, straight and bent, corrections ended 1.7 to 4.9 times above
        # round-off of the momenta over the joints' articulated inertia, 2e-13 to 2.5e-11 of the velocities. Few links are not worth the sweep.
        if len(self.layout.stages) < LONG:
            return None
        shaken = jnp.abs(self._split(self.momentum(q, v))) * jnp.diagonal(
            factors[0].D_inverse, axis1=1, axis2=2
        )
        return 8 * jnp.finfo(q.dtype).eps / factors[1] * jnp.max(shaken)

    # --- energy
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        mass = self.mass(pad_shapes(self.layout, q))
        return self._momenta(kinematics(self.layout, self.par, q, self.links), mass, v[None])[0].p[
            0
        ]

    def _momenta(
        self, kin: Kinematics, mass: Mass, v: Float[Array, "k nv"], *others: Pull
    ) -> tuple[Momenta, Array]:
        """Of the chain with its base at rest, at k velocities; and what carries ``others``: all in one sweep."""
        still = jnp.zeros(self.par.space.DIM, v.dtype)

        def moving(v):
            rate, own = pad_shapes(self.layout, v), mv(kin.screw, pad(self.layout, v))
            bend = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
            z = spread(kin, still, own + onto_next(kin, bend))
            rotors = spins = None
            if self._rotors:
                spin = self._spin(behind(at_tip(kin, z, bend), still), v)
                rotors, spins = self._rotor_pull(spin), self.par.rotor * spin
            slide = v[self.layout.slide_table()[0]] if self.layout.slides else z[:, 0]
            return self._times(mass, z, rate), rotors, spins, z, z - own, rate, slide

        pull, rotors, spins, *rest = jax.vmap(moving)(v)
        k, more = v.shape[0], len(others)
        carried = jax.tree_util.tree_map(
            lambda first, *x: jnp.concatenate([first, *(y[None] for y in x)]), pull, *others
        )
        turning = jax.tree_util.tree_map(
            lambda x: jnp.pad(x, [(0, more)] + [(0, 0)] * (x.ndim - 1)), (rotors, spins)
        )
        p, W, _ = jax.vmap(lambda pull, turning: self._on_coordinates(kin, pull, *turning))(
            carried, turning
        )
        T = jax.vmap(lambda W, rotors: tip_wrench(kin, W, rotors))(W[:k], rotors)
        return Momenta(p[:k], W[:k], T, *rest), p[k:]

    def lagrangian(
        self, q: Coordinates, va: Velocities, vb: Velocities
    ) -> tuple[Velocities, Velocities, Velocities]:
        kin = kinematics(self.layout, self.par, q, self.links)
        # One mass matrix for both: the compiler sees that two are the same, but not that their derivatives are.
        mass = self.mass(pad_shapes(self.layout, q))
        both, (weight,) = self._momenta(kin, mass, jnp.stack([va, vb]), self._weight(kin, mass))
        return (
            both.p[0],
            both.p[1],
            self._kinetic_gradient(q, both) + weight - self._elastic_gradient(q),
        )

    def kinks(self, q: Coordinates, dx: Velocities) -> Float[Array, " k"]:
        links = self.links
        if links is None or not self.layout.slides:
            return jnp.zeros(0, q.dtype)
        index, sliding = self.layout.slide_table()
        at, rate = (jnp.where(sliding, x[index] / links.length, 0.0) for x in (q, dx))
        eta, eta_rate = pad_shapes(self.layout, q), pad_shapes(self.layout, dx)
        return links.kink(eta, at, eta_rate, rate)[np.flatnonzero(sliding)]

    def kinetic_gradient(self, q: Coordinates, va: Velocities, vb: Velocities) -> Velocities:
        kin, mass = (
            kinematics(self.layout, self.par, q, self.links),
            self.mass(pad_shapes(self.layout, q)),
        )
        return self._kinetic_gradient(q, self._momenta(kin, mass, jnp.stack([va, vb]))[0])

    def _kinetic_gradient(self, q: Coordinates, both: Momenta) -> Velocities:
        star = jax.vmap(jax.vmap(lambda z, p: self.par.space.ad_star(z) @ p))
        turned = jnp.sum(star(both.arriving, both.W[::-1]), axis=0)
        joints = scatter(self.layout, 0.5 * mtv(self.par.screw, turned))
        eta = pad_shapes(self.layout, q)
        links = self.links
        if links is None:
            return self._rows(joints, eta)

        # Momenta are the multipliers of the twists' recursion: with them held, the dependence on the shape of one link is
        # that link's own.
        own = links.kinetic_gradient(eta, both.z, both.rate)
        if not self.layout.slides:
            return self._rows(
                joints,
                own + links.tip_gradient(eta, both.z, both.rate, both.T[::-1], self.par.space),
            )

        def on_contacts(eta, q):
            tip, along = contacts(self.layout, links, eta, q)
            Xt = jax.vmap(self.par.space.adjoint_inverse)(tip.pose)
            twists = [
                mv(Xt, both.z[i]) + mv(tip.S, both.rate[i]) + along * both.slide[i][:, None]
                for i in range(2)
            ]
            return 0.5 * (jnp.sum(both.T[1] * twists[0]) + jnp.sum(both.T[0] * twists[1]))

        shape, contact = jax.grad(on_contacts, argnums=(0, 1))(eta, q)
        return self._rows(joints + contact[: self.layout.dofs], own + shape)

    def potential_gradient(self, q: Coordinates) -> Velocities:
        kin = kinematics(self.layout, self.par, q, self.links)
        weight = self._weight(kin, self.mass(pad_shapes(self.layout, q)))
        return self._elastic_gradient(q) - self._on_coordinates(kin, weight, None)[0]

    def _weight(self, kin: Kinematics, mass: Mass) -> Pull:
        lin = self.par.space.LIN
        world = poses(self.par, kin, self.par.space.identity(mass.zz.dtype))
        down = jax.vmap(lambda R: R.T @ self.par.gravity)(world.rotation)
        return Pull(mv(mass.zz[:, :, :lin], down), mtv(mass.ze[:, :lin, :], down))

    def _elastic_gradient(self, q: Coordinates) -> Velocities:
        eta = pad_shapes(self.layout, q)
        shapes = jnp.zeros_like(eta) if self.links is None else self.links.elastic_force(eta)
        return self._rows(jnp.zeros(self.layout.dofs, q.dtype), shapes) - spring_forces(
            self.layout, self.par, q
        )

    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        out = jnp.zeros_like(p)
        for s in self.layout.balls:
            sl = slice(s.v_start, s.v_start + 3)
            out = out.at[sl].set(jnp.cross(p[sl], v[sl]))
        return out

    def elastic_energy(self, q: Coordinates) -> Scalar:
        joints = joint_energy(self.layout, self.par, q)
        return (
            joints
            if self.links is None
            else joints + jnp.sum(self.links.elastic_energy(pad_shapes(self.layout, q)))
        )

    def energies(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        args: PieceTime,
        motion: Motion | None = None,
    ) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        par, m = self.par, self.motion(t, q, v, args) if motion is None else motion
        mass = self.mass(m.eta)
        own = self._times(mass, m.z, m.rate)
        kinetic = 0.5 * (jnp.sum(m.z * own.wrench) + jnp.sum(m.rate * own.shape))
        if self._rotors:
            kinetic = kinetic + 0.5 * jnp.sum(
                par.rotor * self._spin(behind(m.z_tip, m.base_twist), v) ** 2
            )
        lin = par.space.LIN
        first = jax.vmap(lambda R, inertia: R @ _mass_moment(inertia, lin))(
            m.world.rotation, mass.zz
        )
        gravity = -jnp.sum((mass.zz[:, 0, :1] * m.world.position + first) @ par.gravity)
        return kinetic, self.elastic_energy(q), gravity

    def power_at(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        args: PieceTime,
        memory: PyTree,
    ) -> tuple[Scalar, Scalar]:
        driven, damped = self.forces(t, q, v, args, memory)
        power = jnp.sum(driven * v)
        if self.locked.any() or self.drive.base is not None:
            needs = self.inverse(t, q, v, a, args)
            gap = needs.tau - self.coordinate_force(t, q, v, args, memory)
            power = (
                power
                + jnp.sum(jnp.where(self.locked, gap * v, 0.0))
                + jnp.sum(needs.motion.base_twist * needs.ground)
            )
        return power, -jnp.sum(damped * v)


def _mass_moment(inertia: Float[Array, "dim dim"], lin: int) -> Float[Array, " lin"]:
    """Mass times the centre of mass, read off the coupling block of a body's inertia."""
    if lin == 2:
        return jnp.stack([inertia[1, 2], -inertia[0, 2]])
    return jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
