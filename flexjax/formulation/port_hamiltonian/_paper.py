"""The paper's own element (Fig. 3) in a mechanism: strain and momentum both on the element, ports
at its ends, a free parameter alpha.

    Q' = t_b - t_a + ad(kappa) e_p
    P' = w_b - w_a - ad(kappa)^T e_q + ad(e_p)^T P
    e_q = C^-1 Q / l = (1 - alpha) w_a + alpha w_b
    e_p = I^-1 P / l = alpha t_a + (1 - alpha) t_b

Power balances for any alpha: e_q Q' + e_p P' = w_b t_b - w_a t_a. Nodes are massless: a node
transmits the wrench of its outboard neighbour, less weight and loads. The unknowns of a stage are
the twists t_b and the wrenches w_a of every element. They are solved densely, at a cost cubic in
the number of elements: this is a reference for the staggered element.
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike, Velocities, ravel
from flexjax.drive import Motion
from flexjax.formulation.port_hamiltonian import _loops, _stage, _start
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._chain import AbstractMechanismTerm, Accelerations
from flexjax.formulation.port_hamiltonian._stage import Evaluation, Stage, Unknowns
from flexjax.mechanism import JointForces
from flexjax.numerics.linalg._components_first import mtv, mv
from flexjax.numerics.screw._components_first import ad, coad, orientation_matrix, resolvent
from flexjax.numerics.term import PortState, PortTangent, State

Efforts = Float[Array, "d L N"]


def _march(alpha: Scalar, first: Array, efforts: Array) -> Array:
    """Port variables behind ``first`` (...) from the efforts (..., N) of the elements."""

    def step(port, e):
        port = (e - alpha * port) / (1 - alpha)
        return port, port

    rows = jnp.moveaxis(efforts, -1, 0)
    return jnp.moveaxis(lax.scan(step, first, rows)[1], 0, -1)


class DenseMatrix(eqx.Module):
    matrix: Float[Array, "n n"]

    def solve(self, r: Unknowns) -> Unknowns:
        flat, restore = ravel(r)
        return restore(jnp.linalg.solve(self.matrix, flat))

    def transpose(self) -> "DenseMatrix":
        return DenseMatrix(self.matrix.T)


class PowerPorts(eqx.Module):
    """Ports of elements, nodes and joints in one pass over the mechanism."""

    V: Float[Array, "d L K"]
    parents: Float[Array, "d L"]
    inner: Efforts  # wrench at the first end of every element
    outer: Efforts  # at the last end
    rows: Float[Array, "d L K"]
    on_parent: Float[Array, "d L"]
    on_joint: Float[Array, "L n"]
    loss: Scalar  # power that drag dissipates


def _ports(arm: Assembly, stage: Stage, u: Unknowns) -> PowerPorts:
    d = arm.structure.dim
    inner = u.nodes[d:]
    V, parents = _stage.node_twists(arm, stage, Unknowns(u.joints, u.nodes[:d], u.loops))
    rows, loss = stage.nodes.resistance(V)
    rows = _stage.add_loops(arm, stage, V, u.loops, rows).at[:, :, 0].add(-inner[:, :, 0])
    rows, on_parent, on_joint = _stage.inward(arm, stage, rows, parents, u.joints)
    outboard = jnp.concatenate([inner[:, :, 1:], jnp.zeros_like(inner[:, :, :1])], axis=2)
    outer = outboard - rows[:, :, 1:]
    return PowerPorts(V, parents, inner, outer, rows, on_parent, on_joint, loss)


def _linearised(
    residual: Callable[[Unknowns], Unknowns], u: Unknowns
) -> tuple[Unknowns, DenseMatrix]:
    flat, restore = ravel(u)

    def both(x):
        r = ravel(residual(restore(x)))[0]
        return r, r

    matrix, r = jax.jacfwd(both, has_aux=True)(flat)
    return restore(r), DenseMatrix(matrix)


class PaperTerm(AbstractMechanismTerm):
    """Equations of motion with the paper's elements."""

    @property
    def exact(self) -> bool:
        return True

    @property
    def _alpha(self) -> Scalar:
        alpha = self.arm.parameters.alpha
        assert alpha is not None  # parameters of this variant contain it
        return alpha

    @property
    def _inertia(self) -> Efforts:
        inertia = self.arm.parameters.inertia
        assert inertia is not None  # parameters of this variant contain it
        return inertia

    def _effort_gap(self, ports: PowerPorts, e_q: Efforts) -> Efforts:
        """e_q less the wrenches of the ends, weighted by alpha."""
        a = self._alpha
        return e_q - (1 - a) * ports.inner - a * ports.outer

    def _momentum_rate(
        self, ports: PowerPorts, kappa: Efforts, e_q: Efforts, e_p: Efforts
    ) -> Efforts:
        gyroscopic = mv(coad(self._inertia * e_p), e_p)
        return ports.outer - ports.inner - mtv(ad(kappa), e_q) + gyroscopic

    # --- a stage
    def guess(self, mech: PortState) -> Unknowns:
        u = super().guess(mech)
        return Unknowns(u.joints, jnp.concatenate([u.nodes, jnp.zeros_like(u.nodes)]), u.loops)

    def _evaluate(self, stage: Stage, u: Unknowns) -> tuple[Evaluation, Float[Array, "2d L N"]]:
        """The pass over the mechanism, and the residual of the elements."""
        arm, h, start = self.arm, stage.h, stage.start
        elements = arm.parameters.elements
        ports = _ports(arm, stage, u)
        V = ports.V
        e_p, before = arm.between(V), arm.between(start.V)
        stretched = start.Q + elements.rest + h * (V[:, :, 1:] - V[:, :, :-1])
        kappa = mv(resolvent(h * e_p), stretched)
        Q = kappa - elements.rest
        e_q, loss = elements.damped_wrench(Q, start.Q, lambda: (Q - start.Q) / h)
        rate = self._inertia * (e_p - before) / h
        gain = rate - self._momentum_rate(ports, kappa, e_q, e_p)
        forces = _stage.stage_forces(arm, stage, u.joints)
        e = Evaluation(
            V,
            ports.parents,
            ports.rows,
            ports.on_parent,
            ports.on_joint,
            forces,
            Q,
            loss + ports.loss,
        )
        return e, jnp.concatenate([gain, self._effort_gap(ports, e_q)])

    def residual(self, stage: Stage, unknowns: Unknowns) -> Unknowns:
        e, elements = self._evaluate(stage, unknowns)
        joints, loops = _stage.interconnection(self.arm, stage, unknowns, e)
        return Unknowns(joints, elements, loops)

    def linearise(self, stage: Stage, unknowns: Unknowns) -> tuple[Unknowns, DenseMatrix]:
        return _linearised(lambda u: self.residual(stage, u), unknowns)

    def arrive(
        self, stage: Stage, unknowns: Unknowns, factor: float
    ) -> tuple[PortState, Scalar, Scalar]:
        arm = self.arm
        e, _ = self._evaluate(stage, unknowns)
        mech, power, loss = _stage.arrive(arm, stage, unknowns, factor, e)
        # The states are e_p. Rates of joints are algebraic: extrapolated ones would alternate about
        # those of the stage.
        base = e.V[:, :, 0]
        twists = _march(self._alpha, base, arm.between(mech.V))
        V = jnp.concatenate([base[:, :, None], twists], axis=2)
        v = arm.structure.from_joints(unknowns.joints)
        return PortState(mech.q, v, V, mech.Q, mech.orientation, mech.x), power, loss

    # --- the differential equation
    def instant(
        self, t: ScalarLike, mech: PortState, piece_time: PieceTime, memory: PyTree
    ) -> Accelerations:
        """Twists, wrenches and rates of the states at an instant.

        It exists where every joint is prescribed or damped (index 1). Accelerations of algebraic
        twists do not exist and are NaN.
        """
        arm, structure = self.arm, self.arm.structure
        stage = self._still(t, mech, piece_time, memory)
        elements, e_p = arm.parameters.elements, arm.between(mech.V)
        kappa = mech.Q + elements.rest

        def efforts(V: Float[Array, "d L K"]) -> tuple[Efforts, Efforts, Scalar]:
            rate = V[:, :, 1:] - V[:, :, :-1] + mv(ad(kappa), arm.between(V))
            return *elements.damped_wrench(mech.Q, mech.Q, lambda: rate), rate

        def joint_forces(u: Unknowns) -> tuple[Velocities, JointForces]:
            v = structure.from_joints(u.joints)
            return v, arm.joint_forces(t, mech.q, v, piece_time, memory)

        live, locked = arm.masks()

        def residual(u: Unknowns) -> Unknowns:
            ports, (_, forces) = _ports(arm, stage, u), joint_forces(u)
            free = ports.on_joint - structure.to_joints(forces.total)
            joints = jnp.where(locked, u.joints - stage.target, jnp.where(live, free, u.joints))
            gaps = self._effort_gap(ports, efforts(ports.V)[0])
            nodes = jnp.concatenate([arm.between(ports.V) - e_p, gaps])
            loops = [
                _loops.opening(plan, arm.loops[k], *_stage.sides(arm, stage, ports.V, k), stage.h)
                for k, plan in enumerate(arm.plans)
            ]
            return Unknowns(joints, nodes, jnp.concatenate(loops) if loops else u.loops)

        u = jax.tree.map(jnp.zeros_like, self.guess(mech))
        for _ in range(2):  # linear but for friction
            r, matrix = _linearised(residual, u)
            u = jax.tree.map(jnp.subtract, u, matrix.solve(r))
        ports, (v, forces) = _ports(arm, stage, u), joint_forces(u)
        e_q, loss, strain = efforts(ports.V)
        rate = self._momentum_rate(ports, kappa, e_q, e_p) / self._inertia
        twist_rate = _march(self._alpha, jnp.zeros_like(rate[:, :, 0]), rate)
        balance = structure.from_joints(ports.on_joint) - forces.total
        effort = forces.driven + jnp.where(arm.locked, balance, 0.0)
        nodes, V = stage.nodes, ports.V
        power = jnp.sum(effort * v) + nodes.forces.power(nodes.rotation, nodes.h, V)
        wanted = jnp.where(arm.locked, arm.prescribed(t, piece_time)[2], 0.0)
        return Accelerations(
            tangent=PortTangent(v, wanted, twist_rate, strain),
            V=V,
            rate=jnp.full_like(V, jnp.nan),
            reaction=ports.rows[:, :, 0],
            effort=effort,
            power=power + _stage.ground_power(arm, ports.on_parent, stage.ground),
            loss=loss + ports.loss - jnp.sum(forces.damped * v),
        )

    @property
    def no_ode(self) -> str | None:
        names = [j.name for j in self.arm.robot.tree_joints if j.dofs]
        free = [n for n in names if not isinstance(self.drive.joints.get(n), Motion)]
        if not free:
            return None
        return (
            f"the rates of the joints {', '.join(free)} are algebraic in variant='paper'; expected "
            "a Motion on every joint, ImplicitMidpoint or TRBDF2, or variant='complete'"
        )

    def _still(
        self, t: ScalarLike, mech: PortState, piece_time: PieceTime, memory: PyTree
    ) -> Stage:
        """A stage of no duration, whose targets are the rates of the Motions."""
        arm = self.arm
        R, zero = orientation_matrix(mech.orientation), jnp.zeros((), mech.v.dtype)
        joint, ground = arm.joint_stage(mech, R, zero, t, piece_time)
        target = arm.structure.to_joints(arm.prescribed(t, piece_time)[1])
        nodes = _stage.nodes_of(arm, t, mech, R, zero, piece_time)
        return Stage(t, zero, zero, mech, joint, ground, target, nodes, piece_time, memory)

    def ambient(self, mech: PortState, dx: PortTangent) -> PortState:
        # States are e_p and not the twists: the rate of a first twist is left at zero.
        moved = _start.ambient(self.arm, mech, dx)
        gauge = jnp.concatenate([jnp.zeros_like(dx.V[:, :, :1]), dx.V], axis=2)
        return dataclasses.replace(moved, V=gauge)

    def vf(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        # Poses move with the algebraic twists of this instant, those of the base among them.
        now = self.instant(t, y.mech, piece_time, y.memory)
        at = dataclasses.replace(y.mech, v=now.tangent.q, V=now.V)
        still = jax.tree.map(jnp.zeros_like, y.memory)
        return State(self.ambient(at, now.tangent), now.power, now.loss, still, y.origin)
