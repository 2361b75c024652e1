"""Torques at the joints, with the half segments beside a joint in series.

Such a joint has no inertia of its own. Its angle is the relative angle x of the bodies beside it
plus the ``deflection`` of the half segments between them. Where the torque depends on the joint's
rate (PD controller, damper, friction) the deflection is a state. The half segments are Kelvin-Voigt
springs,

    torque(x + deflection, x' + deflection') = (deflection + lag deflection') / compliance,

which gives the rate of the deflection. It relaxes within damping * compliance + lag: milliseconds
beside a strong controller, less than any step beside a weak damper.

The stretch x between the motor of a flexible joint and its outboard body is the deflection d of the
joint spring and that of the half segments: x = d + compliance * torque(d). A linear spring shares
it in a fixed ratio. Otherwise d is the root of that equation, which Newton's iteration finds from
d = x on: the torque rises ever faster with |d|, so no iterate passes the root.
"""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation.transfer_matrix._layout import JointAxes
from flexjax.mechanism import JointHardware, SpringLaw, friction_torque
from flexjax.numerics.term import Mechanical
from flexjax.robot import Robot

if TYPE_CHECKING:
    from flexjax.formulation.transfer_matrix._chain import AbstractTransferTerm
    from flexjax.formulation.transfer_matrix._plane import PlanarTerm

PerDof: TypeAlias = Float[Array, " D"]
Term = TypeVar("Term", bound="AbstractTransferTerm")


class DeflectedMechanical(Mechanical):
    """Mechanics of a chain with joints in series: deflections of the half segments beside them."""

    joint_deflection: Float[Array, " k"] | Bool[Array, " k"]


def with_deflection(
    series: np.ndarray, mech: Mechanical, deflection: PerDof | np.ndarray | None = None
) -> Mechanical:
    """``mech`` with the deflections of the joints in ``series`` (D,), zero unless given; ``mech``
    itself where there are none."""
    if not series.any():
        return mech
    if deflection is None:
        deflection = jnp.zeros(series.size, mech.v.dtype)
    return DeflectedMechanical(mech.q, mech.v, jnp.asarray(deflection)[series])


def deflection_of(series: np.ndarray, mech: Mechanical) -> PerDof:
    """Deflections beside all joints, zero where they are no state."""
    if not series.any():
        return jnp.zeros(series.size, mech.v.dtype)
    assert isinstance(mech, DeflectedMechanical)  # a chain with joints in series
    index = np.full(series.size, series.sum())
    index[series] = np.arange(series.sum())
    return jnp.concatenate([mech.joint_deflection, jnp.zeros(1, mech.v.dtype)])[index]


def moved(mech: Mechanical, q: Array, v: Array) -> Mechanical:
    """``mech`` at other angles and rates, with the same deflections."""
    return dataclasses.replace(mech, q=q, v=v)


def passes(term: Term, count: int) -> list[Term]:
    """The term of each of ``count`` passes over a step.

    Where efforts have limits, a pass without limits comes first: an effort beyond its limit there
    is so in the solution, whereas the effort at a first guess may be beyond the opposite limit. One
    more pass serves several such joints.
    """
    if not term.drive.limited(term.robot):
        return [term] * count
    drive, robot = term.drive.unlimited(term.robot)
    return [dataclasses.replace(term, drive=drive, robot=robot)] + [term] * (count + 1)


