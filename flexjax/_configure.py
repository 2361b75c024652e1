"""Settings of jax for simulations on a CPU: threads, devices, and compiled programs on disk.

Only :func:`configure` changes them; importing flexjax changes nothing.
"""

import atexit
import gc
import os
import platform
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

CACHE_SIZE = 2e9  # bytes

_traced: list[Path] = []  # where traced programs are kept, if they are
_quick: list[bool] = []  # whether programs are compiled quickly, if that was said


def traced_folder() -> Path | None:
    """The folder in which traced programs are kept, or None."""
    return _traced[0] if _traced else None


def compiles_quickly() -> bool:
    """Whether programs are compiled in less time, to run in more."""
    return bool(_quick)


def configure(
    *,
    threads: int | None = 1,
    devices: int | None = None,
    quick: bool = False,
    cache: bool | str | os.PathLike[str] = True,
    cache_size: float = CACHE_SIZE,
) -> None:
    """Set up jax for simulations on a CPU; call it after the imports, before the first array.

    A simulation is a long sequence of small kernels. XLA passes them from thread to thread, which
    takes up to twice the time and twice the processor time of one thread. jax reads the number of
    threads when it starts its CPU client, so it cannot change later. The command line calls this
    function.

    Arguments:
        threads: number of threads that share one program; None leaves jax's choice, all cores.
        devices: number of CPU devices, for batches that are sharded over the cores; None leaves
            jax's choice, one.
        quick: compile without optimisation, in about half the time; programs then run three to five
            times slower. It pays for a few short runs, and the command line chooses it for them.
        cache: whether traced and compiled programs are kept for later processes, or the folder to
            keep them in. By default this is ``flexjax`` in the user's cache folder, or
            ``JAX_COMPILATION_CACHE_DIR``. Programs that contain functions of a user are compiled
            programs only: they are traced in every process.
        cache_size: limit of that folder in bytes; the oldest programs are removed when a process
            calls this function.

    Returns:
        Nothing. It changes settings of jax, and ``PJRT_NPROC`` and ``XLA_FLAGS`` in the
        environment; and the process ends without a search for garbage.

    Raises:
        RuntimeError: jax has started, so that a setting would have no effect.
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx
    >>> fx.configure()  # doctest: +SKIP
    """
    for field, value in (("threads", threads), ("devices", devices)):
        if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
            raise ValueError(f"{field}: {value}; expected a whole number of at least 1, or None.")
    if not cache_size >= 0:
        raise ValueError(f"cache_size: {cache_size}; expected a number of bytes, e.g. 2e9.")
    import jax

    before = jax.config.jax_num_cpu_devices  # pyright: ignore[reportAttributeAccessIssue]
    wanted = before if devices is None else int(devices)
    nproc = os.environ.get("PJRT_NPROC") if threads is None else str(int(threads))
    if wanted != before or nproc != os.environ.get("PJRT_NPROC"):
        if _client_has_started(jax):
            raise RuntimeError(
                f"configure: threads = {threads}, devices = {devices}; jax has started its CPU "
                "client and reads both only then. Call fx.configure directly after the imports, "
                "before the first robot, array or jax.devices(); or leave it with threads=None."
            )
        jax.config.update("jax_num_cpu_devices", wanted)
        if nproc is not None:
            os.environ["PJRT_NPROC"] = nproc
    # At its end Python would search millions of objects of traced programs for garbage: a second.
    atexit.register(gc.freeze)
    _quick[:] = [True] if quick else []
    _traced.clear()
    if cache is not False:
        _keep_programs(jax, None if cache is True else Path(cache), cache_size)


def _client_has_started(jax) -> bool:
    """jax refuses this setting when its CPU client runs; it has no public question for that."""
    before = jax.config.jax_num_cpu_devices
    try:
        jax.config.update("jax_num_cpu_devices", before + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", before)
    return False


def _keep_programs(jax, folder: Path | None, size: float) -> None:
    """Keep compiled programs in ``folder``, and traced ones in a folder inside it."""
    chosen = folder is not None
    own = jax.config.jax_compilation_cache_dir  # the user's choice, with a limit of its own
    if not chosen and own and "://" in own:
        return
    folder = folder or (Path(own) if own else cache_folder())
    traced = folder / "traced"
    try:
        traced.mkdir(parents=True, exist_ok=True)
        _prune([traced] if own and not chosen else [folder, traced], size)
    except OSError as error:
        message = f"cache: {str(folder)!r}; cannot be used ({error.strerror})."
        if chosen:
            raise ValueError(message) from None
        warnings.warn(f"{message} Programs are compiled in every process.", stacklevel=3)
        return
    if find_spec("flatbuffers") is not None:  # jax writes programs with it, and does not require it
        _traced.append(traced)
    if platform.machine() in ("x86_64", "AMD64") and not _client_has_started(jax):
        # XLA notes a preference of its own as a CPU feature in programs with AVX-512, and reports
        # it as missing whenever one is read from disk. With AVX2 it does not; runs take as long.
        flags = os.environ.get("XLA_FLAGS", "")
        if "xla_cpu_max_isa" not in flags:
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_max_isa=AVX2".strip()
    if own and not chosen:
        return
    from jax.experimental.compilation_cache import compilation_cache

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    compilation_cache.reset_cache()  # jax decides at the first program whether it has one


def cache_folder() -> Path:
    """``flexjax`` in the user's cache folder."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "flexjax" / "xla"


def _prune(folders: list[Path], size: float) -> None:
    """Remove the files that were used longest ago until the rest is within ``size``."""
    entries = [entry for folder in folders for entry in os.scandir(folder)]
    found = [(entry, entry.stat()) for entry in entries if entry.is_file()]
    found.sort(key=lambda x: max(x[1].st_atime, x[1].st_mtime), reverse=True)
    total = 0
    for entry, stat in found:
        total += stat.st_size
        if total > size:
            Path(entry.path).unlink(missing_ok=True)  # another process may have removed it
