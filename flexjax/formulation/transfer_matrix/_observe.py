"""One instant of a planar chain in the common terms: frames, deflections, curvature, reactions,
efforts."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix._balance import efforts, motor_accelerations, springs
from flexjax.formulation.transfer_matrix._chain import Span
from flexjax.formulation.transfer_matrix._laws import link_side, motor_side, targets
from flexjax.formulation.transfer_matrix._link import on_segment
from flexjax.mechanism import Snapshot, beam_properties, centreline_pose
from flexjax.numerics.term import State


def rotate(angle, v):
    """Vectors (..., 2) turned by ``angle`` (...)."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1]], -1)


def snapshot(term, t, y: State, s: Float[Array, " S"], piece_time) -> Snapshot:
    lay, robot, kinds = term.layout, term.robot, term.kinds
    mech, a = term.accelerate(t, y, piece_time)
    ground = term.ground(t, piece_time)
    p = term.point(mech, ground)
    target = targets(term, t, piece_time)
    eff = efforts(term, t, mech, a, piece_time, y.memory, forces=True)
    inverse = eff.reactions
    assert inverse is not None  # efforts was asked for them
    # Elastic part of the moment m = -n in every connection; where no spring acts, the whole. Behind
    # the tip: none.
    moment = -jnp.where(kinds.springs, springs(term, p, target).elastic, inverse.n)
    moment = jnp.concatenate([moment, jnp.zeros(1, moment.dtype)])
    position, velocity, _ = term.points(mech, ground)
    (th, _), (w, _), (alpha, _) = term.split(mech.q), term.split(mech.v), term.split(a)
    acceleration = inverse.acceleration + term.chain.gravity[None]
    fields = jnp.concatenate(
        [position[:-1], velocity[:-1], acceleration, th[:, None], w[:, None], alpha[:, None]],
        axis=1,
    )
    by_link = {span.link: _along(term, span, fields, moment, s) for span in lay.spans}
    rows = [by_link[i] for i in range(len(robot.links))]
    frames, twist, acc, deflection, strain, root = (
        jnp.stack([r[k] for r in rows]) for k in range(6)
    )
    q, qd = link_side(term, p, target)
    xm, _ = motor_side(term, p, target)
    motor_acc = motor_accelerations(term, a, target, ground)
    share = jnp.where(
        kinds.driven_motor | kinds.given_motor, term.chain.connections.joint_share[kinds.first], 0.0
    )
    qdd = motor_acc + share * (term.relative(a, ground.acceleration)[kinds.first] - motor_acc)
    order = sorted(lay.spans, key=lambda span: span.joint)
    first = np.array([span.first for span in order])
    force = rotate(-root[np.array([span.link for span in order])], inverse.q[first])
    reaction = _spatial(force, inverse.n[first])
    return Snapshot(
        q=q + eff.bend,
        qd=qd + eff.joints.bend_rate,
        qdd=qdd,
        motor=xm + eff.bend,
        effort=eff.effort,
        frames=frames,
        velocity=twist,
        acceleration=acc,
        deflection=deflection,
        strain=strain,
        reaction=reaction,
    )


def _along(term, span: Span, fields, moment, s):
    """Stations of one link: frames, twists, accelerations, deflections, strains, and the angle of
    its root section.

    Sections turn linearly between the middles of segments, where the segments' angles are theirs;
    the ends by the half springs."""
    bodies, half = term.chain.bodies, term.layout.half
    link = term.robot.links[span.link]
    first, last = span.start, span.start + span.count - 1
    own = fields[first : last + 1]
    th, w, alpha = own[:, 6], own[:, 7], own[:, 8]
    zero = jnp.zeros_like(s)
    if span.rigid:
        pose = jax.vmap(lambda x: centreline_pose(link, x))(s)
        local, row = pose.position[:, :2], jnp.broadcast_to(own[0], (s.shape[0], 9))
        root, angle, spin, turn = (
            th[0],
            th[0] + jnp.arctan2(pose.rotation[:, 1, 0], pose.rotation[:, 0, 0]),
            zero + w[0],
            zero + alpha[0],
        )
        bent = zero
    else:
        u = s * span.count
        k = jnp.clip(jnp.floor(u), 0, span.count - 1).astype(int)
        row = own[k]
        local = jnp.stack(on_segment(link, span.count, (u - k) * link.length / span.count)[:2], -1)
        root = th[0] - bodies.turn_in[first] - half * moment[first] * bodies.bend_in[first]
        tip = th[-1] + bodies.turn_out[last] + half * moment[last + 1] * bodies.bend_out[last]
        knots = jnp.asarray(
            np.concatenate([[0.0], np.arange(span.count) + 0.5, [span.count]]), th.dtype
        )
        pad = jnp.stack(
            [
                jnp.concatenate([root[None], th, tip[None]]),
                *(jnp.concatenate([x[:1], x, x[-1:]]) for x in (w, alpha)),
            ]
        )
        j = jnp.clip(jnp.floor(u + 0.5), 0, span.count).astype(int)
        share = (u - knots[j]) / (knots[j + 1] - knots[j])
        angle, spin, turn = (1 - share)[None] * pad[:, j] + share[None] * pad[:, j + 1]
        nodes = moment[first : last + 2]
        bent = ((1 - (u - k)) * nodes[k] + (u - k) * nodes[k + 1]) / beam_properties(link, s).EIz
    point = rotate(row[:, 6], local)
    across = jnp.stack([-point[:, 1], point[:, 0]], -1)
    r = row[:, 0:2] + point
    v = rotate(-angle, row[:, 2:4] + row[:, 7:8] * across)
    acc = rotate(-angle, row[:, 4:6] + row[:, 8:9] * across - row[:, 7:8] ** 2 * point)
    c, sn = jnp.cos(0.5 * angle), jnp.sin(0.5 * angle)
    sign = jnp.where(c < 0, -1.0, 1.0)
    frames = jnp.stack([r[:, 0], r[:, 1], zero, sign * c, zero, zero, sign * sn], -1)
    off = rotate(-root + zero, r - own[:1, :2]) - jnp.stack([s * link.length, zero], -1)
    deflection = jnp.stack([zero, zero, zero] if span.rigid else [off[:, 0], off[:, 1], zero], -1)
    return (
        frames,
        _spatial(v, spin),
        _spatial(acc, turn),
        deflection,
        _spatial(jnp.zeros_like(local), bent),
        root,
    )


def _spatial(v, spin) -> Array:
    """Planar vectors (S, 2) and (S,) as spatial ones (S, 6)."""
    return jnp.concatenate([v, jnp.zeros((v.shape[0], 3), v.dtype), spin[:, None]], axis=1)
