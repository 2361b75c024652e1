"""optimise: fast moves without vibration, robust over uncertain parameters."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from flexjax._phases import phases
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import simulate
from flexjax.simulate._rest import held_motors, undeformed
from flexjax.study.free import FreeLike, parameters
from flexjax.study.optimise._costs import HOLDS, Minimise, read_costs
from flexjax.study.optimise._feasible import check_duration, check_ends, check_rest
from flexjax.study.optimise._limits import SHAPED, read_limits
from flexjax.study.optimise._motions import inner_values, read_end, spline_drive
from flexjax.study.optimise._problem import Duration, Problem
from flexjax.study.optimise._result import Optimisation, summarise_active
from flexjax.study.optimise._samples import Spread, read_samples
from flexjax.study.optimise._search import Search


def optimise(
    model: AbstractModel,
    drive: Drive | None = None,
    *,
    goal: Start | Mapping[str, float],
    start: Start | Mapping[str, float] | None = None,
    duration: float | tuple[float, float],
    minimise: Minimise = "residual_energy",
    limits: Mapping[str, Any] | None = None,
    spread: Mapping[str, Spread] | None = None,
    samples: int | None = None,
    over: str = "worst",
    free: FreeLike | None = None,
    knots: int = 8,
    dt: float = 1e-3,
    steps: int | None = None,
    hold: float | None = None,
    iterations: int = 200,
    tolerance: float = 1e-12,
    progress: bool | Callable[[str], None] = False,
) -> Optimisation:
    """Find the best move from rest to rest, with exact derivatives of the simulation.

    By default every joint follows a B-spline whose inner control values are free. The best move
    for the nominal robot is not robust: give ``spread`` for the parameters that vary, and the move
    is good for all of them.

    Arguments:
        model: a robot in a formulation.
        drive: motions, efforts or controllers in place of the B-splines, with ``free`` numbers.
        goal: coordinates at the end by name of the joint; other joints end at home.
        start: coordinates at the start; by default the robot's home.
        duration: duration [s]; (shortest, longest) makes it free.
        minimise: a cost or several with weights, {"residual_energy": 1.0, "jerk": 1e-6}, of
            "residual_energy" (when the move ends), "residual_tip" (tip motion afterwards),
            "deflection", "effort", "energy", "jerk", "time"; or a function of the trajectory. With
            "time" alone the arm has to rest at the goal.
        limits: bounds at every step and for all samples, for all joints or by name: "position"
            (lower, upper), "velocity", "acceleration", "jerk", "effort", "power"; for links
            "strain" (at the surface); "tip_speed"; "keep_out" balls (x, y, z, radius).
        spread: uncertain parameters of the robot: a share of their value, or (low, high).
        samples: number of samples of the spread, the nominal robot included.
        over: "worst" minimises the cost of the worst sample, "mean" the mean.
        free: paths of free numbers, as in :func:`identify`: ``drive.joints.*.signal.values.*``, or
            parameters of the robot, which are found together with the move.
        knots: free control values of each joint.
        dt: longest step [s].
        steps: steps of the move, in place of ``dt``.
        hold: simulated time after the move [s], for costs that look at it; by default the duration.
        iterations: largest number of iterations.
        tolerance: change of the relative cost that ends the search.
        progress: show what the call does, and cost and violation of every iteration; a function
            takes the lines.

    Returns:
        :class:`Optimisation`.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
    >>> res = fx.optimise(model, goal={"motor": 0.5}, duration=0.4, dt=1e-2, knots=4)
    >>> res.ok
    True
    """
    robot = model.robot
    start, goal = read_end(robot, "start", start), read_end(robot, "goal", goal)
    span = _read_duration(duration)
    costs, bounds = read_costs(minimise), read_limits(robot, limits)
    if over not in ("worst", "mean"):
        raise ValueError(f"over: {over!r}; expected 'worst' or 'mean'.")
    made = drive is None
    if drive is None:
        drive = spline_drive(robot, start, goal, float(span.reference), knots)
        if free is None:
            free = inner_values(drive, knots)
    elif free is None:
        raise ValueError(
            "free: none; expected the free numbers of the given drive, e.g. "
            "'drive.joints.*.signal.values'. Without a drive, B-splines are made."
        )
    drive.check(robot)
    par = parameters(free, robot, [drive], [], ["the move"], {})
    points = read_samples(robot, spread, samples)
    both = set(par.names) & set(points.parameters.names if points.parameters else ())
    if both:
        raise ValueError(f"spread {sorted(both)[0]!r}: is free too; expected one of the two.")
    steps = _read_steps(span, dt, steps)
    efforts = not np.all(drive.prescribed(robot))
    arrive = all(c.name == "time" for c in costs) or efforts
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
    show = (progress if callable(progress) else print) if progress else None
    with phases(show or (lambda text: None)):
        ends = problem.ends()
        check_rest(robot, bounds, {"goal": ends[1]})
        search = Search(problem, ends, over, show)
        x0 = np.zeros(par.size + 1)
        x0[-1] = span.share(float(span.reference))
        found = search.run(x0, _bounds(problem), iterations, tolerance)
    return _result(problem, found)


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


def _bounds(problem: Problem) -> list:
    none = [(None, None)] * problem.parameters.size
    return [*none, (0.0, 1.0) if problem.duration.free else (0.0, 0.0)]


def _result(problem: Problem, found) -> Optimisation:
    x = jnp.asarray(found.point.x)
    drive, duration = problem.drive_of(x), problem.duration_of(x)
    model = problem.model.rebind(problem.robot_of(x))
    state = problem.ends()[0]
    after = max(float(problem.hold), float(duration))
    count = max(1, math.ceil(after / float(duration) * problem.steps))
    step = float(duration) / problem.steps
    ts = np.concatenate(
        [
            np.linspace(0.0, float(duration), problem.steps + 1),
            float(duration) + step * np.arange(1, count + 1),
        ]
    )
    traj = simulate(
        model, drive, ts, substeps=1, start=jtu.tree_map(lambda a: a[0], state), throw=False
    )
    costs = found.point.costs
    return Optimisation(
        model=model,
        drive=drive,
        duration=float(duration),
        start=problem.start,
        goal=problem.goal,
        names=problem.parameters.names,
        values=np.asarray(problem.parameters.values(x[: problem.parameters.size])),
        trajectory=traj,
        costs={
            c.name: (float(costs[0, k]), float(np.max(costs[:, k])))
            for k, c in enumerate(problem.costs)
        },
        violation=found.point.violation,
        active=summarise_active(problem, found),
        status=found.status,
        message=found.message,
        kkt=found.kkt,
        history=found.history,
        evaluations=found.evaluations,
        seconds=found.seconds,
        steps=problem.steps,
        samples=problem.samples.values,
        spread=problem.samples.parameters.names if problem.samples.parameters else (),
        limits=problem.limits,
    )
