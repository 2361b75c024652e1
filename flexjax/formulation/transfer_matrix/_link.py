"""A link as rigid segments joined by springs: masses, lengths and the compliance of every half
segment."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.mechanism import beam_properties, centreline_pose, hub_inertia, rigid_inertia
from flexjax.robot import Joint, Link, Payload, Robot

# A hub without rotary inertia between two springs has no equation of motion of its own; this share
# of the first segment's inertia stands in.
HUB_FLOOR = 1e-3


class Bodies(eqx.Module):
    """Rigid bodies in the plane, stacked; body axes along the chord from the inboard point.

    ``bend_in`` and ``bend_out`` are the compliances [rad/(N m)] of the half segments, ``slow_in``
    and ``slow_out`` those times the retardation time of their material, ``lag_in`` and ``lag_out``
    those times the time in which they bend where they have no mass of their own; ``turn_in`` and
    ``turn_out`` the unstressed angles from section to chord and from chord to section."""

    lever: Float[Array, "n 2"]  # inboard to outboard point
    mass: Float[Array, " n"]
    moment: Float[Array, "n 2"]  # mass times centre of mass
    inertia: Float[Array, " n"]  # about the inboard point
    bend_in: Float[Array, " n"]
    bend_out: Float[Array, " n"]
    slow_in: Float[Array, " n"]
    slow_out: Float[Array, " n"]
    lag_in: Float[Array, " n"]
    lag_out: Float[Array, " n"]
    turn_in: Float[Array, " n"]
    turn_out: Float[Array, " n"]


def on_segment(link: Link, count: int, along: Array) -> tuple[Array, Array, Array]:
    """(x, y) in the axes of a segment's chord of the unstressed points at distances ``along`` from
    its inboard one, and the angle of the sections there. Curved links are arcs: with masses on the
    chords a rigid curved link of three segments moved differently by 1e-4."""
    zero = jnp.zeros_like(along)
    if link.curvature is None:
        return along, zero, zero
    half, turn = 0.5 * link.curvature[2] * along, 0.5 * link.curvature[2] * link.length / count
    chord = along * jnp.sinc(half / jnp.pi)
    return chord * jnp.cos(half - turn), chord * jnp.sin(half - turn), 2 * half - turn


def segment_bodies(link: Link, count: int, rotary: bool) -> Bodies:
    """Equal segments; integrals over each half by two Gauss points, exact for uniform and for
    linearly varying properties."""
    dtype = link.length.dtype
    dl = link.length / count
    # Every half segment is cut where pieces meet, so that the integrals depend smoothly on where
    # that is.
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
    s = low[..., None] + (high - low)[..., None] * gauss[None, None]  # pieces, halves, points
    weight = jnp.broadcast_to(0.5 * link.length * (high - low)[..., None], s.shape)
    props = beam_properties(link, s.reshape(-1))
    rhoA, rhoI, EI = (v.reshape(s.shape) for v in (props.rhoA, props.rhoIz, props.EIz))
    half = jnp.sum(weight / EI, axis=(0, 2)).reshape(count, 2).T
    along = (s - jnp.repeat(edges[:-1:2], 2)[None, :, None]) * link.length

    def whole(x):
        return jnp.sum(jnp.sum(weight * x, axis=(0, 2)).reshape(count, 2), axis=1)

    x, y, _ = on_segment(link, count, along)
    mass, second = whole(rhoA), whole(rhoA * (x**2 + y**2))
    if rotary:
        second = second + whole(rhoI)
    zero = jnp.zeros(count, dtype)
    chord, turn = dl, zero
    if link.curvature is not None:
        turn = turn + 0.5 * link.curvature[2] * dl
        chord = dl * jnp.sinc(turn[0] / jnp.pi)
    tau = (
        jnp.zeros((), dtype)
        if link.damping is None or link.damping.strain_rate is None
        else link.damping.strain_rate
    )
    moment = jnp.stack([whole(rhoA * x), whole(rhoA * y)], -1)
    own = second - jnp.sum(moment**2, axis=1) / mass  # inertia about the centre
    lag = bending_lag(half, own[None], tau)
    return Bodies(
        lever=jnp.stack([zero + chord, zero], -1),
        mass=mass,
        moment=moment,
        inertia=second,
        bend_in=half[0],
        bend_out=half[1],
        slow_in=tau * half[0],
        slow_out=tau * half[1],
        lag_in=lag[0],
        lag_out=lag[1],
        turn_in=turn,
        turn_out=turn,
    )


def bending_lag(compliance, inertia, tau) -> Array:
    """Compliance of a half segment times the time in which it bends under a torque: the retardation
    time ``tau`` of the material, and what the ``inertia`` of a segment about its centre permits (of
    second order in its length)."""
    return compliance * (tau + jnp.sqrt(compliance * inertia))


def rigid_body(link: Link) -> Bodies:
    """A rigid link is one body, its axes those of its base section."""
    dtype = link.length.dtype
    tip = centreline_pose(link, jnp.ones((), dtype))
    M = rigid_inertia(link)
    zero = jnp.zeros(1, dtype)
    return Bodies(
        lever=tip.position[None, :2],
        mass=M[:1, 0],
        moment=jnp.stack([M[1, 5], -M[0, 5]])[None],
        inertia=M[5:, 5],
        bend_in=zero,
        bend_out=zero,
        slow_in=zero,
        slow_out=zero,
        lag_in=zero,
        lag_out=zero,
        turn_in=zero,
        turn_out=jnp.arctan2(tip.rotation[1, 0], tip.rotation[0, 0])[None],
    )


def add_inertia(bodies: Bodies, where: Array, mass, at, inertia) -> Bodies:
    """A rigid mass at ``at`` (n, 2) in body axes, with ``inertia`` about its centre, on the bodies
    weighted by ``where`` (n,)."""
    return eqx.tree_at(
        lambda b: (b.mass, b.moment, b.inertia),
        bodies,
        (
            bodies.mass + where * mass,
            bodies.moment + (where * mass)[:, None] * at,
            bodies.inertia + where * (inertia + mass * jnp.sum(at**2, axis=1)),
        ),
    )


def locate(count: int, s, length) -> tuple[Array, Array]:
    """Weights (count,) of the segment that holds station ``s``, and the distance (count,) of s from
    each segment's inboard point."""
    index = jnp.clip(jnp.floor(s * count), 0, count - 1)
    numbers = jnp.arange(count, dtype=length.dtype)
    return (numbers == index).astype(length.dtype), (s - numbers / count) * length


