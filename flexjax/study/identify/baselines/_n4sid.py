"""Subspace identification of a state-space model with the package nfoursid (PO-MOESP)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flexjax.study.identify.baselines._arx import Pair, free_run_fit

ORDERS = range(2, 9)
ROWS = 15


class StateSpace(NamedTuple):
    """A discrete state-space model x_(k+1) = A x + B u, y = C x + D u, run from rest."""

    order: int
    matrices: Any  # of nfoursid: a, b, c, d

    @property
    def size(self) -> int:
        """Number of entries of the four matrices."""
        m = self.matrices
        return sum(np.size(x) for x in (m.a, m.b, m.c, m.d))

    def run(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Free run from rest on inputs (T, m); y sets the length."""
        m = self.matrices
        x, out = np.zeros(self.order), np.full(len(y), np.nan)
        for k in range(len(y)):
            out[k] = (m.c @ x + m.d @ u[k])[0]
            x = m.a @ x + m.b @ u[k]
            if not np.all(np.abs(x) < 1e9):
                break
        return out


def installed() -> bool:
    from importlib.util import find_spec

    return find_spec("nfoursid") is not None


def fit_n4sid(
    records: Sequence[Pair],
    orders: Sequence[int] = ORDERS,
    rows: int = ROWS,
    score: Callable[[StateSpace], float] | None = None,
) -> StateSpace:
    """The model with the highest ``score`` (default: mean fit of its free runs from rest).

    The package takes one recording at a time, so order and recording are chosen together.
    ``rows``: block rows of its data matrices.
    """
    import pandas
    from nfoursid.nfoursid import NFourSID  # pyright: ignore[reportMissingImports]

    def mean_fit(model: StateSpace) -> float:
        return float(np.mean([free_run_fit(model.run(u, y), y) for u, y in records]))

    found = []
    for u, y in records:
        names = [f"u{i}" for i in range(u.shape[1])]
        table = pandas.DataFrame({**dict(zip(names, u.T, strict=True)), "y": y})
        search = NFourSID(table, ["y"], input_columns=names, num_block_rows=rows)
        search.subspace_identification()
        for order in orders:
            model = StateSpace(order, search.system_identification(rank=order)[0])
            found.append(((score or mean_fit)(model), model))
    return max(found, key=lambda pair: pair[0])[1]
