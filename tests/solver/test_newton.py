"""The linear solve of the implicit-function gradient, on systems whose approximate inverse is good,
poor or of no use.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.numerics.linalg._krylov import residual_minimising
from flexjax.numerics.solver._newton import implicit_solve


def system(n, poor, seed=0):
    """(matrix, inverse of a symmetric approximation, right side); ``poor`` is the size of what the
    approximation lacks.
    """
    rng = np.random.default_rng(seed)
    units = np.exp(rng.uniform(-4, 4, n))  # unknowns in different units
    base = np.eye(n) + 0.3 * np.diag(np.ones(n - 1), 1) + 0.3 * np.diag(np.ones(n - 1), -1)
    lack = rng.normal(size=(n, n)) / np.sqrt(n)
    A = units[:, None] * (base + poor * lack) * units[None, :]
    A[3] = np.eye(n)[3]  # a prescribed unknown
    P = units[:, None] * base * units[None, :]
    P[3], P[:, 3], P[3, 3] = 0.0, 0.0, 1.0
    return jnp.asarray(A), jnp.asarray(np.linalg.inv(P)), jnp.asarray(rng.normal(size=n))


@pytest.mark.parametrize("n", [20, 90])
@pytest.mark.parametrize("poor", [0.01, 0.5, 3.0])
def test_linear_solve_equals_dense(n, poor, record_number):
    A, inverse, b = system(n, poor)
    solve = jax.jit(lambda A, b: residual_minimising(lambda r: inverse @ r, lambda x: A @ x, b))
    for matrix, mode in ((A, "forward"), (A.T, "transposed")):
        # Errors in the units of the unknowns: what a direct solve leaves is the measure of what can
        # be had.
        exact = np.linalg.solve(np.asarray(matrix), np.asarray(b))
        gap = np.max(np.abs(solve(matrix, b) - exact)) / np.max(np.abs(exact))
        record_number(f"linear solve of the gradient, {mode}, n {n}, lack {poor}", gap, 1e-10)


def test_more_unknowns_than_kept_directions(record_number):
    A, inverse, b = system(300, 0.5)
    x = jax.jit(lambda b: residual_minimising(lambda r: inverse @ r, lambda x: A @ x, b))(b)
    exact = np.linalg.solve(np.asarray(A), np.asarray(b))
    record_number(
        "linear solve of the gradient, n 300",
        np.max(np.abs(x - exact)) / np.max(np.abs(exact)),
        1e-10,
    )


def test_no_solution_is_not_a_number():
    A, inverse, b = system(20, 0.5)
    singular = A.at[5].set(0.0)
    assert np.all(np.isnan(residual_minimising(lambda r: inverse @ r, lambda x: singular @ x, b)))
    assert np.all(residual_minimising(lambda r: inverse @ r, lambda x: A @ x, jnp.zeros(20)) == 0)


@pytest.mark.parametrize("n", [10, 40])
def test_forward_reverse_dense(n, record_number):
    """Through a root that Newton finds with an approximate matrix; both modes, and a batch, against
    the dense formula.
    """
    A, inverse, b = system(n, 0.05)
    bend = 0.01 * jnp.diag(A)

    def root(k):
        def residual(x):
            return A @ x + k[0] * bend * jnp.sin(x) - b * k[1]

        x, _, ok = implicit_solve(residual, lambda r: inverse @ r, jnp.zeros(n), jnp.asarray(1e-3))
        return x, ok

    k = jnp.array([0.7, 1.3])
    x, ok = jax.jit(root)(k)
    assert ok
    jacobian = np.asarray(A + jnp.diag(k[0] * bend * jnp.cos(x)))
    dense = -np.linalg.solve(jacobian, np.stack([bend * np.sin(x), -b], axis=1))
    forward, reverse = (
        jax.jit(jax.jacfwd(lambda k: root(k)[0]))(k),
        jax.jit(jax.jacrev(lambda k: root(k)[0]))(k),
    )
    for name, got in (("forward", forward), ("reverse", reverse)):
        gap = np.max(np.abs(got - dense), axis=0) / np.max(np.abs(dense), axis=0)
        record_number(f"gradient of a root, {name}, n {n}, against dense", np.max(gap), 1e-10)
    batch = jax.jit(jax.vmap(jax.grad(lambda k: jnp.sum(root(k)[0]))))(jnp.stack([k, 2 * k, 0 * k]))
    alone = jax.jit(jax.grad(lambda k: jnp.sum(root(k)[0])))
    np.testing.assert_allclose(batch, [alone(k), alone(2 * k), alone(0 * k)], rtol=1e-10)


def test_what_the_matrix_neglects_is_learnt(record_number):
    """Three of thirty directions in which the approximate matrix is off by a factor of three: plain
    iterations diverge there, with the secants they end.
    """
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    factors = np.concatenate([[3.0, -2.0, 2.5], 1 + 0.05 * rng.normal(size=27)])
    A, b = jnp.asarray(basis * factors @ basis.T), jnp.asarray(rng.normal(size=30))

    def residual(x):
        return A @ x + 0.05 * jnp.sin(x) - b

    x, count, ok = jax.jit(
        lambda guess: implicit_solve(residual, lambda r: r, guess, jnp.asarray(1e-3))
    )(jnp.zeros(30))
    assert ok
    record_number(
        "Newton with a poor matrix: residual at the end", np.max(np.abs(residual(x))), 1e-13
    )
    record_number("the same: iterations", count, 20)


def test_an_ended_run_of_a_batch_makes_no_iteration():
    A, inverse, b = system(20, 0.5)

    def solve(b, running):
        return implicit_solve(
            lambda x: A @ x - b,
            lambda r: inverse @ r,
            jnp.zeros(20),
            jnp.asarray(1e-3),
            running=running,
        )

    both = jax.jit(jax.vmap(solve))
    x, count, ok = both(jnp.stack([b, jnp.nan * b]), jnp.array([True, False]))
    assert count[0] > 0 and count[1] == 0 and ok[0] and not ok[1] and np.all(x[1] == 0)
    alone, _, _ = both(jnp.stack([b, b]), jnp.array([True, True]))
    assert np.array_equal(x[0], alone[0])
