"""The arm in space as one chain: masses and compliances of the segments, axes of the joints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix._chain import Layout
from flexjax.formulation.transfer_matrix._link import bending_lag, locate
from flexjax.mechanism import (
    JointHardware,
    beam_properties,
    centreline_pose,
    hub_inertia,
    inertia_tensor,
    joint_hardware,
    or_zero,
    placement,
    rigid_inertia,
    rotation_axis,
)
from flexjax.robot import Joint, Link, Robot


class SpatialChain(eqx.Module):
    """Bodies (n) in their own axes, from the inboard point; connection i stands before body i.

    ``give_in`` and ``give_out`` are the compliances of the half segments about the axes of the body
    (torsion, bending about y, about z), ``slow_in`` and ``slow_out`` those times the retardation
    time of their material, ``lag_in`` and ``lag_out`` those times the time in which they bend where
    they have no mass of their own. ``fix`` turns the parent's axes into those in which the joint
    stands; ``axes`` are the joint's axes there (rows; zero where there is none)."""

    reach: Float[Array, "n 3"]
    mass: Float[Array, " n"]
    moment: Float[Array, "n 3"]
    inertia: Float[Array, "n 3 3"]
    give_in: Float[Array, "n 3"]
    give_out: Float[Array, "n 3"]
    slow_in: Float[Array, "n 3"]
    slow_out: Float[Array, "n 3"]
    lag_in: Float[Array, "n 3"]
    lag_out: Float[Array, "n 3"]
    fix: Float[Array, "n 3 3"]
    axes: Float[Array, "n 2 3"]
    joint_give: Float[Array, " n"]  # of a flexible joint about its first axis
    joint_slow: Float[Array, " n"]
    damping: Float[Array, " D"]
    joints: JointHardware
    offset: Float[Array, "3"]
    gravity: Float[Array, "3"]


def _segments(link: Link, count: int) -> dict[str, Array]:
    """Equal segments of a straight link; the integrals of the planar version, with torsion and both
    bendings."""
    dtype = link.length.dtype
    edges = jnp.asarray(np.arange(2 * count + 1) / (2 * count), dtype)
    ends = jnp.zeros(1, dtype)
    if link.pieces:
        ends = jnp.concatenate(
            [ends, jnp.cumsum(jnp.stack([p.fraction for p in link.pieces]))[:-1]]
        )
    ends = jnp.concatenate([ends, jnp.ones(1, dtype)])
    low = jnp.clip(ends[:-1, None], edges[None, :-1], edges[None, 1:])
    high = jnp.clip(ends[1:, None], edges[None, :-1], edges[None, 1:])
    gauss = jnp.asarray(np.array([-1, 1]) / (2 * np.sqrt(3)) + 0.5, dtype)
    s = low[..., None] + (high - low)[..., None] * gauss[None, None]
    weight = jnp.broadcast_to(0.5 * link.length * (high - low)[..., None], s.shape)
    props = jax.tree.map(lambda v: v.reshape(s.shape), beam_properties(link, s.reshape(-1)))
    along = (s - jnp.repeat(edges[:-1:2], 2)[None, :, None]) * link.length

    def halves(x):
        return jnp.sum(weight * x, axis=(0, 2)).reshape(count, 2)

    def whole(x):
        return jnp.sum(halves(x), axis=1)

    give = jnp.stack([halves(1 / k) for k in (props.GJ, props.EIy, props.EIz)], -1)
    tau = (
        jnp.zeros((), dtype)
        if link.damping is None or link.damping.strain_rate is None
        else link.damping.strain_rate
    )
    zero = jnp.zeros(count, dtype)
    second = whole(props.rhoA * along**2)
    spin = [whole(props.rhoIx), second + whole(props.rhoIy), second + whole(props.rhoIz)]
    inertia = jnp.stack(spin, -1)[:, :, None] * jnp.eye(3, dtype=dtype)[None]
    mass, first = whole(props.rhoA), whole(props.rhoA * along)
    lever = jnp.asarray([0.0, 1.0, 1.0], dtype)
    own = jnp.stack(spin, -1) - (first**2 / mass)[:, None] * lever[None]
    lag = bending_lag(give, own[:, None], tau)
    return dict(
        reach=jnp.stack([zero + link.length / count, zero, zero], -1),
        mass=mass,
        inertia=inertia,
        moment=jnp.stack([first, zero, zero], -1),
        give_in=give[:, 0],
        give_out=give[:, 1],
        slow_in=tau * give[:, 0],
        slow_out=tau * give[:, 1],
        lag_in=lag[:, 0],
        lag_out=lag[:, 1],
    )


