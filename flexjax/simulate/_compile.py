"""How flexjax compiles the programs that it starts itself."""

import concurrent.futures
import functools

import jax
from jax.extend.core import get_opaque_trace_state

# XLA has two ways to write the fused kernels of a CPU. The newer one, its default, compiles for
# nearly twice the time (8.8 against 5.0 s for the metal link in FiniteElement), and the run is no
# faster for it (65 against 57 ms).
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
    """Whether this call is being differentiated, batched or compiled by somebody else.

    jax takes compiler options only outside of that. Looking for tracers among the arguments is not
    enough: the function of a controller may close over one.
    """
    return get_opaque_trace_state() != _outermost()
