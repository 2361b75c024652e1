"""Times compiled functions: separate compile and run times, machine and versions on record."""

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
    """Times in seconds.

    `compile` is tracing and compilation; `wall` and `cpu` are medians of single runs.
    """

    compile: float
    wall: float
    cpu: float
    repeats: int


def fresh_compilations():
    """Disable the persistent cache, so that compile times are real."""
    jax.config.update("jax_enable_compilation_cache", False)


def _compiled(fn: Callable, *args):
    """A function that runs and waits, its value, and the time of tracing and compilation."""
    start = time.perf_counter()
    compiled = jax.jit(fn).lower(*args).compile()
    compile_time = time.perf_counter() - start
    value = jax.block_until_ready(compiled(*args))  # the first run allocates memory: not timed
    return lambda: jax.block_until_ready(compiled(*args)), value, compile_time


def measure(fn: Callable, *args, repeats: int = 5):
    """Compile and run `fn(*args)`; return its value and the Timing over `repeats` runs."""
    run, value, compile_time = _compiled(fn, *args)
    return value, _repeat(run, repeats, compile_time)


def in_turns(fns: list[Callable], *args, repeats: int = 5) -> list:
    """``measure`` for each of ``fns`` with interleaved runs.

    All functions see the same machine load, so their ratios are reliable.
    """
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
    """Interleave runs of ``fn(*args)``, compiled, and of ``other()``, which returns its times.

    Returns:
        The value of ``fn``, its Timing and the Timing of ``other``.
    """
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
    """Machine, versions and settings on which a timing depends."""
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
    """One row of a result table; a case that fails is recorded with `error`."""
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
    machine = f"{env['platform']} ({env['device']}), {env['cpus']} cpus, load {env['load']:.1f}"
    print(f"{machine}, x64 {env['x64']}")
    print(f"python {env['python']}, {versions}")
