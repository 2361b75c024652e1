"""The tip is at s = 1 for all stations; stations that are no positions on a link are refused."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.viz.figures._plot import as_runs
from flexjax.viz.scene._scene import decode, scene

TS = jnp.linspace(0.0, 0.1, 5)


def bent_link() -> fx.Robot:
    link = fx.Link(
        "link",
        0.8,
        section=fx.Rectangle(0.03, 0.004),
        material=fx.Material(E=70e9, nu=0.3, rho=2700.0),
    )
    sensors = (
        fx.Sensor("camera", "tip", "link", s=1.0, direction=(0.0, 1.0, 0.0)),
        fx.Sensor("root", "strain_gauge", "link", s=0.0, position=(0.002, 0.0)),
    )
    joint = fx.Joint("pin", "revolute", "ground", "link")
    return fx.Robot("bent", (link,), (joint,), sensors=sensors, planar=True)


@cache
def model():
    return fx.TransferMatrix(segments=3).bind(bent_link())


DRIVE = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, 0.3, 0.1))})


def run(stations):
    return fx.simulate(model(), DRIVE, TS, dt=5e-3, stations=stations)


@pytest.fixture(scope="module")
def whole():
    return run(11)


@pytest.mark.parametrize("stations", [[0.0, 0.5], [0.5, 1.0], [0.3], 1])
def test_the_tip_does_not_depend_on_the_stations(whole, stations):
    traj = run(stations)
    given = np.linspace(0.0, 1.0, stations) if isinstance(stations, int) else stations
    np.testing.assert_allclose(traj.stations, given)
    assert traj.frames.shape[2] == len(given)
    np.testing.assert_allclose(traj.tip, whole.tip, atol=1e-12)
    for name, values in fx.measure(traj).items():
        np.testing.assert_allclose(values, fx.measure(whole)[name], atol=1e-12, err_msg=name)


def test_traced_stations_leave_the_tip_alone(whole):
    tip, frames = jax.jit(lambda s: (lambda t: (t.tip, t.frames))(run(s)))(jnp.array([0.2, 0.5]))
    np.testing.assert_allclose(tip, whole.tip, atol=1e-12)
    assert frames.shape[2] == 2


def test_figures_and_pages_show_the_tip(whole, tmp_path):
    half = run([0.5])
    d = [fx.plot(t, "deflection").axes[0].lines[0].get_ydata() for t in (half, whole)]
    np.testing.assert_allclose(d[0], d[1], atol=1e-9)
    e = [fx.plot(t, "strain").axes[1].lines[0].get_ydata() for t in (half, whole)]
    np.testing.assert_allclose(e[0], e[1], atol=1e-9)
    a = [fx.plot(t, "spectrum").axes[0].lines[0].get_ydata() for t in (half, whole)]
    np.testing.assert_allclose(a[0], a[1], rtol=1e-6)
    arm = scene(as_runs(half, "animate"))["arms"][0]
    frames = decode(arm["frames"], (*arm["shape"], 7))
    np.testing.assert_allclose(frames[:, 0, 0, :3], 0.0, atol=1e-6)
    np.testing.assert_allclose(frames[:, 0, -1, :3], whole.tip, atol=1e-6)


def test_files_keep_the_tip(whole, tmp_path):
    loaded = fx.load_trajectory(fx.save_trajectory(run([0.0, 0.5]), tmp_path / "run.nc"))
    np.testing.assert_allclose(loaded.stations, [0.0, 0.5])
    np.testing.assert_allclose(loaded.tip, whole.tip, atol=1e-12)


@pytest.mark.parametrize(
    ("stations", "said"),
    [
        ([0.0, 1.5], "1.5"),
        ([-0.1, 1.0], "-0.1"),
        ([0.0, jnp.nan, 1.0], "nan"),
        ([0.5, 0.2], "increasing"),
        ([0.0, 0.5, 0.5, 1.0], "increasing"),
        ([], "at least one"),
        ([[0.0, 1.0]], "one dimension"),
        (0, "at least one"),
        (-2, "at least one"),
        (2.5, "2.5"),
        ("many", "many"),
    ],
)
def test_stations_off_the_link_are_refused(stations, said):
    with pytest.raises(ValueError, match="^stations: .*expected.*e.g. stations=11") as error:
        run(stations)
    assert said in str(error.value)


def test_ok_of_a_batch_is_an_array():
    batch = jax.vmap(lambda x: fx.simulate(model(), DRIVE, TS, dt=5e-3, stations=x))(
        jnp.array([[0.0, 0.5], [0.5, 1.0]])
    )
    np.testing.assert_array_equal(batch.ok, [True, True])
    assert batch.tip.shape == (2, 5, 3)
    assert run(2).ok is True
    assert bool(jax.jit(lambda: run(2).ok)())
