"""What a long chain tells Newton's iteration of its round-off."""

import types

import jax.numpy as jnp
import numpy as np

from flexjax.mechanism.chain.equations._dynamics import LONG, AbstractChainDynamics


def test_roundoff_of_momenta_moves_joints_by_their_compliance():
    v, compliance = jnp.array([2.0, -5.0, 1.0]), np.array([0.5, 0.1, 3.0])
    chain = types.SimpleNamespace(_split=lambda p: p[:, None], momentum=lambda q, v: 3 * v)
    factors = types.SimpleNamespace(D_inverse=jnp.asarray(compliance)[:, None, None])
    chain.layout = types.SimpleNamespace(stages=range(LONG))
    found = AbstractChainDynamics.roundoff(chain, factors, v, v)
    wanted = 8 * np.finfo(float).eps * np.max(3 * np.abs(v) * compliance)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    chain.layout.stages = range(LONG - 1)
    assert AbstractChainDynamics.roundoff(chain, factors, v, v) is None
