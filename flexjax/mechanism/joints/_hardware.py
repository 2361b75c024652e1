"""Springs, dampers, friction and end stops of the joints: parameters, forces, energy, slopes."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.mechanism.joints._joints import or_zero, rotor_and_gear
from flexjax.robot import Friction, Joint, Robot

PLACES = ("motor", "output", "across")  # fields of JointHardware with friction


class DryFriction(eqx.Module):
    """Dry friction (D,) at one place of the joints; zero where a joint has none there.

    ``excess`` (breakaway less Coulomb friction) and ``stribeck`` are None if no joint has any,
    ``bristle`` and ``bristle_damping`` likewise. ``sticks``: coordinates that have bristles.
    """

    coulomb: Float[Array, " D"]
    v_eps: Float[Array, " D"]
    excess: Float[Array, " D"] | None
    stribeck: Float[Array, " D"] | None
    bristle: Float[Array, " D"] | None
    bristle_damping: Float[Array, " D"] | None
    sticks: tuple[bool, ...] = eqx.field(static=True)

    def torque(
        self, rate: Float[Array, " D"], deflection: Float[Array, " D"] | None = None
    ) -> Float[Array, " D"]:
        """Friction that opposes ``rate``, with the deflection of bristles where there are any."""
        smooth = self.level(rate) * jnp.tanh(rate / self.v_eps)
        if self.bristle is None or self.bristle_damping is None:
            return smooth
        z = jnp.zeros_like(rate) if deflection is None else deflection
        slip = rate - jnp.abs(rate) * z / self._limit(rate)
        stuck = self.bristle * z + self.bristle_damping * slip
        return jnp.where(np.array(self.sticks), stuck, smooth)

    def relaxed(
        self, z0: Float[Array, " D"], way: Float[Array, " D"], rate: Float[Array, " D"]
    ) -> Float[Array, " D"]:
        """Deflection of the bristles after a ``way``, from ``z0``: Dahl's law, solved exactly.

        Its derivative at no way is the mean of those to either side.
        """
        u = jnp.abs(way) / self._limit(rate)
        small = u < 1e-3
        safe = jnp.where(small, 1.0, u)
        mean = jnp.where(small, 1 - u / 2 + u**2 / 6 - u**3 / 24, -jnp.expm1(-safe) / safe)
        return jnp.where(np.array(self.sticks), z0 * jnp.exp(-u) + way * mean, 0.0)

    def _limit(self, rate: Float[Array, " D"]) -> Float[Array, " D"]:
        """Deflection of the bristles while sliding."""
        assert self.bristle is not None
        sticks = np.array(self.sticks)
        stiffness = jnp.where(sticks, self.bristle, 1.0)
        return jnp.where(sticks, jnp.maximum(self.level(rate), 1e-12), 1.0) / stiffness

    def slope(self, rate: Float[Array, " D"]) -> Float[Array, " D"]:
        """Derivative of the friction with respect to the rate; of bristles without deflection."""
        return jax.jvp(self.torque, (rate,), (jnp.ones_like(rate),))[1]

    def level(self, rate: Float[Array, " D"]) -> Float[Array, " D"]:
        """Friction while sliding: from breakaway to Coulomb friction over the Stribeck speed."""
        if self.excess is None or self.stribeck is None:
            return self.coulomb
        return self.coulomb + self.excess * jnp.exp(-((rate / self.stribeck) ** 2))


class SpringLaw(eqx.Module):
    """Springs (D,) of flexible joints: play, then ``stiffness * d + hardening * d^3``.

    At both ends of the play, over ``width``, the slope of d rises smoothly from zero to one. So the
    torque has two continuous derivatives and is zero inside. ``half_play`` and ``width`` are None
    if no joint has play, ``hardening`` if none has it. ``plays``: coordinates with play.
    """

    stiffness: Float[Array, " D"]
    half_play: Float[Array, " D"] | None
    width: Float[Array, " D"] | None
    hardening: Float[Array, " D"] | None
    plays: tuple[bool, ...] = eqx.field(static=True)

    @property
    def linear(self) -> bool:
        """Static: no joint has play or hardening."""
        return self.half_play is None and self.hardening is None

    def force(self, stretch: Float[Array, " D"]) -> Float[Array, " D"]:
        """Torque that opposes the ``stretch`` between motor and link."""
        d = self._behind(stretch)[0]
        cubic = 0.0 if self.hardening is None else self.hardening * d**3
        return self.stiffness * d + cubic

    def slope(self, stretch: Float[Array, " D"]) -> Float[Array, " D"]:
        """Derivative of the torque with respect to the stretch."""
        d, rate = self._behind(stretch)
        cubic = 0.0 if self.hardening is None else 3 * self.hardening * d**2
        return (self.stiffness + cubic) * rate

    def energy(self, stretch: Float[Array, " D"]) -> Float[Array, " D"]:
        """Energy of the springs: the integral of the torque."""
        k = self.stiffness
        k3 = jnp.zeros_like(k) if self.hardening is None else self.hardening
        plain = 0.5 * k * stretch**2 + 0.25 * k3 * stretch**4
        if self.width is None:
            return plain
        _, x, beyond = self._contact(stretch)
        w = self.width
        own = k * (w**2 * x**4 * (1 / 4 - x / 10) + 0.5 * beyond * (w + beyond))
        cubed = x**10 * (1 / 10 - x * (3 / 22 - x * (1 / 16 - x / 104)))
        own = own + k3 * (w**4 * cubed + ((0.5 * w + beyond) ** 4 - (0.5 * w) ** 4) / 4)
        return jnp.where(np.array(self.plays), own, plain)

    def _behind(self, stretch: Float[Array, " D"]) -> tuple[Array, Array]:
        """Deflection beyond the play, and its slope."""
        if self.width is None:
            return stretch, jnp.ones_like(stretch)
        sign, x, beyond = self._contact(stretch)
        d, plays = sign * (self.width * x**3 * (1 - x / 2) + beyond), np.array(self.plays)
        return jnp.where(plays, d, stretch), jnp.where(plays, x**2 * (3 - 2 * x), 1.0)

    def _contact(self, stretch: Float[Array, " D"]) -> tuple[Array, Array, Array]:
        """Side of the play; share passed of the region where the spring builds up; way beyond."""
        assert self.half_play is not None and self.width is not None
        sign = jnp.where(stretch < 0, -1.0, 1.0)
        u = (sign * stretch - self.half_play) / self.width + 0.5
        full = u >= 1
        x = jnp.where(full, 1.0, jnp.where(u > 0, u, 0.0))
        return sign, x, jnp.where(full, (u - 1) * self.width, 0.0)


class JointHardware(eqx.Module):
    """Parameters (D,) in robot order, zero where a joint has none.

    Kinds of friction and ``stops`` are None if no joint has any, which saves code. ``motor``
    friction acts on the motor's side of a joint spring, ``output`` friction and end stops on the
    link's side, ``across`` friction between the two.
    """

    spring: SpringLaw  # of a flexible joint
    damping: Float[Array, " D"]  # along the spring of a flexible joint, otherwise at the joint
    rotor: Float[Array, " D"]
    gear: Float[Array, " D"]
    motor: DryFriction | None
    output: DryFriction | None
    across: DryFriction | None
    stops: Float[Array, "D 4"] | None  # lower, upper, stiffness, damping

    def stop_force(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Elastic force of the end stops on link-side coordinates."""
        if self.stops is None:
            return jnp.zeros_like(x)
        return -self.stops[:, 2] * _beyond(self.stops, x)

    def stop_slopes(self, x: Float[Array, " D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Stiffness and damping of the end stops that are in contact at ``x``."""
        if self.stops is None:
            return jnp.zeros_like(x), jnp.zeros_like(x)
        touching = _beyond(self.stops, x) != 0
        stiffness, damping = self.stops[:, 2], self.stops[:, 3]
        return jnp.where(touching, stiffness, 0.0), jnp.where(touching, damping, 0.0)

    def stop_energy(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Energy in the end stops, per coordinate."""
        if self.stops is None:
            return jnp.zeros_like(x)
        return 0.5 * self.stops[:, 2] * _beyond(self.stops, x) ** 2


def _beyond(stops: Float[Array, "D 4"], x: Float[Array, " D"]) -> Float[Array, " D"]:
    """How far coordinates are beyond their end stops; zero between them."""
    lower, upper, stiffness, _ = stops.T
    beyond = jnp.minimum(x - lower, 0.0) + jnp.maximum(x - upper, 0.0)
    return jnp.where(stiffness > 0, beyond, 0.0)


def _per_dof(
    robot: Robot, value: Callable[[Joint], Array], width: tuple[int, ...] = ()
) -> Float[Array, " D ..."]:
    """A value of every joint, for each of its coordinates."""
    rows = [x for joint in robot.tree_joints for x in [value(joint)] * joint.dofs]
    return jnp.stack(rows) if rows else jnp.zeros((0, *width), robot.gravity.dtype)


def _dry_friction(robot: Robot, of: Callable[[Joint], Friction | None]) -> DryFriction | None:
    found, like = [x for j in robot.tree_joints if (x := of(j)) is not None], robot.gravity
    if not found:
        return None
    one = jnp.ones((), like.dtype)

    def excess(j: Joint) -> Array:
        x = of(j)
        return or_zero(None if x is None or x.breakaway is None else x.breakaway - x.coulomb, like)

    def stribeck(j: Joint) -> Array:
        x = of(j)
        return one if x is None or x.stribeck is None else x.stribeck

    def stuck(field: str) -> Callable[[Joint], Array]:
        return lambda j: or_zero((x := of(j)) and getattr(x, field), like)

    rises = any(x.breakaway is not None for x in found)
    sticks = any(x.bristle is not None for x in found)
    return DryFriction(
        coulomb=_per_dof(robot, lambda j: or_zero((x := of(j)) and x.coulomb, like)),
        v_eps=_per_dof(robot, lambda j: one if (x := of(j)) is None else x.v_eps),
        excess=_per_dof(robot, excess) if rises else None,
        stribeck=_per_dof(robot, stribeck) if rises else None,
        bristle=_per_dof(robot, stuck("bristle")) if sticks else None,
        bristle_damping=_per_dof(robot, stuck("bristle_damping")) if sticks else None,
        sticks=tuple(
            (x := of(j)) is not None and x.bristle is not None
            for j in robot.tree_joints
            for _ in range(j.dofs)
        ),
    )


def _springs(robot: Robot) -> SpringLaw:
    like, joints = robot.gravity, robot.tree_joints
    one = jnp.ones((), like.dtype)
    of = functools.partial(_per_dof, robot)

    def width(j: Joint) -> Array:
        if j.backlash is None:
            return one
        return 0.2 * j.backlash if j.backlash_smooth is None else j.backlash_smooth

    plays = tuple(j.backlash is not None for j in joints for _ in range(j.dofs))
    half = lambda j: or_zero(None if j.backlash is None else 0.5 * j.backlash, like)
    hard = any(j.hardening is not None for j in joints)
    return SpringLaw(
        stiffness=of(lambda j: or_zero(j.stiffness, like)),
        half_play=of(half) if any(plays) else None,
        width=of(width) if any(plays) else None,
        hardening=of(lambda j: or_zero(j.hardening, like)) if hard else None,
        plays=plays,
    )


def joint_hardware(robot: Robot) -> JointHardware:
    """The hardware of all tree joints; pure and traceable in the robot's leaves."""
    like, joints = robot.gravity, robot.tree_joints
    per_dof = functools.partial(_per_dof, robot)

    def stops(joint):
        s = joint.stops
        if s is None:
            return jnp.array([-jnp.inf, jnp.inf, 0.0, 0.0], like.dtype)
        return jnp.stack([s.lower, s.upper, s.stiffness, s.damping])

    stopped = any(j.stops is not None for j in joints)
    return JointHardware(
        spring=_springs(robot),
        damping=per_dof(lambda j: or_zero(j.damping, like)),
        rotor=per_dof(lambda j: rotor_and_gear(j, like)[0]),
        gear=per_dof(lambda j: rotor_and_gear(j, like)[1]),
        motor=_dry_friction(robot, lambda j: j.friction),
        output=_dry_friction(robot, lambda j: j.output_friction),
        across=_dry_friction(robot, lambda j: j.spring_friction),
        stops=per_dof(stops, (4,)) if stopped else None,
    )
