"""Links as rigid segments joined by springs: inertia, compliances, and the joints between them.

Geometry and inertia come from the robot in space; a planar chain keeps x, y and the rotation about
z.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.transfer_matrix._layout import Layout, Span
from flexjax.mechanism import (
    Curve,
    JointHardware,
    beam_properties,
    centreline_pose,
    hub_inertia,
    joint_hardware,
    or_zero,
    payload_inertia,
    placement,
    rigid_inertia,
    rotation_axis,
)
from flexjax.mechanism._grouping import vmap_groups
from flexjax.numerics.screw import Plane, Space, se3
from flexjax.robot import Joint, Link, Payload, Robot

# A hub without rotary inertia between two springs has no equation of motion; it gets this share of
# the first segment's inertia.
HUB_FLOOR = 1e-3


class Bodies(eqx.Module):
    """Rigid bodies from root to tip, in body axes along the chord, from the inboard point.

    A planar chain has d = 2 and scalars for inertia and compliance; a spatial chain has d = 3,
    inertia matrices, and compliances about x, y, z (torsion, two bendings). The second axis of the
    compliances is the inboard and the outboard half segment. ``tau`` is the retardation time of
    the material, ``lag`` the time in which a half segment bends that has no mass of its own.
    """

    reach: Float[Array, "n d"]  # to the inboard point of the next body
    mass: Float[Array, " n"]
    moment: Float[Array, "n d"]  # mass times centre of mass
    inertia: Float[Array, "n ..."]  # about the inboard point
    compliance: Float[Array, "n 2 ..."]  # [rad/(N m)]
    compliance_times_tau: Float[Array, "n 2 ..."]
    compliance_times_lag: Float[Array, "n 2 ..."]
    rest_angle: Float[Array, "n 2"]  # unstressed, about z: from section to chord, chord to section


def on_segment(link: Link, count: int, distance: Array) -> tuple[Array, Array, Array]:
    """Unstressed points at ``distance`` from the inboard point of a segment.

    Returns x and y in the axes of the chord, and the angle of the section. Curved links are arcs.
    """
    zero = jnp.zeros_like(distance)
    if link.curvature is None:
        return distance, zero, zero
    half = 0.5 * link.curvature[2] * distance
    tilt = 0.5 * link.curvature[2] * link.length / count
    chord = distance * jnp.sinc(half / jnp.pi)
    return chord * jnp.cos(half - tilt), chord * jnp.sin(half - tilt), 2 * half - tilt


def section_between(count: int, s: Float[Array, "*S"]) -> tuple[Array, Array]:
    """Where stations are among the orientations of root section, segments and tip section: index of
    the one before, and share of the next.

    Sections rotate evenly between the middles of segments, whose axes are those of the segments.
    """
    u = s * count
    knots = np.concatenate([[0.0], np.arange(count) + 0.5, [count]])
    knots = jnp.asarray(knots, s.dtype)
    j = jnp.clip(jnp.floor(u + 0.5), 0, count).astype(int)
    return j, (u - knots[j]) / (knots[j + 1] - knots[j])


def locate(count: int, s: Scalar, length: Scalar) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Weights of the segments (one for that which contains station ``s``), and the distances of s
    from their inboard points."""
    index = jnp.clip(jnp.floor(s * count), 0, count - 1)
    numbers = jnp.arange(count, dtype=length.dtype)
    return (numbers == index).astype(length.dtype), (s - numbers / count) * length


def _lag(compliance: Array, inertia: Array, tau: Scalar) -> Array:
    """Time in which a half segment bends: the retardation time ``tau`` of the material, and what
    the ``inertia`` of a segment about its centre permits (second order in its length)."""
    square = compliance * inertia
    present = square > 0  # sections without rotary inertia: the root has no derivative at zero
    return tau + jnp.where(present, jnp.sqrt(jnp.where(present, square, 1.0)), 0.0)


