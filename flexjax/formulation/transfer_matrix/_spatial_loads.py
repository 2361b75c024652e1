"""Loads on the links of a spatial chain."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax.formulation.transfer_matrix._link import locate
from flexjax.mechanism import centreline_pose
from flexjax.numerics.linalg import mv
from flexjax.numerics.screw import se3


def load_wrenches(term, t, piece_time, R) -> tuple[Array, Array]:
    """Forces (n, 3) on the bodies and torques (n, 3) about their inboard points, world axes."""
    force, torque = jnp.zeros((2, term.layout.n, 3), R.dtype)
    for load in term.drive.loads:
        index = term.robot.link_index(load.link)
        span = next(s for s in term.layout.spans if s.link == index)
        sl = slice(span.start, span.start + span.count)
        where, at, section = _station(term, span, load.s, R[sl])
        wrench = load.wrench.evaluate(t, piece_time)[0]
        f, m = wrench[:3], wrench[3:]
        if load.frame == "section":
            f, m = section @ f, section @ m
        f = jnp.broadcast_to(f, at.shape)
        force = force.at[sl].add(where[:, None] * f)
        torque = torque.at[sl].add(where[:, None] * (jnp.cross(at, f) + m[None]))
    return force, torque


def _station(term, span, s, R) -> tuple[Array, Array, Array]:
    """A station of a link: weights of its bodies, the point seen from their inboard points (world
    axes), and the section's rotation. Sections turn evenly between the middles of segments, as in
    the plane."""
    link = term.robot.links[span.link]
    if span.rigid:
        pose = centreline_pose(link, s)
        return jnp.ones(1, R.dtype), (R[0] @ pose.position)[None], R[0] @ pose.rotation
    where, along = locate(span.count, s, link.length)
    at = mv(R, along[:, None] * jnp.asarray([[1.0, 0.0, 0.0]], R.dtype))
    ends = jnp.concatenate([R[:1], R, R[-1:]])
    knots = jnp.asarray(np.concatenate([[0.0], np.arange(span.count) + 0.5, [span.count]]), R.dtype)
    u = s * span.count
    j = jnp.clip(jnp.floor(u + 0.5), 0, span.count).astype(int)
    share = (u - knots[j]) / (knots[j + 1] - knots[j])
    turn = se3.rotation_log(ends[j].T @ ends[j + 1])
    return where, at, ends[j] @ se3.rotation_exp(share * turn)
