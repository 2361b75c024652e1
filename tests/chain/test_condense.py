"""The condensation that keeps sweeps at the size of a twist: values and derivatives, also where the
tip cannot move in some directions.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.mechanism.chain.equations._condense import _root, admittance, small_inverse
from flexjax.numerics.linalg import small_cholesky


def _semidefinite(rng, rank, n=6):
    a = rng.normal(size=(n, rank))
    return jnp.asarray(a @ a.T)


@pytest.mark.parametrize(("rank_f", "rank_i"), [(6, 6), (4, 5), (1, 6), (0, 5)])
def test_admittance_is_what_it_says(rank_f, rank_i):
    """N = F (1 + IA F)^-1 for flexibilities and inertias that are singular, as they are behind
    joints and with few shape functions.
    """
    rng = np.random.default_rng(10 * rank_f + rank_i)
    F, IA = _semidefinite(rng, rank_f), _semidefinite(rng, rank_i)
    N = admittance(F, _root(F[None])[0], IA)
    exact = np.asarray(F) @ np.linalg.inv(np.eye(6) + np.asarray(IA) @ np.asarray(F))
    np.testing.assert_allclose(N, exact, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(N, N.T, atol=1e-14)


def test_admittance_has_derivatives_at_singular_flexibility():
    """Through the root there are none; forward, reverse and differences agree all the same."""
    rng = np.random.default_rng(2)
    F, IA, dF, dI = (_semidefinite(rng, r) for r in (3, 5, 3, 5))

    def value(x):
        f = F + x[0] * F @ dF @ F  # moves within the range of F, where differences can follow
        return jnp.sum(
            admittance(f, _root(f[None])[0], IA + x[1] * dI) * jnp.arange(36.0).reshape(6, 6)
        )

    x, h = jnp.zeros(2), 1e-6
    forward, reverse = jax.jacfwd(value)(x), jax.grad(value)(x)
    differences = np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(2)])
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    np.testing.assert_allclose(forward, differences, rtol=1e-6)


def test_small_inverse():
    rng = np.random.default_rng(0)
    for n in (1, 3, 6):
        a = _semidefinite(rng, n, n) + jnp.eye(n)
        np.testing.assert_allclose(small_inverse(a), np.linalg.inv(a), rtol=1e-12, atol=1e-13)


def test_second_derivative_where_the_flexibility_is_singular():
    """The root of F has no derivative there; the rule must hold in second derivatives too, also
    inside a scan.
    """
    rng = np.random.default_rng(1)
    F = jnp.asarray(np.diag([1.0, 2.0, 0.5, 0.0, 0.0, 0.0]))
    IA, dI = (jnp.asarray(a @ a.T) for a in rng.normal(size=(2, 6, 6)))
    weight = jnp.arange(36.0).reshape(6, 6)

    def value(x):
        f = x[0] * F

        def step(c, _):
            N = admittance(f, _root(f[None])[0], IA + x[1] * dI + 0.1 * c * dI)
            return jnp.sum(N * weight), None

        return jax.lax.scan(step, 0.1 * x[1], None, length=2)[0]

    def exact(x):
        c = 0.1 * x[1]
        for _ in range(2):
            A = IA + x[1] * dI + 0.1 * c * dI
            c = jnp.sum(x[0] * F @ jnp.linalg.inv(jnp.eye(6) + A @ (x[0] * F)) * weight)
        return c

    x = jnp.array([1.3, 0.7])
    wanted = jax.hessian(exact)(x)
    for hessian in (jax.jacfwd(jax.grad(value)), jax.jacrev(jax.jacfwd(value))):
        np.testing.assert_allclose(jax.jit(hessian)(x), wanted, rtol=1e-7)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_written_out_root(n):
    a = np.random.default_rng(n).normal(size=(5, 2, n, n))
    m = a @ np.swapaxes(a, -1, -2) + 1e-3 * np.eye(n)
    np.testing.assert_allclose(small_cholesky(jnp.asarray(m)), np.linalg.cholesky(m), atol=1e-13)
    assert np.isnan(small_cholesky(-jnp.eye(n))).any()
