"""Records that are not complete: closed loop, unknown start and load, gaps, several rates."""

import dataclasses

import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import joint_arm, tones

TS = 0.01 * np.arange(151)
TRUTH = {"joints.pin.stiffness": 40.0, "payloads.load.mass": 0.3, "drive.joints.pin.kp": 12.0}
LOADS, STARTS = (0.2, -0.35), (0.05, -0.08)


def closed_loop(k: int, kp: float, load: float) -> fx.Drive:
    reference = fx.recorded(TS, tones(TS, seed=k, size=0.2))
    push = fx.constant([0.0, 0.0, 0.0, 0.0, 0.0, load])
    return fx.Drive({"pin": fx.PD(kp, 0.4, reference)}, loads=[fx.Load("link", push, s=0.0)])


def records() -> list[fx.Experiment]:
    """Reference and readings only; the angle every 40 ms, with a hole in the other encoder."""
    model, found = fx.RigidArm().bind(joint_arm()), []
    for k, (load, start) in enumerate(zip(LOADS, STARTS, strict=True)):
        drive = closed_loop(k, TRUTH["drive.joints.pin.kp"], load)
        begin = fx.Start({"pin": start})
        traj = fx.simulate(model, drive, TS, dt=0.01, start=begin)
        y = {s: np.array(v) for s, v in fx.measure(traj).items()}
        y["angle"][np.arange(len(TS)) % 4 > 0] = np.nan
        y["motor"][60:75] = np.nan
        guessed = closed_loop(k, 10.0, 0.0)
        found.append(
            fx.Experiment(TS, y, drive=guessed, start=fx.Start({"pin": 0.0}), name=f"run{k}")
        )
    return found


def test_closed_loop_with_unknown_start_and_load_gaps_and_two_rates():
    robot = joint_arm().replace("joints.pin.stiffness", 46.0).replace("payloads.load.mass", 0.26)
    free = [*TRUTH, fx.Free("drive.loads.0.wrench.value.5", each=True), "start.joints.pin"]
    result = fx.identify(fx.RigidArm().bind(robot), records(), free, dt=0.01)
    wanted = [*TRUTH.values(), *LOADS, *STARTS]
    assert result.names[3:] == (
        "drive.loads.0.wrench.value.5 of run0",
        "drive.loads.0.wrench.value.5 of run1",
        "start.joints.pin of run0",
        "start.joints.pin of run1",
    )
    np.testing.assert_allclose(result.values, wanted, rtol=1e-5, atol=1e-6)
    assert result.samples == 2 * (38 + 151 - 15)


def test_each_is_for_the_drive():
    with pytest.raises(ValueError, match="each is for parameters of the drive"):
        fx.identify(
            fx.RigidArm().bind(joint_arm()),
            dataclasses.replace(records()[0]),
            fx.Free("payloads.load.mass", each=True),
        )
