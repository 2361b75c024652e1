import ctypes
import gc
import math
import os
import platform
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Before jax is imported. The Makefile sets the same two, so that tests, demo and benchmarks share
# one cache.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests compile far more than they run: without optimisation XLA compiles about three times as fast
# (an implicit step with its gradient: 6 s against 19) and the numbers are the same to rounding.
# Benchmarks and users get XLA's own defaults. AVX2: see the Makefile. Flags given outside come last
# and win.
_FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
if platform.machine() == "x86_64":
    _FLAGS += " --xla_cpu_max_isa=AVX2"
os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}".strip()

import hypothesis
import jax
import jaxtyping
import pytest

from tests._shapes import check_shapes

pytest_plugins = ["tests._report", "pytester"]

jax.config.update("jax_enable_x64", True)
# jaxlie's batched calls promote ranks; flexjax calls it unbatched under vmap, so its own code can
# be held to this.
jax.config.update("jax_numpy_rank_promotion", "raise")

# Arrays that these packages pass have the shapes in their annotations, at 6 % of the time of their
# tests. Public functions refuse bad shapes in words of their own. Before flexjax is imported.
CHECKED = ("flexjax.numerics.screw",)
jaxtyping.install_import_hook(CHECKED, f"{check_shapes.__module__}.{check_shapes.__name__}")

# Tracing makes millions of objects that live on; looking for cycles among them took a sixth of the
# time. The programs of a module are dropped below.
gc.freeze()
gc.set_threshold(200_000, 20, 100)

# The same examples in every run, and no time limit per example: the first one compiles.
hypothesis.settings.register_profile("flexjax", derandomize=True, deadline=None)
hypothesis.settings.load_profile("flexjax")


MEMORY = 1.5e9  # bytes of a test process above which the programs of finished modules are dropped


def resident() -> float:
    """Bytes of memory that this process holds; infinity where the system does not report them."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return math.inf
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """Modules share compiled programs, but those of all modules together take many gigabytes."""
    yield
    if resident() > MEMORY:
        jax.clear_caches()
        gc.collect()
        # glibc keeps freed memory, and every later module would drop its programs: 1.17 GB stay at
        # 1.17 without this, and become 0.49.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
        if trim is not None:
            trim(0)


# Files whose parameters share no compiled program: each parameter may go to another worker.
SPREAD = ("test_contract.py", "test_notebooks.py", "test_docs.py")


def scope(nodeid: str) -> str:
    """The tests that one worker runs together: those of a file, or of a parameter in it."""
    file, _, test = nodeid.partition("::")
    return file + test[test.find("[") :] if file.endswith(SPREAD) and "[" in test else file


# Files that take long, longest first, so that no worker is left with one of them at the end. Others
# follow by their number of tests.
LONG = (
    "tests/test_contract.py",
    "tests/test_transformations.py",
    "tests/simulate/test_simulate.py",
    "tests/simulate/test_equilibrium.py",
    "tests/port_hamiltonian/test_step.py",
)


def order(nodeid: str) -> int:
    """The place of a test's file among those that take long."""
    file = nodeid.partition("::")[0]
    return LONG.index(file) if file in LONG else len(LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

        def _assign_work_unit(self, node):
            longest = min(self.workqueue, key=lambda name: order(next(iter(self.workqueue[name]))))
            self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture
def key():
    return jax.random.key(0)


@pytest.fixture(scope="session")
def experiment_data():
    """`experiment_data("quanser_2dsfl/steps")`: a path in the measured data, or a skip that says
    where to put them.
    """
    root = Path(os.environ.get("FLEXJAX_DATA", ROOT.parent / "shared" / "data"))

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            pytest.skip(
                f"measured data not found at {path}: set FLEXJAX_DATA to the folder that holds "
                f"{relative!r}"
            )
        return path

    return find
