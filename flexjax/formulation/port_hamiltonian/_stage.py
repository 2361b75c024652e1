"""A stage z = z* + h f(z) of a mechanism: its unknowns, its residual and its result."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.formulation.port_hamiltonian import _joint, _loops
from flexjax.formulation.port_hamiltonian._assembly import Assembly, Ground
from flexjax.formulation.port_hamiltonian._joint import JointStage, pick, stack_links
from flexjax.formulation.port_hamiltonian._loops import Side
from flexjax.formulation.port_hamiltonian._nodes import Nodes, node_forces
from flexjax.mechanism import JointForces
from flexjax.numerics.linalg._components_first import mv
from flexjax.numerics.screw._components_first import (
    move_orientation,
    orientation_matrix,
    rotate_by,
)
from flexjax.numerics.term import Limits, PortState


class Unknowns(eqx.Module):
    """Joint rates, twists of nodes 1..N, multipliers of loops. Residuals have the same form."""

    joints: Float[Array, "L n"]
    nodes: Float[Array, "d L N"]
    loops: Float[Array, " m"]


class Stage(eqx.Module):
    """Start of a stage, and all that its iteration does not change."""

    t: ScalarLike
    h: Scalar
    factor: Scalar
    start: PortState
    joint: JointStage
    ground: Float[Array, " d"]
    target: Float[Array, "L n"]
    nodes: Nodes
    piece_time: PieceTime
    memory: PyTree


class Evaluation(eqx.Module):
    """One pass over the mechanism."""

    V: Float[Array, "d L K"]
    parent: Float[Array, "d L"]  # twist of the node that carries each joint
    rows: Float[Array, "d L K"]  # wrench that balances each node, with its children
    on_parent: Float[Array, "d L"]  # wrench of the parent on each joint
    on_joint: Float[Array, "L n"]  # generalised force on the unknowns of each joint
    forces: JointForces
    Q: Float[Array, "d L N"]
    loss: Scalar


# Residual of the nodes, their strains, power dissipated.
LinkRows = tuple[Float[Array, "d L K"], Float[Array, "d L N"], Scalar]


def nodes_of(
    arm: Assembly,
    t: ScalarLike,
    mech: PortState,
    R: Float[Array, "lin lin L K"],
    h: Scalar,
    piece_time: PieceTime,
) -> Nodes:
    """Nodes and elements at the start of a stage."""
    parameters = arm.parameters
    return Nodes(
        h=jnp.reshape(h, (1, 1, 1)),
        Q=mech.Q,
        momentum=arm.momentum(mech.V),
        rotation=R,
        mass=parameters.mass,
        coupling=parameters.mass_coupling,
        elements=parameters.elements,
        forces=node_forces(arm, t, mech, R, piece_time),
    )


def prepare(
    arm: Assembly,
    t: ScalarLike,
    mech: PortState,
    h: Scalar,
    arrival: tuple[ScalarLike, float],
    piece_time: PieceTime,
    memory: PyTree,
) -> Stage:
    R = orientation_matrix(mech.orientation)
    when, factor = arrival
    way = arm.prescribed(when, piece_time)[0] - arm.plain(mech.q)
    joint, ground = arm.joint_stage(mech, R, h, t, piece_time)
    return Stage(
        t=t,
        h=h,
        factor=jnp.asarray(factor, R.dtype),
        start=mech,
        joint=joint,
        ground=ground,
        target=arm.structure.to_joints(way) / (factor * h),
        nodes=nodes_of(arm, t, mech, R, h, piece_time),
        piece_time=piece_time,
        memory=memory,
    )


def guess(arm: Assembly, mech: PortState) -> Unknowns:
    multipliers = jnp.zeros(_loops.multiplier_count(arm.plans), mech.v.dtype)
    return Unknowns(arm.structure.to_joints(mech.v), mech.V[:, :, 1:], multipliers)


def sides(arm: Assembly, stage: Stage, V: Float[Array, "d L K"], k: int) -> tuple[Side, Side]:
    """Both sides of loop ``k`` at the start of the stage."""
    R, x, W = arm.ground(stage.t, stage.piece_time)
    lin = arm.structure.lin
    ground: Ground = (
        rotate_by(R, -stage.h * W[lin:]),
        x - stage.h * mv(R, W[:lin]),
        W,
    )
    return arm.loop_sides(k, V, stage.nodes.rotation, stage.start.x, ground)


def base_twists(
    arm: Assembly, stage: Stage, joints: Float[Array, "L n"], ends: Float[Array, "d L"]
) -> tuple[Float[Array, "d L"], Float[Array, "d L"]]:
    """(twists of the base nodes, twists of the nodes that carry the joints)."""
    return arm.base_twists(stage.joint, stage.h, stage.ground, joints, ends)


def node_twists(
    arm: Assembly, stage: Stage, u: Unknowns
) -> tuple[Float[Array, "d L K"], Float[Array, "d L"]]:
    """(twists of all nodes, twists of the nodes that carry the joints)."""
    V0, parents = base_twists(arm, stage, u.joints, u.nodes[:, :, -1])
    return jnp.concatenate([V0[:, :, None], u.nodes], axis=2), parents


def add_loops(
    arm: Assembly,
    stage: Stage,
    V: Float[Array, "d L K"],
    multipliers: Float[Array, " m"],
    rows: Float[Array, "d L K"],
) -> Float[Array, "d L K"]:
    """``rows`` with the wrenches of the nodes on the loop joints."""
    for k, plan in enumerate(arm.plans):
        wrenches = _loop_wrenches(arm, stage, V, multipliers, k)
        for link, node, wrench in plan.ends(*wrenches):
            if link >= 0:
                rows = rows.at[:, link, node].add(wrench)
    return rows


def _loop_wrenches(
    arm: Assembly, stage: Stage, V: Float[Array, "d L K"], multipliers: Array, k: int
) -> tuple[Array, Array]:
    plan = arm.plans[k]
    return _loops.constraint_wrenches(
        plan, arm.loops[k], stage.h, *sides(arm, stage, V, k), multipliers[plan.own]
    )


def evaluate(arm: Assembly, stage: Stage, u: Unknowns) -> Evaluation:
    V, parents = node_twists(arm, stage, u)
    rows = stage.nodes.residual(V, stage.nodes.kinematics(V))
    return complete(arm, stage, u, V, parents, rows)


def complete(
    arm: Assembly,
    stage: Stage,
    u: Unknowns,
    V: Float[Array, "d L K"],
    parents: Float[Array, "d L"],
    link_rows: LinkRows,
) -> Evaluation:
    """The pass over the mechanism, for known rows of the links."""
    rows, Q, loss = link_rows
    rows = add_loops(arm, stage, V, u.loops, rows)
    rows, on_parent, on_joint = inward(arm, stage, rows, parents, u.joints)
    forces = stage_forces(arm, stage, u.joints)
    return Evaluation(V, parents, rows, on_parent, on_joint, forces, Q, loss)


def stage_forces(arm: Assembly, stage: Stage, joints: Float[Array, "L n"]) -> JointForces:
    """Forces in the joints at the stage."""
    v = arm.structure.from_joints(joints)
    q = arm.move(stage.start.q, stage.h * v)
    return arm.joint_forces(stage.t, q, v, stage.piece_time, stage.memory)


def inward(
    arm: Assembly,
    stage: Stage,
    rows: Float[Array, "d L K"],
    parents: Float[Array, "d L"],
    y: Float[Array, "L n"],
) -> tuple[Float[Array, "d L K"], Float[Array, "d L"], Float[Array, "L n"]]:
    """Add the wrenches of the joints to their parents' rows, from the tips inwards.

    Returns (rows, wrenches of the parents on the joints, generalised forces on the unknowns).
    """
    structure, joints, h = arm.structure, arm.parameters.joints, stage.h
    if not any(structure.rigid):

        def one(j, s, Vp, y, F):
            return _joint.transmit(j, s, h, Vp, y, F, arm.rotors)[1:]

        each = jax.vmap(one, in_axes=(0, 0, 1, 0, 1), out_axes=(1, 0))
        on_parent, on_joint = each(joints, stage.joint, parents, y, rows[:, :, 0])
        inner = np.flatnonzero(~structure.roots)
        if inner.size:
            places = np.array(structure.parents)[inner]
            rows = rows.at[:, places, -1].add(on_parent[:, inner])
        return rows, on_parent, on_joint
    each = jax.vmap(_joint.maps, in_axes=(0, 0, None, 1, 0))
    XA = each(joints, stage.joint, h, parents, y)
    on_parent, on_joint = {}, {}
    for i in reversed(structure.order):
        j, s, maps = pick((joints, stage.joint, XA), i)
        on_parent[i], on_joint[i] = _joint.joint_wrenches(
            j, s, h, parents[:, i], y[i], rows[:, i, 0], maps, arm.rotors
        )
        p = structure.parents[i]
        if p >= 0:
            rows = rows.at[:, p, structure.attachment(p)].add(on_parent[i])
    return rows, stack_links(on_parent), stack_links(on_joint).T


def residual(arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation | None = None) -> Unknowns:
    """Zero at the solution; ``e`` if the pass over the mechanism is known."""
    e = evaluate(arm, stage, u) if e is None else e
    joints, loops = interconnection(arm, stage, u, e)
    return Unknowns(joints, e.rows[:, :, 1:], loops)


def interconnection(
    arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation
) -> tuple[Float[Array, "L n"], Float[Array, " m"]]:
    """Residuals of the joints and of the loops."""
    live, locked = arm.masks()
    free = e.on_joint - arm.structure.to_joints(e.forces.total)
    joints = jnp.where(locked, u.joints - stage.target, jnp.where(live, free, u.joints))
    loops = [
        _loops.closure(plan, arm.loops[k], stage.h, stage.factor, *sides(arm, stage, e.V, k))
        for k, plan in enumerate(arm.plans)
    ]
    return joints, jnp.concatenate(loops) if loops else u.loops


def arrive(
    arm: Assembly, stage: Stage, u: Unknowns, factor: float, e: Evaluation
) -> tuple[PortState, Scalar, Scalar]:
    """(z* + factor h f, power of the drive, power dissipated)."""
    start, h, lin = stage.start, stage.h, arm.structure.lin
    step = factor * h
    v = arm.structure.from_joints(u.joints)
    w = e.V[lin:]
    R = rotate_by(stage.nodes.rotation, h * w)
    mech = PortState(
        q=arm.move(start.q, step * v),
        v=start.v + factor * (v - start.v),
        V=start.V + factor * (e.V - start.V),
        Q=start.Q + factor * (e.Q - start.Q),
        orientation=move_orientation(start.orientation, step * w),
        x=start.x + step * mv(R, e.V[:lin]),
    )
    power = jnp.sum(v * e.forces.driven) + stage.nodes.forces.power(R, stage.nodes.h, e.V)
    # Wrenches only where they do work: otherwise XLA drops the rows of the nodes.
    _, locked = arm.masks()
    if locked.any():
        effort = e.on_joint - arm.structure.to_joints(e.forces.total)
        power = power + jnp.sum(jnp.where(locked, effort, 0.0) * u.joints)
    if arm.drive.base is not None:
        power = power + ground_power(arm, e.on_parent, stage.ground)
        for k, plan in enumerate(arm.plans):
            if plan.parent < 0:
                wp, _ = _loop_wrenches(arm, stage, e.V, u.loops, k)
                power = power + jnp.sum(wp * stage.ground)
    return mech, power, e.loss - jnp.sum(v * e.forces.damped)


def ground_power(
    arm: Assembly, on_parent: Float[Array, "d L"], ground: Float[Array, " d"]
) -> Scalar:
    """Power of the moving ground through the joints on it."""
    return jnp.sum(jnp.where(arm.structure.roots[None], on_parent, 0.0) * ground[:, None])


def limits(arm: Assembly, stage: Stage, u: Unknowns) -> Limits | None:
    """Efforts with a limit, as functions of the rates of their joints."""
    structure = arm.structure
    v = structure.from_joints(u.joints)
    side = arm.motor_side(arm.move(stage.start.q, stage.h * v), v)
    found = arm.drive.limits(arm.robot, stage.t, stage.piece_time, *side, stage.memory)
    if found is None:
        return None
    dofs, effort, bound, kp, kd = found
    places = structure.coordinates
    rate = np.arange(places.dofs)
    rate[list(places.motors)] = np.arange(places.dofs, places.nv)
    rows = tuple(int(i) for i in structure.joint_table()[rate[dofs]])
    return Limits(effort, bound, jnp.zeros_like(kp), kd + stage.h * kp, rows)


def blend(
    arm: Assembly, a: PortState, b: PortState, weight: float, step: ScalarLike, unknowns: Unknowns
) -> PortState:
    V = 0.5 * (a.V + b.V)  # of the midpoint stage from a to b
    v = arm.structure.from_joints(unknowns.joints)

    def mix(p, q):
        return q + weight * (p - q)

    return PortState(
        q=arm.move(b.q, -weight * step * v),
        v=mix(a.v, b.v),
        V=mix(a.V, b.V),
        Q=mix(a.Q, b.Q),
        orientation=move_orientation(b.orientation, -weight * step * V[arm.structure.lin :]),
        x=mix(a.x, b.x),
    )
