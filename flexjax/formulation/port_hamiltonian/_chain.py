"""Links, joints and loops as a term: the equations of motion of a mechanism at an instant, and the
interface that solvers, modes and equilibrium use."""

import abc
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike, Velocities, ravel
from flexjax.drive import Drive, Feedback
from flexjax.formulation.port_hamiltonian import _joint, _loops, _newton, _stage, _start
from flexjax.formulation.port_hamiltonian._assembly import Assembly, Ground
from flexjax.formulation.port_hamiltonian._joint import stack_links
from flexjax.formulation.port_hamiltonian._link import strain_rate
from flexjax.formulation.port_hamiltonian._nodes import Nodes, to_nodes
from flexjax.formulation.port_hamiltonian._stage import Stage, Unknowns
from flexjax.mechanism import JointForces
from flexjax.numerics.linalg._block_tridiagonal import LinkedBlocks, apply_linked, solve_linked
from flexjax.numerics.linalg._components_first import (
    components_first,
    components_last,
    mtv,
    mv,
    transpose,
)
from flexjax.numerics.screw._components_first import ad, coad, orientation_matrix
from flexjax.numerics.term import (
    AbstractBatchedTerm,
    AbstractMultistageTerm,
    Limits,
    PortState,
    PortTangent,
    State,
)

LinkTwists = Float[Array, "d L"]
JointRates = Float[Array, "L n"]


class Accelerations(eqx.Module):
    """The motion of a mechanism at an instant."""

    tangent: PortTangent
    V: Float[Array, "d L K"]  # twists, those of base nodes from the joints
    rate: Float[Array, "d L K"]  # their time derivatives
    reaction: LinkTwists  # wrench of each joint on its child
    effort: Velocities  # of the drive, prescribed coordinates included
    power: Scalar
    loss: Scalar


class InstantKinematics(eqx.Module):
    """Kinematics of the joints at an instant: V_0 = X V_parent + B y."""

    nodes: Nodes
    ground: Ground
    ground_rate: Float[Array, " d"]
    V: Float[Array, "d L K"]
    parents: LinkTwists
    X: Float[Array, "d d L"]
    B: Float[Array, "d n L"]
    # Parts of V_0' and of the parents' accelerations that no unknown acceleration causes.
    convection: LinkTwists
    known_parents: LinkTwists


class Rotors(eqx.Module):
    """Rotors on all joints: inertia, axis in the parent's axes, gears of the unknowns, and the
    gyroscopic wrench on the parent."""

    inertia: Float[Array, " L"]
    axis: LinkTwists
    gears: Float[Array, "n L"]
    gyro: LinkTwists

    def torque(self, parent_rate: LinkTwists, yd: JointRates) -> Float[Array, " L"]:
        """Rate of the angular momentum of every rotor."""
        spin = jnp.sum(self.axis * parent_rate, 0) + jnp.sum(self.gears * yd.T, 0)
        return self.inertia * spin


def _instant(
    arm: Assembly, t: ScalarLike, mech: PortState, piece_time: PieceTime
) -> InstantKinematics:
    structure, joints = arm.structure, arm.parameters.joints
    R = orientation_matrix(mech.orientation)
    zero = jnp.zeros((), R.dtype)
    joint, ground_V = arm.joint_stage(mech, R, None, t, piece_time)
    y = structure.to_joints(mech.v)
    V0, parents = arm.base_twists(joint, None, ground_V, y, mech.V[:, :, -1])
    axes = (0, 0, None, 1, 0)
    X, A = jax.vmap(_joint.maps, axes, -1)(joints, joint, None, parents, y)
    B = jnp.pad(A, ((0, 0), (0, structure.unknowns - A.shape[1]), (0, 0)))

    def drift(j, s, time, Vp, y):
        after = lambda time: _joint.base_twist(j, s, time, Vp, y)
        return jax.jvp(after, (time,), (jnp.ones_like(time),))[1]

    own = jax.vmap(drift, axes, -1)(joints, joint, zero, parents, y)
    ground_rate = arm.ground_rate(t, piece_time)
    convection, known = _convection(arm, own, X, ground_rate)
    return InstantKinematics(
        nodes=_stage.nodes_of(arm, t, mech, R, zero, piece_time),
        ground=arm.ground(t, piece_time),
        ground_rate=ground_rate,
        V=jnp.concatenate([V0[:, :, None], mech.V[:, :, 1:]], axis=2),
        parents=parents,
        X=X,
        B=B,
        convection=convection,
        known_parents=known,
    )


