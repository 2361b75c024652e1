"""Parameters outside their range: refused where they are known, and found by the program
otherwise."""

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float

from flexjax._results import Status
from flexjax._rules import derivative_where
from flexjax._types import is_traced
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.robot import parameters_hold, robot_faults

Tree = TypeVar("Tree")


# Marks the check in a traced program: a parameter that only this depends on has no effect.
RANGE_CHECK = "flexjax: parameters in range"


def in_range(model: AbstractModel, drive: Drive) -> Bool[Array, ""]:
    return checkpoint_name(parameters_hold(model.robot) & drive.holds(), RANGE_CHECK)


def guarded(model: AbstractModel, drive: Drive, tree: Tree) -> tuple[Bool[Array, ""], Drive, Tree]:
    """Whether every parameter is in its range; and drive and ``tree``, without derivatives where
    one is not, because results may be NaN there."""
    holds = in_range(model, drive)
    return holds, *derivative_where(holds, (drive, tree))


def increasing(ts: Float[Array, " T"]) -> tuple[Bool[Array, ""], Float[Array, " T"]]:
    """Whether traced output times increase, and times that do."""
    good = jnp.all(ts[1:] > ts[:-1])
    return good, jnp.where(good, ts, jnp.arange(ts.shape[0], dtype=ts.dtype))


def refuse_outside_range(what: str, model: AbstractModel) -> None:
    """Refuse a robot with a parameter outside its range, before anything is compiled. The check of
    a drive does so itself."""
    if any(is_traced(x) for x in jtu.tree_leaves(model.robot)):
        return
    faults = robot_faults(model.robot)
    if faults:
        listed = "\n".join(f"  - {fault}" for fault in faults)
        raise ValueError(f"{what}: {Status.invalid_parameter.message}:\n{listed}")


def nan_outside_range(model: AbstractModel, drive: Drive, tree: Tree) -> Tree:
    """``tree``, a result without a status: NaN where a traced parameter is outside its range."""
    if not any(is_traced(x) for x in jtu.tree_leaves((model.robot, drive))):
        return tree
    holds = in_range(model, drive)
    return jtu.tree_map(
        lambda x: jnp.where(holds, x, jnp.nan) if eqx.is_inexact_array(x) else x, tree
    )
