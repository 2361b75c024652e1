"""How flexjax compiles the programs that it starts itself."""

import concurrent.futures
import functools

import jax
from jax.extend.core import get_opaque_trace_state

# XLA has two emitters of fused CPU kernels. The newer one, its default, compiles for nearly twice
# the time, and the programs are not faster.
COMPILER_OPTIONS = {"xla_cpu_use_fusion_emitters": False}


@functools.cache
def compiler_options() -> dict | None:
    """Options for programs that flexjax starts itself, or None if XLA does not have them."""
    try:
        jax.jit(lambda x: x, compiler_options=COMPILER_OPTIONS)(0.0)
    except jax.errors.JaxRuntimeError:  # an XLA without these options uses its own
        return None
    return COMPILER_OPTIONS


@functools.cache
def _outermost():
    # A new thread starts outside every transformation. jax has no public name for that state.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(get_opaque_trace_state).result()


def under_transformation() -> bool:
    """Whether somebody else differentiates, batches or compiles this call.

    jax accepts compiler options only at the outermost level. Looking for tracers among the
    arguments is not enough: the function of a controller may close over one.
    """
    return get_opaque_trace_state() != _outermost()
