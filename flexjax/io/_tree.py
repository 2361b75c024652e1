"""Pytrees of flexjax modules as plain data: a structure in JSON and a list of arrays.

Nothing is pickled, and reading builds only modules of flexjax, so no file can run code.
"""

import dataclasses
from importlib import import_module
from typing import Any

import equinox as eqx
import jax
import numpy as np

from flexjax._deferred import Deferrable
from flexjax._types import is_traced

PACKAGES = tuple(
    f"flexjax.{name}."
    for name in ("numerics", "robot", "drive", "mechanism", "formulation", "simulate")
)
PLAIN = (str, int, float, bool, type(None))


class NotPlain(ValueError):
    """Something in a tree has no place in a file."""


def flatten(node: Any, arrays: list[np.ndarray]) -> Any:
    """The structure of ``node`` in JSON types.

    Arrays are appended to ``arrays``; the structure refers to them as ``{"array": index}``.
    """
    if isinstance(node, jax.Array | np.ndarray | np.generic):
        if is_traced(node):
            raise NotPlain("a traced number")
        arrays.append(np.asarray(node))
        return {"array": len(arrays) - 1}
    if isinstance(node, eqx.Module | Deferrable):
        cls = type(node)
        if not cls.__module__.startswith("flexjax.") or "<" in cls.__qualname__:
            raise NotPlain(f"an object of class {cls.__module__}.{cls.__qualname__}")
        fields = {f.name: flatten(getattr(node, f.name), arrays) for f in dataclasses.fields(cls)}
        return {"class": f"{cls.__module__}:{cls.__qualname__}", "fields": fields}
    if isinstance(node, dict):
        if not all(isinstance(key, str) for key in node):
            raise NotPlain("a dict whose keys are not text")
        return {"dict": {key: flatten(value, arrays) for key, value in node.items()}}
    if type(node) in (tuple, list):
        return {type(node).__name__: [flatten(value, arrays) for value in node]}
    if type(node) in PLAIN:
        return {"value": node}
    raise NotPlain(f"an object of class {type(node).__name__}")


def restore(node: Any, arrays: list) -> Any:
    """The tree that :func:`flatten` took apart."""
    (kind, value), *_ = node.items()
    if kind == "array":
        if type(value) is not int or not 0 <= value < len(arrays):
            raise ValueError(f"array {value!r}; expected one of {len(arrays)} from 0")
        return arrays[value]
    if kind == "value":
        return value
    if kind == "dict":
        return {key: restore(item, arrays) for key, item in value.items()}
    if kind in ("tuple", "list"):
        items = [restore(item, arrays) for item in value]
        return tuple(items) if kind == "tuple" else items
    if kind == "class":
        return _module(value, {key: restore(item, arrays) for key, item in node["fields"].items()})
    raise ValueError(f"unknown kind of node {kind!r}")


def _module(name: str, values: dict) -> eqx.Module | Deferrable:
    module, _, qualname = name.partition(":")
    # Only packages whose modules do nothing when they are imported.
    if not module.startswith(PACKAGES) or "__" in module or "." in qualname:
        raise ValueError(f"{name!r} is no class of flexjax")
    cls = getattr(import_module(module), qualname, None)
    if not (isinstance(cls, type) and issubclass(cls, eqx.Module | Deferrable)):
        raise ValueError(f"{name!r} is no class of flexjax")
    if cls.__module__ != module:  # of another package, which that module imports
        raise ValueError(f"{name!r} is no class of flexjax")
    instance = object.__new__(cls)  # checked when it was first built
    for field in dataclasses.fields(cls):
        if field.name in values:
            value = values[field.name]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise ValueError(f"{name} has a field {field.name!r} that the file does not")
        object.__setattr__(instance, field.name, value)
    return instance
