"""The static layout of carrier and arm, and the carrier: rigid links and joints ahead of the beam.

The carrier ends with the joint of the first elastic link. The frame behind it, the joint frame,
carries the arm: one elastic beam, or telescoping tubes.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.formulation.moving_beam._refusals import carrier_and_arm, sliding, stretches
from flexjax.formulation.moving_beam.beam._shapes import SPATIAL, Shapes
from flexjax.mechanism import (
    centreline_pose,
    hub_inertia,
    payload_inertia,
    placement,
    rigid_inertia,
    rotation_axis,
    rotor_and_gear,
    shift_axis,
)
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._quaternion import outer, skew
from flexjax.robot import Robot

JointValues = Float[Array, " D"]


@dataclasses.dataclass(frozen=True)
class CarrierStage:
    """One joint (or one axis of a universal joint) of the carrier and the body behind it."""

    joint: int
    part: int
    dof: int  # index among the joint coordinates; -1 for a fixed joint
    link: int  # index of the rigid link behind it; -1 for none
    last: bool  # the last part of its joint, which carries the hub and the joint mass
    rotates: bool  # rotates about its axis; otherwise it moves along it, or is fixed


@dataclasses.dataclass(frozen=True)
class Segment:
    """A stretch of the arm with the same tubes, divided into elements of equal length."""

    layers: tuple[int, ...]  # tubes, counted along the arm
    elements: int


@dataclasses.dataclass(frozen=True)
class ArmLayout:
    """Order of the coordinates: joints in robot order, then per element outer node and own."""

    stages: tuple[CarrierStage, ...]
    tubes: tuple[int, ...]  # links of the arm, base to tip
    slides: bool  # the first tube slides through its joint; the part behind the joint is rigid
    lengths: tuple[int, ...]  # indices of the length coordinates among the joint coordinates
    length_joints: tuple[int, ...]
    segments: tuple[Segment, ...]
    dofs: int
    planar: bool
    shapes: Shapes

    @property
    def elements(self) -> int:
        return sum(s.elements for s in self.segments)

    @property
    def node(self) -> int:
        """Unknowns of a node."""
        return self.shapes.node

    @property
    def width(self) -> int:
        """Unknowns per element: of its outer node, and its own."""
        return self.shapes.node + self.shapes.own

    @property
    def nv(self) -> int:
        return self.dofs + self.elements * self.width

    @property
    def length_of_tube(self) -> tuple[int, ...]:
        """Position among the lengths of the coordinate that moves each tube; -1 if none does."""
        return (() if self.slides else (-1,)) + tuple(range(len(self.lengths)))

    def stage_of_link(self, link: int) -> int:
        """Index of the stage whose body is this rigid link."""
        return next(i for i, stage in enumerate(self.stages) if stage.link == link)


def segments(robot: Robot, arm: list[int], elements: int) -> tuple[Segment, ...]:
    """Stretches of constant section or overlap, with the elements distributed among them."""
    layers = stretches(robot, arm)
    count = [elements // len(layers)] * len(layers)
    # The remainder goes to single tubes first: overlaps are short and stiff.
    preferred = sorted(range(len(layers)), key=lambda k: (len(layers[k]), k))
    for k in preferred[: elements % len(layers)]:
        count[k] += 1
    return tuple(Segment(x, n) for x, n in zip(layers, count, strict=True))


def arm_layout(robot: Robot, elements: int, shapes: Shapes = SPATIAL) -> ArmLayout:
    """The layout of a supported robot."""
    start = {name: sl.start for name, sl in robot.dof_slices().items()}
    carrier, arm = carrier_and_arm(robot)
    slides = robot.joints[arm[0]].telescopes
    stages = []
    for i in carrier + arm[:1]:
        joint = robot.joints[i]
        parts = 2 if joint.type == "universal" else 1
        moves = joint.type != "fixed" and not (slides and i == arm[0])
        for part in range(parts):
            last = part == parts - 1
            dof = start[joint.name] + part if moves else -1
            link = robot.link_index(joint.child) if last and i in carrier else -1
            rotates = moves and joint.type != "prismatic"
            stages.append(CarrierStage(i, part, dof, link, last, rotates))
    moving = sliding(robot, arm)
    return ArmLayout(
        stages=tuple(stages),
        tubes=tuple(robot.link_index(robot.joints[i].child) for i in arm),
        slides=slides,
        lengths=tuple(start[robot.joints[i].name] for i in moving),
        length_joints=tuple(moving),
        segments=segments(robot, arm, elements),
        dofs=robot.dofs,
        planar=robot.planar,
        shapes=dataclasses.replace(shapes, planar=robot.planar),
    )


class Carrier(eqx.Module):
    """Parameters per stage: pose from the parent's frame to the joint, screw, body, rotor."""

    before: tuple[se3.Pose, ...]
    screw: Float[Array, "stages 6"]
    inertia: Float[Array, "stages 6 6"]
    rotor: Float[Array, " stages"]
    gear: Float[Array, " stages"]
    rotor_axis: Float[Array, "stages 3"]  # in the parent's axes


