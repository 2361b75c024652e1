"""A mechanism under a drive: where its coordinates stand, where its nodes are, what they weigh."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from flexjax.drive import Drive
from flexjax.formulation.port_hamiltonian import _joint
from flexjax.formulation.port_hamiltonian._algebra import (
    rotate_by,
    space_of,
    turn_from_matrix,
    turn_matrix,
)
from flexjax.formulation.port_hamiltonian._joint import JointStage
from flexjax.formulation.port_hamiltonian._lanes import lanes, unlanes
from flexjax.formulation.port_hamiltonian._loops import LoopNumbers, LoopPlan
from flexjax.formulation.port_hamiltonian._nodes import momentum
from flexjax.formulation.port_hamiltonian._parameters import Numbers
from flexjax.formulation.port_hamiltonian._structure import Structure, stacked
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.term import PortState, PortTangent
from flexjax.robot import Robot


class Assembly(eqx.Module):
    """Numbers (traced) and structure (static) of a mechanism, and the drive that acts on it."""

    robot: Robot
    num: Numbers
    loops: tuple[LoopNumbers, ...]
    drive: Drive
    st: Structure = eqx.field(static=True)
    plans: tuple[LoopPlan, ...] = eqx.field(static=True)

    @property
    def rotors(self) -> bool:
        return any(
            j.motor is not None and j.motor.rotor is not None for j in self.robot.tree_joints
        )

    @property
    def passive_hardware(self) -> bool:
        """Whether a joint has a spring, a damper, friction or stops."""
        return any(
            p is not None
            for j in self.robot.tree_joints
            for p in (j.stiffness, j.damping, j.friction, j.stops)
        )

    @property
    def joint_hardware(self) -> bool:
        """Whether anything acts in a joint that depends on its motion."""
        return bool(self.drive.joints) or self.passive_hardware

    def masks(self):
        """(L, n) static: live unknowns, and those that a Motion fixes (the motor of a flexible
        joint, else the joint)."""
        st = self.st
        table = st.rate_table()
        locked = np.zeros(st.nv + 1, bool)
        locked[: st.total_dofs] = self.drive.prescribed(self.robot)
        for k, i in enumerate(st.motors):
            dof = st.v_start[i]
            locked[st.total_dofs + k], locked[dof] = locked[dof], False
        return table < st.nv, locked[table]

    def spread(self, per_v):
        """(L, n) from (nv,), zero where there is no unknown."""
        return jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])[self.st.rate_table()]

    def collect(self, y):
        """(nv,) from (L, n)."""
        return y.reshape(-1)[self.st.collect_table()]

    def move_q(self, q, dv):
        moved = q + jnp.concatenate([dv, jnp.zeros(1, dv.dtype)])[self.st.v_of_q()]
        for _, at, v in self.st.balls():
            moved = moved.at[at : at + 4].set(se3.quat_retract(q[at : at + 4], dv[v : v + 3]))
        return moved

    def coordinates(self, q):
        """Link-side joint coordinates (D,): rotation vectors for balls."""
        out = q[np.maximum(self.st.q_of_v()[: self.st.total_dofs], 0)]
        for _, at, v in self.st.balls():
            out = out.at[v : v + 3].set(se3.quat_log(q[at : at + 4]))
        return out

    def motor_side(self, q, v):
        st = self.st
        motors = np.array([st.v_start[i] for i in st.motors], int)
        x, xd = self.coordinates(q), v[: st.total_dofs]
        return x.at[motors].set(q[st.nq - len(motors) :]), xd.at[motors].set(v[st.total_dofs :])

    def to_v(self, per_dof):
        """(nv,) from motor-side numbers (D,): flexible joints' at their motors."""
        st = self.st
        motors = np.array([st.v_start[i] for i in st.motors], int)
        full = jnp.zeros(st.nv, per_dof.dtype).at[: st.total_dofs].set(per_dof)
        return full.at[motors].set(0.0).at[st.total_dofs :].set(per_dof[motors])

    def held_joints(self):
        """(nv,) mask of the joint coordinates that a Motion holds."""
        return self.to_v(jnp.asarray(self.drive.prescribed(self.robot), self.num.gravity.dtype)) > 0

    def held(self, dx: PortTangent) -> PortTangent:
        """Masks like the tangent ``dx``: what a Motion holds."""
        mask = self.held_joints()
        return PortTangent(mask, mask, jnp.zeros(dx.V.shape, bool), jnp.zeros(dx.Q.shape, bool))

    def plain_v(self, q):
        """(nv,) coordinates as numbers, zero at balls (which no Motion fixes)."""
        table = self.st.q_of_v()
        return jnp.where(table >= 0, q[np.maximum(table, 0)], 0.0)

    def ground(self, t, piece_time):
        """Rotation, position and twist of the ground frame."""
        st, dtype = self.st, self.num.gravity.dtype
        if self.drive.base is None:
            return jnp.eye(st.lin, dtype=dtype), jnp.zeros(st.lin, dtype), jnp.zeros(st.dim, dtype)
        pose, twist, _ = self.drive.base.motion(t, piece_time)
        if st.planar:
            return pose.rotation[:2, :2], pose.position[:2], twist[np.array([0, 1, 5])]
        return pose.rotation, pose.position, twist

    def joint_q(self, q):
        """Plain coordinates (L, k) and rotations of balls (L, D, D) of all joints."""
        st = self.st
        plain = jnp.concatenate([q, jnp.zeros(1, q.dtype)])[st.plain_table()]
        balls = jnp.broadcast_to(jnp.eye(st.lin, dtype=q.dtype), (st.links, st.lin, st.lin))
        for i, at, _ in st.balls():
            balls = balls.at[i].set(se3.quat_to_matrix(q[at : at + 4]))
        return plain, balls

    def attached(self, per_node, i):
        """What the children of link i hang on."""
        return per_node[i, 0 if self.st.rigid[i] else -1]

    def parents_of(self, per_node, ground):
        """(L, ...) values at the attachment nodes of the parents."""
        st = self.st
        tips = jnp.where(
            np.array(st.rigid).reshape((-1,) + (1,) * (per_node.ndim - 2)),
            per_node[:, 0],
            per_node[:, -1],
        )
        return jnp.concatenate([tips, ground[None]])[np.array(st.parents)]

    def settle(self, t, mech: PortState, piece_time) -> PortState:
        st = self.st
        ground_R, ground_x, _ = self.ground(t, piece_time)
        plain, balls = self.joint_q(mech.q)
        turn, x = mech.turn, mech.x
        seen = self._seen(plain, balls)
        R: dict[int, Array] = {}
        for i in st.order:
            p = st.parents[i]
            Rp, xp = (
                (ground_R, ground_x)
                if p < 0
                else (R[p] if st.rigid[p] else turn_matrix(turn[p, -1]), self.attached(x, p))
            )
            R[i] = mm(Rp, seen[i][0])
            x = x.at[i, 0].set(xp + mv(Rp, seen[i][1]))
        base = jax.vmap(lambda R, before: _near(turn_from_matrix(R), before))(
            stacked(R), turn[:, 0]
        )
        return PortState(mech.q, mech.v, mech.V, mech.Q, turn.at[:, 0].set(base), x)

    def _seen(self, plain, balls):
        """Per link (rotation, position) of its base from the parent's node. In space all at once:
        its exponentials are compiled once."""
        if self.st.planar:
            return [
                _joint.relative(pick(self.num.joints, i), plain[i], balls[i])
                for i in range(self.st.links)
            ]
        R, x = jax.vmap(_joint.relative)(self.num.joints, plain, balls)
        return [(R[i], x[i]) for i in range(self.st.links)]

    def shape(self, t, q, Q, piece_time):
        """(orientations, positions) of all nodes from joint coordinates and strains: products of
        exp(Q + n_hat l)."""
        st, space = self.st, space_of(self.st.dim)
        ground_R, ground_x, _ = self.ground(t, piece_time)
        plain, balls = self.joint_q(q)
        steps = jax.vmap(jax.vmap(space.exp))(Q + self.num.elements.shape)
        poses: list = [None] * st.links
        seen = self._seen(plain, balls)
        for i in st.order:
            p = st.parents[i]
            at = (
                space.Pose(ground_R, ground_x)
                if p < 0
                else pick(poses[p], 0 if st.rigid[p] else -1)
            )
            base = space.compose(at, space.Pose(*seen[i]))

            def along(pose, step):
                new = space.compose(pose, step)
                return new, new

            rest = lax.scan(along, base, pick(steps, i))[1]
            poses[i] = jax.tree_util.tree_map(
                lambda a, b: jnp.concatenate([a[None], b]), base, rest
            )
        R, x = jnp.stack([p.rotation for p in poses]), jnp.stack([p.position for p in poses])
        turn = jax.vmap(jax.vmap(turn_from_matrix))(R)
        if st.planar:
            # Angles add up along the link, so that they are continuous beyond half a turn.
            kz = jnp.cumsum(Q[..., 2:] + self.num.elements.shape[..., 2:], axis=1)
            turn = turn.at[:, 1:].set(turn[:, :1] + kz)
        return turn, x

    def between(self, V):
        """Twists (L, N, d) at which the elements take the twists of their ends: the mean, or as
        alpha says."""
        a = 0.5 if self.num.alpha is None else self.num.alpha
        return a * V[:, :-1] + (1 - a) * V[:, 1:]

    def momentum(self, V):
        return unlanes(
            momentum(
                lanes(self.num.mass, 2),
                lanes(self.num.mass_off, self.num.mass_off.ndim - 2),
                lanes(V),
            )
        )

    def joint_stage(self, mech: PortState, R, h, t, piece_time) -> tuple[JointStage, Array]:
        ground_R, _, ground_V = self.ground(t, piece_time)
        start_R = rotate_by(ground_R, -h * ground_V[self.st.lin :])
        plain, balls = self.joint_q(mech.q)
        spin = jnp.zeros(self.st.links, R.dtype)
        if self.rotors:
            twists = self.parents_of(mech.V, ground_V)
            spin = jax.vmap(_joint.spin_of)(self.num.joints, twists, self.spread(mech.v))
        return JointStage(plain, balls, self.parents_of(R, start_R), R[:, 0], spin), ground_V

    def energies(self, y: PortState):
        """(kinetic, elastic, gravity)."""
        num, st = self.num, self.st
        kinetic = 0.5 * jnp.sum(y.V * self.momentum(y.V))
        if num.inertia is not None:
            kinetic = kinetic + 0.5 * jnp.sum(num.inertia * self.between(y.V) ** 2)
        rigid = np.array(st.rigid)
        if rigid.any():
            kinetic = kinetic - 0.5 * jnp.sum(jnp.where(rigid[:, None, None], y.V[:, 1:] ** 2, 0.0))
        if self.rotors:
            ground = jnp.zeros(st.dim, y.V.dtype)
            spin = jax.vmap(_joint.spin_of)(
                self.num.joints, self.parents_of(y.V, ground), self.spread(y.v)
            )
            rotor = num.joints.rotor
            kinetic = kinetic + 0.5 * jnp.sum(
                jnp.where(rotor > 0, spin**2 / jnp.where(rotor > 0, rotor, 1.0), 0.0)
            )
        elastic = num.elements.energy(y.Q) + self._joint_energy(y.q)
        at = num.weight[..., None] * y.x
        if num.moment is not None:
            at = at + mv(turn_matrix(y.turn), num.moment)
        return kinetic, elastic, -jnp.sum(at * num.gravity[None, None])

    def _joint_energy(self, q):
        """Energy in joint springs and end stops."""
        hardware = self.num.hardware
        x = self.coordinates(q)
        xm, _ = self.motor_side(q, jnp.zeros(self.st.nv, q.dtype))
        return jnp.sum(0.5 * hardware.stiffness * (x - xm) ** 2 + hardware.stop_energy(x))


def pick(tree, i):
    return jax.tree_util.tree_map(lambda x: x[i], tree)


def pad_back(x):
    return jnp.concatenate([x, jnp.zeros_like(x[:, :1])], axis=1)


def pad_front(x):
    return jnp.concatenate([jnp.zeros_like(x[:, :1]), x], axis=1)


def _near(turn, before):
    """The same orientation, written as close to ``before`` as it can be."""
    if turn.shape[-1] == 1:
        return turn + 2 * jnp.pi * lax.stop_gradient(jnp.round((before - turn) / (2 * jnp.pi)))
    return turn * jnp.where(jnp.sum(turn * before) < 0, -1.0, 1.0)
