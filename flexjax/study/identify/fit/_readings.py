"""Readings of the recorded sensors from a run of the model."""

from collections.abc import Collection, Sequence

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from flexjax._rules import derivative_where
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate import find_equilibrium, simulate
from flexjax.simulate.trajectory import sensor_readings
from flexjax.study.identify.fit._unknown_start import FreeStart


def stations_for(robot: Robot, names: Collection[str], free: tuple[str, ...] = ()) -> np.ndarray:
    """The stations of these sensors, so that nothing is interpolated.

    A fine grid if a station itself is free.
    """
    if any(
        path.startswith("sensors.") and (path.endswith(".s") or ".span." in path) for path in free
    ):
        return np.linspace(0.0, 1.0, 41)
    wanted = {0.0, 1.0}
    names = set(names) | {p.sensor for s in robot.sensors if s.name in names for p in s.crosstalk}
    for sensor in robot.sensors:
        if sensor.name in names:
            spans = () if sensor.span is None else sensor.span
            wanted |= {float(sensor.s), *(float(x) for x in spans)}
    return np.array(sorted(wanted))


def readings(
    model: AbstractModel,
    drive: Drive,
    start: State | Start | FreeStart,
    ts: Float[Array, " T"],
    *,
    sensors: Sequence[str],
    substeps: int,
    stations: Sequence[float],
    solver: diffrax.AbstractSolver | None = None,
    rest: bool = False,
    intervals: Int[Array, ""] | None = None,
):
    """Readings (T, S) of the named sensors; NaN after a failure or the last interval.

    ``rest``: from the equilibrium next to ``start``; all are NaN where none is found.
    """
    found = filters = None
    if isinstance(start, FreeStart):
        first, filters = start.state(model, drive, ts[0]), start.filters
    elif rest:
        at = find_equilibrium(model, drive, start, t=ts[0])
        found, first = at.ok, derivative_where(at.ok, at.state)
    else:
        first = start
    traj = simulate(
        model,
        drive,
        ts,
        substeps=substeps,
        solver=solver,
        start=first,
        stations=stations,
        throw=False,
        intervals=intervals,
    )
    values = sensor_readings(traj, model.robot, sensors, filters)
    table = jnp.stack([values[name] for name in sensors], axis=-1)
    return table if found is None else jnp.where(found, table, jnp.nan)
