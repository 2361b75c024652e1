"""What a simulation returns."""

from flexjax.simulate.trajectory._sensors import measure as measure
from flexjax.simulate.trajectory._stations import read_stations as read_stations
from flexjax.simulate.trajectory._trajectory import (
    Sections as Sections,
    Statistics as Statistics,
    Trajectory as Trajectory,
)
