"""Order, damping and energy of the time step."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from benchmarks import three_link
from tests.contract_cases import elastic_pair, pair_drive
from tests.transfer_matrix.cases import marcher


def _order(method):
    """From steps of 0.125 ms on.

    The fastest mode of four segments has 161 Hz; at 1 ms (omega dt = 1) the differences are not yet
    those of the leading error: the position form reads 2.7, 1.8, 1.4 there, and 2.0 from here on.
    """
    drive = fx.Drive(joints={"motor": fx.Motion(fx.quintic(0.0, 1.0, 0.3))})
    run = marcher(method, fx.load_robot("li-zhang-single-link"), drive, 0.2)
    a, b, c = (np.asarray(run(n)[0]) for n in (1600, 3200, 6400))
    return float(np.log2(np.linalg.norm(a - b) / np.linalg.norm(b - c)))


ORDERS = {
    "acceleration level, (1/4, 1/2)": (fx.TransferMatrix(segments=4), 2),
    "acceleration level, one pass": (fx.TransferMatrix(segments=4, passes=1), 2),
    "acceleration level, extrapolated": (
        fx.TransferMatrix(segments=4, linearisation="extrapolated"),
        2,
    ),
    "acceleration level, (0.7, 0.8)": (fx.TransferMatrix(segments=4, beta=0.7, gamma=0.8), 1),
    "position, Newton, (0.3, 0.5)": (fx.TransferMatrix(segments=4, variant="paper", beta=0.3), 2),
    "position, extrapolated, (0.3, 0.5)": (
        fx.TransferMatrix(segments=4, variant="paper", beta=0.3, linearisation="extrapolated"),
        2,
    ),
    "position, frozen, (0.3, 0.5)": (
        fx.TransferMatrix(segments=4, variant="paper", beta=0.3, linearisation="frozen"),
        1,
    ),
}


FAST = (
    "acceleration level, (1/4, 1/2)",
    "position, extrapolated, (0.3, 0.5)",
    "position, frozen, (0.3, 0.5)",
)


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in ORDERS]
)
def test_order_in_time(name, record_number):
    method, order = ORDERS[name]
    record_number(f"order in time: {name}", _order(method), (order - 0.05, order + 0.05), "in")


@pytest.mark.slow
def test_order_with_a_controller_on_a_light_joint(record_number):
    """A jump of the controller's target bends the half segments beside the joint within 1 ms.

    Bend and segments by one rule keep the order; the joint by backward differences beside the
    segments' trapezoidal rule read 1.5 (1.9 with steps of 16 us).
    """
    drive = fx.Drive(joints={"elbow": fx.PD(3.0, 0.1, fx.constant(0.6))})
    run = marcher(fx.TransferMatrix(segments=4), elastic_pair(), drive, 0.2)
    a, b, c = (np.asarray(run(n)[0]) for n in (800, 1600, 3200))
    order = float(np.log2(np.linalg.norm(a - b) / np.linalg.norm(b - c)))
    record_number("order in time: two links with a controller", order, (1.95, 2.05), "in")


def test_steps_that_do_not_resolve_the_segments(record_number):
    """Short segments, dampers and a controller on light bodies, steps 67 periods of the fastest
    mode long: the motion is still that of small steps, and the energy balance is of second order.
    """
    run = marcher(fx.TransferMatrix(segments=16), elastic_pair(), pair_drive(), 0.3)
    fine, _, _ = run(1920)
    errors = []
    for steps in (60, 120, 240):
        tip, first, last = run(steps)
        scale = abs(float(last.work)) + abs(float(last.dissipated))
        errors.append([np.abs(tip - fine).max(), abs(float(last.balance - first.balance)) / scale])
    record_number("16 segments, dt = 5 ms: tip [m]", errors[0][0], 1e-3)
    record_number("16 segments, dt = 5 ms: energy balance", errors[0][1], 5e-3)
    record_number(
        "16 segments: fall of the balance's error from 5 to 1.25 ms",
        errors[0][1] / errors[2][1],
        6.0,
        ">",
    )


@pytest.mark.slow
def test_energy_of_a_long_undamped_swing(record_number):
    """Three free links tumbling for 20 s without any damping: neither growth nor decay."""
    run = marcher(fx.TransferMatrix(segments=10, rotary=False), three_link.arm(), fx.Drive(), 20.0)
    _, first, last = run(10000)
    record_number(
        "three free links, 20 s, dt = 2 ms: energy [J]",
        abs(float(last.balance - first.balance)),
        1e-3,
    )


def test_energy_of_a_free_swing(record_number):
    """A link released under gravity: what the step loses or gains is of second order in dt, nothing
    grows; damping takes what it should.
    """
    link = fx.Link(
        "link",
        1.0,
        section=fx.Rectangle(0.01, 0.01),
        material=fx.Material(E=70e9, nu=0.3, rho=2700.0),
        damping=fx.Damping(strain_rate=1e-4),
    )
    model = fx.TransferMatrix(segments=4).bind(fx.Robot.serial([link]))
    drift = []
    for n in (100, 200):
        e = fx.simulate(model, None, jnp.linspace(0.0, 1.0, 11), substeps=n // 10).energy
        drift.append(np.abs(e.balance - e.balance[0]).max() / np.abs(e.gravity).max())
    assert float(e.dissipated[-1]) > 0
    record_number("energy balance of a swing at dt = 5 ms", drift[1], 2e-3)
    record_number("fall of the drift when dt is halved", drift[0] / drift[1], 3.0, ">")
