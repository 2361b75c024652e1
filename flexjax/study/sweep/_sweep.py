"""sweep: one robot, many parameters."""

import hashlib
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from tqdm import tqdm

from flexjax._structure import versions
from flexjax._types import NumbersLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate.trajectory import read_stations
from flexjax.study.free import Parameters
from flexjax.study.sweep._design import Design, check_design, read_design
from flexjax.study.sweep._execute import Rows, Task, run_chunk
from flexjax.study.sweep._outputs import Output, Outputs, read_outputs
from flexjax.study.sweep._result import Sweep
from flexjax.study.sweep._store import NOT_RUN, Store, open_store

# Runs per device and chunk. Larger chunks fall out of the processor's cache (measured with 200
# steps of one link: best at 64 in PortHamiltonian and FiniteElement, 256 in TransferMatrix).
CHUNK = 64
MEMORY = 512e6  # bytes of the outputs of a chunk


def sweep(
    model: AbstractModel,
    design: Any,
    *,
    ts: NumbersLike,
    drive: Drive | None = None,
    start: Start | dict | None = None,
    dt: float = 1e-3,
    solver: diffrax.AbstractSolver | None = None,
    outputs: Outputs = "tip",
    stations: int | NumbersLike = 2,
    sensitivities: Sequence[str] = (),
    chunk: int | str = "auto",
    devices: Sequence[Any] | None = None,
    store: str | os.PathLike | None = None,
    progress: bool = False,
) -> Sweep:
    """Simulate a model for many values of its parameters.

    All runs share one compiled program. They run in chunks, spread over all devices of jax;
    ``fx.configure(devices=...)`` makes one device of every core. A failed run has a status and
    NaN, and leaves the others alone.

    Arguments:
        model: a robot in a formulation.
        design: values (N,) by path, the paths of :func:`identify` (``links.*.material.E``,
            ``drive.joints.*.signal.duration``, ``start.joints.shoulder``); or :func:`grid`,
            :func:`latin_hypercube`, :func:`sobol`, a table of pandas or xarray, a CSV file.
        ts: output times [s].
        drive: motions, efforts, controllers and loads; None for none.
        start: the initial state.
        dt: longest step [s].
        solver: by default the model's own.
        outputs: what is kept of every run: "tip", fields of the trajectory ("q", "strain"),
            "energy.elastic", names of sensors; functions of the trajectory, alone, in a list or by
            name in a dict. Only these are computed and stored.
        stations: sections of every link, for outputs along the links.
        sensitivities: paths of the design; adds the derivatives of all outputs by these.
        chunk: runs per chunk.
        devices: by default ``jax.devices()``.
        store: a folder (zarr). Every finished chunk is written there. The same call continues an
            interrupted sweep; a store of another sweep is refused.
        progress: show a bar with rate, failed runs and remaining time.

    Returns:
        :class:`Sweep`. ``.data`` is an xarray Dataset with the design as coordinates.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> design = {"links.fore.body.mass": [2.0, 2.5, 3.0]}
    >>> result = fx.sweep(model, design, ts=np.linspace(0.0, 0.02, 3))
    >>> result.data["tip"].dims
    ('run', 'time', 'axis')
    """
    table = read_design(design)
    task = make_task(
        model,
        table,
        ts=ts,
        drive=drive,
        start=start,
        dt=dt,
        solver=solver,
        outputs=outputs,
        stations=stations,
        sensitivities=sensitivities,
    )
    used = list(jax.devices() if devices is None else devices)
    size = _chunk_size(chunk, table.runs, len(used), task)
    place = None if store is None else open_store(Path(store), _key(task, table), table.runs, size)
    rows = _run_all(task, table, place, size if place is None else place.chunk, used, progress)
    times = np.asarray(task.ts)
    return Sweep.build(
        task, table, task.outputs, times, rows, None if store is None else str(store)
    )


def make_task(
    model: AbstractModel,
    table: Design,
    *,
    ts: NumbersLike,
    drive: Drive | None = None,
    start: Start | dict | None = None,
    dt: float = 1e-3,
    solver: diffrax.AbstractSolver | None = None,
    outputs: Outputs = "tip",
    stations: int | NumbersLike = 2,
    sensitivities: Sequence[str] = (),
) -> Task:
    """What all runs of a checked design share; the arguments are those of :func:`sweep`."""
    robot, drive = model.robot, Drive() if drive is None else drive
    start = start if isinstance(start, Start) else Start(joints=dict(start or {}))
    par = check_design(table, robot, drive, start)
    drive.check(robot)
    times = _read_times(ts)
    kept = read_outputs(outputs, robot)
    paths = _read_sensitivities(sensitivities, table, par)
    dtype = robot.gravity.dtype
    return Task(
        model,
        jtu.tree_map(lambda x: jnp.asarray(x, dtype), drive),
        start,
        jnp.asarray(times, dtype),
        par,
        solver,
        kept,
        max(1, math.ceil(float(np.max(np.diff(times))) / dt * (1 - 1e-9))),
        tuple(float(s) for s in np.asarray(read_stations(stations, dtype)[0])),
        paths,
    )


