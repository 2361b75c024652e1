"""A spatial chain as a model: where it starts, and one instant of it in the common terms."""

from typing import TYPE_CHECKING

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._results import Status
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractModel, refuse
from flexjax.formulation.transfer_matrix._chain import Layout, Span
from flexjax.formulation.transfer_matrix._series import bend_of, moved, with_bend
from flexjax.formulation.transfer_matrix._spatial_chain import SpatialChain
from flexjax.formulation.transfer_matrix._spatial_term import SpatialTerm
from flexjax.mechanism import (
    Curve,
    Energy,
    Snapshot,
    Start,
    beam_properties,
    centreline_pose,
    directions,
    untwisted,
)
from flexjax.numerics.linalg import mv, transpose
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._quaternion import unskew
from flexjax.numerics.solver import ChainNewmark
from flexjax.numerics.term import Mechanical, State
from flexjax.robot import Robot

if TYPE_CHECKING:
    from flexjax.formulation.transfer_matrix._formulation import TransferMatrix


class SpatialTransferMatrixModel(AbstractModel):
    robot: Robot
    formulation: "TransferMatrix"
    layout: Layout = eqx.field(static=True)
    chain: SpatialChain

    def term(self, drive: Drive) -> SpatialTerm:
        method = self.formulation
        faults = method.drive_refusals(self.robot, drive)
        refuse(method, f"this drive of the robot {self.robot.name!r}", faults, self.robot, drive)
        linearisation = method.linearisation or "history"
        passes = method.passes or (2 if linearisation == "history" else 1)
        return SpatialTerm(self.robot, self.chain, drive, self.layout, linearisation, passes)

    def initial_state(self, drive: Drive, t0, start: Start) -> State:
        """Links and joints as ``start`` says; prescribed joints as the drive says."""
        x, xd, _ = start.vectors(self.robot)
        value, rate, _ = drive.motion(self.robot, t0, None)
        prescribed = drive.prescribed(self.robot)
        x, xd = jnp.where(prescribed, value, x), jnp.where(prescribed, rate, xd)
        elastic = {span.link for span in self.layout.spans if not span.rigid}
        shapes = start.shapes(self.robot, lambda i: i in elastic, "TransferMatrix")
        R, w, quats, spins = jnp.eye(3, dtype=x.dtype), jnp.zeros(3, x.dtype), [], []
        for span in self.layout.spans:
            R = R @ self.chain.fix[span.first]
            for j in range(self.robot.joints[span.joint].dofs):
                axis = self.chain.axes[span.first, j]
                w = w + R @ axis * xd[span.dof + j]
                R = R @ se3.rotation_exp(axis * x[span.dof + j])
            if span.link not in shapes:
                quats += [se3.matrix_to_quat(R)] * span.count
                spins += [w] * span.count
                continue
            length = self.robot.links[span.link].length
            bend, bend_rate = shapes[span.link].push(
                lambda curve, span=span, length=length: _segments(curve, span.count, length)
            )
            spin = jax.vmap(lambda B, rate: unskew(rate @ B.T))(bend, bend_rate)
            quats += [jax.vmap(lambda B, R=R: se3.matrix_to_quat(R @ B))(bend[:-1]).reshape(-1)]
            spins += [(w[None] + spin[:-1] @ R.T).reshape(-1)]
            w, R = w + R @ spin[-1], R @ bend[-1]
        term, dtype = self.term(drive), self.robot.gravity.dtype
        mech = with_bend(term.series, Mechanical(jnp.concatenate(quats), jnp.concatenate(spins)))
        if shapes and term.series.any():
            # The joint stands where the start says; the bodies beside it have turned further.
            bend = x - term.motor_coordinates(State.fresh(mech, dtype))[0]
            bend = bend - 2 * jnp.pi * jnp.round(bend / (2 * jnp.pi))
            mech = with_bend(term.series, mech, bend)
        return State.fresh(mech, dtype, drive.initial_memory(self.robot))

    def observe(self, t, y: State, drive: Drive, s, piece_time=None) -> Snapshot:
        return snapshot(self.term(drive), t, y, s, piece_time)

    def energy(self, t, y: State, drive: Drive, piece_time=None) -> Energy:
        return Energy(*self.term(drive).energies(t, y, piece_time), y.dissipated, y.work)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return ChainNewmark(self.formulation.beta, self.formulation.gamma)

    def failure(self, t, y: State, drive: Drive) -> tuple[Array, Array]:
        return jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)


