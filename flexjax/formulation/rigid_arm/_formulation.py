"""Rigid serial arms in the plane and in space, with flexible joints."""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from flexjax._results import Status
from flexjax.chain import ChainTerm, Layout, Parameters, chain_parameters, serial_layout, serial_refusals
from flexjax.chain._observe import rigid_snapshot
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel, Start, prepare
from flexjax.robot import Robot
from flexjax.solver import DiscreteGradient, GeneralisedAlpha
from flexjax.term import Mechanical, State
from flexjax.trajectory import Energy


class RigidArm(AbstractFormulation):
    """Every link a rigid body (elastic links are held undeformed); joints may be flexible.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    """

    paper: ClassVar[str] = "R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008 (articulated-body algorithm)."

    def refusals(self, robot: Robot) -> list[str]:
        return serial_refusals(robot)

    def bind(self, robot: Robot, *, dtype=None) -> "RigidArmModel":
        robot = prepare(self, robot, dtype)
        layout = serial_layout(robot)
        return RigidArmModel(robot, self, layout, chain_parameters(robot, layout))


class RigidArmModel(AbstractModel):
    robot: Robot
    formulation: RigidArm
    layout: Layout = eqx.field(static=True)
    par: Parameters

    def term(self, drive: Drive) -> ChainTerm:
        return ChainTerm(self.robot, self.par, drive, self.layout)

    def initial_state(self, drive: Drive, t0, start: Start) -> State:
        q, v = chain_start(self.term(drive), t0, start)
        return State.fresh(Mechanical(q, v), self.robot.gravity.dtype, drive.initial_memory(self.robot))

    def observe(self, t, y: State, drive: Drive, s, at=None):
        return rigid_snapshot(self.term(drive), t, y, s, at)

    def energy(self, t, y: State, drive: Drive, at=None) -> Energy:
        kinetic, elastic, gravity = self.term(drive).energies(t, y.mech.q, y.mech.v, at)
        return Energy(kinetic, elastic, gravity, y.dissipated, y.work)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        # The discrete gradient has no notion of a base that moves by itself.
        return DiscreteGradient() if drive.base is None else GeneralisedAlpha(0.9)

    def failure(self, t, y: State, drive: Drive) -> tuple[Array, Array]:
        """A sliding joint must stay on its link, a prismatic link in its joint."""
        q = self.term(drive).coordinates(y.mech.q)
        code, where = jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)
        slices = self.robot.dof_slices()
        for i, joint in enumerate(self.robot.joints):
            if joint.type == "sliding" and joint.parent != "ground":
                end = self.robot.links[self.robot.link_index(joint.parent)].length
            elif joint.type == "prismatic" and joint.axis is None:
                end = self.robot.links[self.robot.link_index(joint.child)].length
            else:
                continue
            d = q[slices[joint.name].start]
            off = (d < 0) | (d > end)
            code = jnp.where(off, int(Status.ran_off_link), code)
            where = jnp.where(off, i, where)
        return jax.lax.stop_gradient((code.astype(jnp.int32), where.astype(jnp.int32)))


def chain_start(term: ChainTerm, t0, start: Start):
    """Configuration and velocity of a chain at t0: as ``start`` says, prescribed coordinates as the drive says."""
    from flexjax.screw import se3

    lay = term.layout
    x, xd, xm = start.vectors(term.robot)
    motors = jnp.array(lay.motors, int)
    q = jnp.zeros(lay.nq, x.dtype)
    for s in lay.stages:
        if s.kind == "ball":
            q = q.at[s.q_start : s.q_start + 4].set(se3.quat_exp(x[s.v_start : s.v_start + 3]))
        elif s.dofs:
            q = q.at[s.q_start : s.q_start + s.dofs].set(x[s.v_start : s.v_start + s.dofs])
    if lay.motors:
        q = q.at[lay.nq - len(lay.motors) :].set(xm[motors])
    v = jnp.concatenate([xd, xd[motors] if lay.motors else xd[:0]])
    mask, q_p, v_p, _ = term.prescribed(t0, None)
    # Under a Motion a flexible joint starts unstretched on its motor unless the start names it.
    q = term.impose(q, q_p)
    v = jnp.where(mask, v_p, v)
    for k, dof in enumerate(lay.motors):
        name = next(j.name for j, sl in zip(term.robot.tree_joints, term.robot.dof_slices().values(), strict=True) if sl.start == dof and j.dofs)
        if mask[lay.dofs + k] and name not in start.joints:
            q = q.at[lay.q_of_v()[dof]].set(q_p[lay.dofs + k])
        if mask[lay.dofs + k] and name not in start.rates:
            v = v.at[dof].set(v_p[lay.dofs + k])
    return q, v
