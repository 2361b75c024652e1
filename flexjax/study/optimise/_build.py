"""From the arguments of ``optimise`` to a checked problem."""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from flexjax.drive import Drive, Effort
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate.analysis._rest import held_motors, undeformed
from flexjax.study.free import FreeLike, as_free, listed, parameters
from flexjax.study.optimise.problem import (
    HOLDS,
    SHAPED,
    Duration,
    Minimise,
    Problem,
    Spread,
    check_duration,
    check_ends,
    inner_values,
    read_costs,
    read_end,
    read_limits,
    read_samples,
    spline_drive,
)


def build_problem(
    model: AbstractModel,
    drive: Drive | None,
    *,
    goal: Start | Mapping[str, float],
    start: Start | Mapping[str, float] | None,
    duration: float | tuple[float, float],
    minimise: Minimise,
    limits: Mapping[str, Any] | None,
    spread: Mapping[str, Spread] | None,
    samples: int | None,
    free: FreeLike | None,
    knots: int,
    dt: float,
    steps: int | None,
    hold: float | None,
) -> Problem:
    """The problem of a move; refuses what is wrong before anything is compiled."""
    robot = model.robot
    start, goal = read_end(robot, "start", start), read_end(robot, "goal", goal)
    span = _read_duration(duration)
    costs, bounds = read_costs(robot, minimise), read_limits(robot, limits)
    made = drive is None
    if drive is None:
        drive = spline_drive(robot, start, goal, float(span.reference), knots)
        given = [as_free(item) for item in listed([] if free is None else free)]
        if not any("drive" in str(item.path) for item in given):
            # Parameters of the robot are found together with the move.
            free = [*inner_values(robot, drive, start, goal, knots), *given]
    elif free is None:
        raise ValueError(
            "free: none; expected the free parameters of the given drive, e.g. "
            "'drive.joints.*.signal.values'. Without a drive, B-splines are made."
        )
    drive.check(robot)
    par = parameters(free or [], robot, [drive], [], ["the move"], {})
    points = read_samples(robot, spread, samples)
    both = set(par.names) & set(points.parameters.names if points.parameters else ())
    if both:
        raise ValueError(f"spread {sorted(both)[0]!r}: is free too; expected one of the two.")
    steps = _read_steps(span, dt, steps)
    fast = all(c.name == "time" for c in costs)
    efforts = any(isinstance(a, Effort) for a in drive.joints.values())
    # A controller reaches the goal in its own time, and a limit may say how near is enough.
    bounded = any(b.name == "residual_energy" for b in bounds)
    arrive = (fast or efforts) and not bounded
    check_ends(robot, start, goal, bounds)
    if made or arrive:
        check_duration(robot, start, goal, bounds, span.longest, arrive)
    needs_hold = any(c.name in HOLDS or c.own for c in costs)
    hold = (span.longest if hold is None else float(hold)) if needs_hold else 0.0
    if arrive and efforts and not hold:
        hold = span.longest / steps  # a motor that rests is still there after a step
    problem = Problem(
        model=model,
        drive=drive,
        parameters=par,
        samples=points,
        start=start,
        goal=goal,
        costs=costs,
        limits=bounds,
        duration=span,
        hold=np.asarray(hold),
        steps=steps,
        hold_steps=math.ceil(hold / (span.longest / steps) - 1e-9),
        stations=9 if any(b.name in SHAPED for b in bounds) else 2,
        arrive=arrive,
        undeformed=undeformed(model, held_motors(model, goal)),
    )
    # Arrays of jax are arguments of the compiled program; those of numpy would be constants.
    as_array = lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a
    return jtu.tree_map(as_array, problem)


def _read_duration(duration: Any) -> Duration:
    if np.ndim(duration) == 0:
        if not (np.isfinite(duration) and duration > 0):
            raise ValueError(f"duration: {duration}; expected a positive time in seconds.")
        return Duration(float(duration), None)
    if len(duration) != 2 or not 0 < duration[0] < duration[1] < np.inf:
        raise ValueError(
            f"duration: {tuple(duration)}; expected a time in seconds, or (shortest, longest)."
        )
    return Duration(float(duration[1]), (float(duration[0]), float(duration[1])))


def _read_steps(span: Duration, dt: float, steps: int | None) -> int:
    if steps is not None:
        if int(steps) != steps or steps < 2:
            raise ValueError(f"steps: {steps}; expected a whole number of at least 2.")
        return int(steps)
    if not 0 < dt <= span.longest / 2:
        raise ValueError(
            f"dt: {dt}; expected a positive step of at most half the duration, {span.longest:g} s."
        )
    return math.ceil(span.longest / dt - 1e-9)
