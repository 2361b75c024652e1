"""Whether a value is known. Imports no jax: rules about robots read it before jax is imported."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from jaxtyping import Array


def is_traced(x: Any) -> "TypeGuard[Array]":
    """Whether a value is only known when a compiled program runs."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)
