import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from scipy.spatial.transform import Rotation

from flexjax.numerics.screw import se3
from tests.screw.laws import Laws, check_laws, quick_jit, twists


class TestGroup(Laws):
    group = se3


@settings(max_examples=25)
@given(rows=twists())
def test_laws(rows):
    check_laws(se3, rows)


def scipy_quat(quat):
    return np.roll(np.asarray(quat), -1)


def test_quaternions_against_scipy():
    rng = np.random.default_rng(1)
    exp, log, retract = (
        quick_jit(se3.quat_exp),
        quick_jit(se3.quat_log),
        quick_jit(se3.quat_retract),
    )
    multiply, matrix, quat = (
        quick_jit(se3.quat_multiply),
        quick_jit(se3.quat_to_matrix),
        quick_jit(se3.matrix_to_quat),
    )
    for scale in (0.0, 1e-9, 1e-3, 0.02, 1.0, 3.0):
        w = rng.normal(size=3)
        w *= scale / np.linalg.norm(w)
        turn, other = Rotation.from_rotvec(w), Rotation.random(rng=rng)
        q, p = np.roll(turn.as_quat(), 1), np.roll(other.as_quat(), 1)
        assert np.allclose(exp(w), q, atol=1e-15)
        assert np.allclose(log(q), w, rtol=1e-14, atol=1e-16) and np.allclose(
            log(-q), w, rtol=1e-14, atol=1e-16
        )
        assert np.allclose(
            Rotation.from_quat(scipy_quat(multiply(p, q))).as_matrix(), (other * turn).as_matrix()
        )
        assert np.allclose(matrix(2.0 * q), turn.as_matrix(), atol=1e-15)
        assert np.allclose(quat(other.as_matrix()), p * np.sign(p[0]), atol=1e-15)
        moved = retract(p * (1 + 1e-3), w)
        assert np.isclose(np.linalg.norm(moved), 1.0, atol=1e-15)
        assert np.allclose(
            Rotation.from_quat(scipy_quat(moved)).as_matrix(),
            (other * turn).as_matrix(),
            atol=1e-14,
        )


@quick_jit
def about_half_turn(quat, rotation):
    along_w = jnp.eye(4, dtype=quat.dtype)[0]
    found = se3.matrix_to_quat(rotation)
    slopes = jax.jacfwd(se3.rotation_log)(rotation), jax.jacrev(se3.rotation_log)(rotation)
    return *jax.jvp(se3.quat_log, (quat,), (along_w,)), found, se3.quat_to_matrix(found), *slopes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_turns(dtype):
    """At w = 0 the logarithm is differentiable, and the matrix has a unit quaternion."""
    tiny = float(np.finfo(dtype).eps)
    for axis in np.concatenate([np.eye(3), -np.eye(3), [[0.6, -0.8, 0.0]]]):
        rotation = Rotation.from_rotvec(np.pi * axis).as_matrix().astype(dtype)
        for w in (0.0, 1e-12):
            value, slope, quat, matrix, forward, reverse = about_half_turn(
                np.array([w, *axis], dtype), rotation
            )
            assert value.dtype == dtype and np.allclose(value, np.pi * axis, atol=4 * tiny)
            assert np.allclose(slope, -2.0 * axis, atol=1e-9 + 4 * tiny)
            assert np.isclose(np.linalg.norm(quat), 1.0, atol=2 * tiny)
            assert np.allclose(matrix, rotation, atol=4 * tiny)
            assert np.allclose(forward, reverse, atol=8 * tiny) and np.all(np.isfinite(forward))


def test_quaternion_derivatives():
    @quick_jit
    def jacobians(w):
        def chain(w):
            quat = se3.quat_retract(se3.quat_exp(w), 0.3 * w)
            return quat, se3.quat_log(quat), se3.quat_to_matrix(quat)

        return jax.jacfwd(chain)(w), jax.jacrev(chain)(w)

    generic = np.array([0.3, -0.7, 0.4])
    for w in (np.zeros(3), 1e-9 * generic, generic, 2.4 / np.linalg.norm(generic) * generic):
        forward, reverse = jacobians(w)
        for a, b in zip(forward, reverse, strict=True):
            assert np.abs(a - b).max() < 1e-14
        assert np.abs(forward[1] - 1.3 * np.eye(3)).max() < 1e-13
    # quat_exp = (1 - |w|^2/8, w/2) to second order
    second = quick_jit(jax.hessian(se3.quat_exp))(np.zeros(3))
    assert np.array_equal(second[0], -0.25 * np.eye(3)) and not np.any(second[1:])


def test_rotation_derivatives():
    """so3_dexp is the angular block of dexp, and so is its inverse."""
    twist = np.array([1.0, 2.0, 3.0, 0.3, -0.7, 0.4])
    for rotation, motion in ((se3.so3_dexp, se3.dexp), (se3.so3_dexp_inv, se3.dexp_inv)):
        assert np.allclose(
            quick_jit(rotation)(twist[3:]), quick_jit(motion)(twist)[3:, 3:], atol=2e-16
        )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-5), (np.float64, 1e-13)])
def test_many_turns(dtype, tolerance):
    """Joints that spin pass hundreds of radians: the rotation must lose no more than the angle
    itself.
    """
    w = np.array([0.48, -0.6, 0.64]) * 300.0
    found = quick_jit(se3.rotation_exp)(w.astype(dtype))
    expected = Rotation.from_rotvec(np.asarray(w.astype(dtype), np.float64)).as_matrix()
    assert np.abs(found - expected).max() < tolerance


def test_body_inertia_gives_the_kinetic_energy():
    rng = np.random.default_rng(2)
    mass, com, twist = 1.7, rng.normal(size=3), rng.normal(size=6)
    root = rng.normal(size=(3, 3))
    central = root @ root.T
    velocity = twist[:3] + np.cross(twist[3:], com)
    energy = 0.5 * mass * velocity @ velocity + 0.5 * twist[3:] @ central @ twist[3:]
    matrix = np.asarray(quick_jit(se3.body_inertia)(mass, com, central))
    assert np.isclose(0.5 * twist @ matrix @ twist, energy, rtol=1e-14) and np.array_equal(
        matrix, matrix.T
    )


def test_under_vmap_and_scan():
    """As a chain uses it: many joints at once, then one pose after the other."""
    twists = jnp.asarray(np.random.default_rng(3).normal(size=(5, 6)))

    @quick_jit
    def run(twists):
        steps = jax.vmap(se3.exp)(twists)
        return jax.lax.scan(lambda a, b: (se3.compose(a, b), None), se3.identity(), steps)[0]

    end, expected = run(twists), np.eye(4)
    for z in twists:
        expected = expected @ scipy.linalg.expm(np.asarray(se3.hat(z)))
    assert np.allclose(end.rotation, expected[:3, :3], atol=1e-14)
    assert np.allclose(end.position, expected[:3, 3], atol=1e-14)
