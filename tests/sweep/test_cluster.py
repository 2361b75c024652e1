"""Sweeps on several processes: equal to one process, and nothing lost when one is killed."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import psutil
import pytest

from tests.sweep.test_sweep import MASS, run

pytest.importorskip("distributed")
FEW, RUNS, CHUNK = 40, 2000, 2

SCRIPT = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from flexjax.study.sweep import _execute
from tests.sweep.test_sweep import MASS, run

real = _execute.Work.columns


def noted(self, begin, end, *rest):
    with open(sys.argv[3], "a") as file:
        file.write(f"{{begin}}\\n")
    return real(self, begin, end, *rest)


_execute.Work.columns = noted  # in workers too: they import this file

if __name__ == "__main__":
    options = dict(store=sys.argv[1], chunk={chunk})
    if sys.argv[2] == "cluster":
        options["cluster"] = "local"
    run({{MASS: np.linspace(0.1, 0.3, int(sys.argv[4]))}}, **options)
    print("done")
"""


def script(tmp_path):
    """A file: dask starts its workers with the module of the caller."""
    path = tmp_path / "again.py"
    path.write_text(textwrap.dedent(SCRIPT.format(chunk=CHUNK)))
    return path


def start(tmp_path, how, runs=RUNS):
    command = [sys.executable, str(script(tmp_path)), str(tmp_path / "a.zarr"), how]
    command += [str(tmp_path / "units.txt"), str(runs)]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def written(folder):
    """The number of units whose status is on disk."""
    place = folder / "status" / "c"
    return sum(p.suffix != ".partial" for p in place.iterdir()) if place.exists() else 0


def test_a_cluster_needs_a_store():
    with pytest.raises(ValueError, match="cluster: needs a store"):
        run({MASS: [0.1, 0.2]}, cluster="local")


@pytest.mark.slow
def test_a_local_cluster_gives_what_one_process_gives(tmp_path):
    process = start(tmp_path, "cluster", FEW)
    assert process.communicate(timeout=300)[0].strip() == b"done"
    result = run({MASS: np.linspace(0.1, 0.3, FEW)}, chunk=CHUNK, store=tmp_path / "a.zarr")
    whole = run({MASS: np.linspace(0.1, 0.3, FEW)}, chunk=CHUNK)
    assert result.data.identical(whole.data)


def _wait_for_progress(process, folder, rng):
    """Until this process has written a unit; then a little longer."""
    before, begin = written(folder), time.monotonic()
    while process.poll() is None and written(folder) <= before and time.monotonic() - begin < 120:
        time.sleep(0.01)
    time.sleep(rng.uniform(0.0, 0.05))


def _workers(process):
    found = psutil.Process(process.pid).children(recursive=True)
    # Processes of multiprocessing that run no code of a sweep would only be started again.
    return [p for p in found if "spawn_main" in " ".join(p.cmdline())]


@pytest.mark.slow
def test_killed_at_random_twenty_times(tmp_path, record_number):
    """kill -9 of the main process, of one worker, or of a run without workers, 20 times."""
    rng, folder, kills = random.Random(0), tmp_path / "a.zarr", 0
    while kills < 20:
        how = rng.choice(["alone", "cluster"])
        process = start(tmp_path, how)
        _wait_for_progress(process, folder, rng)
        if process.poll() is not None:
            process.communicate()
            break  # everything is done
        workers = _workers(process) if how == "cluster" else []
        for worker in rng.sample(workers, min(len(workers), rng.randint(0, 1))):
            worker.send_signal(signal.SIGKILL)
            kills += 1
            time.sleep(rng.uniform(0.0, 0.5))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        process.communicate()
        if written(folder) == RUNS // CHUNK:
            break
    assert kills >= 20
    last = start(tmp_path, "alone")
    assert last.communicate(timeout=300)[0].strip() == b"done"
    design = {MASS: np.linspace(0.1, 0.3, RUNS)}
    result, whole = run(design, chunk=CHUNK, store=folder), run(design, chunk=CHUNK)
    assert result.data.identical(whole.data)
    # A killed process had at most one unit in hand; killing all is killing each worker.
    units = (tmp_path / "units.txt").read_text().split()
    repeated = len(units) - RUNS // CHUNK
    record_number("sweep: units repeated for each killed process", repeated / kills, 3.0)
