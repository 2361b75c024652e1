"""What acts in the connections: springs, motors, controllers, friction, end stops; and loads on the
bodies, and the ground's motion."""

from functools import cached_property
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix._chain import Chain, Layout
from flexjax.formulation.transfer_matrix._link import locate, on_segment
from flexjax.formulation.transfer_matrix._series import BendStep, JointLaw, joint_torques
from flexjax.robot import Robot


class Ground(NamedTuple):
    """Motion of the ground: angle with its derivatives, and the motion of the first joint's
    point."""

    angle: Array
    rate: Array
    acceleration: Array
    point: Array
    point_velocity: Array
    point_acceleration: Array


class Point(NamedTuple):
    """Rotations of the connections (n,) from rest, their rates, motor angles and rates; bend (D,)
    of the half segments beside joints where it is a state, zero elsewhere."""

    x: Array
    xd: Array
    motor: Array
    motor_rate: Array
    bend: Array


def ground_motion(drive, chain: Chain, t, piece_time) -> Ground:
    zero = jnp.zeros((), chain.gravity.dtype)
    x, v, a = jnp.zeros((3, 2), zero.dtype)
    angle, rate, acc = zero, zero, zero
    base = drive.base
    if base is not None:
        if base.translation is not None:
            x, v, a = (z[:2] for z in base.translation.evaluate(t, piece_time))
        if base.angle is not None:
            sense = base.axis[2] / jnp.linalg.norm(base.axis)
            angle, rate, acc = (sense * z for z in base.angle.evaluate(t, piece_time))
    c, s = jnp.cos(angle), jnp.sin(angle)
    ox, oy = chain.offset
    o = jnp.stack([c * ox - s * oy, s * ox + c * oy])
    across = jnp.stack([-o[1], o[0]])
    return Ground(angle, rate, acc, x + o, v + rate * across, a + acc * across - rate**2 * o)


class Kinds:
    """Static: what each connection is under one drive. Masks (D,) over the joint coordinates in
    robot order."""

    def __init__(self, robot: Robot, layout: Layout, prescribed: np.ndarray):
        D = layout.dofs
        self.n = layout.n
        self.springs = layout.compliant()  # (n,) the spring of the connection acts
        self.rigid = ~self.springs  # (n,) the connection holds the rotation that the drive gives
        self.first = np.zeros(D, int)  # connection of each joint
        self.motor = np.full(D, -1)
        self.rotor, self.stops = np.zeros(D, bool), np.zeros(D, bool)
        for s in layout.joints:
            joint = robot.joints[s.joint]
            self.first[s.dof], self.motor[s.dof] = s.first, s.motor
            self.rotor[s.dof] = joint.motor is not None and joint.motor.rotor is not None
            self.stops[s.dof] = joint.stops is not None
        flexible = self.motor >= 0
        self.given = prescribed
        self.given_motor = prescribed & flexible
        self.given_joint = prescribed & ~flexible
        self.driven_motor = ~prescribed & flexible & self.rotor
        self.idle_motor = (
            ~prescribed & flexible & ~self.rotor
        )  # no inertia, no torque: it stays with its joint
        self.free = (~prescribed & ~flexible) | self.idle_motor
        self.springs[self.first[flexible]] = True
        self.springs[self.first[self.free]] = False
        self.rigid[self.first[flexible | self.free]] = False
        self.dof_of_motor = np.argsort(np.where(flexible, self.motor, D))[: flexible.sum()]

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """For rigidly held bodies: index (0 is the ground) of the body that leads, and the matrix
        that sums the rotations since."""
        leader, inside = np.arange(1, self.n + 1), np.zeros((self.n, self.n))
        for i in np.flatnonzero(self.rigid):
            leader[i] = 0 if i == 0 else leader[i - 1]
            if i > 0 and self.rigid[i - 1]:
                inside[i] = inside[i - 1]
            inside[i, i] = 1.0
        return leader, inside


def targets(term, t, piece_time) -> Float[Array, "3 D"]:
    """Coordinates, rates and accelerations that the drive prescribes; zero elsewhere."""
    if not term.kinds.given.any():
        return jnp.zeros((3, term.layout.dofs), term.chain.gravity.dtype)
    return jnp.stack(term.drive.motion(term.robot, t, piece_time))


def on_connections(term, per_dof, where=None) -> Array:
    """(..., n) from (..., D), zero where no joint stands (or ``where``, a static mask, is
    false)."""
    # A gather from a padded vector: scatters are slow to compile and to run.
    kinds = term.kinds
    index = np.full(kinds.n, per_dof.shape[-1])
    pick = np.arange(per_dof.shape[-1]) if where is None else np.flatnonzero(where)
    index[kinds.first[pick]] = pick
    pad = jnp.zeros((*per_dof.shape[:-1], 1), per_dof.dtype)
    return jnp.concatenate([per_dof, pad], axis=-1)[..., index]


