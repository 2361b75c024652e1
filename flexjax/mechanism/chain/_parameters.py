"""The numbers of a serial chain of rigid links, from the robot: poses of joints, screws, inertias, hardware of joints
and motors.

Computed in space and, for planar robots, cut down to the plane, so that there is one set of formulas.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.mechanism import centreline_pose, rigid_inertia
from flexjax.mechanism._grouping import map_alike
from flexjax.mechanism.chain._layout import Layout, Stage
from flexjax.numerics.screw import se2, se3
from flexjax.robot import Joint, Payload, Robot

PLANAR = np.array([0, 1, 5])  # rows of a spatial twist that a planar one keeps


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
    stiffness: Float[Array, " D"]  # spring of a flexible joint, zero elsewhere
    damping: Float[Array, " D"]
    coulomb: (
        Float[Array, " D"] | None
    )  # None, like the stops, where no joint has any: what is absent costs no code
    v_eps: Float[Array, " D"] | None
    stops: Float[Array, "D 4"] | None  # lower, upper, stiffness, damping

    @property
    def space(self):
        return se2 if self.gravity.shape[0] == 2 else se3


def _or_zero(x, like, shape=()):
    return jnp.zeros(shape, like.dtype) if x is None else jnp.asarray(x, like.dtype)


def _placement(joint: Joint, like) -> se3.Pose:
    rotation = (
        jnp.eye(3, dtype=like.dtype) if joint.rotation is None else se3.rotation_exp(joint.rotation)
    )
    return se3.Pose(rotation, _or_zero(joint.offset, like, (3,)))


def _unit(axis):
    return axis / jnp.linalg.norm(axis)


def _screw(joint: Joint, stage: Stage, like) -> Array:
    """(6, dofs) in joint axes."""
    zeros = jnp.zeros(3, like.dtype)
    if joint.type in ("spherical", "free"):
        eye, none = jnp.eye(3, dtype=like.dtype), jnp.zeros((3, 3), like.dtype)
        return jnp.concatenate([none, eye] if stage.kind == "ball" else [eye, none])
    if stage.dofs == 0:
        return jnp.zeros((6, 0), like.dtype)
    if stage.slides:
        return jnp.zeros((6, 1), like.dtype)  # the carrier's shape gives it
    if joint.type == "universal":
        axis = joint.axis2 if stage.part == 1 else joint.axis
        axis = jnp.array([0.0, 0.0, 1.0], like.dtype) if axis is None else axis
        return jnp.concatenate([zeros, _unit(axis)])[:, None]
    default = jnp.array(
        [0.0, 0.0, 1.0] if joint.type == "revolute" else [1.0, 0.0, 0.0], like.dtype
    )
    axis = default if joint.axis is None or joint.type == "sliding" else _unit(joint.axis)
    return jnp.concatenate([zeros, axis] if joint.type == "revolute" else [axis, zeros])[:, None]


def _point_inertia(pose: se3.Pose, mass, about_com) -> Array:
    """Inertia of a body whose centre of mass frame is at ``pose``."""
    back = se3.adjoint_inverse(pose)
    return back.T @ se3.body_inertia(mass, jnp.zeros(3, mass.dtype), about_com) @ back


def spread_inertia(inertia, like) -> Array:
    """One number: the same about every axis; three: about x, y, z."""
    value = _or_zero(inertia, like)
    return jnp.diag(jnp.broadcast_to(value, (3,)))


def payload_inertia(payload: Payload, pose: se3.Pose) -> Array:
    """6 x 6 about the link's base, for a payload on the section at ``pose``."""
    like = payload.mass
    at = se3.compose(
        pose, se3.Pose(jnp.eye(3, dtype=like.dtype), _or_zero(payload.offset, like, (3,)))
    )
    return _point_inertia(at, payload.mass, spread_inertia(payload.inertia, like))


def hub_inertia(joint: Joint, like) -> Array:
    """6 x 6 of hub and joint mass about the joint, in child axes."""
    mass = _or_zero(joint.mass, like)
    about = jnp.zeros((3, 3), like.dtype)
    if joint.hub is not None:
        mass = mass + joint.hub.mass
        if joint.hub.inertia.ndim == 0 and joint.type == "revolute":
            axis = (
                jnp.array([0.0, 0.0, 1.0], like.dtype) if joint.axis is None else _unit(joint.axis)
            )
            about = joint.hub.inertia * jnp.outer(axis, axis)
        else:
            about = spread_inertia(joint.hub.inertia, like)
    return se3.body_inertia(mass, jnp.zeros(3, like.dtype), about)


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


def _stage_numbers(stage: Stage, parts, width: int, like):
    joint, parent, link, payloads = parts
    eye = se3.identity(like.dtype)
    parent_tip = eye if parent is None else centreline_pose(parent, jnp.ones((), like.dtype))
    place = _placement(joint, like)
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
    if joint.type == "prismatic" and joint.axis is None and stage.part == 0 and not stage.extends:
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
    motor = joint.motor if stage.dofs == 1 else None
    rotor = _or_zero(None if motor is None else motor.rotor, like)
    gear = jnp.ones((), like.dtype) if motor is None else motor.gear
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

    per_dof = {name: [] for name in ("stiffness", "damping", "coulomb", "v_eps", "stops")}
    for joint in robot.tree_joints:
        friction = joint.friction
        stops = jnp.array([-jnp.inf, jnp.inf, 0.0, 0.0], like.dtype)
        if joint.stops is not None:
            stops = jnp.stack(
                [joint.stops.lower, joint.stops.upper, joint.stops.stiffness, joint.stops.damping]
            )
        for _ in range(joint.dofs):
            per_dof["stiffness"].append(_or_zero(joint.stiffness, like))
            per_dof["damping"].append(_or_zero(joint.damping, like))
            per_dof["coulomb"].append(
                _or_zero(None if friction is None else friction.coulomb, like)
            )
            per_dof["v_eps"].append(
                jnp.ones((), like.dtype) if friction is None else friction.v_eps
            )
            per_dof["stops"].append(stops)
    stacked = {
        k: (jnp.stack(v) if v else jnp.zeros((0, 4) if k == "stops" else 0, like.dtype))
        for k, v in per_dof.items()
    }
    if all(j.friction is None for j in robot.tree_joints):
        stacked["coulomb"] = stacked["v_eps"] = None
    if all(j.stops is None for j in robot.tree_joints):
        stacked["stops"] = None
    return Parameters(
        before, after, joint_screw, screw, inertia, gravity, rotor, gear, axis, **stacked
    )
