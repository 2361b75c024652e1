"""Dense equations without LAPACK: values, derivatives, batches; and that no LAPACK stands in the program."""

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.solver import dense_solve


def test_solution_derivatives_and_batches(record_number):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(4, 7, 7)), rng.normal(size=(4, 7))
    A[0, 0, 0] = 0.0  # needs a pivot
    wanted = np.stack([np.linalg.solve(a, r) for a, r in zip(A, b, strict=True)])
    found = jax.vmap(dense_solve)(jnp.asarray(A), jnp.asarray(b))
    record_number("dense equations without LAPACK: solution", np.max(np.abs(found - wanted)), 1e-11)

    def loss(solve):
        return lambda a, r: jnp.sum(jnp.sin(solve(a, r)))

    ours, theirs = (jax.jit(jax.grad(loss(f), argnums=(0, 1)))(jnp.asarray(A[0]), jnp.asarray(b[0])) for f in (dense_solve, jnp.linalg.solve))
    record_number("dense equations without LAPACK: gradient", max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(ours, theirs, strict=True)), 1e-10)
    moved = [jax.jvp(f, (jnp.asarray(A[1]), jnp.asarray(b[1])), (jnp.asarray(A[2]), jnp.asarray(b[2])))[1] for f in (dense_solve, jnp.linalg.solve)]
    record_number("dense equations without LAPACK: forward derivative", np.max(np.abs(moved[0] - moved[1])) / np.max(np.abs(moved[1])), 1e-11)
    assert "lapack" not in jax.jit(jax.grad(loss(dense_solve))).lower(A[0], b[0]).as_text()


def test_a_singular_matrix_is_seen():
    assert not np.isfinite(np.asarray(dense_solve(jnp.ones((3, 3)), jnp.arange(3.0)))).all()
