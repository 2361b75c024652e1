"""Robots that port-Hamiltonian links do not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

import numpy as np

from flexjax._lazy import is_traced
from flexjax.robot._serial import flexible_joint_refusals
from flexjax.robot.check._joint import FRICTIONS

if TYPE_CHECKING:
    from flexjax.formulation.port_hamiltonian._formulation import PortHamiltonian
    from flexjax.robot import Robot


def refusals(method: "PortHamiltonian", robot: "Robot") -> list[str]:
    faults = [*_joint_refusals(robot), *flexible_joint_refusals(robot), *_link_refusals(robot)]
    if method.variant == "paper":
        return faults + _paper_refusals(robot)
    return faults + _curvature_refusals(robot, method.elements)


def _joint_refusals(robot: "Robot") -> list[str]:
    faults = []
    for j in robot.joints:
        if j.type == "sliding" or j.telescopes:
            faults.append(
                f"joints.{j.name}: a {j.type} joint that travels along a flexible link; expected "
                "a fixed axis, or another formulation"
            )
    for j in robot.loop_joints:
        if j.type not in ("revolute", "spherical", "fixed"):
            faults.append(
                f"joints.{j.name}: a {j.type} joint closes a loop; expected a revolute, "
                "spherical or fixed joint"
            )
        for field in ("stiffness", "damping", *FRICTIONS, "hub", "mass", "motor", "stops"):
            if getattr(j, field) is not None:
                faults.append(
                    f"joints.{j.name}.{field}: hardware on a joint that closes a loop; put it on "
                    "a joint of the tree"
                )
    return faults


def _link_refusals(robot: "Robot") -> list[str]:
    faults = []
    for link in robot.links:
        if link.damping is not None and link.damping.modal is not None:
            faults.append(
                f"links.{link.name}.damping.modal: damping by modes; expected strain_rate or mass"
            )
        if link.body is not None and not link.rigid:
            faults.append(
                f"links.{link.name}.body: mass properties of a rigid link; expected rigid = "
                "true, or a section"
            )
    return faults


def _curvature_refusals(robot: "Robot", elements: int) -> list[str]:
    """An arc of half a revolution or more is no single element: the tangent of half its angle is
    infinite. Traced parameters are not checked."""
    faults = []
    for link in robot.links:
        if link.curvature is None or link.rigid:
            continue
        if is_traced(link.curvature) or is_traced(link.length):
            continue
        curvature = np.linalg.norm(np.asarray(link.curvature), axis=-1)
        angle = float(np.max(curvature * np.asarray(link.length)))
        if angle / elements >= np.pi:
            least = int(angle / np.pi) + 1
            faults.append(
                f"links.{link.name}.curvature: rotates by {angle:.4g} rad along the link, "
                f"{angle / elements:.4g} rad in each of {elements} elements; "
                "expected less than half a revolution (3.1416 rad): use "
                f"PortHamiltonian(elements={least}) or more"
            )
    return faults


def _paper_refusals(robot: "Robot") -> list[str]:
    """What mechanisms of the paper's elements do not support: bodies on their massless nodes."""
    other = "or variant='complete'"
    faults = []
    for link in robot.links:
        if link.rigid:
            faults.append(
                f"links.{link.name}.rigid: a rigid link between the paper's elements; expected "
                f"flexible links, {other}"
            )
        if link.damping is not None and link.damping.mass is not None:
            faults.append(
                f"links.{link.name}.damping.mass: damping by nodal mass; expected strain_rate or "
                f"the option drag, {other}"
            )
    for j in robot.tree_joints:
        rotor = None if j.motor is None else j.motor.rotor
        for field, value in (
            ("hub", j.hub),
            ("mass", j.mass),
            ("stiffness", j.stiffness),
            ("motor.rotor", rotor),
        ):
            if value is not None:
                faults.append(
                    f"joints.{j.name}.{field}: inertia or a spring on a massless node; expected "
                    f"a plain joint, {other}"
                )
    for p in robot.payloads:
        faults.append(f"payloads.{p.name}: a body on a massless node; expected none, {other}")
    return faults