def _convection(
    arm: Assembly, own: LinkTwists, X: Float[Array, "d d L"], ground_rate: Float[Array, " d"]
) -> tuple[LinkTwists, LinkTwists]:
    """(known parts of V_0', known parts of the parents' accelerations)."""
    structure = arm.structure
    zero = jnp.zeros_like(own)
    if not any(structure.rigid):
        of_ground = jnp.where(structure.roots[None], ground_rate[:, None], zero)
        return mv(X, of_ground) + own, of_ground
    base: dict[int, Array] = {}
    known: dict[int, Array] = {}
    for i in structure.order:
        p = structure.parents[i]
        if p < 0:
            known[i] = ground_rate
        else:
            known[i] = base[p] if structure.rigid[p] else zero[:, i]
        base[i] = mv(X[:, :, i], known[i]) + own[:, i]
    return stack_links(base), stack_links(known)


def _applied(
    arm: Assembly, mech: PortState, now: InstantKinematics
) -> tuple[Float[Array, "d L K"], Float[Array, "d L N"], Scalar]:
    """(wrenches on the nodes, strain rates, power dissipated)."""
    # Base twists of the state and not of the drive: both ends of an element have the same error in
    # time, of which a stiff damper would see the difference.
    elements, V = arm.parameters.elements, mech.V
    kappa = mech.Q + elements.rest
    strain = strain_rate(kappa, V)
    w, loss = elements.damped_wrench(mech.Q, mech.Q, lambda: strain)
    half = 0.5 * mtv(ad(kappa), w)
    resistance, drag_loss = now.nodes.resistance(V)
    rows = mv(coad(arm.momentum(V)), V) + to_nodes(w - half, -w - half) - resistance
    return rows, strain, loss + drag_loss


def _rotors(arm: Assembly, mech: PortState, now: InstantKinematics) -> Rotors:
    joints = arm.parameters.joints
    axis = jax.vmap(lambda j: j.rotor_screw(), out_axes=-1)(joints)
    gyro = jnp.zeros_like(now.parents)
    if arm.rotors:
        gyro = mv(coad(arm.spins(now.parents, mech.v)[None] * axis), now.parents)
    return Rotors(joints.rotor, axis, joints.gears.T, gyro)


def _loop_terms(
    arm: Assembly, mech: PortState, now: InstantKinematics
) -> tuple[_loops.Borders, Float[Array, " m"]]:
    """Borders and right-hand sides of the loops at acceleration level."""
    V, count = now.V, _loops.multiplier_count(arm.plans)
    borders = _loops.Borders.of(arm.structure.links, V, count)
    right, zero = jnp.zeros(count, V.dtype), jnp.zeros((), V.dtype)
    for k, plan in enumerate(arm.plans):
        loop = arm.loops[k]
        parent, child = arm.loop_sides(k, V, now.nodes.rotation, mech.x, now.ground)

        def opening(Vp, Vc, time, plan=plan, loop=loop, parent=parent, child=child):
            moving = dataclasses.replace(parent, V=Vp), dataclasses.replace(child, V=Vc)
            return _loops.opening(plan, loop, *moving, time)

        def wrenches(multipliers, plan=plan, loop=loop, parent=parent, child=child):
            return _loops.constraint_wrenches(plan, loop, zero, parent, child, multipliers)

        at = (parent.V, child.V, zero)
        row_parent, row_child = jax.jacfwd(opening, argnums=(0, 1))(*at)
        still = jnp.zeros_like(parent.V), jnp.zeros_like(child.V), jnp.ones_like(zero)
        drift = jax.jvp(opening, at, still)[1]
        on_parent, on_child = jax.jacfwd(wrenches)(jnp.zeros(plan.count, V.dtype))
        both = (row_parent, on_parent), (row_child, on_child)
        for link, node, (row, column) in plan.ends(*both):
            if link < 0:
                drift = drift + mv(row, now.ground_rate)
            else:
                borders = borders.add(plan, link, node, row, column)
        right = right.at[plan.own].set(-drift)
    return borders, right


