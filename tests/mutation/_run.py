"""Runs tests on a copy of the repository in processes that have imported jax already."""

import importlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import jax

from tests.mutation._targets import ROOT, Stage

COPIED = ("flexjax", "tests", "docs", "benchmarks", "experiments", "pyproject.toml", "README.md")
# What flexjax and its tests import: imported once, before the processes are made.
IMPORTED = ("jax", "jax.export", "jax.experimental.sparse", "equinox", "diffrax", "optimistix")
IMPORTED += ("optax", "jaxlie", "interpax", "jaxtyping", "numpy", "scipy.integrate", "scipy.linalg")
IMPORTED += ("scipy.optimize", "scipy.stats", "scipy.signal", "xarray", "h5py", "hypothesis")
IMPORTED += ("pytest", "_pytest.junitxml", "_pytest.pytester")
TIMED_OUT = -signal.SIGXCPU


def copy(to: Path) -> Path:
    """A copy of the working tree without its environment and caches; faults go there."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            skipped = shutil.ignore_patterns("__pycache__", "*.html", "*.gif", "*.png")
            shutil.copytree(source, to / name, ignore=skipped)
        else:
            shutil.copy(source, to / name)
    return to


def prepare() -> None:
    """Import what no fault can be in. Every compiled program is kept, the smallest too: most of
    them contain no fault, and the next process reads them."""
    for name in IMPORTED:
        importlib.import_module(name)
    jax.config.update("jax_compilation_cache_dir", str(ROOT / ".cache" / "mutation"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def run(tree: Path, stage: Stage, seconds: float) -> tuple[int, str, float]:
    """(exit code of pytest, first test that failed, CPU seconds) of one stage of tests.

    The process ends as ``TIMED_OUT`` after that many CPU seconds; a crash is a negative code too.
    """
    note = tree / "first-failure"
    note.unlink(missing_ok=True)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax warns of fork; it has started no thread yet
        child = os.fork()
    if child == 0:
        code = 3
        try:
            code = _child(tree, stage, seconds, note)
        except BaseException:
            note.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    _, status = _wait(child, 20 * seconds)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    failed = note.read_text() if note.exists() else ""
    return os.waitstatus_to_exitcode(status), failed, used


def _wait(child: int, seconds: float) -> tuple[int, int]:
    """The end of a process, which is stopped as if out of CPU time where it only sleeps."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return done, status
        time.sleep(0.05)
    os.kill(child, signal.SIGXCPU)
    return os.waitpid(child, 0)


def _child(tree: Path, stage: Stage, seconds: float, note: Path) -> int:
    import pytest

    hard = int(seconds) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), hard))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    os.chdir(tree)
    for name in [m for m in sys.modules if m.split(".")[0] in ("flexjax", "tests")]:
        del sys.modules[name]
    sys.path[:] = [str(tree)] + [p for p in sys.path if p not in ("", str(ROOT))]
    out = os.open(tree / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)

    class First:
        @staticmethod
        def pytest_runtest_logreport(report):
            if report.failed and not note.exists():
                note.write_text(report.nodeid)

    files, words = stage
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    options += ["-m", "not slow and not docs", "--tb=short"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before
    if words:
        options += ["-k", words]
    code = int(pytest.main([*files, *options], plugins=[First()]))
    import flexjax

    if not str(flexjax.__file__).startswith(str(tree)):
        raise RuntimeError(f"{flexjax.__file__} was tested in place of the copy in {tree}")
    return code
