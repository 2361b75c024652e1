"""Robots that a moving beam does not support, from static facts. Imports no jax."""

from typing import TYPE_CHECKING

from flexjax.robot._serial import chain_order, serial_refusals, torsion_refusals

if TYPE_CHECKING:
    from flexjax.formulation.moving_beam._formulation import MovingBeam
    from flexjax.robot import Joint, Link, Robot

CARRIER_JOINTS = ("revolute", "universal", "fixed", "prismatic")


def carrier_and_arm(robot: "Robot") -> tuple[list[int], list[int]]:
    """Joints of the carrier and of the arm; the arm begins with the first elastic link."""
    order = chain_order(robot)
    for k, i in enumerate(order):
        if robot.links[robot.link_index(robot.joints[i].child)].elastic:
            return order[:k], order[k:]
    return order, []


def sliding(robot: "Robot", arm: list[int]) -> list[int]:
    """Joints of the arm whose coordinate is a length."""
    return arm if robot.joints[arm[0]].telescopes else arm[1:]


def stretches(robot: "Robot", arm: list[int]) -> list[tuple[int, ...]]:
    """Stretches of constant section or overlap: the tubes in each, counted along the arm."""
    if len(arm) == 1:
        link = robot.links[robot.link_index(robot.joints[arm[0]].child)]
        return [(0,)] * max(1, len(link.pieces))
    return [(0,), *(x for k in range(1, len(arm)) for x in ((k - 1, k), (k,)))]


def refusals(method: "MovingBeam", robot: "Robot") -> list[str]:
    faults = serial_refusals(robot)
    if method.rotary:
        faults += torsion_refusals(robot)
    elif not robot.planar:
        faults.append(
            "rotary: False; expected True for a robot in space, where the twist has no other "
            "inertia"
        )
    if len(chain_order(robot)) != len(robot.tree_joints):
        return faults
    carrier, arm = carrier_and_arm(robot)
    if not arm:
        faults.append("links: all are rigid; expected an elastic link at the end of the chain")
    for i in carrier + arm[:1]:
        faults += _carrier_refusals(robot.joints[i], i in carrier)
    for i in arm[1:]:
        faults += _telescope_refusals(robot.joints[i])
    for joint in robot.tree_joints:
        if joint.flexible:
            faults.append(f"joints.{joint.name}.stiffness: a flexible joint; expected a rigid one")
    alone = len(arm) == 1 and not robot.joints[arm[0]].telescopes
    for i in arm:
        link = robot.links[robot.link_index(robot.joints[i].child)]
        faults += _link_refusals(link, robot.planar, alone)
    if not faults:
        least = len(stretches(robot, arm))
        if method.elements < least:
            faults.append(
                f"elements: {method.elements}; expected at least {least}, one for each stretch "
                "of constant section or overlap"
            )
        elif method.inertia == "constant" and sliding(robot, arm):
            faults.append("inertia='constant' with a variable length; expected 'complete'")
    return faults


def _carrier_refusals(joint: "Joint", rigid_child: bool) -> list[str]:
    if joint.type not in CARRIER_JOINTS:
        expected = ", ".join(CARRIER_JOINTS)
        return [
            f"joints.{joint.name}.type: {joint.type}; expected one of {expected} ahead of the beam"
        ]
    if joint.telescopes and rigid_child:
        return [
            f"joints.{joint.name}: a rigid link that slides through its joint; expected an axis "
            "(a plain shift)"
        ]
    return []


def _telescope_refusals(joint: "Joint") -> list[str]:
    where = f"joints.{joint.name}"
    if not joint.telescopes:
        return [
            f"{where}: a {joint.type} joint behind an elastic link; expected only telescope joints "
            "there (prismatic without axis)"
        ]
    if joint.offset is not None or joint.rotation is not None:
        return [f"{where}: offset or rotation; expected tubes on one line"]
    if joint.hub is not None or joint.mass is not None:
        return [f"{where}: hub or mass; expected it as a payload on the tube"]
    return []


def _link_refusals(link: "Link", planar: bool, alone: bool) -> list[str]:
    """Of a link of the arm; ``alone``: the only one, and it does not move through its joint."""
    where, faults = f"links.{link.name}", []
    if not link.elastic:
        return [f"{where}: a rigid link behind an elastic one; expected it as a payload"]
    if link.curvature is not None:
        faults.append(f"{where}.curvature: initially curved; expected a straight beam")
    parts = link.pieces or (link,)
    if any(p.section_end is not None for p in parts):
        faults.append(
            f"{where}: tapered; expected pieces of constant section (the product integrals are "
            "made for them)"
        )
    if link.pieces and not alone:
        faults.append(
            f"{where}.pieces: a moving tube with several sections; expected one section per tube"
        )
    if link.damping is not None and link.damping.modal is not None:
        faults.append(f"{where}.damping.modal: expected strain_rate or mass")
    if not planar and any(p.constants is not None and p.constants.rhoIx is None for p in parts):
        faults.append(
            f"{where}.constants.rhoIx: absent, so torsion has no inertia; give it, or set "
            "planar = true"
        )
    return faults
