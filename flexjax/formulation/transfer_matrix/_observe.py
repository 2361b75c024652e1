"""Outputs of a chain at one instant, in the plane and in space."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix._chain import AbstractTransferTerm, Instant
from flexjax.formulation.transfer_matrix._layout import Span
from flexjax.formulation.transfer_matrix._link import on_segment, section_between
from flexjax.mechanism import Snapshot, beam_properties, centreline_pose
from flexjax.numerics.term import Mechanical


class Readings(NamedTuple):
    """An instant for a snapshot: joints (D,); accelerations of inboard points and bodies, force and
    torque on each body from its parent, and its elastic part, in world axes."""

    mech: Mechanical
    q: Array
    qd: Array
    qdd: Array
    motor: Array
    effort: Array
    acceleration: Array
    alpha: Array
    force: Array
    torque: Array
    elastic: Array


def snapshot(
    term: AbstractTransferTerm, at: Instant, r: Readings, s: Float[Array, " S"]
) -> Snapshot:
    """All outputs at one instant; ``s``: stations on every link."""
    space = term.space
    points = term.points(at, r.mech)
    motion = (*points, r.acceleration, *term.bodies(r.mech), r.alpha)
    stations = {x.link: _stations(term, x, motion, r.elastic, s) for x in term.layout.spans}
    rows = [stations[i] for i in range(len(term.robot.links))]
    frames, twist, rate, deflection, strain, root = (
        jnp.stack([row[k] for row in rows]) for k in range(6)
    )
    order = sorted(term.layout.spans, key=lambda span: span.joint)
    first = np.array([span.first for span in order])
    child = root[np.array([span.link for span in order])]
    reaction = space.spatial(
        space.unrotate(child, r.force[first]), space.unrotate_axial(child, r.torque[first])
    )
    return Snapshot(
        q=r.q,
        qd=r.qd,
        qdd=r.qdd,
        motor=r.motor,
        effort=r.effort,
        frames=frames,
        velocity=twist,
        acceleration=rate,
        deflection=deflection,
        strain=strain,
        reaction=reaction,
    )


def positions(
    term: AbstractTransferTerm, at: Instant, mech: Mechanical, s: Float[Array, " S"]
) -> Float[Array, "L S 3"]:
    """Positions of the stations. Unlike the axes there, they do not depend on moments, and so on
    accelerations."""
    points, (g, _) = term.points(at, mech)[0], term.bodies(mech)
    found = {}
    for span in term.layout.spans:
        own, (k, local, _) = span.segments, _places(term, span, s)
        point = points[own][k] + term.space.rotate(g[own][k], local)
        found[span.link] = jnp.pad(point, ((0, 0), (0, 3 - term.space.dim)))
    return jnp.stack([found[i] for i in range(len(term.robot.links))])


def _places(
    term: AbstractTransferTerm, span: Span, s: Float[Array, " S"]
) -> tuple[Array | np.ndarray, Array, Array]:
    """Segments of the stations of a link, their places in the axes of these, and the share of each
    segment behind them."""
    link, dim = term.robot.links[span.link], term.space.dim
    if span.rigid:
        places = jax.vmap(lambda u: centreline_pose(link, u).position)(s)
        return np.zeros(s.shape[0], int), places[:, :dim], s
    u = s * span.count
    k = jnp.clip(jnp.floor(u), 0, span.count - 1).astype(int)
    part = u - k
    x, y, _ = on_segment(link, span.count, part * link.length / span.count)
    return k, jnp.stack([x, y, jnp.zeros_like(s)], -1)[:, :dim], part


def _stations(
    term: AbstractTransferTerm,
    span: Span,
    motion: tuple[Array, ...],
    elastic: Array,
    s: Float[Array, " S"],
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Frames, twists, accelerations, deflections and strains at the stations of one link, and the
    orientation of its root section.

    ``motion``: position, velocity and acceleration of the inboard points, orientation, angular
    velocity and acceleration of the bodies; ``elastic``: moments in the connections.
    """
    space, b, link = term.space, term.chain.bodies, term.robot.links[span.link]
    own, dim = span.segments, term.space.dim
    position, velocity, acceleration, g, w, alpha = (x[own] for x in motion)
    zero, none = jnp.zeros_like(s), jnp.zeros((s.shape[0], 3), s.dtype)
    k, local, part = _places(term, span, s)
    if span.rigid:
        axes, root = jax.vmap(lambda u: centreline_pose(link, u).rotation)(s), g[0]
        section, spin, spin_rate = space.compose(g[k], axes), w[k], alpha[k]
        strain = jnp.concatenate([none, none], axis=1)
    else:
        # Moments in the connections of this link and behind it, in body axes; the tip has none.
        after = jnp.concatenate([elastic, jnp.zeros_like(elastic[:1])])
        after = after[span.start : span.start + span.count + 1]
        moment = space.unrotate_axial(jnp.concatenate([g, g[-1:]]), after)
        half, rest = term.layout.half * b.compliance[own], b.rest_angle[own]
        root = space.rotated(g[0], half[0, 0] * moment[0] - space.about_z(rest[0, 0]))
        tip = space.rotated(g[-1], space.about_z(rest[-1, 1]) - half[-1, 1] * moment[-1])
        ends = jnp.concatenate([root[None], g, tip[None]])
        j, share = section_between(span.count, s)
        section = space.between(ends[j], ends[j + 1], share)
        before, behind = jnp.maximum(j - 1, 0), jnp.minimum(j, span.count - 1)
        spin, spin_rate = (
            space.scale(1 - share, z[before]) + space.scale(share, z[behind]) for z in (w, alpha)
        )
        props = beam_properties(link, s)
        mean = space.scale(1 - part, moment[k]) + space.scale(part, moment[k + 1])
        strain = space.spatial(none[:, :dim], -mean / space.axial(props.GJ, props.EIy, props.EIz))
    arm = space.rotate(g[k], local)
    point = position[k] + arm
    vel = velocity[k] + space.cross(w[k], arm)
    acc = acceleration[k] + space.cross(alpha[k], arm)
    acc = acc + space.cross(w[k], space.cross(w[k], arm))
    deflection = none
    if not span.rigid:
        straight = jnp.stack([s * link.length, zero, zero], -1)
        every = jnp.broadcast_to(root[None], section.shape)
        off = space.unrotate(every, point - position[:1])
        deflection = jnp.pad(off, ((0, 0), (0, 3 - dim))) - straight
    return (
        space.frames(point, section),
        space.spatial(space.unrotate(section, vel), space.unrotate_axial(section, spin)),
        space.spatial(space.unrotate(section, acc), space.unrotate_axial(section, spin_rate)),
        deflection,
        strain,
        root,
    )
