"""compare_models: which structure do the data support, beside black boxes on the same split."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flexjax._html import bars, block
from flexjax.formulation import AbstractModel
from flexjax.study.free import FreeLike
from flexjax.study.identify._identify import identify
from flexjax.study.identify._leave_out import leave_one_out
from flexjax.study.identify._result import Identification
from flexjax.study.identify.baselines import _n4sid
from flexjax.study.identify.baselines._arx import Pair, fit_arx, free_run_fit
from flexjax.study.identify.fit._unknown_start import of_recordings
from flexjax.study.identify.records._experiment import INPUTS, Experiment
from flexjax.study.identify.uncertainty._statistics import whiteness

BASELINES = ("arx", "n4sid")


@dataclasses.dataclass(frozen=True)
class Row:
    """One model of a comparison; fits [%] are means over sensors, by recording.

    ``left_out``: each fitted recording, predicted from a fit of the others. ``parameters`` does
    not count starts of recordings. ``aic`` and ``bic`` are those of the fitted recordings.
    ``spectra``: (frequencies [Hz], power density) of the residuals by recording and sensor.
    """

    name: str
    parameters: int
    fitted: dict[str, float]
    left_out: dict[str, float]
    validation: dict[str, float]
    aic: float
    bic: float
    white: bool
    result: Identification | None
    spectra: dict[str, tuple[np.ndarray, np.ndarray]]

    @property
    def score(self) -> float:
        """Mean fit of the recordings left out; NaN with fewer than two."""
        return float(np.mean(list(self.left_out.values()))) if self.left_out else float("nan")


@dataclasses.dataclass(frozen=True)
class ModelComparison:
    """Result of :func:`flexjax.compare_models`: rows, the best first.

    ``print`` shows the table, and :func:`flexjax.comparison_report` writes a page.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def best(self) -> Row:
        """The model, apart from baselines, with the best fit of recordings left out."""
        return next(row for row in self.rows if row.result is not None)

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def __str__(self) -> str:
        return "\n".join([*self._table(), *self._remarks()])

    @property
    def ranking(self) -> str:
        """The table without the validation recordings: all that chooses the structure."""
        unseen = [dataclasses.replace(row, validation={}) for row in self.rows]
        lines = dataclasses.replace(self, rows=tuple(unseen))._table()
        return "\n".join([*lines, self.supported])

    @property
    def supported(self) -> str:
        """Which structure the recordings left out support, and by how much."""
        best = self.best
        if not best.left_out:
            return "one recording: the data rank no structure"
        text = f"supported by the recordings left out: {best.name} ({best.score:.2f} %"
        others = [row for row in self.rows if row.result is not None and row is not best]
        if others:
            text += f", {best.score - others[0].score:.2f} above {others[0].name}"
        return text + ")"

    def _table(self) -> list[str]:
        width = max(len(row.name) for row in self.rows)
        head = f"{'model':<{width}}  parameters  left out [%]  fitted [%]  validation [%]"
        lines = [head + f"  {'AIC':>9}  {'BIC':>9}"]
        for row in self.rows:
            fits = " ".join(f"{x:.1f}" for x in row.validation.values())
            checked = f"{_mean(row.validation)} ({fits})" if fits else "-"
            lines.append(
                f"{row.name:<{width}}  {row.parameters:>10}  {_mean(row.left_out):>12}  "
                f"{_mean(row.fitted):>10}  {checked:>14}  {row.aic:9.1f}  {row.bic:9.1f}"
            )
        return lines

    def _remarks(self) -> list[str]:
        lines = []
        if not all(row.white for row in self.rows):
            lines.append(
                "residuals are not white: AIC and BIC take them as independent and prefer terms "
                "that predict worse. The ranking is that of the recordings left out."
            )
        lines += [*self.notes, self.supported]
        if self.best.result is not None:
            found = self.best.result
            lines += [f"{self.best.name}: not determined: {text}" for text in found.unseen]
        return lines

    def _repr_html_(self) -> str:
        return block(
            str(self), bars({row.name: row.score for row in self.rows}, "fit left out [%]")
        )


def _mean(fits: dict[str, float]) -> str:
    return f"{np.mean(list(fits.values())):.2f}" if fits else "-"


def compare_models(
    candidates: Mapping[str, tuple[AbstractModel, FreeLike]],
    experiments: Sequence[Experiment],
    *,
    validation: Sequence[Experiment] = (),
    baselines: Sequence[str] = BASELINES,
    **options: Any,
) -> ModelComparison:
    """Fit several structures to the same recordings and rank them by recordings left out.

    Information criteria take residuals as independent. On measured data they are not, and then
    the criteria prefer terms that ruin the prediction. So every fitted recording is predicted
    from a fit of the others, and the mean fit ranks. Validation recordings are only reported.

    Arguments:
        candidates: name -> (model, free parameters) of each structure.
        experiments: recordings to fit; at least two for the ranking.
        validation: recordings that are predicted but affect nothing.
        baselines: black boxes in the same table: "arx" (its order has the best free run on the
            fitted recordings) and "n4sid" (needs the package nfoursid; it runs from rest).
        options: of :func:`flexjax.identify`, e.g. ``dt``.

    Returns:
        :class:`ModelComparison`, the best candidate first.

    Raises:
        ValueError: data, parameters or drive do not fit the robot; all faults are listed.

    >>> import flexjax as fx
    >>> table = fx.compare_models({"stiff": (model, free)}, records)  # doctest: +SKIP
    """
    experiments, validation = list(experiments), list(validation)
    _check(candidates, experiments, validation, baselines)
    rows, notes = [], []
    for name, (model, free) in candidates.items():
        result = identify(model, experiments, free, validation=validation, **options)
        steps = {"max_steps": options["max_steps"]} if "max_steps" in options else {}
        left_out = leave_one_out(result, experiments, **steps) if len(experiments) > 1 else {}
        rows.append(_row_of(name, result, left_out))
    if len(experiments) < 2:
        notes.append("one recording: none is left out, so nothing is ranked.")
    for name in baselines:
        if name == "n4sid" and not _n4sid.installed():
            notes.append(
                "n4sid: the package nfoursid is missing (pip install 'flexjax[baselines]')"
            )
            continue
        rows.append(_baseline(name, experiments, validation))
    order = sorted(range(len(rows)), key=lambda i: -np.nan_to_num(rows[i].score, nan=-np.inf))
    return ModelComparison(tuple(rows[i] for i in order), tuple(notes))


