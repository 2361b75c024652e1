"""Joints that close a loop: both sides travel together. Multipliers are the force (world axes) and
the moments that hold them.

Positions are constrained in the way the step moves them, so that hinges never separate; directions
are constrained at the end of the step.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import lever_cross, rotate_by, sinc
from flexjax.formulation.port_hamiltonian._structure import Structure
from flexjax.mechanism import centreline_pose
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.screw import se3
from flexjax.robot import Robot


@dataclasses.dataclass(frozen=True)
class LoopPlan:
    """Static: the links, the ends (0: base node, 1: node N; -1 as link is the ground), the type and
    where its multipliers stand."""

    parent: int
    parent_end: int
    child: int
    child_end: int
    kind: str
    start: int
    count: int


class LoopNumbers(eqx.Module):
    """Per side: lever in node axes, and a triad (columns: axis, two normals) that coincides with
    the other side's when the loop is closed."""

    parent_lever: Float[Array, " lin"]
    child_lever: Float[Array, " lin"]
    parent_triad: Float[Array, "D D"]
    child_triad: Float[Array, "D D"]


_COUNT = {
    (True, "revolute"): 2,
    (True, "fixed"): 3,
    (False, "spherical"): 3,
    (False, "revolute"): 5,
    (False, "fixed"): 6,
}


def loop_plans(robot: Robot, st: Structure) -> tuple[LoopPlan, ...]:
    plans, start = [], 0
    for index in st.loops:
        j = robot.joints[index]
        parent, child = robot.link_index(j.parent), robot.link_index(j.child)
        count = _COUNT[st.planar, j.type]
        ends = (
            0 if parent < 0 or st.rigid[parent] else 1,
            0 if st.rigid[child] or j.child_at == "base" else 1,
        )
        plans.append(LoopPlan(parent, ends[0], child, ends[1], j.type, start, count))
        start += count
    return tuple(plans)


def loop_numbers(robot: Robot, st: Structure) -> tuple[LoopNumbers, ...]:
    like, out = robot.gravity, []
    eye, one = se3.identity(like.dtype), jnp.ones((), like.dtype)
    for index in st.loops:
        j = robot.joints[index]
        parent, child = robot.link_index(j.parent), robot.link_index(j.child)
        place = se3.Pose(
            eye.rotation if j.rotation is None else se3.rotation_exp(j.rotation),
            eye.position if j.offset is None else j.offset,
        )
        if parent >= 0 and st.rigid[parent]:
            place = se3.compose(centreline_pose(robot.links[parent], one), place)
        other = eye
        if st.rigid[child] and j.child_at == "tip":
            other = centreline_pose(robot.links[child], one)
        triad = _triad(jnp.array([0.0, 0.0, 1.0], like.dtype) if j.axis is None else j.axis)
        if st.planar:
            out.append(
                LoopNumbers(
                    place.position[:2],
                    other.position[:2],
                    place.rotation[:2, :2],
                    other.rotation[:2, :2],
                )
            )
        else:
            out.append(
                LoopNumbers(
                    place.position, other.position, place.rotation @ triad, other.rotation @ triad
                )
            )
    return tuple(out)


def _triad(axis):
    """Columns: the unit axis and two normals to it."""
    a = axis / jnp.linalg.norm(axis)
    helper = jnp.zeros_like(a).at[jnp.argmin(jnp.abs(a))].set(1.0)
    n = jnp.cross(a, helper)
    n = n / jnp.linalg.norm(n)
    return jnp.stack([a, n, jnp.cross(a, n)], axis=1)


def _pairs(kind: str):
    """Pairs (column of the parent's triad, column of the child's) that stay normal to each
    other."""
    return {"revolute": ((1, 0), (2, 0)), "fixed": ((1, 0), (2, 0), (1, 2)), "spherical": ()}[kind]


class Side(eqx.Module):
    """One end of a loop joint in a stage: twist, rotation and position where the stage began."""

    V: Array
    R: Array
    x: Array
    lever: Array


