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