class Laws(eqx.Module):
    """The connections' part of the elements (n,), and how the motors follow: a D + b - c
    al_parent."""

    stiffness: Array
    torque: Array
    free: Array
    given: Array
    coupling: Array
    inertia: Array
    pull: Array
    motors: Float[Array, "3 F"]
    first: tuple[int, ...] = eqx.field(static=True)

    def motor_acceleration(self, turn, parent) -> Array:
        if not self.first:
            return turn[:0]
        a, b, c = self.motors
        return a * turn[np.array(self.first)] + b - c * parent[np.array(self.first)]


def motor_side(term, p: Point, target) -> tuple[Array, Array]:
    """(D,) motor-side coordinates and rates; a rigid joint's own."""
    kinds = term.kinds

    def pick(x, motor, given):
        x = x[kinds.first]
        if kinds.dof_of_motor.size:
            x = jnp.where(kinds.motor >= 0, motor[np.maximum(kinds.motor, 0)], x)
        return jnp.where(kinds.given, given, x)

    return pick(p.x, p.motor, target[0]), pick(p.xd, p.motor_rate, target[1])


def link_side(term, p: Point, target) -> tuple[Array, Array]:
    """(D,) joint coordinates and rates on the link's side of joint springs."""
    kinds = term.kinds
    q, qd = motor_side(term, p, target)
    share = jnp.where(
        kinds.driven_motor | kinds.given_motor, term.chain.connections.joint_share[kinds.first], 0.0
    )
    return q + share * (p.x[kinds.first] - q), qd + share * (p.xd[kinds.first] - qd)


def stop_torque(joints, q, qd) -> tuple[Array, Array, Array]:
    """(D,) torque of the end stops on the child, its slopes (taken positive) in coordinate and
    rate, at link-side coordinates."""
    stiffness, damping = joints.stop_slopes(q)
    return joints.stop_force(q) - damping * qd, stiffness, damping


def joint_law(term, t, piece_time, memory) -> JointLaw:
    """Torques of drive, dampers and friction at motor-side coordinates."""
    j, kinds = term.chain.joints, term.kinds
    return JointLaw(
        robot=term.robot,
        drive=term.drive,
        t=t,
        piece_time=piece_time,
        memory=memory,
        # The damper of a flexible joint lies beside its spring.
        damping=jnp.where(kinds.motor >= 0, 0.0, j.damping),
        hardware=j,
        compliance=term.chain.connections.give[kinds.first],
        lag=term.chain.connections.lag[kinds.first],
        series=tuple(bool(x) for x in term.series),
    )


