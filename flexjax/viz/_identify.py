"""Figures and the report of an identification."""

import numpy as np
from matplotlib.figure import Figure

from flexjax.identify import Comparison, Experiment, FrequencyResponse, Identification, Modal
from flexjax.viz._report import Report
from flexjax.viz._style import COLOURS, look, new_figure, style


def fits(result: Identification, which: str = "training") -> Figure:
    """Measured and predicted readings of every experiment, residuals below."""
    comparisons = [c for c in getattr(result, which) if isinstance(c.data, Experiment)]
    if not comparisons:
        raise ValueError(f"plot: the {which} data of this identification hold no time series.")
    rows = [(c, s) for c in comparisons for s in c.data.sensors]
    figure, axes = new_figure(len(rows), 2, size=(9.6, 0.8 + 1.9 * len(rows)))
    for (c, s), left, right in zip(rows, axes[::2], axes[1::2], strict=True):
        y, p = c.data.sensors[s], c.predicted[s]
        left.plot(c.data.ts, y, label="measured", color=COLOURS[-1], linewidth=1.0)
        left.plot(c.data.ts, p, label="model", color=COLOURS[1], linestyle="--")
        left.set_title(f"{c.data.name}, {s}: fit {c.fits[s]:.2f} %", loc="left")
        right.plot(c.data.ts, y - p, color=COLOURS[0], linewidth=0.9)
        right.set_title(f"residual, rms {np.sqrt(np.nanmean((y - p) ** 2)):.3g}", loc="left")
    axes[0].legend(ncols=2)
    for axis in axes[-2:]:
        axis.set_xlabel("time [s]")
    return figure


def correlations(result: Identification) -> Figure:
    """How estimates hang together, and the singular values: what the data can see."""
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
            left.annotate(f"{value:.2f}", (j, i), ha="center", va="center", fontsize=7, color="white" if abs(value) > 0.6 else "black")
    figure.colorbar(image, ax=left, shrink=0.8)
    known = 1 / np.maximum(result.singular_values, 1e-300)
    right.bar([k + 1 for k in ticks], np.clip(known, None, 1e6), color=[COLOURS[1] if x > 0.5 else COLOURS[2] for x in known])
    right.set_yscale("log")
    right.axhline(0.5, color="#777777", linestyle=":", linewidth=1)
    right.set_xticks([k + 1 for k in ticks])
    right.set(xlabel="combination, best known first", ylabel="standard error, relative")
    right.set_title("above the line: not determined", loc="left")
    return figure


def autocorrelation(result: Identification) -> Figure:
    """Autocorrelation of the training residuals; within the band nothing is left to explain."""
    series = [(c, s, w) for c in result.training for s, w in c.whiteness.items()]
    if not series:
        raise ValueError("plot: the training data of this identification hold no time series.")
    figure, (axis,) = new_figure(1, 1)
    for i, (c, s, w) in enumerate(series[:7]):
        lags = np.arange(1, len(w.autocorrelation) + 1)
        axis.plot(lags, w.autocorrelation, label=f"{c.data.name}, {s}", **look(i))
    n = min(int(np.isfinite(c.data.sensors[s]).sum()) for c, s, _ in series)
    axis.axhspan(-1.96 / n**0.5, 1.96 / n**0.5, color="#dddddd", zorder=0)
    axis.set(xlabel="lag [samples]", ylabel="autocorrelation of residuals", ylim=(-1.05, 1.05))
    axis.legend(ncols=2)
    return figure


def responses(result: Identification) -> Figure:
    """Measured and identified frequency responses."""
    comparisons = [c for c in (*result.training, *result.validation) if isinstance(c.data, FrequencyResponse)]
    if not comparisons:
        raise ValueError("plot: this identification has no frequency responses.")
    figure, axes = new_figure(2, len(comparisons), size=(max(6.4, 4.6 * len(comparisons)), 5.0), sharex="col")
    for k, c in enumerate(comparisons):
        top, bottom = axes[k], axes[len(comparisons) + k]
        for label, H, style_ in (("measured", c.data.values, {"color": COLOURS[-1], "marker": ".", "linestyle": "none", "markersize": 4}), ("model", c.predicted, {"color": COLOURS[1]})):
            top.semilogy(c.data.frequencies, np.abs(H), label=label, **style_)
            bottom.plot(c.data.frequencies, np.degrees(np.angle(H)), **style_)
        top.set_title(f"{c.data.name}: fit {next(iter(c.fits.values())):.2f} %", loc="left")
        bottom.set_xlabel("frequency [Hz]")
    axes[0].set_ylabel("magnitude [reading per input]")
    axes[len(comparisons)].set_ylabel("phase [deg]")
    axes[0].legend()
    return figure


