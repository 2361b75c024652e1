"""simulate: one call for every formulation."""

import dataclasses
import math
import warnings
from typing import TypeVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax._compile import under_transformation
from flexjax._rules import batch_size
from flexjax._types import NumbersLike, is_traced
from flexjax.drive import Drive, Sampled
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import AbstractTerm, State
from flexjax.robot import Robot
from flexjax.simulate._adaptive import run_adaptive
from flexjax.simulate._arguments import Run
from flexjax.simulate._progress import run_with_bar
from flexjax.simulate._run import run_on_grid
from flexjax.simulate._start import read_drive, read_start
from flexjax.simulate.trajectory import Trajectory, read_stations
from flexjax.simulate.trajectory._failure import raise_failure

Tree = TypeVar("Tree")


def simulate(
    model: AbstractModel,
    drive: Drive | None,
    ts: NumbersLike,
    *,
    dt: float = 1e-3,
    substeps: int | None = None,
    solver: diffrax.AbstractSolver | None = None,
    start: Start | State | dict | None = None,
    stations: int | NumbersLike = 11,
    throw: bool = True,
    progress: bool = False,
    adaptive: diffrax.AbstractStepSizeController | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    max_steps: int = 16384,
    intervals: Array | None = None,
) -> Trajectory:
    """Simulate a model under a drive.

    Forward and reverse mode, vmap and jit need no option. A step ends on every break of the drive.

    Arguments:
        model: a robot in a formulation, e.g. ``fx.FiniteElement().bind(robot)``.
        drive: motions, efforts, controllers and loads; None for none.
        ts: output times [s], increasing, not necessarily even; ``ts[0]`` is the start.
        dt: longest step [s]; it sets ``substeps``, and is the first step of an adaptive run.
        substeps: equal steps per output interval; by default the least number within ``dt``.
        solver: a diffrax solver that accepts the model's term; by default the model's own.
        start: a :class:`Start` (joint coordinates and rates, shapes of links), a dict
            ``{joint: coordinate}``, ``traj.final`` of another run, or an :func:`equilibrium`.
        stations: number of evenly spaced sections that the trajectory stores of every link, or
            their increasing positions in [0, 1]. ``traj.tip`` is at s = 1 in either case.
        throw: raise :class:`SimulationError` on failure if values are concrete; otherwise read
            ``traj.status``.
        progress: show what the call does (tracing, compiling, running), and a bar with rate and
            remaining time. This compiles programs of its own, and needs the fixed grid and a call
            outside ``jax.jit``, ``grad`` and ``vmap``. Numbers are the same to rounding.
        adaptive: a diffrax step-size controller, e.g. ``diffrax.PIDController(rtol=1e-8,
            atol=1e-10)``; or ``diffrax.StepTo(ts=...)`` for given steps, which must include the
            breaks of the drive. Such runs use ``diffrax.diffeqsolve``.
        adjoint: of an adaptive run; by default for reverse mode. Forward mode needs
            ``diffrax.ForwardMode()`` or ``diffrax.DirectAdjoint()``.
        max_steps: largest number of steps of an adaptive run.
        intervals: end the run after this number of output intervals. It may change without
            compiling again. Later outputs are NaN. With breaks in the drive such a run has no
            reverse mode.

    Returns:
        A :class:`Trajectory` at the times ``ts``.

    Raises:
        ValueError: the drive or the start does not fit the robot, or an argument is invalid.
        SimulationError: the run failed, with ``throw=True`` and outside compiled code.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> traj.ok
    True
    """
    if progress:
        _refuse_progress(adaptive)
    check_model(model)
    robot = model.robot
    drive = read_drive(drive, robot)
    dtype = robot.gravity.dtype
    drive = to_precision(drive, dtype)
    times = _output_times(ts)
    substeps = _substeps(times, dt, substeps)
    ts = jnp.asarray(times, dtype)
    solver = model.default_solver(drive) if solver is None else solver
    check_solver(solver, model, drive)
    start = read_start(start, model, drive, times[0])
    stations = read_stations(stations, dtype)
    solver = to_precision(solver, dtype)
    solver = differentiable(solver)
    run = Run(model, drive, ts, solver, start, stations)
    if adaptive is not None:
        if not isinstance(adaptive, diffrax.AbstractStepSizeController):
            raise ValueError(
                f"adaptive: {adaptive!r}; expected a step-size controller, e.g. "
                "diffrax.PIDController(rtol=1e-6, atol=1e-8)."
            )
        if intervals is not None:
            raise ValueError(
                "intervals: with adaptive steps; expected the fixed grid. Leave adaptive out, or "
                "shorten ts."
            )
        _refuse_memory(drive, model.robot)
        adjoint = diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
        traj = run_adaptive(run, dt, adaptive, adjoint, max_steps)
    else:
        intervals = None if intervals is None else jnp.asarray(intervals)
        batch = 1 << (batch_size((model, drive, ts, start)) - 1).bit_length()
        run = dataclasses.replace(run, substeps=substeps, intervals=intervals, batch=batch)
        traj = run_with_bar(run) if progress else run_on_grid(run)
    if throw:
        raise_failure(traj, drive)
    # Without jit the status is known under a derivative, and the rest of the run is traced.
    if not under_transformation():
        for message in model.formulation.run_warnings(model, traj):
            warnings.warn(message, stacklevel=2)
    return traj