def _rigid(link: Link) -> dict[str, Array]:
    dtype = link.length.dtype
    M, zero = rigid_inertia(link), jnp.zeros((1, 3), dtype)
    tip = centreline_pose(link, jnp.ones((), dtype))
    return dict(
        reach=tip.position[None],
        mass=M[:1, 0],
        moment=jnp.stack([M[1, 5], M[2, 3], M[0, 4]])[None],
        inertia=M[None, 3:, 3:],
        give_in=zero,
        give_out=zero,
        slow_in=zero,
        slow_out=zero,
        lag_in=zero,
        lag_out=zero,
    )


def _add(rows, where, mass, at, inertia):
    """A rigid mass at ``at`` (n, 3) on the bodies weighted by ``where`` (n,)."""
    m = where * mass
    spread = (
        jnp.sum(at**2, axis=1)[:, None, None] * jnp.eye(3, dtype=at.dtype)[None]
        - at[:, :, None] * at[:, None]
    )
    return rows | dict(
        mass=rows["mass"] + m,
        moment=rows["moment"] + m[:, None] * at,
        inertia=rows["inertia"] + where[:, None, None] * inertia[None] + m[:, None, None] * spread,
    )


def _link_rows(robot: Robot, joint: Joint, span) -> dict[str, Array]:
    link = robot.links[span.link]
    dtype = link.length.dtype
    rows = _rigid(link) if span.rigid else _segments(link, span.count)
    for payload in robot.payloads:
        if payload.link != link.name:
            continue
        offset = or_zero(payload.offset, link.length, (3,))
        about = inertia_tensor(payload.inertia, link.length)
        if span.rigid:
            pose = centreline_pose(link, payload.s)
            where, at = jnp.ones(1, dtype), (pose.position + pose.rotation @ offset)[None]
            about = pose.rotation @ about @ pose.rotation.T
        else:
            where, along = locate(span.count, payload.s, link.length)
            at = along[:, None] * jnp.asarray([[1.0, 0.0, 0.0]], dtype) + offset[None]
        rows = _add(rows, where, payload.mass, at, about)
    hub = hub_inertia(joint, robot.gravity)
    first = jnp.zeros(rows["mass"].shape[0], dtype).at[0].set(1.0)
    return _add(rows, first, hub[0, 0], jnp.zeros_like(rows["moment"]), hub[3:, 3:])


def spatial_chain(robot: Robot, layout: Layout) -> SpatialChain:
    """Pure and traceable in the robot's leaves."""
    dtype = robot.gravity.dtype
    parts = [_link_rows(robot, robot.joints[s.joint], s) for s in layout.spans]
    rows = {k: jnp.concatenate([p[k] for p in parts]) for k in parts[0]}
    fix = jnp.broadcast_to(jnp.eye(3, dtype=dtype)[None], (layout.n, 3, 3))
    axes = jnp.zeros((layout.n, 2, 3), dtype)
    give, slow = jnp.zeros((2, layout.n), dtype)
    offset = jnp.zeros(3, dtype)
    for k, span in enumerate(layout.spans):
        joint = robot.joints[span.joint]
        place = placement(joint, robot.gravity)
        before = jnp.eye(3, dtype=dtype)
        if k > 0:
            parent = layout.spans[k - 1]
            if parent.rigid:
                before = centreline_pose(robot.links[parent.link], jnp.ones((), dtype)).rotation
            rows["reach"] = rows["reach"].at[span.first - 1].add(before @ place.position)
        else:
            offset = place.position
        fix = fix.at[span.first].set(before @ place.rotation)
        for j in range(joint.dofs):
            axes = axes.at[span.first, j].set(rotation_axis(joint, j, robot.gravity))
        if joint.stiffness is not None:
            give = give.at[span.first].set(1 / joint.stiffness)
            if joint.damping is not None:
                slow = slow.at[span.first].set(joint.damping / joint.stiffness**2)
    joints = joint_hardware(robot)
    # The damper of a flexible joint acts along its spring.
    rigid = [not j.flexible for j in robot.tree_joints for _ in range(j.dofs)]
    return SpatialChain(
        **rows,
        fix=fix,
        axes=axes,
        joint_give=give,
        joint_slow=slow,
        damping=jnp.where(np.array(rigid, bool), joints.damping, 0.0),
        joints=joints,
        offset=offset,
        gravity=robot.gravity,
    )