def history(result: Identification) -> Figure:
    """Loss against evaluations."""
    figure, (axis,) = new_figure(1, 1)
    axis.semilogy(np.arange(1, len(result.history) + 1), np.maximum(result.history, 1e-300), marker="o", markersize=3, color=COLOURS[0])
    axis.set(xlabel="evaluation", ylabel="loss (half the sum of squares)")
    return figure


FIGURES = {"fits": fits, "validation": lambda r: fits(r, "validation"), "correlation": correlations, "autocorrelation": autocorrelation, "responses": responses, "history": history}


def identification_report(result: Identification, remarks: tuple[str, ...] = ()) -> Report:
    """Everything that an identification found, as a page."""
    name = type(result.model.formulation).__name__
    report = Report(f"Identification of {result.robot.name}", f"{name}, {result.samples} samples, {result.status} after {result.evaluations} evaluations in {result.seconds:.1f} s.")
    low_high, robust = result.intervals(), result.intervals(robust=True)
    white = result.white
    head = ["number", "unit", "start", "estimate", "standard error", "95 % interval"] + ([] if white else ["95 % interval, coloured residuals"])
    rows = []
    for k, (n, u) in enumerate(zip(result.names, result.units, strict=True)):
        row = [n, u, float(result.start[k]), f"{result.values[k]:.7g}", float(result.standard_errors[k]), f"{low_high[k, 0]:.6g} to {low_high[k, 1]:.6g}"]
        rows.append(row + ([] if white else [f"{robust[k, 0]:.6g} to {robust[k, 1]:.6g}"]))
    report.heading("Estimates").table(head, rows)
    for remark in remarks:
        report.text(remark)
    _printed_values(result, report)
    report.heading("How far to trust them")
    for text in result.unseen:
        report.verdict(False, f"determined by these data: {text}")
    if not result.unseen:
        report.verdict(True, "every combination of the sought numbers is determined by the data")
    if any(c.whiteness for c in result.training):
        report.verdict(white, "the residuals are white: nothing that the model misses is left in them" if white else "white residuals: the model misses something, so the plain intervals are too narrow")
    with style():
        report.figure(correlations(result), "Correlation of the estimates; relative standard error of each combination of numbers.")
        report.heading("Fit")
        report.table(["data", "role", "channel", "fit [%]", "white"], [row for label, cs in (("fitted", result.training), ("validation", result.validation)) for c in cs for row in _fit_rows(c, label)])
        for which, caption in (("training", "Fitted data."), ("validation", "Data that were not fitted.")):
            if any(isinstance(c.data, Experiment) for c in getattr(result, which)):
                report.figure(fits(result, which), caption)
        if any(isinstance(c.data, FrequencyResponse) for c in (*result.training, *result.validation)):
            report.figure(responses(result), "Frequency responses.")
        if any(c.whiteness for c in result.training):
            report.figure(autocorrelation(result), "Autocorrelation of the residuals; grey: what chance alone gives in 95 of 100 lags.")
        if len(result.history) > 1:
            report.figure(history(result), "The search.")
    report.heading("The identified robot").code(str(result.robot)).code(str(result))
    return report


def _fit_rows(c: Comparison, label: str) -> list[list]:
    if isinstance(c.data, Modal):
        measured = c.data.shown(c.data.measured()[0])
        return [[c.data.name, label, n, f"{p:.5g} for {m:.5g}", "-"] for n, p, m in zip(c.data.channels, c.predicted, measured, strict=True)]
    white = c.whiteness
    return [[c.data.name, label, s, f, ("yes" if white[s].white else "no") if s in white else "-"] for s, f in c.fits.items()]


def _printed_values(result: Identification, report: Report) -> None:
    """Numbers of the description that the data exclude."""
    low_high = result.intervals(0.999, robust=not result.white)
    for n, a, v, (lo, hi) in zip(result.names, result.start, result.values, low_high, strict=True):
        if a != 0 and not lo <= a <= hi and abs(v / a - 1) > 0.2:
            report.text(f"{n} = {a:.4g} of the description cannot be right if the model is: these data ask for {v:.4g} (99.9 % interval {lo:.4g} to {hi:.4g}), {v / a:.3g} times as much.")
