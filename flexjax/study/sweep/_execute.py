"""Runs of a sweep in chunks of one shape, on all devices; one program for each static choice."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from flexjax._compile import filter_jit
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import simulate
from flexjax.study.free import Parameters
from flexjax.study.sweep._outputs import Output

# Runs per device with which the search for a chunk begins. Larger chunks fall out of a processor's
# cache (measured with 200 steps of one link: best at 64 in PortHamiltonian and FiniteElement, 256
# and more in TransferMatrix). A GPU is busy only with thousands.
FIRST_CHUNK = {"cpu": 64, "gpu": 4096}
LARGEST_CHUNK = {"cpu": 1024, "gpu": 65536}
WORTH = 10.0  # times its first call that a sweep must last, to try another chunk
MEMORY = 512e6  # bytes of the states and outputs of a chunk
UNIT = 1.0  # seconds of work that are stored at once


class Task(eqx.Module):
    """What all runs of one static choice share."""

    model: AbstractModel
    drive: Drive
    start: Start
    ts: Float[Array, " T"]
    parameters: Parameters
    solver: diffrax.AbstractSolver | None
    outputs: tuple[Output, ...] = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    stations: tuple[float, ...] = eqx.field(static=True)
    paths: tuple[str, ...] = eqx.field(static=True)  # derivatives of the outputs by these

    def run(self, row: Float[Array, " k"]) -> "Rows":
        """One run with the values of one row of the design."""
        if not self.paths:
            return self._rows(row)
        by = np.array([self.parameters.names.index(p) for p in self.paths], int)

        def outputs(x):
            rows = self._rows(row.at[by].set(x))
            return rows.outputs, rows

        slopes, rows = jax.jacfwd(outputs, has_aux=True)(row[by])
        return dataclasses.replace(rows, slopes=slopes)

    def placed(self, values: Sequence[Any]) -> tuple[AbstractModel, Drive, Start]:
        """Model, drive and start with the values of one row."""
        robot = self.parameters.place(self.model.robot, "robot", values)
        return (
            self.model.rebind(robot),
            self.parameters.place(self.drive, "drive", values),
            self.parameters.place(self.start, "start", values, 0),
        )

    def _rows(self, row: Float[Array, " k"]) -> "Rows":
        model, drive, start = self.placed([row[k] for k in range(row.shape[0])])
        traj = simulate(
            model,
            drive,
            self.ts,
            substeps=self.substeps,
            solver=self.solver,
            start=start,
            stations=np.array(self.stations),
            throw=False,
        )
        outputs = {x.name: x.read(traj) for x in self.outputs}
        return Rows(outputs, traj.status, traj.t_fail, traj.where, ())


class Rows(eqx.Module):
    """Outputs of runs, how they ended, when and where they failed; derivatives if asked for."""

    outputs: dict[str, Array]
    status: Int[Array, "*N"]
    t_fail: Float[Array, "*N"]
    where: Int[Array, "*N"]
    slopes: Any

    def columns(self) -> dict[str, np.ndarray]:
        """All of it by name, the status last."""
        slopes = {f"d {name}": x for name, x in (self.slopes or {}).items()}
        ends = {"t_fail": self.t_fail, "where": self.where, "status": self.status}
        return {name: np.asarray(x) for name, x in {**self.outputs, **slopes, **ends}.items()}


@filter_jit
def _on_one(task: Task, rows: Float[Array, "C k"]) -> Rows:
    return jax.vmap(task.run)(rows)


@filter_jit
def _on_many(task: Task, rows: Float[Array, "C k"], mesh: Mesh) -> Rows:
    spec = PartitionSpec("runs")
    # Every device has a loop of its own: runs on one do not wait for those on another.
    return jax.shard_map(
        jax.vmap(task.run), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
    )(rows)


def run_chunk(task: Task, rows: np.ndarray, chunk: int, devices: list) -> Rows:
    """The rows of one chunk, padded to its size, on the host."""
    padded = np.concatenate([rows, np.repeat(rows[-1:], chunk - len(rows), axis=0)])
    x = jnp.asarray(padded, task.ts.dtype)
    if len(devices) > 1:
        found = _on_many(task, x, Mesh(np.array(devices), ("runs",)))
    else:
        found = _on_one(task, jax.device_put(x, devices[0]))
    return jax.tree.map(lambda a: np.asarray(a)[: len(rows)], found)


@dataclasses.dataclass(frozen=True, eq=False)
class Work:
    """All runs of a sweep, those of one static choice after the other.

    ``values``: (N, k) in the order of the work; ``order``: the run at each place of it;
    ``task_of``: which task each of them belongs to.
    """

    tasks: tuple[Task, ...]
    values: np.ndarray
    order: np.ndarray
    task_of: np.ndarray

    @classmethod
    def build(cls, tasks: Sequence[Task], values: np.ndarray, which: np.ndarray) -> "Work":
        order = np.argsort(which, kind="stable")
        return cls(tuple(tasks), values[order], order, which[order])

    @property
    def runs(self) -> int:
        return len(self.order)

    def columns(self, begin: int, end: int, chunk: int, devices: list) -> dict[str, np.ndarray]:
        """Outputs, ends and status of the runs at places ``begin`` to ``end`` of the work."""
        parts = []
        while begin < end:
            task = self.task_of[begin]
            same = int(np.searchsorted(self.task_of, task, side="right"))
            stop = min(end, same, begin + chunk)
            rows = run_chunk(self.tasks[task], self.values[begin:stop], chunk, devices)
            parts.append(rows.columns())
            begin = stop
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Runs that are computed at once, runs that are stored at once, and the measured seconds of a
    chunk and of the first call (None: not measured)."""

    chunk: int
    unit: int
    seconds: float | None = None
    first: float | None = None


