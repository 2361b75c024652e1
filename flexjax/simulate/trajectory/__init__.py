"""What a simulation returns."""

from flexjax.simulate.trajectory._fields import (
    ENERGIES as ENERGIES,
    FIELDS as FIELDS,
    PARTS as PARTS,
)
from flexjax.simulate.trajectory._quantities import (
    peak_deflection as peak_deflection,
    residual_vibration as residual_vibration,
    settling_time as settling_time,
    surface_strain as surface_strain,
)
from flexjax.simulate.trajectory._sensors import (
    measure as measure,
    sensor_readings as sensor_readings,
)
from flexjax.simulate.trajectory._stations import read_stations as read_stations
from flexjax.simulate.trajectory._trajectory import (
    Sections as Sections,
    Statistics as Statistics,
    Trajectory as Trajectory,
)
