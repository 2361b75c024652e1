"""What a simulation returns."""

from flexjax.simulate.trajectory._sensors import measure as measure
from flexjax.simulate.trajectory._trajectory import (
    Statistics as Statistics,
    Trajectory as Trajectory,
)
