"""Parts of the tour that `make demo` takes; the tour as a whole compiles for minutes."""

import numpy as np
import pytest

import flexjax as fx
from flexjax.cli.demo import _move
from flexjax.cli.demo._demo import Tour
from flexjax.viz import Report


@pytest.mark.docs
def test_the_shaped_motion_ends_without_vibration(tmp_path):
    """The check that the tour prints passes in the formulation that compiles fastest."""
    robot = fx.load_robot("metal-link")
    drive = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, 1.2, 0.45))})
    tour = Tour(False, tmp_path, Report("tour"), robot, drive, np.linspace(0.0, 0.6, 121))
    _move.show(tour)
    assert tour.checks and all(good for good, _ in tour.checks), tour.checks
