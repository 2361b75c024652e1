"""The second-order term of a serial chain of rigid bodies with flexible joints, motors, friction, end stops, controllers, loads, a moving base."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam import centreline_pose
from flexjax.chain._kinematics import Kinematics, gather, kinematics, pad, poses, scatter, spread
from flexjax.chain._layout import Layout
from flexjax.chain._parameters import PLANAR, Parameters
from flexjax.chain._recursion import Factors, factorise, solve
from flexjax.drive import Drive
from flexjax.robot import Robot
from flexjax.screw import se3
from flexjax.term import AbstractSecondOrderTerm, Mechanical, State


class Motion(eqx.Module):
    """Everything that one dynamics evaluation knows at (t, q, v)."""

    kin: Kinematics
    world: se3.Pose
    arriving: Float[Array, "B dim"]
    z: Float[Array, "B dim"]
    own: Float[Array, "B dim"]  # A v
    base_twist: Float[Array, " dim"]
    base_acceleration: Float[Array, " dim"]  # less gravity, so that weight comes out of the inertia


class ChainTerm(AbstractSecondOrderTerm):
    """Equations of motion of a serial chain under one drive."""

    robot: Robot
    par: Parameters
    drive: Drive
    layout: Layout = eqx.field(static=True)

    # --- coordinates
    @property
    def _tables(self):
        index, mask = self.layout.dof_table()
        motor = self.layout.motor_table()
        return index, mask, motor, motor < self.layout.nv

    def move(self, q, dx):
        table = self.layout.q_of_v()
        plain = table >= 0
        q1 = q.at[table[plain]].add(dx[plain])
        for s in self.layout.balls:
            old = q[s.q_start : s.q_start + 4]
            q1 = q1.at[s.q_start : s.q_start + 4].set(se3.quat_retract(old, dx[s.v_start : s.v_start + 3]))
        return q1

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        table = self.layout.q_of_v()
        plain = table >= 0
        rate = jnp.zeros_like(mech.q).at[table[plain]].set(dx.q[plain])
        for s in self.layout.balls:
            spin = jnp.concatenate([jnp.zeros(1, dx.q.dtype), dx.q[s.v_start : s.v_start + 3]])
            rate = rate.at[s.q_start : s.q_start + 4].set(0.5 * se3.quat_multiply(mech.q[s.q_start : s.q_start + 4], spin))
        return Mechanical(rate, dx.v)

    @property
    def locked(self) -> np.ndarray:
        """(nv,) static: a Motion fixes the motor of a flexible joint, and the joint itself elsewhere."""
        lay = self.layout
        prescribed = self.drive.prescribed(self.robot)
        mask = np.zeros(lay.nv, bool)
        mask[: lay.dofs] = prescribed
        for k, dof in enumerate(lay.motors):
            mask[lay.dofs + k], mask[dof] = prescribed[dof], False
        return mask

    def _to_v(self, per_dof):
        """(D,) motor-side numbers placed in v: flexible joints' at their motors."""
        motors = np.array(self.layout.motors, int)
        on_joint = jnp.zeros(self.layout.nv, per_dof.dtype).at[: self.layout.dofs].set(per_dof)
        return on_joint.at[motors].set(0.0).at[self.layout.dofs :].set(per_dof[motors])

    def prescribed(self, t, args):
        q, v, a = self.drive.motion(self.robot, t, args)
        return self.locked, self._to_v(q), self._to_v(v), self._to_v(a)

    def impose(self, q, target):
        where = np.flatnonzero(self.locked)
        return q.at[self.layout.q_of_v()[where]].set(target[where])

    def displacement(self, q, target):
        where = np.flatnonzero(self.locked)
        return jnp.zeros_like(target).at[where].set(target[where] - q[self.layout.q_of_v()[where]])

    def coordinates(self, q):
        """Link-side joint coordinates (D,): rotation vectors for balls."""
        table = self.layout.q_of_v()[: self.layout.dofs]
        out = q[np.maximum(table, 0)]
        for s in self.layout.balls:
            out = out.at[s.v_start : s.v_start + 3].set(se3.quat_log(q[s.q_start : s.q_start + 4]))
        return out

    def _motor_side(self, q, v):
        lay = self.layout
        motors = np.array(lay.motors, int)
        return self.coordinates(q).at[motors].set(q[lay.nq - len(motors) :]), v[: lay.dofs].at[motors].set(v[lay.dofs :])

    def motor_coordinates(self, y: State):
        return self._motor_side(y.mech.q, y.mech.v)

    # --- kinematics
    def motion(self, t, q, v, args) -> Motion:
        par, dtype = self.par, self.par.gravity.dtype
        kin = kinematics(self.layout, par, q)
        space = par.space
        if self.drive.base is None:
            base, twist, acc = space.identity(dtype), jnp.zeros(space.DIM, dtype), jnp.zeros(space.DIM, dtype)
        else:
            base, twist, acc = self.drive.base.motion(t, args)
            if self.layout.planar:
                base, twist, acc = se3.Pose(base.rotation[:2, :2], base.position[:2]), twist[PLANAR], acc[PLANAR]
        # The linear part of a body acceleration here is the component derivative u'; gravity g enters as u' - R^T g.
        acc = acc.at[: space.LIN].add(-base.rotation.T @ par.gravity)
        own = jnp.sum(par.screw * pad(self.layout, v)[:, None, :], axis=2)
        arriving, z = spread(kin, twist, own)
        return Motion(kin, poses(par, kin, base), arriving, z, own, twist, acc)

    def _parent_twist(self, m: Motion):
        return jnp.concatenate([m.base_twist[None], m.z[:-1]])

    def _spin(self, parent_rate, v):
        """Rate (or acceleration) of every rotor about its axis."""
        index, _, motor, has = self._tables
        padded = jnp.concatenate([v, jnp.zeros(1, v.dtype)])
        return jnp.sum(self.par.rotor_axis * parent_rate, axis=1) + self.par.gear * padded[np.where(has, motor, index[:, 0])]

    def _on_rotor_coordinates(self, per_stage):
        """(nv,) generalised forces of the rotors from their torques (B,)."""
        index, mask, motor, has = self._tables
        at = np.where(has, motor, index[:, 0])
        out = jnp.zeros(self.layout.nv + 1, per_stage.dtype).at[at].add(self.par.gear * per_stage)
        return out[:-1]

    # --- forces
    def _load_wrenches(self, t, args, world: se3.Pose) -> Array:
        """(B, dim) wrenches of loads on the bodies, about and in the axes of their frames."""
        lay, space = self.layout, self.par.space
        out = jnp.zeros((len(lay.stages), space.DIM), self.par.gravity.dtype)
        stage_of = {s.link: i for i, s in enumerate(lay.stages) if s.link >= 0}
        for load in self.drive.loads:
            i = self.robot.link_index(load.link)
            b = stage_of[i]
            section = centreline_pose(self.robot.links[i], load.s)
            w = load.wrench.evaluate(t, args)[0]
            if lay.planar:
                section, w = se3.Pose(section.rotation[:2, :2], section.position[:2]), w[PLANAR]
            if load.frame == "world":
                turn = (world.rotation[b] @ section.rotation).T
                w = jnp.concatenate([turn @ w[: space.LIN], turn @ w[space.LIN :] if space is se3 else w[space.LIN :]])
            out = out.at[b].add(space.transport_wrench(section, w))
        return out

    def _joint_forces(self, t, q, v, args, memory):
        """(nv,) of springs and stops; of motors; of dampers, friction and stops' dampers."""
        par, lay = self.par, self.layout
        x, xd = self.coordinates(q), v[: lay.dofs]
        xm, xmd = self._motor_side(q, v)
        lower, upper, ks, cs = par.stops.T
        below, above = jnp.minimum(x - lower, 0.0), jnp.maximum(x - upper, 0.0)
        below, above = jnp.where(ks > 0, below, 0.0), jnp.where(ks > 0, above, 0.0)
        stretch = par.stiffness * (x - xm)
        flexible = np.zeros(lay.dofs, bool)
        flexible[list(lay.motors)] = True
        damper = par.damping * jnp.where(flexible, xd - xmd, xd)
        touching = (below < 0) | (above > 0)
        onto_motor = self._to_v(jnp.where(flexible, 1.0, 0.0).astype(v.dtype))  # 1 at motors
        joint_rows = jnp.concatenate([-stretch - ks * (below + above), jnp.zeros(len(lay.motors), v.dtype)])
        elastic = joint_rows + onto_motor * self._to_v(stretch)
        driven = self._to_v(self.drive.effort(self.robot, t, args, xm, xmd, memory))
        rows = jnp.concatenate([-damper - jnp.where(touching, cs * xd, 0.0), jnp.zeros(len(lay.motors), v.dtype)])
        damped = rows + onto_motor * self._to_v(damper) - self._to_v(par.coulomb * jnp.tanh(xmd / par.v_eps))
        return elastic, driven, damped

    def forces(self, t, q, v, args, memory):
        _, driven, damped = self._joint_forces(t, q, v, args, memory)
        if self.drive.loads:
            m = self.motion(t, q, v, args)
            W, _ = gather(m.kin, self._load_wrenches(t, args, m.world), jnp.zeros_like(m.z))
            driven = driven.at[: self.layout.dofs].add(self._project(W))
        return driven, damped

    def _project(self, W):
        """(D,) generalised forces of wrenches on the bodies: A^T W."""
        return scatter(self.layout, jnp.sum(self.par.screw * W[:, :, None], axis=1))

    def _bias(self, t, args, m: Motion):
        """Wrench that a body needs beyond inertia times acceleration, and that of the rotors on their parents."""
        space, par = self.par.space, self.par
        momentum = jnp.sum(par.inertia * m.z[:, None, :], axis=2)
        bias = -jax.vmap(lambda z, p: space.ad_star(z) @ p)(m.z, momentum)
        if self.drive.loads:
            bias = bias - self._load_wrenches(t, args, m.world)
        return bias

    def _gyroscopic(self, parent, spin):
        """Wrench on the parent that turns the spin of the rotors with it."""
        h = (self.par.rotor * spin)[:, None] * self.par.rotor_axis
        return -jax.vmap(lambda z, p: self.par.space.ad_star(z) @ p)(parent, h)

    # --- dynamics
    def _free(self):
        index, mask, motor, has = self._tables
        free_v = np.append(~self.locked, False)
        free = mask & free_v[index]
        return np.concatenate([free, (has & free_v[motor])[:, None]], 1) if self.layout.motors else free

    def _split(self, per_v):
        """(B, n) unknowns of the stages from (nv,)."""
        index, mask, motor, has = self._tables
        padded = jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])
        return jnp.concatenate([padded[index], padded[motor][:, None]], 1) if self.layout.motors else padded[index]

    def _join(self, x):
        """(nv,) from the unknowns of the stages (B, n)."""
        lay = self.layout
        out = jnp.zeros(lay.nv + 1, x.dtype).at[: lay.dofs].set(scatter(lay, x[:, : lay.width]))
        if lay.motors:
            out = out.at[lay.motor_table()].set(x[:, -1])
        return out[:-1]

    def _factor(self, kin, diagonal, spring, motor) -> Factors:
        index, _, motor_at, has = self._tables
        k = jnp.concatenate([diagonal, jnp.zeros(1, diagonal.dtype)])
        def at(x):  # noqa: E306
            return jnp.concatenate([x, jnp.zeros(1, x.dtype)])[np.minimum(index[:, 0], self.layout.dofs)]
        return factorise(self.par, kin, self._free(), has, k[np.minimum(index, self.layout.dofs)], at(spring), at(motor))

    def accelerate(self, t, q, v, args, memory):
        m = self.motion(t, q, v, args)
        elastic, driven, damped = self._joint_forces(t, q, v, args, memory)
        zero = jnp.zeros(self.layout.dofs, q.dtype)
        factors = self._factor(m.kin, zero, zero, zero)
        known = jnp.where(self.locked, self.prescribed(t, args)[3], 0.0)
        space, par = self.par.space, self.par
        extra = jax.vmap(lambda z, s: space.ad(z) @ s)(m.z, m.own) + jnp.sum(par.screw * pad(self.layout, known)[:, None, :], axis=2)
        parent = self._parent_twist(m)
        behind = self._gyroscopic(parent, self._spin(parent, v)) + self._rotor_pull(self._spin(jnp.zeros_like(parent), known))
        x, _ = solve(factors, self._split(elastic + driven + damped), self._bias(t, args, m), extra, behind, m.base_acceleration)
        return jnp.where(self.locked, known, self._join(x))

    def _rotor_pull(self, spin_rate):
        return (self.par.rotor * spin_rate)[:, None] * self.par.rotor_axis

    def inverse(self, t, q, v, a, args):
        """Inverse dynamics: (generalised forces (nv,) that the motion takes, wrenches parent on child (B, dim), wrench on the ground's side, body
        accelerations less gravity, motion)."""
        m = self.motion(t, q, v, args)
        space, par = self.par.space, self.par
        own = jax.vmap(lambda z, s: space.ad(z) @ s)(m.z, m.own) + jnp.sum(par.screw * pad(self.layout, a)[:, None, :], axis=2)
        _, acc = spread(m.kin, m.base_acceleration, own)
        parent = self._parent_twist(m)
        spin_rate = self._spin(jnp.concatenate([m.base_acceleration[None], acc[:-1]]), a)
        behind = self._gyroscopic(parent, self._spin(parent, v)) + self._rotor_pull(spin_rate)
        W, ground = gather(m.kin, jnp.sum(par.inertia * acc[:, None, :], axis=2) + self._bias(t, args, m), behind)
        tau = self._on_rotor_coordinates(par.rotor * spin_rate).at[: self.layout.dofs].add(self._project(W))
        return tau, W, ground, acc, m

    def balance(self, t, q, v, a, args, memory):
        elastic, driven, damped = self._joint_forces(t, q, v, args, memory)
        return self.inverse(t, q, v, a, args)[0] - elastic - driven - damped

    def preconditioner(self, t, q, v, cm, cv, cq, args):
        par, lay = self.par, self.layout
        kp, kd = self.drive.stiffness(self.robot)
        flexible = np.zeros(lay.dofs, bool)
        flexible[list(lay.motors)] = True
        x = self.coordinates(q)
        _, xmd = self._motor_side(q, v)
        touching = (par.stops[:, 2] > 0) & ((x < par.stops[:, 0]) | (x > par.stops[:, 1]))
        friction = cv * par.coulomb / par.v_eps / jnp.cosh(jnp.clip(xmd / par.v_eps, -20, 20)) ** 2
        controller = cq * kp + cv * kd + friction
        joint = jnp.where(touching, cq * par.stops[:, 2] + cv * par.stops[:, 3], 0.0) + jnp.where(flexible, 0.0, cv * par.damping + controller)
        spring = jnp.where(flexible, cq * par.stiffness + cv * par.damping, 0.0)
        return self._factor(kinematics(lay, par, q), joint / cm, spring / cm, jnp.where(flexible, controller, 0.0) / cm), cm

    def precondition(self, factors, r):
        f, cm = factors
        zero = jnp.zeros((f.X.shape[0], f.X.shape[1]), r.dtype)
        x, _ = solve(f, self._split(r / cm), zero, zero, zero, zero[0])
        return jnp.where(self.locked, r, self._join(x))

    # --- energy
    def momentum(self, q, v):
        m = self.motion(0.0, q, v, None)
        return self._momentum(m, v)[0]

    def _momentum(self, m: Motion, v):
        par = self.par
        spin = self._spin(self._parent_twist(m), v)
        W, _ = gather(m.kin, jnp.sum(par.inertia * m.z[:, None, :], axis=2), self._rotor_pull(spin))
        return self._on_rotor_coordinates(par.rotor * spin).at[: self.layout.dofs].add(self._project(W)), W

    def kinetic_gradient(self, q, va, vb):
        space = self.par.space
        ma, mb = self.motion(0.0, q, va, None), self.motion(0.0, q, vb, None)
        Pa, Pb = self._momentum(ma, va)[1], self._momentum(mb, vb)[1]
        both = jax.vmap(lambda za, zb, pa, pb: space.ad_star(za) @ pb + space.ad_star(zb) @ pa)(ma.arriving, mb.arriving, Pa, Pb)
        return jnp.zeros_like(va).at[: self.layout.dofs].set(0.5 * self._project(both))

    def _weights(self, world):
        """(B, dim) weight of the bodies as a wrench on their frames."""
        lin = self.par.space.LIN
        pull = jax.vmap(lambda R: R.T @ self.par.gravity)(world.rotation)
        return jnp.sum(self.par.inertia[:, :, :lin] * pull[:, None, :], axis=2)

    def potential_gradient(self, q):
        zero = jnp.zeros(self.layout.nv, q.dtype)
        m = self.motion(0.0, q, zero, None)
        W, _ = gather(m.kin, self._weights(m.world), jnp.zeros_like(m.z))
        elastic = self._springs(q)
        return elastic.at[: self.layout.dofs].add(-self._project(W))

    def _springs(self, q):
        return jax.grad(lambda dx: self.elastic_energy(self.move(q, dx)))(jnp.zeros(self.layout.nv, q.dtype))

    def gyration(self, v, p):
        out = jnp.zeros_like(p)
        for s in self.layout.balls:
            sl = slice(s.v_start, s.v_start + 3)
            out = out.at[sl].set(jnp.cross(p[sl], v[sl]))
        return out

    def elastic_energy(self, q):
        par = self.par
        x = self.coordinates(q)
        xm, _ = self._motor_side(q, jnp.zeros(self.layout.nv, q.dtype))
        lower, upper, ks, _ = par.stops.T
        over = jnp.where(ks > 0, jnp.minimum(x - lower, 0.0), 0.0) ** 2 + jnp.where(ks > 0, jnp.maximum(x - upper, 0.0), 0.0) ** 2
        return 0.5 * jnp.sum(par.stiffness * (x - xm) ** 2) + 0.5 * jnp.sum(ks * over)

    def energies(self, t, q, v, args):
        """(kinetic, elastic, gravity)."""
        par = self.par
        m = self.motion(t, q, v, args)
        spin = self._spin(self._parent_twist(m), v)
        kinetic = 0.5 * jnp.sum(m.z * jnp.sum(par.inertia * m.z[:, None, :], axis=2)) + 0.5 * jnp.sum(par.rotor * spin**2)
        lin = par.space.LIN
        mass = par.inertia[:, 0, 0]
        first = jax.vmap(lambda R, I: R @ _mass_moment(I, lin))(m.world.rotation, par.inertia)
        gravity = -jnp.sum((mass[:, None] * m.world.position + first) @ par.gravity)
        return kinetic, self.elastic_energy(q), gravity

    def power(self, t, y: State, args):
        q, v = y.mech.q, y.mech.v
        driven, damped = self.forces(t, q, v, args, y.memory)
        power = jnp.sum(driven * v)
        if self.locked.any() or self.drive.base is not None:
            a = self.accelerate(t, q, v, args, y.memory)
            gap = self.balance(t, q, v, a, args, y.memory)
            power = power + jnp.sum(jnp.where(self.locked, gap * v, 0.0))
            if self.drive.base is not None:
                m, ground = self.inverse(t, q, v, a, args)[4], self.inverse(t, q, v, a, args)[2]
                power = power + jnp.sum(m.base_twist * ground)
        return power, -jnp.sum(damped * v)


def _mass_moment(inertia, lin):
    """Mass times the centre of mass, read off the coupling block of a body's inertia."""
    if lin == 2:
        return jnp.stack([inertia[1, 2], -inertia[0, 2]])
    return jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
