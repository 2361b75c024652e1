"""Recordings with faults: one message each, with the row."""

import dataclasses

import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify.fit._problem import build
from tests.identify.cases import joint_arm, joint_record

T = 0.01 * np.arange(101)
SINE = np.sin(2 * np.pi * 3 * T)


def experiment(ts=T, values=SINE) -> fx.Experiment:
    return fx.Experiment(ts, {"angle": values}, name="rig")


def from_file(folder, header: str, **options) -> fx.Experiment:
    path = folder / "rig.csv"
    rows = [f"{t:.2f},{x:.6f},{x:.6f}" for t, x in zip(T, SINE, strict=True)]
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return fx.Experiment.read(path, **options)


@pytest.mark.parametrize(
    ("header", "options", "says"),
    [
        (
            "time,angle,torque",
            {"sensors": {"angle": "angel"}},
            r"sensors.angle: there is no column 'angel'; did you mean 'angle'\?",
        ),
        (
            "time,angle,torque",
            {"efforts": {"pin": "current"}},
            r"efforts.pin: there is no column 'current'; the file has time, angle, torque",
        ),
        (
            "time,angle,torque",
            {"units": {"anlge": "deg"}},
            r"units.anlge: no such column; did you mean 'angle'\?",
        ),
        (
            "time,angle,torque [mm]",
            {"efforts": {"pin": "torque"}},
            r"efforts.pin: column 'torque' is in units of length; expected torque or force",
        ),
        ("time [m],angle,torque", {}, r"column 'time' is in units of length; expected seconds"),
        ("time,angle [furlong],torque", {}, r"column 'angle'.*furlong"),
    ],
)
def test_columns_and_units_that_do_not_fit_are_named(tmp_path, header, options, says):
    with pytest.raises(ValueError, match=says):
        from_file(tmp_path, header, **options)


def test_a_sensor_in_other_units_is_refused(tmp_path):
    record = from_file(tmp_path, "time,angle [N m],torque", sensors={"angle": "angle"})
    with pytest.raises(ValueError, match="sensors.angle: recorded as torque, .* gives angle"):
        build(fx.RigidArm().bind(joint_arm()), [record], ["joints.pin.stiffness"], dt=0.01)


def test_a_cell_that_is_no_number_is_named_with_its_line(tmp_path):
    path = tmp_path / "rig.csv"
    path.write_text("time,angle\n0.0,0.1\n0.1,fast\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3, column 'angle': 'fast'; expected a number"):
        fx.Experiment.read(path)


def test_time_that_runs_backwards_is_named_with_its_row():
    ts = T.copy()
    ts[40] = ts[38]
    with pytest.raises(ValueError, match=r"goes from 0.39 to 0.38 s at row 40 \(1 such rows\)"):
        experiment(ts)


def test_duplicated_stamps_are_named_with_their_rows():
    ts = T.copy()
    ts[40] = ts[39]
    with pytest.raises(ValueError, match=r"0.39 s twice, at rows 39 and 40 \(1 such pairs\)"):
        experiment(ts)


def test_a_cut_off_channel_is_named_with_its_rows():
    with pytest.warns(UserWarning, match=r"sensors.angle: saturated at 0.5 from row 3 to 13;"):
        experiment(values=np.minimum(SINE, 0.5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        SINE,
        np.round(8 * SINE) / 8,  # quantised
        np.minimum(3 * T, 1.0),  # settled
        np.zeros_like(T),
        np.where(T > 0.5, np.nan, SINE),
    ],
)
def test_other_channels_are_not(values):
    experiment(values=values)


def test_a_recording_shorter_than_a_period_is_refused():
    model = fx.RigidArm().bind(joint_arm())
    short = dataclasses.replace(joint_record(12), start=fx.UnknownStart(4))
    with pytest.raises(ValueError, match=r"0.11 s from row 0 to row 11; expected at least one per"):
        build(model, [short], ["joints.pin.stiffness"], dt=0.01)
