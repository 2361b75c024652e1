"""Accelerations of a mechanism at one instant, and states put together from independent numbers."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import ravel
from flexjax.formulation.port_hamiltonian import _joint, _loops
from flexjax.formulation.port_hamiltonian._algebra import (
    ad,
    coad_of,
    eye_like,
    resolvent,
    rotate_by,
    turn_matrix,
)
from flexjax.formulation.port_hamiltonian._assembly import Assembly, pad_back, pad_front
from flexjax.formulation.port_hamiltonian._forces import joint_forces, node_forces
from flexjax.formulation.port_hamiltonian._joint import JointStage
from flexjax.formulation.port_hamiltonian._lanes import lanes, unlanes
from flexjax.formulation.port_hamiltonian._link import strain_rate
from flexjax.formulation.port_hamiltonian._structure import stacked
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.linalg._block_tridiagonal import LinkedBlocks, apply_linked, solve_linked
from flexjax.numerics.screw import se3
from flexjax.numerics.term import PortState, PortTangent


class Accelerations(eqx.Module):
    tangent: PortTangent
    V: Float[Array, "L K d"]  # twists with base nodes from the joints
    rate: Float[Array, "L K d"]  # their time derivatives
    reaction: Float[Array, "L d"]  # wrench of each joint on its child
    effort: Float[Array, " nv"]  # of the drive, prescribed coordinates included
    power: Array
    loss: Array


def _base_twists(arm: Assembly, joint: JointStage, ground, v, nodes, eps):
    """(V_0 (L, d), twists that the joints hang on) with poses moved on by the time eps."""
    return _joint.base_twists(
        arm.st, arm.num.joints, joint, eps, ground, arm.spread(v), nodes[:, -1]
    )


def assemble(arm: Assembly, t, q, v, nodes, Q, piece_time) -> PortState:
    """The state with poses from coordinates and strains, and base twists from the joints."""
    turn, x = arm.shape(t, q, Q, piece_time)
    probe = PortState(q, v, jnp.concatenate([nodes[:, :1], nodes], axis=1), Q, turn, x)
    R = turn_matrix(turn)
    zero = jnp.zeros((), q.dtype)
    joint, ground = arm.joint_stage(probe, R, zero, t, piece_time)
    V0, _ = _base_twists(arm, joint, ground, v, nodes, zero)
    return PortState(q, v, jnp.concatenate([V0[:, None], nodes], axis=1), Q, turn, x)


def complete(arm: Assembly, t, mech: PortState, piece_time) -> PortState:
    """The state with joints, base and poses as the drive has them at time ``t``."""
    held = arm.held_joints()
    value, rate, _ = (arm.to_v(x) for x in arm.drive.motion(arm.robot, t, piece_time))
    q = arm.move_q(mech.q, jnp.where(held, value - arm.plain_v(mech.q), 0.0))
    v = jnp.where(held, rate, mech.v)
    return assemble(arm, t, q, v, mech.V[:, 1:], mech.Q, piece_time)


def node_twists(arm: Assembly, t, q, v, Q, Q_rate, piece_time):
    """Twists (L, N, d) of nodes 1..N when joints move at rates v and strains change at ``Q_rate``:
    E+ V_k = E- V_{k-1} + Q' along each link."""
    st = arm.st
    turn, x = arm.shape(t, q, Q, piece_time)
    R = turn_matrix(turn)
    probe = PortState(q, v, jnp.zeros((st.links, st.elements + 1, st.dim), q.dtype), Q, turn, x)
    zero = jnp.zeros((), q.dtype)
    joint, ground = arm.joint_stage(probe, R, zero, t, piece_time)
    kappa = Q + arm.num.elements.rest
    turn = ad(kappa)
    a = 0.5 if arm.num.alpha is None else arm.num.alpha
    # In closed form: the reverse mode of a batched LAPACK solve fails to run in some programs
    # (jaxlib 0.10.1, "untyped custom call to lapack_dtrsm_ffi").
    onwards = resolvent((1 - a) * kappa)
    carry, bend = mm(onwards, eye_like(turn) - a * turn), mv(onwards, Q_rate)

    def behind(V0, carry, bend):
        def along(V, row):
            C, c = row
            V = C @ V + c
            return V, V

        return lax.scan(along, V0, (carry, bend))[1]

    def tip(V0, rigid, carry, bend):
        return jnp.where(rigid, V0, behind(V0, carry, bend)[-1])

    V0, _ = _joint.along_tree(
        st, arm.num.joints, joint, zero, ground, arm.spread(v), tip, carry, bend
    )
    return jnp.where(np.array(st.rigid)[:, None, None], 0.0, jax.vmap(behind)(V0, carry, bend))


