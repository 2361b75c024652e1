"""What evaluations of a chain's equations know and find."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax.mechanism.chain._kinematics import Kinematics
from flexjax.numerics.screw import se3


class Motion(eqx.Module):
    """Everything that one dynamics evaluation knows at (t, q, v)."""

    kin: Kinematics
    world: se3.Pose
    z: Float[Array, "B dim"]
    own: Float[Array, "B dim"]  # A v
    z_tip: Float[Array, "B dim"]  # of the section that the next joint hangs on
    eta: Float[Array, "B m"]
    rate: Float[Array, "B m"]
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    base_twist: Float[Array, " dim"]
    base_acceleration: Float[Array, " dim"]  # less gravity, so that weight comes out of the inertia


class Needs(eqx.Module):
    """What an inverse dynamics evaluation finds."""

    tau: Float[Array, " nv"]  # generalised forces that the motion takes
    W: Float[Array, "B dim"]  # wrench of parent on child, at and in the body's frame
    ground: Float[Array, " dim"]
    acceleration: Float[Array, "B dim"]  # of the frames, less gravity
    shape_acceleration: Float[Array, "B m"]
    motion: Motion


class Momenta(eqx.Module):
    """Of some velocities at one configuration."""

    p: Float[Array, "k nv"]
    W: Float[Array, "k B dim"]  # momenta that pass each body's frame
    T: Float[Array, "k B dim"]  # and each tip
    z: Float[Array, "k B dim"]
    arriving: Float[Array, "k B dim"]  # twist less the joint's own rate
    rate: Float[Array, "k B m"]
    slide: Float[Array, "k B"]  # rate of the joint that slides along the link
