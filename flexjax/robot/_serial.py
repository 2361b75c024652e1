"""The order of a robot's joints, and what formulations ask of it. Imports no jax."""

from typing import TYPE_CHECKING

import numpy as np

from flexjax._lazy import is_traced

if TYPE_CHECKING:
    from flexjax.robot import Robot


def chain_order(robot: "Robot") -> list[int]:
    """Indices of the tree joints from the ground outwards, up to the first branch."""
    by_parent: dict[str, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        if not joint.loop:
            by_parent.setdefault(joint.parent, []).append(i)
    order, at = [], "ground"
    while len(by_parent.get(at, [])) == 1:
        order.append(by_parent[at][0])
        at = robot.joints[order[-1]].child
    return order


def serial_refusals(robot: "Robot") -> list[str]:
    """Why a serial chain does not support this robot; empty if it does."""
    faults = [f"joints.{j.name}: closes a loop; expected a serial arm" for j in robot.loop_joints]
    if len(chain_order(robot)) != len(robot.tree_joints):
        faults.append("joints: the links branch; expected a serial arm")
    return faults


def flexible_joint_refusals(robot: "Robot") -> list[str]:
    """Flexible joints need one degree of freedom: the spring acts along it."""
    return [
        f"joints.{j.name}.stiffness: a flexible {j.type} joint; "
        "expected a joint with one degree of freedom"
        for j in robot.tree_joints
        if j.flexible and j.dofs != 1
    ]


def torsion_refusals(robot: "Robot") -> list[str]:
    """Elastic links in space whose twist has no inertia: no acceleration follows from a torque."""
    if robot.planar:
        return []
    faults = []
    for link in robot.links:
        if not link.elastic:
            continue
        parts = [(f"links.{link.name}", link.constants)]
        parts += [(f"links.{link.name}.pieces.{i}", x.constants) for i, x in enumerate(link.pieces)]
        for where, constants in parts:
            given = None if constants is None else constants.rhoIx
            if constants is None or (given is not None and (is_traced(given) or np.all(given))):
                continue
            value = "missing" if given is None else "0"
            faults.append(
                f"{where}.constants.rhoIx: {value}; expected the rotary inertia of the twist, a "
                "positive number, for a link in space, e.g. the density times the polar moment"
            )
    return faults
