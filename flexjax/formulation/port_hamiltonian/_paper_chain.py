"""The paper's own elements (Fig. 3) in a mechanism: twists and wrenches of all ends as unknowns,
any alpha; a reference beside the staggered element.

    Q' = t_b - t_a + ad(kappa) e_p
    P' = w_b - w_a - ad(kappa)^T e_q + ad(e_p)^T P
    e_q = C^-1 Q / l = (1 - alpha) w_a + alpha w_b
    e_p = I^-1 P / l = alpha t_a + (1 - alpha) t_b

Nodes are massless: a node passes on the wrench of its outboard neighbour, less weight and loads.
The unknowns of a stage are the twists t_b and the wrenches w_a of every element. They are solved
densely, at a cost cubic in the elements, which a reference may have.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import ravel
from flexjax.drive import Drive
from flexjax.formulation.port_hamiltonian import _dynamics, _joint, _loops, _stage
from flexjax.formulation.port_hamiltonian._algebra import (
    ad,
    coad_of,
    resolvent,
    rotate_by,
    turn_matrix,
)
from flexjax.formulation.port_hamiltonian._assembly import Assembly, pick
from flexjax.formulation.port_hamiltonian._dynamics import Accelerations
from flexjax.formulation.port_hamiltonian._forces import joint_forces
from flexjax.formulation.port_hamiltonian._lanes import lanes
from flexjax.formulation.port_hamiltonian._stage import Evaluation, Stage, Unknowns
from flexjax.numerics.linalg import mv, transpose
from flexjax.numerics.term import AbstractPortHamiltonianTerm, PortState, PortTangent, State


class DenseMatrix(eqx.Module):
    matrix: Float[Array, "n n"]

    def solve(self, r: Unknowns) -> Unknowns:
        flat, restore = ravel(r)
        return restore(jnp.linalg.solve(self.matrix, flat))

    def transpose(self) -> "DenseMatrix":
        return DenseMatrix(self.matrix.T)


class Ends(eqx.Module):
    """Wrenches at the two ends of every element (L, N, d)."""

    inner: Float[Array, "L N d"]
    outer: Float[Array, "L N d"]


def _exchange(arm: Assembly, stage: Stage, u: Unknowns):
    """Twists, joints and nodes of one pass: (V, parents, Ends, rows of the nodes, given, taken,
    power that drag takes)."""
    d = arm.st.dim
    inner = u.nodes[..., d:]
    V, parents = _stage.outwards(arm, stage, Unknowns(u.joints, u.nodes[..., :d], u.loops))
    rows, lost = _stage.node_needs(arm, stage, V, u.loops)
    rows, given, taken = _stage.inwards(
        arm, stage, rows.at[:, 0].add(-inner[:, 0]), parents, u.joints
    )
    outer = jnp.concatenate([inner[:, 1:], jnp.zeros_like(inner[:, :1])], axis=1) - rows[:, 1:]
    return V, parents, Ends(inner, outer), rows, given, taken, lost


def _alpha(arm: Assembly) -> Float[Array, ""]:
    assert arm.num.alpha is not None  # the numbers of the paper's scheme have one
    return arm.num.alpha


def _inertia(arm: Assembly) -> Float[Array, "L N d"]:
    assert arm.num.inertia is not None  # the numbers of the paper's scheme have them
    return arm.num.inertia


def _relation(arm: Assembly, ends: Ends, e_q):
    a = _alpha(arm)
    return e_q - (1 - a) * ends.inner - a * ends.outer


def _momentum_rate(arm: Assembly, ends: Ends, kappa, e_q, e_p):
    P = _inertia(arm) * e_p
    return ends.outer - ends.inner - mv(transpose(ad(kappa)), e_q) + mv(coad_of(P), e_p)


def _outwards(arm: Assembly, first, e_p):
    """Twists of nodes 1..N for the twist of node 0 and e_p of the elements."""
    a = _alpha(arm)

    def along(V, e):
        V = (e - a * V) / (1 - a)
        return V, V

    return jnp.swapaxes(lax.scan(along, first, jnp.swapaxes(e_p, 0, 1))[1], 0, 1)


class PaperTerm(AbstractPortHamiltonianTerm):
    """Equations of motion with the paper's elements."""

    arm: Assembly

    @property
    def drive(self) -> Drive:
        return self.arm.drive

    @property
    def exact(self) -> bool:
        return True

    # --- a stage
    def prepare(self, t, mech: PortState, h, arrival, piece_time, memory):
        return _stage.prepare(self.arm, t, mech, h, arrival, piece_time, memory)

    def guess(self, mech: PortState) -> Unknowns:
        u = _stage.guess(self.arm, mech)
        return Unknowns(
            u.joints, jnp.concatenate([u.nodes, jnp.zeros_like(u.nodes)], axis=-1), u.loops
        )

    def _evaluate(self, stage: Stage, u: Unknowns):
        arm, h, start = self.arm, stage.h, stage.start
        elements = arm.num.elements
        V, parents, ends, rows, given, taken, loss = _exchange(arm, stage, u)
        e_p, before = arm.between(V), arm.between(start.V)
        kappa = mv(resolvent(h * e_p), start.Q + elements.rest + h * (V[:, 1:] - V[:, :-1]))
        Q = kappa - elements.rest
        e_q = elements.wrench(Q, start.Q)
        if elements.tau is not None:
            rate = (Q - start.Q) / h
            damped = elements.damping(rate)
            e_q, loss = e_q + damped, loss + jnp.sum(damped * rate)
        gain = _inertia(arm) * (e_p - before) / h - _momentum_rate(arm, ends, kappa, e_q, e_p)
        v = arm.collect(u.joints)
        forces = joint_forces(
            arm, stage.t, arm.move_q(start.q, h * v), v, stage.piece_time, stage.memory
        )
        e = Evaluation(V, parents, rows, given, taken, forces, Q, loss)
        return e, jnp.concatenate([gain, _relation(arm, ends, e_q)], axis=-1)

    def residual(self, stage: Stage, unknowns: Unknowns) -> Unknowns:
        e, elements = self._evaluate(stage, unknowns)
        joints, loops = _stage.interconnection(self.arm, stage, unknowns, e)
        return Unknowns(joints, elements, loops)

    def linearise(self, stage: Stage, unknowns: Unknowns):
        return _linearised(lambda u: self.residual(stage, u), unknowns)

    def arrive(self, stage: Stage, unknowns: Unknowns, factor):
        arm = self.arm
        e, _ = self._evaluate(stage, unknowns)
        mech, power, loss = _stage.arrive(arm, stage, unknowns, factor, e)
        # The states are e_p. Rates of joints are algebraic here: they stay those of the stage, for
        # extrapolated ones would flip about it for ever.
        twists = _outwards(arm, e.V[:, 0], arm.between(mech.V))
        V = jnp.concatenate([e.V[:, :1], twists], axis=1)
        return (
            PortState(mech.q, arm.collect(unknowns.joints), V, mech.Q, mech.turn, mech.x),
            power,
            loss,
        )

    def blend(self, a: PortState, b: PortState, weight, step, unknowns) -> PortState:
        return _stage.blend(self.arm, a, b, weight, step, unknowns)

    def settle(self, t, mech: PortState, piece_time) -> PortState:
        return self.arm.settle(t, mech, piece_time)

    # --- the differential equation itself
    def instant(self, t, mech: PortState, piece_time, memory) -> Accelerations:
        """Twists, wrenches and rates of the states at one instant. It exists where every joint is
        prescribed or damped (index 1); accelerations of algebraic twists do not exist and are given
        as NaN."""
        arm = self.arm
        num, st = arm.num, arm.st
        R, zero = turn_matrix(mech.turn), jnp.zeros((), mech.v.dtype)
        joint, ground = arm.joint_stage(mech, R, zero, t, piece_time)
        target = arm.spread(arm.to_v(arm.drive.motion(arm.robot, t, piece_time)[1]))
        nodes = _stage.nodes_of(arm, t, mech, R, zero, piece_time)
        stage = Stage(t, zero, zero, mech, R, joint, ground, target, nodes, piece_time, memory)
        kappa, e_p = mech.Q + num.elements.rest, arm.between(mech.V)
        live, locked = arm.masks()

        def wrench(V):
            rate = V[:, 1:] - V[:, :-1] + mv(ad(kappa), arm.between(V))
            e_q, loss = num.elements.wrench(mech.Q, mech.Q), zero
            if num.elements.tau is None:
                return e_q, rate, loss
            damped = num.elements.damping(rate)
            return e_q + damped, rate, jnp.sum(damped * rate)

        def parts(u):
            V, _, ends, rows, given, taken, lost = _exchange(arm, stage, u)
            v = arm.collect(u.joints)
            return (
                V,
                ends,
                rows,
                given,
                taken,
                joint_forces(arm, t, mech.q, v, piece_time, memory),
                v,
                lost,
            )

        def residual(u):
            V, ends, _, _, taken, forces, _, _ = parts(u)
            free = taken - arm.spread(forces.total)
            joints = jnp.where(locked, u.joints - target, jnp.where(live, free, u.joints))
            loops = [
                _opening(arm, k, *_stage.sides(arm, stage, V, k)) for k in range(len(arm.plans))
            ]
            nodes = jnp.concatenate(
                [arm.between(V) - e_p, _relation(arm, ends, wrench(V)[0])], axis=-1
            )
            return Unknowns(joints, nodes, jnp.concatenate(loops) if loops else u.loops)

        u = jax.tree_util.tree_map(jnp.zeros_like, self.guess(mech))
        for _ in range(2):  # linear but for friction
            r, matrix = _linearised(residual, u)
            u = jax.tree_util.tree_map(jnp.subtract, u, matrix.solve(r))
        V, ends, rows, given, taken, forces, v, lost = parts(u)
        e_q, strain, loss = wrench(V)
        rate = _momentum_rate(arm, ends, kappa, e_q, e_p) / _inertia(arm)
        tangent = PortTangent(
            v, jnp.zeros_like(v), _outwards(arm, jnp.zeros_like(V[:, 0]), rate), strain
        )
        gap = arm.collect(jnp.where(locked, taken, 0.0)) - arm.collect(
            jnp.where(locked, arm.spread(forces.total), 0.0)
        )
        effort = forces.driven + gap
        roots = np.array([p < 0 for p in st.parents])
        power = (
            jnp.sum(effort * v)
            + nodes.pull.power(lanes(R, 2), nodes.h, lanes(V))
            + jnp.sum(jnp.where(roots[:, None], given, 0.0) * ground[None])
        )
        nothing = jnp.full_like(V, jnp.nan)
        return Accelerations(
            tangent, V, nothing, rows[:, 0], effort, power, loss + lost - jnp.sum(forces.damped * v)
        )

    def held(self, t, dx: PortTangent) -> PortTangent:
        return self.arm.held(dx)

    def complete(self, t, mech: PortState, piece_time) -> PortState:
        return _dynamics.complete(self.arm, t, mech, piece_time)

    def rate(self, t, y: State, piece_time) -> PortTangent:
        return self.instant(t, y.mech, piece_time, y.memory).tangent

    def retract(self, mech: PortState, dx: PortTangent) -> PortState:
        q, Q = self.arm.move_q(mech.q, dx.q), mech.Q + dx.Q
        return _dynamics.assemble(
            self.arm, jnp.zeros((), q.dtype), q, mech.v + dx.v, mech.V[:, 1:] + dx.V, Q, None
        )

    def ambient(self, mech: PortState, dx: PortTangent) -> PortState:
        # Poses follow the algebraic twists, which the rates of the joints and the states e_p tell.
        arm = self.arm
        zero, e_p, y = jnp.zeros((), mech.v.dtype), arm.between(mech.V), arm.spread(dx.q)
        joint, ground = arm.joint_stage(mech, turn_matrix(mech.turn), zero, zero, None)
        V: list = [None] * arm.st.links
        for i in arm.st.order:
            p = arm.st.parents[i]
            first = _joint.base_twist(
                pick(arm.num.joints, i), pick(joint, i), zero, ground if p < 0 else V[p][-1], y[i]
            )
            V[i] = jnp.concatenate([first[None], _outwards(arm, first[None], e_p[i : i + 1])[0]])
        moved = _dynamics.ambient(
            arm, PortState(mech.q, dx.q, jnp.stack(V), mech.Q, mech.turn, mech.x), dx
        )
        gauge = jnp.concatenate([jnp.zeros_like(dx.V[:, :1]), dx.V], axis=1)
        return PortState(moved.q, moved.v, gauge, moved.Q, moved.turn, moved.x)

    def power(self, t, y: State, piece_time):
        a = self.instant(t, y.mech, piece_time, y.memory)
        return a.power, a.loss

    def motor_coordinates(self, y: State):
        return self.arm.motor_side(y.mech.q, y.mech.v)

    def energies(self, y: PortState):
        """(kinetic, elastic, gravity)."""
        return self.arm.energies(y)


