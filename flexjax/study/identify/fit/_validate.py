"""Predict recordings that were not fitted, from starts that their first samples show."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from flexjax.study.identify.fit._problem import (
    Measured,
    Problem,
    evaluate,
    measure_data,
)
from flexjax.study.identify.fit._unknown_start import of_recordings
from flexjax.study.identify.records._data import Data
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.records._unknown_start import UnknownStart

STEPS = 4  # of Gauss-Newton; without friction the readings are nearly linear in the start


def predict_validation(
    checked: Problem, checks: Sequence[Data], problem: Problem, measured: Measured, z: np.ndarray
) -> tuple[Any, Any]:
    """Predictions of ``checks`` at the parameters ``z`` that fit ``problem`` to ``measured``."""
    own = of_recordings(checked.parameters)
    there = np.zeros(checked.parameters.size)
    there[~own] = np.asarray(z)[~of_recordings(problem.parameters)]
    if not own.any():
        data = measure_data(checked, checks)[0]
        data = eqx.tree_at(lambda m: m.colour, data, measured.colour, is_leaf=lambda x: x is None)
        if _form((checked, data)) == _form((problem, measured)):
            return evaluate(there, checked, data).predicted  # with the program of the fit
        return checked.predict(jnp.asarray(there))
    first = _first_samples(checked, checks)
    for _ in range(STEPS):
        r, jacobian, _ = evaluate(there, checked, first)
        there[own] -= np.linalg.lstsq(jacobian[:, own], r, rcond=None)[0]
    return evaluate(there, checked, first).predicted


def _form(of: Any) -> tuple:
    """What a compiled program depends on: structure, shapes and dtypes."""
    leaves, structure = jax.tree.flatten(of)
    return structure, [(x.shape, x.dtype) for x in leaves]


def _first_samples(checked: Problem, checks: Sequence[Data]) -> Measured:
    """The data with weights on the first samples of recordings with an unknown start only."""
    measured, _ = measure_data(checked, checks)
    experiments = [d for d in checks if isinstance(d, Experiment)]

    def count(k: int) -> int:
        start = experiments[k].start
        return start.samples if isinstance(start, UnknownStart) else 0

    weights = []
    for group, w in zip(checked.groups, measured.weights, strict=True):
        counts = np.array([count(k) for k in group.members])
        used = np.arange(w.shape[1])[None, :, None] < counts[:, None, None]
        weights.append(jnp.where(used, w, 0.0))
    none = tuple(jnp.zeros_like(w) for w in measured.other_weights)
    where = lambda m: (m.weights, m.other_weights)
    return eqx.tree_at(where, measured, (tuple(weights), none))
