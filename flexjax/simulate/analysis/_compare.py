"""compare: the same robot in every formulation that supports it."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from flexjax._html import bars, block, curves
from flexjax._results import Status
from flexjax._types import NumbersLike, is_traced
from flexjax.drive import Drive
from flexjax.formulation import AbstractFormulation, AbstractModel, formulations_for, refused_by_all
from flexjax.robot import Robot
from flexjax.simulate._simulate import simulate
from flexjax.simulate._start import read_drive
from flexjax.simulate.analysis._linear import modes
from flexjax.simulate.trajectory import Trajectory
from flexjax.simulate.trajectory._failure import failure_of


class Row(eqx.Module):
    """One formulation in a comparison; differences are the largest over time against the reference.

    ``status`` is that of the run, or "error" where there is no run; ``reason`` is why it failed.
    Differences of a failed run are those before its failure."""

    name: str = eqx.field(static=True)
    unknowns: int = eqx.field(static=True)
    tip: float
    joints: float
    energy: float
    balance: float
    frequencies: tuple[float, ...]
    first_seconds: float
    run_seconds: float
    status: str = eqx.field(static=True, default="ok")
    reason: str = eqx.field(static=True, default="")


class Comparison(eqx.Module):
    """Agreement, frequencies and cost of the formulations that support a robot and its drive;
    ``refused`` gives the reasons of the others."""

    robot: Robot
    reference: str = eqx.field(static=True)
    rows: tuple[Row, ...]
    trajectories: dict[str, Trajectory]
    refused: dict[str, list[str]] = eqx.field(static=True)

    def __str__(self) -> str:
        cost = f"{'first [s]':>10}{'run [s]':>9}"
        head = (
            f"{'formulation':<18}{'unknowns':>9}{'tip [m]':>11}{'joints':>11}{'energy [J]':>11}"
            f"{'balance':>10}{cost}  {'status':<14}frequencies [Hz]"
        )
        lines = [
            f"{self.robot.name}: largest difference from {self.reference} (the finest that is "
            "flexible)",
            head,
        ]
        for r in self.rows:
            freq = ", ".join(f"{f:.4g}" for f in r.frequencies)
            cost = f"{r.first_seconds:>10.2f}{r.run_seconds:>9.3f}"
            lines.append(
                f"{r.name:<18}{r.unknowns:>9d}{r.tip:>11.2e}{r.joints:>11.2e}{r.energy:>11.2e}"
                f"{r.balance:>10.1e}{cost}  {r.status:<14}{freq}"
            )
        lines += [f"{r.name}: {r.status}: {r.reason}" for r in self.rows if r.reason]
        lines += [f"{name} refused: {'; '.join(why)}" for name, why in self.refused.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if any(is_traced(traj.ts) for traj in self.trajectories.values()):
            return block(str(self))
        paths = {name: np.asarray(traj.tip)[:, :2] for name, traj in self.trajectories.items()}
        seconds = {row.name: row.run_seconds for row in self.rows}
        return block(
            str(self),
            curves((), paths, "tip x [m]", "tip y [m]", equal=True),
            bars(seconds, "one run [s]"),
        )


def compare(
    robot: Robot,
    drive: Drive | None,
    ts: NumbersLike,
    *,
    formulations: dict[str, AbstractFormulation] | None = None,
    reference: str | None = None,
    n_modes: int = 3,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Comparison:
    """Simulate a robot in every registered formulation that supports it, and compare tip, joints,
    energy, frequencies and cost.

    Arguments:
        robot: the robot.
        drive: motions, efforts, controllers and loads; None for none.
        ts: output times [s].
        formulations: name -> formulation with your options; replaces the registry's defaults.
        reference: name of the formulation to compare with; by default the one with the most
            unknowns that has elastic links and did not fail.
        n_modes: number of natural frequencies.
        progress: called with the name of each formulation before it is compiled and run.
        options: arguments of :func:`simulate`. With ``throw=True`` a failure raises its error.

    Returns:
        A table; a formulation that fails is a row with its status and reason.

    Raises:
        ValueError: no formulation supports the robot and the drive, or an argument is invalid.

    >>> import flexjax as fx
    >>> robot = fx.load_robot("rigid-3r")
    >>> only = {"rigid": fx.RigidArm()}
    >>> fx.compare(robot, None, [0.0, 0.1], formulations=only, n_modes=1, dt=0.05).reference
    'rigid'
    """
    drive = read_drive(drive, robot)
    supporting, refused = formulations_for(robot, drive)
    if formulations is not None:
        refused = {
            name: why
            for name, f in formulations.items()
            if (why := f.refusals(robot) or f.drive_refusals(robot, drive))
        }
        supporting = {name: f for name, f in formulations.items() if name not in refused}
    if not supporting:
        raise refused_by_all(robot.name, refused)
    runs, faults = {}, {}
    for name, formulation in supporting.items():
        if progress is not None:
            progress(name)
        try:
            runs[name] = _run(formulation.bind(robot), drive, ts, n_modes, options)
        # A formulation's error about these parameters is part of the result; a fault of the program
        # (such as a TypeError) is not.
        except (ValueError, ArithmeticError, RuntimeError) as error:
            if options.get("throw"):
                raise
            faults[name] = error
    if not runs:
        raise next(iter(faults.values()))
    reference = _reference(runs) if reference is None else reference
    if reference not in runs:
        raise ValueError(f"reference: {reference!r}; expected one of {', '.join(runs)}.")
    best = runs[reference].traj
    rows = tuple(
        _row(name, runs[name], best) if name in runs else _no_run(name, faults[name])
        for name in supporting
    )
    return Comparison(robot, reference, rows, {n: r.traj for n, r in runs.items()}, refused)


class _Run(NamedTuple):
    traj: Trajectory
    seconds: list[float]
    frequencies: tuple[float, ...]
    reason: str
    deforms: bool

    @property
    def size(self) -> int:
        return sum(x.size for x in jax.tree_util.tree_leaves(self.traj.final.mech))


def _run(model: AbstractModel, drive: Drive, ts: NumbersLike, n_modes: int, options: dict) -> _Run:
    settings: dict[str, Any] = {"throw": False} | options
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        traj = jax.block_until_ready(simulate(model, drive, ts, **settings))
        seconds.append(time.perf_counter() - begin)
    reason = "" if traj.ok else failure_of(traj, drive).reason
    try:
        frequencies = tuple(float(f) for f in modes(model, n=n_modes).frequencies)
    except (ValueError, ArithmeticError, RuntimeError) as error:
        frequencies, reason = (), f"{reason} modes: {error}".strip()
    return _Run(traj, seconds, frequencies, reason, model.formulation.deforms)


def _reference(runs: dict[str, _Run]) -> str:
    """The finest flexible one among those that ended well, if there are any."""
    good = [n for n in runs if runs[n].traj.ok] or list(runs)
    return max([n for n in good if runs[n].deforms] or good, key=lambda n: runs[n].size)


def _no_run(name: str, error: Exception) -> Row:
    nan = float("nan")
    return Row(name, 0, nan, nan, nan, nan, (), nan, nan, "error", str(error))


def _row(name: str, run: _Run, best: Trajectory) -> Row:
    def largest(a) -> float:
        a = np.abs(np.asarray(a))
        return float(np.max(a[np.isfinite(a)], initial=0.0)) if np.isfinite(a).any() else np.nan

    traj, e = run.traj, run.traj.energy
    balance = np.asarray(e.balance)
    scale = max(largest(x) for x in (e.kinetic, e.elastic, e.gravity, e.work))
    lost = [x.energy.mechanical - x.energy.mechanical[0] for x in (traj, best)]
    return Row(
        name,
        run.size,
        largest(traj.tip - best.tip),
        largest(traj.q - best.q),
        largest(lost[0] - lost[1]),
        largest(balance - balance[0]) / scale if scale else 0.0,
        run.frequencies,
        run.seconds[0],
        run.seconds[1],
        Status(int(traj.status)).name,
        run.reason,
    )