def _convection(arm: Assembly, joint: JointStage, twists, ground_rate, v, X):
    """(C_0 (L, d), what arrives from the parents): parts of V_0' and of the parents' accelerations
    that no unknown acceleration makes."""
    st = arm.st
    y = arm.spread(v)
    zero = jnp.zeros((), v.dtype)

    def turning(j, s, Vp, y):
        return jax.jvp(
            lambda e: _joint.base_twist(j, s, e, Vp, y), (zero,), (jnp.ones_like(zero),)
        )[1]

    own = jax.vmap(turning)(arm.num.joints, joint, twists, y)
    if not any(st.rigid):
        roots = np.array([p < 0 for p in st.parents])
        parents = jnp.where(roots[:, None], ground_rate[None], jnp.zeros_like(own))
        return mv(X, parents) + own, parents
    C0: dict[int, Array] = {}
    arriving: dict[int, Array] = {}
    tips: dict[int, Array] = {}
    for i in st.order:
        p = st.parents[i]
        arriving[i] = ground_rate if p < 0 else tips[p]
        C0[i] = X[i] @ arriving[i] + own[i]
        tips[i] = C0[i] if st.rigid[i] else jnp.zeros_like(own[i])
    return stacked(C0), stacked(arriving)


def _loop_terms(arm: Assembly, R, x, V, ground):
    """(columns, rows, right-hand sides) of the loops at acceleration level."""
    st = arm.st
    m = _loops.total(arm.plans)
    columns = jnp.zeros((st.links, 2, st.dim, m), V.dtype)
    rows = jnp.zeros((st.links, 2, m, st.dim), V.dtype)
    sides = jnp.zeros(m, V.dtype)
    zero = jnp.zeros((), V.dtype)
    ground_R, ground_x, ground_V, ground_rate = ground

    def side(link, end, lever):
        if link < 0:
            return _loops.Side(ground_V, ground_R, ground_x, lever)
        at = 0 if end == 0 else -1
        return _loops.Side(V[link, at], R[link, at], x[link, at], lever)

    for k, plan in enumerate(arm.plans):
        n = arm.loops[k]
        here = slice(plan.start, plan.start + plan.count)
        parent = side(plan.parent, plan.parent_end, n.parent_lever)
        child = side(plan.child, plan.child_end, n.child_lever)

        def opening(Vp, Vc, eps, plan=plan, n=n, parent=parent, child=child):
            def moved(time):
                def carried(W, side):
                    R, lin = side.R, side.x.shape[0]
                    way = time * (R @ W[:lin]) + 0.5 * time**2 * (R @ _turning(W, lin))
                    return rotate_by(R, time * W[lin:]), side.x + way

                return _loops.gap(plan, n, *carried(Vp, parent), *carried(Vc, child))

            return jax.jvp(moved, (eps,), (jnp.ones_like(eps),))[1]

        Vp, Vc = parent.V, child.V
        rp, rc = jax.jacfwd(opening, argnums=(0, 1))(Vp, Vc, zero)
        one = jnp.ones_like(zero)
        drift = jax.jvp(lambda e: opening(Vp, Vc, e), (zero,), (one,))[1]  # noqa: B023
        wrenches = functools.partial(_loops.wrenches, plan, n, zero, parent, child)
        wp, wc = jax.jacfwd(wrenches)(jnp.zeros(plan.count, V.dtype))
        for link, end, row, column in (
            (plan.parent, plan.parent_end, rp, wp),
            (plan.child, plan.child_end, rc, wc),
        ):
            if link < 0:
                drift = drift + row @ ground_rate
                continue
            rows = rows.at[link, end, here].add(row)
            columns = columns.at[link, end, :, here].add(column)
        sides = sides.at[here].set(-drift)
    return columns, rows, sides


