"""Linear models for other programs: python-control, MAT files, balanced truncation."""

import numpy as np
import pytest
import scipy.io

import flexjax as fx
from flexjax.simulate.analysis._state_space import Matrices, balance, observed
from tests._sample import sample_model


def held(kp=20.0, kd=1.0):
    """PD controllers at home: elsewhere the motors would be at their limits, and hold nothing."""
    home = {"shoulder": 0.0, "elbow": -0.5}
    return fx.Drive(joints={n: fx.PD(kp, kd, fx.constant(x)) for n, x in home.items()})


def linear():
    return fx.linearise(sample_model(), held())


def gain(system, omega):
    A, B, C, D = (np.asarray(x) for x in (system.A, system.B, system.C, system.D))
    return C @ np.linalg.solve(1j * omega * np.eye(len(A)) - A, B) + D


def oscillators(n, zeta=0.02):
    """n damped oscillators in parallel, with gains that fall by ten each."""
    A = np.zeros((2 * n, 2 * n))
    B, C = np.zeros((2 * n, 1)), np.zeros((1, 2 * n))
    for i in range(n):
        w = 10.0 * (i + 1) ** 2
        A[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[0, 1], [-w * w, -2 * zeta * w]]
        B[2 * i + 1, 0], C[0, 2 * i] = 1.0, w * w * 10.0**-i
    return Matrices(A, B, C, np.zeros((1, 1)))


def as_linear(system):
    return fx.Linear(*system, ("u",), ("y",), ("N",), ("m",))


def test_error_bound_and_static_gain():
    system = as_linear(oscillators(5))
    hankel = system.hankel_values()
    assert np.all(np.diff(hankel) <= 0)
    for order in (2, 4, 6):
        reduced = system.reduce(order)
        assert reduced.A.shape == (order, order)
        assert np.max(np.linalg.eigvals(reduced.A).real) < 0
        bound = 2 * np.sum(hankel[order:])
        errors = [
            np.abs(gain(system, w) - gain(reduced, w)).max() for w in np.geomspace(1, 1e4, 60)
        ]
        assert max(errors) <= bound * (1 + 1e-6), order
        np.testing.assert_allclose(gain(reduced, 0.0), gain(system, 0.0), rtol=1e-9)
    assert system.reduce(tolerance=0.5).A.shape[0] < system.reduce(tolerance=1e-3).A.shape[0]


def test_one_oscillator_has_known_hankel_values():
    """w^2 / (p^2 + 2 z w p + w^2): (sqrt(1 + z^2) +- z) / (4 z)."""
    zeta = 0.1
    system, _ = observed(oscillators(1, zeta))
    root = np.sqrt(1 + zeta**2)
    want = np.array([root + zeta, root - zeta]) / (4 * zeta)
    np.testing.assert_allclose(balance(system).hankel, want, rtol=1e-9)


def test_units_of_states_do_not_matter():
    """Displacements in micrometres and speeds in km/h give the same Hankel values."""
    system = oscillators(4)
    scale = np.tile([1e6, 3.6e-3], 4)
    other = Matrices(
        scale[:, None] * system.A / scale, scale[:, None] * system.B, system.C / scale, system.D
    )
    np.testing.assert_allclose(balance(other).hankel, balance(system).hankel, rtol=1e-6)


def test_reduced_arm():
    full = linear()
    reduced = full.reduce(3)
    assert reduced.A.shape == (3, 3) and reduced.outputs == full.outputs
    np.testing.assert_allclose(gain(reduced, 0.0), gain(full, 0.0), rtol=1e-8, atol=1e-12)


def test_refusals():
    free = fx.linearise(sample_model(), None)
    with pytest.raises(ValueError, match="reduce: .*eigenvalues lie on or right of"):
        free.reduce(2)
    with pytest.raises(ValueError, match="a motion that is not damped"):
        as_linear(oscillators(2, 0.0)).reduce(2)
    with pytest.raises(ValueError, match="neither spring nor damping"):
        as_linear(Matrices(np.zeros((1, 1)), *(np.ones((1, 1)),) * 3)).reduce(1)
    with pytest.raises(ValueError, match="order: 9; expected a whole number from 1 to 4"):
        linear().reduce(9)
    with pytest.raises(ValueError, match="ends in .mat"):
        linear().to_mat("arm.m")


def test_mat_file(tmp_path):
    found = linear()
    path = found.to_mat(tmp_path / "arm.mat")
    data = scipy.io.loadmat(path)
    for name in "ABCD":
        np.testing.assert_array_equal(data[name], np.asarray(getattr(found, name)))
    assert [str(x[0][0]) for x in data["inputs"]] == list(found.inputs)
    assert [str(x[0][0]) for x in data["output_units"]] == list(found.output_units)


def test_python_control():
    control = pytest.importorskip("control")
    found = linear()
    system = found.to_control()
    assert system.input_labels == list(found.inputs)
    assert system.output_labels == list(found.outputs)
    np.testing.assert_allclose(system(2.0j), gain(found, 2.0), rtol=1e-9, atol=1e-15)
    assert np.all(control.poles(system).real < 0)


@pytest.mark.slow
def test_step_response_is_that_of_small_efforts(record_number):
    """python-control's step response against the nonlinear run, with the same small torque."""
    control = pytest.importorskip("control")
    import jax.numpy as jnp

    model, drive = sample_model(), held()
    rest = fx.find_equilibrium(model, drive)
    state = rest.state if hasattr(rest, "state") else rest
    system = fx.linearise(model, drive, at=state).to_control()
    ts = np.linspace(0.0, 0.2, 21)
    response = control.forced_response(system, ts, np.vstack([np.full(21, 1e-4), np.zeros(21)]))
    torque = fx.Feedback(lambda t, q, qd, p: 20.0 * (0.0 - q[0]) - qd[0] + p, params=1e-4)
    pushed = fx.Drive(joints={**drive.joints, "shoulder": torque})
    traj = fx.simulate(model, pushed, jnp.asarray(ts), dt=1e-3, start=state)
    moved = np.asarray(traj.q[:, 0] - traj.q[0, 0])
    error = np.max(np.abs(response.outputs[0] - moved)) / np.max(np.abs(moved))
    record_number("step response of python-control against a small effort, two-link", error, 1e-3)
