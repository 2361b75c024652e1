"""Rigid serial arms in the plane and in space, with flexible joints."""

from typing import ClassVar

from flexjax.formulation._base import AbstractFormulation
from flexjax.formulation._chain_model import ChainModel
from flexjax.formulation.rigid_arm._refusals import refusals
from flexjax.mechanism.chain import serial_layout
from flexjax.robot import Robot


class RigidArm(AbstractFormulation):
    """Every link is a rigid body (elastic links stay undeformed); joints may be flexible.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    """

    paper: ClassVar[str] = (
        "R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008 "
        "(articulated-body algorithm)."
    )
    deforms: ClassVar[bool] = False

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def build(self, robot: Robot) -> ChainModel:
        return ChainModel.of(robot, self, serial_layout(robot))
