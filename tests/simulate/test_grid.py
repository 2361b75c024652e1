"""The time grid: what stands on it, and derivatives with respect to the times of breaks wherever
they lie.
"""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate.loop._grid import time_grid
from tests.simulate.arms import pair_model

OUTPUTS = np.array([0.0, 0.1, 0.15, 0.3])
SUBSTEPS = 5


def rows(ts, breaks):
    grid = jax.jit(lambda b: time_grid(jnp.asarray(ts), SUBSTEPS, b))(jnp.asarray(breaks))
    return jax.tree.map(np.asarray, grid)


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_even_between_breaks(seed):
    """Every output and break is a boundary, no step is too long, and none too short but between two
    of them.
    """
    rng = np.random.default_rng(seed)
    breaks = rng.uniform(-0.05, 0.35, rng.integers(1, 9))
    breaks[rng.integers(len(breaks))] = rng.choice(np.linspace(0.0, 0.3, 31))
    if seed % 2:
        breaks[0] = breaks[-1]  # together
    grid = rows(OUTPUTS, breaks)
    inside = breaks[(breaks >= 0) & (breaks <= 0.3)]
    np.testing.assert_array_equal(grid.t1[:-1], grid.t0[1:])
    assert grid.t0[0] == 0.0 and grid.t1[-1] == 0.3
    length, whole = grid.t1 - grid.t0, np.diff(OUTPUTS) / SUBSTEPS
    real = length > 0
    even = whole[np.searchsorted(OUTPUTS, 0.5 * (grid.t0 + grid.t1)[real]) - 1]
    assert np.all(length[real] <= even * (1 + 1e-5))
    at = np.concatenate([OUTPUTS, inside])
    short = length[real] < 0.49 * even
    for a, b in zip(grid.t0[real][short], grid.t1[real][short], strict=True):
        assert min(abs(at - a)) < 1e-9 and min(abs(at - b)) < 1e-9
    for k, t in enumerate(OUTPUTS[1:]):
        (row,) = np.flatnonzero(grid.slot == k)
        assert grid.t1[row] == t
    starts = grid.t0[real]
    for b in inside[inside < 0.3 - 1e-6]:
        row = np.flatnonzero(real)[np.argmin(abs(starts - b))]
        assert abs(grid.t0[row] - b) < 1e-6 * np.max(whole) and grid.jump[row]
    # Which signals have broken is the same in a step and in the list of breaks.
    for row in np.flatnonzero(real):
        passed = breaks <= grid.piece[row]
        assert np.array_equal(passed, breaks <= grid.t0[row] + 1e-6 * np.max(whole))


def test_no_break_no_change():
    grid = rows(OUTPUTS, np.zeros(0))
    np.testing.assert_allclose(np.diff(grid.t0[:6]), 0.02, rtol=1e-12)
    assert not grid.jump.any() and not grid.tie.any()
    outside = rows(OUTPUTS, [-1.0, 7.0])
    np.testing.assert_array_equal(outside.t0[:-2], grid.t0)
    assert not outside.jump.any() and not outside.tie.any()


@functools.cache
def one_link() -> fx.Robot:
    link = fx.Link(
        "bar",
        0.5,
        section=fx.Rectangle(0.02, 0.02),
        material=fx.Material.named("aluminium"),
        rigid=True,
    )
    return fx.Robot.serial([link], name="bar", gravity=(0.0, 0.0, 0.0))


one_link()
INERTIA = 2700 * 0.02**2 * 0.5 * (0.5**2 / 3 + 0.02**2 / 12)


@functools.cache
def switched(solver):
    """Angle and rate at the outputs, and their derivatives with respect to three switch times, in
    both modes.
    """
    model = fx.RigidArm().bind(one_link())

    def outputs(times):
        drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(0.3, times))})
        traj = fx.simulate(
            model, drive, OUTPUTS, substeps=SUBSTEPS, solver=solver(), stations=2, throw=False
        )
        return jnp.stack([traj.q[:, 0], traj.qd[:, 0]], axis=1)

    return tuple(jax.jit(f) for f in (outputs, jax.jacfwd(outputs), jax.jacrev(outputs)))


def closed_form(times):
    """(angle, rate) and their derivatives at the outputs under torques 0.3, -0.3 between the times;
    a time on an output counts as just before it.
    """
    t = np.maximum(OUTPUTS[:, None] - np.asarray(times)[None, :], 0.0)
    on = (OUTPUTS[:, None] >= np.asarray(times)[None, :] - 1e-7) & (OUTPUTS[:, None] > 0)
    gain = np.array([1.0, -2.0, 1.0])[None, :] * 0.3 / INERTIA * (np.asarray(times) >= 0)[None, :]
    value = np.stack([np.sum(gain * t**2 / 2, 1), np.sum(gain * t, 1)], 1)
    return value, np.stack([-gain * t, -gain * on], 1)