def _half_segments(link: Link, count: int) -> tuple[Array, Array, Array]:
    """Gauss stations (pieces, halves, 2), their weights, and their distances from the inboard
    point of their segment.

    Every half segment is cut where pieces meet, so that integrals depend smoothly on the borders.
    """
    dtype = link.length.dtype
    edges = jnp.asarray(np.arange(2 * count + 1) / (2 * count), dtype)
    ends = jnp.zeros(1, dtype)
    if link.pieces:
        inner = jnp.cumsum(jnp.stack([p.fraction for p in link.pieces]))[:-1]
        ends = jnp.concatenate([ends, inner])
    ends = jnp.concatenate([ends, jnp.ones(1, dtype)])
    low = jnp.clip(ends[:-1, None], edges[None, :-1], edges[None, 1:])
    high = jnp.clip(ends[1:, None], edges[None, :-1], edges[None, 1:])
    gauss = jnp.asarray(np.array([-1, 1]) / (2 * np.sqrt(3)) + 0.5, dtype)
    s = low[..., None] + (high - low)[..., None] * gauss[None, None]
    weight = jnp.broadcast_to(0.5 * link.length * (high - low)[..., None], s.shape)
    return s, weight, (s - jnp.repeat(edges[:-1:2], 2)[None, :, None]) * link.length


def segment_bodies(link: Link, count: int, rotary: bool, planar: bool) -> Bodies:
    """Equal segments. Two Gauss points per half integrate linearly varying properties exactly."""
    dtype, length = link.length.dtype, link.length / count
    s, weight, distance = _half_segments(link, count)
    props = jax.tree.map(lambda v: v.reshape(s.shape), beam_properties(link, s.reshape(-1)))
    x, y, _ = on_segment(link, count, distance)

    def halves(density: Array) -> Array:
        return jnp.sum(weight * density, axis=(0, 2)).reshape(count, 2)

    def whole(density: Array) -> Array:
        return jnp.sum(halves(density), axis=1)

    # About x, y, z. An elastic link in space is straight, so its inertia is diagonal.
    stiffness = (props.GJ, props.EIy, props.EIz)
    section = (props.rhoIx, props.rhoIy, props.rhoIz)
    lever = (y**2, x**2, x**2 + y**2)
    axes = (2,) if planar else (0, 1, 2)
    compliance = jnp.stack([halves(1 / stiffness[k]) for k in axes], -1)
    inertia = jnp.stack([whole(props.rhoA * lever[k] + rotary * section[k]) for k in axes], -1)
    zero, mass = jnp.zeros(count, dtype), whole(props.rhoA)
    first = jnp.stack([whole(props.rhoA * x), whole(props.rhoA * y), zero], -1)
    square = first**2
    about_centre = inertia - ((jnp.sum(square, 1)[:, None] - square) / mass[:, None])[:, axes]
    tau = or_zero(link.damping and link.damping.strain_rate, link.length)
    lag = _lag(compliance, about_centre[:, None], tau)
    rest, chord = zero, length
    if link.curvature is not None:
        rest = rest + 0.5 * link.curvature[2] * length
        chord = length * jnp.sinc(rest[0] / jnp.pi)
    if planar:
        compliance, lag, inertia = compliance[..., 0], lag[..., 0], inertia[..., 0]
    else:
        inertia = inertia[:, :, None] * jnp.eye(3, dtype=dtype)[None]
    dim = 2 if planar else 3
    return Bodies(
        reach=jnp.stack([zero + chord, zero, zero], -1)[:, :dim],
        mass=mass,
        moment=first[:, :dim],
        inertia=inertia,
        compliance=compliance,
        compliance_times_tau=tau * compliance,
        compliance_times_lag=lag * compliance,
        rest_angle=jnp.stack([rest, rest], -1),
    )


def _inertia_parts(M: Float[Array, "n 6 6"], planar: bool) -> tuple[Array, Array, Array]:
    """Mass, first moment and inertia of mass matrices about the inboard point."""
    if planar:
        return M[:, 0, 0], jnp.stack([M[:, 1, 5], -M[:, 0, 5]], -1), M[:, 5, 5]
    return M[:, 0, 0], jnp.stack([M[:, 1, 5], M[:, 2, 3], M[:, 0, 4]], -1), M[:, 3:, 3:]


