"""Costs of a move, by name. Each is a number for one sample of the robot, zero at best."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.drive import Drive
from flexjax.drive.signal import AbstractSignal
from flexjax.formulation import AbstractModel
from flexjax.robot import Robot
from flexjax.simulate import Rest, Trajectory, peak_deflection


class Move(eqx.Module):
    """A simulated move: the run, its duration [s], the steps until it ends, and the arm at rest at
    the goal."""

    traj: Trajectory
    duration: Float[Array, ""]
    goal: Rest
    model: AbstractModel
    drive: Drive
    steps: int = eqx.field(static=True)

    @property
    def dt(self) -> Float[Array, " n"]:
        return jnp.diff(self.traj.ts)

    @property
    def root_weights(self) -> Float[Array, " T"]:
        """Roots of the weights of the trapezoidal rule."""
        half = 0.5 * self.dt
        return jnp.sqrt(jnp.pad(half, (0, 1)) + jnp.pad(half, (1, 0)))

    def integral(self, rate: Float[Array, "T ..."]) -> Float[Array, ""]:
        """Trapezoidal rule over the run, summed over the other axes."""
        total = jnp.sum(rate.reshape(rate.shape[0], -1), axis=1)
        return jnp.sum(0.5 * (total[1:] + total[:-1]) * self.dt)


def residual_energy(move: Move) -> Float[Array, ""]:
    """Energy above that at rest when the move ends [J]; afterwards the motors stand still."""
    if move.traj.ts.shape[0] == move.steps + 1:
        # That of the last state alone: the energies of all outputs take as long as the run.
        end = move.model.energy(move.duration, move.traj.final, move.drive).mechanical
    else:
        end = move.traj.energy.mechanical[move.steps]
    return jnp.maximum(end - move.goal.energy.mechanical, 0.0)


def deflection(move: Move) -> Float[Array, ""]:
    """Square of the largest deflection of any link [m2]."""
    return jnp.max(peak_deflection(move.traj)) ** 2


def energy(move: Move) -> Float[Array, ""]:
    """Energy that the motors spend, without recovery [J]."""
    return move.integral(jnp.maximum(move.traj.effort * move.traj.qd, 0.0))


def time(move: Move) -> Float[Array, ""]:
    """Duration of the move [s]."""
    return move.duration


def residual_tip(move: Move, reference: Any) -> Float[Array, "T 3"]:
    """Distance of the tip from rest after the move; the cost is its mean square [m2]."""
    away = move.traj.tip[move.steps :] - move.goal.tip[None]
    return away / np.sqrt(away.shape[0])


def effort(move: Move, reference: Any) -> Float[Array, "T D"]:
    """The cost is the integral of the squared efforts."""
    return move.traj.effort * move.root_weights[:, None]


def jerk(move: Move, reference: Any) -> Float[Array, "T D"]:
    """The cost is the integral of the squared jerk of the joints."""
    return jnp.diff(move.traj.qdd, axis=0) / jnp.sqrt(move.dt)[:, None]


def tip_path(move: Move, reference: AbstractSignal) -> Float[Array, "T 3"]:
    """Distance of the tip from a path in time; the cost is the integral of its square [m2 s]."""
    path = jax.vmap(lambda t: reference.evaluate(t)[0])(move.traj.ts)
    return (move.traj.tip - path) * move.root_weights[:, None]


def tracking(move: Move, reference: Mapping[str, AbstractSignal]) -> Float[Array, "T k"]:
    """Distance of joints from references; the cost is the integral of its square."""
    slices, rows = move.traj.robot.dof_slices(), []
    for joint, signal in reference.items():
        path = jax.vmap(lambda t, signal=signal: jnp.atleast_1d(signal.evaluate(t)[0]))(
            move.traj.ts
        )
        rows.append((move.traj.q[:, slices[joint]] - path) * move.root_weights[:, None])
    return jnp.concatenate(rows, axis=1)


# Costs that are sums of squares of a vector, and others.
VECTORS: dict[str, Callable[[Move, Any], Array]] = {
    "residual_tip": residual_tip,
    "effort": effort,
    "jerk": jerk,
    "tip_path": tip_path,
    "tracking": tracking,
}
SCALARS: dict[str, Callable[[Move], Array]] = {
    "residual_energy": residual_energy,
    "deflection": deflection,
    "energy": energy,
    "time": time,
}
COSTS = ("residual_energy", "residual_tip", "deflection", "effort", "energy", "jerk", "time")
REFERENCED = ("tip_path", "tracking")  # costs that compare with a signal
HOLDS = ("residual_tip",)  # costs that look at the time after the move
SQUARES = ("residual_energy", "residual_tip", "deflection")  # squares of an amplitude

Minimise = str | Callable[[Trajectory], Any] | Mapping[str, Any]


class Cost(eqx.Module):
    """One cost with its weight. A user's function takes the trajectory."""

    name: str = eqx.field(static=True)
    weight: float = eqx.field(static=True)
    function: Callable[[Any], Any] | None = eqx.field(static=True, default=None)
    reference: Any = None

    @property
    def own(self) -> bool:
        """Whether it is a user's function."""
        return self.function is not None

    @property
    def squares(self) -> bool:
        """Whether the cost is a sum of squares, whose curvature follows from first derivatives."""
        return not self.own and self.name in (*VECTORS, "residual_energy", "time")

    def vector(self, move: Move) -> Float[Array, " k"]:
        """Numbers whose squares add up to the cost; none where it is no sum of squares."""
        if self.own or self.name not in VECTORS:
            return jnp.zeros(0, move.traj.ts.dtype)
        return VECTORS[self.name](move, self.reference).reshape(-1)

    def __call__(self, move: Move) -> Array:
        if self.function is None:
            if self.name in VECTORS:
                return jnp.sum(self.vector(move) ** 2)
            return SCALARS[self.name](move)
        value = jnp.asarray(self.function(move.traj))
        if value.ndim:
            raise ValueError(
                f"minimise.{self.name}: the function returns shape {value.shape}; expected one "
                "number, e.g. jnp.sum(...)."
            )
        return value


