"""What SE(2) and SE(3) share: the pose and small products written so that XLA fuses them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Pose(eqx.Module):
    """A rigid motion of the plane or of space: a rotation matrix and the origin of the inner frame in the outer one.

    Plain matrices, never normalised: a chain composes few poses per step and builds them anew from its coordinates.
    """

    rotation: Float[Array, "d d"]
    position: Float[Array, " d"]


# Multiply and sum instead of `@`: XLA on CPU emits every dot as a kernel of its own, this fuses with its neighbours.
def matvec(a: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(a * x[None, :], axis=1)


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


def compose(a: Pose, b: Pose) -> Pose:
    """a after b: the pose of b's inner frame in a's outer frame."""
    return Pose(matmul(a.rotation, b.rotation), a.position + matvec(a.rotation, b.position))


def inverse(a: Pose) -> Pose:
    back = a.rotation.T
    return Pose(back, -matvec(back, a.position))


def act(a: Pose, point: jax.Array) -> jax.Array:
    """Outer coordinates of a point given in inner coordinates."""
    return a.position + matvec(a.rotation, point)
