"""What a simulation returns."""

from flexjax.trajectory._sensors import measure as measure
from flexjax.trajectory._trajectory import (
    Energy as Energy,
    Snapshot as Snapshot,
    Statistics as Statistics,
    Trajectory as Trajectory,
)