def _rigid(M: Float[Array, "6 6"], tip: se3.Pose, planar: bool) -> Bodies:
    """One body without compliance, from its mass matrix and the pose of its tip."""
    axes, zero = () if planar else (3,), jnp.zeros(1, M.dtype)
    none = jnp.zeros((1, 2, *axes), M.dtype)
    angle = jnp.arctan2(tip.rotation[1, 0], tip.rotation[0, 0])
    reach = tip.position[None, : 2 if planar else 3]
    rest = jnp.stack([zero, angle[None]], -1)
    return Bodies(reach, *_inertia_parts(M[None], planar), none, none, none, rest)


def _add_inertia(bodies: Bodies, M: Float[Array, "n 6 6"], planar: bool) -> Bodies:
    parts = (bodies.mass, bodies.moment, bodies.inertia)
    total = [a + b for a, b in zip(parts, _inertia_parts(M, planar), strict=True)]
    return eqx.tree_at(lambda b: (b.mass, b.moment, b.inertia), bodies, total)


def _payload(link: Link, count: int, payload: Payload) -> Float[Array, "count 6 6"]:
    """Mass matrices about the inboard points of the bodies, zero where the payload is not."""
    if not link.elastic:
        return payload_inertia(payload, centreline_pose(link, payload.s))[None]
    where, distance = locate(count, payload.s, link.length)
    x, y, tilt = on_segment(link, count, distance)
    zero = jnp.zeros_like(x)
    rotation = jax.vmap(se3.rotation_exp)(jnp.stack([zero, zero, tilt], -1))
    pose = se3.Pose(rotation, jnp.stack([x, y, zero], -1))
    return where[:, None, None] * jax.vmap(lambda p: payload_inertia(payload, p))(pose)


def stacked(parts: list[Bodies]) -> Bodies:
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def elastic_bodies(robot: Robot, layout: Layout, rotary: bool) -> dict[int, Bodies]:
    """Segments of every elastic link, by the link; equal links are computed side by side."""
    found = {}
    spans = [s for s in layout.spans if not s.rigid]
    for count in sorted({s.count for s in spans}):
        links = [s.link for s in spans if s.count == count]
        items = [(None, dataclasses.replace(robot.links[i], name="")) for i in links]
        one = lambda _, link, n=count: segment_bodies(link, n, rotary, layout.planar)
        together = vmap_groups(one, items)
        found |= {i: jax.tree.map(lambda x, k=k: x[k], together) for k, i in enumerate(links)}
    return found


def link_bodies(
    robot: Robot, joint: Joint, elastic: Bodies | None, *, hub: bool, planar: bool
) -> Bodies:
    """Bodies of the link behind ``joint``, root to tip: ``elastic``, or one that is rigid.

    ``hub``: the hub is a body of its own.
    """
    link = robot.links[robot.link_index(joint.child)]
    if elastic is not None:
        bodies, count = elastic, elastic.mass.shape[0]
    else:
        count = 1
        # The axes of the body are those of the base section.
        bodies = _rigid(
            rigid_inertia(link), centreline_pose(link, jnp.ones_like(link.length)), planar
        )
    for payload in robot.payloads:
        if payload.link == link.name:
            bodies = _add_inertia(bodies, _payload(link, count, payload), planar)
    M = hub_inertia(joint, link.length)
    if hub:
        first = _rigid(M, se3.identity(M.dtype), planar)
        least = jnp.maximum(first.inertia, HUB_FLOOR * bodies.inertia[:1])
        return stacked([eqx.tree_at(lambda b: b.inertia, first, least), bodies])
    at_root = jnp.zeros(bodies.mass.shape[0], M.dtype).at[0].set(1.0)
    return _add_inertia(bodies, at_root[:, None, None] * M[None], planar)