class JointLaw(eqx.Module):
    """Effort and losses (D,) at the joints at one instant.

    ``compliance`` is that of the half segments beside each joint. A PD controller measures the
    joint. Other controllers measure the bodies beside it: their gains are unknown, so their
    measurement cannot depend on their own torque.
    """

    robot: Robot
    drive: Drive
    t: ScalarLike
    piece_time: PieceTime
    memory: PyTree
    damping: PerDof
    hardware: JointHardware
    compliance: PerDof
    compliance_times_lag: PerDof
    tables: JointAxes = eqx.field(static=True)

    @property
    def series(self) -> np.ndarray:
        """(D,) static: joints whose deflection is a state."""
        return self.tables.series

    @property
    def spring(self) -> PerDof:
        """Stiffness of the half segments; one where the deflection is no state."""
        return 1 / jnp.where(self.series, self.compliance, 1.0)

    @property
    def damper(self) -> PerDof:
        """Damping of the half segments."""
        return self.spring**2 * self.compliance_times_lag

    @property
    def linear(self) -> bool:
        """Static: neither friction nor limits, so that one Newton step gives the rate."""
        cogs = any(joint.cogs for joint in self.robot.tree_joints)
        return not self.drive.limited(self.robot) and self.hardware.motor is None and not cogs

    def torques(
        self, x: PerDof, xd: PerDof, deflection: PerDof, rate: PerDof
    ) -> tuple[PerDof, PerDof]:
        """Effort and resistance where the bodies have rotated by ``x``, and the joints by
        ``deflection`` more."""
        measured = self.tables.controlled & self.series
        own = xd + rate
        effort = self.drive.effort(
            self.robot,
            self.t,
            self.piece_time,
            jnp.where(measured, x + deflection, x),
            jnp.where(measured, own, xd),
            self.memory,
        )
        return effort, self.damping * own + self.friction(x + deflection, own)

    def friction(self, x: PerDof, xd: PerDof) -> PerDof:
        """Dry friction on the motors' side, at the joints' own coordinates and rates."""
        dry = self.hardware.motor
        if dry is None:
            return jnp.zeros_like(xd)
        return friction_torque(dry, "motor", self.memory, (x, x), (xd, xd))

    def near(self, x: PerDof, xd: PerDof, deflection: PerDof, rate: PerDof) -> "NearJoint":
        """Torque and its slopes at one point."""
        one, zero = jnp.where(self.series, jnp.ones_like(x), 0.0), jnp.zeros_like(x)
        (effort, resistance), slope = jax.linearize(
            lambda *at: self.torques(x, xd, *at), deflection, rate
        )
        (e_x, r_x), (e_v, r_v) = slope(one, zero), slope(zero, one)
        return NearJoint(effort, resistance, r_x - e_x, r_v - e_v)


class NearJoint(NamedTuple):
    """Effort and resistance (D,), and the slopes (taken positive) of their difference with respect
    to the angle and the rate of joints in series."""

    effort: PerDof
    resistance: PerDof
    of_angle: PerDof
    of_rate: PerDof

    def gap(
        self, law: JointLaw, deflection: PerDof, rate: PerDof, b: PerDof
    ) -> tuple[PerDof, PerDof]:
        """Torque of the law less that of the half segments, and how fast it falls with the rate
        where the deflection is a + b rate."""
        gap = self.effort - self.resistance - law.spring * deflection - law.damper * rate
        slope = self.of_rate + law.damper + b * (self.of_angle + law.spring)
        return jnp.where(law.series, gap, 0.0), jnp.where(law.series, slope, 1.0)


def deflection_rate(law: JointLaw, x: PerDof, xd: PerDof, a: PerDof, b: PerDof) -> PerDof:
    """The rate r at which the law gives the torque of half segments deflected by a + b r; zero for
    joints that are not in series.

    The gap between both falls with r at least as fast as the share of the half segments. This gives
    a bracket for Newton's iteration.
    """

    def corrected(law, x, xd, a, b, rate):
        deflection = a + b * rate
        gap, slope = law.near(x, xd, deflection, rate).gap(law, deflection, rate, b)
        return rate + gap / slope, gap

    zero = jnp.zeros_like(x)
    if law.linear:
        return corrected(law, x, xd, a, b, zero)[0]

    fixed: tuple[JointLaw, Array, Array, Array, Array] = jax.tree_util.tree_map(
        lax.stop_gradient, (law, x, xd, a, b)
    )
    tiny = 4 * jnp.finfo(x.dtype).eps

    def body(carry):
        rate, low, high, _, count = carry
        new, gap = corrected(*fixed, rate)
        low, high = jnp.where(gap > 0, rate, low), jnp.where(gap < 0, rate, high)
        new = jnp.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        going = jnp.any(jnp.abs(new - rate) > tiny * (jnp.abs(new) + jnp.abs(fixed[2])))
        return new, low, high, going, count + 1

    still = fixed[0]
    least = jnp.where(law.series, still.damper + fixed[4] * still.spring, 1.0)
    width = jnp.abs(corrected(*fixed, zero)[1]) / least
    first = (zero, -width, width, jnp.asarray(True), jnp.zeros((), jnp.int32))
    rate = lax.while_loop(lambda c: c[3] & (c[4] < 60), body, first)[0]
    # Each Newton step at the root gives one more order of derivative.
    for _ in range(2):
        rate = corrected(law, x, xd, a, b, rate)[0]
    return rate