def _check(
    candidates: Any,
    experiments: list[Experiment],
    validation: list[Experiment],
    baselines: Sequence[str],
) -> None:
    if not candidates:
        raise ValueError("candidates: none; expected {name: (model, free parameters)}.")
    for name, pair in candidates.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], AbstractModel)):
            raise ValueError(
                f"candidates.{name}: {type(pair).__name__}; expected (model, free parameters)."
            )
    for name in baselines:
        if name not in BASELINES:
            raise ValueError(f"baselines: {name!r}; expected some of {', '.join(BASELINES)}.")
    for e in (*experiments, *validation):
        if not isinstance(e, Experiment):
            raise ValueError(
                f"experiments: {type(e).__name__}; expected fx.Experiment. Other data have no "
                "recordings to leave out."
            )
    names = [e.name for e in (*experiments, *validation)]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"experiments: {twice!r} is the name of two; expected different names.")
    if baselines and any(list(e.sensors) != list(experiments[0].sensors) for e in experiments):
        raise ValueError("baselines: expected the same sensors in every recording.")


def _row_of(name: str, result: Identification, left_out: dict[str, float]) -> Row:
    fits = lambda comparisons: {
        c.data.name: float(np.mean(list(c.fits.values()))) for c in comparisons
    }
    errors = {
        (c.data.name, s): y - c.predicted[s]
        for c in result.training
        for s, y in c.data.sensors.items()
    }
    steps = {c.data.name: float(np.mean(np.diff(c.data.ts))) for c in result.training}
    count = int(np.sum(~of_recordings(result.problem.parameters)))
    aic, bic = _criteria(list(errors.values()), count)
    return Row(
        name,
        count,
        fits(result.training),
        left_out,
        fits(result.validation),
        aic,
        bic,
        result.white,
        result,
        _spectra(errors, steps),
    )


def _criteria(errors: list[np.ndarray], count: int) -> tuple[float, float]:
    """AIC and BIC of independent normal residuals whose variance is estimated."""
    every = np.concatenate([e[np.isfinite(e)] for e in errors])
    n = len(every)
    fit = n * np.log(np.mean(every**2) + 1e-300)
    return fit + 2 * (count + 1), fit + np.log(n) * (count + 1)


def _spectra(
    errors: dict[tuple[str, str], np.ndarray], steps: dict[str, float]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Power densities of the residuals, by "recording, sensor"; gaps count as zero."""
    from scipy.signal import periodogram

    return {
        f"{name}, {s}": periodogram(np.nan_to_num(e), fs=1 / steps[name])
        for (name, s), e in errors.items()
    }


# ---- black boxes ----


def _pairs(experiments: Sequence[Experiment], sensor: str, relative: bool) -> list[Pair]:
    """Inputs, for a model that runs from rest ``relative`` to the first, and the sensor."""

    def inputs(e: Experiment) -> np.ndarray:
        columns = [v for field in INPUTS for v in getattr(e, field).values()]
        if not columns:
            raise ValueError(
                f"baselines: {e.name!r} has no recorded input; expected motions, efforts or "
                "currents. Leave the baselines out: baselines=()."
            )
        u = np.stack(columns, axis=1)
        return u - u[:1] if relative else u

    return [(inputs(e), e.sensors[sensor]) for e in experiments]


def _baseline(name: str, experiments: list[Experiment], validation: list[Experiment]) -> Row:
    fit: Callable[[list[Pair]], Any] = fit_arx if name == "arx" else _n4sid.fit_n4sid
    sensors, size, orders = list(experiments[0].sensors), 0, []
    fitted, left, checked, errors = {}, {}, {}, {}
    for s in sensors:
        pairs = _pairs(experiments, s, name == "n4sid")
        model = fit(pairs)
        size, orders = size + model.size, [*orders, str(model.order)]
        for e, (u, y) in zip(experiments, pairs, strict=True):
            predicted = model.run(u, y)
            errors[e.name, s] = y - predicted
            fitted.setdefault(e.name, []).append(free_run_fit(predicted, y))
        for e, (u, y) in zip(validation, _pairs(validation, s, name == "n4sid"), strict=True):
            checked.setdefault(e.name, []).append(free_run_fit(model.run(u, y), y))
        for k, e in enumerate(experiments if len(experiments) > 1 else []):
            other = fit([p for i, p in enumerate(pairs) if i != k])
            left.setdefault(e.name, []).append(free_run_fit(other.run(*pairs[k]), pairs[k][1]))
    steps = {e.name: float(np.mean(np.diff(e.ts))) for e in experiments}
    aic, bic = _criteria(list(errors.values()), size)
    mean = lambda rows: {k: float(np.mean(v)) for k, v in rows.items()}
    label = f"{name.upper()} of order {', '.join(orders)}"
    parts = mean(fitted), mean(left), mean(checked)
    white = all(whiteness(e[np.isfinite(e)]).white for e in errors.values())
    return Row(label, size, *parts, aic, bic, white, None, _spectra(errors, steps))
