"""Whether limits contradict each other where a search ended, to first order."""

import numpy as np
from jax.typing import ArrayLike
from scipy.optimize import linprog

LEFT = 0.01  # share of the violation that has to remain after any step


def contradict(
    margins: ArrayLike,
    margin_slopes: ArrayLike,
    missing: ArrayLike,
    missing_slopes: ArrayLike,
    steps: tuple[np.ndarray, np.ndarray] | None = None,
) -> bool:
    """Whether no step meets all linearised limits.

    A linear program finds the step with the least violation; ``steps`` bounds it. For limits that
    are linear in the free parameters the answer is exact.
    """
    margins, margin_slopes = np.asarray(margins), np.asarray(margin_slopes)
    missing, missing_slopes = np.asarray(missing), np.asarray(missing_slopes)
    worst = max(float(np.max(-margins, initial=0.0)), float(np.max(np.abs(missing), initial=0.0)))
    finite = np.isfinite(margins) & np.all(np.isfinite(margin_slopes), axis=1)
    if worst <= 0 or not np.all(np.isfinite(missing_slopes)):
        return False
    rows = [-margin_slopes[finite], missing_slopes, -missing_slopes]
    known = [margins[finite], -missing, missing]
    A = np.vstack(rows)
    n = A.shape[1]
    low, high = (np.full(n, -np.inf), np.full(n, np.inf)) if steps is None else steps
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([A, -np.ones((len(A), 1))]),
        b_ub=np.concatenate(known),
        bounds=[*zip(low, high, strict=True), (0.0, None)],
    )
    return bool(found.success) and float(found.x[-1]) > LEFT * worst