def _turning(W, lin):
    """w x v: how the velocity R v turns with the body."""
    return W[lin:] * jnp.stack([-W[1], W[0]]) if lin == 2 else jnp.cross(W[3:], W[:3])


def accelerations(arm: Assembly, t, mech: PortState, piece_time, memory) -> Accelerations:
    num, st = arm.num, arm.st
    R = turn_matrix(mech.turn)
    zero = jnp.zeros((), R.dtype)
    joint, ground = arm.joint_stage(mech, R, zero, t, piece_time)
    ground_R, ground_x, _ = arm.ground(t, piece_time)
    ground_rate = jnp.zeros_like(ground)
    if arm.drive.base is not None:
        ground_rate = arm.drive.base.motion(t, piece_time)[2]
        ground_rate = ground_rate[np.array([0, 1, 5])] if st.planar else ground_rate
    nodes = mech.V[:, 1:]
    V0, parents = _base_twists(arm, joint, ground, mech.v, nodes, zero)
    V = jnp.concatenate([V0[:, None], nodes], axis=1)
    y = arm.spread(mech.v)
    X, A = jax.vmap(lambda j, s, Vp, y: _joint.maps(j, s, zero, Vp, y))(
        num.joints, joint, parents, y
    )
    k, n = A.shape[2], st.unknowns
    B = jnp.concatenate([A, jnp.zeros((*A.shape[:2], n - k), A.dtype)], axis=2)

    # forces on the nodes
    kappa = mech.Q + num.elements.rest
    strain = strain_rate(kappa, V)
    w = num.elements.wrench(mech.Q, mech.Q)
    loss = zero
    if num.elements.tau is not None:
        damped = num.elements.damping(strain)
        w, loss = w + damped, jnp.sum(damped * strain)
    half = 0.5 * mv(jnp.swapaxes(ad(kappa), -1, -2), w)
    pull, still = node_forces(arm, t, mech, R, piece_time), jnp.zeros((1, 1, 1), R.dtype)
    lost, drag = pull.damping(lanes(V))
    P = arm.momentum(V)
    rows = (
        mv(coad_of(P), V)
        + pad_back(w - half)
        - pad_front(w + half)
        + unlanes(pull.wrench(lanes(R, 2), still, lanes(V)) - drag)
    )

    # the matrix: inertia only
    off = (
        num.mass_off
        if num.mass_off.ndim == 4
        else num.mass_off[:, :, None, :] * jnp.eye(st.dim, dtype=R.dtype)[None, None]
    )
    live, locked = arm.masks()
    free = (live & ~locked)[..., None]
    axis = jnp.concatenate([jnp.zeros((st.links, st.lin), R.dtype), num.joints.rotor_axis], axis=1)
    J = num.joints.rotor[:, None, None]
    gears = num.joints.gears
    T, S = J * gears[:, :, None] * gears[:, None, :], J * gears[:, :, None] * axis[:, None, :]
    Z, E = jnp.swapaxes(S, 1, 2), J * axis[:, :, None] * axis[:, None, :]
    columns, loop_rows, loop_sides = _loop_terms(
        arm, R, mech.x, V, (ground_R, ground_x, ground, ground_rate)
    )
    blocks = LinkedBlocks(
        lower=pad_front(jnp.swapaxes(off, -1, -2)),
        diag=num.mass,
        upper=pad_back(off),
        X=X,
        B=B,
        A=jnp.where(free, jnp.swapaxes(B, 1, 2), 0.0),
        T=jnp.where(free, T, eye_like(T)),
        S=jnp.where(free, S, 0.0),
        Y=jnp.swapaxes(X, 1, 2),
        Z=Z,
        E=E,
        border_columns=columns,
        border_rows=loop_rows,
        corner=jnp.zeros((loop_sides.shape[0],) * 2, R.dtype),
        parents=st.parents,
        order=st.order,
        base_attached=st.rigid,
    )

    forces = joint_forces(arm, t, mech.q, mech.v, piece_time, memory)
    wanted = arm.spread(arm.to_v(arm.drive.motion(arm.robot, t, piece_time)[2]))
    C0, arriving = _convection(arm, joint, parents, ground_rate, mech.v, X)
    # Momentum changes by the known part of the base accelerations.
    known = jnp.concatenate([C0[:, None], jnp.zeros_like(nodes)], axis=1)
    applied = rows
    rows = rows - arm.momentum(known)
    gyro = jnp.zeros_like(arriving)
    if arm.rotors:
        spin = jax.vmap(_joint.spin_of)(num.joints, parents, y)
        gyro = jax.vmap(lambda a, s, Vp: mv(coad_of(s * a), Vp))(axis, spin, parents)
    for i in range(st.links):
        p = st.parents[i]
        if p >= 0:
            rows = rows.at[p, 0 if st.rigid[p] else -1].add(gyro[i] - E[i] @ arriving[i])
    r_joint = arm.spread(forces.total) - mv(S, arriving)
    r_joint = jnp.where(locked, wanted, jnp.where(live, r_joint, 0.0))
    loop_sides = loop_sides - jnp.einsum(
        "led,lemd->m", jnp.stack([known[:, 0], known[:, -1]], axis=1), loop_rows
    )
    full_rows, r_joint = _pass_on(blocks, rows, r_joint)

    # One vector: jax has no derivative of the solve where a part of several has none.
    right, restore = ravel((r_joint, full_rows[:, 1:], loop_sides))
    quiet = lax.stop_gradient(blocks)

    def matvec(x):
        return ravel(apply_linked(blocks, *restore(x)))[0]

    def solve(_, b):
        return ravel(solve_linked(quiet, *restore(b)))[0]

    def solve_transposed(_, b):
        return ravel(solve_linked(quiet.transpose(), *restore(b)))[0]

    yd, Vd, multipliers = restore(lax.custom_linear_solve(matvec, right, solve, solve_transposed))
    parent_rate, V0d = _base_rates(arm, X, B, C0, ground_rate, yd, Vd)
    Vdot = jnp.concatenate([V0d[:, None], Vd], axis=1)
    # What node 0 lacks is the joint's wrench.
    lack = arm.momentum(Vdot) - applied
    if arm.plans:
        lack = lack.at[:, 0].add(columns[:, 0] @ multipliers)
    reaction = _reactions(arm, X, lack, J, axis, gears, gyro, parent_rate, yd)
    taken = jnp.sum(B * reaction[:, :, None], axis=1) + gears * (
        J[:, :, 0] * (jnp.sum(axis * parent_rate, 1) + jnp.sum(gears * yd, 1))[:, None]
    )
    gap = arm.collect(taken) - forces.total
    effort = forces.driven + jnp.where(arm.collect(jnp.where(locked, 1.0, 0.0)) > 0, gap, 0.0)
    power = jnp.sum(effort * mech.v) + pull.power(lanes(R, 2), still, lanes(V))
    if arm.drive.base is not None:
        given = (
            mv(jnp.swapaxes(X, 1, 2), reaction)
            + axis
            * (J[:, :, 0] * (jnp.sum(axis * parent_rate, 1) + jnp.sum(gears * yd, 1))[:, None])
            - gyro
        )
        roots = np.array([p < 0 for p in st.parents])
        power = power + jnp.sum(jnp.where(roots[:, None], given, 0.0) * ground[None])
    tangent = PortTangent(mech.v, arm.collect(yd), Vd, strain)
    return Accelerations(
        tangent, V, Vdot, reaction, effort, power, loss + lost - jnp.sum(forces.damped * mech.v)
    )


