"""Robots that chains of segments do not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

from flexjax.robot._serial import serial_refusals

if TYPE_CHECKING:
    from flexjax.formulation.transfer_matrix._formulation import TransferMatrix
    from flexjax.robot import Joint, Robot


def half_springs(method: "TransferMatrix") -> bool:
    """Whether half segments have springs."""
    return method.variant != "paper" if method.half_springs is None else method.half_springs


def refusals(method: "TransferMatrix", robot: "Robot") -> list[str]:
    faults = serial_refusals(robot)
    if not robot.planar:
        faults += _spatial_refusals(method, robot)
    types = ("revolute", "fixed") if robot.planar else ("revolute", "universal", "fixed")
    for j in robot.tree_joints:
        if j.type not in types:
            faults.append(
                f"joints.{j.name}.type: {j.type}; expected {', '.join(types[:-1])} or {types[-1]}"
            )
    for j in robot.tree_joints:
        frictions = ("friction", "output_friction", "spring_friction")
        for field in frictions if method.variant == "paper" else ():
            if getattr(j, field) is not None and getattr(j, field).bristle is not None:
                faults.append(
                    f"joints.{j.name}.{field}.bristle: expected variant complete, or friction "
                    "without bristles"
                )
        for field in frictions[1:]:
            if getattr(j, field) is not None and _soft_beside(method, robot, j):
                faults.append(
                    f"joints.{j.name}.{field}: between the joint spring and a half segment "
                    "there is no coordinate; expected a rigid parent, and a planar joint with "
                    "a hub or a rigid child"
                )
    for link in robot.links:
        for field in ("mass", "modal"):
            if link.damping is not None and getattr(link.damping, field) is not None:
                faults.append(
                    f"links.{link.name}.damping.{field}: expected strain_rate; springs between "
                    "segments have no other damping"
                )
    if isinstance(method.segments, tuple) and len(method.segments) != len(robot.links):
        faults.append(f"segments: {len(method.segments)} numbers for {len(robot.links)} links")
    return faults


def _soft_beside(method: "TransferMatrix", robot: "Robot", joint: "Joint") -> bool:
    """Whether half segments act between the sides of a joint."""
    if not robot.planar:
        return True
    if not half_springs(method):
        return False
    elastic = {link.name for link in robot.links if link.elastic}
    return joint.parent in elastic or (joint.child in elastic and joint.hub is None)


def _spatial_refusals(method: "TransferMatrix", robot: "Robot") -> list[str]:
    """What a planar chain supports and a spatial one does not."""
    faults = []
    for field, wanted in (("variant", "complete"), ("chain", "riccati")):
        if getattr(method, field) != wanted:
            faults.append(
                f"{field}: {getattr(method, field)}; expected {wanted} for a robot in space"
            )
    if method.half_springs is False or method.rotary is False:
        faults.append("half_springs, rotary: false; expected true or none for a robot in space")
    rigid = {"ground": True} | {link.name: not link.elastic for link in robot.links}
    for link in robot.links:
        if link.curvature is not None and not rigid[link.name]:
            faults.append(f"links.{link.name}.curvature: expected a straight elastic link in space")
    for j in robot.tree_joints:
        if rigid.get(j.parent, False) and rigid.get(j.child, False):
            faults.append(
                f"joints.{j.name}: between two rigid bodies; expected an elastic link on one side"
            )
        for field in ("backlash", "hardening"):
            if getattr(j, field) is not None:
                faults.append(
                    f"joints.{j.name}.{field}: expected a linear joint spring in space, where it "
                    "bends in series with half segments about all axes"
                )
        if j.motor is not None and j.motor.rotor is not None:
            faults.append(f"joints.{j.name}.motor.rotor: expected none in space")
        if j.stops is not None and (j.flexible or j.type != "revolute"):
            faults.append(
                f"joints.{j.name}.stops: in space expected on a revolute joint without stiffness"
            )
        if j.flexible and j.type != "revolute":
            faults.append(f"joints.{j.name}.stiffness: expected a revolute joint")
    return faults
