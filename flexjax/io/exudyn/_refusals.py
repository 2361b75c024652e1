"""What of a robot and its drive has no counterpart in the mechanism that Exudyn gets."""

import numpy as np

from flexjax.drive import PD, Drive, Effort, Motion
from flexjax.formulation import Start
from flexjax.robot import Joint, Link, Robot

TYPES = ("revolute", "prismatic", "fixed")


def refusals(robot: Robot, drive: Drive, start: Start) -> list[str]:
    """One sentence for each fault: field, value, what is expected, remedy."""
    faults = []
    for joint in robot.joints:
        faults += _joint_faults(robot, joint, drive)
    for link in robot.links:
        faults += _link_faults(link)
    for name, act in drive.joints.items():
        if not isinstance(act, Motion | Effort | PD):
            faults.append(
                f"drive.joints.{name}: {type(act).__name__}; expected Motion, Effort or PD, whose "
                "numbers depend on time and this joint only."
            )
    for name in start.links:
        faults.append(
            f"start.links.{name}: an initial deflection; expected undeformed links. Leave it out, "
            "and let a load or the weight bend the link."
        )
    return faults


def _joint_faults(robot: Robot, joint: Joint, drive: Drive) -> list[str]:
    where, faults = f"joints.{joint.name}", []
    if joint.loop:
        faults.append(f"{where}.loop: true; expected a joint of the tree.")
    if joint.telescopes:
        faults.append(
            f"{where}.axis: None, so that the link runs out of its guide; expected an axis."
        )
        return faults
    if joint.type not in TYPES or joint.loop:
        faults.append(f"{where}.type: {joint.type}; expected revolute, prismatic or fixed.")
        return faults
    held = isinstance(drive.joints.get(joint.name), Motion)
    if joint.stiffness is not None and not held:
        faults.append(
            f"{where}.stiffness: {float(joint.stiffness):g} without a Motion; expected one, since "
            "the rotor behind the spring has no coordinate there. Leave the stiffness out, or hold "
            "the motor by fx.Motion(fx.constant(0.0))."
        )
    if joint.motor is not None and joint.motor.rotor is not None and not held:
        turning = drive.base is not None and drive.base.angle is not None
        if joint.parent != "ground" or joint.type != "revolute" or turning:
            faults.append(
                f"{where}.motor.rotor: {float(joint.motor.rotor):g} on a joint that is not held by "
                "a Motion; expected a rotor on a revolute joint of a ground that does not rotate. "
                "Leave it out, or add its inertia times gear squared to the hub."
            )
    for field in ("output_friction", "spring_friction"):
        if getattr(joint, field) is not None:
            faults.append(f"{where}.{field}: given; expected none. Leave it out, or use friction.")
    if joint.friction is not None and joint.friction.bristle is not None:
        value = float(joint.friction.bristle)
        faults.append(
            f"{where}.friction.bristle: {value:g}; expected friction without bristles. Leave it "
            "out, and give v_eps."
        )
    return faults


def _link_faults(link: Link) -> list[str]:
    where, faults = f"links.{link.name}", []
    if link.curvature is not None and np.any(np.asarray(link.curvature)):
        value = np.asarray(link.curvature).tolist()
        faults.append(f"{where}.curvature: {value}; expected a link that is straight at rest.")
    for field in ("strain_rate", "mass", "modal"):
        value = None if link.damping is None else getattr(link.damping, field)
        if value is not None and float(value) and link.elastic:
            faults.append(
                f"{where}.damping.{field}: {float(value):g}; expected none, since Exudyn's spatial "
                "beam ignores its damping matrix. Leave it out in both codes to compare them."
            )
    return faults