def _pass_on(blocks: LinkedBlocks, rows, r_joint):
    """Right-hand sides of base rows given to the joints and the parents: A F + ... with F =
    (matrix) - r_0."""
    for i in reversed(blocks.order):
        r0 = rows[i, 0]
        r_joint = r_joint.at[i].add(blocks.A[i] @ r0)
        p = blocks.parents[i]
        if p >= 0:
            rows = rows.at[p, 0 if blocks.base_attached[p] else -1].add(blocks.Y[i] @ r0)
    return rows, r_joint


def _base_rates(arm: Assembly, X, B, C0, ground_rate, yd, Vd):
    """(accelerations of what the joints hang on, V_0')."""
    st = arm.st
    free: dict[int, Array] = {}
    parents: dict[int, Array] = {}
    tips: dict[int, Array] = {}
    V0: dict[int, Array] = {}
    for i in st.order:
        p = st.parents[i]
        # `free` are the parts that unknown accelerations make; C_0 holds the rest.
        arriving = jnp.zeros_like(ground_rate) if p < 0 else free[p]
        own = X[i] @ arriving + B[i] @ yd[i]
        free[i] = own if st.rigid[i] else Vd[i, -1]
        V0[i] = own + C0[i]
        tips[i] = V0[i] if st.rigid[i] else Vd[i, -1]
        parents[i] = ground_rate if p < 0 else tips[p]
    return stacked(parents), stacked(V0)


