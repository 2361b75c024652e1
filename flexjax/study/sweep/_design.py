"""Designs of sweeps: which values of which parameters are simulated."""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import qmc

from flexjax._types import NumbersLike
from flexjax.drive import Drive
from flexjax.formulation import Start
from flexjax.robot import Robot
from flexjax.study.free import Free, Parameters, check_range, parameters

MOST_FAULTS = 20  # of a design that are reported


@dataclasses.dataclass(frozen=True, eq=False)
class Design(Mapping):
    """Values (N,) of every path, for N runs; see :func:`grid`, :func:`latin_hypercube`,
    :func:`sobol`.

    ``axes``: the values along each axis of a grid, in order; empty for other designs.
    """

    columns: dict[str, np.ndarray]
    axes: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __getitem__(self, path: str) -> np.ndarray:
        return self.columns[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def runs(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def values(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """(N, k), one column for each path."""
        return np.stack(list(self.columns.values()), axis=1)


def grid(axes: Mapping[str, NumbersLike]) -> Design:
    """All combinations of the values of several parameters.

    Arguments:
        axes: values by path; the last path varies fastest.

    Returns:
        A design.

    >>> import flexjax as fx
    >>> fx.grid({"links.*.material.E": [6e10, 7e10], "payloads.tool.mass": [0.1, 0.2, 0.3]}).runs
    6
    """
    given = {path: _column(path, values) for path, values in axes.items()}
    _refuse_empty(given)
    mesh = np.meshgrid(*given.values(), indexing="ij")
    return Design(dict(zip(given, (m.reshape(-1) for m in mesh), strict=True)), given)


def latin_hypercube(bounds: Mapping[str, tuple[float, float]], n: int, *, seed: int = 0) -> Design:
    """n points that fill a box evenly in every single parameter.

    Arguments:
        bounds: (lower, upper) by path.
        n: number of runs.
        seed: seed of the random points.

    Returns:
        A design.

    >>> import flexjax as fx
    >>> fx.latin_hypercube({"payloads.tool.mass": (0.1, 0.3)}, 8).runs
    8
    """
    return _sampled("latin_hypercube", bounds, n, lambda k: qmc.LatinHypercube(k, rng=seed))


def sobol(bounds: Mapping[str, tuple[float, float]], n: int, *, seed: int = 0) -> Design:
    """n points of a scrambled Sobol sequence in a box; best with n a power of two.

    Arguments:
        bounds: (lower, upper) by path.
        n: number of runs.
        seed: seed of the scrambling.

    Returns:
        A design.

    >>> import flexjax as fx
    >>> fx.sobol({"payloads.tool.mass": (0.1, 0.3)}, 8).runs
    8
    """
    return _sampled("sobol", bounds, n, lambda k: qmc.Sobol(k, rng=seed))


def _sampled(name: str, bounds: Mapping[str, tuple[float, float]], n: int, sampler) -> Design:
    _refuse_empty(bounds)
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise ValueError(f"{name}: n = {n}; expected a whole number of runs of at least 1.")
    for path, pair in bounds.items():
        if np.shape(pair) != (2,) or not np.all(np.isfinite(pair)) or not pair[0] < pair[1]:
            raise ValueError(f"{name}: {path!r} = {pair!r}; expected (lower, upper).")
    low, high = np.array([*bounds.values()], float).T
    points = low + (high - low) * sampler(len(bounds)).random(int(n))
    return Design(dict(zip(bounds, points.T, strict=True)))


def _refuse_empty(given: Mapping) -> None:
    if not given:
        raise ValueError(
            "design: no parameters; expected values by path, e.g. {'payloads.tool.mass': "
            "[0.1, 0.2]}. fx.paths(robot) lists the parameters of a robot."
        )


def _column(path: str, values: Any) -> np.ndarray:
    try:
        column = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"design {path!r}: {values!r}; expected numbers.") from None
    if column.ndim != 1 or column.size == 0:
        raise ValueError(
            f"design {path!r}: shape {column.shape}; expected a list of at least one value."
        )
    return column


def read_design(design: Any) -> Design:
    """A design from a dict of columns, a table of pandas or xarray, or a CSV file."""
    if isinstance(design, Design):
        return design
    if isinstance(design, str | os.PathLike):
        import pandas

        design = pandas.read_csv(design)
    if hasattr(design, "data_vars"):  # an xarray Dataset
        design = {str(name): design[name].values for name in design.data_vars}
    elif hasattr(design, "columns") and not isinstance(design, Mapping):  # of pandas
        design = {str(name): design[name].to_numpy() for name in design.columns}
    if not isinstance(design, Mapping):
        raise ValueError(
            f"design: {type(design).__name__}; expected values by path, fx.grid(...), "
            "fx.latin_hypercube(...), a table, or the name of a CSV file."
        )
    _refuse_empty(design)
    columns = {str(path): _column(str(path), values) for path, values in design.items()}
    lengths = {path: len(column) for path, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{path!r}: {n}" for path, n in lengths.items())
        raise ValueError(
            f"design: different numbers of values ({listed}); expected one value of each for every "
            "run. fx.grid(...) makes all combinations."
        )
    return Design(columns)


def check_design(design: Design, robot: Robot, drive: Drive, start: Start) -> Parameters:
    """Where the values go; every fault of the design in one error, with its row."""
    faults: list[str] = []
    found: list[Parameters] = []
    for path, column in design.columns.items():
        try:
            item = Free(path, tie="value", transform="none")
            found.append(parameters([item], robot, [drive], [start], ["the sweep"], {}))
        except ValueError as error:
            faults.append(str(error).removeprefix("free "))
            continue
        for row in np.flatnonzero(~np.isfinite(column)):
            faults.append(f"{path!r}, row {row}: {column[row]}; expected a finite number.")
        faults += check_range(path, column, robot)
    if not faults:
        free = [Free(path, tie="value", transform="none") for path in design.columns]
        return parameters(free, robot, [drive], [start], ["the sweep"], {})
    shown = faults[:MOST_FAULTS]
    more = f"\n  - and {len(faults) - len(shown)} more" if len(faults) > len(shown) else ""
    raise ValueError("design:\n" + "\n".join(f"  - {fault}" for fault in shown) + more)
