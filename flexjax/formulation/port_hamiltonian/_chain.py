"""Links, joints and loops together: the port-Hamiltonian term, its stage residual and its structured Newton matrix."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.drive import Drive, Feedback
from flexjax.formulation.port_hamiltonian import _joint, _loops
from flexjax.formulation.port_hamiltonian._algebra import (
    ad, coad_of, eye_like, mm, mv, rotate_by, space_of, transpose, turn_from_matrix, turn_matrix, turn_move,
)  # fmt: skip
from flexjax.formulation.port_hamiltonian._forces import JointForces, NodeForces, joint_forces, node_forces
from flexjax.formulation.port_hamiltonian._joint import JointStage
from flexjax.formulation.port_hamiltonian._loops import LoopNumbers, LoopPlan, Side
from flexjax.formulation.port_hamiltonian._parameters import Numbers
from flexjax.formulation.port_hamiltonian._structure import Structure
from flexjax.robot import Robot
from flexjax.screw import se3
from flexjax.solver._block_tridiagonal import LinkedBlocks, solve_linked
from flexjax.term import AbstractPortHamiltonianTerm, PortState, PortTangent, State


class Unknowns(eqx.Module):
    """Joint rates, twists of nodes 1..N, multipliers of loops. Residuals have the same form."""

    joints: Float[Array, "L n"]
    nodes: Float[Array, "L N d"]
    loops: Float[Array, " m"]


class NewtonMatrix(eqx.Module):
    blocks: LinkedBlocks

    def solve(self, r: Unknowns) -> Unknowns:
        return Unknowns(*solve_linked(self.blocks, r.joints, r.nodes, r.loops))

    def transpose(self) -> "NewtonMatrix":
        return NewtonMatrix(self.blocks.transpose())


class Stage(eqx.Module):
    """What a stage starts from and what does not change in its iteration."""

    t: Array
    h: Array
    factor: Array
    start: PortState
    rotation: Float[Array, "L K D D"]
    momentum: Float[Array, "L K d"]
    joint: JointStage
    ground: Float[Array, " d"]
    target: Float[Array, "L n"]
    pull: NodeForces
    args: Array | None
    memory: dict


class Evaluation(eqx.Module):
    """One pass over the mechanism."""

    V: Float[Array, "L K d"]
    parent: Float[Array, "L d"]  # twist of what each joint hangs on
    rows: Float[Array, "L K d"]  # wrench that each node lacks, children included
    given: Float[Array, "L d"]  # wrench that the parent gives through each joint
    taken: Float[Array, "L n"]
    forces: JointForces
    Q: Float[Array, "L N d"]
    loss: Array


class PortTerm(AbstractPortHamiltonianTerm):
    """Equations of motion of a mechanism under one drive."""

    robot: Robot
    num: Numbers
    loops: tuple[LoopNumbers, ...]
    drive: Drive
    st: Structure = eqx.field(static=True)
    plans: tuple[LoopPlan, ...] = eqx.field(static=True)

    # --- static tables
    @property
    def _rotors(self) -> bool:
        return any(j.motor is not None and j.motor.rotor is not None for j in self.robot.tree_joints)

    @property
    def exact(self) -> bool:
        feedback = any(isinstance(a, Feedback) for a in self.drive.joints.values())
        return not feedback and self.num.deformation_damping is None and _loops.exact(self.plans, self.st.planar)

    @property
    def _joint_hardware(self) -> bool:
        """Whether anything acts in a joint that depends on its motion."""
        parts = [p for j in self.robot.tree_joints for p in (j.stiffness, j.damping, j.friction, j.stops)]
        return bool(self.drive.joints) or any(p is not None for p in parts)

    def _masks(self):
        """(L, n) static: live unknowns, and those that a Motion fixes (the motor of a flexible joint, else the joint)."""
        st = self.st
        table = st.rate_table()
        locked = np.zeros(st.nv + 1, bool)
        locked[: st.total_dofs] = self.drive.prescribed(self.robot)
        for k, i in enumerate(st.motors):
            dof = st.v_start[i]
            locked[st.total_dofs + k], locked[dof] = locked[dof], False
        return table < st.nv, locked[table]

    def _spread(self, per_v):
        """(L, n) from (nv,), zero where there is no unknown."""
        return jnp.concatenate([per_v, jnp.zeros(1, per_v.dtype)])[self.st.rate_table()]

    def _collect(self, y):
        """(nv,) from (L, n)."""
        return jnp.zeros(self.st.nv + 1, y.dtype).at[self.st.rate_table()].set(y)[:-1]

    # --- coordinates
    def _move_q(self, q, dv):
        table = self.st.q_of_v()
        plain = table >= 0
        moved = q.at[table[plain]].add(dv[plain])
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

    def motor_coordinates(self, y: State):
        return self.motor_side(y.mech.q, y.mech.v)

    def ground(self, t, args):
        """Rotation, position and twist of the ground frame."""
        st, dtype = self.st, self.num.gravity.dtype
        if self.drive.base is None:
            return jnp.eye(st.lin, dtype=dtype), jnp.zeros(st.lin, dtype), jnp.zeros(st.dim, dtype)
        pose, twist, _ = self.drive.base.motion(t, args)
        if st.planar:
            return pose.rotation[:2, :2], pose.position[:2], twist[np.array([0, 1, 5])]
        return pose.rotation, pose.position, twist

    def _joint_q(self, q):
        """Plain coordinates (L, k) and rotations of balls (L, D, D) of all joints."""
        st = self.st
        plain = jnp.concatenate([q, jnp.zeros(1, q.dtype)])[st.plain_table()]
        balls = jnp.broadcast_to(jnp.eye(st.lin, dtype=q.dtype), (st.links, st.lin, st.lin))
        for i, at, _ in st.balls():
            balls = balls.at[i].set(se3.quat_to_matrix(q[at : at + 4]))
        return plain, balls

    def _attached(self, per_node, i):
        """What the children of link i hang on."""
        return per_node[i, 0 if self.st.rigid[i] else -1]

    def _parents_of(self, per_node, ground):
        """(L, ...) values at the attachment nodes of the parents."""
        st = self.st
        tips = jnp.where(np.array(st.rigid).reshape((-1,) + (1,) * (per_node.ndim - 2)), per_node[:, 0], per_node[:, -1])
        return jnp.concatenate([tips, ground[None]])[np.array(st.parents)]

    def settle(self, t, mech: PortState, args) -> PortState:
        st = self.st
        ground_R, ground_x, _ = self.ground(t, args)
        plain, balls = self._joint_q(mech.q)
        turn, x = mech.turn, mech.x
        for i in st.order:
            p = st.parents[i]
            Rp, xp = (ground_R, ground_x) if p < 0 else (turn_matrix(self._attached(turn, p)), self._attached(x, p))
            Rc, xc = _joint.place(_at(self.num.joints, i), plain[i], balls[i], Rp, xp)
            x = x.at[i, 0].set(xc)
            turn = turn.at[i, 0].set(_near(turn_from_matrix(Rc), turn[i, 0]))
        return PortState(mech.q, mech.v, mech.V, mech.Q, turn, x)

    def shape(self, t, q, Q, args):
        """(orientations, positions) of all nodes from joint coordinates and strains: products of exp(kappa)."""
        st, space = self.st, space_of(self.st.dim)
        ground_R, ground_x, _ = self.ground(t, args)
        plain, balls = self._joint_q(q)
        steps = jax.vmap(jax.vmap(space.exp))(Q + self.num.elements.rest)
        poses: list = [None] * st.links
        for i in st.order:
            p = st.parents[i]
            at = space.Pose(ground_R, ground_x) if p < 0 else _at(poses[p], 0 if st.rigid[p] else -1)
            base = space.Pose(*_joint.place(_at(self.num.joints, i), plain[i], balls[i], at.rotation, at.position))

            def along(pose, step):
                new = space.compose(pose, step)
                return new, new

            rest = lax.scan(along, base, _at(steps, i))[1]
            poses[i] = jax.tree_util.tree_map(lambda a, b: jnp.concatenate([a[None], b]), base, rest)
        R, x = jnp.stack([p.rotation for p in poses]), jnp.stack([p.position for p in poses])
        turn = jax.vmap(jax.vmap(turn_from_matrix))(R)
        if st.planar:
            # Angles add up along the link, so that they are continuous beyond half a turn.
            kz = jnp.cumsum(Q[..., 2:] + self.num.elements.rest[..., 2:], axis=1)
            turn = turn.at[:, 1:].set(turn[:, :1] + kz)
        return turn, x

    # --- mass
    def _momentum(self, V):
        P = mv(self.num.mass, V)
        couple = self.num.mass_off
        return P + _pad_back(couple * V[:, 1:]) + _pad_front(couple * V[:, :-1])

    # --- a stage
    def _joint_stage(self, mech: PortState, R, h, t, args) -> tuple[JointStage, Array]:
        ground_R, _, ground_V = self.ground(t, args)
        start_R = rotate_by(ground_R, -h * ground_V[self.st.lin :])
        plain, balls = self._joint_q(mech.q)
        spin = jnp.zeros(self.st.links, R.dtype)
        if self._rotors:
            twists = self._parents_of(mech.V, ground_V)
            spin = jax.vmap(_joint.spin_of)(self.num.joints, twists, self._spread(mech.v))
        return JointStage(plain, balls, self._parents_of(R, start_R), R[:, 0], spin), ground_V

    def prepare(self, t, mech: PortState, h, arrival, args, memory) -> Stage:
        R = turn_matrix(mech.turn)
        when, factor = arrival
        target = self._spread(self._to_v(self.drive.motion(self.robot, when, args)[0]) - self._plain_v(mech.q)) / (factor * h)
        joint, ground = self._joint_stage(mech, R, h, t, args)
        pull = node_forces(self, t, mech, R, args)
        return Stage(t, h, jnp.asarray(factor, R.dtype), mech, R, self._momentum(mech.V), joint, ground, target, pull, args, memory)

    def _to_v(self, per_dof):
        """(nv,) from motor-side numbers (D,): flexible joints' at their motors."""
        st = self.st
        motors = np.array([st.v_start[i] for i in st.motors], int)
        full = jnp.zeros(st.nv, per_dof.dtype).at[: st.total_dofs].set(per_dof)
        return full.at[motors].set(0.0).at[st.total_dofs :].set(per_dof[motors])

    def _plain_v(self, q):
        """(nv,) coordinates as numbers, zero at balls (which no Motion fixes)."""
        table = self.st.q_of_v()
        return jnp.where(table >= 0, q[np.maximum(table, 0)], 0.0)

    def guess(self, mech: PortState) -> Unknowns:
        return Unknowns(self._spread(mech.v), mech.V[:, 1:], jnp.zeros(_loops.total(self.plans), mech.v.dtype))

    def _sides(self, stage: Stage, V, k):
        plan, numbers = self.plans[k], self.loops[k]

        def side(link, end, lever):
            if link < 0:
                R, x, W = self.ground(stage.t, stage.args)
                return Side(W, rotate_by(R, -stage.h * W[self.st.lin :]), x - stage.h * mv(R, W[: self.st.lin]), lever)
            at = 0 if end == 0 else -1
            return Side(V[link, at], stage.rotation[link, at], stage.start.x[link, at], lever)

        return side(plan.parent, plan.parent_end, numbers.parent_lever), side(plan.child, plan.child_end, numbers.child_lever)

    def _outwards(self, stage: Stage, u: Unknowns):
        """(twists of all nodes, twists that the joints hang on)."""
        st = self.st
        if st.links == 1 or not any(st.rigid):
            tips = jnp.concatenate([u.nodes[:, -1], stage.ground[None]])[np.array(st.parents)]
            V0 = jax.vmap(lambda j, s, Vp, y: _joint.base_twist(j, s, stage.h, Vp, y))(self.num.joints, stage.joint, tips, u.joints)
            return jnp.concatenate([V0[:, None], u.nodes], axis=1), tips
        V0, tips, parents = [None] * st.links, [None] * st.links, [None] * st.links
        for i in st.order:
            p = st.parents[i]
            parents[i] = stage.ground if p < 0 else tips[p]
            V0[i] = _joint.base_twist(_at(self.num.joints, i), _at(stage.joint, i), stage.h, parents[i], u.joints[i])
            tips[i] = V0[i] if st.rigid[i] else u.nodes[i, -1]
        return jnp.concatenate([jnp.stack(V0)[:, None], u.nodes], axis=1), jnp.stack(parents)

    def _evaluate(self, stage: Stage, u: Unknowns) -> Evaluation:
        num, st, h = self.num, self.st, stage.h
        V, parents = self._outwards(stage, u)
        P = self._momentum(V)
        rows = (P - stage.momentum) / h - mv(coad_of(P), V)
        fa, fb, Q, loss = num.elements.forces(stage.start.Q, h, V)
        rows = rows - _pad_back(fa) - _pad_front(fb) - stage.pull.wrench(stage.rotation, h, V)
        lost, damped = stage.pull.damping(V)
        rows, loss = rows + damped, loss + lost
        for k, plan in enumerate(self.plans):
            parent, child = self._sides(stage, V, k)
            wp, wc = _loops.wrenches(plan, self.loops[k], h, parent, child, u.loops[plan.start : plan.start + plan.count])
            rows = rows.at[plan.child, 0 if plan.child_end == 0 else -1].add(wc)
            if plan.parent >= 0:
                rows = rows.at[plan.parent, 0 if plan.parent_end == 0 else -1].add(wp)
        rows, given, taken = self._inwards(stage, rows, parents, u.joints)
        v = self._collect(u.joints)
        forces = joint_forces(self, stage.t, self._move_q(stage.start.q, h * v), v, stage.args, stage.memory)
        return Evaluation(V, parents, rows, given, taken, forces, Q, loss)

    def _inwards(self, stage: Stage, rows, parents, y):
        """Hand the wrenches of the joints to the parents, tips first."""
        st = self.st
        rotors = self._rotors

        def one(j, s, Vp, y, F):
            return _joint.transmit(j, s, stage.h, Vp, y, F, rotors)[1:]

        if not any(st.rigid):
            given, taken = jax.vmap(one)(self.num.joints, stage.joint, parents, y, rows[:, 0])
            inner = [i for i in range(st.links) if st.parents[i] >= 0]
            if inner:
                rows = rows.at[np.array([st.parents[i] for i in inner]), -1].add(given[np.array(inner)])
            return rows, given, taken
        given, taken = [None] * st.links, [None] * st.links
        for i in reversed(st.order):
            given[i], taken[i] = one(_at(self.num.joints, i), _at(stage.joint, i), parents[i], y[i], rows[i, 0])
            p = st.parents[i]
            if p >= 0:
                rows = rows.at[p, 0 if st.rigid[p] else -1].add(given[i])
        return rows, jnp.stack(given), jnp.stack(taken)

    def residual(self, stage: Stage, u: Unknowns) -> Unknowns:
        return self._residual(stage, u, self._evaluate(stage, u))

    def _residual(self, stage: Stage, u: Unknowns, e: Evaluation) -> Unknowns:
        live, locked = self._masks()
        free = e.taken - self._spread(e.forces.total)
        joints = jnp.where(locked, u.joints - stage.target, jnp.where(live, free, u.joints))
        loops = [
            _loops.rows(plan, self.loops[k], stage.h, stage.factor, *self._sides(stage, e.V, k)) for k, plan in enumerate(self.plans)
        ]
        return Unknowns(joints, e.rows[:, 1:], jnp.concatenate(loops) if loops else u.loops)

    def linearise(self, stage: Stage, u: Unknowns) -> tuple[Unknowns, NewtonMatrix]:
        num, st, h = self.num, self.st, stage.h
        e = self._evaluate(stage, u)
        V, P = e.V, self._momentum(e.V)
        adT = transpose(ad(V))
        diag = num.mass / h - mm(adT, num.mass) - coad_of(P) - stage.pull.tangent(stage.rotation, h, V)
        carry = eye_like(adT) / h - adT  # what a unit of momentum gives
        off = num.mass_off[:, :, None, :]
        aa, ab, ba, bb = num.elements.tangent(stage.start.Q, h, V)
        upper = _pad_back(carry[:, :-1] * off - ab)
        lower = _pad_front(carry[:, 1:] * off - ba)
        diag = diag - _pad_back(aa) - _pad_front(bb)
        columns, rows, diag = self._loop_blocks(stage, u, V, diag)
        X, B, A, T, S, Y, Z, E = self._joint_blocks(stage, u, e)
        corner = jnp.zeros((u.loops.shape[0],) * 2, V.dtype)
        blocks = LinkedBlocks(lower, diag, upper, X, B, A, T, S, Y, Z, E, columns, rows, corner, st.parents, st.order, st.rigid)
        return self._residual(stage, u, e), NewtonMatrix(blocks)

    def _joint_blocks(self, stage: Stage, u: Unknowns, e: Evaluation):
        st, h, rotors = self.st, stage.h, self._rotors

        def one(j, s, Vp, y, F):
            return _joint.derivatives(j, s, h, Vp, y, F, rotors)

        (X, B), (E, Z, Y), (S, T, A) = jax.vmap(one)(self.num.joints, stage.joint, e.parent, u.joints, e.rows[:, 0])
        live, locked = self._masks()
        free = (live & ~locked)[..., None]

        def forces(y):
            v = self._collect(y)
            return self._spread(joint_forces(self, stage.t, self._move_q(stage.start.q, h * v), v, stage.args, stage.memory).total)

        eye = eye_like(T)
        if not self._joint_hardware:
            return X, B, jnp.where(free, A, 0.0), jnp.where(free, T, eye), jnp.where(free, S, 0.0), Y, Z, E
        unit = np.eye(st.unknowns)
        slopes = [jax.jvp(forces, (u.joints,), (jnp.broadcast_to(jnp.asarray(c, T.dtype), u.joints.shape),))[1] for c in unit]
        T = T - jnp.stack(slopes, axis=-1)
        return X, B, jnp.where(free, A, 0.0), jnp.where(free, T, eye), jnp.where(free, S, 0.0), Y, Z, E

    def _loop_blocks(self, stage: Stage, u: Unknowns, V, diag):
        st, count = self.st, u.loops.shape[0]
        columns = jnp.zeros((st.links, 2, st.dim, count), V.dtype)
        rows = jnp.zeros((st.links, 2, count, st.dim), V.dtype)
        for k, plan in enumerate(self.plans):
            parent, child = self._sides(stage, V, k)
            here = slice(plan.start, plan.start + plan.count)
            numbers = self.loops[k]

            def closing(Vp, Vc, plan=plan, numbers=numbers, parent=parent, child=child):
                sides = Side(Vp, parent.R, parent.x, parent.lever), Side(Vc, child.R, child.x, child.lever)
                return _loops.rows(plan, numbers, stage.h, stage.factor, *sides)

            def holding(Vp, Vc, value, plan=plan, numbers=numbers, parent=parent, child=child):
                sides = Side(Vp, parent.R, parent.x, parent.lever), Side(Vc, child.R, child.x, child.lever)
                return _loops.wrenches(plan, numbers, stage.h, *sides, value)

            rp, rc = jax.jacfwd(closing, argnums=(0, 1))(parent.V, child.V)
            (pp, _, cp), (_, cc, cl) = jax.jacfwd(holding, argnums=(0, 1, 2))(parent.V, child.V, u.loops[here])
            for link, end, row, own, column in ((plan.parent, plan.parent_end, rp, pp, cp), (plan.child, plan.child_end, rc, cc, cl)):
                if link >= 0:
                    rows = rows.at[link, end, here].add(row)
                    columns = columns.at[link, end, :, here].add(column)
                    diag = diag.at[link, 0 if end == 0 else -1].add(own)
        return columns, rows, diag

    def arrive(self, stage: Stage, u: Unknowns, factor):
        e = self._evaluate(stage, u)
        start, h, lin = stage.start, stage.h, self.st.lin
        step = factor * h
        v = self._collect(u.joints)
        w = e.V[..., lin:]
        R = self._rotation(stage, w)
        mech = PortState(
            q=self._move_q(start.q, step * v),
            v=start.v + factor * (v - start.v),
            V=start.V + factor * (e.V - start.V),
            Q=start.Q + factor * (e.Q - start.Q),
            turn=turn_move(start.turn, step * w),
            x=start.x + step * mv(R, e.V[..., :lin]),
        )
        live, locked = self._masks()
        effort = jnp.where(locked, e.taken - self._spread(e.forces.total), 0.0)
        power = jnp.sum(v * e.forces.driven) + jnp.sum(effort * u.joints) + stage.pull.power(R, h, e.V)
        roots = np.array([p < 0 for p in self.st.parents])
        power = power + jnp.sum(jnp.where(roots[:, None], e.given, 0.0) * stage.ground[None])
        for k, plan in enumerate(self.plans):
            if plan.parent < 0:
                parent, child = self._sides(stage, e.V, k)
                wp, _ = _loops.wrenches(plan, self.loops[k], h, parent, child, u.loops[plan.start : plan.start + plan.count])
                power = power + jnp.sum(wp * stage.ground)
        return mech, power, e.loss - jnp.sum(v * e.forces.damped)

    def _rotation(self, stage: Stage, w):
        return rotate_by(stage.rotation, stage.h * w)

    def blend(self, a: PortState, b: PortState, weight, step, unknowns) -> PortState:
        st = self.st
        V = 0.5 * (a.V + b.V)  # of the midpoint stage that led from a to b
        v = self._collect(unknowns.joints)

        def mix(p, q):
            return q + weight * (p - q)

        return PortState(
            q=self._move_q(b.q, -weight * step * v), v=mix(a.v, b.v), V=mix(a.V, b.V), Q=mix(a.Q, b.Q),
            turn=turn_move(b.turn, -weight * step * V[..., st.lin :]), x=mix(a.x, b.x),
        )  # fmt: skip

    # --- the differential equation itself
    def rate(self, t, y: State, args) -> PortTangent:
        from flexjax.formulation.port_hamiltonian._dynamics import accelerations

        return accelerations(self, t, y.mech, args, y.memory).tangent

    def retract(self, mech: PortState, dx: PortTangent) -> PortState:
        from flexjax.formulation.port_hamiltonian._dynamics import assemble

        q, Q = self._move_q(mech.q, dx.q), mech.Q + dx.Q
        return assemble(self, jnp.zeros((), q.dtype), q, mech.v + dx.v, mech.V[:, 1:] + dx.V, Q, None)

    def ambient(self, mech: PortState, dx: PortTangent) -> PortState:
        from flexjax.formulation.port_hamiltonian._dynamics import ambient

        return ambient(self, mech, dx)

    def power(self, t, y: State, args):
        from flexjax.formulation.port_hamiltonian._dynamics import accelerations

        a = accelerations(self, t, y.mech, args, y.memory)
        return a.power, a.loss

    def energies(self, y: PortState):
        """(kinetic, elastic, gravity)."""
        num, st = self.num, self.st
        kinetic = 0.5 * jnp.sum(y.V * self._momentum(y.V))
        rigid = np.array(st.rigid)
        if rigid.any():
            kinetic = kinetic - 0.5 * jnp.sum(jnp.where(rigid[:, None, None], y.V[:, 1:] ** 2, 0.0))
        if self._rotors:
            ground = jnp.zeros(st.dim, y.V.dtype)
            spin = jax.vmap(_joint.spin_of)(self.num.joints, self._parents_of(y.V, ground), self._spread(y.v))
            rotor = num.joints.rotor
            kinetic = kinetic + 0.5 * jnp.sum(jnp.where(rotor > 0, spin**2 / jnp.where(rotor > 0, rotor, 1.0), 0.0))
        from flexjax.formulation.port_hamiltonian._forces import joint_energy

        elastic = num.elements.energy(y.Q) + joint_energy(self, y.q)
        at = num.weight[..., None] * y.x
        if num.moment is not None:
            at = at + mv(turn_matrix(y.turn), num.moment)
        return kinetic, elastic, -jnp.sum(at * num.gravity[None, None])


def _at(tree, i):
    return jax.tree_util.tree_map(lambda x: x[i], tree)


def _pad_back(x):
    return jnp.concatenate([x, jnp.zeros_like(x[:, :1])], axis=1)


def _pad_front(x):
    return jnp.concatenate([jnp.zeros_like(x[:, :1]), x], axis=1)


def _near(turn, before):
    """The same orientation, written as close to ``before`` as it can be."""
    if turn.shape[-1] == 1:
        return turn + 2 * jnp.pi * lax.stop_gradient(jnp.round((before - turn) / (2 * jnp.pi)))
    return turn * jnp.where(jnp.sum(turn * before) < 0, -1.0, 1.0)