class SeriesTorque(eqx.Module):
    """Effort of the drive and resistance (D,), slopes (taken positive) of their difference with
    respect to the angle of the bodies and its rate; deflection of the half segments and its rate,
    zero where the deflection is no state."""

    effort: PerDof
    resistance: PerDof
    of_angle: PerDof
    of_rate: PerDof
    deflection: PerDof
    deflection_rate: PerDof

    @property
    def torque(self) -> PerDof:
        return self.effort - self.resistance


class JointHistory(eqx.Module):
    """Start of a step of length ``dt``: deflections beside the joints, and their rates.

    deflection1 = deflection0 + dt ((1 - theta) rate0 + theta rate1). This is the trapezoidal rule,
    as for the bodies, where dt resolves the relaxation, and backward Euler where it does not.
    """

    dt: Scalar
    deflection: PerDof
    rate: PerDof


def _theta(resolution: PerDof) -> PerDof:
    """Weight of the end of a step, from the relaxation time divided by the step. The remainder of a
    relaxation after the step differs from the exact exponential by less than 0.05."""
    return 0.5 + 1 / (2 + 24 * resolution**2)


def _relaxation(law: JointLaw, near: NearJoint) -> tuple[PerDof, PerDof]:
    """Time constant of the deflection, and stiffness of half segments and controller together."""
    whole = law.spring + near.of_angle
    return (near.of_rate + law.damper) / whole, whole


def joint_torques(
    law: JointLaw, x: PerDof, xd: PerDof, deflection: PerDof, history: JointHistory | None = None
) -> SeriesTorque:
    """Torques at bodies rotated by ``x``: of a state with ``deflection``, or at the end of the step
    that ``history`` starts."""
    kp, kd = law.drive.slopes(law.robot, law.t, law.piece_time, x, xd, law.memory)
    kd = kd + law.damping
    if law.hardware.motor is not None:
        by = jax.linearize(law.friction, x, xd)[1]
        one, none = jnp.ones_like(x), jnp.zeros_like(x)
        kp, kd = kp + by(one, none), kd + by(none, one)
    zero = jnp.zeros_like(x)
    if not law.series.any():
        return SeriesTorque(*law.torques(x, xd, zero, zero), kp, kd, zero, zero)
    if history is None:
        b = zero
        rate = deflection_rate(law, x, xd, deflection, b)
    else:
        tau, _ = _relaxation(law, law.near(x, xd, history.deflection, history.rate))
        b = _theta(tau / history.dt) * history.dt
        a = history.deflection + (history.dt - b) * history.rate
        rate = deflection_rate(law, x, xd, a, b)
        deflection = jnp.where(law.series, a + b * rate, 0.0)
    near = law.near(x, xd, deflection, rate)
    share = (law.damper + b * law.spring) / near.gap(law, deflection, rate, b)[1]
    return SeriesTorque(
        near.effort,
        near.resistance,
        jnp.where(law.series, share * near.of_angle, kp),
        jnp.where(law.series, share * near.of_rate, kd),
        deflection,
        rate,
    )


def relaxed_deflection(
    law: JointLaw, x: PerDof, xd: PerDof, deflection: PerDof, rate: PerDof, dt: Scalar
) -> PerDof:
    """The deflection from which a first step of length ``dt`` computes its accelerations.

    Where dt resolves the relaxation it is ``deflection``; where it does not, the one that follows
    the bodies. The mean of the torques at both ends is then the mean torque of the relaxation.
    """
    tau, whole = _relaxation(law, law.near(x, xd, deflection, rate))
    effort, resistance = law.torques(x, xd, deflection, jnp.zeros_like(x))
    settled = deflection + (effort - resistance - law.spring * deflection) / whole
    theta = _theta(tau / dt)
    share = (tau + (1 - theta) * dt) / (tau + theta * dt)
    return jnp.where(law.series, settled + share * (deflection - settled), 0.0)


