"""The start of a chain: joint coordinates and shape coordinates."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from flexjax._types import Coordinates, ScalarLike, Velocities
from flexjax.mechanism._start import Start, joint_start
from flexjax.mechanism.chain.geometry._kinematics import to_shapes
from flexjax.mechanism.chain.geometry._links import Bent
from flexjax.mechanism.joints._coordinates import joint_configuration

if TYPE_CHECKING:
    from flexjax.mechanism.chain._term import ChainTerm


def chain_start(term: "ChainTerm", t0: ScalarLike, start: Start) -> tuple[Coordinates, Velocities]:
    """Configuration and velocity at t0 from ``start``, with prescribed coordinates of the drive."""
    layout = term.layout
    x, xd, xm, xmd = joint_start(term.robot, term.drive, t0, start)
    q = joint_configuration(layout.coordinates, x, xm)
    motor_rates = xmd[np.array(layout.coordinates.motors, int)]
    shapes = jnp.zeros(sum(layout.shapes), xd.dtype)
    return _with_shapes(term, start, q, jnp.concatenate([xd, motor_rates, shapes]))


def _with_shapes(
    term: "ChainTerm", start: Start, q: Coordinates, v: Velocities
) -> tuple[Coordinates, Velocities]:
    """``q`` and ``v`` with the shape coordinates of the links that ``start`` names."""
    layout = term.layout
    by_link = {s.link: i for i, s in enumerate(layout.stages) if s.link >= 0}
    shapes = layout.shapes or (0,) * len(layout.stages)
    bent = start.shapes(term.robot, lambda i: shapes[by_link[i]] > 0, "this model")
    first = np.cumsum([0, *shapes])
    for link, shape in bent.items():
        b, links = by_link[link], term.links
        assert links is not None  # ``start.shapes`` refuses links without shape coordinates
        stage = Bent(b, shapes[b], shape.s, term.robot.links[link].length)
        eta, rate = shape.push(
            lambda curve, eta, links=links, stage=stage: links.shaped(eta, stage, curve),
            (to_shapes(layout, q), to_shapes(layout, v)),
        )
        at = slice(first[b], first[b + 1])
        q = q.at[layout.q_shapes].set(q[layout.q_shapes].at[at].set(eta))
        v = v.at[layout.v_shapes].set(v[layout.v_shapes].at[at].set(rate))
    return q, v
