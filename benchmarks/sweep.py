"""Batches of the metal link: time per run and chunk, a failing run among 64, storing, devices.

    python -m benchmarks.sweep [batch] [failing] [store] [many] [--only MovingBeam] [--steps 200]

batch: CPU time per run of every chunk size against a single run and against Exudyn, on one core.
failing: 64 runs of which one has a negative modulus, against 64 good ones; the others must be
bit-identical. store: what writing a unit costs. many: 100,000 runs of 500 steps, stored, on all
cores. Pin the others to a core (`taskset -c 1`).
"""

import argparse
import importlib.util
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("PJRT_NPROC", "1")

import numpy as np

from benchmarks import _exudyn, _harness
from benchmarks.metal_link import GRAVITY, Link, robot

DT = 1e-3
SIZES = {
    "TransferMatrix": {"segments": 16},
    "PortHamiltonian": {"elements": 16},
    "FiniteElement": {"elements": 4},
    "ScrewSynthesis": {},
    "MovingBeam": {},
}
CHUNKS = (16, 64, 256, 1024)


class Problem:
    """The metal link in one formulation, as a sweep over its modulus and length."""

    def __init__(self, name: str, steps: int):
        import flexjax as fx
        from flexjax.formulation import formulation
        from flexjax.study.sweep._sweep import make_task

        self.name, self.link = name, Link()
        model = formulation(name)(**SIZES.get(name, {})).bind(robot(self.link))
        ts = np.array([0.0, steps * DT])
        self.paths = ["links.link.material.E", "links.link.length"]
        design = fx.grid({p: [1.0] for p in self.paths})
        self.task = make_task(model, design, ts=ts, dt=DT, outputs={"end": _end})

    def rows(self, count: int, seed: int = 0) -> np.ndarray:
        share = np.random.default_rng(seed).uniform(0.9, 1.1, (count, 2))
        return share * np.array([self.link.E, self.link.length])

    def run(self, rows: np.ndarray):
        import jax

        from flexjax.study.sweep._execute import run_chunk

        return run_chunk(self.task, rows, len(rows), jax.devices()[:1])

    def alone(self, repeats: int = 15) -> tuple[float, float]:
        """CPU time of a single run, and time of the first call."""
        import jax

        from flexjax._compile import filter_jit

        run, row = filter_jit(lambda task, row: task.run(row)), self.rows(1)[0]
        begin = time.perf_counter()
        jax.block_until_ready(run(self.task, row))
        first, times = time.perf_counter() - begin, []
        for _ in range(repeats):
            cpu = time.process_time()
            jax.block_until_ready(run(self.task, row))
            times.append(time.process_time() - cpu)
        return statistics.median(times), first

    def timed(self, rows: np.ndarray, seconds: float = 1.0):
        """(rows, CPU time of a call, of the first call)."""
        begin = time.perf_counter()
        found = self.run(rows)
        first = time.perf_counter() - begin
        times = []
        while sum(times) < seconds and len(times) < 15 or len(times) < 3:
            cpu = time.process_time()
            found = self.run(rows)
            times.append(time.process_time() - cpu)
        return found, statistics.median(times), first


def _end(traj):
    return traj.tip[-1]


def batch(problem: Problem, steps: int, exudyn: float | None) -> dict:
    """CPU time per run by chunk size."""
    single, first = problem.alone()
    print(f"{problem.name:16} alone {1e3 * single:8.3f} ms  (first call {first:.1f} s)", flush=True)
    per_run = {}
    for chunk in CHUNKS:
        _, cpu, first = problem.timed(problem.rows(chunk))
        per_run[chunk] = cpu / chunk
        print(
            f"{'':16} {chunk:5} {1e3 * cpu / chunk:8.3f} ms  {single * chunk / cpu:5.1f}x", end=""
        )
        print(f"  (first call {first:.1f} s)", flush=True)
        if cpu / chunk > 1.15 * min(per_run.values()):
            break
    best = min(per_run, key=lambda k: per_run[k])
    ratio = exudyn / per_run[best] if exudyn else None
    return _harness.row(
        problem.name, single=single, per_run=per_run, best=best, exudyn_over_best=ratio
    )


def failing(problem: Problem, count: int = 64) -> dict:
    """One run of ``count`` with a modulus below zero."""
    rows = problem.rows(count)
    good, usual, _ = problem.timed(rows)
    bad_rows = rows.copy()
    bad_rows[7, 0] *= -1
    mixed, cpu, _ = problem.timed(bad_rows)
    rest = np.arange(count) != 7
    same = np.array_equal(good.outputs["end"][rest], mixed.outputs["end"][rest])
    print(
        f"{problem.name:16} 64 good {1e3 * usual:8.2f} ms, one failing {1e3 * cpu:8.2f} ms: "
        f"{cpu / usual:.2f}x, others {'bit-identical' if same else 'DIFFER'}, "
        f"status {int(mixed.status[7])}",
        flush=True,
    )
    return _harness.row(problem.name, usual=usual, failing=cpu, identical=same)


