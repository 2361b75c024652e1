"""Torques at the joints, with the half segments beside a joint in series.

Such a joint has no inertia of its own. Its angle is that of the bodies beside it, x, plus the
``bend`` of the half segments between them. Where the torque depends on the joint's rate (PD
controller, damper, friction) the bend is a state: the torque of the joint bends Kelvin-Voigt
springs,

    torque(x + bend, x' + bend') = (bend + retardation bend') / compliance,

which gives the rate of the bend. It relaxes within damping * compliance + retardation: milliseconds
beside a strong controller, below any step beside a weak damper."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.drive import PD, Drive
from flexjax.mechanism import JointHardware
from flexjax.numerics.term import Mechanical
from flexjax.robot import Robot


class BentMechanical(Mechanical):
    """Mechanics of a chain with joints in series: ``joint_bend`` (k,) of the half segments beside
    them."""

    joint_bend: Float[Array, " k"]


def with_bend(series: np.ndarray, mech: Mechanical, bend=None) -> Mechanical:
    """``mech`` with the bend (D,) of the joints in ``series`` (D,), unbent unless given; as it is
    where there are none."""
    if not series.any():
        return mech
    bend = jnp.zeros(series.size, mech.v.dtype) if bend is None else bend
    return BentMechanical(mech.q, mech.v, bend[series])


def bend_of(series: np.ndarray, mech: Mechanical) -> Float[Array, " D"]:
    """The bend of all joints, zero where it is no state."""
    if not series.any():
        return jnp.zeros(series.size, mech.v.dtype)
    assert isinstance(mech, BentMechanical)  # a chain with joints in series
    index = np.full(series.size, series.sum())
    index[series] = np.arange(series.sum())
    return jnp.concatenate([mech.joint_bend, jnp.zeros(1, mech.v.dtype)])[index]


def moved(mech: Mechanical, q, v) -> Mechanical:
    """``mech`` at other angles and rates, with the same bends."""
    return dataclasses.replace(mech, q=q, v=v)


def series_joints(robot: Robot, drive: Drive, free, soft) -> np.ndarray:
    """(D,) static: joints ``free`` to turn between half segments (``soft``) whose torque depends on
    their rate."""
    mask, slices = np.zeros(len(free), bool), robot.dof_slices()
    for joint in robot.tree_joints:
        # The damper of a flexible joint lies beside its spring.
        damped = joint.damping is not None and not joint.flexible
        servo = isinstance(drive.joints.get(joint.name), PD)
        mask[slices[joint.name]] = damped or joint.friction is not None or servo
    return mask & free & soft


def passes(term, count: int) -> list:
    """The term of each of ``count`` passes over a step. Where efforts have limits a pass without
    them comes first: an effort that is beyond its limit there is so in the solution, where the one
    at a first guess may be beyond the opposite limit. One more pass serves several such joints."""
    if not term.drive.limited(term.robot):
        return [term] * count
    drive, robot = term.drive.unlimited(term.robot)
    return [dataclasses.replace(term, drive=drive, robot=robot)] + [term] * (count + 1)


class JointLaw(eqx.Module):
    """Effort and losses (D,) at the joints at one instant. ``compliance`` (D,) of the half segments
    beside each joint, ``lag`` (D,) that times their retardation time.

    A PD controller measures the joint. Other controllers measure the bodies beside it: their gains
    are unknown, so that what they measure cannot depend on their own torque."""

    robot: Robot
    drive: Drive
    t: Array
    piece_time: Array | None
    memory: object
    damping: Float[Array, " D"]
    hardware: JointHardware
    compliance: Float[Array, " D"]
    lag: Float[Array, " D"]
    series: tuple[bool, ...] = eqx.field(static=True)

    @property
    def inside(self) -> np.ndarray:
        """(D,) static: joints whose bend is a state."""
        return np.array(self.series, bool)

    @property
    def spring(self) -> Array:
        """(D,) stiffness of the half segments, one where the bend is no state."""
        return 1 / jnp.where(self.inside, self.compliance, 1.0)

    @property
    def damper(self) -> Array:
        """(D,) of the half segments."""
        return self.spring**2 * self.lag

    @property
    def linear(self) -> bool:
        """Static: no friction and no limit, so that one Newton step gives the rate of the bend."""
        return not self.drive.limited(self.robot) and self.hardware.coulomb is None

    def torques(self, x, xd, bend, bend_rate) -> tuple[Array, Array]:
        """(effort, torque lost) where the bodies have turned by ``x``, and the joints by ``bend``
        (D,) more."""
        servo = np.zeros(len(self.series), bool)
        slices = self.robot.dof_slices()
        for name, actuation in self.drive.joints.items():
            servo[slices[name]] = isinstance(actuation, PD)
        seen = servo & self.inside
        rate = xd + bend_rate
        effort = self.drive.effort(
            self.robot,
            self.t,
            self.piece_time,
            jnp.where(seen, x + bend, x),
            jnp.where(seen, rate, xd),
            self.memory,
        )
        return effort, self.damping * rate + self.hardware.friction(rate)

    def near(self, x, xd, bend, bend_rate) -> "NearJoint":
        """Torque and its slopes at one point."""
        one, zero = jnp.where(self.inside, jnp.ones_like(x), 0.0), jnp.zeros_like(x)
        (effort, lost), slope = jax.linearize(lambda *at: self.torques(x, xd, *at), bend, bend_rate)
        (e_x, l_x), (e_v, l_v) = slope(one, zero), slope(zero, one)
        return NearJoint(effort, lost, l_x - e_x, l_v - e_v)


class NearJoint(NamedTuple):
    """(D,) effort, torque lost, and the slopes (taken positive) of their difference in the angle
    and the rate of joints in series."""

    effort: Array
    lost: Array
    of_angle: Array
    of_rate: Array

    def gap(self, law: JointLaw, bend, rate, b) -> tuple[Array, Array]:
        """Torque of the law less that of the half segments, and how fast it falls with the rate
        where the bend is a + b rate."""
        gap = self.effort - self.lost - law.spring * bend - law.damper * rate
        slope = self.of_rate + law.damper + b * (self.of_angle + law.spring)
        return jnp.where(law.inside, gap, 0.0), jnp.where(law.inside, slope, 1.0)


def bend_rate(law: JointLaw, x, xd, a, b) -> Array:
    """(D,) the rate r of the bend at which the law gives the torque of half segments bent by a + b
    r; zero elsewhere.

    The gap between both falls with r at least as fast as the half segments' share: a bracket for
    Newton's iteration."""

    def corrected(law, x, xd, a, b, rate):
        bend = a + b * rate
        gap, slope = law.near(x, xd, bend, rate).gap(law, bend, rate, b)
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
    least = jnp.where(law.inside, still.damper + fixed[4] * still.spring, 1.0)
    reach = jnp.abs(corrected(*fixed, zero)[1]) / least
    first = (zero, -reach, reach, jnp.asarray(True), jnp.zeros((), jnp.int32))
    rate = lax.while_loop(lambda c: c[3] & (c[4] < 60), body, first)[0]
    # Each Newton step at the root gives one more order of derivative.
    for _ in range(2):
        rate = corrected(law, x, xd, a, b, rate)[0]
    return rate


