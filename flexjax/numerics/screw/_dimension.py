"""Vectors and orientations in the plane and in space: two namespaces with the same names.

Code that uses only these names is written once for planar and spatial chains. In the plane an
orientation is an angle, an angular velocity or a moment is a scalar, and a vector has two
components. In space they are a rotation matrix and vectors of three. World axes, any axes in front.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.numerics.linalg import mm, mtv, mv
from flexjax.numerics.screw import se3

Vectors: TypeAlias = Float[Array, "*n d"]
Orientations: TypeAlias = Float[Array, "..."]  # (*n,) angles or (*n, 3, 3) rotation matrices
Axials: TypeAlias = Float[Array, "..."]  # (*n,) or (*n, 3): angular velocities, moments


class Plane:
    """Angles, and vectors (x, y)."""

    dim = 2

    @staticmethod
    def rotate(angle: Orientations, v: Vectors) -> Vectors:
        """Body vectors in world axes."""
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1]], -1)

    @staticmethod
    def unrotate(angle: Orientations, v: Vectors) -> Vectors:
        """World vectors in body axes."""
        return Plane.rotate(-angle, v)

    @staticmethod
    def rotate_axial(angle: Orientations, w: Axials) -> Axials:
        return w

    unrotate_axial = rotate_axial

    @staticmethod
    def rotated(angle: Orientations, rotation: Axials) -> Orientations:
        """Orientations after a further rotation about body axes."""
        return angle + rotation

    @staticmethod
    def about_z(angle: Float[Array, "*n"]) -> Axials:
        return angle

    @staticmethod
    def axial(x: Array, y: Array, z: Array) -> Axials:
        """Components about x, y and z."""
        return z

    @staticmethod
    def scale(factor: Float[Array, "*n"], w: Axials) -> Axials:
        return factor * w

    @staticmethod
    def compose(angle: Orientations, rotation: Float[Array, "*n 3 3"]) -> Orientations:
        """Orientations of sections whose rotation matrix in body axes is given."""
        return angle + jnp.arctan2(rotation[..., 1, 0], rotation[..., 0, 0])

    @staticmethod
    def between(first: Orientations, second: Orientations, share: Float[Array, "*n"]):
        """Interpolated orientations."""
        return (1 - share) * first + share * second

    @staticmethod
    def cross(w: Axials, v: Vectors) -> Vectors:
        """Angular velocity times vector."""
        return jnp.stack([-w * v[..., 1], w * v[..., 0]], -1)

    @staticmethod
    def moment(r: Vectors, f: Vectors) -> Axials:
        """Moment of a force ``f`` at ``r``."""
        return r[..., 0] * f[..., 1] - r[..., 1] * f[..., 0]

    @staticmethod
    def rotary_energy(angle: Orientations, inertia: Array, w: Axials) -> Float[Array, ""]:
        return 0.5 * jnp.sum(inertia * w**2)

    @staticmethod
    def wrench(spatial: Float[Array, "6"]) -> tuple[Vectors, Axials]:
        """Force and moment of a spatial wrench."""
        return spatial[:2], spatial[5]

    @staticmethod
    def spatial(v: Vectors, w: Axials) -> Float[Array, "*n 6"]:
        """Vectors and axial vectors as the six components of a spatial twist or wrench."""
        return jnp.concatenate([v, jnp.zeros((*v.shape[:-1], 3), v.dtype), w[..., None]], -1)

    @staticmethod
    def frames(position: Vectors, angle: Orientations) -> Float[Array, "*n 7"]:
        """Position and quaternion w x y z."""
        c, s = jnp.cos(0.5 * angle), jnp.sin(0.5 * angle)
        sign, zero = jnp.where(c < 0, -1.0, 1.0), jnp.zeros_like(c)
        rows = [position[..., 0], position[..., 1], zero, sign * c, zero, zero, sign * s]
        return jnp.stack(rows, -1)


class Space:
    """Rotation matrices, and vectors (x, y, z)."""

    dim = 3
    cross = staticmethod(jnp.cross)
    moment = staticmethod(jnp.cross)
    rotate = staticmethod(mv)
    rotate_axial = staticmethod(mv)
    unrotate = staticmethod(mtv)
    unrotate_axial = staticmethod(mtv)

    @staticmethod
    def rotated(R: Orientations, rotation: Axials) -> Orientations:
        exp = jnp.vectorize(se3.rotation_exp, signature="(i)->(i,i)")
        return mm(R, exp(rotation))

    @staticmethod
    def about_z(angle: Float[Array, "*n"]) -> Axials:
        return Space.axial(jnp.zeros_like(angle), jnp.zeros_like(angle), angle)

    @staticmethod
    def axial(x: Array, y: Array, z: Array) -> Axials:
        return jnp.stack([x, y, z], -1)

    @staticmethod
    def scale(factor: Float[Array, "*n"], w: Axials) -> Axials:
        return factor[..., None] * w

    @staticmethod
    def compose(R: Orientations, rotation: Float[Array, "*n 3 3"]) -> Orientations:
        return mm(R, rotation)

    @staticmethod
    def between(first: Orientations, second: Orientations, share: Float[Array, "*n"]):
        log = jnp.vectorize(se3.rotation_log, signature="(i,i)->(i)")
        return Space.rotated(first, share[..., None] * log(mm(jnp.swapaxes(first, -1, -2), second)))

    @staticmethod
    def rotary_energy(R: Orientations, inertia: Array, w: Axials) -> Float[Array, ""]:
        inner = mtv(R, w)
        return 0.5 * jnp.sum(inner * mv(inertia, inner))

    @staticmethod
    def wrench(spatial: Float[Array, "6"]) -> tuple[Vectors, Axials]:
        return spatial[:3], spatial[3:]

    @staticmethod
    def spatial(v: Vectors, w: Axials) -> Float[Array, "*n 6"]:
        return jnp.concatenate([v, w], -1)

    @staticmethod
    def frames(position: Vectors, R: Orientations) -> Float[Array, "*n 7"]:
        return jnp.concatenate([position, jax.vmap(se3.matrix_to_quat)(R)], -1)


def along(start: Float[Array, " d"], steps: Float[Array, "n d"]) -> Float[Array, "n+1 d"]:
    """``start``, and its sums with the first, the first two, ... of ``steps``."""
    return start[None] + jnp.concatenate([jnp.zeros_like(steps[:1]), jnp.cumsum(steps, axis=0)])
