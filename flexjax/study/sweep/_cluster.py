"""Sweeps on several processes or machines (dask.distributed).

Workers write their units to the store and return a receipt: results that only a worker has are
lost with it.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from flexjax._configure import configure, traced_folder
from flexjax.study.sweep._execute import Work
from flexjax.study.sweep._store import reopen_store

ATTEMPTS = 5  # at a unit whose workers die
# Deaths of workers that dask forgives a unit, in each attempt.
DEATHS = 10


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a worker must have in common with the process that started the sweep."""

    x64: bool
    cache: str | None

    @classmethod
    def of_this_process(cls) -> "Settings":
        folder = traced_folder()
        x64 = bool(jax.config.read("jax_enable_x64"))
        return cls(x64, None if folder is None else str(folder.parent))


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What a worker reports: the unit, its runs, and how many failed."""

    unit: int
    runs: int
    failed: int


@contextmanager
def connect(cluster: Any) -> Iterator[Any]:
    """A dask client of "local", of a scheduler's address, or of a cluster or client itself."""
    try:
        import distributed
        from dask import config
    except ImportError:
        raise ImportError("cluster: needs dask; pip install 'flexjax[cluster]'") from None
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if cluster == "local":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        with config.set({"distributed.scheduler.allowed-failures": DEATHS}):
            made = distributed.LocalCluster(
                n_workers=cores, threads_per_worker=1, dashboard_address=""
            )
        with made, distributed.Client(made) as client:
            yield client
        return
    with distributed.Client(cluster) as client:
        yield client


def run_on_cluster(
    cluster: Any, work: Work, path: str, units: list[int], report: Callable[[Receipt], None]
) -> None:
    """Simulate the units of a store on the workers of a cluster."""
    with connect(cluster) as client:
        import cloudpickle
        from distributed import KilledWorker, as_completed

        packed = client.scatter(cloudpickle.dumps(work), broadcast=True, hash=True)
        settings = Settings.of_this_process()
        submit = lambda k: client.submit(
            _run_unit, packed, path, k, settings, pure=False, key=f"sweep-{k}-{os.urandom(4).hex()}"
        )
        unit_of = {submit(k): k for k in units}
        attempts = dict.fromkeys(units, 1)
        done = as_completed(list(unit_of))
        try:
            for future in done:
                error = future.exception()
                if error is None:
                    report(future.result())
                    continue
                k = unit_of[future]
                attempts[k] += 1
                if not isinstance(error, KilledWorker) or attempts[k] > ATTEMPTS:
                    raise error
                again = submit(k)
                unit_of[again] = k
                done.add(again)
        finally:
            client.cancel(list(unit_of))


@functools.lru_cache(maxsize=2)
def _unpack(packed: bytes, settings: Settings) -> Work:
    """The work, with the settings under which it was made; once for each worker."""
    import cloudpickle

    try:
        configure(cache=settings.cache or False)
    except RuntimeError:  # jax has started in this worker: it keeps its threads
        configure(threads=None, cache=settings.cache or False)
    return cloudpickle.loads(packed)


def _run_unit(packed: bytes, path: str, k: int, settings: Settings) -> Receipt:
    store = reopen_store(path)
    begin, end = store.span(k)
    # A worker that was taken for dead may have finished it.
    if store.lacks(k):
        # Also while the arrays are read: without it they would lose half of their digits.
        with jax.enable_x64(settings.x64):
            work = _unpack(packed, settings)
            store.write(k, work.columns(begin, end, store.chunk, jax.local_devices()))
    status = store.group["status"][begin:end]
    return Receipt(k, end - begin, int((status != 0).sum()))
