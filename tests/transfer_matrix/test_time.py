"""Order, damping and energy of the time step."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx


def _tips(method, steps, end=0.2):
    """Tips at the end for ever smaller steps, of a link moved smoothly by its motor."""
    model = method.bind(fx.load_robot("li-zhang-single-link"))
    drive = fx.Drive(joints={"motor": fx.Motion(fx.quintic(0.0, 1.0, 0.3))})
    return [np.asarray(fx.simulate(model, drive, jnp.array([0.0, end]), substeps=n, stations=2).tip[-1]) for n in steps]


def _order(method):
    a, b, c = _tips(method, (200, 400, 800))
    return float(np.log2(np.linalg.norm(a - b) / np.linalg.norm(b - c)))


ORDERS = {
    "acceleration level, (1/4, 1/2)": (fx.TransferMatrix(segments=4), 2),
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


@pytest.mark.parametrize(
    "name", [n if i == 0 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(ORDERS)]
)
def test_order_in_time(name, record_number):
    method, order = ORDERS[name]
    record_number(f"order in time: {name}", _order(method), (order - 0.15, order + 0.15), "in")


def test_energy_of_a_free_swing(record_number):
    """A link released under gravity: what the step loses or gains is of second order in dt, nothing grows; damping
    takes what it should."""
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