def _linearised(residual, u: Unknowns):
    flat, restore = ravel(u)

    def both(x):
        r = ravel(residual(restore(x)))[0]
        return r, r

    matrix, r = jax.jacfwd(both, has_aux=True)(flat)
    return restore(r), DenseMatrix(matrix)


def _opening(arm: Assembly, k: int, parent, child):
    """Rate at which a loop opens."""
    lin = arm.st.lin

    def moved(time):
        poses = []
        for side in (parent, child):
            poses += [
                rotate_by(side.R, time * side.V[lin:]),
                side.x + time * mv(side.R, side.V[:lin]),
            ]
        return _loops.gap(arm.plans[k], arm.loops[k], *poses)

    zero = jnp.zeros((), parent.x.dtype)
    return jax.jvp(moved, (zero,), (jnp.ones_like(zero),))[1]


def paper_refusals(robot) -> list[str]:
    """What mechanisms of the paper's elements cannot hold: bodies on their massless nodes."""
    faults = []
    for link in robot.links:
        if link.rigid:
            faults.append(
                f"links.{link.name}.rigid: a rigid link between the paper's elements; expected "
                "flexible links, or scheme='staggered'"
            )
        if link.damping is not None and link.damping.mass is not None:
            faults.append(
                f"links.{link.name}.damping.mass: damping by nodal mass; expected strain_rate or "
                "the option drag, or scheme='staggered'"
            )
    for j in robot.tree_joints:
        rotor = j.motor is not None and j.motor.rotor is not None
        for field, there in (
            ("hub", j.hub),
            ("mass", j.mass),
            ("stiffness", j.stiffness),
            ("motor.rotor", rotor or None),
        ):
            if there is not None:
                faults.append(
                    f"joints.{j.name}.{field}: inertia or a spring on a massless node; expected "
                    "a plain joint, or scheme='staggered'"
                )
    for p in robot.payloads:
        faults.append(
            f"payloads.{p.name}: a body on a massless node; expected none, or scheme='staggered'"
        )
    return faults
