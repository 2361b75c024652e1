"""Structure as text: what jax compiles into a program, written down and read again.

Two processes that write the same text for the arguments of a function would trace the same program.
Only values that are what they say are written: plain data, and classes and functions that belong to
a package of a known version. Anything else, such as the function of a user, is refused.
"""

import base64
import dataclasses
import enum
import sys
import types
from fractions import Fraction
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

# Code of these packages is known by its version, that of flexjax by its source.
PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "numpy")


class NotWritable(Exception):
    """A value whose meaning cannot be written down."""


@cache
def versions() -> dict[str, str]:
    """The versions of the packages whose classes and functions are written by name."""
    return {name: version(name) for name in PACKAGES}


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of an array in a tree that is read again."""

    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, array: Any) -> "Place":
        return cls(tuple(array.shape), array.dtype.str)


def write(value: Any, *, leaves: bool = True) -> Any:
    """``value`` as data for JSON. Arrays are places, except inside static fields (``leaves``)."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return ["float", value.hex()]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _write_array(value, leaves)
    if isinstance(value, Place):
        return ["array", value.dtype, list(value.shape), False]
    if type(value) in (tuple, list):
        return [type(value).__name__, *(write(x, leaves=leaves) for x in value)]
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return ["named", _name_of(type(value)), *(write(x, leaves=leaves) for x in value)]
    if type(value) is dict:
        pairs = [[write(k, leaves=False), write(x, leaves=leaves)] for k, x in value.items()]
        return ["dict", *pairs]
    if type(value) is Fraction:
        return ["fraction", str(value)]
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if isinstance(value, type | types.FunctionType):
        return ["name", _name_of(value)]
    if isinstance(value, enum.Enum):
        return ["enum", _name_of(type(value)), value.name]
    if dataclasses.is_dataclass(value):
        return _write_fields(value, leaves)
    raise NotWritable(f"a {type(value).__module__}.{type(value).__qualname__}")


def _write_array(value: Any, leaves: bool) -> list:
    if jnp.issubdtype(value.dtype, jax.dtypes.extended) or value.dtype == object:
        raise NotWritable(f"an array of {value.dtype}")
    shape = list(value.shape)
    if leaves:
        return ["array", value.dtype.str, shape, bool(getattr(value, "weak_type", False))]
    if isinstance(value, jax.Array):
        raise NotWritable("a jax array in a static field")
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return ["numpy" if isinstance(value, np.ndarray) else "scalar", value.dtype.str, shape, data]


def _write_fields(value: Any, leaves: bool) -> list:
    kind, fields = type(value), dataclasses.fields(value)
    if not hasattr(value, "__dict__"):
        raise NotWritable(f"a {kind.__qualname__} without a dictionary of its fields")
    stored = vars(value)
    for extra in stored.keys() - {f.name for f in fields}:
        if not isinstance(getattr(kind, extra, None), cached_property):  # follows from the fields
            raise NotWritable(f"a {kind.__qualname__} with {extra!r}, which is no field")
    inside = leaves and isinstance(value, eqx.Module)  # jax sees any other dataclass as one leaf
    return [
        "fields",
        _name_of(kind),
        *(
            [f.name, write(stored[f.name], leaves=inside and not f.metadata.get("static", False))]
            for f in fields
            if f.name in stored
        ),
    ]


def _name_of(thing: Any) -> str:
    """The name by which a class or function of a known package is found again."""
    name = known_name(thing.__module__ or "", thing.__qualname__, thing)
    if name is None:
        raise NotWritable(f"{thing.__module__}.{thing.__qualname__}, of no known package")
    return name


def known_name(
    module: str, path: str, thing: Any, packages: tuple[str, ...] = ("flexjax", *PACKAGES)
) -> str | None:
    """``module:path`` if this is where ``thing`` is found, in one of ``packages``; else None."""
    if module.split(".")[0] not in packages:
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"{module}:{path}" if found is thing else None


def _found(name: str) -> Any:
    module, _, path = name.partition(":")
    assert module.split(".")[0] in ("flexjax", *PACKAGES)  # written only then
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def read(data: Any) -> Any:
    """The tree that :func:`write` wrote, with a :class:`Place` for every array."""
    if not isinstance(data, list):
        return data
    kind, *rest = data
    return _READERS[kind](*rest)


def _read_fields(name: str, *fields: Any) -> Any:
    made = object.__new__(_found(name))
    for key, value in fields:
        object.__setattr__(made, key, read(value))  # as jax itself builds an eqx.Module again
    return made


def _read_numpy(dtype: str, shape: list[int], data: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape)


_READERS = {
    "float": float.fromhex,
    "fraction": Fraction,
    "array": lambda dtype, shape, weak: Place(tuple(shape), dtype),
    "tuple": lambda *parts: tuple(map(read, parts)),
    "named": lambda name, *parts: _found(name)(*map(read, parts)),
    "list": lambda *parts: list(map(read, parts)),
    "dict": lambda *pairs: {read(k): read(x) for k, x in pairs},
    "dtype": np.dtype,
    "name": _found,
    "enum": lambda name, member: _found(name)[member],
    "fields": _read_fields,
    "numpy": _read_numpy,
    "scalar": lambda dtype, shape, data: _read_numpy(dtype, shape, data)[()],
}
