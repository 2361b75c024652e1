"""Parameters of joints, their hardware (spring, friction, hub, motor, stops), payloads, sensors."""

import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import as_float, as_float_or_none
from flexjax.robot.parts._choices import JOINT_DOFS as JOINT_DOFS
from flexjax.robot.parts._facts import JointFacts


class Friction(eqx.Module):
    """Dry friction ``level * tanh(rate / v_eps)`` of a joint.

    The level is ``coulomb``. With ``breakaway`` and ``stribeck`` it falls with the speed, as
    ``coulomb + (breakaway - coulomb) * exp(-(rate / stribeck)^2)``. Viscous friction is the
    joint's ``damping``.

    With ``bristle`` the friction sticks: it is the force of bristles that bend before they slide
    (Dahl's model; with ``bristle_damping`` LuGre's), with the level as its limit. Then ``v_eps``
    has no effect, and the bristles' energy counts as elastic.

    Arguments:
        coulomb: friction at high speed [N m or N].
        v_eps: speed over which the friction changes sign [rad/s or m/s].
        breakaway: friction at low speed [N m or N].
        stribeck: speed over which the friction falls from ``breakaway`` to ``coulomb``.
        bristle: stiffness of the bristles [N m/rad or N/m].
        bristle_damping: damping of their deflection [N m s/rad or N s/m].

    >>> import flexjax as fx
    >>> gear = fx.Friction(coulomb=0.2, breakaway=0.3, stribeck=0.05)
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", friction=gear)
    """

    coulomb: Float[Array, ""] = eqx.field(converter=as_float)
    v_eps: Float[Array, ""] = eqx.field(converter=as_float, default=1e-2)
    breakaway: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    stribeck: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    bristle: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    bristle_damping: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)


class Hub(eqx.Module):
    """Rigid hub on the child's side of a joint.

    Arguments:
        mass: mass at the joint [kg].
        inertia: inertia [kg m2] about the joint axis (one number; for universal and spherical
            joints about every axis), or about the child's three axes (three numbers).

    >>> import flexjax as fx
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", hub=fx.Hub(0.2, inertia=1e-3))
    >>> float(joint.hub.mass)
    0.2
    """

    mass: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    inertia: Float[Array, "*k"] = eqx.field(converter=as_float, default=0.0)


class Ripple(eqx.Module):
    """Torque ripple of a motor: ``torque + share * effort``, times the sine of
    ``periods * gear * q + phase`` at the motor-side coordinate q of the joint.

    It adds to the effort of the drive, so its work counts as work. A Motion overcomes it.

    Arguments:
        periods: periods per revolution of the rotor.
        torque: cogging: the amplitude that is there without current too [N m or N].
        share: amplitude as a share of the effort.
        phase: phase at zero coordinate [rad].

    >>> import flexjax as fx
    >>> motor = fx.Motor(rotor=1e-6, gear=50.0, ripple=fx.Ripple(periods=12.0, torque=0.05))
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", motor=motor)
    """

    periods: Float[Array, ""] = eqx.field(converter=as_float)
    torque: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    share: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    phase: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)


class Motor(eqx.Module):
    """Motor on the parent's side of the joint spring.

    Under a ``Voltage`` the effort is ``torque_constant * (voltage - back_emf * gear * rate) /
    resistance``.

    Arguments:
        rotor: inertia of the rotor [kg m2]; the rotor turns ``gear`` times as fast as the joint.
        gear: gear ratio.
        torque_constant: joint effort per current [N m/A or N/A].
        limit: largest joint effort [N m or N].
        resistance: resistance of the winding [ohm].
        back_emf: voltage per speed of the rotor [V s/rad]; by default that of a motor without
            other losses, ``torque_constant / gear``.
        ripple: torque ripple, :class:`Ripple`.

    >>> import flexjax as fx
    >>> motor = fx.Motor(rotor=1e-6, gear=50.0, torque_constant=2.0, limit=10.0)
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", stiffness=200.0, motor=motor)
    """

    rotor: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    gear: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)
    torque_constant: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    limit: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    resistance: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    back_emf: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    ripple: Ripple | None = None


