"""Costs of a move, by name. Each is a number for one sample of the robot, zero at best."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.simulate import Rest, Trajectory, peak_deflection


class Move(eqx.Module):
    """A simulated move: the run, its duration [s], the steps until it ends, and the arm at rest at
    the goal."""

    traj: Trajectory
    duration: Float[Array, ""]
    goal: Rest
    steps: int = eqx.field(static=True)

    @property
    def dt(self) -> Float[Array, " n"]:
        return jnp.diff(self.traj.ts)

    def integral(self, rate: Float[Array, "T ..."]) -> Float[Array, ""]:
        """Trapezoidal rule over the run, summed over the other axes."""
        total = jnp.sum(rate.reshape(rate.shape[0], -1), axis=1)
        return jnp.sum(0.5 * (total[1:] + total[:-1]) * self.dt)


def residual_energy(move: Move) -> Float[Array, ""]:
    """Energy above that at rest when the move ends [J]; afterwards the motors stand still."""
    energy = move.traj.energy.mechanical[move.steps] - move.goal.energy.mechanical
    return jnp.maximum(energy, 0.0)


def residual_tip(move: Move) -> Float[Array, ""]:
    """Mean square distance of the tip from rest after the move [m2]."""
    away = move.traj.tip[move.steps :] - move.goal.tip[None]
    return jnp.mean(jnp.sum(away**2, axis=1))


def deflection(move: Move) -> Float[Array, ""]:
    """Square of the largest deflection of any link [m2]."""
    return jnp.max(peak_deflection(move.traj)) ** 2


def effort(move: Move) -> Float[Array, ""]:
    """Integral of the squared efforts."""
    return move.integral(move.traj.effort**2)


def energy(move: Move) -> Float[Array, ""]:
    """Energy that the motors spend, without recovery [J]."""
    return move.integral(jnp.maximum(move.traj.effort * move.traj.qd, 0.0))


def jerk(move: Move) -> Float[Array, ""]:
    """Integral of the squared jerk of the joints."""
    slope = jnp.diff(move.traj.qdd, axis=0) / move.dt[:, None]
    return jnp.sum(slope**2 * move.dt[:, None])


def time(move: Move) -> Float[Array, ""]:
    """Duration of the move [s]."""
    return move.duration


COSTS: dict[str, Callable[[Move], Array]] = {
    "residual_energy": residual_energy,
    "residual_tip": residual_tip,
    "deflection": deflection,
    "effort": effort,
    "energy": energy,
    "jerk": jerk,
    "time": time,
}
HOLDS = ("residual_tip",)  # costs that look at the time after the move
SQUARES = ("residual_energy", "residual_tip", "deflection")  # squares of an amplitude

Minimise = str | Callable[[Trajectory], Any] | Mapping[str, Any]


class Cost(eqx.Module):
    """One cost with its weight. A user's function takes the trajectory."""

    name: str = eqx.field(static=True)
    weight: float = eqx.field(static=True)
    function: Callable[[Any], Any] = eqx.field(static=True)
    own: bool = eqx.field(static=True)

    def __call__(self, move: Move) -> Array:
        value = jnp.asarray(self.function(move.traj if self.own else move))
        if value.ndim:
            raise ValueError(
                f"minimise.{self.name}: the function returns shape {value.shape}; expected one "
                "number, e.g. jnp.sum(...)."
            )
        return value


def read_costs(minimise: Minimise) -> tuple[Cost, ...]:
    """The costs that ``minimise`` names."""
    if isinstance(minimise, str):
        minimise = {minimise: 1.0}
    elif callable(minimise):
        minimise = {getattr(minimise, "__name__", "cost"): minimise}
    if not minimise:
        raise ValueError(f"minimise: none; expected one of {', '.join(COSTS)}, or a function.")
    found = []
    for name, value in minimise.items():
        function: Any = COSTS.get(name)
        weight: Any = value
        if callable(value):
            function, weight = value, 1.0
        elif isinstance(value, tuple):
            function, weight = value
        known = function is COSTS.get(name)
        if function is None or not callable(function):
            raise ValueError(
                f"minimise.{name}: unknown; expected one of {', '.join(COSTS)}, or a function of "
                "the trajectory."
            )
        if not float(weight) > 0:
            raise ValueError(f"minimise.{name}: weight {weight}; expected a positive number.")
        found.append(Cost(name, float(weight), function, not known))
    return tuple(found)
