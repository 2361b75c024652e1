"""Laws of the connections between bodies: springs, motors and rotors in the plane, bending vectors
and joint axes in space."""

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import Scalar
from flexjax.formulation.transfer_matrix._chain import Instant
from flexjax.formulation.transfer_matrix._layout import ConnectionMasks, JointAxes
from flexjax.formulation.transfer_matrix._link import SpatialConnections, before
from flexjax.formulation.transfer_matrix._series import (
    JointHistory,
    JointSprings,
    joint_springs,
    joint_torques,
    own_springs,
    spring_deflection,
    spring_share,
    sprung,
)
from flexjax.mechanism import JointHardware, friction_torque
from flexjax.numerics.linalg import inverse2, inverse3, mm, mtv, mv, transpose
from flexjax.numerics.screw import se3

if TYPE_CHECKING:
    from flexjax.formulation.transfer_matrix._plane import PlanarTerm


def stop_torque(
    hardware: JointHardware, q: Float[Array, " D"], qd: Float[Array, " D"]
) -> tuple[Array, Array, Array]:
    """Torque (D,) of the end stops on the child, and its slopes (taken positive) with respect to
    link-side coordinate and rate."""
    stiffness, damping = hardware.stop_slopes(q)
    return hardware.stop_force(q) - damping * qd, stiffness, damping


class Point(NamedTuple):
    """Rotations of the connections (n,) from rest, their rates, motor angles and rates; deflection
    (D,) of the half segments beside joints where it is a state, zero elsewhere."""

    x: Array
    xd: Array
    motor: Array
    motor_rate: Array
    deflection: Array


class ConnectionLaws(eqx.Module):
    """The connections' part of the elements (n,), and the accelerations of the motors:
    a D + b - c al_parent."""

    stiffness: Array
    torque: Array
    free: Array
    given: Array
    coupling: Array
    inertia: Array
    rotor_torque: Array
    motors: Float[Array, "3 F"]
    first: tuple[int, ...] = eqx.field(static=True)

    def elements(self) -> dict[str, Array]:
        """The fields that an element of the chain has too."""
        names = ("stiffness", "torque", "free", "given", "coupling", "inertia", "rotor_torque")
        return {k: getattr(self, k) for k in names}

    def motor_acceleration(self, rotation: Array, parent: Array) -> Array:
        if not self.first:
            return rotation[:0]
        a, b, c = self.motors
        return a * rotation[np.array(self.first)] + b - c * parent[np.array(self.first)]


def motor_side(
    tables: ConnectionMasks, p: Point, target: Float[Array, "3 D"]
) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Motor-side coordinates and rates; a rigid joint's own."""

    def pick(x, motor, given):
        x = x[tables.first]
        if tables.dof_of_motor.size:
            x = jnp.where(tables.flexible, motor[np.maximum(tables.motor, 0)], x)
        return jnp.where(tables.given, given, x)

    return pick(p.x, p.motor, target[0]), pick(p.xd, p.motor_rate, target[1])


def link_side(
    term: "PlanarTerm", p: Point, target: Float[Array, "3 D"]
) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Joint coordinates and rates on the link's side of joint springs."""
    own, first = term.connections, term.masks.first
    q, qd = motor_side(term.masks, p, target)
    x, xd = p.x[first] - q, p.xd[first] - qd
    law = term.chain.hardware.spring
    if law.linear:
        part = own.joint_share[first]
        d = part * x
    else:
        part = spring_share(law, own.compliance[first], x)
        d = spring_deflection(law, own.compliance[first], x)
    on = sprung(term)
    return q + jnp.where(on, d, 0.0), qd + jnp.where(on, part * xd, 0.0)