def joint_laws(
    term, t, piece_time, memory, star: Point, predicted: Point, c2, c1, step: BendStep | None = None
) -> Laws:
    """Torques linear in the accelerations: value at ``predicted``, slopes times (c2, c1). What is
    not linear is expanded about ``star``, whose bend counts unless there is a ``step``."""
    kinds, con, j = term.kinds, term.chain.connections, term.chain.joints
    dtype, first = con.spring.dtype, kinds.first
    target = targets(term, t, piece_time)
    held = target
    if kinds.driven_motor.any():
        motor = jnp.stack([predicted.motor, predicted.motor_rate, jnp.zeros_like(predicted.motor)])
        held = jnp.where(kinds.driven_motor[None], motor[:, np.maximum(kinds.motor, 0)], target)
    value, rate, acc = on_connections(term, held)
    on = jnp.asarray(kinds.springs, dtype)
    K, C = con.spring * on, con.damper * on
    stiffness = K * c2 + C * c1
    torque = -K * (predicted.x - value) - C * (predicted.xd - rate)
    free, given = jnp.asarray(~kinds.rigid, dtype), jnp.where(kinds.rigid, acc, 0.0)
    coupling = inertia = pull = jnp.zeros_like(torque)
    D = first.shape[0]
    motors = jnp.stack([jnp.asarray(kinds.idle_motor, dtype), target[2], jnp.zeros(D, dtype)])
    # Static: free joints without drive, damper or friction need none of it.
    acted = term.drive.joints or any(
        x.damping is not None or x.friction is not None for x in term.robot.tree_joints
    )
    if (acted and not kinds.given.all()) or kinds.rotor.any() or kinds.stops.any():
        ks, n0 = stiffness[first], torque[first]
        xs, xsd = motor_side(term, star, target)
        xp, xpd = motor_side(term, predicted, target)
        law = joint_law(term, t, piece_time, memory)
        own = joint_torques(law, xs, xsd, star.bend, step)
        tau, k_x, k_d = own.torque, own.of_angle, own.of_rate
        tau, k = tau - k_x * (xp - xs) - k_d * (xpd - xsd), k_x * c2 + k_d * c1
        led = kinds.driven_motor
        stiff, push = ks, n0
        if kinds.rotor.any():
            J, gJ = j.rotor, j.gear * j.rotor
            whole = jnp.where(led, ks + j.gear * gJ + k, 1.0)
            pulls = jnp.where(led, (tau - n0) / whole, target[2])  # the motor's own acceleration
            stiff = jnp.where(
                led, ks * (1 - ks / whole), ks + jnp.where(kinds.free, j.gear * gJ, 0.0)
            )
            push = jnp.where(led, n0 + ks * pulls, n0)
            table = [
                jnp.where(led, ks * gJ / whole, jnp.where(kinds.free, gJ, 0.0)),
                jnp.where(led, J - gJ**2 / whole, J),
                jnp.where(led | kinds.given, -gJ * pulls, 0.0),
            ]
            coupling, inertia, pull = on_connections(term, jnp.stack(table))
            motors = jnp.where(led[None], jnp.stack([ks / whole, pulls, gJ / whole]), motors)
        tau, k = jnp.where(kinds.free, tau, 0.0), jnp.where(kinds.free, k, 0.0)
        if kinds.stops.any():
            q, qd = link_side(term, star, target)
            pressed, k_s, c_s = stop_torque(j, q, qd)
            way, speed = predicted.x[first] - star.x[first], predicted.xd[first] - star.xd[first]
            acting = ~kinds.given_joint
            tau = tau + jnp.where(acting, pressed - k_s * way - c_s * speed, 0.0)
            k = k + jnp.where(acting, k_s * c2 + c_s * c1, 0.0)
        here = np.isin(np.arange(kinds.n), first)
        stiffness = jnp.where(here, on_connections(term, stiff + k), stiffness)
        torque = jnp.where(here, on_connections(term, push + tau), torque)
    return Laws(
        stiffness,
        torque,
        free,
        given,
        coupling,
        inertia,
        pull,
        motors[:, kinds.dof_of_motor],
        tuple(int(first[d]) for d in kinds.dof_of_motor),
    )


def load_wrenches(term, t, piece_time, th) -> tuple[Array, Array]:
    """Forces (n, 2) in world axes and torques (n,) about the bodies' inboard points of the loads on
    the links."""
    lay, b = term.layout, term.chain.bodies
    force, torque = jnp.zeros((lay.n, 2), th.dtype), jnp.zeros(lay.n, th.dtype)
    for load in term.drive.loads:
        i = term.robot.link_index(load.link)
        span = next(s for s in lay.spans if s.link == i)
        sl = slice(span.start, span.start + span.count)
        w = load.wrench.evaluate(t, piece_time)[0]
        where, at, angle = station(term, span, load.s, th[sl], b)
        f = jnp.stack([w[0], w[1]])
        c, s = jnp.cos(angle), jnp.sin(angle)
        if load.frame == "section":
            f = jnp.stack([c * w[0] - s * w[1], s * w[0] + c * w[1]])
        force = force.at[sl].add(where[:, None] * f[None])
        torque = torque.at[sl].add(where * (at[:, 0] * f[1] - at[:, 1] * f[0] + w[5]))
    return force, torque


def station(term, span, s, th, bodies) -> tuple[Array, Array, Array]:
    """A station of a link: weights of its bodies, the point seen from their inboard points (world
    axes), and the section's angle.

    Sections turn linearly between the middles of segments, where the segments' angles are
    theirs."""
    from flexjax.mechanism import centreline_pose

    link = term.robot.links[span.link]
    sl = slice(span.start, span.start + span.count)
    if span.rigid:
        pose = centreline_pose(link, s)
        local, where = pose.position[None, :2], jnp.ones(1, th.dtype)
        angle = th[0] + jnp.arctan2(pose.rotation[1, 0], pose.rotation[0, 0])
    else:
        where, along = locate(span.count, s, link.length)
        local = jnp.stack(on_segment(link, span.count, along)[:2], -1)
        ends = jnp.concatenate(
            [th[:1] - bodies.turn_in[sl][:1], th, th[-1:] + bodies.turn_out[sl][-1:]]
        )
        knots = np.concatenate([[0.0], (np.arange(span.count) + 0.5) / span.count, [1.0]])
        angle = jnp.interp(s, jnp.asarray(knots, th.dtype), ends)
    c, sn = jnp.cos(th), jnp.sin(th)
    return (
        where,
        jnp.stack([c * local[:, 0] - sn * local[:, 1], sn * local[:, 0] + c * local[:, 1]], -1),
        angle,
    )
