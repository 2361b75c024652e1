"""Equilibria of joints with play: inside it no torque tells which end the joint comes to rest at.

A robot without play, whose springs are softer, has the same deflections: a spring that carries the
torque T deflects by T/k, and by half of the play more.
"""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.numerics.term import State
from flexjax.robot import Joint, Robot


def _closed(robot: Robot, softer: dict[str, Array]) -> Robot:
    """The robot without play, with these factors on the stiffnesses."""

    def change(joint: Joint) -> Joint:
        if joint.backlash is None or joint.stiffness is None:
            return joint
        stiffness = joint.stiffness * softer.get(joint.name, jnp.ones_like(joint.stiffness))
        none = {"backlash": None, "backlash_smooth": None}
        return dataclasses.replace(joint, stiffness=stiffness, **none)

    return dataclasses.replace(robot, joints=tuple(change(joint) for joint in robot.joints))


def _stretch(model: AbstractModel, drive: Drive, y: State, t: Scalar) -> Float[Array, " D"]:
    s = jnp.asarray(np.array([0.0, 1.0]), t.dtype)
    found = model.outputs(t, y, drive, s, None, frozenset({"q", "motor"}))
    return found["q"] - found["motor"]


def beyond_play(
    find: Callable[[AbstractModel, State], State],
    model: AbstractModel,
    drive: Drive,
    y: State,
    t: Scalar,
) -> State:
    """A state beside ``y`` whose joints lie at the ends of their play to which the torques push
    them; ``find`` searches the equilibrium of a model."""
    robot = model.robot
    closed = model.rebind(_closed(robot, {}))
    at = find(closed, y)
    stretch, softer = _stretch(closed, drive, at, t), {}
    for joint, own in zip(robot.tree_joints, robot.dof_slices().values(), strict=True):
        if joint.backlash is None:
            continue
        smooth = 0.2 * joint.backlash if joint.backlash_smooth is None else joint.backlash_smooth
        d = jnp.abs(stretch[own.start])
        end = 0.5 * (joint.backlash + smooth)
        softer[joint.name] = jnp.where(d > 1e-9 * end, d / (d + end), 1.0)
    return find(model.rebind(_closed(robot, softer)), at)
