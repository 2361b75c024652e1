"""How flexjax compiles: jax's transformations with the compiler options that pay for simulations.

jax takes compiler options at the outermost level only. So the functions here pass them when they
are called directly, and leave them out under a transformation of somebody else.
"""

import concurrent.futures
import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.extend.core import get_opaque_trace_state

from flexjax import _kept
from flexjax._configure import compiles_quickly, traced_folder

COMPILER_OPTIONS = {
    # XLA has two ways to write the fused kernels of a CPU. The newer one, its default, compiles for
    # nearly twice the time (8.8 against 5.0 s for the metal link in FiniteElement), and the run is
    # no faster for it (65 against 57 ms).
    "xla_cpu_use_fusion_emitters": False,
    # The default schedule passes small kernels between threads. On two cores a run of the metal
    # link in TransferMatrix takes 30 instead of 15 ms, in FiniteElement 56 instead of 33.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}

# Without optimisation, a gradient of the metal link compiles in half the time and runs three to
# five times slower.
QUICK_OPTIONS = {"xla_backend_optimization_level": 0}

# On a GPU the host starts every kernel of a loop, unless the loop is part of a CUDA graph. These
# put the whole time loop into one (compiled for an A100, never run: see benchmarks/gpu_check.py).
GPU_OPTIONS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}


def compiler_options() -> dict | None:
    """The options that this XLA knows, or None."""
    return _known_options(compiles_quickly())


@functools.cache
def _known_options(quick: bool) -> dict | None:
    on_gpu = jax.default_backend() == "gpu"
    chosen = GPU_OPTIONS if on_gpu else COMPILER_OPTIONS | (QUICK_OPTIONS if quick else {})
    if _are_known(chosen):
        return chosen
    return {k: v for k, v in chosen.items() if _are_known({k: v})} or None


def _are_known(options: dict[str, Any]) -> bool:
    try:
        jax.jit(lambda x: x, compiler_options=options)(np.zeros(1))
    except jax.errors.JaxRuntimeError:  # another XLA: its own choice serves
        return False
    return True


@functools.cache
def _outermost():
    # A new thread starts outside every transformation. jax has no public name for that state.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(get_opaque_trace_state).result()


def under_transformation() -> bool:
    """Whether this call is being differentiated, batched or compiled by somebody else.

    Looking for tracers among the arguments is not enough: the function of a controller may close
    over one.
    """
    return get_opaque_trace_state() != _outermost()


@contextlib.contextmanager
def _uncollected():
    """Pause Python's search for garbage: tracing allocates millions of objects that stay, and the
    search among them takes a tenth of a first call."""
    with _collector:
        _paused.append(gc.isenabled() if not _paused else _paused[0])
        gc.disable()
    try:
        yield
    finally:
        with _collector:
            enabled = _paused.pop()
            if enabled and not _paused:
                gc.enable()


_collector = threading.Lock()
_paused: list[bool] = []  # one entry for every call that runs: whether Python collected before


class Compiled:
    """A compiled function: with the options above at the outermost level, without them inside."""

    def __init__(
        self, make: Callable[..., Any], fn: Callable[..., Any], options: dict, keep: bool = False
    ):
        self._make, self._fn, self._options, self._keep = make, fn, options, keep
        # By whether they were compiled quickly.
        self._made: dict[bool, Any] = {}
        self._stores: dict[bool, _kept.Programs] = {}
        functools.update_wrapper(self, fn, updated=())

    @functools.cached_property
    def _inside(self) -> Any:
        return self._make(self._fn, **self._options)

    @property
    def _outside(self) -> Any:
        quick = compiles_quickly()
        if quick not in self._made:
            found = _known_options(quick)
            given = self._options.get("compiler_options") or {}
            options = {**self._options, "compiler_options": {**(found or {}), **given}}
            self._made[quick] = self._make(self._fn, **options) if found else self._inside
        return self._made[quick]

    @property
    def _programs(self) -> "_kept.Programs | None":
        """Its traced programs on disk; None for functions of users, and those of `jit`."""
        if not self._keep or _kept.name_of(self, self._fn) is None:
            return None
        quick = compiles_quickly()
        if quick not in self._stores:
            self._stores[quick] = _kept.Programs(self._fn, _known_options(quick))
        return self._stores[quick]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if under_transformation():
            return self._inside(*args, **kwargs)
        with _uncollected():
            return self._call(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        with _uncollected():
            return self._outside.trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        with _uncollected():
            return self._outside.lower(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        folder = traced_folder()
        if folder is not None and self._programs is not None:
            call = self._programs.find(folder, (args, kwargs))
            if call is not None:
                return call()
        return self._outside(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        # eval_shape, clear_cache: those of the program that a direct call runs.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._outside, name)


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``jax.jit`` with the compiler options that pay for simulations.

    Under a transformation (inside ``jax.jit``, ``jax.grad``, ``jax.vmap``) it is ``jax.jit``.

    Arguments:
        fn: the function; without it, a decorator is returned.
        options: as those of ``jax.jit``; ``compiler_options`` are added to the ones of flexjax.

    Returns:
        The compiled function.

    >>> import flexjax as fx
    >>> float(fx.jit(lambda x: 2 * x)(3.0))
    6.0
    """
    return Compiled(jax.jit, fn, options) if fn else functools.partial(jit, **options)


def grad(
    fn: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Any,
) -> Any:
    """``jit(jax.grad(fn))``: the compiled gradient of a scalar function.

    Arguments:
        fn: the function.
        argnums: positions of the arguments to differentiate with respect to.
        has_aux: whether ``fn`` returns a pair of value and other outputs.
        options: as those of ``jax.jit``.

    Returns:
        The compiled gradient.

    >>> import flexjax as fx
    >>> float(fx.grad(lambda x: x**2)(3.0))
    6.0
    """
    return jit(jax.grad(fn, argnums, has_aux), **options)


def value_and_grad(
    fn: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Any,
) -> Any:
    """``jit(jax.value_and_grad(fn))``: the compiled value and gradient of a scalar function.

    Arguments:
        fn: the function.
        argnums: positions of the arguments to differentiate with respect to.
        has_aux: whether ``fn`` returns a pair of value and other outputs.
        options: as those of ``jax.jit``.

    Returns:
        The compiled function; it returns value and gradient.

    >>> import flexjax as fx
    >>> [float(x) for x in fx.value_and_grad(lambda x: x**2)(3.0)]
    [9.0, 6.0]
    """
    return jit(jax.value_and_grad(fn, argnums, has_aux), **options)


def filter_jit(fn: Callable[..., Any], *, keep: bool = True) -> Any:
    """``eqx.filter_jit`` with the same options. Traced programs of functions of flexjax are kept on
    disk, if :func:`~flexjax.configure` says so; not with ``keep=False``, for programs with
    callbacks."""
    return Compiled(eqx.filter_jit, fn, {}, keep)
