"""The result of an optimisation: the move, how good it is, and how it fares elsewhere."""

import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from flexjax._html import block, curves
from flexjax._types import is_traced
from flexjax.drive import Drive
from flexjax.formulation import AbstractFormulation, AbstractModel, Start
from flexjax.robot import Robot
from flexjax.simulate import Trajectory, residual_vibration, rest
from flexjax.study.optimise._replay import (
    BASELINES,
    baseline,
    run_move,
    run_times,
    vibrations,
)
from flexjax.study.optimise._table import write_table
from flexjax.study.optimise.problem import Limit, Problem
from flexjax.study.optimise.search import Point


@dataclasses.dataclass(frozen=True)
class Active:
    """A limit that binds: its name, the joint or link, the sample of the robot, and the times."""

    limit: str
    where: str
    sample: int
    times: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Optimisation:
    """Result of :func:`flexjax.optimise`; ``print`` shows a summary.

    ``drive``, ``duration`` [s], ``model``: the move, and the model with the parameters found.
    ``trajectory``: the nominal run, with the time after the move. ``costs``: by name, of the
    nominal robot and of the worst sample. ``violation``: the largest of a limit, relative.
    ``active``: limits that bind. ``status``: "converged", "iterations", "infeasible",
    "interrupted" or what else ended the search; ``kkt``: the part of the gradient that no
    multiplier balances. ``samples`` (S, k): values of the parameters ``spread``, the first row of
    the nominal robot.
    """

    model: AbstractModel
    drive: Drive
    duration: float
    start: Start
    goal: Start
    names: tuple[str, ...]
    values: np.ndarray
    trajectory: Trajectory
    costs: dict[str, tuple[float, float]]
    violation: float
    active: tuple[Active, ...]
    status: str
    message: str
    kkt: float
    history: list[dict[str, float]]
    evaluations: int
    seconds: float
    steps: int
    samples: np.ndarray
    spread: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the search converged to a move within all limits."""
        return self.status == "converged"

    @property
    def dt(self) -> float:
        return self.duration / self.steps

    def __str__(self) -> str:
        rows = [
            f"{self.status} after {len(self.history)} iterations, {self.evaluations} evaluations, "
            f"{self.seconds:.1f} s; duration {self.duration:.6g} s, violation "
            f"{self.violation:.1e}, KKT {self.kkt:.1e}"
        ]
        rows += [
            f"  {name}: {nominal:.4g}" + (f", worst {worst:.4g}" if len(self.samples) > 1 else "")
            for name, (nominal, worst) in self.costs.items()
        ]
        rows += [
            f"  limit {a.limit} of {a.where} binds from {a.times[0]:.4g} to {a.times[-1]:.4g} s"
            for a in self.active
            if a.sample == 0
        ]
        if not self.ok and self.message:
            rows.append(f"  {self.message}")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        traj = self.trajectory
        if is_traced(traj.ts):
            return block(str(self))
        t, q, effort, tip = (np.asarray(x) for x in (traj.ts, traj.q, traj.effort, traj.tip))
        names = [j.name for j in traj.robot.tree_joints for _ in range(j.dofs)]
        columns = lambda x: dict(zip(names, x.T, strict=True))
        distance = np.linalg.norm(tip - tip[-1], axis=1)
        return block(
            str(self),
            curves(t, columns(q), "time [s]", "joints [rad, m]"),
            curves(t, columns(effort), "time [s]", "efforts [N m, N]"),
            curves(t, {"tip": distance}, "time [s]", "tip to its end [m]"),
        )

    def replay(
        self,
        formulation: AbstractFormulation | None = None,
        *,
        robot: Robot | None = None,
        dt: float | None = None,
        after: float | None = None,
        move: str = "optimised",
    ) -> Trajectory:
        """The move in another formulation, with another robot or a finer step.

        Arguments:
            formulation: e.g. ``fx.PortHamiltonian()``; by default the same model.
            robot: another robot, e.g. with another payload; by default the same.
            dt: step [s].
            after: time after the move [s]; by default that of ``trajectory``, at least twice the
                first period at the goal.
            move: "optimised", or a usual move of the same duration as in :meth:`against`.

        Returns:
            The trajectory, from rest at the start.
        """
        drive = self.drive if move == "optimised" else baseline(self, move)
        if drive is None:
            raise ValueError(
                f"move: {move!r}; its shaper takes longer than the move, {self.duration:g} s. "
                "Expected another move, or a longer duration."
            )
        if dt is None and after is None:
            ts = np.asarray(self.trajectory.ts)
        else:
            ts = run_times(self.model, self.goal, self.duration, self.steps, dt, after)
        return run_move(_model(self, formulation, robot), drive, self.start, ts)

    def vibration(
        self, traj: Trajectory | None = None, formulation: AbstractFormulation | None = None
    ) -> float:
        """Peak tip vibration after the move [m].

        Arguments:
            traj: a replayed run; by default the nominal one.
            formulation: that of the replay, whose arm may rest elsewhere under its weight.

        Returns:
            The largest distance from where the tip rests at the goal.
        """
        traj = self.trajectory if traj is None else traj
        tip = rest(_model(self, formulation, traj.robot), self.goal).tip
        return float(residual_vibration(traj, self.duration, rest=tip))

    def robustness(self, path: str, values: Sequence[float]) -> np.ndarray:
        """Peak tip vibration [m] over values of one parameter of the robot, in one batch.

        Arguments:
            path: e.g. ``"payloads.tool.mass"``.
            values: the values.

        Returns:
            The vibration for every value.
        """
        return vibrations(self, [self.drive], path, values)[0]

    def against(
        self, *names: str, path: str | None = None, values: Sequence[float] = ()
    ) -> dict[str, np.ndarray]:
        """Peak tip vibration [m] of this move and of usual moves of the same duration.

        Arguments:
            names: some of "quintic", "trapezoid", "zv", "zvd", "ei"; by default all. The last three
                are quintics shaped by the first mode at the goal; such a move is NaN where the
                shaper alone takes longer than the move.
            path, values: values of one parameter of the robot; by default the robot's own.

        Returns:
            The vibration for every value, by name; "optimised" is this move.
        """
        drives: dict[str, Drive | None] = {"optimised": self.drive}
        for name in names or BASELINES:
            drives[name] = baseline(self, name)
        possible = {k: d for k, d in drives.items() if d is not None}
        found = vibrations(self, list(possible.values()), path, values)
        runs: dict[str, np.ndarray] = dict(zip(possible, found, strict=True))
        none = np.full_like(runs["optimised"], np.nan)
        return {name: runs.get(name, none) for name in drives}

    def fits(self, move: str) -> bool:
        """Whether a usual move, as in :meth:`against`, is possible in this duration."""
        return baseline(self, move) is not None

    def to_csv(self, path: str | os.PathLike[str], rate: float = 1000.0) -> Path:
        """Write the move for a motor controller: position, velocity, acceleration and effort.

        Arguments:
            path: the file, with a header such as ``time [s],shoulder.position [rad]``.
            rate: sampling rate [Hz].

        Returns:
            The path. A joint with a Motion has the values of its motor.
        """
        return write_table(self, path, rate)

    def report(self, path: str | os.PathLike, notes: tuple[str, ...] = ()) -> Path:
        """Write figures, comparisons and both arms in motion as one page.

        Arguments:
            path: the file (.html).
            notes: paragraphs to add below the summary, as in :func:`flexjax.move_report`.

        Returns:
            The path.
        """
        # By its public name: what draws pages lies above this layer.
        return sys.modules["flexjax"].move_report(self, notes).save(path)


def _model(
    res: Optimisation, formulation: AbstractFormulation | None, robot: Robot | None
) -> AbstractModel:
    model = res.model if formulation is None else formulation.bind(res.model.robot)
    return model if robot is None else model.rebind(robot)


def _margins(problem: Problem, point: Point) -> Iterator[tuple[Limit, str, int, np.ndarray]]:
    """(limit, label, sample, least margin at every time) for all that is limited."""
    begin = 0
    for limit, (S, T, n) in zip(problem.limits, point.shapes, strict=True):
        margins = point.margins[begin : begin + S * T * n].reshape(S, T, n)
        begin += S * T * n
        per = max(1, n // max(1, len(limit.labels)))
        for s in range(S):
            for c, label in enumerate(limit.labels):
                yield limit, label, s, margins[s][:, c * per : (c + 1) * per].min(axis=1)


def summarise_active(problem: Problem, point: Point) -> tuple[Active, ...]:
    """Limits that bind at a point."""
    ts = np.asarray(problem.times(problem.duration_of(jnp.asarray(point.x))))
    found = []
    for limit, label, sample, margins in _margins(problem, point):
        near = np.flatnonzero(margins < 1e-4)
        if near.size:
            times = tuple(float(ts[min(k, len(ts) - 1)]) for k in near)
            found.append(Active(limit.name, label, sample, times))
    return tuple(found)


def name_violation(problem: Problem, point: Point, status: str) -> str:
    """The limit that is violated most, in words; empty where all are met."""
    worst, text = 1e-6, ""
    met = "cannot be met" if status == "infeasible" else "is not met yet"
    ts = np.asarray(problem.times(problem.duration_of(jnp.asarray(point.x))))
    for limit, label, sample, margins in _margins(problem, point):
        k = int(np.argmin(margins))
        if -margins[k] > worst:
            worst = float(-margins[k])
            of = "" if sample == 0 else f", sample {sample}"
            text = (
                f"limits.{limit.name}.{label} {met}: exceeded by {100 * worst:.3g} % at "
                f"{float(ts[min(k, len(ts) - 1)]):.4g} s{of}; give a longer duration or a wider "
                "limit"
            )
    away = float(np.max(np.abs(point.missing), initial=0.0))
    if away > worst:
        text = (
            f"the arm does not come to rest at the goal (distance {away:.2g}); give a longer "
            "duration, wider limits, or a drive with more free parameters"
        )
    return text
