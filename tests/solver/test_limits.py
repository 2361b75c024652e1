"""Efforts at their limits: in a linear step the first guess is the solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.numerics.solver._limits import _efforts, first_guess
from flexjax.numerics.term import Limits

N, ROWS = 4, (2, 0)
WEIGHT, CV, CQ = 0.2, 0.1, 0.05
KP, KD = jnp.array([3.0, 20.0]), jnp.array([2.0, 1.0])
SLOPE = CV * KD + CQ * KP


def problem(seed, free):
    """Matrix, right side, efforts at zero; ``free`` of them are far from their limits."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N))
    bound = np.where(np.arange(2) < free, 50.0, 0.4)
    return root @ root.T + np.eye(N), 3 * rng.normal(size=N), rng.normal(size=2), bound


@pytest.mark.parametrize("free", [0, 1, 2])
def test_first_guess_of_a_linear_step(free):
    A, b, u0, bound = map(jnp.asarray, problem(free, free))
    rows = jnp.array(ROWS)

    def effort(x):
        return u0 - SLOPE / WEIGHT * x[rows]

    def limits(x):
        return Limits(effort(x), bound, KP, KD, ROWS)

    def residual(x):
        push = jnp.clip(effort(x), -bound, bound)
        return A @ x - b - WEIGHT * jnp.zeros(N).at[rows].set(push)

    def matrix(inside):
        return A + jnp.diag(jnp.zeros(N).at[rows].set(jnp.where(inside, SLOPE, 0.0)))

    start = jnp.zeros(N)
    inside = jnp.abs(effort(start)) < bound

    @jax.jit
    def found(r):
        given = lambda r: jnp.linalg.solve(matrix(inside), r)
        guess, precondition = first_guess(limits, WEIGHT, CV, CQ, start, residual, given)
        return guess, residual(guess), precondition(r), jnp.abs(effort(guess)) < bound

    r = jnp.arange(1.0, N + 1)
    guess, gap, corrected, now = found(r)
    if free == 2:
        assert not np.any(guess)  # no limit is met: Newton starts where it would
    else:
        np.testing.assert_allclose(gap, 0.0, atol=1e-12)
        assert np.any(~np.asarray(now))
    np.testing.assert_allclose(matrix(now) @ corrected, r, rtol=1e-10)


def test_efforts_solve_their_own_problem():
    """f = clip(effort - slope (start + response f)) within the bounds, for three coupled rows."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    response = root @ root.T + 0.1 * np.eye(3)
    effort, start = 2 * rng.normal(size=3), rng.normal(size=3)
    slope, bound = np.array([0.5, 2.0, 1.0]), np.array([0.3, 5.0, 0.6])
    # Efforts are given where the rows do not move.
    args = map(jnp.asarray, (effort, slope, bound, response, start, np.zeros(3)))
    force, inside = jax.jit(_efforts)(*args)
    free = effort - slope * (start + response @ force)
    np.testing.assert_allclose(force, np.clip(free, -bound, bound), atol=1e-12)
    np.testing.assert_array_equal(inside, np.abs(free) < bound)
    assert 0 < np.sum(inside) < 3