def _reactions(arm: Assembly, X, lack, J, axis, gears, gyro, parent_rate, yd):
    """Wrench of every joint on its child, rigid links' children included."""
    st = arm.st
    rows = lack[:, 0]
    spin_rate = J[:, 0, 0] * (jnp.sum(axis * parent_rate, 1) + jnp.sum(gears * yd, 1))
    for i in reversed(st.order):
        p = st.parents[i]
        if p >= 0 and st.rigid[p]:
            rows = rows.at[p].add(X[i].T @ rows[i] + spin_rate[i] * axis[i] - gyro[i])
    return rows


def ambient(arm: Assembly, mech: PortState, dx: PortTangent) -> PortState:
    """Time derivative of all numbers of the state along ``dx``, poses by their twists."""
    st = arm.st
    table = st.q_of_v()
    plain = table >= 0
    q = jnp.zeros_like(mech.q).at[table[plain]].set(dx.q[plain])
    for _, at, v in st.balls():
        spin = jnp.concatenate([jnp.zeros(1, q.dtype), dx.q[v : v + 3]])
        q = q.at[at : at + 4].set(0.5 * se3.quat_multiply(mech.q[at : at + 4], spin))
    R = turn_matrix(mech.turn)
    zero = jnp.zeros((), q.dtype)
    joint, ground = arm.joint_stage(mech, R, zero, zero, None)

    def base(v, nodes, eps):
        return _base_twists(arm, joint, ground, v, nodes, eps)[0]

    V0 = jax.jvp(base, (mech.v, mech.V[:, 1:], zero), (dx.v, dx.V, jnp.ones_like(zero)))[1]
    w = mech.V[..., st.lin :]
    if st.planar:
        turn = w
    else:
        spin = jnp.concatenate([jnp.zeros_like(w[..., :1]), w], axis=-1)
        turn = 0.5 * jax.vmap(jax.vmap(se3.quat_multiply))(mech.turn, spin)
    return PortState(
        q,
        dx.v,
        jnp.concatenate([V0[:, None], dx.V], axis=1),
        dx.Q,
        turn,
        mv(R, mech.V[..., : st.lin]),
    )
