"""Runs a sweep in chunks of one shape, on all devices, with one compiled program."""

import dataclasses
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


class Task(eqx.Module):
    """What all runs of a sweep share."""

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

    def _rows(self, row: Float[Array, " k"]) -> "Rows":
        values = [row[k] for k in range(row.shape[0])]
        robot = self.parameters.place(self.model.robot, "robot", values)
        traj = simulate(
            self.model.rebind(robot),
            self.parameters.place(self.drive, "drive", values),
            self.ts,
            substeps=self.substeps,
            solver=self.solver,
            start=self.parameters.place(self.start, "start", values, 0),
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
        found = _on_one(task, x)
    return jax.tree.map(lambda a: np.asarray(a)[: len(rows)], found)
