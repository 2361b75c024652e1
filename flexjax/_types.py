"""Shape aliases, the one converter that makes a number a float array, and trees as vectors."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from flexjax._lazy import is_traced as is_traced

Scalar = Float[Array, ""]
ScalarLike = Float[Array, ""] | float  # a float from Python, an array in compiled code
PieceTime = Float[Array, ""] | float | None  # picks the piece of a piecewise signal; None: t itself
Coordinates = Float[Array, " nq"]
Velocities = Float[Array, " nv"]  # and what has their length: accelerations, generalised forces
Vector = Float[Array, " n"]
Vector2 = Float[Array, "2"]
Vector3 = Float[Array, "3"]
Matrix2 = Float[Array, "2 2"]
Matrix3 = Float[Array, "3 3"]
Quaternion = Float[Array, "4"]  # w x y z
Pose7 = Float[Array, "7"]  # x y z qw qx qy qz
Times = Float[Array, " times"]
Stations = Float[Array, " S"]  # along a link, s = 0 to 1
Value = Float[Array, "..."]
NumbersLike = ArrayLike | Sequence[Any]  # a number, an array, or nested lists of numbers


def as_float(x: Any) -> jax.Array:
    """A strongly typed float array: float64 if x64 is enabled, else float32.

    An array that is already floating keeps its dtype. A Python float as leaf would retrace for
    every new value, and a weak type costs one more trace.
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    elif isinstance(x, jax.Array) and not x.weak_type:
        return x
    else:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    try:
        return jnp.asarray(x, dtype=dtype)
    except (TypeError, ValueError):
        raise ValueError(
            f"{x!r:.80}: expected a number, or numbers of one shape in nested lists."
        ) from None


def as_float_or_none(x: Any) -> jax.Array | None:
    """:func:`as_float`; None denotes an absent field."""
    return None if x is None else as_float(x)


def hash_by_leaves(tree: Any) -> int:
    """A hash for pytrees of arrays, by the identity of the arrays: they have no hash themselves.

    ``jax.jit`` hashes what it compiles. With this as ``__hash__`` of a class, its bound methods
    can be compiled: ``jax.jit(model.initial_state)``.
    """
    return hash((type(tree), *(id(leaf) for leaf in jax.tree_util.tree_leaves(tree))))


def ravel(tree: Any) -> tuple[jax.Array, Callable[[jax.Array], Any]]:
    """All leaves in one vector, and the inverse, as ``jax.flatten_util.ravel_pytree``.

    Leaves have one type, and empty leaves are left out: an empty slice of a concatenation with an
    empty part makes jaxlib 0.10.1 abandon its rewriting of the program. On one core that includes
    the configuration of LAPACK's calls ("No registered implementation for untyped custom call").
    """
    leaves, form = jax.tree_util.tree_flatten(tree)
    shapes = [jnp.shape(x) for x in leaves]
    full = [jnp.ravel(x) for x in leaves if jnp.size(x)]

    def back(vector):
        parts, at = [], 0
        for shape in shapes:
            size = math.prod(shape)
            if size:
                parts.append(jax.lax.slice(vector, (at,), (at + size,)).reshape(shape))
            else:
                parts.append(jnp.zeros(shape, vector.dtype))
            at += size
        return jax.tree_util.tree_unflatten(form, parts)

    return jnp.concatenate(full) if full else jnp.zeros(0, jnp.result_type(float)), back
