"""A trajectory as an xarray Dataset with named coordinates and units, and back."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from flexjax._files import parse_toml
from flexjax._types import is_traced
from flexjax.io._tree import NotPlain, flatten, restore
from flexjax.mechanism import Energy
from flexjax.numerics.term import State
from flexjax.robot import Robot, robot_from_dict, robot_to_toml
from flexjax.simulate.trajectory import ENERGIES, FIELDS, PARTS, Statistics, Trajectory

if TYPE_CHECKING:
    import xarray

FORMAT = "flexjax trajectory 1"
SCALARS = {
    "status": ("", "how the run ended, 0: well"),
    "t_fail": ("s", "time of failure"),
    "where": ("", "index of the joint concerned, -1: none"),
}


def dof_names(robot: Robot) -> list[str]:
    """One name per joint coordinate: the joint's, with an index where the joint has several."""
    return [
        j.name if j.dofs == 1 else f"{j.name}.{k}" for j in robot.tree_joints for k in range(j.dofs)
    ]


def dof_units(robot: Robot) -> list[str]:
    def of(joint, k: int) -> str:
        linear = joint.type in ("sliding", "prismatic") or (joint.type == "free" and k < 3)
        return "m" if linear else "rad"

    return [of(j, k) for j in robot.tree_joints for k in range(j.dofs)]


def check_single(traj: Trajectory, action: str) -> None:
    """Refuse anything but one concrete trajectory."""
    if not isinstance(traj, Trajectory):
        raise ValueError(
            f"{action}: {type(traj).__name__}; expected a Trajectory, what fx.simulate returns."
        )
    if is_traced(traj.ts):
        raise ValueError(f"{action}: the trajectory is traced; call it outside jit, vmap and grad.")
    if traj.status.ndim:
        raise ValueError(
            f"{action}: a batch of shape {traj.status.shape}; expected one trajectory, e.g. "
            "jax.tree.map(lambda x: x[0], traj)."
        )


def to_dataset(traj: Trajectory) -> "xarray.Dataset":
    """Convert a trajectory to an ``xarray.Dataset``.

    Arguments:
        traj: one trajectory, not a batch.

    Returns:
        Variables over the coordinates time, dof, link, station and joint, with units as
        attributes and the robot as TOML text.

    Raises:
        ValueError: the trajectory is a batch; expected a single run.

    >>> fx.to_dataset(traj)["q"].sel(dof="shoulder").plot()  # doctest: +SKIP
    """
    import xarray

    check_single(traj, "to_dataset")
    robot = traj.robot
    array = lambda name, value, units, about: (
        name,
        np.asarray(value),
        {"units": units, "long_name": about},
    )
    coords: dict[str, Any] = {
        "time": array("time", traj.ts, "s", "time"),
        "station": array("station", traj.stations, "1", "position along the link over its length"),
        "dof": ("dof", _text(dof_names(robot))),
        "dof_unit": ("dof", _text(dof_units(robot))),
        "link": ("link", _text(link.name for link in robot.links)),
        "joint": ("joint", _text(joint.name for joint in robot.joints)),
        **{name: (name, _text(parts)) for name, parts in PARTS.items()},
    }
    data: dict[str, Any] = {
        name: array(dims, getattr(traj, name), units, about)
        for name, (dims, units, about) in FIELDS.items()
    }
    for name, about in ENERGIES.items():
        data[f"energy_{name}"] = array("time", getattr(traj.energy, name), "J", about)
    tip = "world position of the tip of the last link"
    data["tip"] = array(("time", "axis"), traj.tip, "m", tip)
    for name, (units, about) in SCALARS.items():
        data[name] = array((), getattr(traj, name), units, about)
    attrs = {
        "format": FORMAT,
        "robot": robot_to_toml(robot),
        "formulation": traj.stats.formulation,
        "solver": traj.stats.solver,
    }
    for name in ("stats", "final") if traj.ends is None else ("stats", "final", "ends"):
        arrays: list[np.ndarray] = []
        try:
            attrs[f"{name}_structure"] = json.dumps(flatten(getattr(traj, name), arrays))
        except NotPlain as error:
            attrs[f"{name}_left_out"] = f"contains {error}, which cannot be stored"
            continue
        for i, array in enumerate(arrays):
            data[f"{name}_{i}"] = (tuple(f"{name}_{i}_dim{k}" for k in range(array.ndim)), array)
    return xarray.Dataset(data, coords, attrs)


