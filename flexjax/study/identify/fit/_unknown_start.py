"""Starts with free amplitudes of modes and free states of filters, as parameters of a fit."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._types import ScalarLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate import displaced_start, modes, static_readings
from flexjax.study.free import Parameters, Target
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.records._unknown_start import UnknownStart

ROOTS = ("modes", "filters")  # fields of a FreeStart that are parameters


class FreeStart(eqx.Module):
    """A start displaced along mode shapes, and filters away from steady state.

    ``shapes``: tangents of the state, rows. ``filters``: output and rate of the output, by sensor.
    """

    start: Start
    modes: Float[Array, " m"]
    filters: dict[str, Float[Array, "2"]]
    shapes: Float[Array, "m N"]

    def state(self, model: AbstractModel, drive: Drive, t: ScalarLike) -> State:
        return displaced_start(model, drive, t, self.start, self.modes @ self.shapes)


def free_start(model: AbstractModel, experiment: Experiment, start: Start) -> Start | FreeStart:
    """``start``, with free parameters if that of the experiment is an :class:`UnknownStart`.

    A unit of each parameter changes the readings by about as much as they vary.
    """
    given = experiment.start
    if not isinstance(given, UnknownStart):
        return start
    if given.samples >= len(experiment.ts):
        raise ValueError(
            f"{experiment.name}: start.samples: {given.samples}; expected less than the "
            f"recording's {len(experiment.ts)}."
        )
    robot = model.robot
    filtered = [
        s.name for s in robot.sensors if s.lowpass is not None and s.name in experiment.sensors
    ]
    zero = jnp.zeros(2, robot.gravity.dtype)
    shapes = _shapes(model, experiment, start, given.modes)
    none = jnp.zeros(shapes.shape[0], shapes.dtype)
    return FreeStart(start, none, {name: zero for name in filtered}, shapes)


def _shapes(
    model: AbstractModel, experiment: Experiment, start: Start, count: int
) -> Float[Array, "m N"]:
    """Real and imaginary parts of the lowest modes: their displacements and velocities."""
    smooth = model.formulation.bind(_without_friction(model.robot), dtype=model.robot.gravity.dtype)
    found = modes(smooth, at=start, n=max(count, 1))
    span = float(experiment.ts[-1] - experiment.ts[0])
    if len(found.frequencies) and span * float(found.frequencies[0]) < 1:
        raise ValueError(
            f"{experiment.name}: {span:g} s from row 0 to row {len(experiment.ts) - 1}; expected "
            f"at least one period of the lowest mode, {1 / float(found.frequencies[0]):.3g} s. "
            "Give a longer recording, or a known start."
        )
    columns = found.shapes[:, :count]
    rows = jnp.stack([columns.real.T, columns.imag.T], axis=1)  # (modes, 2, N)
    names = [s.name for s in model.robot.sensors]
    used = np.array([names.index(name) for name in experiment.sensors], int)
    size = jnp.asarray([np.nanstd(v) or 1.0 for v in experiment.sensors.values()], rows.dtype)
    effect = _effects(smooth, found.drive, found.at, rows.reshape(-1, rows.shape[-1]))
    effect = jnp.abs(effect[:, used]) / size[None]
    effect = jnp.max(effect.reshape(len(rows), -1), axis=1, initial=0.0)
    rows = rows / jnp.where(effect > 0, effect, 1.0)[:, None, None]
    return rows.reshape(-1, rows.shape[-1])


@filter_jit
def _effects(
    model: AbstractModel, drive: Drive, at: State, rows: Float[Array, "m N"]
) -> Float[Array, "m p"]:
    """Changes of the sensors' static readings along tangents of a state."""
    t = jnp.zeros((), rows.dtype)

    def readings(x):
        return static_readings(model, drive, t, displaced_start(model, drive, t, at, x))

    return jax.vmap(lambda x: jax.jvp(readings, (jnp.zeros_like(x),), (x,))[1])(rows)


def _without_friction(robot: Robot) -> Robot:
    """Friction at rest would damp every mode that moves a joint; play would leave it free."""
    none = {"friction": None, "output_friction": None, "spring_friction": None}
    none |= {"backlash": None, "backlash_smooth": None}
    joints = tuple(dataclasses.replace(joint, **none) for joint in robot.joints)
    return dataclasses.replace(robot, joints=joints)


def start_rows(
    starts: Sequence[Start | FreeStart], experiments: Sequence[Experiment]
) -> list[dict]:
    """Rows of the parameters for every component of free starts."""
    rows = []
    for e, start in enumerate(starts):
        if not isinstance(start, FreeStart):
            continue
        places = [(("modes",), i, 1.0) for i in range(start.modes.shape[0])]
        for name in start.filters:
            size = float(np.nanstd(experiments[e].sensors[name])) or 1.0
            places += [(("filters", name), i, size) for i in range(2)]
        for steps, i, size in places:
            rows.append(
                {
                    "name": f"start.{'.'.join(steps)}.{i} of {experiments[e].name}",
                    "unit": "",
                    "kind": "none",
                    "targets": [Target("start", steps, (i,), e, 1.0)],
                    "start": 0.0,
                    "lower": -np.inf,
                    "upper": np.inf,
                    "scale": size,
                    "prior_mean": 0.0,
                    "prior_sd": size,
                }
            )
    return rows


def of_recordings(par: Parameters) -> np.ndarray:
    """Mask of the parameters that a recording has for itself: its free start, its motions, and
    parameters of its drive."""
    return np.array([any(_free(t) for t in targets) for targets in par.targets], bool)


def _free(target: Target) -> bool:
    own = target.root == "drive" and target.experiment is not None
    return own or target.root == "start" and target.steps[0] in ROOTS
