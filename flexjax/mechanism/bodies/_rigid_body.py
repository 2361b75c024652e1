"""A link as a rigid body: its unstressed centreline and its inertia about its base frame."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import ScalarLike
from flexjax.mechanism.bodies._sections import beam_properties, link_quadrature
from flexjax.numerics.screw import se3
from flexjax.robot import Link


def centreline_pose(link: Link, s: ScalarLike) -> se3.Pose:
    """Pose of the unstressed section at station ``s`` in the link's base frame."""
    length = link.length * s
    ahead = jnp.array([1.0, 0.0, 0.0], dtype=link.length.dtype)
    if link.curvature is None:
        return se3.Pose(jnp.eye(3, dtype=length.dtype), length * ahead)
    return se3.exp(jnp.concatenate([ahead, link.curvature]) * length)


def rigid_inertia(link: Link) -> Float[Array, "6 6"]:
    """Mass matrix of the undeformed link about its base frame, twists [linear; angular]."""
    if link.body is not None:
        xx, yy, zz, xy, xz, yz = link.body.inertia
        about_com = jnp.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return se3.body_inertia(link.body.mass, link.body.com, about_com)
    # Exact for straight links: mass of at most fourth order in s, times the square of the lever.
    s, w = link_quadrature(link, 5)
    props = beam_properties(link, s)

    def slice_inertia(s, rhoA, rhoIx, rhoIy, rhoIz) -> Array:
        back = se3.adjoint_inverse(centreline_pose(link, s))
        return back.T @ jnp.diag(jnp.stack([rhoA, rhoA, rhoA, rhoIx, rhoIy, rhoIz])) @ back

    slices = jax.vmap(slice_inertia)(s, props.rhoA, props.rhoIx, props.rhoIy, props.rhoIz)
    return jnp.tensordot(w * link.length, slices, axes=1)