def link_acceleration(
    term: "PlanarTerm",
    p: Point,
    target: Float[Array, "3 D"],
    motors: Float[Array, " D"],
    relative: Float[Array, " D"],
) -> Float[Array, " D"]:
    """Accelerations on the link's side, from those of the motors and of the bodies."""
    own, first, on = term.connections, term.masks.first, sprung(term)
    law = term.chain.hardware.spring
    if law.linear:
        return motors + jnp.where(on, own.joint_share[first] * (relative - motors), 0.0)
    q, qd = motor_side(term.masks, p, target)
    x, xd = p.x[first] - q, p.xd[first] - qd
    part, change = jax.jvp(lambda x: spring_share(law, own.compliance[first], x), (x,), (xd,))
    return motors + jnp.where(on, part * (relative - motors) + change * xd, 0.0)


class Springs(NamedTuple):
    """Stretch (n,) of the springs from their targets, its rate, the elastic and the viscous torque
    on the outboard side, and the energy."""

    stretch: Array
    stretch_rate: Array
    elastic: Array
    viscous: Array
    energy: Array


def _spring_targets(tables: ConnectionMasks, p: Point, target: Float[Array, "3 D"]) -> Array:
    """Rotations (3, n) with derivatives from which the springs stretch; motors move their own."""
    if tables.driven_motor.any():
        motor = jnp.stack([p.motor, p.motor_rate, jnp.zeros_like(p.motor)])
        target = jnp.where(tables.driven_motor[None], motor[:, np.maximum(tables.motor, 0)], target)
    return tables.to_connections(target)


def _at_joints(term: "PlanarTerm", own: Float[Array, " D"], other: Float[Array, " n"]) -> Array:
    """``own`` at the connections with a joint spring, ``other`` elsewhere."""
    tables, on = term.masks, sprung(term)
    here = np.isin(np.arange(tables.n), tables.first[on])
    return jnp.where(here, tables.to_connections(own, on), other)


def springs(
    term: "PlanarTerm", p: Point, target: Float[Array, "3 D"], memory: PyTree = ()
) -> Springs:
    connections, first = term.connections, term.masks.first
    value, rate, _ = _spring_targets(term.masks, p, target)
    on = jnp.asarray(term.masks.springs, p.x.dtype)
    x, xd = on * (p.x - value), on * (p.xd - rate)
    elastic, viscous = -connections.spring * x, -connections.damper * xd
    energy = -0.5 * elastic * x
    if own_springs(term):
        own = joint_springs(term, x[first], xd[first], memory)
        pairs = ((own.elastic, elastic), (own.viscous, viscous), (own.energy, energy))
        elastic, viscous, energy = (_at_joints(term, a, b) for a, b in pairs)
    return Springs(x, xd, elastic, viscous, energy)


def _spring_slopes(
    term: "PlanarTerm", star: Point, target: Float[Array, "3 D"], memory: PyTree
) -> tuple[Array, Array, Array]:
    """Slopes K and C (n,) of the springs' torques, taken positive, with respect to the stretch x
    and its rate, and the torque (n,) beyond -K x - C x'."""
    on = jnp.asarray(term.masks.springs, star.x.dtype)
    K, C = term.connections.spring * on, term.connections.damper * on
    beyond = jnp.zeros_like(K)
    if own_springs(term):
        at, first = springs(term, star, target, memory), term.masks.first
        own: JointSprings = joint_springs(term, at.stretch[first], at.stretch_rate[first], memory)
        K = _at_joints(term, own.of_stretch + own.viscous_of_stretch, K)
        C = _at_joints(term, own.of_rate, C)
        known = at.elastic + at.viscous + K * at.stretch + C * at.stretch_rate
        beyond = _at_joints(term, known[first], beyond)
    return K, C, beyond


def output_torque(
    hardware: JointHardware, q: Float[Array, " D"], qd: Float[Array, " D"], memory: PyTree
) -> tuple[Array, Array, Array]:
    """Friction (D,) on the link's side that opposes its rate, and its slopes with respect to
    coordinate and rate."""
    friction = hardware.output
    if friction is None:
        zero = jnp.zeros_like(q)
        return zero, zero, zero
    torque = lambda x, xd: friction_torque(friction, "output", memory, (x, x), (xd, xd))
    held, by = jax.linearize(torque, q, qd)
    one, none = jnp.ones_like(q), jnp.zeros_like(q)
    return held, by(one, none), by(none, one)


