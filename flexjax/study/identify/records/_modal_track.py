"""Natural frequencies over time, of an arm whose configuration is measured beside them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from flexjax.drive import Drive, Motion
from flexjax.drive.signal import constant
from flexjax.formulation import AbstractModel
from flexjax.robot import Robot
from flexjax.simulate import modes

ENCODERS = ("encoder", "motor_encoder")
SLOW = 3  # at most so many modes lie below ModalTrack.above


@dataclasses.dataclass(frozen=True, eq=False)
class ModalTrack:
    """Measured natural frequencies and damping ratios while joints move.

    Every row is one short segment of a recording. Its configuration is measured by encoders, whose
    gain and offset may be free: the joint is at (reading - offset) / gain.

    Arguments:
        ts: times of the K segments [s].
        frequencies: natural frequencies (K, m) [Hz]; NaN where unknown.
        readings: encoder -> its readings (K,). The encoder's joint is held there.
        damping: damping ratios (K, m); NaN where unknown, None if all are.
        sd: relative standard deviations of the frequencies, one or (K, m).
        damping_sd: absolute standard deviations of the damping ratios, one or (K, m).
        index: number of each of the m modes, 0 is the lowest (default: the lowest ones).
        above: modes below this frequency [Hz] are not counted: slow motions of heavy bodies.
        drive: motions of other joints; joints without one are free.
        absolute: whether the standard deviations are known absolutely, or only up to a factor.
        name: label in results.

    >>> import flexjax as fx
    >>> track = fx.ModalTrack([0.0, 1.0], [[6.0], [5.8]], {"angle": [0.0, 0.5]})
    >>> track.channels
    ('mode 1 [Hz]',)
    """

    ts: Any
    frequencies: Any
    readings: Mapping[str, Any]
    damping: Any = None
    sd: Any = 0.01
    damping_sd: Any = 0.002
    index: tuple[int, ...] | None = None
    above: float = 0.0
    drive: Drive | None = None
    absolute: bool = False
    name: str = "frequencies over time"

    def __post_init__(self):
        ts, f = np.array(self.ts, float), np.array(self.frequencies, float)
        f = f[:, None] if f.ndim == 1 else f
        where, known = f"modal track {self.name!r}", f[np.isfinite(f)]
        if ts.ndim != 1 or f.ndim != 2 or len(f) != len(ts) or len(known) == 0 or min(known) <= 0:
            raise ValueError(
                f"{where}: {ts.shape} times and {f.shape} frequencies; expected K times, and "
                "(K, m) positive frequencies in Hz, or NaN where one is unknown."
            )
        z = np.full(f.shape, np.nan) if self.damping is None else np.array(self.damping, float)
        z = z[:, None] if z.ndim == 1 else z
        if z.shape != f.shape or np.any(z < 0) or np.any(z >= 1):
            raise ValueError(
                f"{where}: damping of shape {z.shape}; expected {f.shape}, each a ratio from 0 to "
                "below 1, or NaN."
            )
        index = tuple(range(f.shape[1])) if self.index is None else tuple(map(int, self.index))
        if len(index) != f.shape[1] or min(index) < 0:
            raise ValueError(
                f"{where}: index = {self.index}; expected the number of a mode for each of the "
                f"{f.shape[1]} columns, 0 the lowest."
            )
        readings = {k: np.array(v, float) for k, v in self.readings.items()}
        for sensor, values in readings.items():
            if values.shape != ts.shape or not np.all(np.isfinite(values)):
                raise ValueError(
                    f"{where}: readings.{sensor} has shape {values.shape}; expected {len(ts)} "
                    "finite values, one for each time."
                )
        for field in ("sd", "damping_sd"):
            try:
                given = np.broadcast_to(np.array(getattr(self, field), float), f.shape)
            except ValueError:
                given = np.zeros(1)
            if not np.all(given > 0):
                raise ValueError(f"{where}: {field}; expected positive numbers, one or {f.shape}.")
            object.__setattr__(self, field, given)
        fields = {"ts": ts, "frequencies": f, "damping": z, "index": index, "readings": readings}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def channels(self) -> tuple[str, ...]:
        assert self.index is not None  # __post_init__ fills it in
        damped = np.any(np.isfinite(self.damping), axis=0)
        return (
            *(f"mode {i + 1} [Hz]" for i in self.index),
            *(f"mode {i + 1} damping" for i, d in zip(self.index, damped, strict=True) if d),
        )

    def faults(self, robot: Robot) -> list[str]:
        sensors = {s.name: s for s in robot.sensors}
        moving = {j.name for j in robot.tree_joints if j.dofs == 1}
        faults = []
        for name in self.readings:
            sensor = sensors.get(name)
            if sensor is None:
                given = ", ".join(sensors) or "none"
                faults.append(f"readings: {name!r} is no sensor; expected one of {given}.")
            elif sensor.kind not in ENCODERS or sensor.on not in moving:
                faults.append(
                    f"readings: {name!r} is a {sensor.kind} on {sensor.on!r}; expected an encoder "
                    "on a joint with one degree of freedom."
                )
        return faults

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """(values, standard deviations): logarithms of frequencies, then damping ratios."""
        known, damped = np.isfinite(self.frequencies), np.isfinite(self.damping)
        values = [np.log(self.frequencies[known]), self.damping[damped]]
        return np.concatenate(values), np.concatenate([self.sd[known], self.damping_sd[damped]])

    @property
    def rows(self) -> np.ndarray:
        """The time that each measured value belongs to."""
        known, damped = np.isfinite(self.frequencies), np.isfinite(self.damping)
        return np.concatenate([np.nonzero(known)[0], np.nonzero(damped)[0]])

    def pick(self, rows: Any) -> "ModalTrack":
        """Only these times (indices, a slice or a mask)."""
        fields = ("ts", "frequencies", "damping", "sd", "damping_sd")
        return dataclasses.replace(
            self,
            readings={k: v[rows] for k, v in self.readings.items()},
            **{field: getattr(self, field)[rows] for field in fields},
        )

    def configurations(self, robot: Robot) -> dict[str, jax.Array]:
        """Joint -> its coordinate at every time, from the readings of its encoder."""
        sensors = {s.name: s for s in robot.sensors}
        return {
            sensors[k].on: (jnp.asarray(v) - sensors[k].offset) / sensors[k].gain
            for k, v in self.readings.items()
        }

    def vibrations(self, model: AbstractModel) -> tuple[jax.Array, jax.Array]:
        """The model's frequencies [Hz] and damping ratios, (K, m) each."""
        drive = self.drive or Drive()
        assert self.index is not None
        pick, last = np.array(self.index), max(self.index)

        def at(configuration):
            motions = {j: Motion(constant(x)) for j, x in configuration.items()}
            held = dataclasses.replace(drive, joints={**drive.joints, **motions})
            found = modes(model, held, configuration, n=last + 1 + SLOW)
            if found.frequencies.shape[0] <= last:
                raise ValueError(
                    f"modal track {self.name!r}: the model has {found.frequencies.shape[0]} "
                    f"modes; expected {last + 1}. Refine it, or free more joints."
                )
            counted = found.frequencies > self.above
            order = jnp.argsort(jnp.where(counted, found.frequencies, jnp.inf))[pick]
            frequencies = jnp.where(counted[order], found.frequencies[order], jnp.inf)
            return frequencies, found.damping[order]

        return jax.vmap(at)(self.configurations(model.robot))

    def predict(self, model: AbstractModel) -> jax.Array:
        f, z = self.vibrations(model)
        known, damped = np.isfinite(self.frequencies), np.isfinite(self.damping)
        return jnp.concatenate([jnp.log(f[known]), z[damped]])

    def shown(self, values: ArrayLike) -> np.ndarray:
        """For printing: frequencies in Hz, then damping ratios."""
        n = int(np.sum(np.isfinite(self.frequencies)))
        return np.concatenate([np.exp(np.asarray(values)[:n]), np.asarray(values)[n:]])