def _read_times(ts: NumbersLike) -> np.ndarray:
    times = np.asarray(ts, float)
    if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0):
        raise ValueError(
            f"ts: shape {times.shape}; expected at least two increasing output times in seconds."
        )
    return times


def _read_sensitivities(paths: Sequence[str], design: Design, par: Parameters) -> tuple[str, ...]:
    paths = (paths,) if isinstance(paths, str) else tuple(paths)
    for path in paths:
        if path not in design:
            raise ValueError(
                f"sensitivities: {path!r}; expected paths of the design, {', '.join(design)}."
            )
    names = dict(zip(design, par.names, strict=True))
    return tuple(names[path] for path in paths)


def _chunk_size(chunk: int | str, runs: int, devices: int, task: Task) -> int:
    """A multiple of the number of devices."""
    if chunk == "auto":
        one = jax.eval_shape(task.run, jax.ShapeDtypeStruct((task.parameters.size,), task.ts.dtype))
        per_run = sum(x.size * x.dtype.itemsize for x in jtu.tree_leaves(one))
        chunk = max(1, min(CHUNK, int(MEMORY / per_run / devices))) * devices
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f"chunk: {chunk!r}; expected a whole number of runs, or 'auto'.")
    return -(-min(chunk, runs) // devices) * devices


def _run_all(
    task: Task, design: Design, store: Store | None, chunk: int, devices: list, progress: bool
) -> dict[str, np.ndarray]:
    values, count = design.values, -(-design.runs // chunk)
    todo = list(range(count)) if store is None else store.missing()
    parts: dict[int, dict[str, np.ndarray]] = {}
    done = design.runs - sum(min(chunk, design.runs - k * chunk) for k in todo)
    failed = 0
    with tqdm(total=design.runs, initial=done, unit="run", disable=not progress) as bar:
        for k in todo:
            rows = values[k * chunk : (k + 1) * chunk]
            columns = _columns(run_chunk(task, rows, chunk, devices))
            if store is None:
                parts[k] = columns
            else:
                store.write(k, columns)
            failed += int(np.sum(columns["status"] != 0))
            bar.set_postfix_str(f"{failed} failed" if failed else "", refresh=False)
            bar.update(len(rows))
    if store is not None:
        return store.read()
    return {name: np.concatenate([parts[k][name] for k in todo]) for name in parts[0]}


def _columns(rows: Rows) -> dict[str, np.ndarray]:
    slopes = {f"d {name}": x for name, x in (rows.slopes or {}).items()}
    ends = {"t_fail": rows.t_fail, "where": rows.where, "status": rows.status}
    assert not np.any(rows.status == NOT_RUN)
    return {name: np.asarray(x) for name, x in {**rows.outputs, **slopes, **ends}.items()}


def _key(task: Task, design: Design) -> dict[str, str]:
    """What a sweep depends on, by part, each as text."""
    leaves, structure = jtu.tree_flatten((task, None))
    numbers = hashlib.sha256()
    for leaf in leaves:
        numbers.update(np.ascontiguousarray(leaf).tobytes())
    # Functions show their address, which differs between processes.
    text = re.sub(r" at 0x[0-9a-f]+", "", str(structure))
    short = lambda data: hashlib.sha256(data).hexdigest()[:16]
    from flexjax import __version__

    return {
        "flexjax": __version__,
        "jax": versions()["jax"],
        "design": f"{design.runs} runs of {', '.join(design)}, {short(design.values.tobytes())}",
        "outputs": ", ".join(_described(x) for x in task.outputs),
        "structure": short(text.encode()),
        "numbers": numbers.hexdigest()[:16],
    }


def _described(output: Output) -> str:
    code = getattr(output.read, "__code__", None)
    if output.dims is not None or code is None:
        return output.name
    function = next(
        (c.cell_contents for c in output.read.__closure__ or () if callable(c.cell_contents)), None
    )
    inner = getattr(function, "__code__", None)
    text = b"" if inner is None else inner.co_code + repr(inner.co_consts).encode()
    text = re.sub(rb" at 0x[0-9a-f]+", b"", text)
    return f"{output.name} ({hashlib.sha256(text).hexdigest()[:8]})"
