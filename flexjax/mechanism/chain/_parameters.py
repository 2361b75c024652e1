"""The numbers of a serial chain of rigid links, from the robot: poses of joints, screws, inertias, hardware of joints
and motors.

Computed in space and, for planar robots, cut down to the plane, so that there is one set of formulas.
"""

import dataclasses
from types import ModuleType

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax.mechanism import centreline_pose, rigid_inertia
from flexjax.mechanism._grouping import map_alike
from flexjax.mechanism._hardware import JointHardware, joint_hardware
from flexjax.mechanism._joints import (
    PLANAR,
    hub_inertia,
    payload_inertia,
    placement,
    rotation_axis,
    rotor_and_gear,
    shift_axis,
)
from flexjax.mechanism.chain._layout import Layout, Stage
from flexjax.numerics.screw import se2, se3
from flexjax.robot import Joint, Robot


class Parameters(eqx.Module):
    """Stacked over stages (B): the pose from the parent body's frame to the joint, the pose from the joint to the
    body's frame, the screw in joint
    axes and in body axes (padded columns are zero), the body's inertia about its frame (hub only where the link is
    flexible), and the rotor."""

    before: se3.Pose
    after: se3.Pose
    joint_screw: Float[Array, "B dim k"]
    screw: Float[Array, "B dim k"]
    inertia: Float[Array, "B dim dim"]
    gravity: Float[Array, " lin"]
    rotor: Float[Array, " B"]  # inertia of the rotor about its axis
    gear: Float[Array, " B"]
    rotor_axis: Float[Array, "B dim"]  # a pure rotation about the joint axis, in parent body axes
    hardware: JointHardware

    @property
    def space(self) -> ModuleType:
        return se2 if self.gravity.shape[0] == 2 else se3


def _screw(joint: Joint, stage: Stage, like: Array) -> Array:
    """(6, dofs) in joint axes."""
    zeros = jnp.zeros(3, like.dtype)
    if joint.type in ("spherical", "free"):
        eye, none = jnp.eye(3, dtype=like.dtype), jnp.zeros((3, 3), like.dtype)
        return jnp.concatenate([none, eye] if stage.kind == "ball" else [eye, none])
    if stage.dofs == 0:
        return jnp.zeros((6, 0), like.dtype)
    if stage.slides:
        return jnp.zeros((6, 1), like.dtype)  # the carrier's shape gives it
    if joint.type in ("revolute", "universal"):
        return jnp.concatenate([zeros, rotation_axis(joint, stage.part, like)])[:, None]
    return jnp.concatenate([shift_axis(joint, like), zeros])[:, None]


def _stage_items(robot: Robot, stage: Stage, flexible: frozenset[str]):
    """What the numbers of a stage depend on: (static facts, parts of the robot without their names)."""
    joint = robot.joints[stage.joint]
    # A flexible link's tip moves: what follows is then placed from the tip section, not from the link's frame.
    at_frame = joint.parent == "ground" or joint.parent in flexible
    parent = None if at_frame else robot.links[robot.link_index(joint.parent)]
    link = (
        None
        if stage.link < 0 or robot.links[stage.link].name in flexible
        else robot.links[stage.link]
    )
    payloads = () if link is None else tuple(p for p in robot.payloads if p.link == link.name)
    facts = dataclasses.replace(
        stage, joint=0, v_start=0, q_start=0, link=min(stage.link, 0), border=-1
    )
    nameless = (
        dataclasses.replace(joint, name="", parent="", child=""),
        None if parent is None else dataclasses.replace(parent, name=""),
        None if link is None else dataclasses.replace(link, name=""),
        tuple(dataclasses.replace(p, name="", link="") for p in payloads),
    )
    return facts, nameless


def _stage_numbers(stage: Stage, parts: PyTree, width: int, like: Array):
    joint, parent, link, payloads = parts
    eye = se3.identity(like.dtype)
    parent_tip = eye if parent is None else centreline_pose(parent, jnp.ones((), like.dtype))
    place = placement(joint, like)
    first = (
        stage.extends
        or stage.part <= 0
        and not (
            joint.type == "prismatic"
            and stage.part == 0
            and (joint.hub is not None or joint.mass is not None)
        )
    )
    if joint.type == "sliding":
        before, after = eye, place
    else:
        before, after = (se3.compose(parent_tip, place) if first else eye), eye
    if joint.telescopes and stage.part == 0 and not stage.extends:
        before = se3.compose(
            before, se3.Pose(eye.rotation, jnp.zeros(3, like.dtype).at[0].set(-link.length))
        )
    screw = _screw(joint, stage, like)
    screw = jnp.pad(screw, ((0, 0), (0, width - screw.shape[1])))
    inertia = jnp.zeros((6, 6), like.dtype)
    if stage.hub or stage.extends or (stage.link >= 0 and joint.type != "prismatic"):
        inertia = inertia + hub_inertia(joint, like)
    if link is not None:
        inertia = inertia + rigid_inertia(link)
        for payload in payloads:
            inertia = inertia + payload_inertia(payload, centreline_pose(link, payload.s))
    rotor, gear = rotor_and_gear(joint, like)
    rotor = rotor if stage.dofs == 1 else jnp.zeros_like(rotor)
    turning = before.rotation @ (
        screw[3:, 0]
        if joint.type == "revolute" or joint.type == "universal"
        else jnp.zeros(3, like.dtype)
    )
    return (
        before,
        after,
        screw,
        se3.adjoint_inverse(after) @ screw,
        inertia,
        rotor,
        gear,
        jnp.concatenate([jnp.zeros(3, like.dtype), turning]),
    )


def chain_parameters(robot: Robot, layout: Layout) -> Parameters:
    """All numbers of the chain but those of flexible links; pure and traceable in the robot's leaves."""
    like = robot.gravity
    flexible = frozenset(
        robot.links[s.link].name for s, m in zip(layout.stages, layout.shapes, strict=False) if m
    )
    before, after, joint_screw, screw, inertia, rotor, gear, axis = map_alike(
        lambda stage, parts: _stage_numbers(stage, parts, layout.width, like),
        [_stage_items(robot, s, flexible) for s in layout.stages],
    )
    gravity = robot.gravity
    if layout.planar:
        before = se3.Pose(before.rotation[:, :2, :2], before.position[:, :2])
        after = se3.Pose(after.rotation[:, :2, :2], after.position[:, :2])
        joint_screw, screw, axis = joint_screw[:, PLANAR], screw[:, PLANAR], axis[:, PLANAR]
        inertia, gravity = inertia[:, PLANAR][:, :, PLANAR], gravity[:2]

    return Parameters(
        before,
        after,
        joint_screw,
        screw,
        inertia,
        gravity,
        rotor,
        gear,
        axis,
        joint_hardware(robot),
    )