class PlanarConnections(eqx.Module):
    """Parameters of the connections (n,) of a planar chain.

    ``spring`` and ``damper`` contain all compliances in series (half segments and joint spring);
    ``joint_share`` is the part of the rotation that the joint spring takes. The compliances are
    those of the half segments alone.
    """

    rest: Float[Array, " n"]  # unstressed angle
    spring: Float[Array, " n"]
    damper: Float[Array, " n"]
    compliance: Float[Array, " n"]
    compliance_times_tau: Float[Array, " n"]
    compliance_times_lag: Float[Array, " n"]
    joint_share: Float[Array, " n"]


class SpatialConnections(eqx.Module):
    """Parameters of the connections of a spatial chain.

    The second axis of the compliances is the outboard half segment of the parent, in its axes, and
    the inboard half segment of the body.
    """

    rest: Float[Array, "n 3 3"]  # from the parent's axes to those of the joint
    axes: Float[Array, "n 2 3"]  # of the joint, as rows; zero where it has none
    compliance: Float[Array, "n 2 3"]
    compliance_times_tau: Float[Array, "n 2 3"]
    compliance_times_lag: Float[Array, "n 2 3"]
    joint_compliance: Float[Array, " n"]  # of a flexible joint about its first axis
    joint_compliance_times_tau: Float[Array, " n"]


class Chain(eqx.Module):
    """All parameters of the equations of motion."""

    bodies: Bodies
    connections: PlanarConnections | SpatialConnections
    hardware: JointHardware
    offset: Float[Array, " d"]  # of the first joint from the ground frame
    gravity: Float[Array, " d"]


def build_chain(robot: Robot, layout: Layout, rotary: bool) -> Chain:
    """Pure and traceable in the robot's leaves."""
    planar, like = layout.planar, robot.gravity
    elastic = elastic_bodies(robot, layout, rotary)
    bodies = stacked(
        [
            link_bodies(
                robot,
                robot.joints[s.joint],
                elastic.get(s.link),
                hub=s.start > s.first,
                planar=planar,
            )
            for s in layout.spans
        ]
    )
    joint_compliance, joint_tau = jnp.zeros((2, layout.n), like.dtype)
    for s in layout.spans:
        joint = robot.joints[s.joint]
        if joint.stiffness is not None:
            joint_compliance = joint_compliance.at[s.first].set(1 / joint.stiffness)
            if joint.damping is not None:
                joint_tau = joint_tau.at[s.first].set(joint.damping / joint.stiffness**2)
    connect = _planar_connections if planar else _spatial_connections
    connections = connect(robot, layout, bodies, joint_compliance, joint_tau)
    offset, bodies = _with_offsets(robot, layout, bodies)
    dim = 2 if planar else 3
    return Chain(bodies, connections, joint_hardware(robot), offset, like[:dim])


def _with_offsets(robot: Robot, layout: Layout, bodies: Bodies) -> tuple[Array, Bodies]:
    """Offset of the first joint, and the bodies with the offsets of the joints behind them.

    An offset is given in the axes of the tip section. The last segment carries it, whose axes
    differ by the rotation of half a spring.
    """
    dim = 2 if layout.planar else 3
    first, reach = jnp.zeros(dim, robot.gravity.dtype), bodies.reach
    for k, s in enumerate(layout.spans):
        joint = robot.joints[s.joint]
        if joint.offset is None:
            continue
        if k == 0:
            first = joint.offset[:dim]
        elif layout.planar:
            offset = Plane.rotate(bodies.rest_angle[s.first - 1, 1], joint.offset[:2])
            reach = reach.at[s.first - 1].add(offset)
        else:
            offset = Space.rotate(_tip_rotation(robot, layout.spans[k - 1]), joint.offset)
            reach = reach.at[s.first - 1].add(offset)
    return first, eqx.tree_at(lambda b: b.reach, bodies, reach)


