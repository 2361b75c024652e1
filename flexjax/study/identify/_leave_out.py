"""Leave each recording out of a fit in turn and predict it from the others."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from flexjax.study.identify._result import Identification
from flexjax.study.identify.fit import _fit
from flexjax.study.identify.fit._problem import Group, Measured
from flexjax.study.identify.fit._unknown_start import of_recordings
from flexjax.study.identify.records._data import Modal
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.records._unknown_start import UnknownStart
from flexjax.study.identify.uncertainty._statistics import fit_percent


def leave_one_out(
    result: Identification, experiments: Sequence[Experiment], *, max_steps: int = 50
) -> dict[str, float]:
    """Mean fit [%] of each recording's sensors, predicted from a fit of the others.

    The search starts where that of ``result`` did, and runs the same compiled program with other
    weights. A recording with an unknown start gets it from its first samples, in a second search
    that moves nothing else.
    """
    problem, fits = result.problem, {}
    for k, left in enumerate(experiments):
        others = _weighted(result, k, 0, np.inf)
        every = np.ones(len(result.z), bool)
        options = {"max_steps": max_steps, "rtol": 1e-8, "atol": 1e-8}
        zero = np.zeros(len(result.z))
        fit = _fit.levenberg_marquardt(problem, others, zero, moving=every, **options)
        if isinstance(left.start, UnknownStart):
            own = of_recordings(problem.parameters) & np.array(
                [any(t.experiment == k for t in row) for row in problem.parameters.targets]
            )
            first = _weighted(result, k, left.start.samples, 0)
            fit = _fit.levenberg_marquardt(problem, first, fit.z, moving=own, grow=False, **options)
        group, row = _place(problem.groups, k)
        run = np.asarray(fit.predicted[0][group][row])
        names = problem.groups[group].sensors
        each = [fit_percent(left.sensors[s], run[:, c]) for c, s in enumerate(names)]
        fits[left.name] = float(np.mean(each))
    return fits


def leave_rows_out(
    result: Identification, folds: Sequence[int] | np.ndarray, *, max_steps: int = 50
) -> np.ndarray:
    """Frequency response or modal track, each row predicted by a fit of the other folds' rows.

    Every search starts at the estimates from all rows: what is left out moves the estimates, but it
    does not choose the local minimum, of which narrow peaks make many.

    Arguments:
        result: of :func:`flexjax.identify` with one response or track.
        folds: the fold of each row, which is a line or a time.
        max_steps: limit of each search.

    Returns:
        Predictions, in the order of ``Comparison.predicted``.

    Raises:
        ValueError: other data are fitted, or ``folds`` does not fit them.
    """
    problem, folds = result.problem, np.asarray(folds)
    if problem.groups or len(problem.others) != 1 or isinstance(problem.others[0], Modal):
        raise ValueError("result: expected one fx.FrequencyResponse or fx.ModalTrack as its data.")
    (data,), (weight,) = problem.others, result.measured.other_weights
    rows = data.rows
    if folds.shape != (max(rows) + 1,) or len(np.unique(folds)) < 2:
        raise ValueError(
            f"folds: shape {folds.shape}; expected at least two folds over {max(rows) + 1} rows."
        )
    found, every = np.empty(len(rows)), np.ones(len(result.z), bool)
    for fold in np.unique(folds):
        out = folds[rows] == fold
        measured = eqx.tree_at(
            lambda m: m.other_weights, result.measured, (jnp.where(out, 0.0, weight),)
        )
        fit = _fit.levenberg_marquardt(
            problem, measured, result.z, moving=every, max_steps=max_steps, rtol=1e-8, atol=1e-8
        )
        found[out] = np.asarray(fit.predicted[1][0])[out]
    return data.shown(found)


def _place(groups: Sequence[Group], k: int) -> tuple[int, int]:
    for g, group in enumerate(groups):
        if k in group.members:
            return g, group.members.index(k)
    raise AssertionError("every experiment is in a group")


def _weighted(result: Identification, k: int, own: float, others: float) -> Measured:
    """The data; of recording k only the first ``own`` samples count, of others ``others``."""
    weights = []
    for group, w in zip(result.problem.groups, result.measured.weights, strict=True):
        counts = np.array([own if member == k else others for member in group.members])
        used = np.arange(w.shape[1])[None, :, None] < counts[:, None, None]
        weights.append(jnp.where(used, w, 0.0))
    return eqx.tree_at(lambda m: m.weights, result.measured, tuple(weights))
