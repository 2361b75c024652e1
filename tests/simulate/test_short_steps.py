"""A break just before or behind an output leaves a very short step: values and derivatives stay
where they are without it.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import RIGID, each, light, method, settings

SLIVERS = [1e-7, 1e-5, 1e-3, 1e-2]  # in steps


@functools.cache
def arm(rigid: bool) -> fx.Robot:
    link = fx.Link(
        "bar",
        0.5,
        section=fx.Rectangle(0.02, 0.005),
        material=fx.Material.named("aluminium"),
        rigid=rigid,
    )
    return fx.Robot.serial([link], name="bar", gravity=(0.0, 0.0, 0.0))


[arm(rigid) for rigid in (True, False)]

# Coarse steps do not resolve the link, and run away if accelerations are taken for averages.
STEP = {"h": 1e-2}


@pytest.mark.parametrize("name", each(light()))
def test_a_break_beside_an_output(name, record_number):
    h = (STEP | settings(name, "short steps"))["h"]
    model = method(name, "short steps").bind(arm(name in RIGID))
    ts = np.linspace(0.0, 10 * h, 11)

    def height(switch):
        times = jnp.stack([0.0 * switch, switch, 9.5 * h + 0.0 * switch])
        drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(0.02, times))})
        traj = fx.simulate(model, drive, ts, substeps=1, stations=2, throw=False)
        return traj.tip[-1, 1], traj.status

    run = jax.jit(jax.value_and_grad(height, has_aux=True))
    (expected, status), slope = run(jnp.asarray(5 * h))
    assert int(status) == 0
    rate = float(expected) / h
    worst = 0.0
    for sliver in (s * e for e in SLIVERS for s in (1, -1)):
        switch = jnp.asarray((5 - sliver) * h)
        (value, status), slope = run(switch)
        assert int(status) == 0
        assert abs(float(value - expected)) < (1e-6 + 10 * abs(sliver)) * abs(float(expected))
        assert abs(float(slope)) < rate
        if abs(sliver) >= 1e-3:
            d = 1e-2 * abs(sliver) * h
            differences = float(run(switch + d)[0][0] - run(switch - d)[0][0]) / (2 * d)
            worst = max(worst, abs(float(slope) - differences) / rate)
    record_number(f"{name}: derivative w.r.t. a switch beside an output, relative", worst, 1e-5)


def test_outputs_close_to_each_other():
    """The same without a break: a short step of the grid itself, at the start of a run."""
    model = fx.TransferMatrix().bind(arm(False))
    drive = fx.Drive(joints={"joint1": fx.Effort(fx.constant(0.02))})
    runs = [
        fx.simulate(
            model, drive, np.concatenate([first, np.arange(2, 11) * 1e-2]), substeps=1, stations=2
        )
        for first in ([0.0, 1e-2], [0.0, 1e-7])
    ]
    tips = [np.asarray(traj.tip[-1, 1]) for traj in runs]
    np.testing.assert_allclose(tips[1], tips[0], rtol=0.05)