def _point_velocity(side: Side, h):
    lin = side.x.shape[0]
    w = side.V[lin:]
    return mv(rotate_by(side.R, h * w), side.V[:lin] + sinc(h * w) * lever_cross(w, side.lever))


def gap(plan: LoopPlan, n: LoopNumbers, parent_R, parent_x, child_R, child_x):
    """Distance (lin) and misalignment of the two sides (count,)."""
    apart = parent_x + mv(parent_R, n.parent_lever) - child_x - mv(child_R, n.child_lever)
    if apart.shape[0] == 2:
        if plan.kind != "fixed":
            return apart
        across = mm(mm(parent_R, n.parent_triad).T, mm(child_R, n.child_triad))
        return jnp.concatenate([apart, -jnp.arctan2(across[1, :1], across[0, :1])])
    P, C = mm(parent_R, n.parent_triad), mm(child_R, n.child_triad)
    angles = [jnp.sum(P[:, i] * C[:, k]) for i, k in _pairs(plan.kind)]
    return jnp.concatenate([apart, jnp.stack(angles)]) if angles else apart


def rows(plan: LoopPlan, n: LoopNumbers, h, factor, parent: Side, child: Side):
    """What a step of ``factor`` h would leave open, per time (count,)."""
    lin = parent.x.shape[0]
    before = gap(plan, n, parent.R, parent.x, child.R, child.x)
    apart = _point_velocity(parent, h) - _point_velocity(child, h) + before[:lin] / (factor * h)
    if before.shape[0] == lin:
        return apart
    ends = [rotate_by(s.R, factor * h * s.V[lin:]) for s in (parent, child)]
    after = gap(plan, n, ends[0], parent.x, ends[1], child.x)
    return jnp.concatenate([apart, after[lin:] / (factor * h)])


def wrenches(plan: LoopPlan, n: LoopNumbers, h, parent: Side, child: Side, multipliers):
    """Wrenches (d,) that the two end nodes give away for the given multipliers."""
    lin = parent.x.shape[0]
    force, moments = multipliers[:lin], [jnp.zeros(parent.V.shape[0] - lin, multipliers.dtype)] * 2
    if plan.kind != "spherical" and lin == 3:
        # The angle between two directions changes over a step by Dp mean(c) + mean(p) Dc: moments
        # with the means hold it without any work.
        (P, P_mean), (C, C_mean) = (
            _directions(side, triad, h)
            for side, triad in ((parent, n.parent_triad), (child, n.child_triad))
        )
        for value, (i, k) in zip(multipliers[lin:], _pairs(plan.kind), strict=True):
            moments = [
                moments[0] + value * jnp.cross(P[:, i], C_mean[:, k]),
                moments[1] + value * jnp.cross(P_mean[:, i], C[:, k]),
            ]
    elif multipliers.shape[0] > lin:
        moments = [multipliers[lin:]] * 2

    def on(side, moment, sign):
        w = side.V[lin:]
        R = rotate_by(side.R, h * w)
        f = sign * mv(R.T, force)
        m = sign * (sinc(h * w) * mv(R.T, moment) if lin == 3 else moment)
        arm = sinc(h * w) * (
            jnp.cross(side.lever, f)
            if lin == 3
            else (side.lever[:1] * f[1:] - side.lever[1:] * f[:1])
        )
        return jnp.concatenate([f, m + arm])

    return on(parent, moments[0], 1.0), on(child, moments[1], -1.0)


def _directions(side: Side, triad, h):
    """Directions of a triad in world axes: in the middle of the step from side.R, and the mean of
    its ends."""
    w = side.V[side.x.shape[0] :]
    middle, end = (mm(rotate_by(side.R, time * w), triad) for time in (h, 2 * h))
    return middle, 0.5 * (mm(side.R, triad) + end)


def exact(plans: tuple[LoopPlan, ...], planar: bool) -> bool:
    """Whether a loop's wrench on one side depends on that side only (moments in space depend on
    both)."""
    return planar or all(p.kind == "spherical" for p in plans)


def total(plans: tuple[LoopPlan, ...]) -> int:
    return int(np.sum([p.count for p in plans], dtype=int))