def connection_laws(
    term: "PlanarTerm",
    at: Instant,
    star: Point,
    predicted: Point,
    c2: Scalar,
    c1: Scalar,
    history: JointHistory | None = None,
) -> ConnectionLaws:
    """Torques linear in the accelerations: value at ``predicted``, slopes times (c2, c1).

    Nonlinear laws are expanded about ``star``, whose deflection counts unless there is a
    ``history``.
    """
    tables, target = term.masks, at.target
    dtype, first = predicted.x.dtype, tables.first
    value, rate, acc = _spring_targets(tables, predicted, target)
    K, C, beyond = _spring_slopes(term, star, target, at.memory)
    stiffness = K * c2 + C * c1
    torque = beyond - K * (predicted.x - value) - C * (predicted.xd - rate)
    free, given = jnp.asarray(~tables.rigid, dtype), jnp.where(tables.rigid, acc, 0.0)
    idle = jnp.asarray(tables.idle_motor, dtype)
    motors = jnp.stack([idle, target[2], jnp.zeros_like(idle)])
    zero = jnp.zeros_like(torque)
    joints = JointTerms(stiffness[first], torque[first], motors, (zero, zero, zero))
    # Static: free joints without drive, damper or friction need none of it.
    acted = term.drive.acts(term.robot) or any(
        x.damping is not None or x.friction is not None for x in term.robot.tree_joints
    )
    rubs = term.chain.hardware.output is not None
    if (acted and not tables.given.all()) or tables.rotor.any() or tables.stops.any() or rubs:
        joints = _acted(term, at, star, predicted, c2, c1, history, joints)
        here = np.isin(np.arange(tables.n), first)
        stiffness = jnp.where(here, tables.to_connections(joints.stiffness), stiffness)
        torque = jnp.where(here, tables.to_connections(joints.torque), torque)
    return ConnectionLaws(
        stiffness,
        torque,
        free,
        given,
        *joints.rotors,
        joints.motors[:, tables.dof_of_motor],
        tuple(int(first[d]) for d in tables.dof_of_motor),
    )


class JointTerms(NamedTuple):
    """At the joints (D,): stiffness and torque of their connections; accelerations of the motors
    (rows a, b, c); coupling, inertia and torque of the rotors (n,)."""

    stiffness: Array
    torque: Array
    motors: Array
    rotors: tuple[Array, Array, Array]


def _acted(
    term: "PlanarTerm",
    at: Instant,
    star: Point,
    predicted: Point,
    c2: Scalar,
    c1: Scalar,
    history: JointHistory | None,
    joints: JointTerms,
) -> JointTerms:
    """``joints`` with drive, dampers, friction, rotors and end stops."""
    tables, hardware, target = term.masks, term.chain.hardware, at.target
    xs, xsd = motor_side(tables, star, target)
    xp, xpd = motor_side(tables, predicted, target)
    own = joint_torques(term.joint_law(at), xs, xsd, star.deflection, history)
    tau = own.torque - own.of_angle * (xp - xs) - own.of_rate * (xpd - xsd)
    k = own.of_angle * c2 + own.of_rate * c1
    if tables.rotor.any():
        joints = _with_rotors(tables, hardware, target[2], joints, tau, k)
    tau, k = jnp.where(tables.free, tau, 0.0), jnp.where(tables.free, k, 0.0)
    if tables.stops.any() or hardware.output is not None:
        first, side = tables.first, link_side(term, star, target)
        contact, k_s, c_s = stop_torque(hardware, *side)
        held, k_f, c_f = output_torque(hardware, *side, at.memory)
        contact, k_s, c_s = contact - held, k_s + k_f, c_s + c_f
        way, speed = predicted.x[first] - star.x[first], predicted.xd[first] - star.xd[first]
        acting = ~tables.given_joint
        tau = tau + jnp.where(acting, contact - k_s * way - c_s * speed, 0.0)
        k = k + jnp.where(acting, k_s * c2 + c_s * c1, 0.0)
    return joints._replace(stiffness=joints.stiffness + k, torque=joints.torque + tau)


