"""Coordinates of a chain: plain ones, quaternions of balls, prescribed ones, motors."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, ScalarLike, Velocities
from flexjax.mechanism._start import Start
from flexjax.mechanism.chain._kinematics import to_shapes
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._links import Bent
from flexjax.numerics.screw import se3

if TYPE_CHECKING:
    from flexjax.mechanism.chain._term import ChainTerm


def move(layout: Layout, q: Coordinates, dx: Velocities) -> Coordinates:
    """``q`` displaced by ``dx`` (nv,)."""
    table = layout.q_of_v()
    if not layout.balls:
        return q + dx
    plain = table >= 0
    q1 = q.at[table[plain]].add(dx[plain])
    for s in layout.balls:
        own = slice(s.q_start, s.q_start + 4)
        q1 = q1.at[own].set(se3.quat_retract(q[own], dx[s.v_start : s.v_start + 3]))
    return q1


def ambient_rate(layout: Layout, q: Coordinates, v: Velocities) -> Coordinates:
    """Time derivative of q at the rates v."""
    table = layout.q_of_v()
    plain = table >= 0
    rate = jnp.zeros_like(q).at[table[plain]].set(v[plain])
    for s in layout.balls:
        own = slice(s.q_start, s.q_start + 4)
        spin = jnp.concatenate([jnp.zeros(1, v.dtype), v[s.v_start : s.v_start + 3]])
        rate = rate.at[own].set(0.5 * se3.quat_multiply(q[own], spin))
    return rate


def locked(layout: Layout, prescribed: np.ndarray) -> np.ndarray:
    """Static mask (nv,) of what a Motion fixes: the motor of a flexible joint, or the joint."""
    mask = np.zeros(layout.nv, bool)
    mask[: layout.dofs] = prescribed
    for k, dof in enumerate(layout.motors):
        mask[layout.dofs + k], mask[dof] = prescribed[dof], False
    return mask


def to_v(layout: Layout, per_dof: Float[Array, " D"]) -> Velocities:
    """Motor-side values (D,) as (nv,); those of flexible joints at their motors."""
    if not layout.motors:
        return jnp.pad(per_dof, (0, layout.nv - layout.dofs))
    motors = np.array(layout.motors, int)
    on_joint = jnp.zeros(layout.nv, per_dof.dtype).at[: layout.dofs].set(per_dof)
    return on_joint.at[motors].set(0.0).at[layout.v_motors].set(per_dof[motors])


def joint_coordinates(layout: Layout, q: Coordinates) -> Float[Array, " D"]:
    """Link-side joint coordinates (D,): rotation vectors for balls."""
    table = layout.q_of_v()[: layout.dofs]
    if not layout.balls:
        return q[: layout.dofs]
    out = q[np.maximum(table, 0)]
    for s in layout.balls:
        out = out.at[s.v_start : s.v_start + 3].set(se3.quat_log(q[s.q_start : s.q_start + 4]))
    return out


def motor_side(
    layout: Layout, q: Coordinates, v: Velocities
) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Motor-side joint coordinates and rates (D,)."""
    x, xd = joint_coordinates(layout, q), v[: layout.dofs]
    if not layout.motors:
        return x, xd
    motors = np.array(layout.motors, int)
    return x.at[motors].set(q[layout.q_motors]), xd.at[motors].set(v[layout.v_motors])


def chain_start(term: "ChainTerm", t0: ScalarLike, start: Start):
    """Configuration and velocity at t0 from ``start``, with prescribed coordinates of the drive."""
    layout = term.layout
    x, xd, xm = start.vectors(term.robot)
    motors = jnp.array(layout.motors, int)
    q = jnp.zeros(layout.nq, x.dtype)
    for s in layout.stages:
        if s.kind == "ball":
            q = q.at[s.q_start : s.q_start + 4].set(se3.quat_exp(x[s.v_start : s.v_start + 3]))
        elif s.dofs or s.extends or s.rides:
            dofs = max(s.dofs, 1)
            q = q.at[s.q_start : s.q_start + dofs].set(x[s.v_start : s.v_start + dofs])
    if layout.motors:
        q = q.at[layout.q_motors].set(xm[motors])
    rest = [xd[motors] if layout.motors else xd[:0], jnp.zeros(sum(layout.shapes), xd.dtype)]
    v = jnp.concatenate([xd, *rest])
    mask, q_p, v_p, _ = term.prescribed(t0, None)
    q = term.impose(q, mask, q_p)
    v = jnp.where(mask, v_p, v)
    # Under a Motion a flexible joint starts unstretched unless the start names it.
    names = {sl.start: name for name, sl in term.robot.dof_slices().items() if sl.stop > sl.start}
    for k, dof in enumerate(layout.motors):
        if mask[layout.dofs + k] and names[dof] not in start.joints:
            q = q.at[layout.q_of_v()[dof]].set(q_p[layout.dofs + k])
        if mask[layout.dofs + k] and names[dof] not in start.rates:
            v = v.at[dof].set(v_p[layout.dofs + k])
    return _with_shapes(term, start, q, v)


def _with_shapes(term: "ChainTerm", start: Start, q: Coordinates, v: Velocities):
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