def _inertia_blocks(
    arm: Assembly, now: InstantKinematics, rotors: Rotors, borders: _loops.Borders
) -> LinkedBlocks:
    """The matrix of the accelerations: inertia, joints and loops."""
    structure, mass = arm.structure, arm.parameters.mass
    coupling = arm.parameters.mass_coupling
    if coupling.ndim == 3:
        coupling = jnp.eye(structure.dim, dtype=mass.dtype)[:, :, None, None] * coupling[None]
    behind, ahead = ((0, 0),) * 3 + ((1, 0),), ((0, 0),) * 3 + ((0, 1),)
    lower, upper = jnp.pad(transpose(coupling), behind), jnp.pad(coupling, ahead)
    live, locked = arm.masks()
    free = (live & ~locked)[..., None]
    by_joint = lambda x: jnp.moveaxis(x, -1, 0)
    X, B = by_joint(now.X), by_joint(now.B)
    J, axis, gears = rotors.inertia[:, None, None], rotors.axis.T, rotors.gears.T
    T, S = J * gears[:, :, None] * gears[:, None], J * gears[:, :, None] * axis[:, None]
    unit = jnp.eye(structure.unknowns, dtype=T.dtype)[None]
    return LinkedBlocks(
        lower=components_last(lower, 2),
        diag=components_last(mass, 2),
        upper=components_last(upper, 2),
        X=X,
        B=B,
        A=jnp.where(free, jnp.swapaxes(B, 1, 2), 0.0),
        T=jnp.where(free, T, unit),
        S=jnp.where(free, S, 0.0),
        Y=jnp.swapaxes(X, 1, 2),
        Z=jnp.swapaxes(S, 1, 2),
        E=J * axis[:, :, None] * axis[:, None],
        border_columns=borders.columns,
        border_rows=borders.rows,
        corner=jnp.zeros((borders.columns.shape[-1],) * 2, mass.dtype),
        parents=structure.parents,
        order=structure.order,
        base_attached=structure.rigid,
    )


def _solve(
    blocks: LinkedBlocks, rows: Float[Array, "d L K"], joints: JointRates, loops: Float[Array, " m"]
) -> tuple[JointRates, Float[Array, "d L N"], Float[Array, " m"]]:
    """Solve for accelerations of joints and nodes, and multipliers."""
    # Right-hand sides of the base rows go to the joints and the parents.
    for i in reversed(blocks.order):
        r0 = rows[:, i, 0]
        joints = joints.at[i].add(mv(blocks.A[i], r0))
        p = blocks.parents[i]
        if p >= 0:
            node = 0 if blocks.base_attached[p] else -1
            rows = rows.at[:, p, node].add(mv(blocks.Y[i], r0))
    # One vector: jax has no derivative of the solve if one of several parts has none.
    right, restore = ravel((joints, components_last(rows[:, :, 1:]), loops))
    frozen = lax.stop_gradient(blocks)

    def flat(fn, blocks, x):
        return ravel(fn(blocks, *restore(x)))[0]

    found = lax.custom_linear_solve(
        lambda x: flat(apply_linked, blocks, x),
        right,
        lambda _, b: flat(solve_linked, frozen, b),
        lambda _, b: flat(solve_linked, frozen.transpose(), b),
    )
    yd, Vd, multipliers = restore(found)
    return yd, components_first(Vd), multipliers