class Stops(eqx.Module):
    """Elastic end stops of a joint with one degree of freedom.

    Outside [lower, upper] a spring and a damper act against the joint.

    Arguments:
        lower, upper: range of free motion [rad or m].
        stiffness: stiffness of the stop [N m/rad or N/m].
        damping: damping of the stop [N m s/rad or N s/m].

    >>> import flexjax as fx
    >>> stops = fx.Stops(lower=-2.0, upper=2.0, stiffness=500.0, damping=5.0)
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", stops=stops)
    """

    lower: Float[Array, ""] = eqx.field(converter=as_float)
    upper: Float[Array, ""] = eqx.field(converter=as_float)
    stiffness: Float[Array, ""] = eqx.field(converter=as_float)
    damping: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)


class Joint(JointFacts, eqx.Module):
    """A joint between ``parent`` (a link, or "ground") and ``child``.

    At zero joint coordinate the child's x axis is the tangent at the parent's tip, rotated by
    ``rotation`` and shifted by ``offset``.

    The meaning of the coordinate depends on ``type``:

    - revolute: rotation about ``axis``, by default z.
    - prismatic with ``axis``: translation of the child's base along that axis.
    - prismatic without ``axis`` (Pb): the child slides along its own x axis through the joint. The
      coordinate is its free length ahead of the joint.
    - sliding (Pa): the child's base slides along the parent's x axis. The coordinate is the
      distance from the parent's base; ``rotation`` and ``offset`` apply at the contact.
    - universal, spherical, free, fixed: two, three, six and no coordinates.

    Arguments:
        name: name of the joint.
        type: one of revolute, fixed, sliding, prismatic, universal, spherical, free.
        parent: name of a link, or "ground".
        child: name of a link.
        axis: joint axis, in child axes.
        axis2: second axis of a universal joint, in child axes.
        offset: shift of the child's base [m], in the axes of the parent's tip section.
        rotation: rotation vector [rad] from the axes of the parent's tip section to the child's.
        home: joint coordinate at the start of a simulation, by default zero.
        stiffness: stiffness of the spring between motor and child [N m/rad or N/m]. A joint
            without it is rigid.
        backlash: angle or way over which the spring has play; it acts beyond half of it to either
            side.
        backlash_smooth: part of the way over which the spring's stiffness builds up, centred on
            each end of the play; by default a fifth of ``backlash``.
        hardening: cubic stiffness: the spring's torque is ``stiffness * d + hardening * d^3`` for
            a deflection d beyond the play.
        damping: viscous damping [N m s/rad or N s/m].
        friction: dry friction on the motor's side of the spring. A Motion overcomes it.
        output_friction: dry friction on the child's side of the spring.
        spring_friction: dry friction between the two sides of the spring: hysteresis of a gear.
        hub, motor, stops: hardware of the joint.
        mass: mass of the joint [kg].
        loop: whether the joint closes a kinematic loop.
        child_at: end of the child at which a loop joint acts, "base" or "tip".

    >>> import flexjax as fx
    >>> joint = fx.Joint("elbow", "revolute", "upper", "fore", stiffness=200.0, damping=0.5)
    >>> float(joint.stiffness)
    200.0
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
    backlash: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    backlash_smooth: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    hardening: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    damping: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    friction: Friction | None = None
    output_friction: Friction | None = None
    spring_friction: Friction | None = None
    hub: Hub | None = None
    mass: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    motor: Motor | None = None
    stops: Stops | None = None
    loop: bool = eqx.field(static=True, default=False)
    child_at: str = eqx.field(static=True, default="base")

    @property
    def motor_limit(self) -> Float[Array, ""] | None:
        return None if self.motor is None else self.motor.limit

    @property
    def cogs(self) -> bool:
        """Whether its motor has a torque ripple."""
        return self.motor is not None and self.motor.ripple is not None

    @property
    def torque_constant(self) -> Float[Array, ""] | None:
        """Joint effort per current of the motor; None without a motor or where it is not given."""
        return None if self.motor is None else self.motor.torque_constant


class Payload(eqx.Module):
    """A rigid payload fixed to a link.

    Arguments:
        name: name of the payload.
        link: name of the link.
        mass: mass [kg].
        inertia: inertia about the centre of mass [kg m2]: one number (the same about every axis)
            or three numbers (about the axes of the section).
        offset: centre of mass [m], in the axes of the section.
        s: station on the link, 0 (base) to 1 (tip).

    >>> import flexjax as fx
    >>> tool = fx.Payload("tool", "fore", mass=0.4, offset=(0.03, 0.0, 0.0))
    >>> float(tool.mass)
    0.4
    """

    name: str = eqx.field(static=True)
    link: str = eqx.field(static=True)
    mass: Float[Array, ""] = eqx.field(converter=as_float)
    inertia: Float[Array, "*k"] | None = eqx.field(converter=as_float_or_none, default=None)
    offset: Float[Array, "3"] | None = eqx.field(converter=as_float_or_none, default=None)
    s: Float[Array, ""] = eqx.field(converter=as_float, default=1.0)


class Lowpass(eqx.Module):
    """Second-order low-pass filter of a sensor: w^2 / (p^2 + 2 zeta w p + w^2).

    Arguments:
        frequency: corner frequency w / (2 pi) [Hz].
        zeta: damping ratio.

    >>> import flexjax as fx
    >>> gauge = fx.Sensor("strain", "strain_gauge", "upper", lowpass=fx.Lowpass(20.0))
    >>> float(gauge.lowpass.frequency)
    20.0
    """

    frequency: Float[Array, ""] = eqx.field(converter=as_float)
    zeta: Float[Array, ""] = eqx.field(converter=as_float, default=0.7071067811865476)


class Crosstalk(eqx.Module):
    """A share of another sensor's quantity in the reading of a sensor, before its low-pass.

    Arguments:
        sensor: name of the other sensor; its own gain, offset, low-pass and delay do not count.
        gain: reading per unit of the other quantity.

    >>> import flexjax as fx
    >>> leak = fx.Crosstalk("shoulder-angle", -0.002)
    >>> gauge = fx.Sensor("strain", "strain_gauge", "upper", crosstalk=[leak])
    """

    sensor: str = eqx.field(static=True)
    gain: Float[Array, ""] = eqx.field(converter=as_float)


class Sensor(eqx.Module):
    """A sensor on a joint or a link.

    The reading is ``gain * value + offset`` plus cross-talk, followed by low-pass filter, delay,
    drift and noise.

    Arguments:
        name: name of the sensor, which is its column in recordings.
        kind: one of encoder, motor_encoder, tip, strain_gauge, flex, accelerometer, torque.
        on: name of the joint (encoder, motor_encoder, torque) or of the link (the others).
        s: station of a strain gauge, accelerometer or tip sensor.
        span: the two stations between which a flex sensor measures the bending angle.
        position: (y, z) of a strain gauge in the section [m].
        direction: measuring direction, in section axes for an accelerometer and in world axes
            for a tip sensor.
        gain, offset: scale and offset of the reading.
        delay: delay [s].
        lowpass: filter of the reading.
        crosstalk: shares of other sensors' quantities, :class:`Crosstalk` each.
        drift: rate at which the offset changes from the first output on [1/s].
        skew: share by which the sensor's clock runs fast; its times start with the run's.
        quantum: step to which the reading is rounded; the derivative is that without rounding.
        noise: standard deviation of the noise; :func:`flexjax.measure` takes the random key.

    >>> import flexjax as fx
    >>> gauge = fx.Sensor("strain", "strain_gauge", "upper", s=0.05, position=(0.0025, 0.0))
    >>> gauge.on
    'upper'
    """

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
    crosstalk: tuple[Crosstalk, ...] = eqx.field(converter=tuple, default=())
    drift: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    skew: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
    quantum: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)
