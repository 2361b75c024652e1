"""The two layouts of the algebra say the same."""

import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.formulation.port_hamiltonian import _algebra, _lanes


@pytest.mark.parametrize("d", [3, 6])
def test_layouts_agree(d):
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.normal(size=(2, 4, d))) for _ in range(2))
    A, B = (jnp.asarray(rng.normal(size=(2, 4, d, d))) for _ in range(2))
    la, lb, lA, lB = _lanes.lanes(a), _lanes.lanes(b), _lanes.lanes(A, 2), _lanes.lanes(B, 2)
    for plain, laned in (
        (_algebra.ad(a), _lanes.ad(la)), (_algebra.coad_of(a), _lanes.coad_of(la)), (_algebra.mm(A, B), _lanes.mm(lA, lB)),
        (_algebra.resolvent(a), _lanes.resolvent(la)), (_algebra.transpose(A), _lanes.transpose(lA)),
    ):  # fmt: skip
        np.testing.assert_allclose(plain, _lanes.unlanes(laned, 2), atol=1e-14)
    np.testing.assert_allclose(_algebra.mv(A, b), _lanes.unlanes(_lanes.mv(lA, lb)), atol=1e-14)
    one = np.eye(d) + np.asarray(_algebra.ad(a)[0, 0])
    np.testing.assert_allclose(one @ np.asarray(_algebra.resolvent(a)[0, 0]), np.eye(d), atol=1e-13)
