"""Free parameters of a study: by path, with bounds, priors, transforms and ties."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax.drive import Drive
from flexjax.formulation import Start
from flexjax.robot import Robot, find_leaves, paths
from flexjax.robot._paths import Found
from flexjax.robot.parts._fields import PARAMETERS, RULES

TRANSFORMS = ("none", "log", "logit")
_LIMITS = {
    "ratio": (0.0, 1.0),
    "station": (0.0, 1.0),
    "fraction": (0.0, 1.0),
    "poisson": (-1.0, 0.5),
}

Bounds = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Free:
    """One free parameter or several, selected by path.

    Arguments:
        path: a path or several, as in :func:`flexjax.paths` (``links.*.material.E``);
            ``drive....`` for parameters of the drive; ``start.joints.<joint>`` and
            ``start.rates.<joint>`` for the initial state, one for each experiment.
        bounds: (lower, upper); either may be None.
        prior: (mean, standard deviation).
        transform: "log" (positive parameters), "logit" (between two bounds) or "none". The
            default follows from the bounds and the field.
        tie: "value" makes all parameters of the path equal, "factor" keeps their ratios.
        start: initial value of the search (default: the robot's own).
        scale: typical change of a parameter that starts at zero.
        each: a parameter of the drive (``drive....``) has its own value in each experiment, such
            as an unknown constant load. Validation data keep the value of their drive.

    >>> import flexjax as fx
    >>> fx.Free("links.*.material.E", bounds=(6e10, 8e10), tie="value").tie
    'value'
    """

    path: str | tuple[str, ...]
    bounds: Bounds | None = None
    prior: tuple[float, float] | None = None
    transform: str | None = None
    tie: str | None = None
    start: float | None = None
    scale: float | None = None
    each: bool = False


FreeLike = str | Free | Sequence[str | Free] | Mapping[str, Free | Bounds]


@dataclasses.dataclass(frozen=True)
class Target:
    """A leaf, or a component of it, that takes a parameter's value times ``factor``.

    ``experiment`` None: the leaf of every experiment.
    """

    root: str
    steps: tuple
    index: tuple[int, ...]
    experiment: int | None
    factor: float


class Parameters(eqx.Module):
    """The free parameters as one vector z of order one; the search starts at z = 0."""

    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    kinds: tuple[str, ...] = eqx.field(static=True)
    targets: tuple[tuple[Target, ...], ...] = eqx.field(static=True)
    start: Float[Array, " n"]
    lower: Float[Array, " n"]
    upper: Float[Array, " n"]
    scale: Float[Array, " n"]
    prior_mean: Float[Array, " n"]
    prior_sd: Float[Array, " n"]  # infinite where there is none

    @property
    def size(self) -> int:
        return len(self.names)

    def mask(self, kind: str):
        return np.array([k == kind for k in self.kinds], bool)

    def values(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """The parameters in their units."""
        log, logit = self.mask("log"), self.mask("logit")
        low = jnp.where(jnp.isfinite(self.lower), self.lower, 0.0)
        wide = jnp.where(logit, self.upper - low, 1.0)
        share = jnp.where(logit, (self.start - low) / wide, 0.5)
        between = low + wide / (
            1 + jnp.exp(-(jnp.where(logit, z, 0.0) + jnp.log(share / (1 - share))))
        )
        above = low + jnp.where(log, self.start - low, 1.0) * jnp.exp(jnp.where(log, z, 0.0))
        return jnp.where(log, above, jnp.where(logit, between, self.start + self.scale * z))

    def inverse(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        """z of given parameters (inside their bounds)."""
        log, logit = self.mask("log"), self.mask("logit")
        low = jnp.where(jnp.isfinite(self.lower), self.lower, 0.0)
        wide = jnp.where(logit, self.upper - low, 1.0)

        def odds(value):
            share = jnp.where(logit, (value - low) / wide, 0.5)
            return jnp.log(share / (1 - share))

        ratio = jnp.where(log, (x - low) / jnp.where(log, self.start - low, 1.0), 1.0)
        return jnp.where(
            log,
            jnp.log(ratio),
            jnp.where(logit, odds(x) - odds(self.start), (x - self.start) / self.scale),
        )

    def prior_residual(self, values: Float[Array, " n"]) -> Float[Array, " n"]:
        """(x - mean) / sd, of the logarithms under a "log" transform. Zero without a prior."""
        mean, sd = self.prior_mean, self.prior_sd
        log = self.mask("log") & (mean > 0)
        shares = jnp.log(jnp.where(log, values, 1.0) / jnp.where(log, mean, 1.0))
        return jnp.where(log, shares * mean, values - mean) / sd

    def among(self, keep: np.ndarray, more: Sequence[dict]) -> "Parameters":
        """The parameters of a mask, and rows of further ones."""
        rows = [
            {"name": self.names[k], "unit": self.units[k], "kind": self.kinds[k]}
            | {"targets": self.targets[k]}
            | {c: float(getattr(self, c)[k]) for c in COLUMNS}
            for k in np.flatnonzero(keep)
        ]
        return _from_rows([*rows, *more], self.start.dtype)

    def place(
        self,
        tree: Any,
        root: str,
        values: Float[Array, " n"] | Sequence[Float[Array, ""]],
        experiment: int | None = None,
    ) -> Any:
        """Insert the parameters into ``tree`` (a robot, drive or start)."""
        leaves: dict[tuple, Any] = {}
        for k, targets in enumerate(self.targets):
            for target in targets:
                if target.root != root or target.experiment not in (None, experiment):
                    continue
                old = jnp.asarray(leaves.get(target.steps, _leaf(tree, target.steps)))
                value = jnp.asarray(values[k] * target.factor, old.dtype)
                leaves[target.steps] = old.at[target.index].set(value)
        if not leaves:
            return tree
        new = list(leaves.values())
        return eqx.tree_at(lambda t: [_leaf(t, steps) for steps in leaves], tree, new)


def _leaf(tree: Any, steps: tuple):
    for step in steps:
        tree = getattr(tree, step) if isinstance(tree, eqx.Module) else tree[step]
    return tree


def parameters(
    free: FreeLike,
    robot: Robot,
    drives: list[Drive],
    starts: list[Start],
    labels: list[str],
    sizes: dict[str, float],
    more: Sequence[dict] = (),
) -> Parameters:
    """Expand ``free`` on a robot and on the drives and starts of the experiments.

    ``sizes``: typical size of the readings of each sensor. ``more``: rows of further parameters.
    """
    items = listed(free)
    if not items and not more:
        raise ValueError(
            "free: none; expected at least one free parameter, e.g. 'links.*.material.E'. "
            "fx.paths(robot) lists the parameters of a robot."
        )
    rows: list[dict] = []
    for item in items:
        item = as_free(item)
        found = [
            f
            for path in ([item.path] if isinstance(item.path, str) else item.path)
            for f in _found(path, item.each, robot, drives, starts, labels)
        ]
        rows += (
            [_row(item, [one], sizes) for one in found]
            if item.tie is None
            else [_row(item, found, sizes)]
        )
    rows += more
    names = [row["name"] for row in rows]
    twice = sorted({n for n in names if names.count(n) > 1})
    seen = [(t.root, t.steps, t.index, t.experiment) for row in rows for t in row["targets"]]
    if twice or len(set(seen)) < len(seen):
        raise ValueError(
            f"free: {', '.join(twice) or 'a parameter'} is named twice; expected each once."
        )
    return _from_rows(rows, robot.gravity.dtype)


COLUMNS = ("start", "lower", "upper", "scale", "prior_mean", "prior_sd")


def _from_rows(rows: Sequence[dict], dtype: DTypeLike) -> Parameters:
    column = lambda key: jnp.asarray([row[key] for row in rows], dtype)
    return Parameters(
        tuple(r["name"] for r in rows),
        tuple(r["unit"] for r in rows),
        tuple(r["kind"] for r in rows),
        tuple(tuple(r["targets"]) for r in rows),
        *(column(k) for k in COLUMNS),
    )


def listed(free: FreeLike) -> list:
    """The items of ``free``, each accepted by :func:`as_free`."""
    if isinstance(free, str | Free):
        return [free]
    return list(free.items() if isinstance(free, Mapping) else free)


def as_free(item: Any) -> Free:
    if isinstance(item, Free):
        return item
    if isinstance(item, str):
        return Free(item)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        if isinstance(item[1], Free):
            return dataclasses.replace(item[1], path=item[0])
        return Free(item[0], bounds=tuple(item[1]))
    raise ValueError(
        f"free: {item!r}; expected a path, fx.Free(path, ...), or a dict of path: (lower, upper)."
    )


def _found(
    path: str,
    each: bool,
    robot: Robot,
    drives: list[Drive],
    starts: list[Start],
    labels: list[str],
):
    """(name, unit, rule, value, Target) of every component of every leaf of a path."""
    root, _, rest = path.partition(".")
    if root == "drive":
        return _found_in_drives(path, rest, each, drives, labels)
    if each:
        raise ValueError(
            f"free {path!r}: each is for parameters of the drive; expected a path that begins with "
            "'drive.'. Leave each out."
        )
    if root == "start":
        return _found_in_starts(rest, robot, starts, labels)
    units = paths(robot)
    out = []
    for leaf in find_leaves(robot, path):
        whole = ".".join(leaf.path.split(".")[: -len(leaf.index) or None])
        unit, rule = units[whole].unit, _rule(robot, leaf)
        for f in leaf.components():
            out.append(
                (f.path, unit, rule, float(f.part), Target("robot", f.steps, f.index, None, 1.0))
            )
    return out


def _found_in_drives(path: str, rest: str, each: bool, drives: list[Drive], labels: list[str]):
    every = [[f for leaf in find_leaves(d, rest) for f in leaf.components()] for d in drives]
    for e, other in enumerate(every):
        if [f.path for f in other] != [f.path for f in every[0]]:
            raise ValueError(
                f"free {path!r}: the drives of {labels[0]!r} and {labels[e]!r} differ there; "
                "expected the same parameters in the drive of every experiment. Name those that "
                "all drives have."
            )
    if not each:
        every = every[:1]
    return [
        (
            f"drive.{f.path}" + (f" of {labels[e]}" if each and len(labels) > 1 else ""),
            "",
            "finite",
            float(f.part),
            Target("drive", f.steps, f.index, e if each else None, 1.0),
        )
        for e, found in enumerate(every)
        for f in found
    ]


def _found_in_starts(rest: str, robot: Robot, starts: list[Start], labels: list[str]):
    out = []
    for e, start in enumerate(starts):
        for f in (f for leaf in find_leaves(start, rest) for f in leaf.components()):
            name = f"start.{f.path}" + (f" of {labels[e]}" if len(starts) > 1 else "")
            field, owner, *_ = f.path.split(".")
            if field == "links":
                unit = "m/s" if f.steps[-1].endswith("_rate") else "m"
            else:
                joint = robot.joints[robot.joint_index(owner)]
                unit = "m" if joint.type in ("sliding", "prismatic") else "rad"
                unit += "/s" if field == "rates" else ""
            target = Target("start", f.steps, f.index, e, 1.0)
            out.append((name, unit, "finite", float(f.part), target))
    return out


def _rule(robot: Robot, found: Found) -> str:
    owner = _leaf(robot, found.steps[:-1])
    number = PARAMETERS.get(type(owner).__name__, {}).get(found.steps[-1])
    return "finite" if number is None else number.rule


def no_parameters(robot: Robot) -> Parameters:
    """The parameters of a study that varies none."""
    none = jnp.zeros(0, robot.gravity.dtype)
    return Parameters((), (), (), (), none, none, none, none, none, none)


def check_range(path: str, values: np.ndarray, robot: Robot, rows: np.ndarray) -> list[str]:
    """Faults of the values in ``rows`` for a path of the robot."""
    if path.partition(".")[0] in ("drive", "start"):
        return []
    faults = []
    for name in {_rule(robot, leaf) for leaf in find_leaves(robot, path)}:
        rule = RULES[name]
        for row in rows[[bool(np.isfinite(x) and not rule.holds(x)) for x in values[rows]]]:
            faults.append(f"{path!r}, row {row}: {values[row]:g}; expected {rule.expected}.")
    return faults


def _row(item: Free, found: list, sizes: dict[str, float]) -> dict:
    """One row of the parameters, checked."""
    if item.tie is None:
        name, unit, rule, value = found[0][:4]
        targets = [f[4] for f in found]
    else:
        name, unit, rule, value, targets = _tied(item, found)
    where = f"free {name!r}"
    value = value if item.start is None else float(item.start)
    kind, lower, upper = _transform(item, rule, value, where)
    if (lower is not None and not value > lower) or (upper is not None and not value < upper):
        raise ValueError(
            f"{where}: starts at {value:g}, not inside {(lower, upper)}; give "
            "Free(..., start=...) inside the bounds"
            f"{', or transform=' + repr('none') if value == 0 else ''}."
        )
    if not np.isfinite(value):
        raise ValueError(f"{where}: starts at {value}; expected a finite number.")
    mean, sd = item.prior or (value, np.inf)
    if not sd > 0 or (kind == "log" and item.prior and not mean > 0):
        above = ", mean above zero" if kind == "log" else ""
        raise ValueError(
            f"{where}: prior = {item.prior}; expected (mean, positive standard deviation){above}."
        )
    if item.scale is not None:
        scale = float(item.scale)
    else:
        scale = sizes.get(name, 1.0) if value == 0 else abs(value)
    return {
        "name": name,
        "unit": unit,
        "kind": kind,
        "targets": targets,
        "start": value,
        "lower": -np.inf if lower is None else lower,
        "upper": np.inf if upper is None else upper,
        "scale": scale,
        "prior_mean": mean,
        "prior_sd": sd,
    }


def _tied(item: Free, found: list):
    """Name, unit, rule, value and targets of parameters that are tied together."""
    _, unit, rule, value = found[0][:4]
    targets = [f[4] for f in found]
    path = item.path if isinstance(item.path, str) else " = ".join(item.path)
    if item.tie == "value":
        return path, unit, rule, value, targets
    if item.tie != "factor":
        raise ValueError(
            f"free {item.path!r}: tie = {item.tie!r}; expected 'value' (all equal) or "
            "'factor' (ratios kept)."
        )
    targets = [dataclasses.replace(t, factor=f[3]) for t, f in zip(targets, found, strict=True)]
    return f"factor of {path}", "", rule, 1.0, targets


def _transform(item: Free, rule: str, value: float, where: str):
    """Transform and bounds, from those given and from the rule of the field."""
    lower, upper = item.bounds or (None, None)
    limits = _LIMITS.get(rule)
    if limits and item.transform in (None, "logit"):
        lower, upper = limits[0] if lower is None else lower, limits[1] if upper is None else upper
    kind = item.transform
    if kind is None:
        positive = rule in ("positive", "not negative") and value > 0 or item.tie == "factor"
        if lower is not None and upper is not None:
            kind = "logit"
        else:
            kind = "log" if upper is None and (positive or lower is not None) else "none"
    if kind not in TRANSFORMS:
        raise ValueError(f"{where}: transform = {kind!r}; expected one of {', '.join(TRANSFORMS)}.")
    if kind == "logit" and (lower is None or upper is None or not lower < upper):
        raise ValueError(
            f"{where}: bounds = {(lower, upper)}; a logit transform needs a lower and a larger "
            "upper bound."
        )
    if kind == "none" and (lower is not None or upper is not None):
        raise ValueError(
            f"{where}: bounds = {(lower, upper)} with transform 'none'; give both bounds, or a "
            "lower one only."
        )
    return kind, 0.0 if kind == "log" and lower is None else lower, upper
