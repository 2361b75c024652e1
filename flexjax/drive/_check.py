"""Checks of drives. The compiled program itself checks traced values.

Values are checked at construction and again at use, because a leaf may have been replaced. Shapes
are checked at use only, because a batch has one axis more.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, PyTree

from flexjax._types import NumbersLike
from flexjax.drive.signal import AbstractSignal
from flexjax.drive.signal._check import Range as Range, as_concrete
from flexjax.robot import paths

POSITION = "a position on the link, from 0 (base) to 1 (tip)"


def is_finite(x: Any) -> Any:
    """``isfinite`` for numpy and traced arrays."""
    return abs(x) < np.inf


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


def _leaves(
    tree: PyTree, infinite: tuple[str, ...]
) -> Iterator[tuple[str, Array, Callable[[Any], Any]]]:
    """Path, value and condition of every leaf; fields in ``infinite`` may be infinite."""
    for path, info in paths(tree).items():
        free = any(part in infinite for part in path.split("."))
        yield path, info.value, (lambda x: x == x) if free else is_finite


def finite_faults(where: str, tree: PyTree, infinite: tuple[str, ...] = ()) -> list[str]:
    """NaN and infinite leaves of a tree, by their paths; fields in ``infinite`` may be infinite."""
    faults = []
    for path, leaf, good in _leaves(tree, infinite):
        value = as_concrete(leaf)
        if value is None or np.all(good(value)):
            continue
        first = np.argwhere(~good(value))[0]
        entry = ".".join([path, *map(str, first)])
        faults.append(f"{where}.{entry}: {value[tuple(first)]}; expected a finite number.")
    return faults


def leaves_hold(tree: PyTree, infinite: tuple[str, ...] = ()) -> list[Bool[Array, ""]]:
    """``finite_faults`` inside a program: conditions that must hold."""
    return [jnp.all(good(leaf)) for _, leaf, good in _leaves(tree, infinite)]


def _signals(tree: PyTree, where: str) -> Iterator[tuple[str, AbstractSignal]]:
    """Path and value of every signal in a tree, and of those that signals are made of."""
    inner = lambda x: x is not tree and isinstance(x, AbstractSignal)
    for path, x in jtu.tree_leaves_with_path(tree, is_leaf=inner):
        if inner(x):
            name = f"{where}.{jtu.keystr(path, simple=True, separator='.')}"
            yield name, x
            yield from _signals(x, name)


def signal_faults(where: str, tree: PyTree) -> list[str]:
    """Faults of the values of all signals in a tree."""
    return [f for name, x in _signals(tree, where) for r in x.ranges() for f in r.faults(name)]


def signals_hold(tree: PyTree) -> list[Bool[Array, ""]]:
    """``signal_faults`` inside a program: conditions that must hold."""
    return [r.holds() for _, x in _signals(tree, "") for r in x.ranges()]


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
