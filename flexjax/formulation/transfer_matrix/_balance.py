"""Torques in the connections, efforts of the motors, powers and energies."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax.formulation.transfer_matrix._laws import (
    Point,
    joint_law,
    link_side,
    load_wrenches,
    motor_side,
    on_connections,
    stop_torque,
    targets,
)
from flexjax.formulation.transfer_matrix._series import BendStep, SeriesTorque, joint_torques
from flexjax.numerics.term import Mechanical


class Springs(NamedTuple):
    """(n,) stretch of the springs from their targets, its rate, the elastic and the viscous torque
    on the outboard side."""

    stretch: Array
    stretch_rate: Array
    elastic: Array
    viscous: Array


def springs(term, p: Point, target) -> Springs:
    kinds, con = term.kinds, term.chain.connections
    if kinds.driven_motor.any():
        motor = jnp.stack([p.motor, p.motor_rate, jnp.zeros_like(p.motor)])
        target = jnp.where(kinds.driven_motor[None], motor[:, np.maximum(kinds.motor, 0)], target)
    value, rate, _ = on_connections(term, target)
    on = jnp.asarray(kinds.springs, p.x.dtype)
    x, xd = on * (p.x - value), on * (p.xd - rate)
    return Springs(x, xd, -con.spring * x, -con.damper * xd)


def needs_forces(term) -> bool:
    """Static: whether efforts or the base's power need the inverse dynamics, or springs tell
    them."""
    kinds = term.kinds
    return bool(kinds.rigid[kinds.first[kinds.given_joint]].any()) or term.drive.base is not None


def motor_accelerations(term, a, target, ground) -> Array:
    """(D,) accelerations of the motor-side coordinates."""
    kinds = term.kinds
    motors = term.split(a)[1]
    x = term.relative(a, ground.acceleration)[kinds.first]
    if kinds.dof_of_motor.size:
        x = jnp.where(kinds.motor >= 0, motors[np.maximum(kinds.motor, 0)], x)
    return jnp.where(kinds.given, target[2], x)


def rotor_torque(term, motor_acc):
    """A function of the parents' angular accelerations (n,) that gives the torque of the rotors on
    their parents (n,)."""
    kinds, j = term.kinds, term.chain.joints

    def torque(parent):
        if not kinds.rotor.any():
            return jnp.zeros_like(parent)
        return on_connections(
            term, j.rotor * (parent[kinds.first] + j.gear * motor_acc), kinds.rotor
        )

    return torque


class Exchange(eqx.Module):
    """Forces through which energy enters (drive, loads, base) and leaves (dampers, friction), with
    the coordinates along which they act and their rates; vectors of equal length. Torques at joints
    act along the angles of the bodies beside them: no part of the energy is in half segments beside
    a joint that is free to turn."""

    force: Array
    place: Array
    rate: Array
    lost: Array
    lost_place: Array
    lost_rate: Array

    def powers(self) -> tuple[Array, Array]:
        """(power of the drive, power dissipated)."""
        return jnp.sum(self.force * self.rate), jnp.sum(self.lost * self.lost_rate)

    def since(self, old: "Exchange") -> tuple[Array, Array]:
        """(work, dissipated energy) between two instants: mean forces times displacements.

        The step's own quadrature: with the pair (1/4, 1/2) a linear chain keeps its balance to
        rounding, also where stiff modes alternate from step to step; the mean of the powers would
        count their squares."""
        work = 0.5 * jnp.sum((old.force + self.force) * (self.place - old.place))
        return work, 0.5 * jnp.sum((old.lost + self.lost) * (self.lost_place - old.lost_place))


class Forces(NamedTuple):
    """Inverse dynamics: force (n, 2) and torque (n,) on every body at its inboard point, those on
    the joint from its parent, and the points' motion."""

    q: Array
    n: Array
    n_parent: Array
    acceleration: Array


class Efforts(NamedTuple):
    effort: Array  # (D,) of the motors
    bend: Array  # (D,) of the half segments beside free joints
    joints: SeriesTorque
    exchange: Exchange
    reactions: Forces | None  # where they were asked for