def _segments(curve: Curve, count: int, length) -> Float[Array, "count+1 3 3"]:
    """Rotations of the segments of a deflected link, which end on the curve, and of its tip
    section."""
    ends = curve(np.arange(count + 1) / count)
    rise = jnp.concatenate([jnp.diff(ends[0], axis=1) * count, ends[1, :, -1:]], axis=1)
    return untwisted(directions(rise / length))


def snapshot(term: SpatialTerm, t, y: State, s: Float[Array, " S"], piece_time) -> Snapshot:
    lay, robot, sites = term.layout, term.robot, term.sites
    R, w, e, f = term.solve(t, y, piece_time)
    b = term.bends(t, piece_time, R, w)
    effort, own = term.efforts(t, piece_time, y.memory, b, bend_of(term.series, y.mech))
    position, velocity = term.points(y.mech)
    acc, alpha = e[:, :3] + term.chain.gravity[None], e[:, 3:]
    # Moment on each body from its parent without that of dampers, in the body's axes; behind the
    # tip there is none.
    pressed, _, damped = term.stops(b)
    pressed = pressed + damped * sites.gather(b.angle_rate)
    torque = sites.spread(jnp.where(sites.given, 0.0, own.torque + pressed))
    moment = mv(transpose(b.of_angle), torque) - mv(transpose(b.of_bend), mv(b.stiffness, b.bend))
    fields = (R, position[:-1], velocity[:-1], acc, w, alpha, mv(transpose(R), moment))
    by_link = {span.link: _along(term, span, fields, s) for span in lay.spans}
    rows = [by_link[i] for i in range(len(robot.links))]
    frames, twist, rate, deflection, strain, root = (
        jnp.stack([r[k] for r in rows]) for k in range(6)
    )
    value, _, _ = term.drive.motion(robot, t, piece_time)
    (q, qd), (_, qdd) = _link_side(term, t, piece_time, y.mech, alpha)
    # Between a joint that is free to turn and the bodies beside it stand the half segments.
    beyond = jnp.where(sites.given, 0.0, sites.gather(b.give) * own.torque)
    beyond = jnp.where(term.series, own.bend, beyond)
    order = sorted(lay.spans, key=lambda span: span.joint)
    first, child = np.array([x.first for x in order]), np.array([x.link for x in order])
    inward = transpose(root[child])
    reaction = jnp.concatenate([mv(inward, f[first, :3]), mv(inward, f[first, 3:])], axis=1)
    motor = jnp.where(sites.given, value, sites.gather(b.angle) + beyond)
    return Snapshot(
        q=q + beyond,
        qd=qd + own.bend_rate,
        qdd=qdd,
        motor=motor,
        effort=effort,
        frames=frames,
        velocity=twist,
        acceleration=rate,
        deflection=deflection,
        strain=strain,
        reaction=reaction,
    )


def _link_side(term: SpatialTerm, t, piece_time, mech: Mechanical, alpha):
    """Joint coordinates and rates (D,) on the link's side of joint springs, and their derivatives
    along the motion."""
    chain, sites = term.chain, term.sites

    def spring(stiffness, bend):
        turn = chain.joint_give * jnp.sum(mv(stiffness, bend) * chain.axes[:, 0], axis=1)
        return jnp.stack([turn, jnp.zeros_like(turn)], -1)

    def coordinates(t, mech):
        b = term.bends(t, piece_time, term.rotations(mech.q), mech.v.reshape(-1, 3))
        angle, rate = (
            b.angle + spring(b.stiffness, b.bend),
            b.angle_rate + spring(b.stiffness, b.bend_rate),
        )
        return sites.gather(angle), sites.gather(rate)

    tangent = term.ambient(mech, moved(mech, mech.v, alpha.reshape(-1)))
    return jax.jvp(coordinates, (t, mech), (jnp.ones_like(t), tangent))


