"""The report of an identification: estimates, uncertainty, fits."""

from flexjax.study.identify import Comparison, Experiment, FrequencyResponse, Identification, Modal
from flexjax.viz.figures._identify_plots import (
    autocorrelation,
    correlations,
    fits,
    history,
    responses,
)
from flexjax.viz.figures._style import own_style
from flexjax.viz.report._report import Report


def identification_report(result: Identification, notes: tuple[str, ...] = ()) -> Report:
    """Write up an identification: estimates, uncertainty, fits and residuals.

    Arguments:
        result: the result of :func:`flexjax.identify`.
        notes: paragraphs to add below the table of estimates.

    Returns:
        A report; ``save("fit.html")`` writes it as one page.

    >>> import flexjax as fx
    >>> arm, training, validation, truth = fx.load_dataset("bench-arm")
    >>> model = fx.TransferMatrix(segments=16).bind(arm)
    >>> result = fx.identify(model, training, list(truth), dt=1.25e-3)
    >>> fx.identification_report(result).save("fit.html").name
    'fit.html'
    """
    name = type(result.model.formulation).__name__
    effort = f"{result.evaluations:.0f} gradient evaluations, {result.seconds:.0f} s"
    report = Report(
        f"Identification of {result.robot.name}",
        f"{name}, {result.samples} samples. Status: {result.status} ({effort}).",
    )
    report.heading("Estimates").table(*_estimates(result))
    for note in notes:
        report.text(note)
    _excluded_values(result, report)
    _uncertainty(result, report)
    with own_style():
        report.figure(
            correlations(result),
            "Correlation of the estimates; relative standard error of each combination of "
            "parameters.",
        )
        _fits(result, report)
    report.heading("Identified robot").code(str(result.robot)).code(str(result))
    return report


def _estimates(result: Identification) -> tuple[list[str], list[list]]:
    """Head and rows of the table of estimates."""
    low_high, robust = result.intervals(), result.intervals(robust=True)
    white = result.white
    head = ["parameter", "unit", "start", "estimate", "standard error", "95 % interval"] + (
        [] if white else ["95 % interval, coloured residuals"]
    )
    rows = []
    for k, (n, u) in enumerate(zip(result.names, result.units, strict=True)):
        row = [
            n,
            u,
            float(result.start[k]),
            f"{result.values[k]:.7g}",
            float(result.standard_errors[k]),
            f"{low_high[k, 0]:.6g} to {low_high[k, 1]:.6g}",
        ]
        rows.append(row + ([] if white else [f"{robust[k, 0]:.6g} to {robust[k, 1]:.6g}"]))
    return head, rows


def _uncertainty(result: Identification, report: Report) -> None:
    report.heading("Uncertainty")
    for text in result.unseen:
        report.verdict(False, f"determined by these data: {text}")
    if not result.unseen:
        report.verdict(True, "the data determine every combination of the free parameters")
    if any(c.whiteness for c in result.training):
        report.verdict(
            result.white,
            "the residuals are white: they contain nothing that the model does not explain"
            if result.white
            else "white residuals: some effect is not modelled; the plain intervals are too narrow",
        )


def _fits(result: Identification, report: Report) -> None:
    report.heading("Fit")
    report.table(
        ["data", "role", "channel", "fit [%]", "white"],
        [
            row
            for label, cs in (("fitted", result.training), ("validation", result.validation))
            for c in cs
            for row in _fit_rows(c, label)
        ],
    )
    for which, caption in (
        ("training", "Fitted data."),
        ("validation", "Validation data, which were not fitted."),
    ):
        if any(isinstance(c.data, Experiment) for c in getattr(result, which)):
            report.figure(fits(result, which), caption)
    if any(isinstance(c.data, FrequencyResponse) for c in (*result.training, *result.validation)):
        report.figure(responses(result), "Frequency responses.")
    if any(c.whiteness for c in result.training):
        report.figure(
            autocorrelation(result),
            "Autocorrelation of the residuals; grey: 95 % band of white noise.",
        )
    if len(result.history) > 1:
        report.figure(history(result), "Loss of the search.")


def _fit_rows(c: Comparison, label: str) -> list[list]:
    if isinstance(c.data, Modal):
        measured = c.data.shown(c.data.measured()[0])
        return [
            [c.data.name, label, n, f"{p:.5g} for {m:.5g}", "-"]
            for n, p, m in zip(c.data.channels, c.predicted, measured, strict=True)
        ]
    white = c.whiteness
    return [
        [c.data.name, label, s, f, ("yes" if white[s].white else "no") if s in white else "-"]
        for s, f in c.fits.items()
    ]


def _excluded_values(result: Identification, report: Report) -> None:
    """Report parameters of the description that the data exclude."""
    low_high = result.intervals(0.999, robust=not result.white)
    for n, a, v, (lo, hi) in zip(result.names, result.start, result.values, low_high, strict=True):
        if a != 0 and not lo <= a <= hi and abs(v / a - 1) > 0.2:
            far = not 0.5 < v / a < 2
            verdict = "cannot be right if the model is" if far else "is excluded by these data"
            report.text(
                f"{n} = {a:.4g} of the description {verdict}: the estimate is {v:.4g} "
                f"(99.9 % interval {lo:.4g} to {hi:.4g}), {v / a:.3g} times as large."
            )