def _tip_rotation(robot: Robot, span: Span) -> Float[Array, "3 3"]:
    """Unstressed rotation from the axes of the last body of a link to its tip section, in space."""
    link = robot.links[span.link]
    if not span.rigid:
        return jnp.eye(3, dtype=link.length.dtype)
    return centreline_pose(link, jnp.ones_like(link.length)).rotation


def _beside(layout: Layout, halves: Float[Array, "n 2 ..."]) -> Float[Array, "n 2 ..."]:
    """Parameters of the half segments inboard and outboard of each connection."""
    inboard = jnp.concatenate([jnp.zeros_like(halves[:1, 1]), halves[:-1, 1]])
    pairs = jnp.stack([inboard, halves[:, 0]], 1)
    if layout.half:
        return pairs
    inside = np.ones((layout.n,) + (1,) * (pairs.ndim - 1))
    inside[[s.first for s in layout.spans]] = 0.0
    return pairs * jnp.asarray(inside, pairs.dtype)


def _planar_connections(
    robot: Robot, layout: Layout, bodies: Bodies, joint_compliance: Array, joint_tau: Array
) -> PlanarConnections:
    def in_series(halves: Array) -> Array:
        return jnp.sum(_beside(layout, halves), axis=1)

    before = jnp.concatenate([jnp.zeros_like(bodies.mass[:1]), bodies.rest_angle[:-1, 1]])
    rest = before + bodies.rest_angle[:, 0]
    soft = layout.compliant.copy()
    for s in layout.spans:
        soft[s.first] |= s.motor >= 0
        rotation = robot.joints[s.joint].rotation
        if rotation is not None:
            rest = rest.at[s.first].add(rotation[2])
    compliance = in_series(bodies.compliance)
    total = compliance + joint_compliance
    # A connection without compliance is rigid: neither an infinity nor a NaN gradient.
    total = jnp.where(soft, total, 1.0)
    spring = jnp.where(soft, 1 / total, 0.0)
    late = in_series(bodies.compliance_times_tau)
    return PlanarConnections(
        rest=rest,
        spring=spring,
        damper=spring**2 * (late + joint_tau),
        compliance=compliance,
        compliance_times_tau=late,
        compliance_times_lag=in_series(bodies.compliance_times_lag),
        joint_share=jnp.where(soft, joint_compliance / total, 0.0),
    )


def _spatial_connections(
    robot: Robot, layout: Layout, bodies: Bodies, joint_compliance: Array, joint_tau: Array
) -> SpatialConnections:
    like = robot.gravity
    rest = jnp.broadcast_to(jnp.eye(3, dtype=like.dtype)[None], (layout.n, 3, 3))
    axes = jnp.zeros((layout.n, 2, 3), like.dtype)
    for k, s in enumerate(layout.spans):
        joint = robot.joints[s.joint]
        rotation = placement(joint, like).rotation
        if k > 0:
            rotation = _tip_rotation(robot, layout.spans[k - 1]) @ rotation
        rest = rest.at[s.first].set(rotation)
        for j in range(s.axes):
            axes = axes.at[s.first, j].set(rotation_axis(joint, j, like))
    return SpatialConnections(
        rest=rest,
        axes=axes,
        compliance=_beside(layout, bodies.compliance),
        compliance_times_tau=_beside(layout, bodies.compliance_times_tau),
        compliance_times_lag=_beside(layout, bodies.compliance_times_lag),
        joint_compliance=joint_compliance,
        joint_compliance_times_tau=joint_tau,
    )


def rise(curve: Curve, count: int, length: Scalar) -> Float[Array, "2 count+1"]:
    """Slopes of the segments of a deflected link, which end on the curve, and of its tip."""
    ends = curve(np.arange(count + 1) / count)
    return jnp.concatenate([jnp.diff(ends[0], axis=1) * count, ends[1, :, -1:]], axis=1) / length


def before(x: Array, first: Array, whole: bool = False) -> Array:
    """What is inboard of each connection: ``first`` for the ground, then x of the bodies
    (``whole``: of the last one too)."""
    return jnp.concatenate([jnp.asarray(first, x.dtype)[None], x if whole else x[:-1]])
