"""Records passed between kinematics, forward and inverse dynamics."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax.mechanism.chain.geometry._kinematics import Kinematics
from flexjax.numerics.screw import se3


class KinematicState(eqx.Module):
    """Kinematics and velocities at (t, q, v)."""

    kin: Kinematics
    world: se3.Pose
    z: Float[Array, "B dim"]
    own: Float[Array, "B dim"]  # A v
    z_tip: Float[Array, "B dim"]  # of the section of the next joint
    eta: Float[Array, "B m"]
    rate: Float[Array, "B m"]
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    base_twist: Float[Array, " dim"]
    base_acceleration: Float[Array, " dim"]  # less gravity, so that the inertia gives the weight


class InverseDynamics(eqx.Module):
    """Result of inverse dynamics."""

    tau: Float[Array, " nv"]  # generalised forces that the motion requires
    W: Float[Array, "B dim"]  # wrench of parent on child, at and in the body's frame
    ground: Float[Array, " dim"]
    acceleration: Float[Array, "B dim"]  # of the frames, less gravity
    shape_acceleration: Float[Array, "B m"]
    motion: KinematicState


class Momenta(eqx.Module):
    """Momenta of k velocities at one configuration."""

    p: Float[Array, "k nv"]
    W: Float[Array, "k B dim"]  # momenta through each body's frame
    T: Float[Array, "k B dim"]  # and each tip
    z: Float[Array, "k B dim"]
    arriving: Float[Array, "k B dim"]  # twist less the joint's own rate
    rate: Float[Array, "k B m"]
    slide: Float[Array, "k B"]  # rate of the joint that slides along the link