def efforts(
    term, t, mech: Mechanical, a, piece_time, memory, *, forces: bool, step: BendStep | None = None
) -> Efforts:
    kinds, j = term.kinds, term.chain.joints
    ground = term.ground(t, piece_time)
    p = term.point(mech, ground)
    target = targets(term, t, piece_time)
    sp = springs(term, p, target)
    n = sp.elastic + sp.viscous
    rotor = rotor_torque(term, motor_accelerations(term, a, target, ground))
    inverse = None
    if forces:
        inverse = term.forces(t, piece_time, mech, a, ground, rotor)
        n = jnp.where(kinds.rigid, inverse.n, n)
    xm, xmd = motor_side(term, p, target)
    own = joint_torques(joint_law(term, t, piece_time, memory), xm, xmd, p.bend, step)
    lost, effort = own.lost, n[kinds.first] + own.lost
    if kinds.rotor.any():
        parent = jnp.concatenate([ground.acceleration[None], term.split(a)[0][:-1]])
        effort = effort + j.gear * rotor(parent)[kinds.first]
    if not kinds.given.all():
        effort = jnp.where(kinds.given, effort, own.effort)
    # Static: what is absent costs no code, neither here nor (twice as much) in reverse mode.
    joints = term.robot.tree_joints
    damped = any(link.damping is not None for link in term.robot.links) or any(
        joint.damping is not None for joint in joints
    )
    gain, loss = [], []
    if term.drive.joints:
        gain.append((effort, xm, xmd))
    if damped:
        loss.append((-sp.viscous, sp.stretch, sp.stretch_rate))
    if any(joint.damping is not None or joint.friction is not None for joint in joints):
        loss.append((lost, xm, xmd))
    if kinds.stops.any():
        q, qd = link_side(term, p, target)
        loss.append((jnp.where(kinds.given_joint, 0.0, stop_torque(j, q, qd)[2] * qd), q, qd))
    if term.drive.loads:
        (th, _), (w, _) = term.split(mech.q), term.split(mech.v)
        force, torque = load_wrenches(term, t, piece_time, th)
        position, velocity, _ = term.points(mech, ground)
        gain += [
            (force.reshape(-1), position[:-1].reshape(-1), velocity[:-1].reshape(-1)),
            (torque, th, w),
        ]
    if term.drive.base is not None and inverse is not None:
        gain.append((inverse.q[0], ground.point, ground.point_velocity))
        gain.append((inverse.n_parent[:1], ground.angle[None], ground.rate[None]))
    none = jnp.zeros(0, effort.dtype)
    columns = [
        jnp.concatenate([none, *(row[k] for row in rows)])
        for rows in (gain, loss)
        for k in range(3)
    ]
    bend = term.chain.connections.give[kinds.first] * jnp.where(kinds.free, own.torque, 0.0)
    bend = jnp.where(term.series, own.bend, bend)
    return Efforts(effort, bend, own, Exchange(*columns), inverse)


def exchange(
    term, t, mech: Mechanical, a, piece_time, memory, step: BendStep | None = None
) -> tuple[Exchange, SeriesTorque]:
    found = efforts(term, t, mech, a, piece_time, memory, forces=needs_forces(term), step=step)
    return found.exchange, found.joints


def energies(term, t, mech: Mechanical, piece_time) -> tuple[Array, Array, Array]:
    """(kinetic, elastic, gravity)."""
    kinds, b, j = term.kinds, term.chain.bodies, term.chain.joints
    ground = term.ground(t, piece_time)
    p = term.point(mech, ground)
    target = targets(term, t, piece_time)
    sp = springs(term, p, target)
    position, velocity, _ = term.points(mech, ground)
    (th, _), (w, _) = term.split(mech.q), term.split(mech.v)
    c, s = jnp.cos(th), jnp.sin(th)
    moment = jnp.stack(
        [c * b.moment[:, 0] - s * b.moment[:, 1], s * b.moment[:, 0] + c * b.moment[:, 1]], -1
    )
    v = velocity[:-1]
    across = v[:, 1] * moment[:, 0] - v[:, 0] * moment[:, 1]
    kinetic = 0.5 * jnp.sum(b.mass * jnp.sum(v**2, axis=1) + b.inertia * w**2) + jnp.sum(w * across)
    elastic = -0.5 * jnp.sum(sp.elastic * sp.stretch)
    gravity = -jnp.sum((b.mass[:, None] * position[:-1] + moment) * term.chain.gravity[None])
    if kinds.rotor.any():
        _, xmd = motor_side(term, p, target)
        spin = jnp.concatenate([ground.rate[None], w])[kinds.first] + j.gear * xmd
        kinetic = kinetic + 0.5 * jnp.sum(j.rotor * spin**2)
    if kinds.stops.any():
        q, _ = link_side(term, p, target)
        elastic = elastic + jnp.sum(jnp.where(kinds.given_joint, 0.0, j.stop_energy(q)))
    return kinetic, elastic, gravity
