"""What carries the arm: rigid links and joints from the ground to the joint frame, and the numbers of the arm itself."""

from collections.abc import Iterable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.moving_beam._layout import Layout
from flexjax.formulation.moving_beam._link import Arm
from flexjax.mechanism import (
    beam_properties,
    centreline_pose,
    hub_inertia,
    inertia_tensor,
    or_zero,
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


class Carrier(eqx.Module):
    """Per stage: the pose from the parent's frame to the joint, the screw, the inertia of the body behind it, the rotor (inertia, gear, axis)."""

    before: tuple[se3.Pose, ...]
    screw: Float[Array, "stages 6"]
    inertia: Float[Array, "stages 6 6"]
    rotor: Float[Array, " stages"]
    gear: Float[Array, " stages"]
    rotor_axis: Float[Array, "stages 3"]  # in the parent's axes


class Tip(eqx.Module):
    """Payloads on the tubes: station, 6x6 inertia about the section's point in section axes."""

    tube: tuple[int, ...] = eqx.field(static=True)
    s: tuple[Array, ...]
    mass: tuple[Array, ...]
    offset: tuple[Array, ...]
    inertia: tuple[Array, ...]


def carrier(robot: Robot, lay: Layout) -> Carrier:
    like = robot.gravity
    before, screw, inertia, rotor, gear, axes = [], [], [], [], [], []
    for stage in lay.stages:
        joint = robot.joints[stage.joint]
        parent = robot.link_index(joint.parent)
        pose = se3.identity(like.dtype)
        if stage.part == 0:
            tip = (
                se3.identity(like.dtype)
                if parent < 0
                else centreline_pose(robot.links[parent], jnp.ones((), like.dtype))
            )
            pose = se3.compose(tip, placement(joint, like))
        axis = rotation_axis(joint, stage.part, like) if stage.turns else shift_axis(joint, like)
        zero = jnp.zeros(3, like.dtype)
        column = (
            jnp.concatenate([zero, axis] if stage.turns else [axis, zero])
            if stage.dof >= 0
            else jnp.zeros(6, like.dtype)
        )
        body = hub_inertia(joint, like) if stage.last else jnp.zeros((6, 6), like.dtype)
        if stage.link >= 0:
            link = robot.links[stage.link]
            body = body + rigid_inertia(link)
            for payload in robot.payloads:
                if payload.link == link.name:
                    body = body + payload_inertia(payload, centreline_pose(link, payload.s))
        inertia_of_rotor, ratio = rotor_and_gear(joint, like)
        before.append(pose)
        screw.append(column)
        inertia.append(body)
        rotor.append(inertia_of_rotor if stage.turns else jnp.zeros((), like.dtype))
        gear.append(ratio)
        axes.append(pose.rotation @ axis)
    return Carrier(tuple(before), *(jnp.stack(x) for x in (screw, inertia, rotor, gear, axes)))


def payloads(robot: Robot, lay: Layout) -> Tip:
    like = robot.gravity
    names = [robot.links[i].name for i in lay.tubes]
    mine = [p for p in robot.payloads if p.link in names]
    return Tip(
        tuple(names.index(p.link) for p in mine),
        tuple(p.s for p in mine),
        tuple(p.mass for p in mine),
        tuple(or_zero(p.offset, like, (3,)) for p in mine),
        tuple(inertia_tensor(p.inertia, like) for p in mine),
    )


def _positions(robot: Robot, lay: Layout):
    """Front and rear ends of the tubes and borders of the segments, each as (constant, slopes)."""
    like = robot.gravity
    lengths = jnp.stack([robot.links[i].length for i in lay.tubes])
    m = len(lay.lengths)
    unit = np.eye(m)
    tip = (jnp.zeros((), like.dtype), unit[0]) if lay.slides else (lengths[0], np.zeros(m))
    tips = [tip]
    for k in range(1, len(lay.tubes)):
        tips.append((tips[-1][0], tips[-1][1] + unit[lay.length_of_tube[k]]))
    rears = [(c - lengths[k], g) for k, (c, g) in enumerate(tips)]
    zero = (jnp.zeros((), like.dtype), np.zeros(m))
    link = robot.links[lay.tubes[0]]
    if len(lay.tubes) == 1 and link.pieces:
        ends = jnp.cumsum(jnp.stack([p.fraction for p in link.pieces])) * link.length
        borders = [zero] + [(ends[i], np.zeros(m)) for i in range(len(link.pieces))]
    elif len(lay.tubes) == 1:
        borders = [zero, tips[0]]
    else:
        borders = (
            [zero]
            + [x for k in range(1, len(lay.tubes)) for x in (rears[k], tips[k - 1])]
            + [tips[-1]]
        )
    return lengths, tips, rears, borders


def arm(robot: Robot, lay: Layout, rotary: bool) -> Arm:
    """The numbers of the arm; pure and traceable in the robot's leaves."""
    like, m = robot.gravity, len(lay.lengths)
    lengths, tips, rears, borders = _positions(robot, lay)
    start, slope = [borders[0][0]], [borders[0][1]]
    depth = max(len(s.layers) for s in lay.segments)
    rows = {name: [] for name in ("stiffness", "viscosity", "rhoA", "rhoI", "drag", "speed")}
    links = [robot.links[i] for i in lay.tubes]
    for k, seg in enumerate(lay.segments):
        (c0, g0), (c1, g1) = borders[k], borders[k + 1]
        for j in range(1, seg.elements + 1):
            share = j / seg.elements
            start.append(c0 + share * (c1 - c0))
            slope.append(g0 + share * (g1 - g0))
        layers = []
        for tube in seg.layers:
            link = links[tube]
            middle = 0.5 * jnp.ones((), like.dtype)
            if link.pieces:
                before = sum((p.fraction for p in link.pieces[:k]), jnp.zeros((), like.dtype))
                middle = before + 0.5 * link.pieces[k].fraction
            p = beam_properties(link, middle[None])
            damping = link.damping
            tau = or_zero(None if damping is None else damping.strain_rate, like)
            drag = or_zero(None if damping is None else damping.mass, like)
            K = jnp.stack([p.EA[0], p.GJ[0], p.EIy[0], p.EIz[0]])
            I = (
                jnp.stack([p.rhoIx[0], p.rhoIy[0], p.rhoIz[0]])
                if rotary
                else jnp.zeros(3, like.dtype)
            )
            layers.append(
                (K, tau * K, p.rhoA[0], I, drag * p.rhoA[0], jnp.asarray(tips[tube][1], like.dtype))
            )
        empty = jax_zeros_like(layers[0])
        layers += [empty] * (depth - len(layers))
        K, C, rhoA, I, drag, v = (jnp.stack(x) for x in zip(*layers, strict=True))
        for name, value in zip(rows, (jnp.sum(K, 0), jnp.sum(C, 0), rhoA, I, drag, v), strict=True):
            rows[name] += [value] * seg.elements
    first = beam_properties(links[0], 0.5 * jnp.ones(1, like.dtype))
    rear = None
    if lay.slides:
        inertia = [first.rhoIx[0], first.rhoIy[0], first.rhoIz[0]]
        rear = jnp.stack([first.rhoA[0], *(inertia if rotary else [jnp.zeros((), like.dtype)] * 3)])

    def slopes(table):
        return jnp.asarray(np.array(table).reshape(len(table), m), like.dtype)

    damped = [link.damping for link in links if link.damping is not None]
    return Arm(
        start=jnp.stack(start), slope=slopes(slope), tube_start=jnp.stack([c for c, _ in rears]), tube_slope=slopes([g for _, g in rears]),
        tube_length=lengths, rear=rear, shapes=lay.shapes,
        viscous=any(x.strain_rate is not None for x in damped), dragged=any(x.mass is not None for x in damped),
        **{name: jnp.stack(x) for name, x in rows.items()},
    )  # fmt: skip


def jax_zeros_like(tree: Iterable[Array]):
    return tuple(jnp.zeros_like(x) for x in tree)


def _local(car: Carrier, lay: Layout, k: int, x: Float[Array, " D"]) -> se3.Pose:
    stage, before, screw = lay.stages[k], car.before[k], car.screw[k]
    if stage.dof < 0:
        return before
    if not stage.turns:
        return se3.Pose(
            before.rotation, before.position + mv(before.rotation, screw[:3] * x[stage.dof])
        )
    # Rodrigues' formula about a unit axis: less than the exponential of a twist, which needs series near zero.
    axis, sine, cosine = screw[3:], jnp.sin(x[stage.dof]), jnp.cos(x[stage.dof])
    turn = (
        cosine * jnp.eye(3, dtype=axis.dtype) + sine * skew(axis) + (1 - cosine) * outer(axis, axis)
    )
    return se3.Pose(mm(before.rotation, turn), before.position)


def frames(car: Carrier, lay: Layout, x: Float[Array, " D"], base: se3.Pose) -> list[se3.Pose]:
    """World poses of the stages' bodies. The last one is the joint frame."""
    poses, pose = [], base
    for k in range(len(lay.stages)):
        pose = se3.compose(pose, _local(car, lay, k, x))
        poses.append(pose)
    return poses


def twists(
    car: Carrier,
    lay: Layout,
    x: Float[Array, " D"],
    xd: Float[Array, " D"],
    base: Float[Array, " 6"] | None,
) -> tuple[list[Array], list[Array]]:
    """Body twists of the stages, and the rates of their rotors about their axes. ``base`` None: the ground is at rest."""
    z, out, spins = base, [], []
    for k, stage in enumerate(lay.stages):
        rate = xd[stage.dof] if stage.dof >= 0 else jnp.zeros((), xd.dtype)
        own = car.screw[k] * rate
        spins.append(
            car.gear[k] * rate + (0.0 if z is None else jnp.sum(car.rotor_axis[k] * z[3:]))
        )
        z = own if z is None else se3.adjoint_inverse(_local(car, lay, k, x)) @ z + own
        out.append(z)
    return out, spins
