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
from flexjax.study.free import Free, Parameters, check_range, no_parameters, parameters
from flexjax.study.sweep._choices import Choice, is_choice, read_choice

MOST_FAULTS = 20  # of a design that are reported


@dataclasses.dataclass(frozen=True, eq=False)
class Design(Mapping):
    """Values (N,) of every path, for N runs; see :func:`grid`, :func:`latin_hypercube`,
    :func:`sobol`, :func:`saltelli`.

    ``axes``: the values along each axis of a grid, in order; empty for other designs.
    ``choices``: formulation, its options, solver, robot, where they vary. ``blocks``: bounds of
    every path, if the runs are those of :func:`saltelli`.
    """

    columns: dict[str, np.ndarray]
    axes: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    choices: dict[str, Choice] = dataclasses.field(default_factory=dict)
    blocks: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    def __getitem__(self, path: str) -> np.ndarray:
        return self.choices[path].column if path in self.choices else self.columns[path]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.columns, *self.choices])

    def __len__(self) -> int:
        return len(self.columns) + len(self.choices)

    @property
    def runs(self) -> int:
        return len(self[next(iter(self))])

    @property
    def values(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """(N, k), one column for each path of a parameter."""
        return np.stack([*self.columns.values(), np.zeros(self.runs)], axis=1)[:, :-1]


def grid(axes: Mapping[str, NumbersLike]) -> Design:
    """All combinations of the values of several parameters.

    Arguments:
        axes: values by path; the last path varies fastest. "formulation", "formulation.elements"
            (or another option), "solver" and "robot" are static choices: lists of formulations,
            whole numbers, solvers, robots, or of their names.

    Returns:
        A design.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.grid({"links.*.material.E": [6e10, 7e10], "payloads.tool.mass": [0.1, 0.2, 0.3]}).runs
    6
    """
    _refuse_empty(axes)
    read = {p: read_choice(p, v) if is_choice(p) else _column(p, v) for p, v in axes.items()}
    given = {p: np.array(x.labels) if isinstance(x, Choice) else x for p, x in read.items()}
    mesh = np.meshgrid(*(np.arange(len(x)) for x in given.values()), indexing="ij")
    columns: dict[str, np.ndarray] = {}
    choices: dict[str, Choice] = {}
    for (path, x), at in zip(read.items(), (m.reshape(-1) for m in mesh), strict=True):
        if isinstance(x, Choice):
            choices[path] = dataclasses.replace(x, codes=at)
        else:
            columns[path] = x[at]
    return Design(columns, given, choices)


def latin_hypercube(bounds: Mapping[str, tuple[float, float]], n: int, *, seed: int = 0) -> Design:
    """n points that fill a box evenly in every single parameter.

    Arguments:
        bounds: (lower, upper) by path.
        n: number of runs.
        seed: seed of the random points.

    Returns:
        A design.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

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

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.sobol({"payloads.tool.mass": (0.1, 0.3)}, 8).runs
    8
    """
    return _sampled("sobol", bounds, n, lambda k: qmc.Sobol(k, rng=seed))


def saltelli(bounds: Mapping[str, tuple[float, float]], n: int, *, seed: int = 0) -> Design:
    """Points from which :func:`sobol_indices` are computed: n (k + 2) runs for k parameters.

    Arguments:
        bounds: (lower, upper) by path; the parameters are uniform in between.
        n: number of base points, a power of two.
        seed: seed of the scrambling.

    Returns:
        A design.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> fx.saltelli({"payloads.tool.mass": (0.1, 0.3), "links.*.material.E": (6e10, 8e10)}, 8).runs
    32
    """
    low, high = _read_box("saltelli", bounds, n)
    if int(n) & (int(n) - 1):
        raise ValueError(f"saltelli: n = {n}; expected a power of two, e.g. 1024.")
    sample = import_salib().sample.sobol.sample
    points = sample(
        {"num_vars": len(bounds), "names": list(bounds), "bounds": [[0.0, 1.0]] * len(bounds)},
        int(n),
        calc_second_order=False,
        seed=seed,
    )
    points = low + (high - low) * points
    blocks = dict(zip(bounds, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    return Design(dict(zip(bounds, points.T, strict=True)), blocks=blocks)


def import_salib() -> Any:
    """SALib with its Sobol method, or an error that says how to get it."""
    try:
        import SALib
        import SALib.analyze.sobol
        import SALib.sample.sobol
    except ImportError:
        raise ImportError("Sobol indices: need SALib; pip install 'flexjax[sensitivity]'") from None
    return SALib


def _sampled(name: str, bounds: Mapping[str, tuple[float, float]], n: int, sampler) -> Design:
    low, high = _read_box(name, bounds, n)
    points = low + (high - low) * sampler(len(bounds)).random(int(n))
    return Design(dict(zip(bounds, points.T, strict=True)))


def _read_box(
    name: str, bounds: Mapping[str, tuple[float, float]], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds, checked together with the number of runs."""
    _refuse_empty(bounds)
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise ValueError(f"{name}: n = {n}; expected a whole number of runs of at least 1.")
    for path, pair in bounds.items():
        if np.shape(pair) != (2,) or not np.all(np.isfinite(pair)) or not pair[0] < pair[1]:
            raise ValueError(f"{name}: {path!r} = {pair!r}; expected (lower, upper).")
    low, high = np.array([*bounds.values()], float).T
    return low, high


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
    given = {str(path): values for path, values in design.items()}
    columns = {path: _column(path, x) for path, x in given.items() if not is_choice(path)}
    choices = {path: read_choice(path, x) for path, x in given.items() if is_choice(path)}
    lengths = {path: len(column) for path, column in columns.items()}
    lengths |= {path: len(choice.codes) for path, choice in choices.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{path!r}: {n}" for path, n in lengths.items())
        raise ValueError(
            f"design: different numbers of values ({listed}); expected one value of each for every "
            "run. fx.grid(...) makes all combinations."
        )
    return Design(columns, choices=choices)


def check_design(
    design: Design, robot: Robot, drive: Drive, start: Start, rows: np.ndarray | None = None
) -> Parameters:
    """Where the values go; every fault of the design in one error, with its row.

    ``rows``: the runs of this robot, by default all.
    """
    rows = np.arange(design.runs) if rows is None else rows
    faults: list[str] = []
    found: list[Parameters] = []
    for path, column in design.columns.items():
        try:
            item = Free(path, tie="value", transform="none")
            found.append(parameters([item], robot, [drive], [start], ["the sweep"], {}))
        except ValueError as error:
            faults.append(str(error).removeprefix("free "))
            continue
        for row in rows[~np.isfinite(column[rows])]:
            faults.append(f"{path!r}, row {row}: {column[row]}; expected a finite number.")
        faults += check_range(path, column, robot, rows)
    if not faults:
        if not design.columns:
            return no_parameters(robot)
        free = [Free(path, tie="value", transform="none") for path in design.columns]
        return parameters(free, robot, [drive], [start], ["the sweep"], {})
    shown = list(dict.fromkeys(faults))[:MOST_FAULTS]
    more = f"\n  - and {len(faults) - len(shown)} more" if len(faults) > len(shown) else ""
    raise ValueError("design:\n" + "\n".join(f"  - {fault}" for fault in shown) + more)