def storing(problem: Problem, steps: int, chunk: int = 64) -> dict:
    """Share of the time of a unit (about a second of chunks) that writing its tips takes."""
    from flexjax.study.sweep._execute import UNIT
    from flexjax.study.sweep._store import create_store

    rng = np.random.default_rng(0)
    _, cpu, _ = problem.timed(problem.rows(chunk))
    chunks = max(1, round(UNIT / cpu))
    unit = chunks * chunk
    rows = {"tip": rng.normal(size=(unit, steps // 2 + 1, 3)), "t_fail": rng.normal(size=unit)}
    rows |= {"where": np.zeros(unit, np.int32), "status": np.zeros(unit, np.int32)}
    order = np.arange(32 * unit)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zarr"
        store = create_store(path, {}, (chunk, unit), order, order[:, None] + 0.0, ["x"])
        store.declare(rows, lambda name, count: tuple(f"{name}_{k}" for k in range(count)))
        store.write(0, rows)
        begin = time.process_time()
        for k in range(1, 11):
            store.write(k, rows)
        write = (time.process_time() - begin) / 10
    share = write / (write + chunks * cpu)
    print(
        f"{problem.name:16} unit of {unit} runs: {1e3 * chunks * cpu:.0f} ms, stored in "
        f"{1e3 * write:.1f} ms ({rows['tip'].nbytes / 1e6:.1f} MB): {share:.1%} of its time",
        flush=True,
    )
    return _harness.row(problem.name, unit=chunks * cpu, write=write, share=share)


def many(runs: int, steps: int = 500) -> dict:
    """A sweep of many runs into a store, beside a loop of single runs and Exudyn."""
    import jax

    import flexjax as fx

    link = Link()
    model = fx.TransferMatrix(segments=16).bind(robot(link))
    box = {"links.link.material.E": (0.9 * link.E, 1.1 * link.E), "links.link.length": (0.9, 1.1)}
    options = dict(ts=np.linspace(0.0, steps * DT, 11), dt=DT, outputs="tip")
    with tempfile.TemporaryDirectory() as folder:
        begin, cpu = time.perf_counter(), time.process_time()
        design = fx.latin_hypercube(box, runs)
        result = fx.sweep(model, design, store=f"{folder}/a.zarr", progress=True, **options)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        assert result.reasons() == {"ok": runs}
        result.trajectory(0).tip.block_until_ready()
        begin = time.process_time()
        for k in range(5):
            result.trajectory(k).tip.block_until_ready()
        loop = (time.process_time() - begin) / 5
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    exudyn = exudyn_time(steps)
    print(
        f"{runs} runs of {steps} steps on {len(jax.devices())} device(s): {wall:.1f} s wall, "
        f"{cpu:.1f} s CPU, {1e3 * cpu / runs:.3f} ms CPU per run, peak memory {peak:.2f} GB; "
        f"a loop of single runs {1e3 * loop:.1f} ms"
        + (f", Exudyn {1e3 * exudyn:.1f} ms" if exudyn else ""),
        flush=True,
    )
    return _harness.row("many", runs=runs, wall=wall, cpu=cpu, loop=loop, exudyn=exudyn, peak=peak)


def exudyn_time(steps: int) -> float | None:
    """CPU time of the same run in Exudyn's geometrically exact beam, 16 elements."""
    if not importlib.util.find_spec("exudyn"):
        print("exudyn is not installed (pip install 'flexjax[outside]'): no ratios")
        return None
    options = dict(kind="GeometricallyExact2D", elements=16, dt=DT, end=steps * DT, gravity=GRAVITY)
    runs = [_exudyn.pendulum(Link(), **options) for _ in range(6)][1:]
    return statistics.median(r.cpu for r in runs)


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=["batch", "failing", "store"])
    parser.add_argument("--only", nargs="*", default=list(SIZES), help="names of formulations")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--runs", type=int, default=100_000, help="of the part 'many'")
    args = parser.parse_args(argv)

    import jax

    jax.config.update("jax_enable_x64", True)
    if "many" in args.parts and hasattr(os, "sched_getaffinity"):
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    _harness.show_environment()
    exudyn = exudyn_time(args.steps) if "batch" in args.parts else None
    if exudyn:
        print(f"exudyn           alone {1e3 * exudyn:8.3f} ms")
    rows = [many(args.runs)] if "many" in args.parts else []
    for name in args.only if set(args.parts) - {"many"} else ():
        problem = Problem(name, args.steps)
        if "batch" in args.parts:
            rows.append(batch(problem, args.steps, exudyn))
        if "failing" in args.parts:
            rows.append(failing(problem))
        if "store" in args.parts:
            rows.append(storing(problem, args.steps))
    for r in rows:
        if "best" in r:
            least = r["per_run"][r["best"]]
            times = f"{r['single'] / least:.1f}x a single run"
            more = f", {r['exudyn_over_best']:.1f}x Exudyn" if r["exudyn_over_best"] else ""
            print(f"{r['name']:16} best chunk {r['best']}: {1e3 * least:.3f} ms, {times}{more}")
    print(f"written to {_harness.save('sweep', rows, steps=args.steps)}")


if __name__ == "__main__":
    main()