def _with_rotors(
    tables: ConnectionMasks,
    hardware: JointHardware,
    prescribed: Float[Array, " D"],
    joints: JointTerms,
    tau: Float[Array, " D"],
    k: Float[Array, " D"],
) -> JointTerms:
    """``joints`` with the inertia of their rotors. Driven motors are eliminated: torque ``tau`` and
    its slope ``k`` act on them; the others have the ``prescribed`` accelerations."""
    ks, n0, led = joints.stiffness, joints.torque, tables.driven_motor
    J, gJ = hardware.rotor, hardware.gear * hardware.rotor
    whole = jnp.where(led, ks + hardware.gear * gJ + k, 1.0)
    acceleration = jnp.where(led, (tau - n0) / whole, prescribed)
    with_rotor = ks + jnp.where(tables.free, hardware.gear * gJ, 0.0)
    rows = [
        jnp.where(led, ks * gJ / whole, jnp.where(tables.free, gJ, 0.0)),
        jnp.where(led, J - gJ**2 / whole, J),
        jnp.where(led | tables.given, -gJ * acceleration, 0.0),
    ]
    coupling, inertia, torque = tables.to_connections(jnp.stack(rows))
    driven = jnp.stack([ks / whole, acceleration, gJ / whole])
    return JointTerms(
        jnp.where(led, ks * (1 - ks / whole), with_rotor),
        jnp.where(led, n0 + ks * acceleration, n0),
        jnp.where(led[None], driven, joints.motors),
        (coupling, inertia, torque),
    )


class Bending(NamedTuple):
    """State of every connection in space.

    Joint angles and rates (n, 2); bending vector (n, 3) in the axes of the outboard body, and its
    rate. ``of_bending`` (n, 3, 3) and ``of_angle`` (n, 2, 3) map the relative angular velocity in
    world axes to these rates. ``axes`` (n, 3, 2) of the joint are in world axes. ``compliance``
    (n, 2) is that of the half segments about free axes. ``drag`` (n, 2) is the derivative of the
    elastic energy with respect to the joint's angles, as the half segment of the parent rotates
    against that of the child.
    """

    angle: Array
    angle_rate: Array
    bending: Array
    bending_rate: Array
    of_bending: Array
    of_angle: Array
    axes: Array
    stiffness: Array
    damping: Array
    compliance: Array
    compliance_times_lag: Array
    drag: Array

    def moment(self) -> Float[Array, "n 3"]:
        """Elastic and viscous moment in the coordinates of the bending vector."""
        return mv(self.stiffness, self.bending) + mv(self.damping, self.bending_rate)


def _free_angles(
    Q: Float[Array, "3 3"], axes: Float[Array, "2 3"], count: int
) -> Float[Array, "2"]:
    """Angles of a free joint from the rotation Q across it; the rest of Q is bending."""
    if count == 1:
        quat = se3.matrix_to_quat(Q)
        angle = 2 * jnp.arctan2(jnp.sum(quat[1:] * axes[0]), quat[0])
        return jnp.stack([angle, jnp.zeros_like(angle)])
    B = jnp.stack([axes[0], axes[1], jnp.cross(axes[0], axes[1])])
    R = mm(mm(B, Q), B.T)
    return jnp.stack([jnp.arctan2(-R[1, 2], R[2, 2]), jnp.arcsin(jnp.clip(R[0, 2], -1.0, 1.0))])


