"""Figures of an optimised move."""

import numpy as np
from matplotlib.figure import Figure

from flexjax.io._dataset import dof_names, dof_units
from flexjax.simulate import Trajectory
from flexjax.study.optimise import Optimisation
from flexjax.viz.figures._style import COLOURS, curve_style, legend_above, new_figure

Runs = dict[str, Trajectory]


def joints(result: Optimisation, runs: Runs) -> Figure:
    """Coordinate, velocity, acceleration and effort of every joint, with their limits."""
    robot = result.model.robot
    names, units = dof_names(robot), dof_units(robot)
    figure, axes = new_figure(len(names), 4, size=(12.5, 1.0 + 2.1 * len(names)), sharex=True)
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        row = axes[4 * k : 4 * k + 4]
        columns = {
            "position": ("q", unit),
            "velocity": ("qd", f"{unit}/s"),
            "acceleration": ("qdd", f"{unit}/s2"),
            "effort": ("effort", "N m" if unit == "rad" else "N"),
        }
        for axis, (what, (field, unit_of)) in zip(row, columns.items(), strict=True):
            for i, (label, traj) in enumerate(runs.items()):
                values = np.asarray(getattr(traj, field))[:, k]
                axis.plot(traj.ts, values, label=label, **curve_style(i))
            for bound in _bounds(result, what, k):
                axis.axhline(bound, color="#777777", linestyle=":", linewidth=1)
            axis.set_title(f"{name}: {what} [{unit_of}]", loc="left")
    for axis in axes[-4:]:
        axis.set_xlabel("time [s]")
    legend_above(figure, axes[0])
    return figure


def _bounds(result: Optimisation, what: str, column: int) -> list[float]:
    """Bounds of one coordinate that lie on both sides."""
    for limit in result.limits:
        if limit.name == what and column in limit.columns:
            bound = limit.bounds[limit.columns.index(column)]
            return [float(x) for x in (bound if np.ndim(bound) else (-bound, bound))]
    return []


def tips(runs: Runs, goal: np.ndarray, duration: float) -> Figure:
    """Distance of the tip from its rest position, with a logarithmic axis."""
    figure, (axis,) = new_figure(1, 1, size=(9.2, 3.4))
    away = {
        name: 1e3 * np.linalg.norm(np.asarray(traj.tip) - goal, axis=1)
        for name, traj in runs.items()
    }
    largest = max(float(np.max(x)) for x in away.values())
    for i, (name, traj) in enumerate(runs.items()):
        axis.plot(traj.ts, np.maximum(away[name], 1e-7 * largest), label=name, **curve_style(i))
    axis.axvline(duration, color="#777777", linewidth=1)
    axis.set(xlabel="time [s]", ylabel="tip from rest [mm]", yscale="log")
    axis.set_ylim(bottom=max(1e-6 * largest, 0.3 * min(float(x[-5:].max()) for x in away.values())))
    legend_above(figure, axis)
    return figure


def robustness(path: str, values: np.ndarray, found: dict[str, np.ndarray]) -> Figure:
    """Peak vibration over one parameter of the robot."""
    figure, (axis,) = new_figure(1, 1, size=(6.4, 3.4))
    for i, (name, vibration) in enumerate(found.items()):
        axis.plot(values, 1e3 * vibration, label=name, marker=".", **curve_style(i))
    axis.set(xlabel=path, ylabel="peak at the tip [mm]", yscale="log")
    legend_above(figure, axis)
    return figure


def search(result: Optimisation) -> Figure:
    """Relative cost and violation over the iterations."""
    figure, (left, right) = new_figure(1, 2, size=(9.2, 3.0))
    for axis, key, colour in ((left, "cost", COLOURS[0]), (right, "violation", COLOURS[1])):
        values = np.array([row[key] for row in result.history])
        axis.plot(np.arange(1, len(values) + 1), values, marker=".", color=colour)
        # A violation of zero has no logarithm.
        axis.set_yscale("log" if np.all(values > 0) else "linear")
        axis.set(xlabel="iteration", ylabel=key)
    return figure
