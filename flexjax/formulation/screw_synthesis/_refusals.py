"""Robots that links with modes do not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

from flexjax.robot._serial import flexible_joint_refusals, serial_refusals, torsion_refusals

if TYPE_CHECKING:
    from flexjax.formulation.screw_synthesis._formulation import ScrewSynthesis
    from flexjax.robot import Robot


def counts(method: "ScrewSynthesis", robot: "Robot") -> tuple[int, int, int, int]:
    """Shape functions in (axial, y, z, torsion); a planar robot has none out of its plane."""
    if isinstance(method.modes, int):
        r = method.modes
        few = max(r - 1, 1) if r else 0
        counts = (few, r, r, few)
    else:
        axial, y, z, torsion = method.modes
        counts = (axial, y, z, torsion)
    return (counts[0], counts[1], 0, 0) if robot.planar else counts


def refusals(method: "ScrewSynthesis", robot: "Robot") -> list[str]:
    faults = serial_refusals(robot) + flexible_joint_refusals(robot)
    if counts(method, robot)[3]:
        faults += torsion_refusals(robot)
    flexible = {link.name for link in robot.links if link.elastic}
    for link in robot.links:
        if link.name in flexible and link.curvature is not None:
            faults.append(
                f"links.{link.name}.curvature: an elastic link that is curved at rest; "
                "expected a straight one, or rigid = true"
            )
    for joint in robot.tree_joints:
        if joint.type == "sliding" and joint.parent in flexible:
            faults.append(
                f"joints.{joint.name}: slides along the elastic link {joint.parent!r}; "
                "expected a rigid carrier"
            )
        if joint.telescopes and joint.child in flexible:
            faults.append(
                f"joints.{joint.name}: the elastic link {joint.child!r} slides through it; "
                "expected a prismatic joint with an axis, or a rigid link"
            )
    return faults
