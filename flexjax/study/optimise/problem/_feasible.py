"""What can be refused before anything is compiled: ends outside the limits, too short durations."""

import math

import numpy as np

from flexjax._types import is_traced
from flexjax.formulation import Start
from flexjax.robot import Robot
from flexjax.simulate import Rest
from flexjax.study.optimise.problem._limits import Limit
from flexjax.study.optimise.problem._motions import coordinates, drivable
from flexjax.study.optimise.problem._problem import NO_REST, Problem


def shortest_time(way: float, velocity: float, acceleration: float, jerk: float) -> float:
    """Shortest duration from rest to rest under three limits, of which some may be infinite."""
    way = abs(way)
    if way == 0:
        return 0.0
    # Time of the acceleration phase if the velocity is reached.
    if not math.isfinite(velocity):
        phase = math.inf
    elif not math.isfinite(jerk):
        phase = velocity / acceleration
    elif velocity * jerk >= acceleration**2:
        phase = acceleration / jerk + velocity / acceleration
    else:
        phase = 2 * math.sqrt(velocity / jerk)
    if math.isfinite(phase) and way >= velocity * phase:
        return way / velocity + phase
    if not math.isfinite(jerk):
        return 2 * math.sqrt(way / acceleration)
    if math.isfinite(acceleration) and way >= 2 * acceleration**3 / jerk**2:
        half = acceleration / (2 * jerk)
        return 2 * (half + math.sqrt(half**2 + way / acceleration))
    return (32 * way / jerk) ** (1 / 3)


def check_ends(robot: Robot, start: Start, goal: Start, limits: tuple[Limit, ...]) -> None:
    """Refuse a start or a goal outside of end stops or position limits."""
    slices = robot.dof_slices()
    position = _bounds(limits, "position")
    for name, end in (("start", start), ("goal", goal)):
        q = coordinates(robot, end)
        if q is None:
            continue
        for joint in drivable(robot):
            stops = robot.joints[robot.joint_index(joint)].stops
            ranges = [("its end stops", (stops.lower, stops.upper))] if stops is not None else []
            ranges += [(f"limits.position.{joint}", position[joint])] if joint in position else []
            for where, (low, high) in ranges:
                for x in q[slices[joint]]:
                    if not is_traced(low) and not float(low) <= x <= float(high):
                        raise ValueError(
                            f"{name}.{joint}: {x:g}; expected a coordinate within {where}, "
                            f"{float(low):g} to {float(high):g}."
                        )


def check_duration(
    robot: Robot,
    start: Start,
    goal: Start,
    limits: tuple[Limit, ...],
    longest: float,
    arrive: bool,
) -> None:
    """Refuse a duration in which no motion from rest to rest stays within the limits.

    A flexible joint need not rest at the goal unless it has to ``arrive``, so nothing is known of
    its coordinate.
    """
    kinds = {name: _bounds(limits, name) for name in ("velocity", "acceleration", "jerk")}
    slices = robot.dof_slices()
    q0, q1 = coordinates(robot, start), coordinates(robot, goal)
    if q0 is None or q1 is None:
        return
    for joint in drivable(robot):
        found = {name: bounds[joint] for name, bounds in kinds.items() if joint in bounds}
        if not found or (robot.joints[robot.joint_index(joint)].flexible and not arrive):
            continue
        numbers = [found.get(name, math.inf) for name in kinds]
        at = slices[joint]
        for a, b in zip(q0[at], q1[at], strict=True):
            least = shortest_time(b - a, *numbers)
            if longest < least * (1 - 1e-9):
                listed = ", ".join(f"{name} {bound:g}" for name, bound in found.items())
                raise ValueError(
                    f"duration: {longest:g} s; joint {joint!r} takes at least {least:.4g} s from "
                    f"{a:g} to {b:g} within its limits ({listed}). Give a longer duration, or "
                    "wider limits."
                )


def check_rest(problem: Problem, ends: tuple[Rest, Rest]) -> None:
    """Refuse limits that the arm violates at rest, or in moving between the ends at all."""
    robot, limits = problem.model.robot, problem.limits
    effort, slices = _bounds(limits, "effort"), robot.dof_slices()
    for name, rest in zip(("start", "goal"), ends, strict=True):
        if not np.all(np.isfinite(np.asarray(rest.tip))):
            raise ValueError(f"{name}: {NO_REST}")
        for joint, bound in effort.items():
            held = np.max(np.abs(np.asarray(rest.effort)[..., slices[joint]]))
            if held > bound * (1 + 1e-9):
                raise ValueError(
                    f"limits.effort.{joint}: {bound:g}; the arm at rest at the {name} takes "
                    f"{held:.4g}. Expected a larger limit, or another {name}."
                )
        for limit in limits:
            if limit.name != "keep_out":
                continue
            tips = np.asarray(rest.tip).reshape(-1, 3)
            for label, ball in zip(limit.labels, np.asarray(limit.bounds), strict=True):
                if np.min(np.linalg.norm(tips - ball[:3], axis=1)) < ball[3]:
                    raise ValueError(
                        f"limits.keep_out: the tip is inside of {label} at the {name}; expected "
                        f"balls that leave the {name} free."
                    )
    for limit in limits:
        if limit.name == "tip_speed":
            first, last = (np.asarray(rest.tip)[0] for rest in ends)
            way, speed = float(np.linalg.norm(last - first)), float(limit.bounds[0])
            if way > speed * problem.duration.longest:
                raise ValueError(
                    f"limits.tip_speed: {speed:g}; the tip moves by {way:.4g} m, which takes at "
                    f"least {way / speed:.4g} s. Expected a longer duration than "
                    f"{problem.duration.longest:g} s, or a larger limit."
                )


def _bounds(limits: tuple[Limit, ...], name: str) -> dict:
    """Bounds of one limit by joint; the labels of several coordinates are ``joint.k``."""
    return {
        label.partition(".")[0]: bound if np.ndim(bound) else float(bound)
        for limit in limits
        if limit.name == name
        for label, bound in zip(limit.labels, limit.bounds, strict=True)
    }
