"""The result of a sweep: an xarray Dataset, failed runs, and runs once more."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flexjax._html import block, curves
from flexjax._results import Status
from flexjax._types import NumbersLike
from flexjax.simulate import Trajectory, simulate
from flexjax.simulate.trajectory import PARTS
from flexjax.study.sweep._design import Design
from flexjax.study.sweep._execute import Work, choose_sizes
from flexjax.study.sweep._outputs import Output
from flexjax.study.sweep._store import NOT_RUN

if TYPE_CHECKING:
    import xarray

ENDS = ("t_fail", "where", "status")


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """Result of :func:`flexjax.sweep`; ``print`` shows a summary.

    ``data``: outputs with the design as coordinates, and "status", "t_fail", "where" of every run.
    With a store, outputs are read from it when they are used.
    """

    data: "xarray.Dataset"
    design: Design
    work: Work
    store: str | None
    devices: list

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [x.name for x in self.work.tasks[0].outputs]

    @property
    def failed(self) -> "xarray.Dataset":
        """The failed runs: their design, status, reason, time and place."""
        data = self.data[list(ENDS)].assign_coords(run=np.arange(self.data.sizes["run"]))
        data = data.isel(run=np.flatnonzero(self.data["status"].values != 0)).load()
        joints = [[j.name for j in task.model.robot.joints] for task in self.work.tasks]
        task_of = np.empty(self.work.runs, int)
        task_of[self.work.order] = self.work.task_of
        runs = zip(data["run"].values, data["where"].values, strict=True)
        places = [joints[task_of[run]][where] if where >= 0 else "" for run, where in runs]
        reasons = [_reason(k) for k in data["status"].values]
        return data.assign(reason=("run", reasons), joint=("run", places))

    def reasons(self) -> dict[str, int]:
        """Number of runs by how they ended."""
        kinds, counts = np.unique(self.data["status"].values, return_counts=True)
        return {_reason(k): int(n) for k, n in zip(kinds, counts, strict=True)}

    def trajectory(self, run: int, *, dt: float | None = None) -> Trajectory:
        """One run again, with its whole trajectory.

        Arguments:
            run: number of the run.
            dt: another step [s]; by default that of the sweep.

        Returns:
            The trajectory; SimulationError is raised if it fails.
        """
        place = int(np.flatnonzero(self.work.order == run)[0])
        task = self.work.tasks[self.work.task_of[place]]
        model, drive, start = task.placed(list(self.work.values[place]))
        step: dict[str, Any] = {"substeps": task.substeps} if dt is None else {"dt": dt}
        return simulate(model, drive, np.asarray(task.ts), solver=task.solver, start=start, **step)

    def rerun(
        self,
        where: "str | NumbersLike | Callable[[xarray.Dataset], Any]" = "failed",
        *,
        dt: float | None = None,
    ) -> "Sweep":
        """Some of the runs once more, in memory; the store stays as it is.

        Arguments:
            where: "failed", a mask (N,) or the numbers of the runs, or a function of ``data`` that
                returns one of these.
            dt: another longest step [s].

        Returns:
            A sweep in which these runs are replaced.
        """
        runs = self._selected(where)
        data = self.data.load().copy(deep=True)
        if not len(runs):
            return dataclasses.replace(self, data=data, store=None)
        tasks = self.work.tasks
        if dt is not None:
            if not dt > 0:
                raise ValueError(f"dt: {dt}; expected a positive step in seconds.")
            tasks = [dataclasses.replace(t, substeps=substeps(t.ts, dt)) for t in tasks]
        places = np.flatnonzero(np.isin(self.work.order, runs))
        part = Work(
            tuple(tasks),
            self.work.values[places],
            self.work.order[places],
            self.work.task_of[places],
        )
        chunk = choose_sizes(min(64 * len(self.devices), part.runs), part, self.devices).chunk
        for name, values in part.columns(0, part.runs, chunk, self.devices).items():
            data[name].values[part.order] = values
        return dataclasses.replace(self, data=data, store=None)

    def _selected(self, where: Any) -> np.ndarray:
        count = self.data.sizes["run"]
        if isinstance(where, str):
            if where != "failed":
                raise ValueError(f"where: {where!r}; expected 'failed', a mask or numbers of runs.")
            return np.flatnonzero(self.data["status"].values != 0)
        found = np.asarray(where(self.data) if callable(where) else where)
        if found.dtype == bool and found.shape == (count,):
            return np.flatnonzero(found)
        if found.dtype.kind in "iu" and found.ndim == 1 and np.all((found >= 0) & (found < count)):
            return np.unique(found)
        raise ValueError(
            f"where: {found.dtype} of shape {found.shape}; expected a mask of {count} runs, or "
            f"numbers of runs from 0 to {count - 1}."
        )

    def grid(self) -> "xarray.Dataset":
        """The data of :func:`flexjax.grid` with one dimension for every path."""
        axes = self.design.axes
        if not axes:
            raise ValueError("grid: the design is no grid; make it with fx.grid({...}).")
        import xarray

        shape = tuple(len(x) for x in axes.values())
        out: dict[str, Any] = {}
        for name, x in self.data.data_vars.items():
            values = x.values.reshape(*shape, *x.shape[1:])
            out[str(name)] = ((*axes, *x.dims[1:]), values, x.attrs)
        coords = {k: v for k, v in self.data.coords.items() if "run" not in v.dims}
        return xarray.Dataset(out, {**axes, **coords})

    def __str__(self) -> str:
        reasons = ", ".join(f"{n} {name}" for name, n in self.reasons().items())
        names = ", ".join(map(str, self.data.data_vars))
        return f"{self.data.sizes['run']} runs ({reasons}) of {', '.join(self.design)}: {names}"

    def _repr_html_(self) -> str:
        pictures = []
        numeric = [x for x in self.design if np.asarray(self.design[x]).dtype.kind in "fiu"]
        for name in self.names:
            values = self.data[name]
            if numeric and values.ndim == 1 and values.dtype.kind == "f" and len(pictures) < 2:
                x = np.asarray(self.design[numeric[0]], float)
                order = np.argsort(x, kind="stable")
                found = {"": np.asarray(values)[order]}
                pictures.append(curves(x[order], found, numeric[0], name))
        return block(str(self), *pictures)


def build_data(work: Work, design: Design, columns: dict[str, Any]) -> "xarray.Dataset":
    """The dataset of ``columns``, arrays in memory or of zarr, in the order of the work."""
    import xarray

    task = work.tasks[0]
    known = {x.name: x for x in task.outputs}
    variables: dict[str, Any] = {}
    for name, values in columns.items():
        output = known.get(name.removeprefix("d "))
        dims = ("run", *dimensions(task.outputs, name, values.ndim - 1))
        attributes = {} if output is None else {"units": output.unit, "long_name": output.meaning}
        if isinstance(values, np.ndarray):
            variables[name] = (dims, values, attributes)
        else:
            variables[name] = (dims, lazy(values), attributes)
    data = xarray.Dataset(variables)
    if not np.array_equal(work.order, np.arange(work.runs)):
        data = data.isel(run=np.argsort(work.order))
    for name in ENDS:
        data[name].load()
    units = dict(zip(design.columns, task.parameters.units, strict=True))
    data = data.assign_coords(
        {path: ("run", design[path], {"units": units.get(path, "")}) for path in design}
    )
    return _with_coordinates(data, task)


def lazy(array: Any) -> Any:
    """A zarr array that xarray reads when its values are used."""
    from xarray.backends.zarr import ZarrArrayWrapper
    from xarray.core.indexing import LazilyIndexedArray

    return LazilyIndexedArray(ZarrArrayWrapper(array))


def _with_coordinates(data: "xarray.Dataset", task: Any) -> "xarray.Dataset":
    times = np.asarray(task.ts)
    if "time" in data.dims:
        data = data.assign_coords(time=("time", times, {"units": "s"}))
    for x in task.outputs:
        if x.every > 1 and x.dims:
            data = data.assign_coords({x.dims[0]: (x.dims[0], times[:: x.every], {"units": "s"})})
    robot = task.model.robot
    names = {dim: list(parts) for dim, parts in PARTS.items()}
    names |= {"link": [x.name for x in robot.links], "joint": [x.name for x in robot.joints]}
    names |= {"station": list(task.stations), "parameter": list(task.paths)}
    fitting = {dim: x for dim, x in names.items() if data.sizes.get(dim) == len(x)}
    return data.assign_coords(fitting)


def dimensions(outputs: Sequence[Output], name: str, count: int) -> tuple[str, ...]:
    """The ``count`` dimensions of an output, or of its derivatives, after that of the runs."""
    slope = name.startswith("d ")
    output = next((x for x in outputs if x.name == name.removeprefix("d ")), None)
    if output is None:
        return ()
    own = output.dims
    if own is None:
        own = tuple(f"{output.name}_{k}" for k in range(count - slope))
    return (*own, "parameter") if slope else own


def substeps(ts: Any, dt: float) -> int:
    """Steps per output interval that are not longer than ``dt``."""
    longest = np.diff(np.asarray(ts, float)).max()
    return max(1, math.ceil(longest / dt * (1 - 1e-9)))


def _reason(status: int) -> str:
    return "not run" if status == NOT_RUN else Status(int(status)).name
