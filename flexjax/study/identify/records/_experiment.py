"""An experiment: recorded inputs and readings in SI units, named as in the robot."""

import dataclasses
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from flexjax._html import block, curves
from flexjax._types import NumbersLike
from flexjax.drive import Drive, Effort, Motion
from flexjax.drive.signal import Scaled
from flexjax.formulation import Start
from flexjax.robot import Robot, Sensor
from flexjax.robot.parts._fault import no_such_joint, no_such_sensor
from flexjax.simulate.trajectory import Trajectory
from flexjax.study.identify.records._read import Table, read_columns
from flexjax.study.identify.records._resample import resampled
from flexjax.study.identify.records._saturation import saturated
from flexjax.study.identify.records._track import Hold, track
from flexjax.study.identify.records._unknown_start import UnknownStart

ROLES = {"motion": "motions", "effort": "efforts", "current": "currents"}
Channels = dict[str, np.ndarray]
INPUTS = tuple(ROLES.values())
FIELDS = ("sensors", *INPUTS)

NEEDS_CONSTANT = "currents.{name}: needs joints.{name}.motor.torque_constant [N m/A] in the robot."


@dataclasses.dataclass(frozen=True, eq=False)
class Experiment:
    """Time series of one run: joint inputs and sensor readings, in SI units on one time grid.

    Arguments:
        ts: increasing times [s].
        sensors: readings by name of the sensor; NaN is a gap.
        motions: recorded joint coordinates (motor side) that the joints follow.
        efforts: torques or forces by joint.
        currents: motor currents [A] by joint, scaled by its ``motor.torque_constant``.
            Motions, efforts and currents have no gaps.
        drive: everything else that acts: controllers, loads, a moving base, other inputs.
        start: :class:`Start`, a dict of joint coordinates, "rest" for the equilibrium under the
            inputs at the first time, or :class:`UnknownStart` for a start that the readings show.
        noise: standard deviations of sensors, where known.
        motion_noise: standard deviations of recorded motions, by joint. Then the motion itself is
            estimated, and the recording is a measurement of it. Without it, noise of
            the motion makes estimates wrong and their intervals too narrow.
        hold: course of efforts and currents between samples: "cubic", "linear" or "zero".
        name: label in results.
        kinds: what the units of sensors measure, where they were given.

    >>> import numpy as np, flexjax as fx
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> print(fx.Experiment(t, {"gauge": np.sin(t)}, efforts={"pin": np.cos(t)}))
    experiment: 101 samples, 0 .. 1 s, about 100 Hz; inputs effort pin; sensors gauge
    """

    ts: np.ndarray
    sensors: Channels
    motions: Channels = dataclasses.field(default_factory=dict)
    efforts: Channels = dataclasses.field(default_factory=dict)
    currents: Channels = dataclasses.field(default_factory=dict)
    drive: Drive = dataclasses.field(default_factory=Drive)
    start: Any = None
    noise: dict[str, float] = dataclasses.field(default_factory=dict)
    motion_noise: dict[str, float] = dataclasses.field(default_factory=dict)
    hold: Hold = "cubic"
    name: str = "experiment"
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        set_ = lambda field, value: object.__setattr__(self, field, value)
        set_("ts", np.array(self.ts, float))
        for field in FIELDS:
            channels = dict(getattr(self, field)).items()
            set_(field, {name: np.array(values, float) for name, values in channels})
        faults = _time_faults(self.ts) or self._channel_faults()
        if faults:
            raise ValueError(f"experiment {self.name!r}:\n" + "\n".join(f"  - {f}" for f in faults))
        for field in FIELDS:
            for name, values in getattr(self, field).items():
                clipped = saturated(values)
                if clipped is not None:
                    warnings.warn(
                        f"experiment {self.name!r}: {field}.{name}: saturated at "
                        f"{values[clipped[0]]:g} from row {clipped[0]} to {clipped[1]}; expected "
                        "a range that the signal does not leave. Replace these samples by a gap: "
                        "experiment.without(begin, end, sensor).",
                        stacklevel=3,
                    )

    def _channel_faults(self) -> list[str]:
        faults, n = [], len(self.ts)
        for field in FIELDS:
            for name, values in getattr(self, field).items():
                where = f"{field}.{name}"
                if values.shape != (n,):
                    faults.append(
                        f"{where}: shape {values.shape}; expected ({n},), one value for each time."
                    )
                elif np.all(np.isnan(values)):
                    faults.append(f"{where}: contains no number; leave the channel out.")
                elif np.any(np.isinf(values)):
                    faults.append(
                        f"{where}: infinite at t = {self.ts[np.isinf(values)][0]:g} s; expected "
                        "numbers, or NaN for gaps."
                    )
                elif field != "sensors" and np.any(np.isnan(values)):
                    faults.append(
                        f"{where}: {int(np.isnan(values).sum())} gaps; an input has none. Fill "
                        "them: experiment.read(..., fill=0.05)."
                    )
        if not self.sensors:
            faults.append("sensors: none; expected the readings of at least one sensor.")
        driven = [name for field in INPUTS for name in getattr(self, field)]
        twice = {x for x in driven if driven.count(x) > 1} | (set(driven) & set(self.drive.joints))
        faults += [
            f"joint {name!r}: driven twice; expected one of motions, efforts, currents, "
            "drive.joints."
            for name in sorted(twice)
        ]
        faults += [
            f"noise.{k}: no such sensor here; expected one of {', '.join(self.sensors)}."
            for k in self.noise
            if k not in self.sensors
        ]
        faults += [
            f"motion_noise.{k}: no motion of it is recorded; expected one of "
            f"{', '.join(self.motions) or 'motions, of which there are none'}."
            for k in self.motion_noise
            if k not in self.motions
        ]
        faults += [
            f"{field}.{k}: {v}; expected a positive number."
            for field in ("noise", "motion_noise")
            for k, v in getattr(self, field).items()
            if not v > 0
        ]
        known = isinstance(self.start, dict | Start | UnknownStart)
        if not (self.start is None or known or self.start == "rest"):
            faults.append(
                f"start: {self.start!r}; expected fx.Start, fx.UnknownStart, a dict of joint "
                "coordinates, or 'rest'."
            )
        return faults

    # ---- from files ----

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        sensors: dict[str, str] | None = None,
        motions: dict[str, str] | None = None,
        efforts: dict[str, str] | None = None,
        currents: dict[str, str] | None = None,
        units: dict[str, str] | None = None,
        offset: float = 0.0,
        fill: float = 0.0,
        name: str | None = None,
        **others: Any,
    ) -> "Experiment":
        """Read CSV (or any separated text), MAT, NPZ or netCDF.

        Arguments:
            path: the file.
            time: name of the time column.
            rate: sampling rate [Hz] of a file without time column.
            sensors, motions, efforts, currents: name in the robot -> column of the file. By
                default a column ``motion.<joint>``, ``effort.<joint>`` or ``current.<joint>`` is
                that input, and every other column the sensor of its name.
            units: column -> unit, where neither header ("tip [mm]") nor attributes give it;
                SI otherwise.
            offset: added to all times [s].
            fill: longest gap of an input that is interpolated [s].
            name: label in results (default: the name of the file).
            others: drive, start, noise, motion_noise, hold.

        Returns:
            The experiment.
        """
        columns, where = read_columns(path), f"data file {str(path)!r}"
        table = Table(columns, dict(units or {}), where)
        ts, used = table.time(time, rate)
        given = {"sensors": sensors, "motions": motions, "efforts": efforts, "currents": currents}
        if motions is None and efforts is None and currents is None:
            for role, field in ROLES.items():
                given[field] = {c[len(role) + 1 :]: c for c in columns if c.startswith(role + ".")}
        if sensors is None:
            taken = {c for m in given.values() if m for c in m.values()} | {used}
            given["sensors"] = {
                c: c
                for c in columns
                if c not in taken and not c.startswith(tuple(r + "." for r in ROLES))
            }
        mappings = {field: mapping or {} for field, mapping in given.items()}
        channels = {field: table.pick(field, mapping) for field, mapping in mappings.items()}
        units_of = {k: table.unit(c) for k, c in mappings["sensors"].items()}
        kinds = {k: unit.kind for k, unit in units_of.items() if unit is not None}
        ts = ts + offset
        if not _time_faults(ts):
            for field in ROLES.values():
                channels[field] = {k: _filled(ts, v, fill) for k, v in channels[field].items()}
        return cls(ts=ts, **channels, kinds=kinds, name=name or Path(path).stem, **others)

    @classmethod
    def simulated(
        cls,
        traj: Trajectory,
        drive: Drive | None = None,
        *,
        key: PRNGKeyArray | None = None,
        name: str = "simulated",
        **others: Any,
    ) -> "Experiment":
        """Take the readings of a simulated run as measured.

        Arguments:
            traj: the run.
            drive: its drive.
            key: adds the noise of the robot's sensors.
            name: label in results.
            others: other fields of the experiment.

        Returns:
            The experiment.
        """
        from flexjax.simulate.trajectory import measure

        readings = {k: np.asarray(v) for k, v in measure(traj, key=key).items()}
        drive = Drive() if drive is None else drive
        return cls(np.asarray(traj.ts), readings, drive=drive, name=name, **others)

    # ---- changed copies ----

    def window(self, begin: float, end: float) -> "Experiment":
        """The segment from ``begin`` to ``end`` [s]."""
        keep = (self.ts >= begin - 1e-9) & (self.ts <= end + 1e-9)
        if keep.sum() < 2:
            raise ValueError(
                f"experiment {self.name!r}: no samples from {begin:g} to {end:g} s; it spans "
                f"{self.ts[0]:g} to {self.ts[-1]:g} s."
            )
        return self._mapped(lambda x: x[keep], ts=self.ts[keep])

    def split(self, time: float) -> tuple["Experiment", "Experiment"]:
        """Two experiments, before and after a time: one to fit, one to check."""
        return self.window(self.ts[0], time), self.window(time, self.ts[-1])

    def windows(self, n: int) -> list["Experiment"]:
        """``n`` consecutive experiments of equal length.

        Fit a long or chaotic recording by short runs with free starts
        (``free=[..., "start.joints.*", "start.rates.*"]``), so that errors cannot grow.
        """
        size = len(self.ts) // n
        if n < 1 or size < 2:
            raise ValueError(
                f"windows: {n} of a recording of {len(self.ts)} samples; expected at least 1, with "
                "two samples each."
            )
        windows = []
        for k in range(n):
            part = slice(k * size, (k + 1) * size)
            window = self._mapped(lambda x, part=part: x[part], ts=self.ts[part])
            windows.append(dataclasses.replace(window, name=f"{self.name}/{k + 1}"))
        return windows

    def without(self, begin: float, end: float, *sensors: str) -> "Experiment":
        """Replace readings from ``begin`` to ``end`` (of these sensors, or all) by a gap.

        The model runs through a gap; the loss ignores it.
        """
        gap = (self.ts >= begin - 1e-9) & (self.ts <= end + 1e-9)
        new = {
            k: np.where(gap & (not sensors or k in sensors), np.nan, v)
            for k, v in self.sensors.items()
        }
        return dataclasses.replace(self, sensors=new)

    def resample(self, step: float) -> "Experiment":
        """Resample to an even grid of ``step`` [s]; gaps stay gaps.

        Where the grid is coarser than a channel, the channel is averaged over each step, so that
        aliases. Where it is finer, a grid time has a reading if a sample lies within half a step,
        or one within a step on either side; no reading is invented between the frames of a slow
        camera. Inputs are interpolated.
        """
        n = int(np.floor((self.ts[-1] - self.ts[0]) / step * (1 + 1e-9))) + 1
        if n < 2:
            raise ValueError(
                f"resample: {step:g} s; expected less than the recording's length, "
                f"{self.ts[-1] - self.ts[0]:g} s."
            )
        grid = self.ts[0] + step * np.arange(n)
        fields = {
            field: {
                k: resampled(self.ts, v, grid, step, filled=field != "sensors")
                for k, v in getattr(self, field).items()
            }
            for field in FIELDS
        }
        return dataclasses.replace(self, ts=grid, **fields)

    def shift(self, offset: float) -> "Experiment":
        """Shift the times by ``offset`` [s]."""
        return dataclasses.replace(self, ts=self.ts + offset)

    def smooth(self, frequency: float, *names: str) -> "Experiment":
        """Low-pass inputs (these, or all) at ``frequency`` [Hz] without delay.

        A motion from an encoder has steps, whose acceleration a model cannot follow.
        """
        from scipy.signal import butter, sosfiltfilt

        step = np.diff(self.ts)
        if np.ptp(step) > 1e-3 * step.mean():
            raise ValueError(
                f"experiment {self.name!r}: smooth needs even times (steps {step.min():g} to "
                f"{step.max():g} s); resample(...) first."
            )
        if not 0 < frequency < 0.5 / step.mean():
            raise ValueError(
                f"smooth: {frequency:g} Hz; expected above zero and below half the sampling rate, "
                f"{0.5 / step.mean():g} Hz."
            )
        sos = butter(4, frequency * 2 * step.mean(), output="sos")
        change = lambda d: {
            k: sosfiltfilt(sos, v) if not names or k in names else v for k, v in d.items()
        }
        return dataclasses.replace(self, **{f: change(getattr(self, f)) for f in INPUTS})

    def _mapped(self, fn: Callable[[np.ndarray], np.ndarray], ts: np.ndarray) -> "Experiment":
        fields = {f: {k: fn(v) for k, v in getattr(self, f).items()} for f in FIELDS}
        return dataclasses.replace(self, ts=ts, **fields)

    # ---- for the model ----

    def faults(self, robot: Robot) -> list[str]:
        """Names and units that do not fit a robot, as sentences."""
        known = {s.name: s for s in robot.sensors}
        faults = []
        for name in self.sensors:
            if name not in known:
                faults.append(no_such_sensor(f"sensors.{name}", name, known))
                continue
            kind, wanted = self.kinds.get(name), _sensor_kind(known[name], robot)
            unit_matters = wanted != "any" and float(known[name].gain) == 1.0
            if kind and unit_matters and kind not in (wanted, "reading"):
                faults.append(
                    f"sensors.{name}: recorded as {kind}, but a sensor of kind "
                    f"{known[name].kind} gives {wanted}; correct the unit or the mapping."
                )
        joints = {j.name: j for j in robot.tree_joints}
        for field in INPUTS:
            for name in getattr(self, field):
                if name not in joints:
                    faults.append(no_such_joint(f"{field}.{name}", name, joints))
                elif field == "currents" and joints[name].torque_constant is None:
                    faults.append(NEEDS_CONSTANT.format(name=name))
        return faults

    def full_drive(self, robot: Robot) -> Drive:
        """The drive with the recorded inputs; torque constants of the robot may be traced."""
        acts = dict(self.drive.joints)
        acts |= {k: Motion(track(self.ts, v)) for k, v in self.motions.items()}
        acts |= {k: Effort(track(self.ts, v, self.hold)) for k, v in self.efforts.items()}
        for k, v in self.currents.items():
            constant = robot.joints[robot.joint_index(k)].torque_constant
            if constant is None:
                raise ValueError(NEEDS_CONSTANT.format(name=k))
            acts[k] = Effort(Scaled(constant, track(self.ts, v, self.hold)))
        return Drive(acts, self.drive.loads, self.drive.base)

    def full_start(self, robot: Robot) -> Start:
        """The start of the model. A flexible joint with a recorded motor starts unstretched."""
        given = self.start
        if given is None or given == "rest" or isinstance(given, UnknownStart):
            given = Start()
        elif isinstance(given, dict):
            given = Start(joints=given)
        joints: dict[str, NumbersLike] = dict(given.joints)
        rates: dict[str, NumbersLike] = dict(given.rates)
        for name, values in self.motions.items():
            if robot.joints[robot.joint_index(name)].flexible:
                joints.setdefault(name, values[0])
                rates.setdefault(name, float(track(self.ts, values).pieces[0, 1]))
        return Start(joints, rates, given.motors, given.links)

    def __str__(self) -> str:
        inputs = [f"{role} {k}" for role, field in ROLES.items() for k in getattr(self, field)]
        inputs += [f"drive of {k}" for k in self.drive.joints]
        gaps = int(sum(np.isnan(v).sum() for v in self.sensors.values()))
        rate = (len(self.ts) - 1) / (self.ts[-1] - self.ts[0])
        return (
            f"{self.name}: {len(self.ts)} samples, {self.ts[0]:g} .. {self.ts[-1]:g} s, about "
            f"{rate:.4g} Hz; inputs {', '.join(inputs) or 'none'}; "
            f"sensors {', '.join(self.sensors)}" + (f"; {gaps} gaps" if gaps else "")
        )

    def _repr_html_(self) -> str:
        inputs = {k: v for role in INPUTS for k, v in getattr(self, role).items()}
        return block(
            str(self),
            curves(self.ts, inputs, "time [s]", "inputs"),
            curves(self.ts, self.sensors, "time [s]", "sensors"),
        )


