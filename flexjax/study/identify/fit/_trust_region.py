"""Levenberg-Marquardt on the host: small matrices in numpy, residuals from one compiled program.

As part of a compiled search the model would be traced and compiled once more for every place in
which the search evaluates it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flexjax.study.identify.fit._problem import Beside, Objective

RADIUS = 0.5  # of the first step, in u
# A step is good where the loss falls by this share of the predicted fall, and rejected below LOW.
HIGH, LOW = 0.7, 0.1
GROW, SHRINK = 3.0, 0.25


class Evaluation(NamedTuple):
    """Equivalent residuals at ``u`` and their Jacobian; what the model gave (`Beside`)."""

    u: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    beside: Beside

    @property
    def loss(self) -> float:
        return 0.5 * float(self.residual @ self.residual)

    @property
    def gain(self) -> float:
        """What a full Gauss-Newton step could still take off the loss."""
        return 0.5 * float(self.residual[:-1] @ self.residual[:-1])


class Step(NamedTuple):
    """The best evaluation so far, where the next one would be, and whether the last was better."""

    best: Evaluation
    ahead: np.ndarray
    better: bool
    done: bool


def trust_region(objective: Objective, rtol: float, atol: float) -> Iterator[Step]:
    """Evaluate ``objective`` from u = 0 on; the caller ends the search.

    The radius of a step controls its damping. Steps are in u, in units of each parameter's own
    size, so no parameter changes by orders of magnitude because the data near the start do not
    depend on it. The cutoffs are less cautious than usual, which saves half of the evaluations.
    """
    best, radius = _evaluated(objective, np.zeros(len(objective.z0))), RADIUS
    better = done = False
    while True:
        stuck = not (np.isfinite(best.loss) and np.all(np.isfinite(best.jacobian)))
        trial = best.u if stuck else best.u + gauss_newton_within(best, radius)
        yield Step(best, trial if better else best.u, better, done or stuck)
        new = _evaluated(objective, trial)
        change = trial - best.u
        linear = best.jacobian @ change + best.residual
        predicted = 0.5 * float(linear @ linear) - best.loss
        fall = new.loss - best.loss
        better = fall <= LOW * predicted  # both are negative; false for NaN
        done = better and _stands_still(best, new, rtol, atol)
        if not better:
            radius *= SHRINK
        elif predicted < 0 and fall < HIGH * predicted:
            radius *= GROW
        best = new if better else best


def _evaluated(objective: Objective, u: np.ndarray) -> Evaluation:
    return Evaluation(u, *objective.evaluate(u))


def _stands_still(old: Evaluation, new: Evaluation, rtol: float, atol: float) -> bool:
    """Whether neither the parameters nor the residuals change by more than the tolerances."""
    pairs = ((old.u, new.u), (old.residual, new.residual))
    return all(np.all(np.abs(b - a) < atol + rtol * np.abs(b)) for a, b in pairs)


def gauss_newton_within(here: Evaluation, radius: float) -> np.ndarray:
    """The Gauss-Newton step, damped to the length ``radius`` where it is longer."""
    size, directions = np.linalg.eigh(here.jacobian.T @ here.jacobian)
    size = np.maximum(size, 1e-14 * size[-1] + 1e-300)
    along = directions.T @ (here.jacobian.T @ here.residual)
    if np.linalg.norm(along / size) <= radius:
        return -directions @ (along / size)
    # Bisect the logarithm of the damping, from none to one that shortens any step enough.
    high = np.log(np.linalg.norm(along) / radius + 1e-300) + 1.0
    low = min(np.log(size[0]) - 30.0, high - 1.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.linalg.norm(along / (size + np.exp(middle))) > radius:
            low = middle
        else:
            high = middle
    return -directions @ (along / (size + np.exp(high)))