def bending(
    connections: SpatialConnections,
    tables: JointAxes,
    R: Float[Array, "n 3 3"],
    w: Float[Array, "n 3"],
    target: Float[Array, " D"],
    target_rate: Float[Array, " D"],
) -> Bending:
    """At rotations ``R`` and angular velocities ``w`` of the bodies; ``target`` and its rate are
    those of the joints that a Motion holds."""
    eye = jnp.eye(3, dtype=R.dtype)
    w_rel = w - before(w, jnp.zeros(3, w.dtype))
    Q = mm(transpose(connections.rest), mm(transpose(before(R, eye)), R))
    angle, rate = tables.to_connections(target), tables.to_connections(target_rate)
    for s in tables.free_joints:
        i = s.first
        angle = angle.at[i].set(_free_angles(Q[i], connections.axes[i], s.axes))
    free = jnp.asarray(tables.free_axes, R.dtype)

    def one(Q, R, w_rel, angle, rate, free, own: SpatialConnections):
        axes, joint, joint_tau = own.axes, own.joint_compliance, own.joint_compliance_times_tau
        first, second = (se3.rotation_exp(axes[j] * angle[j]) for j in (0, 1))
        rotation = mm(first, second)
        vector = se3.rotation_log(mm(rotation.T, Q))
        back = se3.so3_dexp_inv(vector)
        in_child = jnp.stack([mv(second.T, axes[0]), axes[1]])
        A = mm(se3.rotation_exp(-vector), in_child.T)  # body axes
        across = mm(own.rest, rotation)

        def of_parent(half):
            return mm(across.T * half[None], across)

        def in_series(halves, joint):
            own = eye * halves[1][None] + of_parent(halves[0])
            return own + joint * axes[0][:, None] * axes[0][None]

        C, E = in_series(own.compliance, joint), axes * free[:, None]
        absent = jnp.eye(2, dtype=free.dtype) * (1 - free)[None]  # keeps the inverses regular
        K, late = inverse3(C), in_series(own.compliance_times_tau, joint_tau)
        KE = mm(K, E.T)
        K = K - mm(KE, mm(inverse2(mm(E, KE) + absent), KE.T))
        taken = mm(back, A)  # what the joint's rates take from the rate of bending
        of_angle = mm(inverse2(mm(E, taken * free[None]) + absent), mm(E, back)) * free[:, None]
        of_vector = back - mm(taken, of_angle)
        of_angle, of_vector = mm(of_angle, R.T), mm(of_vector, R.T)
        moment = mv(K, vector)
        held = rate * (1 - free)
        lag = in_series(own.compliance_times_lag, joint_tau)
        return Bending(
            angle=angle,
            angle_rate=held + mv(of_angle, w_rel),
            bending=vector,
            bending_rate=mv(of_vector, w_rel) - mv(taken, held),
            of_bending=of_vector,
            of_angle=of_angle,
            axes=mm(R, A),
            stiffness=K,
            damping=mm(mm(K, late), K),
            compliance=jnp.sum(E * mm(E, C), axis=1),
            compliance_times_lag=jnp.sum(E * mm(E, lag), axis=1),
            drag=-mv(in_child, jnp.cross(moment, mv(of_parent(own.compliance[0]), moment))),
        )

    return jax.vmap(one)(Q, R, w_rel, angle, rate, free, connections)


def spatial_laws(
    b: Bending,
    laws: Float[Array, "3 n 2"],
    across: tuple[Float[Array, "n 3"], ...],
    c2: Scalar,
    c1: Scalar,
) -> tuple[Float[Array, "n 3 3"], Float[Array, "n 3"]]:
    """Moments on the outboard bodies, in world axes: stiffness and torque of
    torque - stiffness (al_O - al_I).

    ``laws``: torque at the joints, and its slopes (taken positive) with respect to angle and rate.
    Rotation and spin ``across`` the connections are known before the acceleration.
    """
    torque, of_angle, of_rate = laws
    rotation, spin = across
    vector, rate = b.bending + mv(b.of_bending, rotation), b.bending_rate + mv(b.of_bending, spin)
    elastic = mv(b.stiffness, vector) + mv(b.damping, rate)
    known = torque - b.drag - of_angle * mv(b.of_angle, rotation) - of_rate * mv(b.of_angle, spin)
    soft = mm(transpose(b.of_bending), mm(c2 * b.stiffness + c1 * b.damping, b.of_bending))
    held = (c2 * of_angle + c1 * of_rate)[:, :, None] * b.of_angle
    moment = mtv(b.of_angle, known) - mtv(b.of_bending, elastic)
    return soft + mm(transpose(b.of_angle), held), moment
