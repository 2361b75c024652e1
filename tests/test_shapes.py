"""The run-time check of shapes is on in the tests, and finds what it should."""

import jax.numpy as jnp
import jaxtyping
import pytest
from jaxtyping import Array, Float

from flexjax.numerics.screw import se3
from tests._shapes import check_shapes


@jaxtyping.jaxtyped(typechecker=check_shapes)
def both(a: Float[Array, " n"], *more: Float[Array, " n"] | None) -> tuple[Float[Array, " n"], int]:
    return (a, 1) if len(more) < 2 else (a[None], 1)


def test_shapes_of_arguments_and_results():
    x = jnp.zeros(3)
    assert both(x, None)[1] == both(x, x)[1] == 1
    for wrong in ((jnp.zeros((3, 1)),), (x, jnp.zeros(4)), (x, x, x), (x, 2.0)):
        with pytest.raises(jaxtyping.TypeCheckError):
            both(*wrong)


def test_numerics_are_checked():
    with pytest.raises(jaxtyping.TypeCheckError, match="parameters of flexjax.numerics.screw"):
        se3.exp(jnp.zeros(5))
