import inspect

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings

from flexjax.numerics.screw import se2, se3
from tests.screw.laws import Laws, check_laws, fit, quick_jit, twists

PLANE = np.array([0, 1, 5])  # where vx, vy, omega stand in a spatial twist


class TestGroup(Laws):
    group = se2


@settings(max_examples=25)
@given(rows=twists())
def test_laws(rows):
    check_laws(se2, rows)


def embed(planar):
    return jnp.zeros(6, planar.dtype).at[PLANE].set(planar)


def embed_pose(pose):
    rotation = jnp.eye(3).at[:2, :2].set(pose.rotation)
    return se3.Pose(rotation, jnp.zeros(3).at[:2].set(pose.position))


@quick_jit
def against_space(x, w):
    block = lambda m: m[PLANE][:, PLANE]
    pose, spatial = se2.exp(x), se3.exp(embed(x))
    lifted = embed_pose(pose)
    return {
        "exp": lifted.rotation - spatial.rotation,
        "exp position": lifted.position - spatial.position,
        "log": embed(se2.log(pose)) - se3.log(spatial),
        "adjoint": se2.adjoint(pose) - block(se3.adjoint(spatial)),
        "adjoint_inverse": se2.adjoint_inverse(pose) - block(se3.adjoint_inverse(spatial)),
        "ad": se2.ad(x) - block(se3.ad(embed(x))),
        "dexp": se2.dexp(x) - block(se3.dexp(embed(x))),
        "dexp_inv": se2.dexp_inv(x) - block(se3.dexp_inv(embed(x))),
        "transport_wrench": embed(se2.transport_wrench(pose, w))
        - se3.transport_wrench(spatial, embed(w)),
        "to_pose7": se2.to_pose7(pose) - se3.to_pose7(spatial),
        "from_pose7": se2.from_pose7(se3.to_pose7(spatial)).rotation - pose.rotation,
    }


@settings(max_examples=20)
@given(rows=twists(2))
def test_is_the_plane_of_se3(rows):
    (x, w), angle = rows
    found = against_space(fit(se2, x, angle), w[:3])
    bad = {name: float(np.abs(r).max()) for name, r in found.items() if not np.abs(r).max() < 1e-13}
    assert not bad


def test_body_inertia_is_the_plane_of_se3():
    planar = quick_jit(se2.body_inertia)(2.0, np.array([0.3, -0.2]), 0.7)
    spatial = quick_jit(se3.body_inertia)(2.0, np.array([0.3, -0.2, 0.0]), np.diag([0.1, 0.2, 0.7]))
    assert np.allclose(planar, np.asarray(spatial)[PLANE][:, PLANE], atol=1e-16)


def test_same_names_as_se3():
    """A chain written against one module runs with the other."""

    def names(module):
        is_function = lambda f: inspect.isfunction(inspect.unwrap(f))  # also compiled ones
        return {n for n, f in inspect.getmembers(module, is_function) if not n.startswith("_")}

    private = {"cross", "mm", "mv", "outer", "skew", "skew_square", "unskew"}
    private |= {"dexp_inv_coefficient", "dexp_inv_coefficients"}
    rotations = {n for n in names(se3) if "quat" in n or n.startswith("so3_")}
    assert names(se2) - private == names(se3) - private - rotations
    for name in names(se2) - private:
        assert list(inspect.signature(getattr(se2, name)).parameters) == list(
            inspect.signature(getattr(se3, name)).parameters
        )
    assert (se2.DIM, se2.LIN, se2.ANG, se3.DIM, se3.LIN, se3.ANG) == (3, 2, 1, 6, 3, 3)
