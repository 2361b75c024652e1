"""Converts a robot to a plain document (the tree of a robot file: dicts, lists, numbers, text).

The conversion back is here too.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from flexjax.robot.parts import _joint, _link, _section
from flexjax.robot.parts._fault import UNKNOWN
from flexjax.robot.parts._link import Material
from flexjax.robot.parts._part import parts, values_of
from flexjax.robot.parts._section import AbstractSection


def plain(leaf: Any):
    """A leaf as a float or a list of floats; ``UNKNOWN`` if the host does not know its value."""
    if isinstance(leaf, Tracer | bool | np.bool_):
        return UNKNOWN
    if isinstance(leaf, jax.Array):
        # A donated buffer has lost its value; an array on several hosts has none that is local.
        known = not leaf.is_deleted() and leaf.is_fully_addressable
        return _tolist(leaf) if known else UNKNOWN
    if isinstance(leaf, np.ndarray | np.number | float | int):
        return _tolist(leaf)
    return leaf if isinstance(leaf, str) else UNKNOWN


def _tolist(x: ArrayLike):
    array = np.asarray(x)
    return (
        array.tolist()
        if np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
        else UNKNOWN
    )


def to_document(module: eqx.Module) -> dict:
    """The document of a description object, without absent fields and default flags and texts."""
    document = {}
    if isinstance(module, AbstractSection) and module.shape != "given":
        document["shape"] = module.shape
    for part in parts(type(module).__name__):
        value = getattr(module, part.name)
        if part.many:
            if len(value) > 0:
                document[part.name] = [_to_value(v) for v in value]
        elif part.text is not None:
            if part.required or value != part.default:
                document[part.name] = value
        elif value is not None:
            document[part.name] = _to_value(value) if part.cls is not None else plain(value)
    return document


def _to_value(value: Any):
    # A pytree filter may have replaced the whole object by a placeholder.
    return to_document(value) if type(value).__module__.startswith("flexjax.robot.") else UNKNOWN


def from_document(cls: Any, document: Any) -> Any:
    """The description object of a checked document."""
    if cls is Material and isinstance(document, str):
        return Material.named(document)
    return cls(**values_of(cls.__name__, document, lambda n, v: from_document(_class(n), v)))


def _class(name: str) -> Any:
    """The description class of a name."""
    for module in (_link, _joint, _section):
        if hasattr(module, name):
            return getattr(module, name)
    raise ValueError(f"{name!r}: expected the name of a description class.")
