"""Runs of a move and of usual moves of the same duration, in programs that they share."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from flexjax._compile import filter_jit
from flexjax.drive import Drive, Motion
from flexjax.drive.signal import bspline, quintic, shape, trapezoid
from flexjax.drive.signal._bspline import BSpline, control_values
from flexjax.drive.signal._shaper import Shaped
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import Trajectory, modes, residual_vibration, rest, simulate
from flexjax.study.free import Free, parameters
from flexjax.study.optimise.problem import at_rest, drivable

if TYPE_CHECKING:
    from flexjax.study.optimise._result import Optimisation

BASELINES = ("quintic", "trapezoid", "zv", "zvd", "ei")
COPIES = 3  # of the longest shaper of one mode; all moves have as many, and share a program
LONGEST = 10.0  # durations of a move after which a replay ends, however slow the first mode is
ONE_BY_ONE = 40  # runs up to which compiling a batch takes longer than they do


def run_times(
    model: AbstractModel,
    goal: Start,
    duration: float,
    steps: int,
    dt: float | None = None,
    after: float | None = None,
    least: float = 0.0,
) -> np.ndarray:
    """Times of a run: the move, and by default two periods of the first mode at the goal."""
    if after is None:
        found = modes(model, at=goal, n=1).frequencies
        period = 1 / float(found[0]) if len(found) and float(found[0]) > 0 else duration
        # Whole durations: moves of other durations then share the compiled program.
        after = duration * min(LONGEST, float(np.ceil(max(2 * period, least) / duration)))
    n = steps if dt is None else max(1, round(duration / dt))
    step = duration / n if dt is None else dt
    m = max(1, int(np.ceil(after / step - 1e-9)))
    move = np.linspace(0.0, duration, n + 1)
    return np.concatenate([move, duration + step * np.arange(1, m + 1)])


def run_move(
    model: AbstractModel, drive: Drive, start: Start, ts: np.ndarray, throw: bool = True
) -> Trajectory:
    """The run from rest at the start."""
    begin = at_rest(model.robot, drive, rest(model, start).state)
    return simulate(model, alike(drive), ts, substeps=1, start=begin, throw=throw)


def alike(drive: Drive) -> Drive:
    """The drive, with B-splines written as shaped ones of a single copy: so the move and the usual
    ones are the same program."""
    moves = {n: a.signal for n, a in drive.joints.items() if isinstance(a, Motion)}
    if not moves or len(moves) < len(drive.joints) or not all(map(_is_move, moves.values())):
        return drive
    single = {name: Motion(padded(signal)) for name, signal in moves.items()}
    return dataclasses.replace(drive, joints=single)


def _is_move(signal: Any) -> bool:
    return isinstance(signal, BSpline) and signal.ends == "rest" and np.ndim(signal.values) == 1


def padded(signal: Any) -> Shaped:
    """The signal as a sum of ``COPIES`` delayed ones, some of them without weight."""
    plain = signal if isinstance(signal, Shaped) else Shaped(signal, jnp.zeros(1), jnp.ones(1))
    missing = (0, COPIES - plain.delays.shape[0])
    return Shaped(plain.signal, jnp.pad(plain.delays, missing), jnp.pad(plain.weights, missing))


def baseline(res: "Optimisation", name: str) -> Drive | None:
    """A usual move of the same duration; None if a shaper takes longer than the move."""
    if name not in BASELINES:
        raise ValueError(f"against: {name!r}; expected some of {', '.join(BASELINES)}.")
    robot = res.model.robot
    (q0, _, _), (q1, _, _) = res.start.vectors(robot), res.goal.vectors(robot)
    slices, T = robot.dof_slices(), res.duration
    first = modes(res.model, at=res.goal, n=1) if name in ("zv", "zvd", "ei") else None
    joints = {}
    for joint in drivable(robot):
        at = slices[joint]
        a, b = (np.asarray(q)[at] for q in (q0, q1))
        a, b = (a[0], b[0]) if len(a) == 1 else (a, b)
        usual = _usual(res.drive.joints.get(joint), a, b)
        if name == "quintic":
            joints[joint] = Motion(padded(usual(T)))
        elif name == "trapezoid":
            joints[joint] = Motion(trapezoid(a, b, T, T / 4))
        else:
            longer = float(shape(usual(T), first, name).lengthens)
            if longer >= T:
                return None
            joints[joint] = Motion(padded(shape(usual(T - longer), first, name)))
    return Drive(joints=joints)


def _usual(driven: Any, a: Any, b: Any):
    """The quintic from a to b as a function of its duration, as a B-spline with the degree and the
    number of control values of the move, where that is one."""
    signal = driven.signal if isinstance(driven, Motion) else None
    if not isinstance(signal, BSpline) or not _is_move(signal) or signal.degree != 5:
        return lambda T: quintic(a, b, T)
    u = np.linspace(0.0, 1.0, 201)
    share = control_values(u, u**3 * (10 + u * (6 * u - 15)), signal.values.shape[0])
    return lambda T: bspline(a + share * (b - a), T)


def vibrations(
    res: "Optimisation", drives: Sequence[Drive], path: str | None, values: Sequence[float]
) -> list[np.ndarray]:
    """Peak tip vibration of every drive (rows), for values of one parameter (columns)."""
    robot, models = res.model.robot, [res.model]
    if path is not None:
        par = parameters([Free(path)], robot, [], [], [], {})
        if par.size != 1:
            raise ValueError(f"path: {path!r} has {par.size} numbers; expected one.")
        rows = jnp.asarray(np.asarray(values, float)[:, None])
        models = [res.model.rebind(par.place(robot, "robot", row)) for row in rows]
    starts = [rest(model, res.start).state for model in models]
    goals = [rest(model, res.goal).tip for model in models]
    ts, drives = res.trajectory.ts, [alike(drive) for drive in drives]
    if len(models) * len(drives) > ONE_BY_ONE:
        stack = lambda parts: jtu.tree_map(lambda *a: jnp.stack(a), *parts)
        ends, after = (stack(models), stack(starts), stack(goals)), jnp.asarray(res.duration)
        return [np.asarray(_vibrations(d, ends, jnp.asarray(ts), after)) for d in drives]

    def one(model, drive, start, tip):
        begin = at_rest(model.robot, drive, start)
        run = simulate(model, drive, ts, substeps=1, start=begin, throw=False)
        return float(residual_vibration(run, res.duration, rest=tip))

    each = list(zip(models, starts, goals, strict=True))
    return [np.array([one(m, drive, y, tip) for m, y, tip in each]) for drive in drives]


@filter_jit
def _vibrations(drive: Drive, ends: Any, ts: Any, after: Any):
    def one(model, start, tip):
        begin = at_rest(model.robot, drive, start)
        run = simulate(model, drive, ts, substeps=1, start=begin, stations=2, throw=False)
        return residual_vibration(run, after, rest=tip)

    return jax.vmap(one)(*ends)