def choose_sizes(chunk: int | str, work: Work, devices: list) -> Sizes:
    """Chunk and unit of a sweep; "auto" tries chunks on the first runs if the sweep is long."""
    count = len(devices)
    if chunk != "auto":
        if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
            raise ValueError(f"chunk: {chunk!r}; expected a whole number of runs, or 'auto'.")
        size = rounded(min(chunk, work.runs), count)
        return Sizes(size, size)
    kind = "cpu" if devices[0].platform == "cpu" else "gpu"
    most = max(1, int(MEMORY / bytes_per_run(work.tasks[0])))
    size = rounded(min(FIRST_CHUNK[kind] * count, work.runs, most), count)
    if work.runs <= 2 * size:
        return Sizes(size, size)
    limit = min(LARGEST_CHUNK[kind] * count, work.runs, most)
    return try_chunks(work, devices, size, limit)


def try_chunks(work: Work, devices: list, size: int, limit: int) -> Sizes:
    """The fastest chunk per run: four times as large as long as that is faster, otherwise a quarter
    as large as long as that is, and only while the sweep lasts much longer than a trial."""
    first, seconds = measure(work, devices, size)
    best, least = size, seconds / size
    for factor in (4.0, 0.25):
        while least * work.runs > WORTH * first:
            other = rounded(int(best * factor), len(devices))
            if not len(devices) <= other <= limit or other == best:
                break
            first, seconds = measure(work, devices, other)
            if seconds / other > 0.95 * least:
                break
            best, least = other, seconds / other
        if best > size:  # then a smaller one is no faster
            break
    unit = best * int(np.clip(round(UNIT / (least * best)), 1, 64))
    return Sizes(best, min(unit, rounded(work.runs, best)), least * best, first)


def measure(work: Work, devices: list, size: int) -> tuple[float, float]:
    """Seconds of the first call, and of one that is compiled."""
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        run_chunk(work.tasks[0], work.values[:size], size, devices)
        times.append(time.perf_counter() - begin)
    return times[0], times[1]


def bytes_per_run(task: Task) -> float:
    """Memory of the states and outputs of one run: a state has some hundred numbers."""
    links, joints = len(task.model.robot.links), len(task.model.robot.joints)
    sizes = {"link": links, "joint": joints, "dof": joints, "station": len(task.stations)}
    count = sum(
        np.prod([sizes.get(dim, 7) for dim in (x.dims or ())[1:]]) * (1 + len(task.paths))
        for x in task.outputs
    )
    return task.ts.dtype.itemsize * task.ts.shape[0] * (200 * links + float(count))


def rounded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
