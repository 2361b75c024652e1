"""Lagrange's equations of the carrier and the arm as a second-order term: kinetic and potential energy are written once, forces follow from them.

Coordinates: joints in robot order (angles, shifts, lengths), then the elastic unknowns. The balance is d/dt dT/dv - dT/dq + dV/dq - Q with the time
derivative taken by jvp along (v, a), so every product of velocities, every term of a changing length and the row of a length itself (at fixed material)
is there by construction.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.formulation.moving_beam import _carrier, _link
from flexjax.formulation.moving_beam._carrier import Carrier, Tip
from flexjax.formulation.moving_beam._layout import Layout
from flexjax.formulation.moving_beam._link import Arm, Rates
from flexjax.formulation.moving_beam._strain import Tables
from flexjax.mechanism import JointHardware
from flexjax.numerics.linalg import _element_chain
from flexjax.numerics.screw import se3
from flexjax.numerics.solver._newton import stop
from flexjax.numerics.term import AbstractLagrangianTerm, Limits, Mechanical, State
from flexjax.robot import Robot


class MovingBeamTerm(AbstractLagrangianTerm):
    """Equations of motion under one drive."""

    robot: Robot
    drive: Drive
    car: Carrier
    arm: Arm
    tip: Tip
    hardware: JointHardware
    couplings: dict[str, Array]  # multiples of the strain energy's terms, by name
    layout: Layout = eqx.field(static=True)
    tab: Tables = eqx.field(static=True)
    constant: bool = eqx.field(static=True)

    # --- coordinates
    def split(
        self, q: Coordinates
    ) -> tuple[Float[Array, " D"], Float[Array, " m"], Float[Array, "n u"]]:
        """(joints, lengths, unknowns of the elements)."""
        lay = self.layout
        x = q[: lay.dofs]
        return (
            x,
            x[np.array(lay.lengths, int)],
            _link.element_unknowns(q[lay.dofs :], lay.elements, lay.node),
        )

    def move(self, q: Coordinates, dx: Velocities) -> Coordinates:
        return q + dx

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return dx

    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        return jnp.zeros_like(p)

    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        return y.mech.q[: self.layout.dofs], y.mech.v[: self.layout.dofs]

    @property
    def locked(self) -> np.ndarray:
        mask = np.zeros(self.layout.nv, bool)
        mask[: self.layout.dofs] = self.drive.prescribed(self.robot)
        return mask

    def prescribed(
        self, t: ScalarLike, args: PieceTime
    ) -> tuple[np.ndarray, Velocities, Velocities, Velocities]:
        rest = jnp.zeros(self.layout.nv - self.layout.dofs, self.robot.gravity.dtype)
        x, xd, xdd = (jnp.concatenate([x, rest]) for x in self.drive.motion(self.robot, t, args))
        return self.locked, x, xd, xdd

    def impose(self, q: Coordinates, target: Velocities) -> Coordinates:
        return jnp.where(self.locked, target, q)

    def displacement(self, q: Coordinates, target: Velocities) -> Velocities:
        return jnp.where(self.locked, target - q, 0.0)

    # --- energies
    def base(
        self, t: ScalarLike, args: PieceTime
    ) -> tuple[se3.Pose, Float[Array, "6"], Float[Array, "6"]]:
        """Pose, twist and acceleration of the ground."""
        dtype = self.robot.gravity.dtype
        if self.drive.base is None:
            return se3.identity(dtype), jnp.zeros(6, dtype), jnp.zeros(6, dtype)
        return self.drive.base.motion(t, args)

    def kinetic(
        self,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        base_a: Float[Array, "6"] | None = None,
        base_b: Float[Array, "6"] | None = None,
    ) -> Scalar:
        """va^T M vb / 2, with the ground's twists beside the velocities (None: at rest)."""
        x, d, y = self.split(q)
        base = None if base_a is None or base_b is None else jnp.stack([base_a, base_b])

        def motion(v, base):
            xd, dd, yd = self.split(v)
            z, spins = _carrier.twists(self.car, self.layout, x, xd, base)
            rates = Rates(z[-1], dd, yd)
            return (
                jnp.stack(z),
                jnp.stack(spins),
                rates,
                [self._payload_velocity(k, d, y, rates) for k in range(len(self.tip.tube))],
            )

        # Both velocities in one sweep: half the program.
        z, spins, rates, loads = jax.vmap(motion, in_axes=(0, None if base is None else 0))(
            jnp.stack([va, vb]), base
        )
        total = _link.kinetic(
            self.arm, d, y, rates, self.constant, flat=self.layout.planar and base is None
        )
        total = (
            total
            + 0.5 * jnp.sum(z[0] * jnp.einsum("kij,kj->ki", self.car.inertia, z[1]))
            + 0.5 * jnp.sum(self.car.rotor * spins[0] * spins[1])
        )
        for (u, w), mass, inertia in zip(loads, self.tip.mass, self.tip.inertia, strict=True):
            total = (
                total + 0.5 * mass * jnp.sum(u[0] * u[1]) + 0.5 * jnp.sum(w[0] * (inertia @ w[1]))
            )
        return total

    def payload_position(self, k: int, d: Float[Array, " m"], y: Float[Array, "n u"]):
        """Of the centre of mass, in the joint frame; and the rotation of its section."""
        r, theta = _link.point(self.arm, d, y, self.tip.tube[k], self.tip.s[k])
        return r + self.tip.offset[k] + jnp.cross(theta, self.tip.offset[k]), theta

    def _payload_velocity(
        self, k: int, d: Float[Array, " m"], y: Float[Array, "n u"], rates: Rates
    ):
        (r, _), (rd, wd) = jax.jvp(
            lambda d, y: self.payload_position(k, d, y), (d, y), (rates.d, rates.y)
        )
        v, w = rates.twist[:3], rates.twist[3:]
        return v + jnp.cross(w, r) + rd, w + wd

    def strain(self, q: Coordinates) -> Scalar:
        _, d, y = self.split(q)
        return _link.elastic(self.arm, self.tab, d, y, self.couplings)

    def elastic_energy(self, q: Coordinates) -> Scalar:
        stops = self.hardware.stop_energy(q[: self.layout.dofs])
        return self.strain(q) + jnp.sum(stops)

    def gravity_energy(self, q: Coordinates, base: se3.Pose) -> Scalar:
        x, d, y = self.split(q)
        poses = _carrier.frames(self.car, self.layout, x, base)
        total = jnp.zeros(3, q.dtype)
        for pose, inertia in zip(poses, self.car.inertia, strict=True):
            total = (
                total
                + inertia[0, 0] * pose.position
                + pose.rotation @ jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
            )
        mass, moment = _link.first_moment(self.arm, d, y)
        for k in range(len(self.tip.tube)):
            mass = mass + self.tip.mass[k]
            moment = moment + self.tip.mass[k] * self.payload_position(k, d, y)[0]
        total = total + mass * poses[-1].position + poses[-1].rotation @ moment
        return -jnp.sum(self.robot.gravity * total)

    def energies(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime
    ) -> tuple[Scalar, Scalar, Scalar]:
        pose, twist, _ = self.base(t, args)
        twist = None if self.drive.base is None else twist
        return (
            self.kinetic(q, v, v, twist, twist),
            self.elastic_energy(q),
            self.gravity_energy(q, pose),
        )

    # --- what the energy-conserving step needs
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        return 2 * jax.grad(lambda va: self.kinetic(q, va, v))(jnp.zeros_like(v))

    def lagrangian(
        self, q: Coordinates, va: Velocities, vb: Velocities
    ) -> tuple[Velocities, Velocities, Velocities]:
        # One reverse sweep gives the momenta as well.
        g, pb, pa = jax.grad(
            lambda q, va, vb: self.kinetic(q, va, vb) - self.potential(q), (0, 1, 2)
        )(q, va, vb)
        return 2 * pa, 2 * pb, g

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
        za, zb = self.base(t0, args)[1], self.base(t0 + dt, args)[1]
        pose, twist, _ = self.base(t0 + s * dt, args)

        def whole(q, va, vb, za, zb, shift):
            return (
                self.kinetic(q, va, vb, za, zb)
                - self.elastic_energy(q)
                - self.gravity_energy(q, se3.compose(pose, se3.exp(shift)))
            )

        g, pb, pa, Pb, Pa, lift = jax.grad(whole, tuple(range(6)))(
            q, va, vb, za, zb, jnp.zeros_like(za)
        )
        mean = 0.5 * (za + zb)
        return (
            2 * pa,
            2 * pb,
            g,
            (2 * jnp.sum(mean * Pa), 2 * jnp.sum(mean * Pb), -jnp.sum(lift * twist)),
        )

    def potential(self, q: Coordinates) -> Scalar:
        return self.elastic_energy(q) + self.gravity_energy(q, se3.identity(q.dtype))

    def kinetic_gradient(self, q: Coordinates, va: Velocities, vb: Velocities) -> Velocities:
        return jax.grad(lambda q: self.kinetic(q, va, vb))(q)

    def potential_gradient(self, q: Coordinates) -> Velocities:
        return jax.grad(self.potential)(q)

    # --- forces
    def forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities]:
        lay, h = self.layout, self.hardware
        x, xd = q[: lay.dofs], v[: lay.dofs]
        joint = -(h.damping + h.stop_slopes(x)[1]) * xd - h.friction(xd)
        rest = jnp.zeros(lay.nv - lay.dofs, q.dtype)
        driven = jnp.concatenate([self.drive.effort(self.robot, t, args, x, xd, memory), rest])
        if self.drive.loads:
            driven = driven + self._loads(t, q, args)
        damped = jnp.concatenate([joint, rest])
        if self.arm.viscous or self.arm.dragged:
            damped = damped - jax.grad(lambda v: self._dissipation(q, v))(v)
        return driven, damped

    def _dissipation(self, q: Coordinates, v: Velocities):
        _, d, y = self.split(q)
        _, dd, yd = self.split(v)
        return _link.dissipation(
            self.arm, self.tab.degree == 2, d, y, Rates(jnp.zeros(6, q.dtype), dd, yd)
        )

    def _loads(self, t: ScalarLike, q: Coordinates, args: PieceTime) -> Velocities:
        """Generalised forces of the loads, from their power at unit velocities."""
        base, _, _ = self.base(t, args)
        power = jax.grad(lambda v: self.load_power(t, q, v, args, base, jnp.zeros(6, q.dtype)))
        return power(jnp.zeros_like(q))

    def load_power(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        args: PieceTime,
        base: se3.Pose,
        base_twist: Float[Array, "6"],
    ) -> Scalar:
        x, d, y = self.split(q)
        xd, dd, yd = self.split(v)
        poses = _carrier.frames(self.car, self.layout, x, base)
        z, _ = _carrier.twists(self.car, self.layout, x, xd, base_twist)
        total = jnp.zeros((), q.dtype)
        for load in self.drive.loads:
            link = self.robot.link_index(load.link)
            w = load.wrench.evaluate(t, args)[0]
            if link in self.layout.tubes:
                k = self.layout.tubes.index(link)
                (r, theta), (rd, wd) = jax.jvp(
                    lambda d, y, k=k, s=load.s: _link.point(self.arm, d, y, k, s), (d, y), (dd, yd)
                )
                turn, body = poses[-1].rotation, z[-1]
                velocity, spin = body[:3] + jnp.cross(body[3:], r) + rd, body[3:] + wd
                section = se3.rotation_exp(theta)
            else:
                b = next(i for i, s in enumerate(self.layout.stages) if s.link == link)
                at = _carrier.centreline_pose(self.robot.links[link], load.s)
                turn, body, section = poses[b].rotation, z[b], at.rotation
                velocity, spin = body[:3] + jnp.cross(body[3:], at.position), body[3:]
            force, moment = w[:3], w[3:]
            if load.frame == "world":
                force, moment = turn.T @ force, turn.T @ moment
            else:
                force, moment = section @ force, section @ moment
            total = total + jnp.sum(force * velocity) + jnp.sum(moment * spin)
        return total

    # --- dynamics
    def balance(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        args: PieceTime,
        memory: PyTree,
    ) -> Velocities:
        driven, damped = self.forces(t, q, v, args, memory)
        pose, twist, acc = self.base(t, args)
        if self.drive.base is None:
            # M a + (dM/dt v) - dT/dq, the second part by pushing the momenta along v.
            momentum, along = (
                (lambda q, v: jax.grad(self.kinetic, 1)(q, v, v) * 2),
                ((q, v), (v, a)),
            )
            lagrangian = lambda q: (
                self.kinetic(q, v, v) - self.elastic_energy(q) - self.gravity_energy(q, pose)
            )
        else:
            momentum = lambda q, v, z: jax.grad(lambda v: self.kinetic(q, v, v, z, z))(v)
            along = ((q, v, twist), (v, a, acc))
            lagrangian = lambda q: (
                self.kinetic(q, v, v, twist, twist)
                - self.elastic_energy(q)
                - self.gravity_energy(q, pose)
            )
        return jax.jvp(momentum, *along)[1] - jax.grad(lagrangian)(q) - driven - damped

    def accelerate(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> Velocities:
        return self.dynamics(t, q, v, args, memory)[0]

    def dynamics(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities]:
        """Acceleration, and the efforts (nv,) that prescribed coordinates take (zero elsewhere)."""
        locked = self.locked
        known = jnp.where(locked, self.prescribed(t, args)[3], 0.0)
        r = self.balance(t, q, v, known, args, memory)
        frozen = stop(self)
        factors = frozen.preconditioner(*stop((t, q, v)), 1.0, 0.0, 0.0, stop(args), stop(memory))

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

    def preconditioner(self, t, q, v, cm, cv, cq, args, memory):
        lay, h = self.layout, self.hardware
        x, d, y = self.split(q)
        X, l = self.arm.mesh(d)
        E, H_length, H_lengths = self._element_matrices(d, y, l, cm, cv, cq)
        unit = jnp.eye(lay.dofs, lay.nv, dtype=q.dtype)
        rows = (
            cm * jax.vmap(lambda e: self.momentum(q, e))(unit)
            if lay.dofs
            else jnp.zeros((0, lay.nv), q.dtype)
        )
        joint, border = rows[:, : lay.dofs], rows[:, lay.dofs :]
        if lay.lengths:
            stretch = jnp.diff(self.arm.slope, axis=0)
            at = np.array(lay.lengths, int)
            coupling = jax.vmap(lambda g: self._gather(H_length * g[:, None]), in_axes=1)(stretch)
            border = border.at[at].add(coupling)
            joint = joint.at[at[:, None], at[None, :]].add(
                jnp.einsum("n,na,nb->ab", H_lengths, stretch, stretch)
            )
        xd = v[: lay.dofs]
        kp, kd = self.drive.slopes(self.robot, t, args, q[: lay.dofs], xd, memory)
        stiffness, damping = h.stop_slopes(x)
        diagonal = cv * (h.damping + kd + h.friction_slope(xd) + damping) + cq * (kp + stiffness)
        return _element_chain.factorise(
            lay.node, E, border, joint + jnp.diag(diagonal), ~self.locked[: lay.dofs]
        )

    def limits(
        self, t: ScalarLike, q: Coordinates, v: Velocities, args: PieceTime, memory: PyTree
    ) -> Limits | None:
        D = self.layout.dofs
        limits = self.drive.limits(self.robot, t, args, q[:D], v[:D], memory)
        if limits is None:
            return None
        dofs, effort, bound, kp, kd = limits
        return Limits(effort, bound, kp, kd, tuple(int(i) for i in dofs))

    def precondition(self, factors: PyTree, r: Velocities) -> Velocities:
        D = self.layout.dofs
        joints, rest = _element_chain.solve(factors, r[:D], r[D:])
        return jnp.concatenate([jnp.where(self.locked[:D], r[:D], joints), rest])

    def _gather(self, rows: Float[Array, "n u"]):
        """(n*(node+own),) from the unknowns of the elements (n, 2*node+own): the transpose of element_unknowns."""
        node = self.layout.node
        outer = rows[:, node : 2 * node] + jnp.concatenate(
            [rows[1:, :node], jnp.zeros((1, node), rows.dtype)]
        )
        return jnp.concatenate([outer, rows[:, 2 * node :]], axis=1).reshape(-1)

    def _element_matrices(
        self,
        d: Float[Array, " m"],
        y: Float[Array, "n u"],
        l: Float[Array, " n"],
        cm: ScalarLike,
        cv: ScalarLike,
        cq: ScalarLike,
    ):
        """cm M + cv C + cq K of the elements (exact but for gyroscopic, centrifugal and weight terms), and the coupling of the last to the length."""
        arm = self.arm

        M = _link.element_masses(arm.shapes, l, jnp.sum(arm.rhoA, 1), jnp.sum(arm.rhoI, 1))
        for k in range(len(self.tip.tube)):
            M = M + self._payload_mass(k, d, y)
        if isinstance(cq, float) and cq == 0.0:  # the mass matrix alone, for accelerations
            return cm * M, jnp.zeros_like(y), jnp.zeros_like(l)
        E = cm * M
        if arm.dragged:
            E = E + cv * _link.element_masses(
                arm.shapes, l, jnp.sum(arm.drag, 1), jnp.zeros_like(arm.rhoI[:, 0])
            )
        if not self.layout.lengths:
            # Damping by the rate of strain is a stiffness like the other, and second derivatives are linear in it.
            stiffness = cq * arm.stiffness + (cv * arm.viscosity if arm.viscous else 0.0)
            return (
                E + _link.element_stiffnesses(self.tab, y, l, stiffness, self.couplings),
                jnp.zeros_like(y),
                jnp.zeros_like(l),
            )
        H = _link.element_hessians(self.tab, y, l, cq * arm.stiffness, self.couplings)
        if arm.viscous:
            # Not coupled to the length: strains of the material do not follow the mesh.
            E = E + _link.element_stiffnesses(self.tab, y, l, cv * arm.viscosity, self.couplings)
        return E + H[:, :-1, :-1], H[:, :-1, -1], H[:, -1, -1]

    def _payload_mass(self, k: int, d: Float[Array, " m"], y: Float[Array, "n u"]):
        """Exact elastic mass of a payload, in the element that carries it."""
        J, W = jax.jacfwd(lambda y: self.payload_position(k, d, y))(y)
        e = jnp.argmax(jnp.sum(jnp.abs(J), axis=(0, 2)) + jnp.sum(jnp.abs(W), axis=(0, 2)))
        Je, We = J[:, e], W[:, e]
        block = self.tip.mass[k] * Je.T @ Je + We.T @ self.tip.inertia[k] @ We
        return jnp.zeros((y.shape[0], *block.shape), y.dtype).at[e].set(block)

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
        if self.locked.any():
            power = power + jnp.sum(
                jnp.where(self.locked, self.balance(t, q, v, a, args, memory) * v, 0.0)
            )
        if self.drive.base is not None:
            power = power + self._base_power(t, q, v, a, args)
        return power, -jnp.sum(damped * v)

    def _base_power(
        self, t: ScalarLike, q: Coordinates, v: Velocities, a: Velocities, args: PieceTime
    ):
        """Power of whatever moves the ground: rate of its part of the energy, by the momenta that belong to its twist.

        With P = dT/d(twist) the wrench on the ground's frame is P' - ad*_twist P less weight and loads."""
        pose, twist, acc = self.base(t, args)

        def momentum(q, v, twist):
            return jax.grad(lambda z: self.kinetic(q, v, v, z, z))(twist)

        P, rate = jax.jvp(momentum, (q, v, twist), (v, a, acc))
        wrench = rate - se3.ad_star(twist) @ P
        shifted = jax.grad(lambda dx: self.gravity_energy(q, se3.compose(pose, se3.exp(dx))))(
            jnp.zeros(6, q.dtype)
        )
        # What loads do at the ground's velocity is taken from the ground's power and added as theirs: nothing is left of it.
        return jnp.sum(twist * (wrench + shifted))