def _along(term: SpatialTerm, span: Span, fields, s):
    """Stations of one link: frames, twists, accelerations, deflections, strains, and the rotation
    of its root section.

    Sections turn evenly between the middles of segments, where the segments' axes are theirs; the
    ends by their half springs."""
    chain, link = term.chain, term.robot.links[span.link]
    first, last = span.start, span.start + span.count - 1
    R, x, v, a, w, alpha, moment = (z[first : last + 1] for z in fields)
    zero = jnp.zeros((s.shape[0], 3), s.dtype)
    if span.rigid:
        pose = jax.vmap(lambda u: centreline_pose(link, u))(s)
        k, local, root = np.zeros(s.shape[0], int), pose.position, R[0]
        section = jnp.matmul(R[:1], pose.rotation)
        spin, turn, bent, shape = w[k], alpha[k], zero, None
    else:
        u = s * span.count
        k = jnp.clip(jnp.floor(u), 0, span.count - 1).astype(int)
        part = (u - k)[:, None]
        ahead = jnp.asarray([[1.0, 0.0, 0.0]], s.dtype)
        local = part * ahead * chain.reach[first, 0]
        after = fields[6][last + 1 : last + 2]
        after = jnp.zeros((1, 3), s.dtype) if after.shape[0] == 0 else after
        over = fields[0][last].T @ (fields[0][min(last + 1, term.layout.n - 1)] @ after[0])
        nodes = jnp.concatenate([moment, over[None]])
        root = R[0] @ se3.rotation_exp(moment[0] * chain.give_in[first])
        tip = R[-1] @ se3.rotation_exp(-over * chain.give_out[last])
        knots = jnp.asarray(
            np.concatenate([[0.0], np.arange(span.count) + 0.5, [span.count]]), s.dtype
        )
        ends = jnp.concatenate([root[None], R, tip[None]])
        steps = jax.vmap(se3.rotation_log)(jnp.matmul(transpose(ends[:-1]), ends[1:]))
        j = jnp.clip(jnp.floor(u + 0.5), 0, span.count).astype(int)
        share = ((u - knots[j]) / (knots[j + 1] - knots[j]))[:, None]
        section = jnp.matmul(ends[j], jax.vmap(se3.rotation_exp)(share * steps[j]))
        spin, turn = (
            (1 - share) * z[jnp.maximum(j - 1, 0)] + share * z[jnp.minimum(j, span.count - 1)]
            for z in (w, alpha)
        )
        props = beam_properties(link, s)
        bent = -((1 - part) * nodes[k] + part * nodes[k + 1]) / jnp.stack(
            [props.GJ, props.EIy, props.EIz], -1
        )
        shape = s[:, None] * ahead * link.length
    point = mv(R[k], local)
    r = x[k] + point
    inner = transpose(section)
    vel = mv(inner, v[k] + jnp.cross(w[k], point))
    acc = mv(inner, a[k] + jnp.cross(alpha[k], point) + jnp.cross(w[k], jnp.cross(w[k], point)))
    twist = jnp.concatenate([vel, mv(inner, spin)], axis=1)
    rate = jnp.concatenate([acc, mv(inner, turn)], axis=1)
    frames = jnp.concatenate([r, jax.vmap(se3.matrix_to_quat)(section)], axis=1)
    deflection = (
        zero
        if shape is None
        else mv(jnp.broadcast_to(root.T[None], section.shape), r - x[:1]) - shape
    )
    return frames, twist, rate, deflection, jnp.concatenate([zero, bent], axis=1), root
