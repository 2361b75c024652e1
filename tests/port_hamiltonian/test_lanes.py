"""The two layouts of the algebra say the same."""

import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.formulation.port_hamiltonian import _algebra, _lanes
from flexjax.numerics import linalg


@pytest.mark.parametrize("d", [3, 6])
def test_layouts_agree(d):
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.normal(size=(2, 4, d))) for _ in range(2))
    A, B = (jnp.asarray(rng.normal(size=(2, 4, d, d))) for _ in range(2))
    la, lb, lA, lB = _lanes.lanes(a), _lanes.lanes(b), _lanes.lanes(A, 2), _lanes.lanes(B, 2)
    for plain, laned in (
        (_algebra.ad(a), _lanes.ad(la)),
        (_algebra.coad_of(a), _lanes.coad_of(la)),
        (linalg.mm(A, B), _lanes.mm(lA, lB)),
        (_algebra.resolvent(a), _lanes.resolvent(la)),
        (linalg.transpose(A), _lanes.transpose(lA)),
    ):
        np.testing.assert_allclose(plain, _lanes.unlanes(laned, 2), atol=1e-14)
    np.testing.assert_allclose(linalg.mv(A, b), _lanes.unlanes(_lanes.mv(lA, lb)), atol=1e-14)
    one = np.eye(d) + np.asarray(_algebra.ad(a)[0, 0])
    np.testing.assert_allclose(one @ np.asarray(_algebra.resolvent(a)[0, 0]), np.eye(d), atol=1e-13)


@pytest.mark.parametrize("lin", [2, 3])
def test_rotations_agree(lin):
    rng = np.random.default_rng(1)
    w = jnp.asarray(rng.normal(size=(2, 4, 1 if lin == 2 else 3)))
    start = _algebra.rotate_by(jnp.broadcast_to(jnp.eye(lin), (2, 4, lin, lin)), 0.7 * w + 0.3)
    laned = _lanes.rotate_by(_lanes.lanes(start, 2), _lanes.lanes(w))
    np.testing.assert_allclose(_algebra.rotate_by(start, w), _lanes.unlanes(laned, 2), atol=1e-14)
    np.testing.assert_allclose(_algebra.sinc(w), _lanes.sinc(_lanes.lanes(w))[0], atol=1e-14)
