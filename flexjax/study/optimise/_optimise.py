"""optimise: fast moves without vibration, robust over uncertain parameters."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from flexjax._phases import phases
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.study.free import FreeLike
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise._guess import first_guess, writer
from flexjax.study.optimise._replay import run_move, run_times
from flexjax.study.optimise._result import Optimisation, name_violation, summarise_active
from flexjax.study.optimise.problem import Minimise, Problem, Spread, check_rest
from flexjax.study.optimise.search import METHODS, Found, Search, best_of, box

INSIDE = ("gauss-newton", "sqp")  # methods that run inside jit


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
    method: str | None = None,
    starts: int = 1,
    guess: Optimisation | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
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
            "deflection", "effort", "energy", "jerk", "time"; "tip_path" (a signal (3,) for the
            tip) and "tracking" (signals by joint), given as {"tip_path": (signal, weight)}; or a
            function of the trajectory. With "time" alone the arm has to rest at the goal.
        limits: bounds at every step and for all samples, for all joints or by name: "position"
            (lower, upper), "velocity", "acceleration", "jerk", "effort", "power"; for links
            "strain" and "stress" [Pa] (at the surface), "mass" [kg]; "tip_speed"; "keep_out" balls
            (x, y, z, radius); "residual_energy" at the end [J], in place of exact rest;
            "stability", the least decay rate [1/s] of the closed loop linearised at the goal.
        spread: uncertain parameters of the robot: a share of their value, or (low, high).
        samples: number of samples of the spread, the nominal robot included.
        over: "worst" minimises the cost of the worst sample, "mean" the mean.
        free: paths of free parameters, as in :func:`identify`: ``drive.joints.*.signal.values.*``.
            Parameters of the robot are found together with the move.
        knots: free control values of each joint.
        dt: longest step [s].
        steps: steps of the move, in place of ``dt``.
        hold: simulated time after the move [s], for costs that look at it; by default the duration.
        method: "gauss-newton" (default for costs that are sums of squares, i.e. all but
            "deflection", "energy" and functions); "slsqp" (default for others); "sqp", which like
            the first runs inside jit; "interior-point" and "nlopt" (extra ``optimise``).
        starts: number of first guesses, all but one random, searched side by side; the best one
            continues.
        guess: a result to start from, with the same free parameters.
        checkpoint: a file (.npz) that keeps the best move so far; an existing one is continued.
        iterations: largest number of iterations.
        tolerance: change of the cost that ends the search, relative to the first guess: of its
            amplitude with "gauss-newton" (default 1e-5), else of the cost itself.
        progress: show what the call does, and cost and violation of every iteration; a function
            takes the lines.

    Returns:
        :class:`Optimisation`.

    Raises:
        ValueError: goal, limits or drive do not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
    >>> res = fx.optimise(model, goal={"motor": 0.5}, duration=0.4, dt=1e-2, knots=4)
    >>> res.ok
    True
    """
    if over not in ("worst", "mean"):
        raise ValueError(f"over: {over!r}; expected 'worst' or 'mean'.")
    problem = build_problem(
        model,
        drive,
        goal=goal,
        start=start,
        duration=duration,
        minimise=minimise,
        limits=limits,
        spread=spread,
        samples=samples,
        free=free,
        knots=knots,
        dt=dt,
        steps=steps,
        hold=hold,
    )
    method = read_method(problem, method)
    if starts < 1 or int(starts) != starts:
        raise ValueError(f"starts: {starts}; expected a whole number of at least 1.")
    x0 = first_guess(problem, guess, checkpoint)
    show = (progress if callable(progress) else print) if progress else None
    with phases(show or (lambda text: None)):
        ends = problem.ends()
        check_rest(problem, ends)
        if starts > 1:
            x0 = best_of(problem, over, method == "gauss-newton", x0, int(starts), iterations)
        search = Search(problem, ends, over, show, writer(problem, checkpoint))
        if method in INSIDE:
            curved = method == "gauss-newton"
            least = 1e-5 if tolerance is None else tolerance
            found = search.run_inside(x0, box(problem), curved, iterations, least)
        else:
            least = 1e-12 if tolerance is None else tolerance
            found = search.run(x0, box(problem), method, iterations, least)
    return make_result(problem, found)


def read_method(problem: Problem, method: str | None) -> str:
    """The method of a search, by default that which suits its costs."""
    squares = [cost.squares for cost in problem.costs]
    if method is None:
        fast = all(c.name == "time" for c in problem.costs)
        return "gauss-newton" if all(squares) and not fast else "slsqp"
    if method not in (*INSIDE, *METHODS):
        raise ValueError(f"method: {method!r}; expected one of {', '.join((*INSIDE, *METHODS))}.")
    if method == "gauss-newton" and not all(squares):
        name = problem.costs[squares.index(False)].name
        raise ValueError(
            f"method: 'gauss-newton' with minimise.{name}, which is no sum of squares; expected "
            "'slsqp', or another cost."
        )
    return method


def make_result(problem: Problem, found: Found) -> Optimisation:
    """The result of a search, with the nominal run."""
    x = jnp.asarray(found.point.x)
    drive, duration = problem.drive_of(x), problem.duration_of(x)
    model = problem.model.rebind(problem.robot_of(x))
    ts = run_times(model, problem.goal, float(duration), problem.steps, least=float(problem.hold))
    traj = run_move(model, drive, problem.start, ts, throw=False)
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
        active=summarise_active(problem, found.point),
        status=found.status,
        message=name_violation(problem, found.point, found.status) or found.message,
        kkt=found.kkt,
        history=found.history,
        evaluations=found.evaluations,
        seconds=found.seconds,
        steps=problem.steps,
        samples=np.asarray(problem.samples.values),
        spread=problem.samples.parameters.names if problem.samples.parameters else (),
        limits=problem.limits,
    )
