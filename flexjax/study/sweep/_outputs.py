"""What a sweep keeps of every run: fields of the trajectory, sensors, or functions of it."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from flexjax.robot import Robot, sensor_unit
from flexjax.simulate import trajectory
from flexjax.simulate.trajectory import ENERGIES, FIELDS, Trajectory, measure

Outputs = str | Callable[[Trajectory], Any] | Sequence[Any] | Mapping[str, Any]

# Quantities of a run that an output may name: dimensions, unit, meaning.
REDUCERS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "peak_deflection": (("link",), "m", "largest deflection of every link"),
    "residual_vibration": ((), "m", "largest distance of the tip from rest after the move"),
    "settling_time": ((), "s", "time until the tip stays near its rest position"),
}


@dataclasses.dataclass(frozen=True)
class Output:
    """One output: its name, dimensions, unit, meaning, and how to read it from a run.

    ``kind`` with ``source``: "field" of the trajectory, "energy", "sensor", "reducer" with
    ``options``, or "function". Equal outputs compare equal, so that their programs are found again.
    """

    name: str
    dims: tuple[str, ...] | None  # None: a function's own
    unit: str
    meaning: str
    kind: str
    source: Any
    options: tuple[tuple[str, float], ...] = ()
    every: int = 1  # of the output times, the last included where it fits

    def read(self, traj: Trajectory) -> Array:
        value = self._value(traj)
        return value if self.every == 1 else value[:: self.every]

    def _value(self, traj: Trajectory) -> Array:
        if self.kind == "field":
            return getattr(traj, self.source)
        if self.kind == "energy":
            return getattr(traj.energy, self.source)
        if self.kind == "sensor":
            return measure(traj)[self.source]
        if self.kind == "reducer":
            return getattr(trajectory, self.source)(traj, **dict(self.options))
        return jnp.asarray(self.source(traj))


def read_outputs(outputs: Outputs, robot: Robot) -> tuple[Output, ...]:
    """The outputs by name, a function, a list of both, or a dict of functions."""
    if isinstance(outputs, str) or callable(outputs):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        found = [
            dataclasses.replace(_named(f, robot), name=str(name))
            if isinstance(f, str)
            else _function(str(name), f)
            for name, f in outputs.items()
        ]
    else:
        found = [
            _named(x, robot) if isinstance(x, str) else _function(_name_of(x), x) for x in outputs
        ]
    names = [x.name for x in found]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"outputs: {names}; expected at least one, each once. Give functions without a name of "
            "their own in a dict: {'peak': lambda traj: ...}."
        )
    return tuple(found)


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None) or getattr(
        getattr(function, "func", None), "__name__", ""
    )
    return "" if name == "<lambda>" else name


def _function(name: str, function: Any) -> Output:
    if not callable(function) or not name:
        raise ValueError(
            f"outputs: {name or function!r}; expected a name or a function of the trajectory, in a "
            "dict if it has no name: {'peak': lambda traj: ...}."
        )
    return Output(name, None, "", "", "function", function)


def _named(text: str, robot: Robot) -> Output:
    """``tip``, ``tip[::10]`` (every tenth time), ``residual_vibration:after=0.5``."""
    match = re.fullmatch(r"(.*)\[::([1-9][0-9]*)\]", text)
    if match is None:
        return _plain(text, robot)
    found, every = _plain(match[1], robot), int(match[2])
    if found.dims is None or found.dims[:1] != ("time",):
        raise ValueError(f"outputs: {text!r}; {match[1]!r} has no time to choose from.")
    return dataclasses.replace(
        found, name=text, dims=(f"time_{every}", *found.dims[1:]), every=every
    )


def _plain(name: str, robot: Robot) -> Output:
    sensors = {s.name: s for s in robot.sensors}
    head, _, part = name.partition(".")
    if name == "tip":
        return Output(name, ("time", "axis"), "m", "position of the tip", "field", "tip")
    if name in FIELDS:
        dims, unit, meaning = FIELDS[name]
        return Output(name, dims, unit, meaning, "field", name)
    if name in sensors:
        return Output(name, ("time",), sensor_unit(sensors[name], robot), "reading", "sensor", name)
    if head == "energy" and part in ENERGIES:
        return Output(name, ("time",), "J", ENERGIES[part], "energy", part)
    if name.partition(":")[0] in REDUCERS:
        return _reducer(name)
    known = ["tip", *FIELDS, *(f"energy.{e}" for e in ENERGIES), *REDUCERS, *sensors]
    raise ValueError(
        f"outputs: {name!r}; expected some of {', '.join(known)}, or a function of the trajectory."
    )


def _reducer(text: str) -> Output:
    name, _, rest = text.partition(":")
    signature = inspect.signature(getattr(trajectory, name)).parameters
    known = {k: p for k, p in signature.items() if k not in ("traj", "rest")}
    options: dict[str, float] = {}
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        try:
            options[key.strip()] = float(value)
        except ValueError:
            raise ValueError(
                f"outputs: {text!r}; {key.strip()} = {value!r}, not a number."
            ) from None
    missing = [k for k, p in known.items() if p.default is p.empty and k not in options]
    unknown = [k for k in options if k not in known]
    if missing or unknown:
        example = ",".join(f"{k}=0.5" for k in known)
        raise ValueError(
            f"outputs: {text!r}; {name} takes {', '.join(known) or 'no options'}, e.g. "
            f"'{name}{':' if example else ''}{example}'."
        )
    dims, unit, meaning = REDUCERS[name]
    return Output(text, dims, unit, meaning, "reducer", name, tuple(options.items()))
