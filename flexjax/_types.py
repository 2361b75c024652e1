"""Shape aliases and the one converter that makes a number a float array."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Vector = Float[Array, " n"]
Vector2 = Float[Array, "2"]
Vector3 = Float[Array, "3"]
Matrix2 = Float[Array, "2 2"]
Matrix3 = Float[Array, "3 3"]
Quaternion = Float[Array, "4"]  # w x y z
Pose7 = Float[Array, "7"]  # x y z qw qx qy qz
Times = Float[Array, " times"]
Value = Float[Array, "..."]


def as_float(x: Any) -> jax.Array:
    """A strongly typed float array: float64 if x64 is on, else float32; what is already floating keeps its dtype.

    A Python float as leaf retraces for every new number, and a weak type costs one more trace: both end here.
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    elif isinstance(x, jax.Array) and not x.weak_type:
        return x
    else:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return jnp.asarray(x, dtype=dtype)


def as_float_or_none(x: Any) -> jax.Array | None:
    """:func:`as_float`, where None says that the field is absent."""
    return None if x is None else as_float(x)
