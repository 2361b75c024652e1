"""The report of an identification: estimates, how far to trust them, fits."""

from flexjax.study.identify import Comparison, Experiment, FrequencyResponse, Identification, Modal
from flexjax.viz._identify_plots import autocorrelation, correlations, fits, history, responses
from flexjax.viz._report import Report
from flexjax.viz._style import style


def identification_report(result: Identification, remarks: tuple[str, ...] = ()) -> Report:
    """Everything that an identification found, as a page."""
    name = type(result.model.formulation).__name__
    report = Report(
        f"Identification of {result.robot.name}",
        f"{name}, {result.samples} samples, {result.status} after {result.evaluations:.3g} evaluations in {result.seconds:.1f} s.",
    )
    low_high, robust = result.intervals(), result.intervals(robust=True)
    white = result.white
    head = ["number", "unit", "start", "estimate", "standard error", "95 % interval"] + (
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
        report.verdict(
            white,
            "the residuals are white: nothing that the model misses is left in them"
            if white
            else "white residuals: the model misses something, so the plain intervals are too narrow",
        )
    with style():
        report.figure(
            correlations(result),
            "Correlation of the estimates; relative standard error of each combination of numbers.",
        )
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
            ("validation", "Data that were not fitted."),
        ):
            if any(isinstance(c.data, Experiment) for c in getattr(result, which)):
                report.figure(fits(result, which), caption)
        if any(
            isinstance(c.data, FrequencyResponse) for c in (*result.training, *result.validation)
        ):
            report.figure(responses(result), "Frequency responses.")
        if any(c.whiteness for c in result.training):
            report.figure(
                autocorrelation(result),
                "Autocorrelation of the residuals; grey: what chance alone gives in 95 of 100 lags.",
            )
        if len(result.history) > 1:
            report.figure(history(result), "The search.")
    report.heading("The identified robot").code(str(result.robot)).code(str(result))
    return report


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


def _printed_values(result: Identification, report: Report) -> None:
    """Numbers of the description that the data exclude."""
    low_high = result.intervals(0.999, robust=not result.white)
    for n, a, v, (lo, hi) in zip(result.names, result.start, result.values, low_high, strict=True):
        if a != 0 and not lo <= a <= hi and abs(v / a - 1) > 0.2:
            verdict = (
                "cannot be right if the model is"
                if not 0.5 < v / a < 2
                else "is excluded by these data"
            )
            report.text(
                f"{n} = {a:.4g} of the description {verdict}: they ask for {v:.4g} (99.9 % interval {lo:.4g} to {hi:.4g}), {v / a:.3g} times as much."
            )