def _planar(value, dtype):
    """The component about z of an inertia given as one number or three."""
    if value is None:
        return jnp.zeros((), dtype)
    return value if value.ndim == 0 else value[2]


def add_payload(bodies: Bodies, link: Link, payload: Payload, rigid: bool) -> Bodies:
    dtype = link.length.dtype
    offset = jnp.zeros(2, dtype) if payload.offset is None else payload.offset[:2]
    count = bodies.mass.shape[0]
    if rigid:
        pose = centreline_pose(link, payload.s)
        where, at = jnp.ones(1, dtype), (pose.position[:2] + pose.rotation[:2, :2] @ offset)[None]
    else:
        where, along = locate(count, payload.s, link.length)
        x, y, tilt = on_segment(link, count, along)
        c, sn = jnp.cos(tilt), jnp.sin(tilt)
        at = jnp.stack([x + c * offset[0] - sn * offset[1], y + sn * offset[0] + c * offset[1]], -1)
    return add_inertia(bodies, where, payload.mass, at, _planar(payload.inertia, dtype))


def hub_body(joint: Joint, first: Bodies) -> Bodies:
    """The hub as a body without length, between the joint and the first half spring."""
    dtype = first.mass.dtype
    hub = hub_inertia(joint, first.mass)
    mass, inertia = hub[0, 0], hub[5, 5]
    zero = jnp.zeros(1, dtype)
    return Bodies(
        lever=jnp.zeros((1, 2), dtype),
        mass=mass[None],
        moment=jnp.zeros((1, 2), dtype),
        inertia=jnp.maximum(inertia, HUB_FLOOR * first.inertia[0])[None],
        bend_in=zero,
        bend_out=zero,
        slow_in=zero,
        slow_out=zero,
        lag_in=zero,
        lag_out=zero,
        turn_in=zero,
        turn_out=zero,
    )


def link_bodies(robot: Robot, joint: Joint, count: int, rotary: bool, hub: bool) -> Bodies:
    """Bodies of the link behind ``joint``, root to tip; ``hub``: with a body of its own for the
    hub."""
    i = robot.link_index(joint.child)
    link = robot.links[i]
    rigid = not link.elastic
    bodies = rigid_body(link) if rigid else segment_bodies(link, count, rotary)
    for payload in robot.payloads:
        if payload.link == link.name:
            bodies = add_payload(bodies, link, payload, rigid)
    if hub:
        parts = [hub_body(joint, bodies), bodies]
        return Bodies(
            *(jnp.concatenate([getattr(b, k) for b in parts]) for k in Bodies.__annotations__)
        )
    rigid_hub = hub_inertia(joint, link.length)
    mass, inertia = rigid_hub[0, 0], rigid_hub[5, 5]
    where = jnp.zeros(bodies.mass.shape[0], link.length.dtype).at[0].set(1.0)
    return add_inertia(bodies, where, mass, jnp.zeros_like(bodies.moment), inertia)
