"""Robots that a rigid arm does not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

from flexjax.robot._serial import flexible_joint_refusals, serial_refusals

if TYPE_CHECKING:
    from flexjax.formulation.rigid_arm._formulation import RigidArm
    from flexjax.robot import Robot


def refusals(method: "RigidArm", robot: "Robot") -> list[str]:
    return serial_refusals(robot) + flexible_joint_refusals(robot)
