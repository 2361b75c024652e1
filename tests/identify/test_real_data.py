"""Measured recordings, if available: read, resampled, converted to responses."""

import numpy as np
import pytest

import flexjax as fx


def test_quanser_steps(experiment_data):
    path = experiment_data("quanser_2dsfl/steps/lqg_step_20deg_run01.csv")
    e = fx.Experiment.read(
        path, time="t_s", motions={"hub": "th1_hub_rad"}, sensors={"deflection": "defl1_rad"}
    )
    assert len(e.ts) == 2000 and abs(e.ts[1] - 0.002) < 1e-12
    grid = e.smooth(12.0).resample(0.01)
    assert len(grid.ts) == 400
    # Smoothing takes out the encoder's steps and leaves the motion.
    assert np.max(np.abs(np.interp(grid.ts, e.ts, e.motions["hub"]) - grid.motions["hub"])) < 2e-3
    rough, soft = (np.std(np.diff(x, 2)) for x in (e.motions["hub"], e.smooth(12.0).motions["hub"]))
    assert soft < 0.8 * rough


def test_daisy_lines(experiment_data):
    path = experiment_data("daisy_robot_arm/robot_arm.dat")
    e = fx.Experiment.read(path, rate=125.0, currents={"motor": "0"}, sensors={"acceleration": "1"})
    response = fx.FrequencyResponse.from_period(e, "motor", "acceleration", np.arange(1, 200, 2))
    size = np.abs(response.values)
    peaks = response.frequencies[1:-1][
        (size[1:-1] > size[:-2]) & (size[1:-1] > size[2:]) & (size[1:-1] > 5)
    ]
    np.testing.assert_allclose(peaks, [7.28, 15.80], atol=0.13)
    assert response.current and len(response.pick(slice(0, None, 2)).values) == 50


def test_two_stage_record_has_currents(experiment_data):
    path = experiment_data("quanser_2dsfl/two_stage_lqr_first10s.csv")
    e = fx.Experiment.read(
        path,
        time="t_s",
        currents={"hub1": "I1_meas_A", "hub2": "I2_meas_A"},
        sensors={"angle": "th1_hub_deg"},
        units={"th1_hub_deg": "deg", "I1_meas_A": "A"},
    )
    assert e.sensors["angle"][0] == pytest.approx(np.radians(-25.3652344)) and set(e.currents) == {
        "hub1",
        "hub2",
    }
