"""Joints that close a loop: both sides move together. Multipliers are the constraint force (world
axes) and the constraint moments.

Positions are constrained as the step moves them, so that hinges never separate. Directions are
constrained at the end of the step.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import Scalar, ScalarLike
from flexjax.formulation.port_hamiltonian._parameters import Structure
from flexjax.mechanism import centreline_pose, placement, unit
from flexjax.numerics.linalg._components_first import mm, mtv, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import cross, rotate_by, sinc
from flexjax.robot import Robot

T = TypeVar("T")
Rotation = Float[Array, "lin lin"]
Vector = Float[Array, " lin"]


@dataclasses.dataclass(frozen=True)
class LoopPlan:
    """Static facts: links and nodes (0: base, -1: tip) of both sides, type, place of multipliers.

    Link -1 is the ground.
    """

    parent: int
    parent_node: int
    child: int
    child_node: int
    kind: str
    start: int
    count: int

    @property
    def own(self) -> slice:
        """Place of the multipliers."""
        return slice(self.start, self.start + self.count)

    def ends(self, on_parent: T, on_child: T) -> Iterator[tuple[int, int, T]]:
        """(link, node, what acts there) for both sides."""
        yield self.parent, self.parent_node, on_parent
        yield self.child, self.child_node, on_child


class LoopParameters(eqx.Module):
    """Per side: lever in node axes, and a triad (columns: axis, two normals) that coincides with
    that of the other side when the loop is closed."""

    parent_lever: Vector
    child_lever: Vector
    parent_triad: Rotation
    child_triad: Rotation


class Side(eqx.Module):
    """One end of a loop joint at the start of a stage: twist, rotation and position of its node,
    and the lever to the joint."""

    V: Float[Array, " d"]
    R: Rotation
    x: Vector
    lever: Vector

    @property
    def w(self) -> Array:
        return self.V[self.x.shape[0] :]


class Borders(NamedTuple):
    """Columns and rows of the loops beside the blocks of links, for base and tip of every link."""

    columns: Float[Array, "L 2 d m"]
    rows: Float[Array, "L 2 m d"]

    @classmethod
    def of(cls, links: int, twists: Float[Array, "d ..."], count: int) -> "Borders":
        """Zero, for ``count`` multipliers."""
        dim, dtype = twists.shape[0], twists.dtype
        return cls(
            jnp.zeros((links, 2, dim, count), dtype), jnp.zeros((links, 2, count, dim), dtype)
        )

    def add(self, plan: LoopPlan, link: int, node: int, row: Array, column: Array) -> "Borders":
        """With the blocks of one side of a loop."""
        return Borders(
            self.columns.at[link, -node, :, plan.own].add(column),
            self.rows.at[link, -node, plan.own].add(row),
        )


_COUNT = {
    (True, "revolute"): 2,
    (True, "fixed"): 3,
    (False, "spherical"): 3,
    (False, "revolute"): 5,
    (False, "fixed"): 6,
}
# Pairs (column of the parent's triad, column of the child's) that stay normal to each other.
_PAIRS = {"revolute": ((1, 0), (2, 0)), "fixed": ((1, 0), (2, 0), (1, 2)), "spherical": ()}


def loop_plans(robot: Robot, structure: Structure) -> tuple[LoopPlan, ...]:
    plans, start = [], 0
    for index in structure.loops:
        j = robot.joints[index]
        parent, child = robot.link_index(j.parent), robot.link_index(j.child)
        count = _COUNT[structure.planar, j.type]
        parent_node = 0 if parent < 0 else structure.attachment(parent)
        child_node = 0 if j.child_at == "base" else structure.attachment(child)
        plans.append(LoopPlan(parent, parent_node, child, child_node, j.type, start, count))
        start += count
    return tuple(plans)


def loop_parameters(robot: Robot, structure: Structure) -> tuple[LoopParameters, ...]:
    like, out = robot.gravity, []
    eye, one = se3.identity(like.dtype), jnp.ones((), like.dtype)
    for index in structure.loops:
        j = robot.joints[index]
        parent, child = robot.link_index(j.parent), robot.link_index(j.child)
        here, other = placement(j, like), eye
        if parent >= 0 and structure.rigid[parent]:
            here = se3.compose(centreline_pose(robot.links[parent], one), here)
        if structure.rigid[child] and j.child_at == "tip":
            other = centreline_pose(robot.links[child], one)
        lin = structure.lin
        triad = jnp.eye(2, dtype=like.dtype)
        if not structure.planar:
            triad = _triad(unit(j.axis, [0.0, 0.0, 1.0], like))
        out.append(
            LoopParameters(
                here.position[:lin],
                other.position[:lin],
                here.rotation[:lin, :lin] @ triad,
                other.rotation[:lin, :lin] @ triad,
            )
        )
    return tuple(out)


def _triad(a: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Columns: the unit axis ``a`` and two normals to it."""
    helper = jnp.zeros_like(a).at[jnp.argmin(jnp.abs(a))].set(1.0)
    n = jnp.cross(a, helper)
    n = n / jnp.linalg.norm(n)
    return jnp.stack([a, n, jnp.cross(a, n)], axis=1)


