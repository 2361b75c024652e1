"""Sensor readings of one state, for linear models: the sensors' static part."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from flexjax._deferred import Source
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate.trajectory import Statistics, Trajectory, measure


def static_readings(
    model: AbstractModel, drive: Drive, t: Float[Array, ""], y: State, stations: int = 21
) -> Float[Array, " p"]:
    """(p,) readings of the robot's sensors at one state, without low-pass, delay and noise."""
    s = jnp.linspace(0.0, 1.0, stations, dtype=model.robot.gravity.dtype)

    def outputs(names):
        found = model.outputs(t, y, drive, s, None, frozenset(names))
        return jtu.tree_map(lambda x: x[None], found)

    zero = jnp.zeros((), jnp.int32)
    traj = Trajectory.deferred(
        Source(outputs),
        ts=t[None],
        status=zero,
        t_fail=jnp.zeros_like(t),
        where=zero,
        stats=Statistics(zero, jnp.zeros_like(t), "", ""),
        final=y,
        stations=s,
        robot=model.robot,
        ends=None,
    )
    values = measure(traj, _bare(model.robot))
    return jnp.stack([v[0] for v in values.values()]) if values else jnp.zeros(0, t.dtype)


def _bare(robot: Robot) -> Robot:
    """The robot with its sensors' low-pass and delay left out."""
    sensors = tuple(
        dataclasses.replace(s, lowpass=None, delay=None, noise=None, skew=None, quantum=None)
        for s in robot.sensors
    )
    return eqx.tree_at(lambda r: r.sensors, robot, sensors)
