"""simulate: one call for every formulation."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from flexjax._results import SimulationError, Status
from flexjax._types import NumbersLike, ScalarLike, is_traced
from flexjax.drive import Drive, Sampled
from flexjax.drive.signal import prepare as prepare_signals, separate
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import robot_faults
from flexjax.simulate._compile import compiler_options, under_transformation
from flexjax.simulate._controller import stopping_at
from flexjax.simulate._march import Lane, march
from flexjax.simulate._range import guarded
from flexjax.simulate._start import first_state, marked, origin_of, read_start
from flexjax.simulate.trajectory import Sections, Statistics, Trajectory, read_stations

# Bytes of stored steps above which reverse mode recomputes each output interval instead of storing
# it (1.2x against 2.3x the forward time).
STORE_LIMIT = 2e9

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
    """Simulate a model under a drive and return its trajectory at the times ``ts`` (increasing, not
    necessarily even; ``ts[0]`` is the start).

    Every output interval is divided evenly into ``substeps`` steps, by default the least number
    that makes steps of at most ``dt``; a step boundary stands on every break of the drive.
    Gradients in forward and reverse mode, vmap and jit work through it without options.

    ``start``: a :class:`Start` (joint coordinates and rates, shapes of links, by name), a dict
    ``{joint: coordinate}``, the ``final`` state of another run, or what :func:`equilibrium`
    returns. ``stations``: how many evenly spaced sections of every link the trajectory stores, or
    their increasing positions in [0, 1]. ``traj.tip`` is at s = 1 whatever they are. ``throw``:
    raise :class:`SimulationError` on failure when values are concrete; otherwise read
    ``traj.status``. ``progress``: show a bar (a separately compiled variant). ``adaptive``: a
    diffrax step-size controller, e.g. ``diffrax.PIDController(rtol=1e-8, atol=1e-10)`` with
    ``solver=diffrax.Tsit5()`` or ``fx.Newmark()``; or ``diffrax.StepTo(ts=...)`` for steps of your
    own (with the breaks of the drive among them); such runs go through ``diffrax.diffeqsolve``,
    whose ``adjoint`` must fit the mode of differentiation (by default reverse mode; forward mode
    needs ``diffrax.ForwardMode()`` or ``diffrax.DirectAdjoint()``). ``intervals``: end after that
    many output intervals, a number that may change without compiling again; outputs after it are
    NaN. Under a drive with breaks such a run has no reverse mode.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> traj.ok
    True
    """
    drive = Drive() if drive is None else drive
    robot = model.robot
    drive.check(robot)
    dtype = robot.gravity.dtype
    drive = _cast(drive, dtype)
    times = _output_times(ts)
    substeps = _substeps(times, dt, substeps)
    ts = jnp.asarray(times, dtype)
    solver = model.default_solver(drive) if solver is None else solver
    _check_solver(solver, model, drive)
    start = read_start(start, model, drive, ts[0])
    stations = read_stations(stations, dtype)
    solver = _cast(solver, dtype)
    if isinstance(solver, diffrax.AbstractRungeKutta) and solver.scan_kind is None:
        # diffrax's own default for the stages cannot be differentiated in forward mode.
        solver = dataclasses.replace(solver, scan_kind="bounded")
    if adaptive is not None:
        if intervals is not None:
            raise ValueError("intervals: needs the fixed grid; leave adaptive out, or shorten ts.")
        _refuse_sampled(drive)
        adjoint = diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
        traj = _run_adaptive(
            model, drive, ts, dt, solver, start, stations, adaptive, adjoint, max_steps
        )
    else:
        run = (
            _run_with_bar if progress else _run_in_trace if under_transformation() else _quick_run()
        )
        traj = run(
            model,
            drive,
            ts,
            substeps,
            solver,
            start,
            stations,
            intervals if intervals is None else jnp.asarray(intervals),
        )
    if throw:
        _raise_failure(traj)
    if not is_traced(traj.status):
        for remark in model.formulation.run_warnings(model, traj):
            warnings.warn(remark, stacklevel=2)
    return traj


def _cast(tree: Tree, dtype: DTypeLike) -> Tree:
    return jtu.tree_map(lambda x: jnp.asarray(x, dtype) if eqx.is_inexact_array(x) else x, tree)


def _output_times(ts: NumbersLike) -> np.ndarray | Float[Array, " T"]:
    """Checked, and on the host where they can be: inside a compiled function even constants would
    become tracers."""
    ts = ts if is_traced(ts) else np.asarray(ts, float)
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
        if int(substeps) != substeps or substeps < 1:
            raise ValueError(f"substeps: {substeps}; expected a whole number of at least 1.")
        return int(substeps)
    if is_traced(ts):
        raise ValueError(
            "ts: traced output times need an explicit number of substeps: pass substeps=..., or "
            "make ts outside the compiled function."
        )
    if not dt > 0:
        raise ValueError(f"dt: {dt}; expected a positive step in seconds.")
    # A hair below 1, so that linspace's rounding does not cost an extra substep.
    return max(1, math.ceil(float(np.max(np.diff(ts))) / dt * (1 - 1e-6)))


def _check_solver(solver: diffrax.AbstractSolver, model: AbstractModel, drive: Drive) -> None:
    wanted = solver.term_structure
    term = model.term(drive)
    if isinstance(wanted, type) and not isinstance(term, wanted):
        raise ValueError(
            f"solver: {type(solver).__name__} integrates {wanted.__name__}, but "
            f"{type(model.formulation).__name__} gives {type(term).__name__}; "
            f"expected for instance {type(model.default_solver(drive)).__name__}."
        )


def _raise_failure(traj: Trajectory) -> None:
    if is_traced(traj.status) or traj.status.ndim or traj.ok:
        return
    raise failure_of(traj)


def failure_of(traj: Trajectory) -> SimulationError:
    """Why a run failed, with time and place."""
    status, where = Status(int(traj.status)), int(traj.where)
    if status == Status.invalid_parameter:
        return SimulationError(status, float(traj.t_fail), None, " ".join(robot_faults(traj.robot)))
    place = f"joint {traj.robot.joints[where].name!r}" if where >= 0 else _busiest(traj)
    return SimulationError(status, float(traj.t_fail), place)


def _busiest(traj: Trajectory) -> str | None:
    """Where to look when a step failed as a whole: the fastest joint and the most bent link at the
    last good output."""
    robot, traj = traj.robot, traj.whole()
    good = np.flatnonzero(np.isfinite(np.asarray(traj.tip)).all(axis=1))
    if not len(good):
        return None
    k, parts = good[-1], []
    if robot.dofs:
        rates = np.abs(np.asarray(traj.qd[k]))
        joint = next(
            j
            for j, s in zip(robot.tree_joints, robot.dof_slices().values(), strict=True)
            if np.argmax(rates) in range(*s.indices(robot.dofs))
        )
        parts.append(
            f"joint {joint.name!r} (the fastest, {np.max(rates):.3g} "
            f"{'m' if joint.type in ('prismatic', 'sliding') else 'rad'}/s)"
        )
    bent = np.max(np.abs(np.asarray(traj.deflection[k])), axis=(1, 2)) / np.array(
        [float(link.length) for link in robot.links]
    )
    if np.max(bent) > 0:
        parts.append(
            f"link {robot.links[int(np.argmax(bent))].name!r} (the most bent, {np.max(bent):.2g} "
            "of its length)"
        )
    return f"{' or '.join(parts)}, as seen at t = {float(traj.ts[k]):.6g} s" if parts else None


def _run(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    substeps: int,
    solver: diffrax.AbstractSolver,
    start: Start | State,
    stations: tuple[Float[Array, " S"], bool],
    intervals: Int[Array, ""] | None,
) -> Trajectory:
    return _integrate(model, drive, ts, substeps, solver, start, stations, None, intervals)


# Inside a program that somebody else compiles, its options hold.
_run_in_trace = eqx.filter_jit(_run)


@functools.cache
def _quick_run():
    options = compiler_options()
    if options is None:
        return _run_in_trace
    # equinox passes on the options of jax.jit, which its overloads do not name.
    return eqx.filter_jit(_run, compiler_options=options)  # pyright: ignore[reportCallIssue]


@eqx.filter_jit
def _run_compiled_with_bar(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    substeps: int,
    solver: diffrax.AbstractSolver,
    start: Start | State,
    stations: tuple[Float[Array, " S"], bool],
    intervals: Int[Array, ""] | None,
    report: Callable[[Array, int], None],
) -> Trajectory:
    return _integrate(model, drive, ts, substeps, solver, start, stations, report, intervals)


def _run_with_bar(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    substeps: int,
    solver: diffrax.AbstractSolver,
    start: Start | State,
    stations: tuple[Float[Array, " S"], bool],
    intervals: Int[Array, ""] | None,
) -> Trajectory:
    from tqdm.auto import tqdm

    with tqdm(total=ts.shape[0] - 1, unit="output", desc=model.robot.name) as bar:

        def advance(k):
            bar.update(int(k) + 1 - bar.n)

        def report(k, outputs):
            jax.lax.cond(k < outputs, lambda: jax.debug.callback(advance, k), lambda: None)

        traj = _run_compiled_with_bar(
            model, drive, ts, substeps, solver, start, stations, intervals, report
        )
        jax.block_until_ready(traj.ts)
        bar.update(bar.total - bar.n)
    return traj


def _integrate(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    substeps: int,
    solver: diffrax.AbstractSolver,
    start: Start | State,
    stations: tuple[Float[Array, " S"], bool],
    report: Callable[[Array, int], None] | None,
    intervals: Int[Array, ""] | None,
) -> Trajectory:
    holds, drive, start = guarded(model, drive, start)
    drive = prepare_signals(drive)
    y0 = first_state(model, drive, ts[0], start)
    size = sum(x.size * x.dtype.itemsize for x in jtu.tree_leaves(y0))
    checkpoint = 20 * size * (ts.shape[0] - 1) * substeps > STORE_LIMIT
    ys, pieces, lane = march(
        model,
        drive,
        solver,
        ts,
        substeps,
        y0,
        checkpoint=checkpoint,
        report=report,
        intervals=intervals,
        holds=holds,
    )
    return _assemble(
        model,
        drive,
        ts,
        ys,
        pieces,
        lane,
        stations,
        jnp.max(jnp.diff(ts)) / substeps,
        type(solver).__name__,
        origin_of(model, start),
        intervals,
    )


def _refuse_sampled(drive: Drive) -> None:
    sampled = [name for name, act in drive.joints.items() if isinstance(act, Sampled)]
    if sampled:
        raise ValueError(
            f"adaptive: the sampled controller of joint {sampled[0]!r} needs a fixed grid; leave "
            "adaptive out, or use Feedback."
        )


@eqx.filter_jit
def _run_adaptive(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    dt: float,
    solver: diffrax.AbstractSolver,
    start: Start | State,
    stations: tuple[Float[Array, " S"], bool],
    controller: diffrax.AbstractStepSizeController,
    adjoint: diffrax.AbstractAdjoint,
    max_steps: int,
) -> Trajectory:
    holds, drive, start = guarded(model, drive, start)
    drive = prepare_signals(drive)
    # StepTo knows its steps: it takes no first one, and breaks of the drive belong among its times.
    told, seen = isinstance(controller, diffrax.StepTo), drive
    if not told:
        # Far enough apart for a step between two breaks at the same time.
        drive, _ = separate(drive, 2.0**16 * jnp.max(jnp.abs(ts)))
    y0 = first_state(model, drive, ts[0], start)
    breaks = drive.breaks()
    if breaks.shape[0] and not told:
        controller = stopping_at(controller, breaks)
    solution = diffrax.diffeqsolve(
        model.term(drive),
        solver,
        ts[0],
        ts[-1],
        None if told else jnp.asarray(dt, ts.dtype),
        y0,
        None,
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
    )
    ys = solution.ys
    finite = jax.vmap(
        lambda y: jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(y)]))
    )(ys)
    reached = jnp.where(jnp.all(finite), ts[-1], ts[jnp.maximum(jnp.argmin(finite) - 1, 0)])
    ran_out = solution.result == diffrax.RESULTS.max_steps_reached
    failed = jnp.where(
        ran_out,
        int(Status.max_steps),
        jnp.where(solution.result == diffrax.RESULTS.successful, 0, int(Status.newton_failed)),
    )
    status = jnp.where((failed == 0) & ~jnp.all(finite), int(Status.non_finite), failed).astype(
        jnp.int32
    )
    status = jnp.where(holds, status, int(Status.invalid_parameter)).astype(jnp.int32)
    reached = jnp.where(holds, reached, ts[0])
    # What was not reached is filled with the last state that was, and shown as NaN.
    last = jnp.maximum(jnp.sum(finite) - 1, 0)
    ys = jtu.tree_map(
        lambda x: jnp.where(finite.reshape((-1,) + (1,) * (x.ndim - 1)), x, x[last][None]), ys
    )
    final = jtu.tree_map(lambda x: x[-1], ys)
    t_fail = jnp.where(status == 0, jnp.inf, reached)
    lane = Lane(
        final,
        None,
        status,
        t_fail,
        jnp.asarray(-1, jnp.int32),
        solution.stats["num_steps"].astype(jnp.int32),
    )
    mean = (ts[-1] - ts[0]) / jnp.maximum(lane.steps, 1)
    origin = origin_of(model, start)
    return _assemble(model, seen, ts, ys, ts, lane, stations, mean, type(solver).__name__, origin)


def _assemble(
    model: AbstractModel,
    drive: Drive,
    ts: Float[Array, " T"],
    ys: State,
    pieces: Float[Array, " T"],
    lane: Lane,
    stations: tuple[Float[Array, " S"], bool],
    dt: ScalarLike,
    solver: str,
    origin: str,
    intervals: Int[Array, ""] | None = None,
) -> Trajectory:
    """Outputs from states: everything recovered by one dynamics evaluation per output, never in the
    loop. An output on a break of the drive is seen with the signals after it, as the signals
    themselves have it: with the rates and accelerations that a Motion has after it, and with the
    reactions that belong to them."""
    good = ~(ts > lane.t_fail - 1e-12) | (lane.status == 0)
    if intervals is not None:
        late = jnp.arange(ts.shape[0]) > intervals
        good = good & ~late
        # Places that were not reached hold zeros, which are no state of a rotation: look at the
        # start there instead, and throw it away.
        ys = jtu.tree_map(
            lambda x: jnp.where(late.reshape((-1,) + (1,) * (x.ndim - 1)), x[:1], x), ys
        )

    kept, complete = stations
    s = kept if complete else jnp.concatenate([kept, jnp.array([0.0, 1.0], ts.dtype)])
    term = model.term(drive)

    def observe(t, y, at):
        y = term.with_prescribed_rates(t, y, at)
        return model.observe_with_energy(t, y, drive, s, at)

    snap, energy = jax.vmap(observe)(ts, ys, pieces)

    def mask(x):
        return jnp.where(good.reshape((-1,) + (1,) * (x.ndim - 1)), x, jnp.nan)

    snap, energy = jtu.tree_map(mask, (snap, energy))
    links = {f.name: getattr(snap, f.name) for f in dataclasses.fields(Sections)}
    n = kept.shape[0]
    ends = None if complete else Sections(**{k: x[:, :, n:] for k, x in links.items()})
    links = {k: x[:, :, :n] for k, x in links.items()}
    stats = Statistics(
        lane.steps, jnp.asarray(dt, ts.dtype), solver, type(model.formulation).__name__
    )
    return Trajectory(
        ts=ts,
        q=snap.q,
        qd=snap.qd,
        qdd=snap.qdd,
        motor=snap.motor,
        effort=snap.effort,
        **links,
        reaction=snap.reaction,
        energy=energy,
        status=lane.status,
        t_fail=lane.t_fail,
        where=lane.where,
        stats=stats,
        final=marked(lane.y, origin),
        stations=kept,
        robot=model.robot,
        ends=ends,
    )