# --- springs of flexible joints in the plane, between motor and outboard body


class JointSprings(NamedTuple):
    """Deflections (D,) of the joint springs and their rates; elastic and viscous torque on the
    outboard side, the slopes (taken positive) of both with respect to the stretch and its rate, and
    the energy of spring and half segments."""

    deflection: PerDof
    rate: PerDof
    elastic: PerDof
    viscous: PerDof
    of_stretch: PerDof
    of_rate: PerDof
    viscous_of_stretch: PerDof
    energy: PerDof


def sprung(term: "PlanarTerm") -> np.ndarray:
    """(D,) static: joints whose spring acts between a motor and a body."""
    return term.masks.driven_motor | term.masks.given_motor


def spring_deflection(law: SpringLaw, compliance: PerDof, stretch: PerDof) -> PerDof:
    """Deflection of the joint springs, with half segments of this compliance in series."""
    if law.linear:
        return stretch / (1 + compliance * law.stiffness)

    def corrected(law: SpringLaw, compliance: PerDof, stretch: PerDof, d: PerDof) -> PerDof:
        gap = stretch - d - compliance * law.force(d)
        return d + gap / (1 + compliance * law.slope(d))

    fixed: tuple[SpringLaw, PerDof, PerDof] = jax.tree_util.tree_map(
        lax.stop_gradient, (law, compliance, stretch)
    )
    tiny = 4 * jnp.finfo(stretch.dtype).eps

    def body(carry):
        d, _, count = carry
        new = corrected(*fixed, d)
        return new, jnp.any(jnp.abs(new - d) > tiny * jnp.abs(fixed[2])), count + 1

    first = (fixed[2], jnp.asarray(True), jnp.zeros((), jnp.int32))
    d = lax.while_loop(lambda c: c[1] & (c[2] < 60), body, first)[0]
    # Each Newton step at the root gives one more order of derivative.
    for _ in range(2):
        d = corrected(law, compliance, stretch, d)
    return d


def spring_share(law: SpringLaw, compliance: PerDof, stretch: PerDof) -> PerDof:
    """How fast the joint springs deflect with the stretch."""
    return 1 / (1 + compliance * law.slope(spring_deflection(law, compliance, stretch)))


def joint_springs(
    term: "PlanarTerm", stretch: PerDof, rate: PerDof, memory: PyTree
) -> JointSprings:
    """The springs at a stretch (D,), with the friction across them."""
    own, first, hardware = term.connections, term.masks.first, term.chain.hardware
    law, soft = hardware.spring, own.compliance[first]
    d, part = spring_deflection(law, soft, stretch), spring_share(law, soft, stretch)
    torque, slope = law.force(d), law.slope(d) * part
    damper = hardware.damping * part**2 + slope**2 * own.compliance_times_tau[first]
    viscous, viscous_slope = damper * rate, jnp.zeros_like(rate)
    across = hardware.across
    if across is not None:
        # Refused beside half segments: deflection and stretch are the same.
        none = jnp.zeros_like(stretch)

        def friction(x: PerDof, xd: PerDof) -> PerDof:
            return friction_torque(across, "across", memory, (x, none), (xd, none))

        held, by = jax.linearize(friction, stretch, rate)
        one = jnp.ones_like(rate)
        viscous = viscous + held
        damper, viscous_slope = damper + by(none, one), by(one, none)
    energy = law.energy(d) + 0.5 * soft * torque**2
    return JointSprings(d, part * rate, -torque, -viscous, slope, damper, viscous_slope, energy)


def own_springs(term: "PlanarTerm") -> bool:
    """Static: a joint spring is nonlinear or has friction, which the connections do not contain."""
    hardware = term.chain.hardware
    return not hardware.spring.linear or hardware.across is not None
