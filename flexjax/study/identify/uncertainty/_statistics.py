"""Statistics of residuals: noise, covariance, undetermined combinations, whiteness."""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from flexjax.study.identify.fit._problem import Measured, Problem


class Rows(NamedTuple):
    """Origin of each residual: index of its channel (-1: a prior, -2: a gap), of its run (-1:
    not a time series), of its sample."""

    channel: np.ndarray
    series: np.ndarray
    sample: np.ndarray
    names: tuple[str, ...]


def rows_of(problem: Problem, measured: Measured) -> Rows:
    names: list[str] = []
    channel, series, sample = [], [], []
    runs = 0
    for k, group in enumerate(problem.groups):
        index = []
        for s in group.sensors:
            if s not in names:
                names.append(s)
            index.append(names.index(s))
        w = np.asarray(measured.weights[k])
        if measured.lines is not None:
            lines = np.asarray(measured.lines[k])
            shape = (2, w.shape[0], len(lines), len(index))
            used = np.broadcast_to(lines[None, None, :, None] > 0, shape).copy()
            used[1] &= lines[None, :, None] > 0.9  # the constant and the last line are real
            c = np.where(used, np.broadcast_to(np.array(index), shape), -2)
            run = np.full(shape, -1)
            n = np.zeros(shape, int)
        else:
            c = np.where(w > 0, np.broadcast_to(np.array(index), w.shape), -2)
            run = np.broadcast_to(runs + np.arange(w.shape[0])[:, None, None], w.shape)
            n = np.broadcast_to(np.arange(w.shape[1])[None, :, None], w.shape)
        runs += w.shape[0]
        for store, x in ((channel, c), (series, run), (sample, n)):
            store.append(x.reshape(-1))
    for data, value in zip(problem.others, measured.other_values, strict=True):
        names.append(data.name)
        channel.append(np.full(value.shape[0], len(names) - 1))
        series.append(np.full(value.shape[0], -1))
        sample.append(np.zeros(value.shape[0], int))
    p = problem.parameters.size
    for store, x in ((channel, -1), (series, -1), (sample, 0)):
        store.append(np.full(p, x))
    return Rows(
        np.concatenate(channel), np.concatenate(series), np.concatenate(sample), tuple(names)
    )


def effective_size(J: np.ndarray, rows: Rows) -> float:
    """Number of parameters that the data determine, and not priors."""
    data = J[rows.channel >= 0]
    return float(np.trace(np.linalg.pinv(J.T @ J, hermitian=True) @ (data.T @ data)))


def beside(J: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Columns of ``J`` that are not ``others`` (a mask), without what those can explain."""
    known = np.linalg.lstsq(J[:, others], J[:, ~others], rcond=None)[0]
    return J[:, ~others] - J[:, others] @ known


def noise_factors(r: np.ndarray, rows: Rows, p: float) -> dict[str, float]:
    """RMS of each channel's weighted residuals, corrected for the number of parameters."""
    total = int((rows.channel >= 0).sum())
    factors = {}
    for k, name in enumerate(rows.names):
        own = rows.channel == k
        free = own.sum() * max(1.0 - p / max(total, 1), 1.0 / max(total, 1))
        factors[name] = float(np.sqrt(np.sum(r[own] ** 2) / max(free, 1.0)))
    return factors


def row_scale(rows: Rows, factors: dict[str, float]) -> np.ndarray:
    """Factor of each residual that divides it by the estimated noise of its channel."""
    scale = np.ones(len(rows.channel))
    for k, name in enumerate(rows.names):
        if factors[name] > 0:
            scale[rows.channel == k] = 1 / factors[name]
    return scale


class Precision(NamedTuple):
    covariance: np.ndarray  # of z
    singular: np.ndarray  # of the data's Jacobian w.r.t. relative changes, largest first
    directions: np.ndarray  # columns: the combinations of relative changes that belong to them


def precision(
    J: np.ndarray,
    data_rows: np.ndarray,
    relative: np.ndarray,
    motions: np.ndarray | None = None,
) -> Precision:
    """Covariance of z and singular values, from ``J`` w.r.t. z in units of the noise.

    ``relative``: the change of z that is a relative change of one. ``motions``: mask of unknowns of
    measured motions, which have no relative change.
    """
    if motions is not None and motions.any():
        covariance = precision(J, data_rows, relative).covariance
        rest = ~motions
        reduced = beside(J, motions) * relative[rest]
        _, own, directions = np.linalg.svd(reduced, full_matrices=False)
        every = np.zeros((len(motions), len(own)))
        every[rest] = directions.T
        return Precision(covariance, own, every)
    p = J.shape[1]
    _, s, vt = np.linalg.svd(J, full_matrices=False)
    floor = np.finfo(float).eps * max(J.shape) * (s[0] if len(s) and s[0] > 0 else 1.0)
    covariance = (vt.T / np.maximum(s, floor) ** 2) @ vt
    _, own, directions = np.linalg.svd(J[data_rows] * relative[None, :], full_matrices=False)
    if len(own) < p:  # fewer data than parameters
        full = np.linalg.svd(J[data_rows] * relative[None, :], full_matrices=True)
        own, directions = np.concatenate([own, np.zeros(p - len(own))]), full[2]
    return Precision(covariance, own, directions.T)


def robust_covariance(
    J: np.ndarray, r: np.ndarray, rows: Rows, covariance: np.ndarray
) -> np.ndarray:
    """The covariance for correlated residuals (Newey and West).

    A model error counts once, not in every sample.
    """
    p = J.shape[1]
    middle = np.zeros((p, p))
    loose = rows.series < 0
    middle += J[loose].T @ J[loose]
    for run in np.unique(rows.series[~loose]):
        own = rows.series == run
        n = int(rows.sample[own].max()) + 1
        score = np.zeros((n, p))
        np.add.at(
            score, rows.sample[own], J[own] * np.where(rows.channel[own] >= 0, r[own], 0.0)[:, None]
        )
        lags = int(np.sqrt(n))
        middle += score.T @ score
        for lag in range(1, lags + 1):
            cross = (1 - lag / (lags + 1)) * (score[lag:].T @ score[:-lag])
            middle += cross + cross.T
    return covariance @ middle @ covariance


class Whiteness(NamedTuple):
    """Autocorrelation of a residual series.

    ``outside``: share of lags outside the 95 % band (0.05 for white noise); ``p_value``: of the
    Ljung-Box test.
    """

    outside: float
    p_value: float
    autocorrelation: np.ndarray

    @property
    def white(self) -> bool:
        return self.p_value > 0.01


def whiteness(error: np.ndarray) -> Whiteness:
    e = error[np.isfinite(error)]
    n = len(e)
    lags = max(1, min(40, n // 5))
    if n < 8 or np.ptp(e) == 0:
        return Whiteness(0.0, 1.0, np.zeros(lags))
    e = e - e.mean()
    power = float(e @ e)
    a = np.array([e[k:] @ e[:-k] for k in range(1, lags + 1)]) / power
    q = n * (n + 2) * np.sum(a**2 / (n - np.arange(1, lags + 1)))
    return Whiteness(float(np.mean(np.abs(a) > 1.96 / np.sqrt(n))), float(chdtrc(lags, q)), a)


def fit_percent(measured: np.ndarray, predicted: np.ndarray) -> float:
    """100 (1 - |error| / |measured - mean|) [%]: 100 is perfect, 0 is no better than the mean."""
    good = np.isfinite(measured)
    y, e = measured[good], (predicted - measured)[good]
    spread = np.linalg.norm(y - y.mean())
    return float(100 * (1 - np.linalg.norm(e) / spread)) if spread > 0 else float("nan")
