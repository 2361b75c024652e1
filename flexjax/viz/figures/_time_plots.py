"""Figures of trajectories; each function takes ``{name: trajectory}``, all of the same robot."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexjax._results import Status
from flexjax._types import NumbersLike
from flexjax.io._dataset import dof_names, dof_units
from flexjax.robot import Robot
from flexjax.simulate.analysis._linear import Modes
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz.figures._style import COLOURS, curve_style, legend_above, new_figure

Runs = dict[str, Trajectory]
SPECTRUM_LEAST = 3  # fewer samples leave no frequency but zero


def _first(runs: Runs) -> Trajectory:
    return next(iter(runs.values()))


def _legend(figure: Figure, axis: Axes, runs: Runs) -> None:
    """Put the names of several trajectories above all axes."""
    if len(runs) > 1:
        legend_above(figure, axis)


def joints(runs: Runs) -> Figure:
    """Coordinate and effort of every joint over time."""
    robot = _first(runs).robot
    names, units = dof_names(robot), dof_units(robot)
    if not names:
        raise ValueError(
            f"plot: the robot {robot.name!r} has no joint coordinates; expected "
            "what='deflection', 'tip' or 'energy'."
        )
    figure, axes = new_figure(len(names), 2, sharex=True)
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        left, right = axes[2 * k : 2 * k + 2]
        for i, (label, traj) in enumerate(runs.items()):
            left.plot(traj.ts, traj.q[:, k], label=label, **curve_style(i))
            right.plot(traj.ts, traj.effort[:, k], **curve_style(i))
        left.set_ylabel(f"{name} [{unit}]")
        right.set_ylabel(f"effort [{'N m' if unit == 'rad' else 'N'}]")
    _legend(figure, axes[0], runs)
    for axis in axes[-2:]:
        axis.set_xlabel("time [s]")
    return figure


def tip(runs: Runs) -> Figure:
    """Path of the tip, and its coordinates over time."""
    figure, axes = new_figure(1, 2, size=(9.2, 3.6))
    for i, (label, traj) in enumerate(runs.items()):
        p = np.asarray(traj.tip)
        axes[0].plot(p[:, 0], p[:, 1], label=label, **curve_style(i))
        axes[0].plot(*p[0, :2], "o", color=COLOURS[i % len(COLOURS)], markersize=4)
        shown = [k for k in range(3) if k < 2 or np.nanmax(np.abs(p[:, 2]), initial=0.0) > 0]
        for k in shown:
            several = len(runs) > 1
            axes[1].plot(
                traj.ts,
                p[:, k],
                label=None if several and i else "xyz"[k],
                **curve_style(i if several else k),
            )
            if several and i == 0:
                far = _farthest(p[:, k], [p[:, j] for j in shown if j != k])
                axes[1].annotate(
                    "xyz"[k],
                    (float(traj.ts[far]), float(p[far, k])),
                    (0, 4),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9,
                )
    axes[0].set(
        xlabel="x [m]", ylabel="y [m]", title="path of the tip (dot: start)", aspect="equal"
    )
    axes[0].set_adjustable("datalim")
    axes[1].set(xlabel="time [s]", ylabel="tip position [m]")
    _legend(figure, axes[0], runs)
    if len(runs) == 1:
        axes[1].legend()
    return figure


def _farthest(curve: np.ndarray, others: list[np.ndarray]) -> int:
    """Index at which a curve is farthest from the others, for an unambiguous label."""
    gap = np.min(np.abs(np.stack(others) - curve), axis=0)
    return int(np.argmax(np.where(np.isfinite(gap), gap, -1.0)))


def _flexible(robot: Robot) -> list[int]:
    return [i for i, link in enumerate(robot.links) if not link.rigid] or list(
        range(len(robot.links))
    )


def deflection(runs: Runs) -> Figure:
    """Deflection of each elastic link's tip from the tangent at its base."""
    traj0 = _first(runs)
    links = _flexible(traj0.robot)
    figure, axes = new_figure(len(links), 1, sharex=True)
    for axis, link in zip(axes, links, strict=True):
        for i, (label, traj) in enumerate(runs.items()):
            d = 1e3 * np.asarray(traj.deflection[:, link, -1])
            axis.plot(traj.ts, d[:, 1], label=label if len(runs) > 1 else "y", **curve_style(i))
            if np.nanmax(np.abs(d[:, 2]), initial=0.0) > 0:
                axis.plot(
                    traj.ts,
                    d[:, 2],
                    label=f"{label}, z" if len(runs) > 1 else "z",
                    alpha=0.6,
                    **curve_style(i + len(runs)),
                )
        axis.set_ylabel(f"{traj0.robot.links[link].name}: tip deflection [mm]")
        if len(runs) == 1 and len(axis.get_legend_handles_labels()[1]) > 1:
            axis.legend()
    _legend(figure, axes[0], runs)
    axes[-1].set_xlabel("time [s]")
    return figure


def strain(runs: Runs) -> Figure:
    """Signed curvature of largest magnitude, and axial strain at the base, of each elastic link."""
    traj0 = _first(runs)
    links = _flexible(traj0.robot)
    figure, axes = new_figure(len(links), 2, sharex=True)
    for row, link in enumerate(links):
        left, right = axes[2 * row : 2 * row + 2]
        for i, (label, traj) in enumerate(runs.items()):
            e = np.asarray(traj.strain[:, link])
            size = np.abs(np.nan_to_num(e))
            part = 5 if np.max(size[..., 5]) >= np.max(size[..., 4]) else 4
            pick = np.argmax(size[..., part], axis=1)
            left.plot(traj.ts, e[np.arange(len(e)), pick, part], label=label, **curve_style(i))
            right.plot(traj.ts, 1e6 * e[:, 0, 0], **curve_style(i))
        left.set_ylabel(f"{traj0.robot.links[link].name}: curvature [1/m]")
        right.set_ylabel("axial strain at the base [1e-6]")
    _legend(figure, axes[0], runs)
    for axis in axes[-2:]:
        axis.set_xlabel("time [s]")
    return figure