def accelerations(
    arm: Assembly, t: ScalarLike, mech: PortState, piece_time: PieceTime, memory: PyTree
) -> Accelerations:
    """Accelerations, reactions and powers of a mechanism at an instant."""
    structure = arm.structure
    now = _instant(arm, t, mech, piece_time)
    applied, strain, loss = _applied(arm, mech, now)
    rotors = _rotors(arm, mech, now)
    borders, loop_right = _loop_terms(arm, mech, now)
    blocks = _inertia_blocks(arm, now, rotors, borders)
    forces = arm.joint_forces(t, mech.q, mech.v, piece_time, memory)

    # Known accelerations go to the right-hand sides.
    still = jnp.zeros_like(mech.V[:, :, 1:])
    known = jnp.concatenate([now.convection[:, :, None], still], axis=2)
    rows = applied - arm.momentum(known)
    for i, p in enumerate(structure.parents):
        if p >= 0:
            passed = rotors.gyro[:, i] - mv(blocks.E[i], now.known_parents[:, i])
            rows = rows.at[:, p, structure.attachment(p)].add(passed)
    live, locked = arm.masks()
    joints = structure.to_joints(forces.total) - jnp.einsum(
        "lnd,dl->ln", blocks.S, now.known_parents
    )
    wanted = structure.to_joints(arm.prescribed(t, piece_time)[2])
    joints = jnp.where(locked, wanted, jnp.where(live, joints, 0.0))
    ends = jnp.stack([known[:, :, 0], known[:, :, -1]], axis=-1)
    loop_right = loop_right - jnp.einsum("dle,lemd->m", ends, borders.rows)
    yd, Vd, multipliers = _solve(blocks, rows, joints, loop_right)

    parent_rate, V0d = _base_rates(arm, now, yd, Vd)
    Vdot = jnp.concatenate([V0d[:, :, None], Vd], axis=2)
    # The balance of a base node is the wrench of its joint.
    lack = (arm.momentum(Vdot) - applied)[:, :, 0]
    if arm.plans:
        lack = lack + jnp.einsum("ldm,m->dl", borders.columns[:, 0], multipliers)
    torque = rotors.torque(parent_rate, yd)
    reaction, on_parent = _reactions(arm, now.X, lack, rotors.axis * torque[None] - rotors.gyro)
    effort = _efforts(arm, forces, mtv(now.B, reaction) + rotors.gears * torque[None])
    power = jnp.sum(effort * mech.v) + now.nodes.forces.power(
        now.nodes.rotation, now.nodes.h, now.V
    )
    if arm.drive.base is not None:
        power = power + _stage.ground_power(arm, on_parent, now.ground[2])
    tangent = PortTangent(mech.v, structure.from_joints(yd), Vd, strain)
    loss = loss - jnp.sum(forces.damped * mech.v)
    return Accelerations(tangent, now.V, Vdot, reaction, effort, power, loss)


def _efforts(arm: Assembly, forces: JointForces, on_joint: Float[Array, "n L"]) -> Velocities:
    """Efforts of the drive; those of prescribed coordinates balance the joint."""
    balance = arm.structure.from_joints(on_joint.T) - forces.total
    return forces.driven + jnp.where(arm.locked, balance, 0.0)


def _base_rates(
    arm: Assembly, now: InstantKinematics, yd: JointRates, Vd: Float[Array, "d L N"]
) -> tuple[LinkTwists, LinkTwists]:
    """(accelerations of the nodes that carry the joints, V_0')."""
    structure = arm.structure
    free: dict[int, Array] = {}  # what unknown accelerations cause, at the attachment node
    parents: dict[int, Array] = {}
    tips: dict[int, Array] = {}
    V0: dict[int, Array] = {}
    for i in structure.order:
        p = structure.parents[i]
        own = mv(now.B[:, :, i], yd[i])
        if p >= 0:
            own = own + mv(now.X[:, :, i], free[p])
        parents[i] = now.ground_rate if p < 0 else tips[p]
        V0[i] = own + now.convection[:, i]
        free[i], tips[i] = (own, V0[i]) if structure.rigid[i] else (Vd[:, i, -1],) * 2
    return stack_links(parents), stack_links(V0)


def _reactions(
    arm: Assembly, X: Float[Array, "d d L"], lack: LinkTwists, rotor: LinkTwists
) -> tuple[LinkTwists, LinkTwists]:
    """(wrenches of the joints on the children, wrenches of the parents on the joints)."""
    structure = arm.structure
    for i in reversed(structure.order):
        p = structure.parents[i]
        if p >= 0 and structure.rigid[p]:
            lack = lack.at[:, p].add(mtv(X[:, :, i], lack[:, i]) + rotor[:, i])
    return lack, mtv(X, lack) + rotor


