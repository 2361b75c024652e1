"""Loads on the links of a chain, as wrenches on the frames and forces on the shape coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive
from flexjax.mechanism import centreline_pose
from flexjax.mechanism.chain.geometry._layout import Layout
from flexjax.mechanism.chain.geometry._links import AbstractLinks
from flexjax.mechanism.chain.geometry._parameters import PLANAR, Parameters
from flexjax.numerics.screw import se3
from flexjax.robot import Robot


class GeneralisedForce(eqx.Module):
    """Wrenches on the frames of the bodies and forces on the shape coordinates, by stage."""

    wrench: Float[Array, "B dim"]
    shape: Float[Array, "B m"]

    def __add__(self, other: "GeneralisedForce") -> "GeneralisedForce":
        return GeneralisedForce(self.wrench + other.wrench, self.shape + other.shape)


def load_forces(
    robot: Robot,
    layout: Layout,
    parameters: Parameters,
    links: AbstractLinks | None,
    drive: Drive,
    t: ScalarLike,
    piece_time: PieceTime,
    world: se3.Pose,
    eta: Float[Array, "B m"],
) -> GeneralisedForce:
    """Generalised forces of all loads of the drive."""
    space = parameters.space
    wrench = jnp.zeros((len(layout.stages), space.DIM), parameters.gravity.dtype)
    shape = jnp.zeros_like(eta)
    stage_of = {s.link: i for i, s in enumerate(layout.stages) if s.link >= 0}
    for load in drive.loads:
        i = robot.link_index(load.link)
        b = stage_of[i]
        w = load.wrench.evaluate(t, piece_time)[0]
        w = w[PLANAR] if layout.planar else w
        if links is not None and layout.shapes and layout.shapes[b]:
            everywhere = links.section(eta, jnp.broadcast_to(load.s, (len(layout.stages),)))
            section, S = jax.tree.map(lambda x, b=b: x[b], (everywhere.pose, everywhere.S))
        else:
            section, S = centreline_pose(robot.links[i], load.s), None
            if layout.planar:
                section = se3.Pose(section.rotation[:2, :2], section.position[:2])
        if load.frame == "world":
            R = (world.rotation[b] @ section.rotation).T
            force, moment = w[: space.LIN], w[space.LIN :]
            w = jnp.concatenate([R @ force, R @ moment if space is se3 else moment])
        wrench = wrench.at[b].add(space.transport_wrench(section, w))
        shape = shape if S is None else shape.at[b].add(S.T @ w)
    return GeneralisedForce(wrench, shape)
