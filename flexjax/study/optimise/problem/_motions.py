"""Motions of a move: B-splines from start to goal whose inner control values are free."""

import dataclasses
from collections.abc import Mapping

import numpy as np

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
    known = drivable(robot)
    for joint, value in given.items():
        if joint not in known:
            raise ValueError(
                f"{name}.{joint}: no such joint that can be driven; expected one of "
                f"{', '.join(known)}."
            )
        if not np.all(np.isfinite(np.asarray(value, float))):
            raise ValueError(f"{name}.{joint}: {value}; expected a finite coordinate.")
    return Start(joints=given)


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
    (q0, _, _), (q1, _, _) = start.vectors(robot), goal.vectors(robot)
    slices, joints = robot.dof_slices(), {}
    u = np.linspace(0.0, 1.0, 201)
    quintic = u**3 * (10 + u * (6 * u - 15))
    way = control_values(u, quintic, knots + 2)
    for name in drivable(robot):
        at = slices[name]
        a, b = (np.asarray(q)[at] for q in (q0, q1))
        values = a[None] + way[:, None] * (b - a)[None]
        joints[name] = Motion(bspline(values[:, 0] if values.shape[1] == 1 else values, duration))
    return Drive(joints=joints)


def inner_values(robot: Robot, drive: Drive, start: Start, goal: Start, knots: int) -> list[Free]:
    """The free control values of a :func:`spline_drive`, in units of the way of their joint."""
    ways = np.abs(np.asarray(goal.vectors(robot)[0]) - np.asarray(start.vectors(robot)[0]))
    slices, farthest = robot.dof_slices(), float(np.max(ways, initial=0.0)) or 1.0
    found = []
    for name in drive.joints:
        way = float(np.max(ways[slices[name]]))
        scale = max(way, 0.1 * farthest)
        found += [
            Free(f"drive.joints.{name}.signal.values.{k}", scale=scale) for k in range(1, knots + 1)
        ]
    return found