def differentiable(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """The solver, with stages that can be differentiated in forward mode too."""
    if isinstance(solver, diffrax.AbstractRungeKutta) and solver.scan_kind is None:
        return dataclasses.replace(solver, scan_kind="bounded")
    return solver


def to_precision(tree: Tree, dtype: DTypeLike) -> Tree:
    """The tree with all its floating-point numbers in one precision."""
    return jtu.tree_map(lambda x: jnp.asarray(x, dtype) if eqx.is_inexact_array(x) else x, tree)


def _output_times(ts: NumbersLike) -> np.ndarray | Float[Array, " T"]:
    """Checked output times, on the host if they are concrete: inside a compiled function even
    constants would become tracers."""
    try:
        ts = ts if is_traced(ts) else np.asarray(ts, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"ts: {ts!r:.80}; expected output times in seconds, e.g. jnp.linspace(0, 1, 101)."
        ) from None
    if ts.ndim != 1 or ts.shape[0] < 2:
        raise ValueError(
            f"ts: shape {ts.shape}; expected at least two output times in one dimension, e.g. "
            "jnp.linspace(0, 1, 101)."
        )
    if not is_traced(ts):
        steps = np.diff(ts)
        if not np.all(np.isfinite(ts)) or np.any(steps <= 0):
            raise ValueError(
                f"ts: not increasing or not finite (smallest step {np.min(steps):g} s); expected "
                "increasing times in seconds."
            )
    return ts


def _substeps(ts: np.ndarray | Array, dt: float, substeps: int | None) -> int:
    if substeps is not None:
        whole = isinstance(substeps, int | float | np.number) and substeps == np.floor(substeps)
        if not whole or not 1 <= substeps < np.inf:
            raise ValueError(f"substeps: {substeps!r}; expected a whole number of at least 1.")
        return int(substeps)
    if is_traced(ts):
        raise ValueError(
            "ts: traced output times need an explicit number of substeps: pass substeps=..., or "
            "make ts outside the compiled function."
        )
    number = isinstance(dt, int | float | np.number | np.ndarray | Array) and np.ndim(dt) == 0
    if not number or not dt > 0:
        raise ValueError(f"dt: {dt!r}; expected a positive step in seconds, e.g. 1e-3.")
    # A hair below 1, so that linspace's rounding does not cost an extra substep.
    return max(1, math.ceil(float(np.max(np.diff(ts))) / dt * (1 - 1e-6)))


def check_model(model: AbstractModel) -> None:
    if not isinstance(model, AbstractModel):
        raise ValueError(
            f"model: {type(model).__name__}; expected a robot in a formulation, e.g. "
            "fx.FiniteElement().bind(robot)."
        )


def check_solver(solver: diffrax.AbstractSolver, model: AbstractModel, drive: Drive) -> None:
    """Refuse a solver that does not integrate the model's term."""
    if not isinstance(solver, diffrax.AbstractSolver):
        own = type(model.default_solver(drive)).__name__
        raise ValueError(
            f"solver: {solver!r}; expected a solver of flexjax or diffrax, e.g. fx.{own}()."
        )
    wanted = solver.term_structure
    term = model.term(drive)
    if not isinstance(wanted, type):
        raise ValueError(
            f"solver: {type(solver).__name__} integrates several terms, {wanted}; expected one of "
            f"a single term, e.g. {type(model.default_solver(drive)).__name__}."
        )
    if not isinstance(term, wanted):
        raise ValueError(
            f"solver: {type(solver).__name__} integrates {wanted.__name__}, but "
            f"{type(model.formulation).__name__} gives {type(term).__name__}; "
            f"expected for instance {type(model.default_solver(drive)).__name__}."
        )
    if not issubclass(wanted, AbstractTerm) and term.no_ode:
        raise ValueError(f"solver: {type(solver).__name__} needs all rates, but {term.no_ode}.")


def _refuse_progress(adaptive: diffrax.AbstractStepSizeController | None) -> None:
    if adaptive is not None:
        raise ValueError(
            "progress: with adaptive steps; expected the fixed grid. Leave out progress, or "
            "adaptive."
        )
    if under_transformation():
        raise ValueError(
            "progress: True inside jax.jit, grad or vmap; expected a direct call. Leave it out."
        )


def _refuse_memory(drive: Drive, robot: Robot) -> None:
    """What advances once a step has no meaning where steps are tried and rejected."""
    for joint in robot.tree_joints:
        frictions = (joint.friction, joint.output_friction, joint.spring_friction)
        if any(f is not None and f.bristle is not None for f in frictions):
            raise ValueError(
                f"adaptive: with bristles at joint {joint.name!r}; expected the fixed grid. Leave "
                "adaptive out, or leave bristle out of the friction."
            )
    sampled = [name for name, act in drive.joints.items() if isinstance(act, Sampled)]
    if sampled:
        raise ValueError(
            f"adaptive: with the sampled controller of joint {sampled[0]!r}; expected the fixed "
            "grid. Leave adaptive out, or use Feedback."
        )
