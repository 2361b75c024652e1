"""Numbers of independent codes of the same method: same segments, step, pair and passes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import Mechanical, State
from tests.transfer_matrix.cases import reference, single_drive, three_drive

TS = jnp.linspace(0.0, 1.0, 21)


def _rows(times):
    return np.array([round(t / 0.05) for t in times])


@pytest.mark.parametrize("half", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_single_link(half, record_number):
    row = reference()["single"][f"run E6.9e+10 half{int(half)} be0.7 ga0.8"]
    method = fx.TransferMatrix(segments=60, beta=0.7, gamma=0.8, variant="paper", half_springs=half)
    traj = fx.simulate(
        method.bind(fx.load_robot("li-zhang-single-link")), single_drive(), TS, dt=2e-3
    )
    at = _rows(row["t"])
    record_number(
        f"single link, half springs {half}: tip [m]",
        np.abs(traj.tip[at, :2] - np.stack([row["x"], row["y"]], 1)).max(),
        1e-9,
    )
    record_number(
        f"single link, half springs {half}: root moment [N m]",
        np.abs(traj.reaction[at, 0, 5] + np.array(row["root_moment"])).max(),
        1e-8,
    )


@pytest.fixture(scope="module")
def three_acceleration():
    method = fx.TransferMatrix(
        segments=20, beta=0.7, gamma=0.51, rotary=False, linearisation="extrapolated"
    )
    return fx.simulate(
        method.bind(fx.load_robot("li-zhang-three-link")), three_drive(), TS, dt=1e-3
    )


def test_three_links_acceleration_level(three_acceleration, record_number):
    row = reference()["acceleration_level_runs"]["acc half flex1 0.7 0.51"]
    at = _rows(row["t"])
    record_number(
        "three links, acceleration level: tip [m]",
        np.abs(three_acceleration.tip[at, :2] - np.array(row["tip"])).max(),
        1e-9,
    )
    moment = three_acceleration.reaction[at, 0, 5]
    record_number(
        "three links, acceleration level: root moment [N m]",
        np.abs(moment + np.array(row["root_moment"])).max(),
        1e-7,
    )


@pytest.mark.slow
def test_three_links_published(three_acceleration, record_number):
    row = reference()["three"]["flex1 half1"]
    at, want = _rows(row["t"]), np.array(row["samples"])
    method = fx.TransferMatrix(
        segments=20, beta=0.7, gamma=0.51, variant="paper", half_springs=True
    )
    traj = fx.simulate(
        method.bind(fx.load_robot("li-zhang-three-link")), three_drive(), TS, dt=1e-3
    )
    record_number(
        "three links, published form: tip [m]", np.abs(traj.tip[at, :2] - want[:, :2]).max(), 1e-9
    )
    record_number(
        "three links, published form: link deflections [m]",
        np.abs(traj.deflection[at][:, :, -1, 1] - want[:, 4:7]).max(),
        1e-9,
    )
    record_number(
        "three links, published form: joint springs [rad]",
        np.abs((traj.q - traj.motor)[at] - want[:, 7:10]).max(),
        1e-9,
    )
    # The two forms differ by their time integration only.
    record_number(
        "published form against acceleration level [m]",
        np.abs(traj.tip - three_acceleration.tip).max(),
        2e-5,
    )


@eqx.filter_jit
def _stiffness(model, drive):
    """Jacobian of the accelerations by the angles, motors locked."""
    term = model.term(drive)
    t = jnp.asarray(10.0)
    y = model.initial_state(drive, t, Start())

    def acceleration(q):
        return term.rate(
            t, State(Mechanical(q, jnp.zeros_like(y.mech.v)), y.work, y.dissipated, y.memory), None
        ).v

    return jax.jacfwd(acceleration)(y.mech.q)


def _frequencies(model, drive):
    """Natural frequencies [Hz]."""
    squared = np.linalg.eigvals(-np.asarray(_stiffness(model, drive))).real
    return np.sqrt(np.sort(squared[squared > 1.0])) / (2 * np.pi)


def _error(n, half):
    method = fx.TransferMatrix(segments=n, half_springs=half, rotary=False)
    f = _frequencies(
        method.bind(fx.load_robot("li-zhang-single-link")),
        fx.Drive(joints={"motor": fx.Motion(fx.constant(0.0))}),
    )
    return f[:3] / np.array(reference()["frequencies"]["EB_f_E69e9"]) - 1


@pytest.mark.parametrize("half", [True, False])
def test_frequencies(half, record_number):
    """First order in the segment length with N - 1 springs, second with half springs, and the
    printed digits.
    """
    table = {
        row["N"]: np.array(row["rel_err_half" if half else "rel_err_Nminus1"])
        for row in reference()["frequencies"]["freq_table"]
    }
    errors = {n: _error(n, half) for n in (10, 20, 40)}
    for n, e in errors.items():
        record_number(
            f"frequency errors, N = {n}, half springs {half}", np.abs(e - table[n]).max(), 1e-7
        )
    order = np.log2(errors[20][0] / errors[40][0])
    record_number(
        f"order of the first frequency, half springs {half}",
        order,
        (1.98, 2.02) if half else (0.98, 1.06),
        "in",
    )


@pytest.mark.slow
def test_locked_motor_frequencies(record_number):
    """Table III at the final pose 30, 60, 90 degrees: flexible joints lower the frequency, as the
    paper says.
    """
    drive = fx.Drive(joints={f"joint{i}": fx.Motion(fx.constant(np.pi / 6)) for i in (1, 2, 3)})
    for name, want in (("li-zhang-three-link", 4.710), ("li-zhang-three-link-rigid-joints", 5.348)):
        f = _frequencies(fx.TransferMatrix(segments=20).bind(fx.load_robot(name)), drive)
        record_number(f"first frequency of {name} [Hz], printed {want}", abs(f[0] - want), 5e-3)
