"""sweep: one robot, many parameters."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from tqdm import tqdm

from flexjax._kept import source_hash
from flexjax._phases import phases
from flexjax._structure import versions
from flexjax._types import NumbersLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate.trajectory import read_stations
from flexjax.study.free import Parameters
from flexjax.study.sweep._choices import chosen_model, combinations
from flexjax.study.sweep._design import Design, check_design, read_design
from flexjax.study.sweep._execute import Sizes, Task, Work, choose_sizes
from flexjax.study.sweep._outputs import Output, Outputs, read_outputs
from flexjax.study.sweep._result import Sweep, build_data, dimensions, substeps
from flexjax.study.sweep._store import Store, create_store, open_store


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
    store: str | os.PathLike[str] | None = None,
    cluster: Any = None,
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
            :func:`latin_hypercube`, :func:`sobol`, :func:`saltelli`, a table of pandas or xarray,
            a CSV file. "formulation", "formulation.elements" (or another option), "solver" and
            "robot" are static choices, with one program for each combination.
        ts: output times [s].
        drive: motions, efforts, controllers and loads; None for none.
        start: the initial state.
        dt: longest step [s].
        solver: by default the model's own.
        outputs: what is kept of every run: "tip", fields of the trajectory ("q", "strain"),
            "energy.elastic", names of sensors, "tip[::10]" (every tenth time), "peak_deflection",
            "residual_vibration:after=0.5", "settling_time:band=1e-3,after=0.5"; functions of the
            trajectory, alone, in a list or by name in a dict. Only these are computed and stored.
        stations: sections of every link, for outputs along the links.
        sensitivities: paths of the design; adds the derivatives of all outputs by these.
        chunk: runs per chunk. "auto" tries a few on the first runs of a long sweep.
        devices: by default ``jax.devices()``.
        store: a folder (zarr). Every finished chunk is written there. The same call continues an
            interrupted sweep; a store of another sweep is refused.
        cluster: "local" for a process on every core, the address of a dask scheduler, or a dask
            cluster or client. Its workers write to ``store``, which all machines must reach.
        progress: show a bar with rate, failed runs and remaining time.

    Returns:
        :class:`Sweep`. ``.data`` is an xarray Dataset with the design as coordinates.

    Raises:
        ValueError: design, outputs or drive do not fit the robot; all faults are listed.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> design = {"links.fore.body.mass": [2.0, 2.5, 3.0]}
    >>> result = fx.sweep(model, design, ts=np.linspace(0.0, 0.02, 3))
    >>> result.data["tip"].dims
    ('run', 'time', 'axis')
    """
    table = read_design(design)
    work = make_work(
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
    if cluster is not None and store is None:
        raise ValueError("cluster: needs a store; give store='results.zarr', which workers reach.")
    used = list(jax.devices() if devices is None else devices)
    if store is None:
        sizes = choose_sizes(chunk, work, used)
        rows = _run_in_memory(work, sizes, used, progress)
        return Sweep(build_data(work, table, rows), table, work, None, used)
    place = _open(Path(store), work, table, chunk, used if cluster is None else used[:1])
    _run_into_store(work, place, str(store), used, cluster, progress)
    return Sweep(build_data(work, table, place.arrays()), table, work, str(store), used)


def make_work(
    model: AbstractModel,
    table: Design,
    *,
    solver: diffrax.AbstractSolver | None = None,
    **options: Any,
) -> Work:
    """The runs of a design, with one task for every combination of static choices."""
    picks, which = combinations(table.choices, table.runs)
    tasks = []
    for k, pick in enumerate(picks):
        chosen, own = chosen_model(model, pick)
        rows = np.flatnonzero(which == k)
        tasks.append(make_task(chosen, table, rows, solver=own or solver, **options))
    _refuse_different_shapes(tasks, picks)
    return Work.build(tasks, table.values, which)


def make_task(
    model: AbstractModel,
    table: Design,
    rows: np.ndarray | None = None,
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
    """What the runs ``rows`` of a design share; the arguments are those of :func:`sweep`."""
    robot, drive = model.robot, Drive() if drive is None else drive
    start = start if isinstance(start, Start) else Start(joints=dict(start or {}))
    par = check_design(table, robot, drive, start, rows)
    drive.check(robot)
    times = _read_times(ts)
    if not dt > 0:
        raise ValueError(f"dt: {dt}; expected a positive step in seconds.")
    dtype = robot.gravity.dtype
    return Task(
        model,
        jtu.tree_map(lambda x: jnp.asarray(x, dtype), drive),
        start,
        jnp.asarray(times, dtype),
        par,
        solver,
        read_outputs(outputs, robot),
        substeps(times, dt),
        tuple(float(s) for s in np.asarray(read_stations(stations, dtype)[0])),
        _read_sensitivities(sensitivities, table, par),
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
        if path not in design.columns:
            raise ValueError(
                f"sensitivities: {path!r}; expected paths of the design, "
                f"{', '.join(design.columns)}."
            )
    names = dict(zip(design.columns, par.names, strict=True))
    return tuple(names[path] for path in paths)


def _refuse_different_shapes(tasks: list[Task], picks: list[dict]) -> None:
    """Outputs of all static choices must fit into one array."""
    if len(tasks) < 2:
        return
    row = jax.ShapeDtypeStruct((tasks[0].parameters.size,), tasks[0].ts.dtype)
    found = [jax.eval_shape(task.run, row).outputs for task in tasks]
    for name, first in found[0].items():
        for other, pick in zip(found, picks, strict=True):
            if other[name].shape != first.shape:
                label = ", ".join(f"{k} = {getattr(v, 'name', v)}" for k, v in pick.items())
                raise ValueError(
                    f"outputs: {name!r} has shape {other[name].shape} with {label}, and "
                    f"{first.shape} with the first choice; expected outputs that do not depend on "
                    "static choices, e.g. 'tip'."
                )


def _open(path: Path, work: Work, design: Design, chunk: int | str, devices: list) -> Store:
    """The store of a sweep: an old one that is continued, or a new one."""
    key = _key(work, design)
    found = open_store(path, key, work.runs)
    if found is not None:
        return found
    sizes = choose_sizes(chunk, work, devices)
    names = list(design.columns)
    return create_store(path, key, (sizes.chunk, sizes.unit), work.order, work.values, names)


class _Bar:
    """A bar with the phase of the first chunk, rate, failed runs and remaining time."""

    def __init__(self, total: int, done: int, shown: bool):
        self.failed, self.running = 0, False
        self.shown, self.open = shown, contextlib.ExitStack()
        what = "sweep: tracing"
        self.bar = tqdm(total=total, initial=done, unit="run", desc=what, disable=not shown)

    def describe(self, phase: str) -> None:
        self.bar.set_description(f"sweep: {phase}")

    def add(self, runs: int, failed: int) -> None:
        if not self.running:
            self.running = True
            self.describe("running")
            self.bar.unpause()  # the rate is that of the runs, without compilation
        self.failed += failed
        self.bar.set_postfix_str(f"{self.failed} failed" if self.failed else "", refresh=False)
        self.bar.update(runs)

    def __enter__(self) -> "_Bar":
        if self.shown:
            self.open.enter_context(phases(self.describe))
        return self

    def __exit__(self, *_: Any) -> None:
        self.open.close()
        self.bar.close()


def _run_in_memory(work: Work, sizes: Sizes, devices: list, progress: bool) -> dict[str, Any]:
    parts = []
    with _Bar(work.runs, 0, progress) as bar:
        for begin in range(0, work.runs, sizes.chunk):
            end = min(begin + sizes.chunk, work.runs)
            parts.append(work.columns(begin, end, sizes.chunk, devices))
            bar.add(end - begin, int(np.sum(parts[-1]["status"] != 0)))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _run_into_store(
    work: Work, store: Store, path: str, devices: list, cluster: Any, progress: bool
) -> None:
    todo = store.missing()
    left = sum(end - begin for begin, end in map(store.span, todo))
    names = lambda name, count: dimensions(work.tasks[0].outputs, name, count)
    declared = len(todo) < store.units
    with _Bar(work.runs, work.runs - left, progress) as bar:
        while todo and (cluster is None or not declared):
            begin, end = store.span(todo[0])
            columns = work.columns(begin, end, store.chunk, devices)
            if not declared:  # with the shapes of the first unit; workers only fill the arrays
                store.declare(columns, names)
                declared = True
            store.write(todo.pop(0), columns)
            bar.add(end - begin, int(np.sum(columns["status"] != 0)))
        if todo:
            from flexjax.study.sweep._cluster import Receipt, run_on_cluster

            report: Callable[[Receipt], None] = lambda r: bar.add(r.runs, r.failed)
            run_on_cluster(cluster, work, path, todo, report)


def _key(work: Work, design: Design) -> dict[str, str]:
    """What a sweep depends on, by part, each as text."""
    leaves, structure = jtu.tree_flatten(work.tasks)
    numbers = hashlib.sha256()
    for leaf in leaves:
        numbers.update(np.ascontiguousarray(leaf).tobytes())
    # Functions show their address, which differs between processes.
    text = re.sub(r" at 0x[0-9a-f]+", "", str(structure))
    short = lambda data: hashlib.sha256(data).hexdigest()[:16]
    values = work.values.tobytes() + work.task_of.tobytes() + work.order.tobytes()
    from flexjax import __version__

    return {
        "flexjax": f"{__version__}, {source_hash()[:12]}",
        "jax": versions()["jax"],
        "design": f"{design.runs} runs of {', '.join(design)}, {short(values)}",
        "outputs": ", ".join(_described(x) for x in work.tasks[0].outputs),
        "structure": short(text.encode()),
        "numbers": numbers.hexdigest()[:16],
    }


def _described(output: Output) -> str:
    """An output's name; with a hash of the code of a function."""
    code = getattr(output.source, "__code__", None)
    if code is None:
        return output.name
    text = re.sub(rb" at 0x[0-9a-f]+", b"", code.co_code + repr(code.co_consts).encode())
    return f"{output.name} ({hashlib.sha256(text).hexdigest()[:8]})"