class AbstractMechanismTerm(AbstractMultistageTerm):
    """Equations of motion of a mechanism under one drive, for any element."""

    arm: Assembly

    @property
    def drive(self) -> Drive:
        return self.arm.drive

    @abc.abstractmethod
    def instant(
        self, t: ScalarLike, mech: PortState, piece_time: PieceTime, memory: PyTree
    ) -> Accelerations:
        """The motion at an instant."""

    # --- a stage
    def prepare(
        self,
        t: ScalarLike,
        mech: PortState,
        h: ScalarLike,
        arrival: tuple[ScalarLike, float],
        piece_time: PieceTime,
        memory: PyTree,
    ) -> Stage:
        return _stage.prepare(self.arm, t, mech, jnp.asarray(h), arrival, piece_time, memory)

    def guess(self, mech: PortState) -> Unknowns:
        return _stage.guess(self.arm, mech)

    def settle(self, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
        return self.arm.settle(t, mech, piece_time)

    def blend(
        self, a: PortState, b: PortState, weight: float, step: ScalarLike, unknowns: Unknowns
    ) -> PortState:
        return _stage.blend(self.arm, a, b, weight, step, unknowns)

    # --- the differential equation
    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> PortTangent:
        return self.instant(t, y.mech, piece_time, y.memory).tangent

    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        now = self.instant(t, y.mech, piece_time, y.memory)
        return now.power, now.loss

    def held(self, t: ScalarLike, dx: PortTangent) -> PortTangent:
        return self.arm.held(dx)

    def complete(self, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
        return _start.complete(self.arm, t, mech, piece_time)

    def retract(self, mech: PortState, dx: PortTangent) -> PortState:
        q, Q = self.arm.move(mech.q, dx.q), mech.Q + dx.Q
        nodes, zero = mech.V[:, :, 1:] + dx.V, jnp.zeros((), q.dtype)
        return _start.assemble(self.arm, zero, q, mech.v + dx.v, nodes, Q, None)

    def ambient(self, mech: PortState, dx: PortTangent) -> PortState:
        return _start.ambient(self.arm, mech, dx)

    def with_prescribed_rates(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        # The midpoint rule prescribes the mean rate of a step.
        rate = self.arm.prescribed(t, piece_time)[1]
        mech = dataclasses.replace(y.mech, v=jnp.where(self.arm.locked, rate, y.mech.v))
        return dataclasses.replace(y, mech=mech)

    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        return self.arm.motor_side(y.mech.q, y.mech.v)

    def next_memory(
        self, t0: ScalarLike, t1: ScalarLike, y: State, strains: PyTree = None
    ) -> PyTree:
        memory = super().next_memory(t0, t1, y, strains)
        return self.arm.advanced_memory(memory, y.mech)

    def energies(
        self, t: ScalarLike, y: PortState, piece_time: PieceTime
    ) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        return self.arm.energies(t, y, piece_time)


class PortTerm(AbstractMechanismTerm):
    """Equations of motion with staggered elements."""

    @property
    def exact(self) -> bool:
        arm = self.arm
        feedback = any(isinstance(a, Feedback) for a in self.drive.joints.values())
        damped = arm.parameters.deformation_damping is not None
        return (
            not feedback
            and not damped
            and _loops.independent_sides(arm.plans, arm.structure.planar)
        )

    def residual(self, stage: Stage, unknowns: Unknowns) -> Unknowns:
        return _stage.residual(self.arm, stage, unknowns)

    def limits(self, stage: Stage, unknowns: Unknowns) -> Limits | None:
        return _stage.limits(self.arm, stage, unknowns)

    def linearise(self, stage: Stage, unknowns: Unknowns) -> tuple[Unknowns, _newton.NewtonMatrix]:
        return _newton.linearise(self.arm, stage, unknowns)

    def arrive(
        self, stage: Stage, unknowns: Unknowns, factor: float
    ) -> tuple[PortState, Scalar, Scalar]:
        e = _stage.evaluate(self.arm, stage, unknowns)
        return _stage.arrive(self.arm, stage, unknowns, factor, e)

    def instant(
        self, t: ScalarLike, mech: PortState, piece_time: PieceTime, memory: PyTree
    ) -> Accelerations:
        return accelerations(self.arm, t, mech, piece_time, memory)

    def vf(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        # Base nodes follow the base too, which ``ambient`` does not have.
        now = self.instant(t, y.mech, piece_time, y.memory)
        mech = dataclasses.replace(self.ambient(y.mech, now.tangent), V=now.rate)
        still = jax.tree.map(jnp.zeros_like, y.memory)
        return State(mech, now.power, now.loss, still, y.origin)


class PlanarPortTerm(PortTerm, AbstractBatchedTerm):
    """Staggered elements in the plane with a quadratic strain energy.

    In space, blocks are computed with the batch in front. A user's strain energy has no axis for a
    batch.
    """

    def corrections(
        self, stage: Stage, unknowns: Unknowns, batched: tuple[PyTree, PyTree], size: int
    ) -> Unknowns:
        marks = (batched[0].arm, batched[1])
        return _newton.corrections(self.arm, stage, unknowns, marks, size)