def read_costs(robot: Robot, minimise: Minimise) -> tuple[Cost, ...]:
    """The costs that ``minimise`` names."""
    if isinstance(minimise, str):
        minimise = {minimise: 1.0}
    elif callable(minimise):
        minimise = {getattr(minimise, "__name__", "cost"): minimise}
    if not minimise:
        raise ValueError(f"minimise: none; expected one of {', '.join(COSTS)}, or a function.")
    return tuple(_read_cost(robot, name, value) for name, value in minimise.items())


def _read_cost(robot: Robot, name: str, value: Any) -> Cost:
    given, weight = value if isinstance(value, tuple) else (value, 1.0)
    if name in REFERENCED:
        reference = _read_reference(robot, name, given)
        return Cost(name, _read_weight(name, weight), None, reference)
    if callable(given):
        return Cost(name, _read_weight(name, weight), given)
    if name not in COSTS:
        raise ValueError(
            f"minimise.{name}: unknown; expected one of {', '.join((*COSTS, *REFERENCED))}, or a "
            "function of the trajectory."
        )
    return Cost(name, _read_weight(name, value))


def _read_weight(name: str, weight: Any) -> float:
    if not isinstance(weight, int | float) or not weight > 0:
        raise ValueError(f"minimise.{name}: weight {weight}; expected a positive number.")
    return float(weight)


def _read_reference(robot: Robot, name: str, given: Any) -> Any:
    if name == "tip_path":
        if not isinstance(given, AbstractSignal) or given.evaluate(0.0)[0].shape != (3,):
            raise ValueError(
                "minimise.tip_path: expected a signal with the position (3,) of the tip in time, "
                "e.g. fx.stack([...]), or (signal, weight)."
            )
        return given
    known = {j.name for j in robot.tree_joints if j.dofs}
    signals = isinstance(given, Mapping) and all(
        isinstance(x, AbstractSignal) for x in given.values()
    )
    if not signals or not given or not set(given) <= known:
        raise ValueError(
            "minimise.tracking: expected signals by name of the joint, e.g. "
            f"{{{sorted(known)[0]!r}: fx.quintic(0.0, 1.0, 0.5)}}, or (signals, weight)."
        )
    return dict(given)
