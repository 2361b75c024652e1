"""Moves that differ in their goal alone: what differs is stacked, the rest is built once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from flexjax.formulation import Start
from flexjax.robot import Robot
from flexjax.study.optimise.problem import (
    Problem,
    check_coordinates,
    check_duration,
    check_ends,
    drivable,
    known_coordinates,
    spline_scales,
    spline_values,
)


class Goals(eqx.Module):
    """The problem of the first goal, and what differs (B, ...); None elsewhere."""

    common: Problem
    varying: Problem
    count: int = eqx.field(static=True)

    def problem(self, k: Any) -> Problem:
        """The problem of one goal; its number may be traced."""
        return eqx.combine(jtu.tree_map(lambda a: a[k], self.varying), self.common)


def build_goals(
    build: Callable[[Start], Problem],
    robot: Robot,
    goals: Sequence[Start | Mapping[str, float]],
    knots: int | None,
) -> Goals:
    """The problems of all goals. ``build`` makes that of one; ``knots``: of B-splines that were
    made for the goal, None for a given drive."""
    last = _coordinates(robot, goals)
    common = build(_start(robot, last[0]))
    _check(common, last, always=knots is not None)
    stacked = {"goal": _start(robot, last)}
    if knots is not None:
        stacked |= _splines(common, last, knots)
    none = jtu.tree_map(lambda _: None, eqx.filter(common, eqx.is_array))
    varying = eqx.tree_at(
        lambda p: _places(p, stacked), none, list(stacked.values()), is_leaf=lambda x: x is None
    )
    return Goals(common, varying, len(last))


def _coordinates(robot: Robot, goals: Sequence[Start | Mapping[str, float]]) -> np.ndarray:
    """(B, D) of all goals."""
    home, slices, known = known_coordinates(robot, Start()), robot.dof_slices(), drivable(robot)
    rows = []
    for goal in goals:
        if isinstance(goal, Start):
            if goal.rates or goal.motors or goal.links:
                raise ValueError("goals: a Start with more than joints; expected joints alone.")
            goal = goal.joints
        check_coordinates(known, "goal", goal)
        row = home.copy()
        for joint, value in goal.items():
            row[slices[joint]] = value
        rows.append(row)
    return np.stack(rows)


def _start(robot: Robot, q: np.ndarray) -> Start:
    """Coordinates (..., D) by name of the joint."""
    slices = robot.dof_slices()
    each = {name: q[..., slices[name]] for name in drivable(robot)}
    return Start(joints={n: x[..., 0] if x.shape[-1] == 1 else x for n, x in each.items()})


def _check(common: Problem, last: np.ndarray, always: bool) -> None:
    """Refuse goals as that of one move. The farthest ones in every coordinate suffice."""
    robot, limits = common.model.robot, common.limits
    ways = np.abs(last - known_coordinates(robot, common.start))
    for k in {*last.argmin(axis=0), *last.argmax(axis=0), *ways.argmax(axis=0)}:
        end = _start(robot, last[k])
        check_ends(robot, common.start, end, limits)
        if always or common.arrive:
            longest = common.duration.longest
            check_duration(robot, common.start, end, limits, longest, common.arrive)


def _splines(common: Problem, last: np.ndarray, knots: int) -> dict[str, Any]:
    """Control values, and the start and unit of the free ones (B, n)."""
    robot, par, count = common.model.robot, common.parameters, len(last)
    dtype = robot.gravity.dtype
    first = known_coordinates(robot, common.start)
    values = spline_values(robot, first, last, knots)
    scales = spline_scales(robot, first, last)
    names = drivable(robot)  # in the order of the parameters
    inner = [values[n][:, 1:-1].reshape(count, -1) for n in names]
    units = [
        np.repeat(scales[n][:, None], x.shape[1], 1) for n, x in zip(names, inner, strict=True)
    ]
    rows = {}
    for field, given in (("start", inner), ("scale", units), ("prior_mean", inner)):
        # Parameters of the robot follow those of the motions.
        all_ = np.tile(np.asarray(getattr(par, field)), (count, 1))
        block = np.concatenate(given, axis=1)
        all_[:, : block.shape[1]] = block
        rows[field] = jnp.asarray(all_, dtype)
    return {f"joints.{n}": jnp.asarray(values[n], dtype) for n in names} | rows


def _places(problem: Problem, stacked: Mapping[str, Any]) -> list:
    """The parts of a problem that are named in ``stacked``."""
    found = []
    for name in stacked:
        if name == "goal":
            found.append(problem.goal)
        elif name.startswith("joints."):
            driven: Any = problem.drive.joints[name.removeprefix("joints.")]
            found.append(driven.signal.values)
        else:
            found.append(getattr(problem.parameters, name))
    return found
