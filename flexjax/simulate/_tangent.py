"""States beside a state: flat tangents, the coordinates that are free, rates relative to rest."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import ScalarLike, ravel
from flexjax.drive import Drive, Effort
from flexjax.drive.signal import constant
from flexjax.numerics.term import AbstractTerm, State
from flexjax.robot import Joint, Robot


def tangent_space(
    term: AbstractTerm, y: State, t: ScalarLike
) -> tuple[Float[Array, " n"], Callable[[Float[Array, " n"]], PyTree]]:
    """(the zero tangent, from flat to tangent)."""
    shape = jax.eval_shape(lambda: term.rate(t, y, None))
    return ravel(jax.tree_util.tree_map(lambda s: jnp.zeros(s.shape, s.dtype), shape))


def free_coordinates(term: AbstractTerm, y: State, t: ScalarLike) -> np.ndarray:
    """Static indices of the coordinates that no Motion holds and that do not follow from others."""
    shape = jax.eval_shape(lambda: term.rate(t, y, None))
    with jax.ensure_compile_time_eval():
        zero = jax.tree_util.tree_map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
        masks = [np.asarray(x).ravel() for x in jax.tree_util.tree_leaves(term.held(t, zero))]
    return np.flatnonzero(~np.concatenate([np.zeros(0, bool), *masks]))


def displaced(term: AbstractTerm, y: State, t: ScalarLike, dx: PyTree) -> State:
    """``y`` moved along the tangent ``dx``, with what follows from the free coordinates."""
    mech = term.complete(t, term.retract(y.mech, dx), None)
    return State(mech, y.work, y.dissipated, y.memory)


def takes_effort(joint: Joint) -> bool:
    """A flexible joint without a rotor has nothing that an effort could accelerate."""
    return not joint.flexible or (joint.motor is not None and joint.motor.rotor is not None)


def with_efforts(drive: Drive, robot: Robot, effort: Float[Array, " D"]) -> Drive:
    """The drive with efforts (D,) added to its own; zero where a Motion holds the joint."""
    passive = {
        j.name: Effort(constant(0.0))
        for j in robot.tree_joints
        if j.dofs and takes_effort(j) and j.name not in drive.joints
    }
    return Drive({**passive, **drive.joints}, drive.loads, drive.base, effort)
