"""The result of a sweep: an xarray Dataset, failed runs, and single runs again."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flexjax._results import Status
from flexjax.simulate import Trajectory, simulate
from flexjax.simulate.trajectory import PARTS
from flexjax.study.sweep._design import Design
from flexjax.study.sweep._execute import Task
from flexjax.study.sweep._outputs import Output
from flexjax.study.sweep._store import NOT_RUN

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """Result of :func:`flexjax.sweep`; ``print`` shows a summary.

    ``data``: outputs with the design as coordinates, and "status", "t_fail", "where" of every run.
    """

    data: "xarray.Dataset"
    design: Design
    task: Task
    store: str | None

    @classmethod
    def build(
        cls,
        task: Task,
        design: Design,
        outputs: Sequence[Output],
        times: np.ndarray,
        rows: dict[str, np.ndarray],
        store: str | None,
    ) -> "Sweep":
        import xarray

        known = {x.name: x for x in outputs}
        variables: dict[str, Any] = {}
        for name, values in rows.items():
            slope = name.startswith("d ")
            output = known.get(name.removeprefix("d "))
            dims = _dims(output, values.ndim - 1 - slope) + (("parameter",) if slope else ())
            attributes = {} if output is None else {"units": output.unit, "long_name": name}
            variables[name] = (("run", *dims), values, attributes)
        coords: dict[str, Any] = {path: ("run", x) for path, x in design.columns.items()}
        data = xarray.Dataset(variables, coords)
        if "time" in data.dims:
            data = data.assign_coords(time=("time", times, {"units": "s"}))
        for dim, names in PARTS.items():
            if data.sizes.get(dim) == len(names):
                data = data.assign_coords({dim: list(names)})
        if "parameter" in data.dims:
            data = data.assign_coords(parameter=list(task.paths))
        return cls(data, design, task, store)

    @property
    def failed(self) -> "xarray.Dataset":
        """The failed runs: their design, status, time and place."""
        keep = ["status", "t_fail", "where"]
        data = self.data[keep].assign_coords(run=np.arange(self.data.sizes["run"]))
        return data.isel(run=np.flatnonzero(self.data["status"].values != 0))

    def reasons(self) -> dict[str, int]:
        """Number of runs by how they ended."""
        status = self.data["status"].values
        name = lambda k: "not run" if k == NOT_RUN else Status(int(k)).name
        return {name(k): int(np.sum(status == k)) for k in np.unique(status)}

    def rerun(self, run: int, *, dt: float | None = None) -> Trajectory:
        """One run again, with its whole trajectory.

        Arguments:
            run: number of the run.
            dt: another step [s]; by default that of the sweep.

        Returns:
            The trajectory; SimulationError is raised if it fails.
        """
        task = self.task
        values = list(self.design.values[run])
        robot = task.parameters.place(task.model.robot, "robot", values)
        step: dict[str, Any] = {"substeps": task.substeps} if dt is None else {"dt": dt}
        return simulate(
            task.model.rebind(robot),
            task.parameters.place(task.drive, "drive", values),
            np.asarray(task.ts),
            solver=task.solver,
            start=task.parameters.place(task.start, "start", values, 0),
            **step,
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


def _dims(output: Output | None, n: int) -> tuple[str, ...]:
    if output is None:
        return ()
    if output.dims is not None:
        return output.dims
    return tuple(f"{output.name}_{k}" for k in range(n))