def sides(
    plan: LoopPlan,
    parameters: LoopParameters,
    V: Float[Array, "d L K"],
    R: Float[Array, "lin lin L K"],
    x: Float[Array, "lin L K"],
    ground: tuple[Rotation, Vector, Float[Array, " d"]],
) -> tuple[Side, Side]:
    """(parent's side, child's side) from the nodes and the (rotation, position, twist) of the
    ground."""

    def side(link: int, node: int, lever: Vector) -> Side:
        if link < 0:
            ground_R, ground_x, ground_V = ground
            return Side(ground_V, ground_R, ground_x, lever)
        return Side(V[:, link, node], R[:, :, link, node], x[:, link, node], lever)

    return (
        side(plan.parent, plan.parent_node, parameters.parent_lever),
        side(plan.child, plan.child_node, parameters.child_lever),
    )


def gap(
    plan: LoopPlan,
    n: LoopParameters,
    parent_R: Rotation,
    parent_x: Vector,
    child_R: Rotation,
    child_x: Vector,
) -> Float[Array, " m"]:
    """Distance (lin) and misalignment of the two sides."""
    apart = parent_x + mv(parent_R, n.parent_lever) - child_x - mv(child_R, n.child_lever)
    if apart.shape[0] == 2:
        if plan.kind != "fixed":
            return apart
        across = mm(mm(parent_R, n.parent_triad).T, mm(child_R, n.child_triad))
        return jnp.concatenate([apart, -jnp.arctan2(across[1, :1], across[0, :1])])
    P, C = mm(parent_R, n.parent_triad), mm(child_R, n.child_triad)
    angles = [jnp.sum(P[:, i] * C[:, k]) for i, k in _PAIRS[plan.kind]]
    return jnp.concatenate([apart, jnp.stack(angles)]) if angles else apart


def opening(
    plan: LoopPlan, n: LoopParameters, parent: Side, child: Side, time: Scalar
) -> Float[Array, " m"]:
    """Rate at which the gap opens after ``time`` at constant twists."""

    def moved(side: Side, time: Scalar) -> tuple[Rotation, Vector]:
        v = side.V[: side.x.shape[0]]
        path = time * v + 0.5 * time**2 * cross(side.w, v)
        return rotate_by(side.R, time * side.w), side.x + mv(side.R, path)

    def after(time):
        return gap(plan, n, *moved(parent, time), *moved(child, time))

    return jax.jvp(after, (time,), (jnp.ones_like(time),))[1]


def _point_velocity(side: Side, h: Scalar) -> Vector:
    lever = sinc(h * side.w) * cross(side.w, side.lever)
    return mv(rotate_by(side.R, h * side.w), side.V[: side.x.shape[0]] + lever)


def closure(
    plan: LoopPlan, n: LoopParameters, h: Scalar, factor: ScalarLike, parent: Side, child: Side
) -> Float[Array, " m"]:
    """The gap that a step of ``factor`` h would leave, per time."""
    lin = parent.x.shape[0]
    before = gap(plan, n, parent.R, parent.x, child.R, child.x)
    apart = _point_velocity(parent, h) - _point_velocity(child, h) + before[:lin] / (factor * h)
    if before.shape[0] == lin:
        return apart
    ends = [rotate_by(s.R, factor * h * s.w) for s in (parent, child)]
    after = gap(plan, n, ends[0], parent.x, ends[1], child.x)
    return jnp.concatenate([apart, after[lin:] / (factor * h)])


def constraint_wrenches(
    plan: LoopPlan,
    n: LoopParameters,
    h: Scalar,
    parent: Side,
    child: Side,
    multipliers: Float[Array, " m"],
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Wrenches of the two end nodes on the loop joint."""
    lin = parent.x.shape[0]
    force, moments = multipliers[:lin], [jnp.zeros(parent.V.shape[0] - lin, multipliers.dtype)] * 2
    if plan.kind != "spherical" and lin == 3:
        # The angle between two directions changes over a step by Dp mean(c) + mean(p) Dc. So
        # moments with the means do no work.
        P, P_mean = _directions(parent, n.parent_triad, h)
        C, C_mean = _directions(child, n.child_triad, h)
        for value, (i, k) in zip(multipliers[lin:], _PAIRS[plan.kind], strict=True):
            moments = [
                moments[0] + value * jnp.cross(P[:, i], C_mean[:, k]),
                moments[1] + value * jnp.cross(P_mean[:, i], C[:, k]),
            ]
    elif multipliers.shape[0] > lin:
        moments = [multipliers[lin:]] * 2

    def on(side: Side, moment: Array, sign: float) -> Float[Array, " d"]:
        R, factor = rotate_by(side.R, h * side.w), sinc(h * side.w)
        f = sign * mtv(R, force)
        if lin == 3:
            m = sign * factor * mtv(R, moment) + factor * jnp.cross(side.lever, f)
        else:
            m = sign * moment + factor * (side.lever[:1] * f[1:] - side.lever[1:] * f[:1])
        return jnp.concatenate([f, m])

    return on(parent, moments[0], 1.0), on(child, moments[1], -1.0)


def _directions(side: Side, triad: Rotation, h: Scalar) -> tuple[Rotation, Rotation]:
    """Directions of a triad in world axes: in the middle of the step from side.R, and the mean of
    its ends."""
    middle, end = (mm(rotate_by(side.R, time * side.w), triad) for time in (h, 2 * h))
    return middle, 0.5 * (mm(side.R, triad) + end)


def independent_sides(plans: tuple[LoopPlan, ...], planar: bool) -> bool:
    """Whether the wrench on one side of every loop depends on that side only (static). Moments in
    space depend on both."""
    return planar or all(p.kind == "spherical" for p in plans)


def multiplier_count(plans: tuple[LoopPlan, ...]) -> int:
    return sum(p.count for p in plans)
