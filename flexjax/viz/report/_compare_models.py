"""The page of a comparison of models: ranking, parameters, spectra of the residuals."""

from matplotlib.figure import Figure

from flexjax.study.identify import ModelComparison
from flexjax.viz.figures._style import new_figure, own_style
from flexjax.viz.report._report import Report


def comparison_report(table: ModelComparison) -> Report:
    """Write up a comparison: which structure the data support, and what they do not determine.

    Arguments:
        table: the result of :func:`flexjax.compare_models`.

    Returns:
        A report; ``save("models.html")`` writes it as one page.

    >>> import flexjax as fx
    >>> table = fx.compare_models({"stiff": (model, free)}, records)  # doctest: +SKIP
    >>> fx.comparison_report(table).save("models.html").name  # doctest: +SKIP
    'models.html'
    """
    report = Report("Comparison of models", table.supported)
    report.heading("Ranking").table(*_ranking(table))
    if not all(row.white for row in table.rows):
        report.verdict(
            False,
            "white residuals: AIC and BIC take them as independent, and prefer terms that predict "
            "worse. The ranking is that of the recordings left out.",
        )
    for note in table.notes:
        report.text(note)
    report.heading("Parameters").table(*_parameters(table))
    for row in table.rows:
        for text in row.result.unseen if row.result is not None else []:
            report.verdict(False, f"{row.name}: determined by these data: {text}")
    with own_style():
        report.heading("Residuals").figure(
            residual_spectra(table), "Power density of the residuals of the fitted recordings."
        )
    return report


def _ranking(table: ModelComparison) -> tuple[list[str], list[list]]:
    """Head and rows; fits of single recordings in columns of their own."""
    first = table.rows[0]
    head = ["model", "parameters", "left out [%]"]
    head += [f"{n}, left out [%]" for n in first.left_out]
    head += [f"{n}, fitted [%]" for n in first.fitted]
    head += [f"{n}, validation [%]" for n in first.validation]
    rows = []
    for row in table.rows:
        fits = (*row.left_out.values(), *row.fitted.values(), *row.validation.values())
        criteria = [row.aic, row.bic, "yes" if row.white else "no"]
        rows.append([row.name, row.parameters, row.score, *fits, *criteria])
    return [*head, "AIC", "BIC", "white"], rows


def _parameters(table: ModelComparison) -> tuple[list[str], list[list]]:
    head = ["model", "parameter", "unit", "estimate", "95 % interval", "coloured residuals"]
    rows = []
    for row in table.rows:
        if row.result is None:
            continue
        plain, robust = row.result.intervals(), row.result.intervals(robust=True)
        for k, (name, unit) in enumerate(zip(row.result.names, row.result.units, strict=True)):
            ends = [f"{low:.6g} to {high:.6g}" for low, high in (plain[k], robust[k])]
            rows.append([row.name, name, unit, f"{row.result.values[k]:.7g}", *ends])
    return head, rows


def residual_spectra(table: ModelComparison) -> Figure:
    """Spectra of every model's residuals, one pair of axes for each recording and sensor."""
    keys = list(table.rows[0].spectra)
    figure, axes = new_figure(len(keys), sharex=True)
    for axis, key in zip(axes, keys, strict=True):
        for row in table.rows:
            f, density = row.spectra[key]
            axis.loglog(f[1:], density[1:], linewidth=0.9, label=row.name)
        axis.set(title=key, ylabel="power density [reading²/Hz]")
    axes[-1].set_xlabel("frequency [Hz]")
    axes[0].legend()
    return figure
