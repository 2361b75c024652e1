"""Structured solvers against the matrices that they stand for."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.numerics.linalg._banded import (
    BAND,
    band_apply,
    band_factor,
    band_solve,
    band_square,
    from_elements,
    to_band,
    to_elements,
    to_vector,
)
from flexjax.numerics.linalg._block_tridiagonal import (
    LinkedBlocks,
    apply_linked,
    solve_grounded,
    solve_linked,
)
from flexjax.numerics.linalg._element_chain import factor_elements, solve_elements
from flexjax.numerics.linalg._small import gauss_jordan, inverse2, small_cholesky, small_inverse


def positive(rng, *shape):
    x = rng.normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_inverses_of_small_matrices(n):
    m = positive(np.random.default_rng(n), n, n)
    exact = np.linalg.inv(m)
    for inverse in (small_inverse, gauss_jordan, *([inverse2] if n == 2 else [])):
        np.testing.assert_allclose(inverse(jnp.asarray(m)), exact, atol=1e-13)
    np.testing.assert_allclose(small_cholesky(jnp.asarray(m)), np.linalg.cholesky(m), atol=1e-13)


@pytest.mark.parametrize("stride", [1, 2])
def test_bands_are_the_matrices_of_their_elements(stride):
    """Seven coefficients fill no whole number of blocks."""
    rng, count = np.random.default_rng(stride), 4
    index = stride * (np.arange(count) - 1)[:, None] + np.arange(4)
    index = np.where(index < 0, 99, index)  # coefficients before the clamp are dropped
    size = index[index < 99].max() + 1
    blocks, parts = positive(rng, count, 4, 4), rng.normal(size=(count, 4))
    x, rhs = rng.normal(size=(1, size)), rng.normal(size=(1, size, 2))
    dense, vector = np.zeros((100, 100)), np.zeros(100)
    for e in range(count):
        dense[np.ix_(index[e], index[e])] += blocks[e]
        vector[index[e]] += parts[e]
    dense = dense[:size, :size]

    @jax.jit
    def found(blocks, parts, x, rhs):
        band = to_band(jnp.asarray(index), blocks, size)[None]
        return (
            band,
            band_apply(band, x),
            band_square(band, x),
            jax.grad(lambda x: jnp.sum(band_square(band, x)))(x),
            band_solve(band_factor(band), rhs),
            to_vector(jnp.asarray(index), parts, size),
        )

    band, applied, square, slope, solved, assembled = found(blocks, parts, x, rhs)
    offsets = np.arange(size)[None, :] - np.arange(size)[:, None]
    inside = np.abs(offsets) <= BAND
    rows = np.nonzero(inside)[0]
    np.testing.assert_allclose(band[0][rows, offsets[inside] + BAND], dense[inside], atol=1e-14)
    np.testing.assert_allclose(applied[0], dense @ x[0], atol=1e-13)
    np.testing.assert_allclose(square[0], x[0] @ dense @ x[0], rtol=1e-13)
    np.testing.assert_allclose(slope[0], 2 * dense @ x[0], atol=1e-12)
    np.testing.assert_allclose(solved[0], np.linalg.solve(dense, rhs[0]), atol=1e-12)
    np.testing.assert_allclose(assembled, vector[:size], atol=1e-14)


@pytest.mark.parametrize("stride", [1, 2])
def test_coefficients_of_elements_and_back(stride):
    rng, count = np.random.default_rng(0), 3
    size = stride * (count - 1) + 4 - 2
    x, parts = rng.normal(size=(2, size)), rng.normal(size=(2, count, 4))
    padded = np.pad(x, ((0, 0), (2, 0)))
    wanted = np.stack([padded[:, stride * e : stride * e + 4] for e in range(count)], axis=1)
    np.testing.assert_array_equal(to_elements(jnp.asarray(x), count, stride), wanted)
    back = from_elements(jnp.asarray(parts), size, stride)
    np.testing.assert_allclose(np.sum(back * x), np.sum(parts * wanted), rtol=1e-13)
    assert back.shape == x.shape


def blocks(rng, d, n, m, parents, base_attached, count=3):
    """Blocks whose diagonals dominate."""
    L, K = len(parents), count + 1
    draw = lambda *shape: jnp.asarray(0.3 * rng.normal(size=shape))
    heavy = lambda *shape: draw(*shape) + 4 * jnp.eye(shape[-1])[(None,) * (len(shape) - 2)]
    lower, upper = draw(L, K, d, d), draw(L, K, d, d)
    B, A = draw(L, d, n), draw(L, n, d)
    return LinkedBlocks(
        lower=lower.at[:, 0].set(0.0),
        diag=heavy(L, K, d, d),
        upper=upper.at[:, -1].set(0.0),
        X=heavy(L, d, d) / 4,
        B=B,
        A=A,
        T=heavy(L, n, n),
        S=draw(L, n, d),
        Y=draw(L, d, d),
        Z=draw(L, d, n),
        E=draw(L, d, d),
        border_columns=draw(L, 2, d, m),
        border_rows=draw(L, 2, m, d),
        corner=heavy(m, m),
        parents=parents,
        order=tuple(np.argsort(parents, kind="stable").tolist()),
        base_attached=base_attached,
    )


TREES = {
    "one link": ((-1,), (False,), 0),
    "tree with a rigid link and a loop": ((-1, 0, 1, 0), (False, True, False, False), 2),
}


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("tree", TREES)
def test_linked_blocks_solve_what_they_apply(d, tree):
    parents, attached, m = TREES[tree]
    rng = np.random.default_rng(d)
    matrix = blocks(rng, d, 2, m, parents, attached)
    L = len(parents)
    shapes = ((L, 2), (L, 3, d), (m,))
    x, w = ([jnp.asarray(rng.normal(size=s)) for s in shapes] for _ in range(2))

    @jax.jit
    def both(matrix, x, w):
        applied = apply_linked(matrix, *x)
        transposed = matrix.transpose()
        return (
            applied,
            solve_linked(matrix, *applied),
            apply_linked(transposed, *w),
            solve_linked(transposed, *w),
        )

    applied, solved, turned, back = both(matrix, x, w)
    for a, b in zip(solved, x, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    dot = lambda a, b: sum(float(jnp.sum(i * j)) for i, j in zip(a, b, strict=True))
    assert dot(w, applied) == pytest.approx(dot(turned, x), rel=1e-11)
    # <M^-T w, M x> = <w, x>
    assert dot(back, applied) == pytest.approx(dot(w, x), rel=1e-10)


def test_a_batch_of_links_on_the_ground():
    rng = np.random.default_rng(7)
    each = [blocks(rng, 3, 1, 0, (-1,), (False,)) for _ in range(2)]
    r_joint, r = jnp.asarray(rng.normal(size=(2, 1))), jnp.asarray(rng.normal(size=(2, 4, 3)))
    names = ("lower", "diag", "upper")
    last = lambda *x: jnp.stack([y[0] for y in x], axis=-1)
    parts = [last(*(getattr(m, k) for m in each)) for k in (*names, "B", "A", "T")]
    y, V = jax.jit(solve_grounded)(
        *parts[:3], jnp.moveaxis(r, 0, -1), *parts[3:], jnp.moveaxis(r_joint, 0, -1)
    )
    for b, matrix in enumerate(each):
        alone = dataclasses.replace(matrix, X=jnp.zeros((1, 3, 3)))
        wanted = solve_linked(alone, r_joint[b][None], r[b][None, 1:], jnp.zeros(0))
        np.testing.assert_allclose(y[:, b], wanted[0][0], atol=1e-12)
        np.testing.assert_allclose(V[..., b], wanted[1][0], atol=1e-12)


@pytest.mark.parametrize("own", [0, 2, 3])
def test_a_chain_of_elements_with_a_border(own):
    rng, n, node = np.random.default_rng(own), 3, 2
    size = 2 * node + own
    matrices = positive(rng, n, size, size)
    width = node + own
    corner, border = positive(rng, 2, 2) + 40 * np.eye(2), rng.normal(size=(2, n * width))
    free = np.array([True, False])
    dense = np.zeros((n * width, n * width))
    for e in range(n):
        outer = [e * width + i for i in range(node)]
        inner = [(e - 1) * width + i for i in range(node)] if e else [None] * node
        index = [*inner, *outer, *(e * width + node + i for i in range(own))]
        for i, a in enumerate(index):
            for j, b in enumerate(index):
                if a is not None and b is not None:
                    dense[a, b] += matrices[e, i, j]
    r_border, r = rng.normal(size=2), rng.normal(size=n * width)
    whole = np.block([[corner[:1, :1], border[:1]], [border[:1].T, dense]])
    wanted = np.linalg.solve(whole, np.concatenate([r_border[:1], r]))

    @jax.jit
    def found(matrices, border, corner, r_border, r):
        return solve_elements(factor_elements(node, matrices, border, corner, free), r_border, r)

    y, x = found(*map(jnp.asarray, (matrices, border, corner, r_border, r)))
    np.testing.assert_allclose(y, [wanted[0], 0.0], atol=1e-12)
    np.testing.assert_allclose(x, wanted[1:], atol=1e-12)