def _text(names: Iterable[str]):
    return np.array(list(names), dtype=object)


def from_dataset(dataset: "xarray.Dataset") -> Trajectory:
    """Convert a dataset of :func:`to_dataset` back.

    Arguments:
        dataset: the dataset.

    Returns:
        The trajectory. ``final`` is None if the final state could not be stored.
    """
    if dataset.attrs.get("format") != FORMAT:
        raise ValueError(
            f"dataset: format {dataset.attrs.get('format')!r}; expected {FORMAT!r}, written by "
            "fx.save_trajectory."
        )
    wanted = {name: dims for name, (dims, _, _) in FIELDS.items()}
    wanted |= {f"energy_{k}": ("time",) for k in ENERGIES} | dict.fromkeys(SCALARS, ())
    wanted |= {"time": ("time",), "station": ("station",)}
    missing = [name for name in wanted if name not in dataset.variables]
    if missing:
        raise ValueError(
            f"dataset: without {', '.join(missing)}; expected all that fx.save_trajectory writes. "
            "Is the file damaged?"
        )
    for name, dims in wanted.items():
        variable = dataset[name]
        if variable.dims != dims or variable.dtype.kind not in "fiu":
            raise ValueError(
                f"dataset: {name} has the dimensions {variable.dims} of {variable.dtype}; "
                f"expected numbers over {dims}. Is the file damaged?"
            )

    def read(name: str):
        return jnp.asarray(dataset[name].values)

    ts = read("time")
    robot = robot_from_dict(
        parse_toml(dataset.attrs["robot"]), where="the robot in the trajectory file"
    )
    robot = jax.tree.map(lambda x: x.astype(ts.dtype), robot)
    _check_sizes(dataset, robot)
    trees = {}
    for name in ("stats", "final", "ends"):
        structure = dataset.attrs.get(f"{name}_structure")
        if structure is None:
            trees[name] = None
            continue
        count = sum(
            1
            for key in dataset.variables
            if str(key).startswith(f"{name}_") and str(key)[len(name) + 1 :].isdigit()
        )
        trees[name] = restore(json.loads(structure), [read(f"{name}_{i}") for i in range(count)])
    stats, final = trees["stats"], trees["final"]
    plain = isinstance(stats, Statistics) and all(
        isinstance(x, str) for x in (stats.solver, stats.formulation)
    )
    if not plain or not isinstance(final, State | None):
        raise ValueError(
            f"dataset: stats is a {type(stats).__name__}, final a {type(final).__name__}; expected "
            "Statistics and State. Is the file damaged?"
        )
    return Trajectory(
        ts=ts,
        **{name: read(name) for name in (*FIELDS, *SCALARS)},
        energy=Energy(**{k: read(f"energy_{k}") for k in ENERGIES}),
        **trees,
        stations=read("station"),
        robot=robot,
    )


def _check_sizes(dataset: "xarray.Dataset", robot: Robot) -> None:
    """Refuse arrays that belong to another robot."""
    wanted = {"dof": len(dof_names(robot)), "link": len(robot.links), "joint": len(robot.joints)}
    wanted |= {name: len(parts) for name, parts in PARTS.items()}
    for dim, size in wanted.items():
        if dataset.sizes.get(dim, size) != size:
            raise ValueError(
                f"dataset: {dataset.sizes[dim]} entries along {dim}; expected {size} for the robot "
                f"{robot.name!r} in it. Is the file damaged?"
            )