class SeriesTorque(eqx.Module):
    """(D,) effort of the drive, torque lost, slopes (taken positive) of effort less loss in the
    angle of the bodies and its rate; bend of the half segments and its rate, zero where the bend is
    no state."""

    effort: Array
    lost: Array
    of_angle: Array
    of_rate: Array
    bend: Array
    bend_rate: Array

    @property
    def torque(self) -> Array:
        return self.effort - self.lost


class BendStep(eqx.Module):
    """A step of length ``dt`` from ``bend`` (D,) and its ``rate``.

    bend1 = bend0 + dt ((1 - theta) rate0 + theta rate1): the trapezoidal rule, which is that of the
    bodies, where dt resolves the relaxation of the bend, backward Euler where it does not."""

    dt: Array
    bend: Array
    rate: Array


def _theta(resolution):
    """Weight of the end of a step, from the relaxation time divided by the step: what is left of a
    relaxation after the step differs from the exact exponential by less than 0.05."""
    return 0.5 + 1 / (2 + 24 * resolution**2)


def _relaxation(law: JointLaw, near: NearJoint) -> tuple[Array, Array]:
    """(D,) time constant of the bend, and stiffness of half segments and controller together."""
    whole = law.spring + near.of_angle
    return (near.of_rate + law.damper) / whole, whole


def joint_torques(law: JointLaw, x, xd, bend, step: BendStep | None = None) -> SeriesTorque:
    """At bodies turned by ``x`` (D,): those of a state with ``bend`` (D,), or those at the end of
    ``step``."""
    kp, kd = law.drive.slopes(law.robot, law.t, law.piece_time, x, xd, law.memory)
    kd = kd + law.damping + law.hardware.friction_slope(xd)
    zero = jnp.zeros_like(x)
    if not law.inside.any():
        return SeriesTorque(*law.torques(x, xd, zero, zero), kp, kd, zero, zero)
    if step is None:
        b = zero
        rate = bend_rate(law, x, xd, bend, b)
    else:
        tau, _ = _relaxation(law, law.near(x, xd, step.bend, step.rate))
        b = _theta(tau / step.dt) * step.dt
        a = step.bend + (step.dt - b) * step.rate
        rate = bend_rate(law, x, xd, a, b)
        bend = jnp.where(law.inside, a + b * rate, 0.0)
    near = law.near(x, xd, bend, rate)
    share = (law.damper + b * law.spring) / near.gap(law, bend, rate, b)[1]
    return SeriesTorque(
        near.effort,
        near.lost,
        jnp.where(law.inside, share * near.of_angle, kp),
        jnp.where(law.inside, share * near.of_rate, kd),
        bend,
        rate,
    )


def relaxed_bend(law: JointLaw, x, xd, bend, rate, dt) -> Array:
    """(D,) the bend with which a first step of length ``dt`` starts the accelerations.

    Where dt resolves the relaxation it is ``bend``; where it does not, the bend that follows the
    bodies. The mean of the torques at both ends is then the mean torque of the relaxation."""
    tau, whole = _relaxation(law, law.near(x, xd, bend, rate))
    effort, lost = law.torques(x, xd, bend, jnp.zeros_like(x))
    slow = bend + (effort - lost - law.spring * bend) / whole
    theta = _theta(tau / dt)
    share = (tau + (1 - theta) * dt) / (tau + theta * dt)
    return jnp.where(law.inside, slow + share * (bend - slow), 0.0)
