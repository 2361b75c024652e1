"""A joint transmits a whole step: where the twists lead both sides is where the joint puts them,
for every type.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.port_hamiltonian import _joint
from flexjax.numerics.screw import se3
from tests.port_hamiltonian import zoo

COLUMNS = {"universal": 2, "prismatic": 1, "spherical": 3, "free": 6}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_step_ends_on_the_joint(kind, record_number):
    k, rng = COLUMNS[kind], np.random.default_rng(0)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape))

    def unit():
        x = normal(3)
        return x / jnp.linalg.norm(x)

    zero, eye = jnp.zeros(3), jnp.eye(3)
    turns = (unit(), unit()) if kind == "universal" else (zero, zero)
    shift = {"prismatic": unit()[:, None], "free": jnp.concatenate([eye, 0 * eye], axis=1)}.get(
        kind, jnp.zeros((3, k))
    )
    ball = {"spherical": eye, "free": jnp.concatenate([0 * eye, eye], axis=1)}.get(
        kind, jnp.zeros((3, k))
    )
    joint = _joint.JointParameters(
        se3.rotation_exp(normal(3)),
        normal(3),
        *turns,
        shift,
        ball,
        jnp.zeros(()),
        jnp.zeros(k),
        zero,
    )
    plain = {"universal": 2, "prismatic": 1, "spherical": 0, "free": 3}[kind]
    mask = jnp.arange(k) < plain
    q, turned = jnp.where(mask, normal(k), 0.0), se3.rotation_exp(normal(3)) if k > 2 else eye
    R, x = se3.rotation_exp(normal(3)), normal(3)
    child_R, child_x = _joint.place(joint, q, turned, R, x)
    # A quarter of a radian in half a step: nothing is small.
    h, V, y = jnp.asarray(0.05), 3 * normal(6), 3 * normal(k)
    W = _joint.base_twist(joint, _joint.JointStage(q, turned, R, child_R, jnp.zeros(())), h, V, y)

    def moved(R, x, V):
        return R @ se3.rotation_exp(2 * h * V[3:]), x + 2 * h * R @ se3.rotation_exp(h * V[3:]) @ V[
            :3
        ]

    wanted = _joint.place(
        joint,
        q + 2 * h * jnp.where(mask, y, 0.0),
        turned @ se3.rotation_exp(2 * h * ball @ y),
        *moved(R, x, V),
    )
    gap = max(
        float(jnp.max(jnp.abs(a - b)))
        for a, b in zip(moved(child_R, child_x, W), wanted, strict=True)
    )
    record_number(f"end of a step off its {kind} joint", gap, 1e-14)


@pytest.mark.slow
def test_loop_in_space_does_no_work(record_number):
    """A four-bar in space closed by a revolute joint, whose moments hold an axis."""
    model = fx.PortHamiltonian(elements=2).bind(zoo.closed_spatial())
    traj = fx.simulate(
        model,
        fx.Drive(joints={"j1": fx.Effort(fx.constant(0.3))}),
        jnp.array([0.0, 0.05, 0.1]),
        substeps=50,
    )
    b = np.asarray(traj.energy.balance)
    record_number(
        "closed chain in space: energy balance over the kinetic energy",
        np.max(np.abs(b - b[0])) / float(np.max(traj.energy.kinetic)),
        1e-11,
    )
    gap = np.max(np.abs(np.asarray(traj.frames[:, 2, -1, :3]) - np.array([0.55, -0.05, 0.0])))
    record_number("closed chain in space: opening of the loop [m]", gap, 1e-12)
