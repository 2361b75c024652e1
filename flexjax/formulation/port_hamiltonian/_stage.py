"""A stage z = z* + h f(z) of a mechanism: its unknowns, one pass over the mechanism, what vanishes
at the solution, where the stage leads."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian import _joint, _loops
from flexjax.formulation.port_hamiltonian._algebra import rotate_by, turn_matrix, turn_move
from flexjax.formulation.port_hamiltonian._assembly import Assembly, pick
from flexjax.formulation.port_hamiltonian._forces import JointForces, joint_forces, node_forces
from flexjax.formulation.port_hamiltonian._joint import JointStage
from flexjax.formulation.port_hamiltonian._lanes import lanes, unlanes
from flexjax.formulation.port_hamiltonian._loops import Side
from flexjax.formulation.port_hamiltonian._nodes import Nodes, momentum
from flexjax.formulation.port_hamiltonian._structure import stacked
from flexjax.numerics.linalg import mv
from flexjax.numerics.linalg._block_tridiagonal import LinkedBlocks, solve_linked
from flexjax.numerics.term import Limits, PortState


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
    joint: JointStage
    ground: Float[Array, " d"]
    target: Float[Array, "L n"]
    nodes: Nodes
    piece_time: Array | None
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


def prepare(arm: Assembly, t, mech: PortState, h, arrival, piece_time, memory) -> Stage:
    R = turn_matrix(mech.turn)
    when, factor = arrival
    target = arm.spread(
        arm.to_v(arm.drive.motion(arm.robot, when, piece_time)[0]) - arm.plain_v(mech.q)
    ) / (factor * h)
    joint, ground = arm.joint_stage(mech, R, h, t, piece_time)
    return Stage(
        t,
        h,
        jnp.asarray(factor, R.dtype),
        mech,
        R,
        joint,
        ground,
        target,
        nodes_of(arm, t, mech, R, h, piece_time),
        piece_time,
        memory,
    )


def nodes_of(arm: Assembly, t, mech: PortState, R, h, piece_time) -> Nodes:
    num = arm.num
    mass, off = lanes(num.mass, 2), lanes(num.mass_off, num.mass_off.ndim - 2)
    return Nodes(
        h=jnp.reshape(h, (1, 1, 1)),
        Q=lanes(mech.Q),
        momentum=momentum(mass, off, lanes(mech.V)),
        rotation=lanes(R, 2),
        mass=mass,
        off=off,
        elements=num.elements.lanes(),
        pull=node_forces(arm, t, mech, R, piece_time),
    )


def guess(arm: Assembly, mech: PortState) -> Unknowns:
    return Unknowns(
        arm.spread(mech.v), mech.V[:, 1:], jnp.zeros(_loops.total(arm.plans), mech.v.dtype)
    )


def sides(arm: Assembly, stage: Stage, V, k):
    plan, numbers = arm.plans[k], arm.loops[k]

    def side(link, end, lever):
        if link < 0:
            R, x, W = arm.ground(stage.t, stage.piece_time)
            return Side(
                W,
                rotate_by(R, -stage.h * W[arm.st.lin :]),
                x - stage.h * mv(R, W[: arm.st.lin]),
                lever,
            )
        at = 0 if end == 0 else -1
        return Side(V[link, at], stage.rotation[link, at], stage.start.x[link, at], lever)

    return side(plan.parent, plan.parent_end, numbers.parent_lever), side(
        plan.child, plan.child_end, numbers.child_lever
    )


def outwards(arm: Assembly, stage: Stage, u: Unknowns):
    """(twists of all nodes, twists that the joints hang on)."""
    V0, parents = bases(arm, stage, u.joints, u.nodes[:, -1])
    return jnp.concatenate([V0[:, None], u.nodes], axis=1), parents


def bases(arm: Assembly, stage: Stage, joints, ends):
    """(twists of the base nodes (L, d), twists that the joints hang on (L, d)) from the rates of
    the joints and the twists of the last nodes (L, d)."""
    return _joint.base_twists(
        arm.st, arm.num.joints, stage.joint, stage.h, stage.ground, joints, ends
    )


def node_needs(arm: Assembly, stage: Stage, V, multipliers):
    """(wrenches that nodes lack because of weight, loads, drag and loops, power that drag
    takes)."""
    rows, lost = stage.nodes.needs(lanes(V))
    return loop_needs(arm, stage, V, multipliers, unlanes(rows)), lost


def loop_needs(arm: Assembly, stage: Stage, V, multipliers, rows):
    """Wrenches that the nodes lack because of loops added to ``rows``."""
    for k, plan in enumerate(arm.plans):
        parent, child = sides(arm, stage, V, k)
        wp, wc = _loops.wrenches(
            plan,
            arm.loops[k],
            stage.h,
            parent,
            child,
            multipliers[plan.start : plan.start + plan.count],
        )
        rows = rows.at[plan.child, 0 if plan.child_end == 0 else -1].add(wc)
        if plan.parent >= 0:
            rows = rows.at[plan.parent, 0 if plan.parent_end == 0 else -1].add(wp)
    return rows


def evaluate(arm: Assembly, stage: Stage, u: Unknowns) -> Evaluation:
    V, parents = outwards(arm, stage, u)
    return complete(arm, stage, u, V, parents, stage.nodes.rows(lanes(V)))


def complete(arm: Assembly, stage: Stage, u: Unknowns, V, parents, along) -> Evaluation:
    """The pass over the mechanism, once the links have told ``along``: their rows, strains and
    losses."""
    rows, Q, loss = along
    rows, given, taken = inwards(
        arm, stage, loop_needs(arm, stage, V, u.loops, unlanes(rows)), parents, u.joints
    )
    v = arm.collect(u.joints)
    forces = joint_forces(
        arm, stage.t, arm.move_q(stage.start.q, stage.h * v), v, stage.piece_time, stage.memory
    )
    return Evaluation(V, parents, rows, given, taken, forces, unlanes(Q), loss)


def inwards(arm: Assembly, stage: Stage, rows, parents, y):
    """Hand the wrenches of the joints to the parents, tips first."""
    st = arm.st
    rotors = arm.rotors

    def one(j, s, Vp, y, F):
        return _joint.transmit(j, s, stage.h, Vp, y, F, rotors)[1:]

    if not any(st.rigid):
        given, taken = jax.vmap(one)(arm.num.joints, stage.joint, parents, y, rows[:, 0])
        inner = [i for i in range(st.links) if st.parents[i] >= 0]
        if inner:
            rows = rows.at[np.array([st.parents[i] for i in inner]), -1].add(given[np.array(inner)])
        return rows, given, taken
    X, A = jax.vmap(lambda j, s, Vp, y: _joint.maps(j, s, stage.h, Vp, y))(
        arm.num.joints, stage.joint, parents, y
    )
    gives: dict[int, Array] = {}
    takes: dict[int, Array] = {}
    for i in reversed(st.order):
        j, s = pick((arm.num.joints, stage.joint), i)
        gives[i], takes[i] = _joint.hand_on(
            j, s, stage.h, parents[i], y[i], rows[i, 0], (X[i], A[i]), rotors
        )
        p = st.parents[i]
        if p >= 0:
            rows = rows.at[p, 0 if st.rigid[p] else -1].add(gives[i])
    return rows, stacked(gives), stacked(takes)


def residual(arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation | None = None) -> Unknowns:
    """What vanishes at the solution; ``e`` if the pass over the mechanism was made already."""
    e = evaluate(arm, stage, u) if e is None else e
    joints, loops = interconnection(arm, stage, u, e)
    return Unknowns(joints, e.rows[:, 1:], loops)


def interconnection(arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation):
    """Residuals of the joints and of the loops."""
    live, locked = arm.masks()
    free = e.taken - arm.spread(e.forces.total)
    joints = jnp.where(locked, u.joints - stage.target, jnp.where(live, free, u.joints))
    loops = [
        _loops.rows(plan, arm.loops[k], stage.h, stage.factor, *sides(arm, stage, e.V, k))
        for k, plan in enumerate(arm.plans)
    ]
    return joints, jnp.concatenate(loops) if loops else u.loops


def arrive(arm: Assembly, stage: Stage, u: Unknowns, factor, e: Evaluation):
    """(z* + factor h f, power of the drive, power dissipated)."""
    start, h, lin = stage.start, stage.h, arm.st.lin
    step = factor * h
    v = arm.collect(u.joints)
    w = e.V[..., lin:]
    R = rotate_by(stage.rotation, h * w)
    mech = PortState(
        q=arm.move_q(start.q, step * v),
        v=start.v + factor * (v - start.v),
        V=start.V + factor * (e.V - start.V),
        Q=start.Q + factor * (e.Q - start.Q),
        turn=turn_move(start.turn, step * w),
        x=start.x + step * mv(R, e.V[..., :lin]),
    )
    _, locked = arm.masks()
    power = jnp.sum(v * e.forces.driven) + stage.nodes.pull.power(
        lanes(R, 2), stage.nodes.h, lanes(e.V)
    )
    # Wrenches only where they do work: without them nothing asks for the rows of the nodes, and XLA
    # leaves them out.
    if locked.any():
        power = power + jnp.sum(
            jnp.where(locked, e.taken - arm.spread(e.forces.total), 0.0) * u.joints
        )
    if arm.drive.base is not None:
        roots = np.array([p < 0 for p in arm.st.parents])
        power = power + jnp.sum(jnp.where(roots[:, None], e.given, 0.0) * stage.ground[None])
    for k, plan in enumerate(arm.plans):
        if plan.parent < 0 and arm.drive.base is not None:
            parent, child = sides(arm, stage, e.V, k)
            wp, _ = _loops.wrenches(
                plan, arm.loops[k], h, parent, child, u.loops[plan.start : plan.start + plan.count]
            )
            power = power + jnp.sum(wp * stage.ground)
    return mech, power, e.loss - jnp.sum(v * e.forces.damped)


def limits(arm: Assembly, stage: Stage, u: Unknowns) -> Limits | None:
    """Efforts that are cut off, by the rates of the joints that they act on."""
    v = arm.collect(u.joints)
    side = arm.motor_side(arm.move_q(stage.start.q, stage.h * v), v)
    found = arm.drive.limits(arm.robot, stage.t, stage.piece_time, *side, stage.memory)
    if found is None:
        return None
    dofs, effort, bound, kp, kd = found
    rate = np.arange(arm.st.total_dofs)
    rate[[arm.st.v_start[i] for i in arm.st.motors]] = np.arange(arm.st.total_dofs, arm.st.nv)
    rows = tuple(int(i) for i in arm.st.collect_table()[rate[dofs]])
    return Limits(effort, bound, jnp.zeros_like(kp), kd + stage.h * kp, rows)


def blend(arm: Assembly, a: PortState, b: PortState, weight, step, unknowns) -> PortState:
    st = arm.st
    V = 0.5 * (a.V + b.V)  # of the midpoint stage that led from a to b
    v = arm.collect(unknowns.joints)

    def mix(p, q):
        return q + weight * (p - q)

    return PortState(
        q=arm.move_q(b.q, -weight * step * v),
        v=mix(a.v, b.v),
        V=mix(a.V, b.V),
        Q=mix(a.Q, b.Q),
        turn=turn_move(b.turn, -weight * step * V[..., st.lin :]),
        x=mix(a.x, b.x),
    )
