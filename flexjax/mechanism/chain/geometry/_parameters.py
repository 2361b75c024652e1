"""Parameters of a serial chain of rigid links: poses of joints, screws, inertias, hardware.

Computed in space and, for planar robots, reduced to the plane, so that each formula exists once.
"""

import dataclasses
from types import ModuleType

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax.mechanism import centreline_pose, rigid_inertia
from flexjax.mechanism._grouping import vmap_groups
from flexjax.mechanism.chain.geometry._layout import Layout, Stage
from flexjax.mechanism.joints._hardware import JointHardware, joint_hardware
from flexjax.mechanism.joints._joints import (
    PLANAR,
    hub_inertia,
    payload_inertia,
    placement,
    rotation_axis,
    rotor_and_gear,
    shift_axis,
)
from flexjax.numerics.screw import se2, se3
from flexjax.robot import Joint, Robot


class Parameters(eqx.Module):
    """Parameters, stacked over stages (B).

    ``before``, ``after``: poses from the parent body's frame to the joint, and from the joint to
    the body's frame. ``joint_screw``, ``screw``: in joint and body axes, zero where padded.
    ``inertia``: of the body about its frame; of the hub only if the link is flexible.
    """

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
    """(static facts, parts of the robot without names) on which a stage's parameters depend."""
    joint = robot.joints[stage.joint]
    # After a flexible link, the next joint is placed from its tip section, not from its frame.
    at_frame = joint.parent == "ground" or joint.parent in flexible
    parent = None if at_frame else robot.links[robot.link_index(joint.parent)]
    link = None if stage.link < 0 else robot.links[stage.link]
    link = None if link is None or link.name in flexible else link
    payloads = () if link is None else tuple(p for p in robot.payloads if p.link == link.name)
    facts = dataclasses.replace(
        stage, joint=0, v_start=0, q_start=0, link=min(stage.link, 0), border=-1
    )
    nameless = lambda x: None if x is None else dataclasses.replace(x, name="")
    return facts, (
        dataclasses.replace(joint, name="", parent="", child=""),
        nameless(parent),
        nameless(link),
        tuple(dataclasses.replace(p, name="", link="") for p in payloads),
    )


def _stage_parameters(stage: Stage, parts: PyTree, width: int, like: Array):
    joint, parent, link, payloads = parts
    eye, zero = se3.identity(like.dtype), jnp.zeros(3, like.dtype)
    parent_tip = eye if parent is None else centreline_pose(parent, jnp.ones((), like.dtype))
    place = placement(joint, like)
    own_hub = joint.type == "prismatic" and (joint.hub is not None or joint.mass is not None)
    first = stage.extends or stage.part < 0 or (stage.part == 0 and not own_hub)
    if joint.type == "sliding":
        before, after = eye, place
    else:
        before, after = (se3.compose(parent_tip, place) if first else eye), eye
    if joint.telescopes and stage.part == 0 and not stage.extends:
        before = se3.compose(before, se3.Pose(eye.rotation, zero.at[0].set(-link.length)))
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
    rotates = joint.type in ("revolute", "universal")
    axis = before.rotation @ (screw[3:, 0] if rotates else zero)
    body_screw = se3.adjoint_inverse(after) @ screw
    return before, after, screw, body_screw, inertia, rotor, gear, jnp.concatenate([zero, axis])


def chain_parameters(robot: Robot, layout: Layout) -> Parameters:
    """All parameters of the chain but those of flexible links; pure and traceable."""
    like = robot.gravity
    flexible = frozenset(
        robot.links[s.link].name for s, m in zip(layout.stages, layout.shapes, strict=False) if m
    )
    before, after, joint_screw, screw, inertia, rotor, gear, axis = vmap_groups(
        lambda stage, parts: _stage_parameters(stage, parts, layout.width, like),
        [_stage_items(robot, s, flexible) for s in layout.stages],
    )
    gravity = robot.gravity
    if layout.planar:
        before = se3.Pose(before.rotation[:, :2, :2], before.position[:, :2])
        after = se3.Pose(after.rotation[:, :2, :2], after.position[:, :2])
        joint_screw, screw, axis = joint_screw[:, PLANAR], screw[:, PLANAR], axis[:, PLANAR]
        inertia, gravity = inertia[:, PLANAR][:, :, PLANAR], gravity[:2]
    hardware = joint_hardware(robot)
    return Parameters(
        before, after, joint_screw, screw, inertia, gravity, rotor, gear, axis, hardware
    )
