"""Recordings that start in the middle of a vibration, behind a filter that is not at rest."""

import dataclasses

import jax
import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import joint_arm, tones

FREE = ["joints.pin.stiffness", "sensors.angle.crosstalk.0.gain"]


def filtered() -> fx.Robot:
    robot = joint_arm()
    angle = dataclasses.replace(
        robot.sensors[0],
        lowpass=fx.Lowpass(3.0),
        crosstalk=(fx.Crosstalk("motor", -0.2),),
    )
    return dataclasses.replace(robot, sensors=(angle, robot.sensors[1]))


def records(model: fx.AbstractModel, start) -> list[fx.Experiment]:
    """Two windows of one run, whose motor follows a recorded motion: both begin in motion."""
    ts = 0.01 * np.arange(241)
    whole = fx.Experiment(ts, {"angle": ts}, motions={"pin": tones(ts, size=0.05)})
    drive = whole.full_drive(model.robot)
    readings = fx.measure(fx.simulate(model, drive, ts, substeps=1))["angle"]
    whole = dataclasses.replace(whole, sensors={"angle": np.asarray(readings)}, start=start)
    return [whole.window(0.7, 1.5), whole.window(1.51, 2.31)]


@pytest.fixture(scope="module")
def result() -> fx.study.identify.Identification:
    model = fx.RigidArm().bind(filtered())
    fitted, left = records(model, fx.UnknownStart(30))
    wrong = filtered().replace("joints.pin.stiffness", 36.0).replace(FREE[1], -0.15)
    return fx.identify(fx.RigidArm().bind(wrong), fitted, FREE, validation=left, dt=0.01)


@pytest.mark.slow
def test_parameters_and_starts_are_recovered(result):
    # A window's motion has another spline at its end, which limits the agreement.
    np.testing.assert_allclose(result.values[:2], [40.0, -0.2], rtol=2e-3)
    assert result.training[0].fits["angle"] > 99.8
    starts = [n for n in result.names if n.startswith("start.")]
    assert starts == [
        *(f"start.modes.{i} of experiment" for i in range(2)),
        *(f"start.filters.angle.{i} of experiment" for i in range(2)),
    ]


@pytest.mark.slow
def test_a_validation_recording_starts_from_its_own_first_samples(result):
    assert result.validation[0].fits["angle"] > 99.0


@pytest.mark.slow
def test_from_rest_the_same_window_fits_badly():
    model = fx.RigidArm().bind(filtered())
    window = records(model, None)[0]
    traj = fx.simulate(
        model, window.full_drive(model.robot), window.ts, start=window.full_start(model.robot)
    )
    error = np.asarray(fx.measure(traj)["angle"]) - window.sensors["angle"]
    assert np.std(error) > 0.05 * np.std(window.sensors["angle"])


def test_readings_with_crosstalk_clock_drift_and_steps():
    robot = filtered()
    plain = dataclasses.replace(robot.sensors[0], lowpass=None)
    with_sensor = lambda **new: dataclasses.replace(
        robot, sensors=(dataclasses.replace(plain, **new), robot.sensors[1])
    )
    drive = fx.Drive({"pin": fx.Motion(fx.quintic(0.0, 0.3, 0.2))})
    ts = np.linspace(0.5, 0.7, 11)
    shifted = fx.Drive({"pin": fx.Motion(fx.shift(drive.joints["pin"].signal, 0.5))})
    traj = fx.simulate(fx.RigidArm().bind(with_sensor()), shifted, ts)
    x = np.asarray(traj.q[:, 0] - 0.2 * traj.motor[:, 0])
    read = lambda **new: np.asarray(fx.measure(traj, with_sensor(**new))["angle"])
    np.testing.assert_allclose(read(), x, rtol=1e-12)
    np.testing.assert_allclose(read(drift=2.0), x + 2.0 * (ts - 0.5), rtol=1e-12)
    # A clock that is 10 % fast shows at 0.7 s what was true at 0.68 s, here the output before.
    assert read(skew=0.1)[-1] == pytest.approx(x[-2], rel=1e-12)
    np.testing.assert_allclose(read(quantum=0.01), 0.01 * np.round(x / 0.01), atol=1e-15)
    slope = jax.jacfwd(lambda gain: fx.measure(traj, with_sensor(gain=gain, quantum=0.01))["angle"])
    np.testing.assert_allclose(slope(1.0), traj.q[:, 0], atol=1e-12)


def test_crosstalk_of_an_unknown_sensor_is_refused():
    robot = filtered()
    bad = dataclasses.replace(robot.sensors[0], crosstalk=(fx.Crosstalk("engine", 0.1),))
    with pytest.raises(fx.RobotError, match=r"crosstalk\[0\]\.sensor.*another sensor \(motor\)"):
        dataclasses.replace(robot, sensors=(bad, robot.sensors[1]))


@pytest.mark.parametrize(("samples", "modes"), [(1, 1), (12, -1)])
def test_bad_numbers_are_refused(samples, modes):
    with pytest.raises(ValueError, match="expected a whole number"):
        fx.UnknownStart(samples, modes)
