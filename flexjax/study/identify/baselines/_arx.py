"""ARX: each output as a linear combination of its past and of the inputs, by least squares."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flexjax.study.identify.uncertainty._statistics import fit_percent

Pair = tuple[np.ndarray, np.ndarray]  # inputs (T, m), one output (T,)
ORDERS = range(2, 13)


class Arx(NamedTuple):
    """y_k = c + sum_i a_i y_(k-i) + sum_j b_j u_(k-j), with i from 1 and j from 0 to the order."""

    order: int
    theta: np.ndarray

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self.theta)

    def run(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Free run: after the first ``order`` samples of y it uses only the inputs."""
        n, out = self.order, np.array(y, float)
        past, inputs = self.theta[1 : n + 1], self.theta[n + 1 :].reshape(n + 1, -1)
        for k in range(n, len(y)):
            ahead = u[k - n : k + 1][::-1]
            out[k] = self.theta[0] + past @ out[k - n : k][::-1] + np.sum(inputs * ahead)
            if not np.isfinite(out[k]) or abs(out[k]) > 1e6:
                out[k:] = np.nan
                break
        return out


def _regressors(u: np.ndarray, y: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    n = len(y)
    columns = [np.ones((n - order, 1))]
    columns += [y[order - k : n - k, None] for k in range(1, order + 1)]
    columns += [u[order - k : n - k] for k in range(order + 1)]
    return np.concatenate(columns, axis=1), y[order:]


def fit_arx(records: Sequence[Pair], orders: Sequence[int] = ORDERS) -> Arx:
    """The order, and its coefficients, whose free run fits the recordings best.

    Rows with gaps are left out of the least squares.
    """
    found = []
    for order in orders:
        parts = [_regressors(u, y, order) for u, y in records]
        a, b = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        good = np.isfinite(a).all(axis=1) & np.isfinite(b)
        if good.sum() <= a.shape[1]:
            continue
        model = Arx(order, np.linalg.lstsq(a[good], b[good], rcond=None)[0])
        found.append((np.mean([free_run_fit(model.run(u, y), y) for u, y in records]), model))
    if not found:
        raise ValueError(
            f"baselines: {sum(len(y) for _, y in records)} samples; expected more for an ARX model."
        )
    return max(found, key=lambda pair: pair[0])[1]


def free_run_fit(predicted: np.ndarray, measured: np.ndarray) -> float:
    """NRMSE fit [%]; a run that diverged is as bad as a very wrong one."""
    return fit_percent(measured, np.nan_to_num(predicted, nan=1e6))
