"""Figures: drawn data equal the values, every axis has a unit, mistakes are reported."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import flexjax as fx
from flexjax.simulate import Comparison, Linear, Modes
from flexjax.simulate.analysis._compare import Row
from tests._sample import sample_model, sample_trajectory
from tests.contract_parts import pendulum


@pytest.fixture(scope="module")
def runs():
    """The sample run, and the same with a link that bends in a known way."""
    traj = sample_trajectory()
    bend = (
        0.01 * jnp.sin(2 * jnp.pi * 50 * traj.ts)[:, None, None] * traj.stations[None, None, :] ** 2
    )
    deflection = traj.deflection.at[..., 1].set(jnp.broadcast_to(bend, traj.deflection.shape[:3]))
    strain = traj.strain.at[..., 5].set(0.3).at[:, :, 0, 5].set(-0.8)
    return {
        "a": traj,
        "b": eqx.tree_at(lambda t: (t.deflection, t.strain), traj, (deflection, strain)),
    }


def lines(axis):
    return [np.asarray(line.get_xydata()) for line in axis.get_lines()]


@pytest.mark.parametrize(
    "what", ["joints", "tip", "deflection", "strain", "spectrum", "energy", "difference"]
)
def test_every_axis_has_a_unit(runs, what):
    before = dict(matplotlib.rcParams)
    figure = fx.plot(runs, what)
    assert isinstance(figure, Figure) and dict(matplotlib.rcParams) == before
    for axis in figure.axes:
        shared_x = (
            axis.get_xlabel() == ""
            and axis.get_subplotspec().rowspan.stop < axis.get_gridspec().nrows
        )
        shared_y = what == "energy" and not axis.get_subplotspec().is_first_col()
        assert shared_x or re.search(r"\[.+\]", axis.get_xlabel())
        assert shared_y or re.search(r"\[.+\]", axis.get_ylabel())
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_curves_are_the_numbers(runs):
    a, b = runs.values()
    figure = fx.plot(runs)
    np.testing.assert_array_equal(lines(figure.axes[0])[1], np.stack([b.ts, b.q[:, 0]], 1))
    np.testing.assert_array_equal(lines(figure.axes[3])[0], np.stack([a.ts, a.effort[:, 1]], 1))
    np.testing.assert_allclose(
        lines(fx.plot(b, "deflection").axes[1])[0][:, 1], 1e3 * b.deflection[:, 1, -1, 1]
    )
    np.testing.assert_array_equal(
        lines(fx.plot(b, "strain").axes[0])[0][:, 1], np.full(len(b.ts), -0.8)
    )
    balance = lines(fx.plot(a, "energy").axes[1])[0][:, 1]
    np.testing.assert_array_equal(balance, a.energy.balance - a.energy.balance[0])


def test_difference_is_the_distance_of_tips(runs):
    a, b = runs.values()
    moved = eqx.tree_at(lambda t: t.frames, b, b.frames.at[1:, ..., 1].add(2e-3))
    ((_, *apart),) = lines(fx.plot({"a": a, "moved": moved}, "difference").axes[0])
    np.testing.assert_allclose(
        np.asarray(apart)[:, 1], 2.0, rtol=1e-6
    )  # the first point, where they agree, is not drawn
    with pytest.raises(ValueError, match="at least two trajectories"):
        fx.plot(a, "difference")


def test_spectrum_peaks_where_the_signal_vibrates(runs):
    traj = runs["b"]
    ts = jnp.linspace(0.0, 1.0, 501)
    wave = 0.02 * jnp.sin(2 * jnp.pi * 37.0 * ts)
    long = eqx.tree_at(
        lambda t: (t.ts, t.deflection),
        traj,
        (ts, jnp.zeros((501, *traj.deflection.shape[1:])).at[:, 1, -1, 1].set(wave)),
    )
    figure = fx.plot(long, "spectrum", modes=[37.0, 80.0])
    f, amplitude = lines(figure.axes[0])[0].T
    assert abs(f[np.nanargmax(amplitude)] - 37.0) < 0.6
    assert (
        abs(np.nanmax(amplitude) - 20.0) < 0.5
    )  # in mm: the window does not change the size of a sine
    assert [line[0, 0] for line in lines(figure.axes[0])[1:]] == [37.0, 80.0]


def test_modes_are_drawn_under_their_own_drive():
    """On a base that is moved and rotated."""
    model = fx.RigidArm().bind(pendulum())
    to = fx.stack([fx.constant(x) for x in (0.3, 0.2, 0.0)])
    base = fx.Base(translation=to, angle=fx.constant(0.5))
    drive = fx.Drive(joints={"root": fx.PD(30.0, 0.0, fx.constant(0.0))}, base=base)
    rest = lines(fx.plot(fx.modes(model, drive=drive), model=model).axes[0])[0]
    length = float(model.robot.links[0].length)
    np.testing.assert_allclose(rest[0], [0.3, 0.2], atol=1e-12)
    tip = rest[0] + length * np.array([np.cos(0.5), np.sin(0.5)])
    np.testing.assert_allclose(rest[-1], tip, atol=1e-12)


def test_modes_frequency_response_comparison_convergence(runs):
    model = sample_model()
    state = runs["a"].final
    n = 4
    shapes = jnp.eye(n, 1, dtype=complex)
    modes = Modes(jnp.array([3.0]), jnp.array([0.01]), shapes, state)
    figure = fx.plot(modes, model=model)
    assert "3 Hz" in figure.axes[0].get_title()
    # The first component is the shoulder: the tip's displacement is perpendicular to its position.
    rest, moved = lines(figure.axes[0])[3], lines(figure.axes[0])[4]
    assert abs(np.dot(moved[-1] - rest[-1], rest[-1])) < 1e-9 < np.linalg.norm(moved[-1] - rest[-1])
    oscillator = Linear(
        jnp.array([[0.0, 1.0], [-400.0, -0.4]]),
        jnp.array([[0.0], [1.0]]),
        jnp.array([[1.0, 0.0]]),
        jnp.zeros((1, 1)),
        ("u",),
        ("y",),
    )
    magnitude = lines(fx.plot(oscillator, frequencies=[1e-3, 20 / (2 * np.pi)]).axes[0])[0][:, 1]
    np.testing.assert_allclose(magnitude, [1 / 400, 1 / (0.4 * 20)], rtol=1e-5)
    # Several modes in one figure, drawn; a sensor that the input does not reach is left out.
    several = Modes(
        jnp.array([3.0, 5.0, 9.0, 11.0]), jnp.full(4, 0.01), jnp.eye(n, 4, dtype=complex), state
    )
    assert len([a for a in fx.plot(several, model=model).axes if a.get_visible()]) == 4
    assert fx.plot(several, model=model)._repr_png_().startswith(b"\x89PNG")
    held = Linear(
        oscillator.A,
        oscillator.B,
        jnp.array([[1.0, 0.0], [0.0, 0.0]]),
        jnp.zeros((2, 1)),
        ("u",),
        ("y", "held"),
    )
    assert [t.get_text() for t in fx.plot(held).legends[0].get_texts()] == ["u to y"]
    row = Row("x", 4, 0.0, 0.0, 0.0, 0.0, (1.0, 2.0), 1.0, 0.1)
    both = Comparison(model.robot, "a", (row, row), runs, {})
    assert "from a" in fx.plot(both).axes[1].get_title()
    assert len(fx.plot(both, "tip").legends[0].get_texts()) == 2
    study = fx.plot({"method": ([0.1, 0.05, 0.025], [4e-3, 1e-3, 2.5e-4])}, "convergence")
    assert study.axes[0].get_legend().get_texts()[0].get_text() == "method: order 2.00"


def test_mistakes_are_told(runs):
    with pytest.raises(ValueError, match="what: 'tips'; expected one of joints, tip"):
        fx.plot(runs, "tips")
    with pytest.raises(ValueError, match="expected a Modes"):
        fx.plot(runs["a"], "modes")
    with pytest.raises(ValueError, match="expected a Trajectory"):
        fx.plot(3)
    with pytest.raises(ValueError, match="empty dict"):
        fx.plot({})
    with pytest.raises(ValueError, match="two equally long lists"):
        fx.plot({"x": ([1.0], [2.0])}, "convergence")


def cut(traj, k: int):
    """The run as if it had failed after its first k outputs."""
    names = ("q", "effort", "frames", "deflection", "strain", "energy")
    nan = lambda tree: jax.tree.map(lambda x: x.at[k:].set(jnp.nan), tree)
    parts = [nan(getattr(traj, name)) for name in names]
    traj = eqx.tree_at(lambda t: [getattr(t, name) for name in names], traj, parts)
    return eqx.tree_at(lambda t: t.status, traj, jnp.asarray(1, jnp.int32))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_runs_that_failed_at_once(runs, k):
    failed = cut(runs["b"], k)
    for what in ("joints", "tip", "deflection", "strain", "energy"):
        fx.plot(failed, what).canvas.draw()
    said = rf"{k} finite outputs \(status newton_failed\); expected at least 3"
    with pytest.raises(ValueError, match=said):
        fx.plot(failed, "spectrum")
    assert len(lines(fx.plot({"a": failed, "b": runs["b"]}, "spectrum").axes[0])) == 1
    assert np.all(np.isnan(lines(fx.plot(failed, "strain").axes[0])[0][k:, 1]))
    assert "newton_failed" in str(failed)
