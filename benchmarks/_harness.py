"""Timing of compiled functions: compile and run apart, every result waited for, machine and versions on record."""

import dataclasses
import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import jax

RESULTS = Path(__file__).resolve().parent / "results"


@dataclasses.dataclass
class Timing:
    """Seconds. `compile` is tracing and compilation, without a run; `wall` and `cpu` are medians of single runs."""

    compile: float
    wall: float
    cpu: float
    repeats: int


def fresh_compilations():
    """Switch the persistent cache off: a compile time read from a cache says nothing."""
    jax.config.update("jax_enable_compilation_cache", False)


def _compiled(fn: Callable, *args):
    """(function that runs and waits, its value, seconds of tracing and compilation)."""
    start = time.perf_counter()
    compiled = jax.jit(fn).lower(*args).compile()
    compile_time = time.perf_counter() - start
    value = jax.block_until_ready(compiled(*args))  # first touch of memory: not timed
    return lambda: jax.block_until_ready(compiled(*args)), value, compile_time


def measure(fn: Callable, *args, repeats: int = 5):
    """Lower, compile and run `fn(*args)`. Returns (value, Timing), with medians over `repeats` runs."""
    run, value, compile_time = _compiled(fn, *args)
    return value, _repeat(run, repeats, compile_time)


def in_turns(fns: list[Callable], *args, repeats: int = 5) -> list:
    """As ``measure`` of every one of ``fns``; their runs take turns, so that all of them meet the same machine and ratios can be trusted."""
    ready = [_compiled(fn, *args) for fn in fns]
    rounds = [[_repeat(run, 1) for run, _, _ in ready] for _ in range(repeats)]
    return [
        (
            value,
            Timing(
                compile_time,
                statistics.median(t.wall for t in taken),
                statistics.median(t.cpu for t in taken),
                repeats,
            ),
        )
        for (_, value, compile_time), taken in zip(ready, zip(*rounds, strict=True), strict=True)
    ]


def alternate(fn: Callable, *args, other: Callable, repeats: int = 7):
    """``fn(*args)`` compiled and ``other()``, which returns what it took as `wall` and `cpu`, in turns, so that both meet the same machine: (value, Timing of
    fn, Timing of other)."""
    run, value, compile_time = _compiled(fn, *args)
    other()
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(_repeat(run, 1))
        theirs.append(other())
    medians = [
        (statistics.median(t.wall for t in runs), statistics.median(t.cpu for t in runs))
        for runs in (ours, theirs)
    ]
    return value, Timing(compile_time, *medians[0], repeats), Timing(0.0, *medians[1], repeats)


def _repeat(run: Callable, repeats: int, compile_time: float = 0.0) -> Timing:
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(compile_time, statistics.median(walls), statistics.median(cpus), repeats)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def environment() -> dict:
    """What a number depends on besides the code."""
    packages = ("flexjax", "jax", "jaxlib", "diffrax", "equinox", "numpy", "exudyn")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": str(jax.devices()[0].device_kind),
        "platform": jax.default_backend(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "x64": bool(jax.config.jax_enable_x64),
        "versions": {p: _version(p) for p in packages},
    }


def row(name: str, **values) -> dict:
    """One line of a result table; timings flattened. A case that cannot run is recorded with `error`, not dropped."""
    flat = {"name": name}
    for key, value in values.items():
        flat[key] = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value
    return flat


def save(problem: str, rows: list[dict], **extra) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{problem}.json"
    path.write_text(
        json.dumps({"problem": problem, **environment(), **extra, "rows": rows}, indent=1) + "\n"
    )
    return path


def show_environment():
    env = environment()
    versions = ", ".join(f"{k} {v}" for k, v in env["versions"].items())
    print(
        f"{env['platform']} ({env['device']}), {env['cpus']} cpus, load {env['load']:.1f}, x64 {env['x64']}"
    )
    print(f"python {env['python']}, {versions}")
