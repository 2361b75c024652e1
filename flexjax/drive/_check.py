"""Checks of drives; traced values are not checked.

Values are checked at construction and again at use, because a leaf may have been replaced. Shapes
are checked at use only, because a batch has one axis more.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from flexjax._types import NumbersLike
from flexjax.drive.signal import AbstractSignal
from flexjax.drive.signal._check import as_concrete
from flexjax.robot import paths

POSITION = "a position on the link, from 0 (base) to 1 (tip)"


def value_fault(where: str, value: NumbersLike | None, good: Callable, expected: str) -> list[str]:
    """A fault unless every entry of ``value`` is good; none where it is absent or traced."""
    known = None if value is None else as_concrete(value)
    if known is None or np.all(good(known)):
        return []
    return [f"{where}: {known.tolist()}; expected {expected}."]


def number_fault(where: str, value: NumbersLike | None, remedy: str) -> list[str]:
    if value is None or np.shape(value) == ():
        return []
    return [f"{where}: numbers of shape {np.shape(value)}; expected one number. {remedy}"]


def signal_fault(where: str, signal: Any, shapes: tuple, remedy: str) -> list[str]:
    """A fault unless ``signal`` is a signal with values of one of these shapes."""
    if not isinstance(signal, AbstractSignal):
        kind = type(signal).__name__
        return [f"{where}: {kind}; expected a signal, e.g. fx.constant(0.5)."]
    try:
        shape = _shape(signal)
    except (TypeError, ValueError) as error:
        return [f"{where}: cannot be evaluated ({error}); expected signals of equal shapes."]
    if shape in shapes:
        return []
    wanted = " or ".join(map(str, shapes))
    return [f"{where}: a signal of shape {shape}; expected shape {wanted}. {remedy}"]


def finite_faults(where: str, tree: PyTree, infinite: tuple[str, ...] = ()) -> list[str]:
    """NaN and infinite leaves of a tree, by their paths; fields in ``infinite`` may be infinite."""
    faults = []
    for path, info in paths(tree).items():
        value = as_concrete(info.value)
        if value is None:
            continue
        free = any(part in infinite for part in path.split("."))
        bad = np.isnan(value) if free else ~np.isfinite(value)
        if np.any(bad):
            entry = ".".join([path, *map(str, np.argwhere(bad)[0])])
            shown = value[tuple(np.argwhere(bad)[0])]
            faults.append(f"{where}.{entry}: {shown}; expected a finite number.")
    return faults


def refuse_any(faults: list[str]) -> None:
    if faults:
        raise ValueError("\n".join(faults))


def _shape(signal: AbstractSignal) -> tuple[int, ...]:
    leaves, structure = jtu.tree_flatten(signal)
    arrays = tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves)
    try:
        return _shape_of(structure, arrays)
    except TypeError as error:
        if "unhashable" not in str(error):  # a signal of the user's own with static arrays
            raise
        return _shape_of.__wrapped__(structure, arrays)


@functools.lru_cache(maxsize=512)
def _shape_of(
    structure: Any, arrays: tuple[tuple[tuple[int, ...], np.dtype], ...]
) -> tuple[int, ...]:
    leaves = [jax.ShapeDtypeStruct(*a) for a in arrays]
    zero = jax.ShapeDtypeStruct((), jnp.result_type(float))

    def value(leaves, t):
        return jtu.tree_unflatten(structure, leaves).evaluate(t)[0]

    return jax.eval_shape(value, leaves, zero).shape