def _time_faults(ts: np.ndarray) -> list[str]:
    if ts.ndim != 1 or len(ts) < 2:
        return [f"ts: shape {ts.shape}; expected at least two times in one dimension."]
    bad = np.flatnonzero(~np.isfinite(ts))
    if len(bad):
        return [f"ts: row {bad[0]} is {ts[bad[0]]}; expected a time in seconds in every row."]
    back = np.flatnonzero(np.diff(ts) < 0)
    if len(back):
        k = back[0]
        return [
            f"ts: goes from {ts[k]:g} to {ts[k + 1]:g} s at row {k + 1} ({len(back)} such rows); "
            "expected increasing times. Sort or clean the recording."
        ]
    twice = np.flatnonzero(np.diff(ts) == 0)
    if len(twice):
        k = twice[0]
        return [
            f"ts: {ts[k]:g} s twice, at rows {k} and {k + 1} ({len(twice)} such pairs); expected "
            "increasing times. Remove one of the rows, or read the time with more digits."
        ]
    return []


def _filled(ts: np.ndarray, values: np.ndarray, longest: float) -> np.ndarray:
    """Interpolate gaps of at most this length along straight lines."""
    good = np.isfinite(values)
    if good.all() or not good.any():
        return values
    filled = np.interp(ts, ts[good], values[good])
    edges = np.flatnonzero(good)
    before = edges[np.clip(np.searchsorted(edges, np.arange(len(ts)), side="right") - 1, 0, None)]
    after = edges[np.clip(np.searchsorted(edges, np.arange(len(ts))), None, len(edges) - 1)]
    return np.where(good | (ts[after] - ts[before] <= longest), filled, values)


def _sensor_kind(sensor: Sensor, robot: Robot) -> str:
    """What a sensor of gain one measures, as named in the table of units."""
    if sensor.kind in ("encoder", "motor_encoder", "torque"):
        joint = robot.joints[robot.joint_index(sensor.on)].type
        if joint == "free":
            return "any"
        linear = joint in ("sliding", "prismatic")
        return {"torque": ("torque", "force")}.get(sensor.kind, ("angle", "length"))[linear]
    return {
        "tip": "length",
        "strain_gauge": "number",
        "flex": "angle",
        "accelerometer": "acceleration",
    }[sensor.kind]