def carrier_parameters(robot: Robot, layout: ArmLayout) -> Carrier:
    """Parameters of the carrier; pure and traceable in the robot's leaves."""
    stages = [_stage_parameters(robot, stage) for stage in layout.stages]
    before, *others = zip(*stages, strict=True)
    return Carrier(before, *(jnp.stack(x) for x in others))


def _stage_parameters(robot: Robot, stage: CarrierStage):
    like, joint = robot.gravity, robot.joints[stage.joint]
    pose = se3.identity(like.dtype)
    if stage.part == 0:
        parent = robot.link_index(joint.parent)
        if parent >= 0:
            pose = centreline_pose(robot.links[parent], jnp.ones((), like.dtype))
        pose = se3.compose(pose, placement(joint, like))
    axis = rotation_axis(joint, stage.part, like) if stage.rotates else shift_axis(joint, like)
    zero = jnp.zeros(3, like.dtype)
    screw = jnp.concatenate([zero, axis] if stage.rotates else [axis, zero])
    body = hub_inertia(joint, like) if stage.last else jnp.zeros((6, 6), like.dtype)
    if stage.link >= 0:
        link = robot.links[stage.link]
        body = body + rigid_inertia(link)
        for payload in robot.payloads:
            if payload.link == link.name:
                body = body + payload_inertia(payload, centreline_pose(link, payload.s))
    rotor, gear = rotor_and_gear(joint, like)
    return (
        pose,
        screw if stage.dof >= 0 else jnp.zeros_like(screw),
        body,
        rotor if stage.rotates else jnp.zeros_like(rotor),
        gear,
        pose.rotation @ axis,
    )


def _local(carrier: Carrier, layout: ArmLayout, k: int, x: JointValues) -> se3.Pose:
    """Pose of a stage's body in the frame of the one before."""
    stage, before, screw = layout.stages[k], carrier.before[k], carrier.screw[k]
    if stage.dof < 0:
        return before
    if not stage.rotates:
        shift = mv(before.rotation, screw[:3] * x[stage.dof])
        return se3.Pose(before.rotation, before.position + shift)
    # Rodrigues' formula about a unit axis: the exponential of a twist needs series near zero.
    axis, sine, cosine = screw[3:], jnp.sin(x[stage.dof]), jnp.cos(x[stage.dof])
    eye = jnp.eye(3, dtype=axis.dtype)
    rotation = cosine * eye + sine * skew(axis) + (1 - cosine) * outer(axis, axis)
    return se3.Pose(mm(before.rotation, rotation), before.position)


def frames(carrier: Carrier, layout: ArmLayout, x: JointValues, base: se3.Pose) -> list[se3.Pose]:
    """World poses of the stages' bodies. The last one is the joint frame."""
    poses, pose = [], base
    for k in range(len(layout.stages)):
        pose = se3.compose(pose, _local(carrier, layout, k, x))
        poses.append(pose)
    return poses


def twists(
    carrier: Carrier,
    layout: ArmLayout,
    x: JointValues,
    xd: JointValues,
    base: se3.Twist | None = None,
) -> tuple[list[Array], list[Array]]:
    """Body twists of the stages, and the rates of their rotors about their axes.

    ``base`` is the twist of the ground, None at rest.
    """
    z, out, spins = base, [], []
    for k, stage in enumerate(layout.stages):
        rate = xd[stage.dof] if stage.dof >= 0 else jnp.zeros((), xd.dtype)
        own = carrier.screw[k] * rate
        carried = 0.0 if z is None else jnp.sum(carrier.rotor_axis[k] * z[3:])
        spins.append(carrier.gear[k] * rate + carried)
        z = own if z is None else se3.adjoint_inverse(_local(carrier, layout, k, x)) @ z + own
        out.append(z)
    return out, spins
