"""Reports what a call waits for: tracing, compiling, running."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
# Compile time over the time of tracing and lowering: 0.8 to 2.7 for simulations and gradients of
# one link (`benchmarks.first_call`), 1.3 in the geometric mean.
RATIO = 1.3


@contextmanager
def phases(show: Callable[[str], None], least: float = 0.5) -> Iterator[None]:
    """Call ``show`` with "compiling (about 8 s)" and "running" as jax reaches these phases.

    Programs that take less than ``least`` seconds to trace are not reported.
    """
    begin, reported = time.perf_counter(), False

    def listen(event: str, duration_secs: float, **kwargs: object) -> None:
        nonlocal begin, reported
        traced = time.perf_counter() - begin
        if event == LOWERED and traced >= least and not reported:
            show(f"compiling (about {_rounded(RATIO * traced)} s)")
            reported = True
        elif event == COMPILED:
            if reported:
                show("running")
            begin, reported = time.perf_counter(), False

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def _rounded(seconds: float) -> str:
    """One digit: an estimate has no more."""
    digits = max(0, -math.floor(math.log10(max(seconds, 0.1))))
    return f"{float(f'{seconds:.0e}'):.{digits}f}"
