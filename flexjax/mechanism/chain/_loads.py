"""Loads on the links of a chain, as wrenches on the frames and forces on the shape coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive
from flexjax.mechanism import centreline_pose
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._links import AbstractLinks
from flexjax.mechanism.chain._parameters import PLANAR, Parameters
from flexjax.numerics.screw import se3
from flexjax.robot import Robot


class Pull(eqx.Module):
    """Wrenches on the frames of the bodies and forces on the shape coordinates, stacked over stages."""

    wrench: Float[Array, "B dim"]
    shape: Float[Array, "B m"]

    def __add__(self, other: "Pull") -> "Pull":
        return Pull(self.wrench + other.wrench, self.shape + other.shape)


def load_pull(
    robot: Robot,
    layout: Layout,
    par: Parameters,
    links: AbstractLinks | None,
    drive: Drive,
    t: ScalarLike,
    args: PieceTime,
    world: se3.Pose,
    eta: Float[Array, "B m"],
) -> Pull:
    """Of all loads of the drive."""
    space = par.space
    wrench = jnp.zeros((len(layout.stages), space.DIM), par.gravity.dtype)
    shape = jnp.zeros_like(eta)
    stage_of = {s.link: i for i, s in enumerate(layout.stages) if s.link >= 0}
    for load in drive.loads:
        i = robot.link_index(load.link)
        b = stage_of[i]
        w = load.wrench.evaluate(t, args)[0]
        w = w[PLANAR] if layout.planar else w
        if links is not None and layout.shapes and layout.shapes[b]:
            everywhere = links.section(eta, jnp.broadcast_to(load.s, (len(layout.stages),)))
            section, S = jax.tree_util.tree_map(
                lambda x, b=b: x[b], (everywhere.pose, everywhere.S)
            )
        else:
            section, S = centreline_pose(robot.links[i], load.s), None
            section = (
                se3.Pose(section.rotation[:2, :2], section.position[:2])
                if layout.planar
                else section
            )
        if load.frame == "world":
            turn = (world.rotation[b] @ section.rotation).T
            w = jnp.concatenate(
                [turn @ w[: space.LIN], turn @ w[space.LIN :] if space is se3 else w[space.LIN :]]
            )
        wrench = wrench.at[b].add(space.transport_wrench(section, w))
        shape = shape if S is None else shape.at[b].add(S.T @ w)
    return Pull(wrench, shape)
