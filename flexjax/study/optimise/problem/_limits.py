"""Limits of a move, by name. Each gives margins (T, n): positive inside, one far inside."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.mechanism import beam_properties, link_quadrature
from flexjax.robot import Link, Robot
from flexjax.simulate import surface_strain
from flexjax.simulate.analysis._linear import decay_rates
from flexjax.study.optimise.problem._costs import Move, residual_energy

ROUNDED = 0.01  # share of a residual energy's bound below which its root is rounded


def _columns(robot: Robot, joints: Sequence[str]) -> np.ndarray:
    slices = robot.dof_slices()
    return np.concatenate([np.arange(slices[name].start, slices[name].stop) for name in joints])


class Limit(eqx.Module):
    """One limit: ``labels`` name the columns of its margins."""

    name: str = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)
    bounds: np.ndarray  # (n,) or (n, 2)
    columns: tuple[int, ...] = eqx.field(static=True, default=())

    def margins(self, move: Move) -> Float[Array, "T n"]:
        return MARGINS[self.name](self, move)


def _both_sides(share: Float[Array, "T n"]) -> Float[Array, "T m"]:
    """Margins of -1 <= share <= 1. Two smooth ones: that of the absolute value has a kink, beyond
    which a search sees nothing of the other side."""
    return jnp.stack([1 - share, 1 + share], axis=-1).reshape(share.shape[0], -1)


def _symmetric(quantity: Callable[[Move], Array]):
    def margins(limit: Limit, move: Move) -> Array:
        x = quantity(move)[:, np.array(limit.columns, int)]
        return _both_sides(x / limit.bounds[None])

    return margins


def _position(limit: Limit, move: Move) -> Array:
    x = move.traj.q[:, np.array(limit.columns, int)]
    low, high = limit.bounds[:, 0], limit.bounds[:, 1]
    width = 0.5 * (high - low)
    return _both_sides((x - 0.5 * (low + high)[None]) / width[None])


def _jerk(move: Move) -> Array:
    return jnp.diff(move.traj.qdd, axis=0) / move.dt[:, None]


def _strain(limit: Limit, move: Move) -> Array:
    strain = surface_strain(move.traj)[:, np.array(limit.columns, int)]
    return (1 - strain / limit.bounds[None, :, None]).reshape(strain.shape[0], -1)


def _stress(limit: Limit, move: Move) -> Array:
    materials = [move.traj.robot.links[k].material for k in limit.columns]
    modulus = jnp.stack([jnp.asarray(m.E) for m in materials if m is not None])
    stress = surface_strain(move.traj)[:, np.array(limit.columns, int)] * modulus[None, :, None]
    return (1 - stress / limit.bounds[None, :, None]).reshape(stress.shape[0], -1)


def _mass(limit: Limit, move: Move) -> Array:
    """Masses of links, where their sections are free."""
    links = [move.traj.robot.links[k] for k in limit.columns]
    return (1 - jnp.stack([_link_mass(link) for link in links]) / limit.bounds)[None]


def _link_mass(link: Link) -> Array:
    s, w = link_quadrature(link)
    return link.length * (jnp.asarray(w) @ beam_properties(link, jnp.asarray(s)).rhoA)


def _residual_energy(limit: Limit, move: Move) -> Array:
    """Of the amplitude, which is nearly linear in the move: far from rest the energy of a bound of
    a millionth has a curvature that no line search follows. Rounded where the energy is zero."""
    share = residual_energy(move) / limit.bounds[0]
    return (np.sqrt(1 + ROUNDED) - jnp.sqrt(share + ROUNDED))[None, None]


def _stability(limit: Limit, move: Move) -> Array:
    """Decay rates of the closed loop, linearised where the arm rests at the goal."""
    rates = decay_rates(move.model, move.drive, move.goal.state, move.traj.ts[move.steps])
    return (rates / limit.bounds[0] - 1)[None]


def _tip_speed(limit: Limit, move: Move) -> Array:
    ends = move.traj if move.traj.ends is None else move.traj.ends
    square = jnp.sum(ends.velocity[:, -1, -1, :3] ** 2, axis=-1)
    return (1 - square / limit.bounds[0] ** 2)[:, None]


def _keep_out(limit: Limit, move: Move) -> Array:
    """Every station of every link outside of every ball."""
    points = move.traj.whole().frames[..., :3]
    points = points.reshape(points.shape[0], 1, -1, 3)
    centre, radius = limit.bounds[None, :, None, :3], limit.bounds[None, :, None, 3]
    square = jnp.sum((points - centre) ** 2, axis=-1)
    return (square / radius**2 - 1).reshape(points.shape[0], -1)


MARGINS: dict[str, Callable[[Limit, Move], Array]] = {
    "position": _position,
    "velocity": _symmetric(lambda move: move.traj.qd),
    "acceleration": _symmetric(lambda move: move.traj.qdd),
    "jerk": _symmetric(_jerk),
    "effort": _symmetric(lambda move: move.traj.effort),
    "power": _symmetric(lambda move: move.traj.effort * move.traj.qd),
    "strain": _strain,
    "stress": _stress,
    "mass": _mass,
    "tip_speed": _tip_speed,
    "keep_out": _keep_out,
    "residual_energy": _residual_energy,
    "stability": _stability,
}
WHOLE = {"tip_speed": "tip", "residual_energy": "arm", "stability": "loop"}  # one number each
SHAPED = ("strain", "stress", "keep_out")  # limits that look along the links


def read_limits(robot: Robot, limits: Mapping[str, Any] | None) -> tuple[Limit, ...]:
    """The limits that ``limits`` names, checked against the robot."""
    found = []
    for name, value in (limits or {}).items():
        if name not in MARGINS:
            raise ValueError(
                f"limits.{name}: unknown; expected some of {', '.join(MARGINS)}, e.g. "
                "limits={'effort': 5.0} or limits={'effort': {'shoulder': 5.0}}."
            )
        if name in WHOLE:
            bound = np.array([_positive(f"limits.{name}", value)])
            found.append(Limit(name, (WHOLE[name],), bound))
        elif name == "keep_out":
            found.append(_read_regions(value))
        elif name in ("strain", "stress", "mass"):
            found.append(_read_links(robot, name, value))
        else:
            found.append(_read_joints(robot, name, value))
    return tuple(found)


def _positive(where: str, value: Any) -> float:
    if not isinstance(value, int | float) or not value > 0 or not np.isfinite(value):
        raise ValueError(f"{where}: {value!r}; expected a positive number.")
    return float(value)


def _read_joints(robot: Robot, name: str, value: Any) -> Limit:
    known = [j.name for j in robot.tree_joints if j.dofs]
    given = value if isinstance(value, Mapping) else dict.fromkeys(known, value)
    labels, bounds = [], []
    for joint, value in given.items():
        bound: Any = value
        where = f"limits.{name}.{joint}"
        if joint not in known:
            raise ValueError(f"{where}: no such joint; expected one of {', '.join(known)}.")
        if name == "position":
            if np.shape(bound) != (2,) or not bound[0] < bound[1]:
                raise ValueError(f"{where}: {bound!r}; expected (lower, upper).")
            bound = (float(bound[0]), float(bound[1]))
        else:
            bound = _positive(where, bound)
        count = robot.joints[robot.joint_index(joint)].dofs
        labels += [joint] if count == 1 else [f"{joint}.{k}" for k in range(count)]
        bounds += [bound] * count
    columns = _columns(robot, list(given))
    return Limit(name, tuple(labels), np.array(bounds, float), tuple(map(int, columns)))


def _read_links(robot: Robot, name: str, value: Any) -> Limit:
    known = [link.name for link in robot.links if link.elastic]
    if name == "stress":  # strain times a modulus
        known = [n for n in known if robot.links[robot.link_index(n)].material is not None]
    given = value if isinstance(value, Mapping) else dict.fromkeys(known, value)
    for link in given:
        if link not in known:
            raise ValueError(
                f"limits.{name}.{link}: no such elastic link; expected one of {', '.join(known)}."
            )
    bounds = np.array([_positive(f"limits.{name}.{k}", v) for k, v in given.items()])
    columns = tuple(robot.link_index(link) for link in given)
    return Limit(name, tuple(given), bounds, columns)


def _read_regions(value: Any) -> Limit:
    rows = np.asarray(value, float)
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != 4 or not np.all(rows[:, 3] > 0):
        raise ValueError(
            f"limits.keep_out: {value!r}; expected balls (x, y, z, radius), one or several."
        )
    return Limit("keep_out", tuple(f"ball {k}" for k in range(len(rows))), rows)
