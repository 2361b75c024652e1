"""Motions of a move: B-splines from start to goal whose inner control values are free."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexjax._types import is_traced
from flexjax.drive import Drive, Motion
from flexjax.drive.signal import bspline
from flexjax.drive.signal._bspline import control_values
from flexjax.formulation import Start
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.study.free import Free


def drivable(robot: Robot) -> list[str]:
    """Joints that a Motion can drive."""
    return [j.name for j in robot.tree_joints if j.dofs and j.type not in ("spherical", "free")]


def read_end(robot: Robot, name: str, given: Start | Mapping | None) -> Start:
    """The joint coordinates of one end of the move."""
    if isinstance(given, Start):
        return given
    given = dict(given or {})
    check_coordinates(drivable(robot), name, given)
    return Start(joints=given)


def check_coordinates(known: Sequence[str], name: str, given: Mapping[str, Any]) -> None:
    """Refuse names that no driven joint has, and numbers that are not finite."""
    for joint, value in given.items():
        if joint not in known:
            raise ValueError(
                f"{name}.{joint}: no such joint that can be driven; expected one of "
                f"{', '.join(known)}."
            )
        if not np.all(np.isfinite(np.asarray(value, float))):
            raise ValueError(f"{name}.{joint}: {value}; expected a finite coordinate.")


def coordinates(robot: Robot, end: Start) -> np.ndarray | None:
    """Joint coordinates (D,) of an end of the move; None while they are traced."""
    given = [end.joints.get(j.name, 0.0 if j.home is None else j.home) for j in robot.tree_joints]
    if any(is_traced(x) for x in given):
        return None
    each = zip(robot.tree_joints, given, strict=True)
    return np.concatenate(
        [np.zeros(0), *(np.broadcast_to(np.ravel(np.asarray(x, float)), j.dofs) for j, x in each)]
    )


def known_coordinates(robot: Robot, end: Start) -> np.ndarray:
    """As :func:`coordinates`; refuses what is traced."""
    found = coordinates(robot, end)
    if found is None:
        raise ValueError(
            "goal: traced by jax; expected numbers, which the search needs before it compiles."
        )
    return found


def at_rest(robot: Robot, drive: Drive, state: State) -> State:
    """A state at rest with the memory with which sampled controllers begin."""
    memory = drive.initial_memory(robot)
    if not memory:
        return state
    return dataclasses.replace(state, memory={**dict(state.memory), **memory})


def spline_drive(robot: Robot, start: Start, goal: Start, duration: float, knots: int) -> Drive:
    """Every joint on a B-spline from start to goal that is close to the quintic."""
    if knots < 1:
        raise ValueError(f"knots: {knots}; expected at least one free value for each joint.")
    first, last = known_coordinates(robot, start), known_coordinates(robot, goal)
    values = spline_values(robot, first, last[None], knots)
    return Drive(joints={name: Motion(bspline(x[0], duration)) for name, x in values.items()})


def spline_values(
    robot: Robot, first: np.ndarray, last: np.ndarray, knots: int
) -> dict[str, np.ndarray]:
    """Control values (B, knots + 2) of :func:`spline_drive` by name of the joint, from coordinates
    (D,) at the start to those at B goals (B, D)."""
    u = np.linspace(0.0, 1.0, 201)
    share = control_values(u, u**3 * (10 + u * (6 * u - 15)), knots + 2)
    values = first + share[None, :, None] * (last[:, None] - first)
    slices = robot.dof_slices()
    found = {name: values[..., slices[name]] for name in drivable(robot)}
    return {name: x[..., 0] if x.shape[-1] == 1 else x for name, x in found.items()}


def inner_values(robot: Robot, drive: Drive, start: Start, goal: Start, knots: int) -> list[Free]:
    """The free control values of a :func:`spline_drive`, in units of the way of their joint."""
    first, last = known_coordinates(robot, start), known_coordinates(robot, goal)
    scales = spline_scales(robot, first, last[None])
    return [
        Free(f"drive.joints.{name}.signal.values.{k}", scale=float(scales[name][0]))
        for name in drive.joints
        for k in range(1, knots + 1)
    ]


def spline_scales(robot: Robot, first: np.ndarray, last: np.ndarray) -> dict[str, np.ndarray]:
    """Unit (B,) of the free control values for B goals, by name of the joint: its way."""
    ways, slices = np.abs(last - first), robot.dof_slices()
    farthest = np.max(ways, axis=1, initial=0.0)
    least = 0.1 * np.where(farthest > 0, farthest, 1.0)
    return {
        name: np.maximum(np.max(ways[:, slices[name]], axis=1), least) for name in drivable(robot)
    }