PLACES = {
    "off the grid": [0.0137, 0.163, 0.241],
    "on an output": [0.03, 0.15, 0.25],
    "on an inner boundary": [0.03, 0.12, 0.25],
    "a hair before an output": [0.03, 0.15 - 2e-9, 0.25],
    "a hair behind an output": [0.03, 0.15 + 2e-9, 0.25],
    "a hair before an inner boundary": [0.03, 0.12 - 1e-10, 0.25],
    "start and end": [0.0, 0.15, 0.3],
    "outside": [0.03, 0.11, 0.31],
    "together": [0.03, 0.2, 0.2],
    "together on an output": [0.03, 0.15, 0.15],
}


@pytest.mark.parametrize("solver", [fx.DiscreteGradient, fx.Newmark], ids=lambda s: s.__name__)
@pytest.mark.parametrize("place", list(PLACES))
def test_derivative_by_switch_times(place, solver):
    """An optimiser that starts on the grid has to move off it: the derivative there was exactly
    zero.
    """
    times = jnp.asarray(PLACES[place])
    run, forward, reverse = switched(solver)
    value, slope = closed_form(times)
    np.testing.assert_allclose(np.asarray(run(times)), value, atol=1e-7)
    for derivative in (forward, reverse):
        np.testing.assert_allclose(np.asarray(derivative(times)), slope, rtol=1e-6, atol=1e-5)


def test_curvature_by_a_switch_time_on_an_output():
    model = fx.RigidArm().bind(one_link())

    def angle(times):
        drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(0.3, times))})
        return fx.simulate(model, drive, OUTPUTS, substeps=2, stations=2, throw=False).q[-1, 0]

    hessian = jax.jit(jax.hessian(angle))(jnp.asarray(PLACES["on an output"]))
    curvature = 0.3 / INERTIA * np.diag([1.0, -2.0, 1.0])
    np.testing.assert_allclose(np.asarray(hessian), curvature, atol=1e-6)


def _two_joints(times, **options):
    """Two joints of an arm with a payload, each with one switch time of its own."""
    model, drive = (
        pair_model(),
        fx.Drive(
            joints={
                name: fx.Effort(fx.bang_bang(torque, jnp.stack([0.01 + 0 * t, t, 0.25 + 0 * t])))
                for name, torque, t in (("joint1", 0.3, times[0]), ("joint2", 0.2, times[1]))
            }
        ),
    )
    return fx.simulate(
        model, drive, np.array([0.0, 0.1, 0.3]), stations=2, throw=False, **options
    ).q[-1]


ADAPTIVE = {
    "dt": 1e-2,
    "solver": diffrax.Tsit5(),
    "adaptive": diffrax.PIDController(rtol=1e-8, atol=1e-10),
}


@functools.cache
def switched_pair(kind):
    """The run and its derivative, compiled once for all switch times."""
    options = ADAPTIVE if kind == "adaptive" else {"substeps": 10}
    run = functools.partial(_two_joints, **options)
    return jax.jit(run), jax.jit(jax.jacrev(run))


@pytest.mark.parametrize("kind", ["fixed", pytest.param("adaptive", marks=pytest.mark.slow)])
@pytest.mark.parametrize("gap", [0.0, 1e-9], ids=["together", "a nanosecond apart"])
def test_switches_of_two_joints_at_one_time(gap, kind):
    """Each has its own derivative: wrong by as much as its size before, in adaptive runs for close
    times too.
    """
    run, slope = switched_pair(kind)
    times, h = jnp.array([0.1437, 0.1437 + gap]), 1e-4
    differences = [(run(times + h * e) - run(times - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(
        np.asarray(slope(times)), np.stack(differences, axis=1), rtol=2e-3, atol=2e-3
    )


def test_breaks_of_one_signal_are_in_order():
    """Without a cruise the middle breaks of a trapezoid coincide; there is still a time between
    them.
    """
    assert np.all(np.diff(np.asarray(fx.trapezoid(0.0, 1.0, 0.2, 0.1).breaks())) > 0)


def test_outputs_just_behind_a_break_see_what_acts_there():
    """A break in the last half of a step, or on the output: the effort is that after it."""
    drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(0.3, [0.0, 0.097, 0.15, 0.3]))})
    traj = fx.simulate(fx.RigidArm().bind(one_link()), drive, OUTPUTS, substeps=5, stations=2)
    np.testing.assert_allclose(np.asarray(traj.effort[:, 0]), [0.3, -0.3, 0.3, 0.0])
    np.testing.assert_allclose(np.asarray(traj.qdd[:, 0]), np.array([1, -1, 1, 0]) * 0.3 / INERTIA)
