"""Chains in space: quaternions of the bodies, and the sweep with 6 x 6 matrices.

The unknowns at a cut are thirteen: [a, alpha, force, moment, 1], in world axes.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.formulation.transfer_matrix._chain import (
    AbstractTransferTerm,
    Efforts,
    Instant,
    Port,
    Rates,
)
from flexjax.formulation.transfer_matrix._connections import (
    Bending,
    bending,
    spatial_laws,
    stop_torque,
)
from flexjax.formulation.transfer_matrix._layout import JointAxes, joint_tables
from flexjax.formulation.transfer_matrix._link import Chain, SpatialConnections, before, rise
from flexjax.formulation.transfer_matrix._observe import Readings
from flexjax.formulation.transfer_matrix._series import (
    JointHistory,
    JointLaw,
    deflection_of,
    joint_torques,
    moved,
    with_deflection,
)
from flexjax.mechanism import Start, directions, untwisted
from flexjax.numerics.linalg import inverse3, mm, mtv, mv, transpose
from flexjax.numerics.screw import Space, se3
from flexjax.numerics.screw._quaternion import unskew
from flexjax.numerics.term import Mechanical, State

_skew = jax.vmap(se3.skew)


def _centrifugal(point: Float[Array, "n 3"], w: Float[Array, "n 3"]) -> tuple[Array, Array]:
    """Derivative (n, 3, 3) of w x (w x point) with respect to w, and the value."""
    velocity = jnp.cross(w, point)
    return -(_skew(velocity) + mm(_skew(w), _skew(point))), jnp.cross(w, velocity)


def spatial_sweep(
    chain: Chain,
    R: Float[Array, "n 3 3"],
    w: Float[Array, "n 3"],
    spin: Float[Array, "n 3"] | None,
    c1: Scalar,
    loads: tuple[Float[Array, "n 3"], Float[Array, "n 3"]],
    stiffness: Float[Array, "n 3 3"],
    torque: Float[Array, "n 3"],
) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
    """The Riccati sweep with 6 x 6 matrices: f = S e + p from the tip, e from the root.

    The angular velocity of the solution is w + ``spin`` + c1 alpha in the gyroscopic and
    centrifugal terms, or w itself if ``spin`` is None.
    """
    b, n = chain.bodies, R.shape[0]
    reach, moment = mv(R, b.reach), mv(R, b.moment)
    inertia = mm(mm(R, b.inertia), transpose(R))
    momentum = mv(inertia, w)
    lever_slope, shift = _centrifugal(reach, w)
    force_slope, force = _centrifugal(moment, w)
    gyro_slope, gyro = mm(_skew(w), inertia) - _skew(momentum), jnp.cross(w, momentum)
    arms, masses, spins = -_skew(reach), -_skew(moment), inertia
    if spin is not None:
        shift, force = shift + mv(lever_slope, spin), force + mv(force_slope, spin)
        gyro = gyro + mv(gyro_slope, spin)
        arms, masses = arms + c1 * lever_slope, masses + c1 * force_slope
        spins = spins + c1 * gyro_slope
    force, gyro = force - loads[0], gyro - loads[1]
    eye = jnp.broadcast_to(jnp.eye(3, dtype=R.dtype)[None], (n, 3, 3))
    zero, column = jnp.zeros((n, 3, 3), R.dtype), jnp.zeros((n, 3, 1), R.dtype)
    right = _blocks([[eye, arms, shift[:, :, None]], [zero, eye, column]])
    left = _blocks([[eye, zero], [_skew(reach), eye]])
    mass = b.mass[:, None, None] * eye
    body = _blocks([[mass, masses, force[:, :, None]], [_skew(moment), spins, gyro[:, :, None]]])
    last = jnp.zeros((1, 7), R.dtype).at[0, 6].set(1.0)

    def inwards(Z, x):
        right, left, body, stiffness, torque = x
        X = mm(left, mm(Z, jnp.concatenate([right, last]))) + body
        D = mm(inverse3(stiffness + X[3:, 3:6]), torque[:, None] * last - X[3:])
        return X + mm(X[:, 3:6], D), (X, D)

    def outwards(e, x):
        right, D = x
        behind = e + jnp.concatenate([jnp.zeros(3, e.dtype), mv(D[:, :6], e) + D[:, 6]])
        return mv(right[:, :6], behind) + right[:, 6], behind

    elements = (right, left, body, stiffness, torque)
    _, (X, D) = lax.scan(inwards, jnp.zeros((6, 7), R.dtype), elements, reverse=True)
    root = jnp.concatenate([-chain.gravity, jnp.zeros(3, R.dtype)])
    _, e = lax.scan(outwards, root, (right, D))
    return e, mv(X[:, :, :6], e) + X[:, :, 6]


def _blocks(rows: list[list[Array]]) -> Array:
    return jnp.concatenate([jnp.concatenate(r, axis=2) for r in rows], axis=1)


class SpatialTerm(AbstractTransferTerm):
    """q: quaternions of the bodies; v: their angular velocities in world axes.

    Rotations are moved by rotation vectors in world axes.
    """

    space: ClassVar = Space
    unroll: ClassVar = False

    # --- coordinates
    @property
    def connections(self) -> SpatialConnections:
        assert isinstance(self.chain.connections, SpatialConnections)
        return self.chain.connections

    def bodies(self, mech: Mechanical) -> tuple[Array, Array]:
        R = jax.vmap(se3.quat_to_matrix)(mech.q.reshape(-1, 4))
        return R, mech.v.reshape(-1, 3)

    def moved(self, q: Array, rotation: Array) -> Array:
        """``q`` moved by rotation vectors in world axes."""
        step = jax.vmap(se3.quat_exp)(rotation.reshape(-1, 3))
        quat = jax.vmap(se3.quat_multiply)(step, q.reshape(-1, 4))
        return (quat / jnp.sqrt(jnp.sum(quat**2, axis=1))[:, None]).reshape(-1)

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        deflection = deflection_of(self.series, mech) + deflection_of(self.series, dx)
        new = Mechanical(self.moved(mech.q, dx.q), mech.v + dx.v)
        return with_deflection(self.series, new, deflection)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        real = jnp.zeros((self.layout.n, 1), dx.q.dtype)
        spin = jnp.concatenate([real, dx.q.reshape(-1, 3)], axis=1)
        quat = 0.5 * jax.vmap(se3.quat_multiply)(spin, mech.q.reshape(-1, 4)).reshape(-1)
        return moved(dx, quat, dx.v)

    def placed(self, at: Instant, mech: Mechanical, rotation: Rates, rate: Rates) -> Mechanical:
        return moved(mech, self.moved(mech.q, rotation), rate)

    def bending(self, at: Instant, R: Array, w: Array) -> Bending:
        return bending(self.connections, self.tables, R, w, *at.target[:2])

    def _free(self, y: State) -> tuple[Bending, JointAxes]:
        """Connections with every joint free: what the state alone gives."""
        tables = joint_tables(self.robot, self.layout, None)
        zero = jnp.zeros(self.layout.dofs, y.mech.v.dtype)
        return bending(self.connections, tables, *self.bodies(y.mech), zero, zero), tables

    def motor_coordinates(self, y: State) -> tuple[Array, Array]:
        b, tables = self._free(y)
        q = tables.from_connections(b.angle) + deflection_of(self.series, y.mech)
        return q, tables.from_connections(b.angle_rate)

    def initial(self, at: Instant, start: Start) -> Mechanical:
        """Links and joints as in ``start``; prescribed joints as in the drive."""
        x, xd, _, _ = self.start_coordinates(at, start)
        shapes, connections = self.shapes(start), self.connections
        R, w, quats, spins = jnp.eye(3, dtype=x.dtype), jnp.zeros(3, x.dtype), [], []
        for s in self.layout.spans:
            R = R @ connections.rest[s.first]
            for j in range(s.axes):
                axis = connections.axes[s.first, j]
                w = w + R @ axis * xd[s.dof + j]
                R = R @ se3.rotation_exp(axis * x[s.dof + j])
            if s.link not in shapes:
                quats += [se3.matrix_to_quat(R)] * s.count
                spins += [w] * s.count
                continue
            length = self.robot.links[s.link].length
            shape, shape_rate = shapes[s.link].push(
                lambda curve, s=s, length=length: untwisted(
                    directions(rise(curve, s.count, length))
                )
            )
            spin = jax.vmap(lambda B, rate: unskew(rate @ B.T))(shape, shape_rate)
            quats += [jax.vmap(lambda B, R=R: se3.matrix_to_quat(R @ B))(shape[:-1]).reshape(-1)]
            spins += [(w[None] + spin[:-1] @ R.T).reshape(-1)]
            w, R = w + R @ spin[-1], R @ shape[-1]
        mech, deflection = Mechanical(jnp.concatenate(quats), jnp.concatenate(spins)), None
        if shapes and self.series.any():
            # The joint is where the start places it; the bodies beside it have rotated further.
            b, tables = self._free(State.fresh(mech, x.dtype))
            deflection = x - tables.from_connections(b.angle)
            deflection = deflection - 2 * jnp.pi * jnp.round(deflection / (2 * jnp.pi))
        return with_deflection(self.series, mech, deflection)

    # --- dynamics
    def joint_law(self, at: Instant, b: Bending) -> JointLaw:
        halves = (self.tables.from_connections(x) for x in (b.compliance, b.compliance_times_lag))
        return self.law(at, *halves)

    def _angles(self, b: Bending) -> tuple[Array, Array]:
        """Joint coordinates and rates (D,)."""
        return self.tables.from_connections(b.angle), self.tables.from_connections(b.angle_rate)

    def joint_state(self, at: Instant, mech: Mechanical) -> tuple[JointLaw, Array, Array]:
        b = self.bending(at, *self.bodies(mech))
        return self.joint_law(at, b), *self._angles(b)

    def stops(self, b: Bending) -> tuple[Array, Array, Array]:
        """Torque (D,) of the end stops, its slopes (taken positive) with respect to angle and rate;
        zero where a Motion holds."""
        torque, of_angle, of_rate = (
            jnp.where(self.tables.given, 0.0, z)
            for z in stop_torque(self.chain.hardware, *self._angles(b))
        )
        return torque, of_angle, of_rate

    def swept(
        self,
        at: Instant,
        mech: Mechanical,
        rotation: Float[Array, "n 3"],
        spin: Float[Array, "n 3"],
        c2: Scalar,
        c1: Scalar,
        history: JointHistory | None = None,
    ) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
        """Accelerations of the inboard points less gravity, and of the bodies; forces and moments
        on the bodies there.

        The solution is ``rotation`` + c2 alpha and ``spin`` + c1 alpha from ``mech``, whose
        deflection counts unless there is a ``history``.
        """
        R, w = self.bodies(mech)
        b, tables = self.bending(at, R, w), self.tables
        law, deflection = self.joint_law(at, b), deflection_of(self.series, mech)
        own = joint_torques(law, *self._angles(b), deflection, history)
        contact, k_stop, c_stop = self.stops(b)
        laws = tables.to_connections(
            jnp.stack([own.torque + contact, own.of_angle + k_stop, own.of_rate + c_stop])
        )
        across = (x - before(x, jnp.zeros(3, x.dtype)) for x in (rotation, spin))
        stiffness, torque = spatial_laws(b, laws, tuple(across), c2, c1)
        loads = self.load_wrenches(at, R)
        implicit = self.linearisation == "history"
        with jax.named_scope("transfer_matrix_spatial"):
            return spatial_sweep(
                self.chain, R, w, spin if implicit else None, c1, loads, stiffness, torque
            )

    def implicit(
        self,
        at: Instant,
        mech: Mechanical,
        guess: tuple[Rates, Rates],
        predicted: tuple[Rates, Rates],
        c2: Scalar,
        c1: Scalar,
        history: JointHistory | None,
    ) -> Rates:
        rotation, spin = ((p - g).reshape(-1, 3) for p, g in zip(predicted, guess, strict=True))
        star = self.placed(at, mech, *guess)
        return self.swept(at, star, rotation, spin, c2, c1, history)[0][:, 3:].reshape(-1)

    def solve(
        self, at: Instant, mech: Mechanical
    ) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
        """As `swept`, of a state."""
        zero, none = jnp.zeros((), mech.v.dtype), jnp.zeros((self.layout.n, 3), mech.v.dtype)
        return self.swept(at, mech, none, none, zero, zero)

    def accelerate(self, at: Instant, mech: Mechanical) -> tuple[Mechanical, Rates]:
        return mech, self.solve(at, mech)[0][:, 3:].reshape(-1)

    def relative_rate(
        self, t: ScalarLike, y: State, piece_time: PieceTime, about: State
    ) -> Mechanical:
        """Rotations are absolute: at rest they follow the joints before them, and a further
        velocity rotates with its body."""

        def steady(t: ScalarLike, q: Array) -> Array:
            value, rate, _ = self.drive.motion(self.robot, t, piece_time)
            R, w = self.bodies(moved(about.mech, q, jnp.zeros_like(about.mech.v)))
            b = bending(self.connections, self.tables, R, w, value, rate)
            return jnp.cumsum(mv(b.axes, self.tables.to_connections(rate)), axis=0)

        q = about.mech.q
        w = steady(t, q)
        tangent = self.ambient(about.mech, moved(about.mech, w.reshape(-1), about.mech.v)).q
        _, change = jax.jvp(steady, (t, q), (jnp.ones_like(t), tangent))
        beside = jnp.cross(w, y.mech.v.reshape(-1, 3) - w)
        rate = self.rate(t, y, piece_time)
        return moved(rate, rate.q - w.reshape(-1), rate.v - (change + beside).reshape(-1))

    # --- torques and energies
    def efforts(
        self,
        at: Instant,
        mech: Mechanical,
        a: Rates,
        history: JointHistory | None = None,
        forces: bool = False,
    ) -> Efforts:
        tables, b = self.tables, self.bending(at, *self.bodies(mech))
        law, (x, xd) = self.joint_law(at, b), self._angles(b)
        own = joint_torques(law, x, xd, deflection_of(self.series, mech), history)
        held = mtv(b.axes, -mtv(b.of_bending, b.moment())) + b.drag
        held = tables.from_connections(held) + own.resistance
        effort = jnp.where(tables.given, held, own.effort)
        stops = (self.stops(b)[2] * xd, x, xd) if tables.stops.any() else None
        # Between a joint that is free to rotate and the bodies beside it are the half segments.
        deflection = jnp.where(tables.given, 0.0, law.compliance * own.torque)
        deflection = jnp.where(self.series, own.deflection, deflection)
        damping = mv(b.damping, b.bending_rate)
        viscous = damping.reshape(-1), b.bending.reshape(-1), b.bending_rate.reshape(-1)
        return Efforts(effort, x, xd, deflection, own, viscous, stops, None)

    def torque_port(self, mech: Mechanical, torque: Array) -> Port:
        # Torques act along quaternions: M . w = 2 ((0, M) q) . q', smooth for any rotation.
        force = 4 * self.ambient(mech, moved(mech, torque.reshape(-1), mech.v)).q
        return force, mech.q, self.ambient(mech, moved(mech, mech.v, mech.v)).q

    def stored(self, at: Instant, mech: Mechanical) -> tuple[ScalarLike, Scalar]:
        b = self.bending(at, *self.bodies(mech))
        elastic = 0.5 * jnp.sum(b.bending * mv(b.stiffness, b.bending))
        contact = self.chain.hardware.stop_energy(self._angles(b)[0])
        return 0.0, elastic + jnp.sum(jnp.where(self.tables.given, 0.0, contact))

    def readings(self, at: Instant, mech: Mechanical) -> Readings:
        """What a snapshot reports."""
        tables, (e, f) = self.tables, self.solve(at, mech)
        alpha = e[:, 3:]
        b = self.bending(at, *self.bodies(mech))
        found = self.efforts(at, mech, alpha.reshape(-1))
        contact, _, damping = self.stops(b)
        torque = found.joints.torque + contact + damping * found.xd
        torque = tables.to_connections(jnp.where(tables.given, 0.0, torque))
        elastic = mtv(b.of_angle, torque) - mtv(b.of_bending, mv(b.stiffness, b.bending))
        (q, qd), (_, qdd) = self._link_side(at, mech, alpha)
        return Readings(
            mech=mech,
            q=q + found.deflection,
            qd=qd + found.joints.deflection_rate,
            qdd=qdd,
            motor=jnp.where(tables.given, at.target[0], found.x + found.deflection),
            effort=found.effort,
            acceleration=e[:, :3] + self.chain.gravity[None],
            alpha=alpha,
            force=f[:, :3],
            torque=f[:, 3:],
            elastic=elastic,
        )

    def _link_side(
        self, at: Instant, mech: Mechanical, alpha: Float[Array, "n 3"]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Joint coordinates and rates (D,) on the link's side of joint springs, and their
        derivatives along the motion."""
        connections, tables = self.connections, self.tables

        def spring(stiffness: Array, vector: Array) -> Array:
            torque = jnp.sum(mv(stiffness, vector) * connections.axes[:, 0], axis=1)
            angle = connections.joint_compliance * torque
            return jnp.stack([angle, jnp.zeros_like(angle)], -1)

        def coordinates(t: ScalarLike, mech: Mechanical) -> tuple[Array, Array]:
            b = self.bending(self.instant(t, at.piece_time), *self.bodies(mech))
            angle = b.angle + spring(b.stiffness, b.bending)
            rate = b.angle_rate + spring(b.stiffness, b.bending_rate)
            return tables.from_connections(angle), tables.from_connections(rate)

        tangent = self.ambient(mech, moved(mech, mech.v, alpha.reshape(-1)))
        t = jnp.asarray(at.t, mech.v.dtype)
        return jax.jvp(coordinates, (t, mech), (jnp.ones_like(t), tangent))
