"""jax 0.10.2 sums wrongly on CPU (jax issue 39103). This fails on every version that has the fault."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 6])
def test_sum_of_squares_over_many_rows(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)).astype(dtype)
    rows = rng.normal(size=(20_000, n)).astype(dtype)  # the fault starts above 16384 rows
    got = jax.jit(jax.vmap(lambda r: jnp.sum((a @ r) ** 2)))(rows)
    want = np.sum((rows.astype(np.float64) @ a.T.astype(np.float64)) ** 2, axis=1)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4 if dtype is np.float32 else 1e-12)


def test_forbidden_version_is_not_installed():
    assert jax.__version__ != "0.10.2"
