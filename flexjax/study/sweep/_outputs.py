"""What a sweep keeps of every run: fields of the trajectory, sensors, or functions of it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from flexjax.mechanism import Energy
from flexjax.robot import Robot, sensor_unit
from flexjax.simulate.trajectory import ENERGIES, FIELDS, Trajectory, measure

Outputs = str | Callable[[Trajectory], Any] | Sequence[Any] | Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Output:
    """One output: its name, dimensions, unit, meaning, and how to read it from a run."""

    name: str
    dims: tuple[str, ...] | None  # None: a function's own
    unit: str
    meaning: str
    read: Callable[[Trajectory], jax.Array]


def read_outputs(outputs: Outputs, robot: Robot) -> tuple[Output, ...]:
    """The outputs by name, a function, a list of both, or a dict of functions."""
    if isinstance(outputs, str) or callable(outputs):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        found = [_function(str(name), f) for name, f in outputs.items()]
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
    return Output(name, None, "", "", lambda traj: jnp.asarray(function(traj)))


def _named(name: str, robot: Robot) -> Output:
    sensors = {s.name: s for s in robot.sensors}
    if name == "tip":
        return Output(name, ("time", "axis"), "m", "position of the tip", lambda traj: traj.tip)
    if name in FIELDS:
        dims, unit, meaning = FIELDS[name]
        return Output(name, dims, unit, meaning, lambda traj: getattr(traj, name))
    if name in sensors:
        unit = sensor_unit(sensors[name], robot)
        return Output(name, ("time",), unit, "reading", lambda traj: measure(traj)[name])
    head, _, part = name.partition(".")
    if head == "energy" and hasattr(Energy, part) or part in ENERGIES:
        return Output(
            name, ("time",), "J", ENERGIES.get(part, part), lambda traj: getattr(traj.energy, part)
        )
    known = ["tip", *FIELDS, *(f"energy.{e}" for e in ENERGIES), *sensors]
    raise ValueError(
        f"outputs: {name!r}; expected some of {', '.join(known)}, or a function of the trajectory."
    )
