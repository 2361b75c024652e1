"""Rigid serial arms in the plane and in space, with flexible joints."""

from typing import ClassVar

import diffrax
import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel
from flexjax.mechanism import Energy, Start, flexible_joint_refusals, serial_refusals
from flexjax.mechanism.chain import (
    ChainTerm,
    Layout,
    Parameters,
    chain_look,
    chain_parameters,
    chain_snapshot,
    chain_start,
    ran_off_link,
    serial_layout,
)
from flexjax.numerics.solver import DiscreteGradient, GeneralisedAlpha
from flexjax.numerics.term import Mechanical, State
from flexjax.robot import Robot


class RigidArm(AbstractFormulation):
    """Every link a rigid body (elastic links are held undeformed); joints may be flexible.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    """

    paper: ClassVar[str] = (
        "R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008 (articulated-body algorithm)."
    )

    def refusals(self, robot: Robot) -> list[str]:
        return serial_refusals(robot) + flexible_joint_refusals(robot)

    def build(self, robot: Robot) -> "RigidArmModel":
        layout = serial_layout(robot)
        return RigidArmModel(robot, self, layout, chain_parameters(robot, layout))


class RigidArmModel(AbstractModel):
    robot: Robot
    formulation: RigidArm
    layout: Layout = eqx.field(static=True)
    par: Parameters

    def term(self, drive: Drive) -> ChainTerm:
        return ChainTerm(self.robot, self.par, drive, self.layout)

    def initial_state(self, drive: Drive, t0: ScalarLike, start: Start) -> State:
        start.shapes(self.robot, lambda i: False, "RigidArm")
        q, v = chain_start(self.term(drive), t0, start)
        return State.fresh(
            Mechanical(q, v), self.robot.gravity.dtype, drive.initial_memory(self.robot)
        )

    def observe(
        self, t: ScalarLike, y: State, drive: Drive, s: Float[Array, " S"], at: PieceTime = None
    ):
        return chain_snapshot(self.term(drive), t, y, s, at)

    def look(
        self, t: ScalarLike, y: State, drive: Drive, s: Float[Array, " S"], at: PieceTime = None
    ):
        return chain_look(self.term(drive), t, y, s, at)

    def energy(self, t: ScalarLike, y: State, drive: Drive, at: PieceTime = None) -> Energy:
        kinetic, elastic, gravity = self.term(drive).energies(t, y.mech.q, y.mech.v, at)
        return Energy(kinetic, elastic, gravity, y.dissipated, y.work)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        # The discrete gradient has no notion of a base that moves by itself.
        return DiscreteGradient() if drive.base is None else GeneralisedAlpha(0.9)

    def failure(self, t: ScalarLike, y: State, drive: Drive) -> tuple[Array, Array]:
        return ran_off_link(self.term(drive), y)
