"""Autoregressions of the noise of every sensor, estimated from the residuals of a fit."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array

from flexjax.study.identify.fit._colour import colour_of, reflections_of
from flexjax.study.identify.fit._problem import Measured, Problem
from flexjax.study.identify.records._data import Data
from flexjax.study.identify.records._experiment import Experiment

CLOSE = 0.01  # change of a coefficient that no longer changes the estimates
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


def coloured(problem: Problem, measured: Measured, runs: Sequence[Array], ar: int) -> Measured:
    """The data with the autoregressions (order ``ar``) of the residuals of ``runs``; zero without
    runs, so that the first fit compiles the program of all."""
    series: dict[str, list[np.ndarray]] = {s: [] for g in problem.groups for s in g.sensors}
    for k, run in enumerate(runs):
        weight = np.asarray(measured.weights[k])
        error = (np.asarray(run) - np.asarray(measured.values[k])) * weight
        error = np.where((weight > 0) & np.isfinite(error), error, np.nan)
        for column, s in enumerate(problem.groups[k].sensors):
            series[s] += list(error[..., column])
    found = {s: reflections_of(x, ar) for s, x in series.items()}
    dtype = problem.parameters.start.dtype
    colour = tuple(colour_of([found[s] for s in g.sensors], dtype) for g in problem.groups)
    return dataclasses.replace(measured, colour=colour)


def same_colour(one: Measured, other: Measured) -> bool:
    """Whether the coefficients of both differ by little."""
    pairs = zip(one.colour or (), other.colour or (), strict=True)
    return all(np.allclose(a.coefficients, b.coefficients, rtol=0, atol=CLOSE) for a, b in pairs)


def noise_model(problem: Problem, measured: Measured) -> dict[str, np.ndarray]:
    """Coefficients of the noise of every sensor; empty for white noise."""
    found = {}
    for group, colour in zip(problem.groups, measured.colour or (), strict=bool(measured.colour)):
        for s, table in zip(group.sensors, np.asarray(colour.coefficients), strict=True):
            found[s] = table[-1]
    return found
