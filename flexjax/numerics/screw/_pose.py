"""The pose, shared by SE(2) and SE(3), and its products in a form that XLA fuses."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from flexjax.numerics.linalg import mm, mv


class Pose(eqx.Module):
    """A rigid-body motion: rotation matrix, and origin of the inner frame in the outer one.

    The rotation is never normalised: a chain composes few poses per step and computes them from
    its coordinates every time.
    """

    rotation: Float[Array, "*n d d"]
    position: Float[Array, "*n d"]


def compose(a: Pose, b: Pose) -> Pose:
    """The product a b: the pose of b's inner frame in a's outer frame."""
    return Pose(mm(a.rotation, b.rotation), a.position + mv(a.rotation, b.position))


def inverse(a: Pose) -> Pose:
    back = a.rotation.T
    return Pose(back, -mv(back, a.position))


def act(a: Pose, point: jax.Array) -> jax.Array:
    """Outer coordinates of a point given in inner coordinates."""
    return a.position + mv(a.rotation, point)
