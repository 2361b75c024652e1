"""Arrays of twists with the components first: every entry equals the function of one twist."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.numerics.linalg._components_first import components_last, mm, mtv, mv, transpose
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import (
    ad,
    coad,
    cross,
    dipole_torque,
    move_orientation,
    orientation_matrix,
    orientation_of,
    resolvent,
    rotate_by,
    sinc,
    space_of,
)


def _normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("d", [3, 6])
def test_twists(d):
    a, b, w = (_normal(seed, d, 2, 4) for seed in range(3))
    for i in range(2):
        for k in range(4):
            bracket = space_of(d).ad(a[:, i, k])
            np.testing.assert_allclose(ad(a)[:, :, i, k], bracket, atol=1e-14)
            one = np.eye(d) + np.asarray(bracket)
            np.testing.assert_allclose(one @ resolvent(a)[:, :, i, k], np.eye(d), atol=1e-13)
    np.testing.assert_allclose(mv(coad(w), a), mtv(ad(a), w), atol=1e-14)
    np.testing.assert_allclose(mv(ad(a), b), -mv(ad(b), a), atol=1e-14)
    product = components_last(mm(ad(a), transpose(ad(b))), 2)
    left, right = (components_last(ad(x), 2) for x in (a, b))
    np.testing.assert_allclose(product, left @ np.swapaxes(right, -1, -2), atol=1e-13)


@pytest.mark.parametrize("planar", [True, False])
def test_orientations(planar):
    w = 0.7 * _normal(0, 1 if planar else 3, 2, 4)
    orientation = jnp.zeros((1, 2, 4)) if planar else jnp.zeros((4, 2, 4)).at[0].set(1.0)
    moved = orientation_matrix(move_orientation(orientation, w))
    np.testing.assert_allclose(moved, rotate_by(orientation_matrix(orientation), w), atol=1e-14)
    full = jnp.concatenate([jnp.zeros_like(w), jnp.zeros_like(w), w]) if planar else w
    lin = 2 if planar else 3
    for i in range(2):
        for k in range(4):
            R = se3.rotation_exp(full[:, i, k])[:lin, :lin]
            np.testing.assert_allclose(moved[:, :, i, k], R, atol=1e-14)
            again = orientation_matrix(orientation_of(moved[:, :, i, k]))
            np.testing.assert_allclose(again, R, atol=1e-14)
    # The velocity of a lever, and the torque of a force on it.
    lever, force = _normal(1, lin, 2, 4), _normal(2, lin, 2, 4)
    power = jnp.sum(cross(w, lever) * force, axis=0)
    torque = dipole_torque(lever[:, None] * force[None])
    np.testing.assert_allclose(power, jnp.sum(torque * w, axis=0), atol=1e-13)


@pytest.mark.parametrize("size", [0.0, 1e-5, 0.0999, 0.1001, 2.0])
def test_sinc(size):
    w = size * jnp.array([2.0, -1.0, 2.0]) / 3.0
    np.testing.assert_allclose(sinc(w)[0], np.sinc(size / np.pi), rtol=1e-14)
    second = jax.hessian(lambda w: sinc(w)[0])(w)
    assert np.all(np.isfinite(second))
    if size == 0.0:
        np.testing.assert_allclose(second, -np.eye(3) / 3, atol=1e-14)
