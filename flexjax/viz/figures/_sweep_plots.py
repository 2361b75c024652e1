"""Figures of sweeps: lines, heat map, parallel coordinates, tornado."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from flexjax.study.sweep import Sweep
from flexjax.viz.figures._style import COLOURS, legend_above, new_figure

MOST_LINES = 400  # of a figure; more would only make it black


def _scalar(result: Sweep, output: str | None) -> tuple[str, np.ndarray, str]:
    """Name, values (N,) and axis label of an output with one number for each run."""
    scalars = [name for name in result.names if result.data[name].ndim == 1]
    if output is None and scalars:
        output = scalars[0]
    if output not in scalars:
        listed = f"one of {', '.join(scalars)}" if scalars else "an output with one value per run"
        raise ValueError(f"plot: output = {output!r}; expected {listed}.")
    data = result.data[output]
    return output, np.asarray(data.values, float), _label(result, output)


def _label(result: Sweep, name: str) -> str:
    unit = result.data[name].attrs.get("units", "")
    return f"{name} [{unit}]" if unit else name


def _parameters(result: Sweep) -> list[str]:
    """Paths that take more than one value."""
    return [p for p, x in result.design.columns.items() if np.ptp(x) > 0]


def lines(result: Sweep, output: str | None = None, over: str | None = None) -> Figure:
    """An output over time, one line for each run, or a number over one parameter.

    Its colour is the value of ``over``, by default the first parameter that varies.
    """
    over = _parameter(result, over)
    dims = {name: result.data[name].dims[1:] for name in result.names}
    timed = [name for name, own in dims.items() if own and str(own[0]).startswith("time")]
    output = output or (timed or result.names)[0]
    if output not in result.names:
        raise ValueError(f"plot: output = {output!r}; expected one of {', '.join(result.names)}.")
    data, x = result.data[output], result.design.columns[over]
    figure, (axis,) = new_figure(1, 1, size=(7.2, 3.6))
    if data.ndim == 1:
        order = np.argsort(x)
        axis.plot(x[order], data.values[order], ".", color=COLOURS[0])
        axis.set(xlabel=_label(result, over), ylabel=_label(result, output))
        return figure
    runs = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_LINES)).astype(int))
    values = np.asarray(data.isel(run=runs).values, float).reshape(len(runs), data.shape[1], -1)
    # Of vectors, the component that varies most.
    part = int(np.argmax(np.nanmax(values, axis=(0, 1)) - np.nanmin(values, axis=(0, 1))))
    scale = lambda v: (v - x.min()) / (np.ptp(x) or 1.0)
    paint = colormaps["viridis"]
    for run, row in zip(runs, values, strict=True):
        axis.plot(data[data.dims[1]], row[:, part], color=paint(scale(x[run])), linewidth=0.7)
    names = data.coords[data.dims[-1]].values if data.dims[-1] in data.coords else None
    which = f", {names[part]}" if data.ndim == 3 and names is not None else ""
    axis.set(xlabel="time [s]", ylabel=_label(result, output) + which)
    _colour_bar(figure, axis, x, _label(result, over))
    return figure


def _colour_bar(figure: Figure, axis: Any, values: np.ndarray, label: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    norm = Normalize(float(np.nanmin(values)), float(np.nanmax(values)))
    figure.colorbar(ScalarMappable(norm, "viridis"), ax=axis, label=label)


def _parameter(result: Sweep, path: str | None) -> str:
    known = _parameters(result)
    if path is None and known:
        return known[0]
    if path not in known:
        raise ValueError(
            f"plot: {path!r}; expected a parameter that varies: {', '.join(known) or 'none does'}."
        )
    return path


def heat_map(
    result: Sweep, output: str | None = None, x: str | None = None, y: str | None = None
) -> Figure:
    """A number over two parameters; failed runs are crosses."""
    known = _parameters(result)
    if len(known) < 2:
        raise ValueError("plot: a heat map needs two parameters that vary; see 'lines'.")
    x = _parameter(result, x or known[0])
    y = _parameter(result, y or next(p for p in known if p != x))
    _, values, label = _scalar(result, output)
    px, py = result.design.columns[x], result.design.columns[y]
    good = np.isfinite(values)
    figure, (axis,) = new_figure(1, 1, size=(6.2, 4.2))
    axis.grid(False)
    if list(result.design.axes) == [x, y]:
        shape = (len(result.design.axes[x]), len(result.design.axes[y]))
        mesh = axis.pcolormesh(
            *result.design.axes.values(), values.reshape(shape).T, shading="nearest"
        )
    else:
        mesh = axis.scatter(px[good], py[good], c=values[good], s=12, cmap="viridis")
    axis.plot(px[~good], py[~good], "x", color=COLOURS[1], markersize=4)
    axis.set(xlabel=_label(result, x), ylabel=_label(result, y))
    figure.colorbar(mesh, ax=axis, label=label)
    return figure


def parallel_coordinates(result: Sweep, output: str | None = None) -> Figure:
    """One axis for each parameter and one for a number, one line for each run."""
    name, values, label = _scalar(result, output)
    known = _parameters(result)
    good = np.flatnonzero(np.isfinite(values))
    good = good[np.unique(np.linspace(0, len(good) - 1, min(len(good), MOST_LINES)).astype(int))]
    table = np.stack([*(result.design.columns[p] for p in known), values], axis=1)[good]
    low, high = table.min(axis=0), table.max(axis=0)
    shares = (table - low) / np.where(high > low, high - low, 1.0)
    figure, (axis,) = new_figure(1, 1, size=(2.0 + 1.7 * len(known), 4.0))
    axis.grid(False)
    for row in shares[np.argsort(shares[:, -1])]:
        axis.plot(row, color=colormaps["viridis"](row[-1]), linewidth=0.6, alpha=0.7)
    axis.set_xticks(range(table.shape[1]), [*known, name], rotation=12, ha="right")
    axis.set_yticks([])
    for k, (a, b) in enumerate(zip(low, high, strict=True)):
        axis.axvline(k, color="#999999", linewidth=0.8)
        axis.text(k, -0.03, f"{a:.4g}", ha="center", va="top", fontsize=7)
        axis.text(k, 1.02, f"{b:.4g}", ha="center", va="bottom", fontsize=7)
    axis.set_ylim(-0.09, 1.08)
    _colour_bar(figure, axis, values[good], label)
    return figure


def tornado(result: Sweep, output: str | None = None) -> Figure:
    """How far a number moves over the range of each parameter: the means of the lowest and the
    highest fifth of its values, the others averaged."""
    _, values, label = _scalar(result, output)
    good = np.isfinite(values)
    centre = float(np.mean(values[good]))
    rows = []
    for path in _parameters(result):
        x = result.design.columns[path]
        low, high = np.quantile(x, [0.2, 0.8])
        ends = [np.mean(values[good & pick]) for pick in (x <= low, x >= high)]
        rows.append((path, *map(float, ends)))
    rows.sort(key=lambda row: abs(row[2] - row[1]))
    figure, (axis,) = new_figure(1, 1, size=(7.2, 1.2 + 0.4 * len(rows)))
    for k, (_, low, high) in enumerate(rows):
        for colour, name, end in ((COLOURS[0], "low", low), (COLOURS[1], "high", high)):
            once = name if k == 0 else None
            axis.barh(k, end - centre, 0.6, left=centre, color=colour, label=once)
    axis.axvline(centre, color="#555555", linewidth=1)
    axis.set_yticks(range(len(rows)), [row[0] for row in rows])
    axis.set_xlabel(label)
    legend_above(figure, axis)
    return figure


FIGURES = {
    "lines": lines,
    "heat map": heat_map,
    "parallel coordinates": parallel_coordinates,
    "tornado": tornado,
}
