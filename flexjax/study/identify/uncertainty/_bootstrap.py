"""Parametric bootstrap: repeat the identification on simulated recordings."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import stdtrit

from flexjax._compile import filter_jit
from flexjax.study.identify.fit._batch import solve_batch
from flexjax.study.identify.fit._problem import Measured, Problem
from flexjax.study.identify.uncertainty._statistics import (
    noise_factors,
    precision,
    row_scale,
    rows_of,
)


class Bootstrap(NamedTuple):
    """``values``: estimates (n, p); ``intervals``: (n, p, 2); ``coverage``: share of intervals
    that contain the true parameter (p,)."""

    truth: np.ndarray
    values: np.ndarray
    intervals: np.ndarray
    coverage: np.ndarray


@filter_jit
def readings_at(problem: Problem, zs: Float[Array, "n p"]):
    """Readings of every group for each row of ``zs``."""
    return jax.lax.map(lambda z: problem.predict(z)[0], zs)


def repeat(
    problem: Problem,
    measured: Measured,
    z: np.ndarray | Array,
    noise: dict[str, float],
    *,
    n: int,
    seed: int = 0,
    level: float = 0.95,
    max_steps: int = 30,
) -> Bootstrap:
    """Fit recordings simulated at ``z`` (p,) or (n, p) with normal noise, each from z = 0."""
    if not problem.groups or problem.others or measured.lines is not None:
        raise ValueError("bootstrap: expected time series compared in time only.")
    truth = np.broadcast_to(np.asarray(z), (n, problem.parameters.size))
    clean = readings_at(problem, jnp.asarray(truth))
    failed = [k for k in range(n) if not all(bool(jnp.all(jnp.isfinite(y[k]))) for y in clean)]
    if failed:
        # A recording that ends early contains no data, and its search would not move.
        raise ValueError(
            f"bootstrap: {len(failed)} of {n} runs that make the recordings failed (first: "
            f"{failed[0]}); take a smaller dt, or a gentler drive."
        )
    values, weights = [], []
    for k, (group, y) in enumerate(zip(problem.groups, clean, strict=True)):
        sd = np.array([noise[s] for s in group.sensors])
        draw = jax.random.normal(jax.random.fold_in(jax.random.key(seed), k), y.shape, y.dtype)
        if measured.colour is not None:
            draw = measured.colour[k].coloured(draw)
        values.append(y + draw * sd[None, None, None, :])
        # Sensors are weighted by their noise or, without noise, by their readings.
        size = np.where(sd > 0, sd, 0.01 * np.asarray(jnp.std(y, axis=(0, 1, 2))))
        weights.append((measured.weights[k] > 0) / size[None, None, :])
    data = eqx.tree_at(lambda m: (m.values, m.weights), measured, (tuple(values), tuple(weights)))
    return fitted(problem, data, truth, level=level, max_steps=max_steps)


def fitted(
    problem: Problem, data: Measured, truth: np.ndarray, *, level: float, max_steps: int = 30
) -> Bootstrap:
    """Fit many recordings at once, each from z = 0; ``data.values`` have a leading axis.

    ``truth``: z (n, p) of every recording.
    """
    z0 = jnp.zeros_like(jnp.asarray(truth))
    fits = solve_batch(problem, data, z0, max_steps, over_data=True)
    zs, r, J = (np.asarray(x) for x in fits)
    rows = rows_of(problem, data)
    half = np.empty_like(zs)
    quantile = stdtrit(r.shape[1] - 2 * zs.shape[1], 0.5 + level / 2)
    one = np.ones(problem.parameters.size)
    for i in range(len(zs)):
        factors = noise_factors(r[i], rows, zs.shape[1])
        scale = row_scale(rows, factors)
        covariance = precision(J[i] * scale[:, None], rows.channel >= 0, one).covariance
        half[i] = quantile * np.sqrt(np.diag(covariance))
    to_values = jax.vmap(problem.parameters.values)
    values, low, high, true = (
        np.asarray(to_values(jnp.asarray(x))) for x in (zs, zs - half, zs + half, truth)
    )
    coverage = np.mean((low <= true) & (true <= high), axis=0)
    return Bootstrap(true, values, np.stack([low, high], axis=-1), coverage)