def spectrum(
    runs: Runs, *, modes: Modes | NumbersLike | None = None, signal: str = "deflection"
) -> Figure:
    """Amplitude spectrum of the last elastic link's tip deflection.

    ``signal="tip"`` selects the tip's world position. ``modes`` (the result of ``fx.modes``, or
    frequencies in Hz) adds lines at natural frequencies.
    """
    if signal not in ("deflection", "tip"):
        raise ValueError(f"signal: {signal!r}; expected 'deflection' or 'tip'.")
    figure, (axis,) = new_figure(1, 1)
    top = 0.0
    for i, (label, traj) in enumerate(runs.items()):
        link = _flexible(traj.robot)[-1]
        x = np.asarray(traj.deflection[:, link, -1] if signal == "deflection" else traj.tip)
        good = np.all(np.isfinite(x), axis=1)
        if good.sum() < SPECTRUM_LEAST:
            if len(runs) > 1:
                continue  # a run that failed at the start; the others are shown
            raise ValueError(
                f"plot: the trajectory {label!r} has {good.sum()} finite outputs (status "
                f"{Status(int(traj.status)).name}); expected at least {SPECTRUM_LEAST} for a "
                "spectrum. Use more outputs, or find out why the run failed."
            )
        ts, x = np.asarray(traj.ts)[good], x[good]
        x = x[:, int(np.argmax(np.std(x, axis=0)))]
        even = np.linspace(ts[0], ts[-1], len(ts))
        y = np.interp(even, ts, x)
        window = np.hanning(len(y))
        amplitude = 2 * np.abs(np.fft.rfft((y - y.mean()) * window)) / window.sum()
        frequency = np.fft.rfftfreq(len(y), even[1] - even[0])
        top = max(top, frequency[-1])
        axis.semilogy(
            frequency[1:], above_zero(1e3 * amplitude[1:], 1e-9), label=label, **curve_style(i)
        )
    values = np.ravel(np.asarray(getattr(modes, "frequencies", modes))) if modes is not None else []
    for k, f in enumerate(values):
        if f <= top:
            axis.axvline(float(f), color="#777777", linewidth=0.8, linestyle=":")
            axis.annotate(
                f"mode {k + 1}",
                (float(f), 0.98),
                xycoords=("data", "axes fraction"),
                rotation=90,
                va="top",
                ha="right",
                fontsize=7,
                backgroundcolor=(1, 1, 1, 0.8),
            )
    axis.set(xlabel="frequency [Hz]", ylabel=f"amplitude of {signal} [mm]")
    _legend(figure, axis, runs)
    return figure


def difference(runs: Runs, *, reference: str = "") -> Figure:
    """Distance of every tip from that of ``reference``, by default the first trajectory."""
    reference = reference or next(iter(runs))
    if reference not in runs or len(runs) < 2:
        raise ValueError(
            f"plot: reference {reference!r} among {', '.join(runs)}; expected at least two "
            "trajectories, one of them the reference."
        )
    base = runs[reference]
    figure, (axis,) = new_figure(1, 1)
    for i, (label, traj) in enumerate(runs.items()):
        if label == reference:
            continue
        if traj.ts.shape != base.ts.shape or not np.allclose(traj.ts, base.ts):
            raise ValueError(
                f"plot: the trajectories {label!r} and {reference!r} have different output times; "
                "expected the same. Simulate both with the same ts."
            )
        distance = np.linalg.norm(np.asarray(traj.tip) - np.asarray(base.tip), axis=1)
        axis.semilogy(
            traj.ts,
            above_zero(1e3 * distance),
            label=label,
            **curve_style(i),
        )
    axis.set(xlabel="time [s]", ylabel=f"distance of the tip from {reference} [mm]")
    _legend(figure, axis, runs)
    return figure


def above_zero(values: np.ndarray, share: float = 1e-6) -> np.ndarray:
    """Hide values below a fraction of the largest: an exact zero would dominate a log axis."""
    return np.where(values > share * np.nanmax(values, initial=0.0), values, np.nan)


def energy(runs: Runs) -> Figure:
    """Energies of each trajectory and the error of their balance; at most three per row."""
    columns = min(len(runs), 3)
    blocks = -(-len(runs) // columns)
    figure, axes = new_figure(
        2 * blocks, columns, size=(max(6.4, 3.6 * columns), 4.4 * blocks), sharex=True
    )
    for i, (label, traj) in enumerate(runs.items()):
        top = axes[2 * columns * (i // columns) + i % columns]
        bottom = axes[2 * columns * (i // columns) + columns + i % columns]
        e = traj.energy
        for k, part in enumerate(("kinetic", "elastic", "gravity", "dissipated", "work")):
            values = np.asarray(getattr(e, part))
            change = part == "gravity"
            top.plot(
                traj.ts,
                values - (values[0] if change else 0.0),
                label="gravity (change)" if change else part,
                **curve_style(k),
            )
        bottom.plot(traj.ts, e.balance - e.balance[0], color="#000000")
        top.set_title(label)
        bottom.tick_params(labelbottom=True)
        bottom.set_xlabel("time [s]")
        if i % columns == 0:
            top.set_ylabel("energy [J]")
            bottom.set_ylabel("balance error [J]")
    for axis in axes[len(axes) - columns * 2 :]:
        axis.set_visible(axis.has_data())
    legend_above(figure, axes[0])
    return figure
