"""Robots that finite-element links do not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

from flexjax.robot._serial import flexible_joint_refusals, serial_refusals

if TYPE_CHECKING:
    from flexjax.formulation.finite_element._formulation import FiniteElement
    from flexjax.robot import Joint, Robot


def counts(method: "FiniteElement", robot: "Robot") -> dict[str, int]:
    """Elements of every elastic link."""
    elastic = [link.name for link in robot.links if link.elastic]
    if isinstance(method.elements, int):
        return {name: method.elements for name in elastic if method.elements}
    given = dict(method.elements)
    return {name: given.get(name, 5) for name in elastic if given.get(name, 5)}


def refusals(method: "FiniteElement", robot: "Robot") -> list[str]:
    faults = serial_refusals(robot) + flexible_joint_refusals(robot)
    if not isinstance(method.elements, int):
        known = {link.name for link in robot.links}
        faults += [
            f"elements.{name}: no such link; expected one of {', '.join(sorted(known))}"
            for name, _ in method.elements
            if name not in known
        ]
    return faults + _link_refusals(
        robot, counts(method, robot), method.stiffening is True, method.contact
    )


def _link_refusals(
    robot: "Robot", elastic: dict[str, int], stiffening: bool, contact: str
) -> list[str]:
    faults = []
    if not robot.planar:
        faults.append(
            "planar: false; expected a robot that moves in the plane z = 0 (planar = true, every "
            "axis along z)"
        )
    for link in robot.links:
        if link.name not in elastic:
            continue
        if link.curvature is not None:
            faults.append(
                f"links.{link.name}.curvature: an elastic link that is curved at rest; expected a "
                "straight one, or rigid = true"
            )
        if link.damping is not None and link.damping.modal is not None:
            faults.append(
                f"links.{link.name}.damping.modal: couples every element with every other; "
                "expected strain_rate or mass"
            )
    for joint in robot.tree_joints:
        if joint.type == "sliding" and joint.parent in elastic and contact != "fixed":
            faults += _contact_faults(robot, joint, elastic, stiffening, contact)
        if joint.type != "prismatic" or joint.axis is not None or joint.child not in elastic:
            continue
        link = robot.links[robot.link_index(joint.child)]
        where = f"joints.{joint.name}"
        if link.pieces or link.section_end is not None:
            faults.append(
                f"{where}: the link {link.name!r} runs through it with a section that varies; "
                "expected a uniform one, or rigid = true"
            )
        if link.damping is not None:
            faults.append(
                f"links.{link.name}.damping: on a link that runs through its joint; expected none "
                "(damping of the joint itself is supported)"
            )
        if joint.flexible:
            faults.append(
                f"{where}.stiffness: a flexible joint that an elastic link runs through; expected "
                "a rigid one"
            )
        if joint.motor is not None and joint.motor.rotor is not None:
            faults.append(
                f"{where}.motor.rotor: on a joint that an elastic link runs through; expected the "
                f"rotor's mass in {where}.mass"
            )
        if stiffening:
            faults.append(
                f"{where}: stiffening of a link that runs through its joint; expected "
                "stiffening=False, or a rigid link"
            )
    return faults


def _contact_faults(
    robot: "Robot", joint: "Joint", elastic: dict[str, int], stiffening: bool, contact: str
) -> list[str]:
    """Refusals of a joint that slides along a link whose mesh follows it."""
    link, where, faults = robot.links[robot.link_index(joint.parent)], f"joints.{joint.name}", []
    instead = f"contact={contact!r}; expected contact='fixed'"
    if any(j.child == link.name and j.telescopes for j in robot.tree_joints):
        faults.append(
            f"{where}: slides along a link that itself runs through a joint, with {instead}"
        )
    if contact == "node":
        return faults
    if elastic[link.name] < 2:
        faults.append(
            f"elements.{link.name}: 1; expected at least one on either side of the contact of "
            f"{joint.name!r}"
        )
    if link.pieces or link.section_end is not None:
        faults.append(f"{where}: slides along a link with a section that varies, with {instead}")
    if link.damping is not None:
        faults.append(f"links.{link.name}.damping: on a link whose mesh moves, with {instead}")
    if joint.flexible or joint.motor is not None and joint.motor.rotor is not None:
        faults.append(f"{where}: a flexible joint or a rotor on a contact, with {instead}")
    if stiffening:
        faults.append(f"{where}: stiffening of a link whose mesh moves, with {instead}")
    return faults
