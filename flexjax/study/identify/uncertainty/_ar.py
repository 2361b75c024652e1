"""Autoregressions of the noise of every sensor, estimated from the residuals of a fit."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from flexjax.study.identify.fit._problem import Measured, Problem, evaluate
from flexjax.study.identify.noise._colour import colour_of, reflections_of
from flexjax.study.identify.noise._reml import Linear, NoiseModel, restricted_likelihood
from flexjax.study.identify.records._data import Data
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.uncertainty._statistics import Rows, noise_factors, rows_of

CLOSE = 0.01  # change of a coefficient that no longer changes the estimates
EQUAL = 0.02  # relative change of a weight that does not
EVEN = 1e-3  # largest deviation of a sample's time, in steps


def refuse_ar(ar: int, data: Sequence[Data], band: tuple[float, float] | None, method: Any) -> None:
    """Refuse data and options that an autoregression of the noise does not fit."""
    if not isinstance(ar, int | np.integer) or ar < 0:
        raise ValueError(f"ar: {ar!r}; expected a whole number, 0 (white noise) or more.")
    if band is not None:
        raise ValueError(f"ar: {ar} with a band, which compares spectra; leave one of them out.")
    if method != "lm":
        raise ValueError(f"ar: {ar} with method={method!r}; expected 'lm'.")
    steps: dict[str, tuple[str, float]] = {}
    for d in data:
        if not isinstance(d, Experiment):
            continue
        step = np.diff(d.ts)
        mean = float(step.mean())
        row = int(np.argmax(np.abs(step - mean)))
        if abs(step[row] - mean) > EVEN * mean:
            raise ValueError(
                f"ar: {d.name} has a step of {step[row]:g} s at row {row + 1} beside a mean of "
                f"{mean:g} s; expected equal steps. Read it with resample, or leave ar out."
            )
        for s in d.sensors:
            first, other = steps.setdefault(s, (d.name, mean))
            if abs(mean - other) > EVEN * other:
                raise ValueError(
                    f"ar: {s} has steps of {other:g} s in {first} and {mean:g} s in {d.name}; "
                    "expected one step per sensor. Read them with resample, or leave ar out."
                )


def white(problem: Problem, measured: Measured, ar: int) -> Measured:
    """The data with autoregressions that are zero: the program of all rounds is compiled once."""
    dtype = problem.parameters.start.dtype
    zero = [jnp.zeros((len(g.sensors), ar), dtype) for g in problem.groups]
    return dataclasses.replace(measured, colour=tuple(colour_of(x) for x in zero))


def noise_of(
    problem: Problem, measured: Measured, z: np.ndarray, ar: int, known: dict[str, bool]
) -> NoiseModel:
    """The noise of every sensor at the estimates ``z``, in units of the weights."""
    rows = rows_of(problem, measured)
    plain = evaluate(z, problem, white(problem, measured, ar))
    series: dict[str, list[np.ndarray]] = {s: [] for s in rows.names}
    at = 0
    for group, weight in zip(problem.groups, measured.weights, strict=True):
        size = int(np.prod(weight.shape))
        error = plain.residual[at : at + size].reshape(weight.shape)
        at += size
        error = np.where(np.asarray(weight) > 0, error, np.nan)
        for column, s in enumerate(group.sensors):
            series[s] += list(error[..., column])
    first = np.stack([reflections_of(series[s], ar) for s in rows.names])
    factors = noise_factors(plain.residual, rows, problem.parameters.size)
    sizes = [1.0 if known[s] else max(factors[s], 1e-7) for s in rows.names]
    linear = linear_model(plain.residual, plain.jacobian, problem, measured, rows)
    fixed = np.array([known[s] for s in rows.names])
    return restricted_likelihood(linear, first, np.array(sizes), fixed)


def linear_model(
    residual: np.ndarray, jacobian: np.ndarray, problem: Problem, measured: Measured, rows: Rows
) -> Linear:
    """The linear model of a fit; ``residual`` and ``jacobian`` are not whitened."""
    both = np.concatenate([jacobian, residual[:, None]], axis=1)
    both = np.where((rows.channel == -2)[:, None], 0.0, both)
    parts, at = [], 0
    for w in measured.weights:
        size = int(np.prod(w.shape))
        parts.append(jnp.asarray(both[at : at + size].reshape(*w.shape, -1)))
        at += size
    rest, p = both[at:], problem.parameters.size
    series = tuple(tuple(rows.names.index(s) for s in g.sensors) for g in problem.groups)
    channel = tuple(rows.channel[at : len(rows.channel) - p].tolist())
    return Linear(
        tuple(parts),
        measured.weights,
        jnp.asarray(rest[: len(rest) - p]),
        jnp.asarray(rest[len(rest) - p :]),
        channel,
        series,
    )


def with_noise(problem: Problem, measured: Measured, noise: NoiseModel) -> Measured:
    """The data weighted by the sizes of the noise, with its autoregressions."""
    names, dtype = rows_of(problem, measured).names, problem.parameters.start.dtype
    index = [np.array([names.index(s) for s in g.sensors]) for g in problem.groups]
    weights = [w / noise.sizes[None, None, i] for w, i in zip(measured.weights, index, strict=True)]
    others = [
        w / noise.sizes[names.index(d.name)]
        for w, d in zip(measured.other_weights, problem.others, strict=True)
    ]
    colour = [colour_of(jnp.asarray(noise.reflections[i], dtype)) for i in index]
    return dataclasses.replace(
        measured,
        weights=tuple(jnp.asarray(w, dtype) for w in weights),
        other_weights=tuple(jnp.asarray(w, dtype) for w in others),
        colour=tuple(colour),
    )


def same_noise(one: Measured, other: Measured) -> bool:
    """Whether weights and coefficients of both differ by little."""
    pairs = zip(one.colour or (), other.colour or (), strict=True)
    weights = zip(one.weights + one.other_weights, other.weights + other.other_weights, strict=True)
    return all(np.allclose(a, b, rtol=EQUAL, atol=0) for a, b in weights) and all(
        np.allclose(a.coefficients, b.coefficients, rtol=0, atol=CLOSE) for a, b in pairs
    )


def noise_model(problem: Problem, measured: Measured) -> dict[str, np.ndarray]:
    """Coefficients of the noise of every sensor; empty for white noise."""
    found = {}
    for group, colour in zip(problem.groups, measured.colour or (), strict=bool(measured.colour)):
        for s, table in zip(group.sensors, np.asarray(colour.coefficients), strict=True):
            found[s] = table[-1]
    return found
