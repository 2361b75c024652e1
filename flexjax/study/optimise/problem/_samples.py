"""Samples of uncertain parameters, over which a move has to be good."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import numpy as np
from scipy.stats import qmc

from flexjax.robot import Robot
from flexjax.study.free import Free, Parameters, parameters

Spread = float | tuple[float, float]
LARGEST_GRID = 3  # parameters up to which every corner of the box is a sample


class Samples(eqx.Module):
    """Values (S, k) of k parameters of the robot; the first row is the nominal robot's."""

    parameters: Parameters | None
    values: np.ndarray

    @property
    def count(self) -> int:
        return self.values.shape[0]

    def place(self, robot: Robot, row) -> Robot:
        """The robot with one row of the values, which may be traced."""
        return robot if self.parameters is None else self.parameters.place(robot, "robot", row)


def read_samples(robot: Robot, spread: Mapping[str, Spread] | None, count: int | None) -> Samples:
    """The nominal parameters, and samples of the box that ``spread`` describes."""
    if not spread:
        if count not in (None, 1):
            raise ValueError(
                f"samples: {count} without a spread; give spread={{'payloads.tool.mass': 0.1}}, or "
                "leave samples out."
            )
        return Samples(None, np.zeros((1, 0)))
    par = parameters([Free(path) for path in spread], robot, [], [], [], {})
    nominal = np.asarray(par.start, float)
    low, high = np.empty(par.size), np.empty(par.size)
    column = 0
    for path, value in spread.items():
        for _ in range(parameters([Free(path)], robot, [], [], [], {}).size):
            low[column], high[column] = _ends(path, value, nominal[column])
            column += 1
    units = _unit_samples(par.size, count)
    values = nominal + np.where(units < 0, -units * (low - nominal), units * (high - nominal))
    return Samples(par, np.concatenate([nominal[None], values]))


def _ends(path: str, value: Spread, nominal: float) -> tuple[float, float]:
    if isinstance(value, Sequence):
        low, high = (float(x) for x in value)
        if not low <= nominal <= high or low == high:
            raise ValueError(
                f"spread {path!r}: ({low:g}, {high:g}); expected an interval around the robot's "
                f"own value, {nominal:g}."
            )
        return low, high
    if not 0 < value < 1:
        raise ValueError(
            f"spread {path!r}: {value}; expected a share between 0 and 1, e.g. 0.1 for 10 %, or an "
            "interval (low, high)."
        )
    if nominal == 0:
        raise ValueError(
            f"spread {path!r}: a share of {value:g} of zero; give an interval (low, high) in the "
            "unit of the parameter."
        )
    width = abs(nominal) * float(value)
    return nominal - width, nominal + width


def _unit_samples(k: int, count: int | None) -> np.ndarray:
    """Points of [-1, 1]^k beside its centre: evenly on a line, the corners of a small box, or a
    Latin hypercube."""
    if count is not None and count < 3:
        raise ValueError(f"samples: {count}; expected at least 3, the nominal robot included.")
    if k == 1:
        line = np.linspace(-1.0, 1.0, (5 if count is None else count) | 1)
        return line[np.abs(line) > 1e-12][:, None]
    if count is None and k <= LARGEST_GRID:
        return np.stack(np.meshgrid(*[[-1.0, 1.0]] * k, indexing="ij"), -1).reshape(-1, k)
    points = qmc.LatinHypercube(k, rng=0).random((17 if count is None else count) - 1)
    return 2 * points - 1
