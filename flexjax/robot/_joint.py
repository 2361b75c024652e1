"""Joints, their hardware (spring, friction, hub, motor, end stops), payloads and sensors: numbers only."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import as_float, as_float_or_none

# Degrees of freedom of each joint type. "free" is the six-dof joint of a floating base (translation in parent axes,
# then rotation).
JOINT_DOFS = {
    "revolute": 1,
    "fixed": 0,
    "sliding": 1,
    "prismatic": 1,
    "universal": 2,
    "spherical": 3,
    "free": 6,
}
SENSOR_KINDS = (
    "encoder",
    "motor_encoder",
    "tip",
    "strain_gauge",
    "flex",
    "accelerometer",
    "torque",
)


class Friction(eqx.Module):
    """Dry friction ``coulomb * tanh(rate / v_eps)`` [N m or N]; viscous friction is the joint's ``damping``."""

    coulomb: Float[Array, ""] = eqx.field(converter=as_float)
    v_eps: Float[Array, ""] = eqx.field(converter=as_float, default=1e-2)


class Hub(eqx.Module):
    """Rigid hub on the child's side of the joint: ``mass`` at the joint, ``inertia`` about the joint axis (a number;
    about every axis for universal and spherical joints) or about the child's three axes (three numbers)."""

    mass: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    inertia: Float[Array, "*k"] = eqx.field(converter=as_float, default=0.0)


class Motor(eqx.Module):
    """Motor on the parent's side of the joint spring: ``rotor`` inertia [kg m2] of the shaft that turns ``gear``
    times as fast as the joint, ``torque_constant`` [N m/A, joint side], effort ``limit`` [N m or N, joint side]."""

    rotor: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    gear: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)
    torque_constant: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    limit: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)


class Stops(eqx.Module):
    """Elastic end stops of a one-dof joint: outside [lower, upper] a spring ``stiffness`` and a damper ``damping``
    push back."""

    lower: Float[Array, ""] = eqx.field(converter=as_float)
    upper: Float[Array, ""] = eqx.field(converter=as_float)
    stiffness: Float[Array, ""] = eqx.field(converter=as_float)
    damping: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)


class Joint(eqx.Module):
    """A joint between ``parent`` (a link, or "ground") and ``child``.

    At zero joint coordinate the child's x axis lies along the tangent of the parent's tip, turned by ``rotation`` (a
    rotation vector [rad]) and shifted by ``offset`` [m], both in the axes of the parent's tip section. ``axis`` is in
    child axes; ``axis2`` is the second axis of a universal joint. ``stiffness`` makes the joint flexible (a spring
    between motor and child). ``home`` is the joint coordinate at which a simulation starts unless told otherwise. A
    joint with ``loop=True`` closes a kinematic chain; it ends at ``child_at`` of its child.

    Without ``axis`` a revolute joint turns about z. Sliding (Pa): the contact runs along the parent's x, the
    coordinate is its distance from the parent's base; ``rotation`` and ``offset`` then sit at the contact. Prismatic
    without ``axis`` (Pb): the child slides along its own x through the joint, the coordinate is its free length ahead
    of the joint. Prismatic with ``axis``: a plain shift of the child's base along that axis.
    """

    name: str = eqx.field(static=True)
    type: str = eqx.field(static=True)
    parent: str = eqx.field(static=True)
    child: str = eqx.field(static=True)
    axis: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    axis2: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    offset: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    rotation: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    home: Float[Array, "*d"] | None = eqx.field(converter=as_float_or_none, default=None)
    stiffness: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    damping: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    friction: Friction | None = None
    hub: Hub | None = None
    mass: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    motor: Motor | None = None
    stops: Stops | None = None
    loop: bool = eqx.field(static=True, default=False)
    child_at: str = eqx.field(static=True, default="base")

    @property
    def dofs(self) -> int:
        return JOINT_DOFS[self.type]

    @property
    def flexible(self) -> bool:
        return self.stiffness is not None

    @property
    def telescopes(self) -> bool:
        """Whether the child slides along its own x axis through the joint (Pb)."""
        return self.type == "prismatic" and self.axis is None


class Payload(eqx.Module):
    """A rigid payload fixed to ``link`` at station ``s`` (1 = tip), its centre of mass at ``offset`` in the axes of
    that section. ``inertia`` about its centre of mass: a number (the same about every axis) or three (about the
    section's axes)."""

    name: str = eqx.field(static=True)
    link: str = eqx.field(static=True)
    mass: Float[Array, ""] = eqx.field(converter=as_float)
    inertia: Float[Array, "*k"] | None = eqx.field(converter=as_float_or_none, default=None)
    offset: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    s: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)


class Lowpass(eqx.Module):
    """Second-order low-pass of a sensor channel: w^2 / (p^2 + 2 zeta w p + w^2), w = 2 pi ``frequency`` [Hz]."""

    frequency: Float[Array, ""] = eqx.field(converter=as_float)
    zeta: Float[Array, ""] = eqx.field(converter=as_float, default=0.7071067811865476)


class Sensor(eqx.Module):
    """A sensor. ``on`` names the joint (encoder, motor_encoder, torque) or the link (the others); ``s`` is the
    station of a strain gauge, accelerometer or tip sensor, ``span`` the stations between which a flex sensor measures
    the bend angle; ``position`` (y, z) of a gauge in the section; ``direction`` in section axes for an accelerometer
    and in world axes for a tip sensor. Reading = gain * value + offset, then low-pass, delay and noise (standard
    deviation, seeded where it is evaluated)."""

    name: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    on: str = eqx.field(static=True)
    s: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)
    span: Float[Array, "2"] | None = eqx.field(converter=as_float_or_none, default=None)
    position: Float[Array, "2"] | None = eqx.field(converter=as_float_or_none, default=None)
    direction: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    gain: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)
    offset: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    delay: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    lowpass: Lowpass | None = None
    noise: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
