"""Gradients: forward = reverse = finite differences, in parameters and in the samples of a recorded
drive; nothing is NaN at the straight beam.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

TIMES = np.linspace(0.0, 0.12, 7)
ANGLES = 0.3 * (TIMES / 0.12) ** 2


def _arm():
    robot = fx.load_robot("li-zhang-three-link")
    links, joints = robot.links[:2], robot.joints[:2]
    return fx.Robot.serial(
        links,
        joints,
        payloads=[fx.Payload("load", "link2", 0.05)],
        gravity=(0.0, -9.81, 0.0),
        planar=True,
    )


@pytest.fixture(scope="module")
def tip():
    """Tip x + y after 40 steps, of (log E, log joint stiffness, payload mass, samples of the
    recorded angle).
    """
    robot = _arm()
    method = fx.TransferMatrix(segments=4)

    def run(p):
        changed = robot.replace("links.*.material.E", 71e9 * jnp.exp(p[0])).replace(
            "joints.*.stiffness", 100.0 * jnp.exp(p[1])
        )
        model = method.bind(changed.replace("payloads.load.mass", p[2]))
        motion = fx.Motion(fx.recorded(TIMES, p[3:]))
        traj = fx.simulate(
            model,
            fx.Drive(joints={"joint1": motion, "joint2": motion}),
            jnp.array([0.0, 0.12]),
            substeps=40,
            stations=2,
            throw=False,
        )
        return jnp.sum(traj.tip[-1])

    return run


@pytest.mark.slow
def test_three_routes(tip, record_number):
    p = jnp.asarray(np.concatenate([[0.0, 0.0, 0.05], ANGLES]))
    reverse = np.asarray(jax.jit(jax.grad(tip))(p))
    forward = np.asarray(jax.jit(jax.jacfwd(tip))(p))
    value = jax.jit(tip)
    steps = np.full(p.size, 1e-4)
    differences = np.array(
        [
            (
                8 * (value(p + h * e) - value(p - h * e))
                - (value(p + 2 * h * e) - value(p - 2 * h * e))
            )
            / (12 * h)
            for h, e in zip(steps, np.eye(p.size), strict=True)
        ]
    )
    assert np.all(np.isfinite(reverse)) and np.all(reverse[:4] != 0)
    scale = np.maximum(np.abs(reverse), 1e-2 * np.abs(reverse).max())
    record_number("forward against reverse", np.max(np.abs(forward - reverse) / scale), 1e-10)
    record_number(
        "E, joint stiffness, payload: reverse against differences",
        np.max(np.abs(reverse - differences)[:3] / np.abs(reverse[:3])),
        1e-6,
    )
    record_number(
        "drive samples: reverse against differences",
        np.max(np.abs(reverse - differences)[3:] / scale[3:]),
        1e-6,
    )


def _run(chain, dtype):
    robot = fx.load_robot("li-zhang-three-link")
    drive = fx.Drive(joints={f"joint{i}": fx.Motion(fx.cycloid(0.0, 0.5, 0.1)) for i in (1, 2, 3)})
    model = fx.TransferMatrix(segments=5, chain=chain).bind(robot, dtype=dtype)
    return fx.simulate(model, drive, jnp.linspace(0.0, 0.1, 3), dt=2e-3, stations=2)


@pytest.mark.slow
def test_single_precision(record_number):
    single, double = _run("riccati", jnp.float32), _run("riccati", jnp.float64)
    assert all(
        x.dtype == jnp.float32
        for x in jax.tree.leaves(single)
        if jnp.issubdtype(x.dtype, jnp.floating)
    )
    record_number("single precision, tip [m]", np.abs(single.tip - double.tip).max(), 1e-5)
    moment = np.abs(double.reaction[:, 0, 5]).max()
    record_number(
        "single precision, root moment",
        np.abs(single.reaction[:, 0, 5] - double.reaction[:, 0, 5]).max() / moment,
        1e-3,
    )


@pytest.mark.slow
@pytest.mark.parametrize("chain", ["parallel", "product"])
def test_chain_options_agree(chain, record_number):
    record_number(
        f"{chain} against riccati after 50 steps [m]",
        np.abs(_run(chain, jnp.float64).tip - _run("riccati", jnp.float64).tip).max(),
        1e-11,
    )
