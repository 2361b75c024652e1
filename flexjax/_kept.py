"""Traced programs on disk: a later process compiles or loads them without tracing.

Tracing runs the Python code of a formulation, which takes seconds. Its result is kept with
``jax.export`` under everything that it depends on: the function, the structure, shapes and dtypes
of its arguments, the settings of jax, the versions of the packages and the source of flexjax.
A program that depends on anything else, such as the function of a user, is traced in every process.
"""

import contextlib
import hashlib
import json
import os
import platform
import types
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.export
import jax.tree_util as jtu

from flexjax._files import write_whole
from flexjax._structure import NotWritable, Place, known_name, read, versions, write

MAGIC = b"flexjax program 1\n"
# Settings under which jax does more than run a program.
WATCHING = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs", "jax_enable_checks")
# Settings of where and when jax writes, not of what it traces.
ELSEWHERE = ("cache", "log", "dump", "profil", "coordination", "distributed", "monitoring")


class Programs:
    """The programs of one function of flexjax, by the structure of its arguments."""

    def __init__(self, fn: Callable[..., Any], options: dict | None):
        self._fn, self._options = fn, options
        self._found: dict[Any, tuple[Callable[[Sequence[Any]], Any] | None]] = {}

    def find(self, folder: Path, args: Any) -> Callable[[], Any] | None:
        """A call of the kept program for these arguments; None where it must be traced."""
        arrays, static = eqx.partition(args, eqx.is_array)
        leaves, tree = jtu.tree_flatten(arrays)
        rest, form = jtu.tree_flatten(static)
        key = (tree, form, tuple(rest), tuple(map(_kind, leaves)), tuple(_settings().items()))
        try:
            found = self._found.get(key)
        except TypeError:  # a static value without a hash
            return None
        if found is None:
            found = (self._load_or_trace(folder, args, leaves, tree, static),)
            self._found[key] = found
        (program,) = found
        return None if program is None else lambda: program(leaves)

    def _load_or_trace(
        self, folder: Path, args: Any, leaves: list, tree: Any, static: Any
    ) -> Callable[[Sequence[Any]], Any] | None:
        settings = _settings()
        if any(settings.get(name) for name in WATCHING) or not all(map(_is_local, leaves)):
            return None
        try:
            key = _key(self._fn, args, settings, self._options)
        except NotWritable:
            return None
        path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.program"
        stored = _load(path, key)
        if stored is not None:
            program = jax.jit(stored[1].call, compiler_options=self._options)
            return _filling(program, read(stored[0]))
        return self._trace(path, key, leaves, tree, static)

    def _trace(
        self, path: Path, key: str, leaves: list, tree: Any, static: Any
    ) -> Callable[[Sequence[Any]], Any]:
        """The program, kept for later processes where that is possible."""
        made = []

        def flat(*leaves):
            args, kwargs = eqx.combine(jtu.tree_unflatten(tree, leaves), static)
            out = self._fn(*args, **kwargs)
            made.append(jtu.tree_map(lambda x: Place.of(x) if eqx.is_array(x) else x, out))
            return jtu.tree_leaves(eqx.filter(out, eqx.is_array))

        program = jax.jit(flat, compiler_options=self._options)
        exported = _exported(program, leaves, made)
        if exported is not None:
            _save(path, key, write(made[0]), exported)
            # As a later process would run it, so that it finds the compiled program.
            program = jax.jit(exported.call, compiler_options=self._options)
        return _filling(program, made[0])


def _kind(leaf: Any) -> tuple:
    weak, sharding = getattr(leaf, "weak_type", False), getattr(leaf, "sharding", None)
    return leaf.shape, leaf.dtype, weak, sharding


def _is_local(leaf: Any) -> bool:
    """Whether an array is where a program of one device runs by default."""
    return not isinstance(leaf, jax.Array) or leaf.devices() == {jax.devices()[0]}


def _settings() -> dict[str, Any]:
    """The settings of jax that a traced program may depend on."""
    return {name: getattr(jax.config, name) for name in _setting_names()}


@cache
def _setting_names() -> tuple[str, ...]:
    names = (name for name in sorted(jax.config.values) if hasattr(jax.config, name))
    return tuple(name for name in names if not any(word in name for word in ELSEWHERE))


def _key(fn: Callable[..., Any], args: Any, settings: dict[str, Any], options: Any) -> str:
    """All that a traced program depends on, as text."""
    device = jax.devices()[0]
    return json.dumps(
        {
            "function": f"{fn.__module__}:{fn.__qualname__}",
            "arguments": write(args),
            "settings": {name: repr(value) for name, value in settings.items()},
            "versions": versions() | {"python": platform.python_version()},
            "source": source_hash(),
            "device": [device.platform, device.device_kind, platform.machine()],
            "compiler": [options, os.environ.get("XLA_FLAGS", "")],
        }
    )


@cache
def source_hash() -> str:
    """A hash of the source of flexjax."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _exported(program: Any, leaves: list, made: list) -> jax.export.Exported | None:
    """The program for later processes, or None where jax or this module cannot keep it."""
    traced = program.trace(*leaves)
    if traced.jaxpr.effects or any(x.weak_type for x in traced.jaxpr.out_avals):
        return None
    try:
        # Read again, it must be the same to jax. A static value without equality is not.
        if jtu.tree_structure(read(write(made[0]))) != jtu.tree_structure(made[0]):
            return None
        return jax.export.export(program)(*leaves)
    except (NotWritable, NotImplementedError):  # a foreign class; a callback
        return None


def _filling(program: Any, result: Any) -> Callable[[Sequence[Any]], Any]:
    """``program`` of arrays, with its outputs at the places of ``result``."""
    leaves, form = jtu.tree_flatten(result)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Place)]

    def call(arguments: Sequence[Any]) -> Any:
        filled = list(leaves)
        for k, x in zip(places, program(*arguments), strict=True):
            filled[k] = x
        return jtu.tree_unflatten(form, filled)

    return call


def _load(path: Path, key: str) -> tuple[Any, jax.export.Exported] | None:
    """(structure of the result, exported program) of a file; None if it is missing, damaged or of
    another program."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    body = content[start:]
    if content[:start] != MAGIC + hashlib.sha256(body).digest():
        return None
    head, _, program = body.partition(b"\n")
    stored = json.loads(head)
    if stored["key"] != key:
        return None
    with contextlib.suppress(OSError):  # a folder that may only be read
        os.utime(path)  # used now: the oldest are removed first
    return stored["result"], jax.export.deserialize(bytearray(program))


def _save(path: Path, key: str, structure: Any, exported: jax.export.Exported) -> None:
    head = json.dumps({"key": key, "result": structure}).encode()
    body = head + b"\n" + bytes(exported.serialize())
    content = MAGIC + hashlib.sha256(body).digest() + body
    try:
        write_whole(path, lambda part: part.write_bytes(content))
    except OSError as error:
        warnings.warn(
            f"cache: {str(path.parent)!r}; a traced program could not be kept "
            f"({error.strerror}). It is traced in every process.",
            stacklevel=2,
        )


def name_of(compiled: Any, fn: Callable[..., Any]) -> str | None:
    """The name of a function of flexjax that ``compiled`` stands for; None for any other."""
    if not isinstance(fn, types.FunctionType) or fn.__closure__:
        return None
    return known_name(fn.__module__, fn.__qualname__, compiled, ("flexjax",))
