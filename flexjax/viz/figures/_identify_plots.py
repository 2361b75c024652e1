"""Figures of an identification."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from flexjax.robot import sensor_unit
from flexjax.study.identify import Experiment, FrequencyResponse, Identification
from flexjax.viz.figures._style import COLOURS, curve_style, new_figure


def fits(result: Identification, which: str = "training") -> Figure:
    """Measured and predicted readings of every experiment, with their residuals."""
    comparisons = [c for c in getattr(result, which) if isinstance(c.data, Experiment)]
    if not comparisons:
        raise ValueError(
            f"plot: the {which} data of this identification contain no time series; expected "
            "at least one Experiment."
        )
    rows = [(c, s) for c in comparisons for s in c.data.sensors]
    units = {sensor.name: sensor_unit(sensor, result.robot) for sensor in result.robot.sensors}
    figure, axes = new_figure(len(rows), 2, size=(9.6, 0.8 + 1.9 * len(rows)))
    for (c, s), left, right in zip(rows, axes[::2], axes[1::2], strict=True):
        y, p = c.data.sensors[s], c.predicted[s]
        left.plot(c.data.ts, y, label="measured", color=COLOURS[-1], linewidth=1.0)
        left.plot(c.data.ts, p, label="model", color=COLOURS[1], linestyle="--")
        left.set_ylabel(f"[{units[s]}]")
        right.set_ylabel(f"[{units[s]}]")
        left.set_title(f"{c.data.name}, {s}: fit {c.fits[s]:.2f} %", loc="left")
        right.plot(c.data.ts, y - p, color=COLOURS[0], linewidth=0.9)
        right.set_title(f"residual, rms {np.sqrt(np.nanmean((y - p) ** 2)):.3g}", loc="left")
    axes[0].legend(ncols=2)
    for axis in axes[-2:]:
        axis.set_xlabel("time [s]")
    return figure


def correlations(result: Identification) -> Figure:
    """Correlation of the estimates, and relative standard error of their combinations."""
    figure, (left, right) = new_figure(1, 2, size=(9.6, 1.6 + 0.42 * len(result.names) + 1.2))
    image = left.imshow(result.correlation, vmin=-1, vmax=1, cmap="RdBu_r")
    left.grid(False)
    ticks = range(len(result.names))
    left.set_xticks(ticks, [str(k + 1) for k in ticks])
    left.set_yticks(ticks, [f"{k + 1}  {n}" for k, n in enumerate(result.names)])
    left.set_title("correlation of the estimates", loc="left")
    for i in ticks:
        for j in ticks:
            value = result.correlation[i, j]
            left.annotate(
                f"{value:.2f}",
                (j, i),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(value) > 0.6 else "black",
            )
    figure.colorbar(image, ax=left, shrink=0.8)
    known = 1 / np.maximum(result.singular_values, 1e-300)
    right.bar(
        [k + 1 for k in ticks],
        np.clip(known, None, 1e6),
        color=[COLOURS[1] if x > 0.5 else COLOURS[2] for x in known],
    )
    right.set_yscale("log")
    right.axhline(0.5, color="#777777", linestyle=":", linewidth=1)
    right.set_xticks([k + 1 for k in ticks])
    right.set(xlabel="combination, best known first", ylabel="standard error, relative")
    right.set_title("above the line: not determined", loc="left")
    return figure


def autocorrelation(result: Identification) -> Figure:
    """Autocorrelation of the training residuals, with the 95 % band of white noise."""
    series = [(c, s, w) for c in result.training for s, w in c.whiteness.items()]
    if not series:
        raise ValueError(
            "plot: the training data of this identification contain no time series; expected "
            "at least one Experiment."
        )
    figure, (axis,) = new_figure(1, 1)
    for i, (c, s, w) in enumerate(series[:7]):
        lags = np.arange(1, len(w.autocorrelation) + 1)
        axis.plot(lags, w.autocorrelation, label=f"{c.data.name}, {s}", **curve_style(i))
    n = min(int(np.isfinite(c.data.sensors[s]).sum()) for c, s, _ in series)
    axis.axhspan(-1.96 / n**0.5, 1.96 / n**0.5, color="#dddddd", zorder=0)
    axis.set(xlabel="lag [samples]", ylabel="autocorrelation of residuals", ylim=(-1.05, 1.05))
    axis.legend(ncols=2)
    return figure


def responses(result: Identification) -> Figure:
    """Measured and identified frequency responses."""
    comparisons = [
        c for c in (*result.training, *result.validation) if isinstance(c.data, FrequencyResponse)
    ]
    if not comparisons:
        raise ValueError(
            "plot: the data of this identification contain no frequency response; expected "
            "at least one FrequencyResponse."
        )
    figure, axes = new_figure(
        2, len(comparisons), size=(max(6.4, 4.6 * len(comparisons)), 5.0), sharex="col"
    )
    points: dict[str, Any] = {
        "color": COLOURS[-1],
        "marker": ".",
        "linestyle": "none",
        "markersize": 4,
    }
    curve: dict[str, Any] = {"color": COLOURS[1]}
    for k, c in enumerate(comparisons):
        top, bottom = axes[k], axes[len(comparisons) + k]
        for label, H, style_ in (
            ("measured", c.data.values, points),
            ("model", c.predicted, curve),
        ):
            top.semilogy(c.data.frequencies, np.abs(H), label=label, **style_)
            bottom.plot(c.data.frequencies, np.degrees(np.angle(H)), **style_)
        top.set_title(f"{c.data.name}: fit {next(iter(c.fits.values())):.2f} %", loc="left")
        bottom.set_xlabel("frequency [Hz]")
    axes[0].set_ylabel("magnitude [reading per input]")
    axes[len(comparisons)].set_ylabel("phase [deg]")
    axes[0].legend()
    return figure


def history(result: Identification) -> Figure:
    """Loss over evaluations."""
    figure, (axis,) = new_figure(1, 1)
    axis.semilogy(
        np.arange(1, len(result.history) + 1),
        np.maximum(result.history, 1e-300),
        marker="o",
        markersize=3,
        color=COLOURS[0],
    )
    axis.set(xlabel="evaluation", ylabel="loss (half the sum of squares)")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


FIGURES = {
    "fits": fits,
    "validation": lambda result: fits(result, "validation"),
    "correlation": correlations,
    "autocorrelation": autocorrelation,
    "responses": responses,
    "history": history,
}
