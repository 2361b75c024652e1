"""Forces on nodes (weight, loads, drag) and in joints (springs, stops, motors, dampers,
friction)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import space_of
from flexjax.formulation.port_hamiltonian._inertia import curved
from flexjax.formulation.port_hamiltonian._lanes import (
    dipole_torque,
    eye_like,
    lanes,
    mm,
    mv,
    rotate_by,
    sinc,
    transpose,
)
from flexjax.formulation.port_hamiltonian._parameters import _station_weights
from flexjax.mechanism import centreline_pose


class NodeForces(eqx.Module):
    """Distributed port of the links in one stage, components first (see _lanes). ``weight`` and
    ``load`` are forces in world axes; dipoles sum lever times force; the rest is in body axes.
    None: nothing of the kind. Twists V are (d, L, K), rotations (lin, lin, L, K), h has the axes of
    a vector."""

    weight: Float[Array, "lin L K *b"]
    weight_dipole: Float[Array, "lin lin L K *b"] | None
    load: Float[Array, "lin L K *b"] | None
    load_dipole: Float[Array, "lin lin L K *b"] | None
    moment: Float[Array, "a L K *b"] | None
    body: Float[Array, "d L K *b"] | None
    drag: Float[Array, "d L K *b"] | None
    relative: (
        Float[Array, "d d L K *b"] | None
    )  # base twist -> twist of the node if the link were rigid
    relative_damping: Float[Array, "d d L K *b"] | None

    def _turned(self, R, force, dipole, moment, h, w):
        f = mv(transpose(R), force)
        m = jnp.zeros_like(w)
        if dipole is not None:
            m = m + sinc(h * w) * dipole_torque(mm(dipole, R))
        if moment is not None:
            m = m + (moment if R.shape[0] == 2 else mv(transpose(R), moment))
        return jnp.concatenate([f, m])

    def wrench(self, start, h, V):
        """(d, L, K) at the rotations that ``start`` reaches by h times the twists."""
        return self._wrench(start, h, V[start.shape[0] :])

    def _wrench(self, start, h, w):
        R = rotate_by(start, h * w)
        force, dipole = self.weight, self.weight_dipole
        if self.load is not None:
            force = force + self.load
        if self.load_dipole is not None:
            dipole = self.load_dipole if dipole is None else dipole + self.load_dipole
        out = self._turned(R, force, dipole, self.moment, h, w)
        return out if self.body is None else out + self.body

    def power(self, R, h, V):
        """Power of the loads at the rotations R of the stage."""
        if self.load is None and self.body is None:
            return jnp.zeros((), V.dtype)
        w = V[R.shape[0] :]
        out = self._turned(
            R,
            jnp.zeros_like(V[: R.shape[0]]) if self.load is None else self.load,
            self.load_dipole,
            self.moment,
            h,
            w,
        )
        out = out if self.body is None else out + self.body
        return jnp.sum(out * V)

    def damping(self, V):
        """(power dissipated, wrenches that the nodes give away)."""
        out, loss = jnp.zeros_like(V), jnp.zeros(V.shape[3:], V.dtype)
        if self.drag is not None:
            out = out + self.drag * V
            loss = loss + jnp.sum(self.drag * V * V, axis=(0, 1, 2))
        if self.relative is not None:
            moving = V - mv(self.relative, V[:, :, :1])
            f = mv(self.relative_damping, moving)
            out = (out + f).at[:, :, 0].add(-jnp.sum(mv(transpose(self.relative), f), axis=2))
            loss = loss + jnp.sum(f * moving, axis=(0, 1, 2))
        return loss, out

    def tangent(self, start, h, V):
        """(d, d, L, K) derivative of wrench less damping by the node's own twist."""
        lin = start.shape[0]
        w = V[lin:]
        unit = np.eye(w.shape[0])

        def column(e):
            along = jnp.broadcast_to(
                jnp.asarray(e, w.dtype).reshape(-1, *(1,) * (w.ndim - 1)), w.shape
            )
            return jax.jvp(lambda w: self._wrench(start, h, w), (w,), (along,))[1]

        turning = jnp.stack([column(e) for e in unit], axis=1)
        out = jnp.concatenate(
            [jnp.zeros((V.shape[0], lin, *V.shape[1:]), V.dtype), turning], axis=1
        )
        if self.drag is not None:
            out = out - eye_like(out) * self.drag[None]
        if self.relative_damping is not None:
            # The pull on the base node by all others is left out: it spoils the band, and h times
            # the damping is small.
            out = out - self.relative_damping
        return out


def node_forces(arm, t, mech, R, piece_time) -> NodeForces:
    num, st = arm.num, arm.st
    weight = num.weight[..., None] * num.gravity[None, None]
    dipole = (
        None if num.moment is None else num.moment[..., :, None] * num.gravity[None, None, None]
    )
    loads = _loads(arm, t, piece_time) if arm.drive.loads else (None, None, None, None)
    relative = damping = None
    if num.deformation_damping is not None:
        space = space_of(st.dim)

        def seen(Rk, xk, R0, x0):
            return space.adjoint_inverse(
                space.compose(space.inverse(space.Pose(R0, x0)), space.Pose(Rk, xk))
            )

        relative = jax.vmap(lambda Rl, xl: jax.vmap(lambda a, b: seen(a, b, Rl[0], xl[0]))(Rl, xl))(
            R, mech.x
        )
        damping = num.deformation_damping[:, None, None, None] * num.mass
        damping = jnp.where(np.array(st.rigid)[:, None, None, None], 0.0, damping)
    force, load_dipole, moment, body = loads
    maybe = lambda x, axes: None if x is None else lanes(x, axes)
    return NodeForces(
        weight=lanes(weight),
        weight_dipole=maybe(dipole, 2),
        load=maybe(force, 1),
        load_dipole=maybe(load_dipole, 2),
        moment=maybe(moment, 1),
        body=maybe(body, 1),
        drag=maybe(num.drag, 1),
        relative=maybe(relative, 2),
        relative_damping=maybe(damping, 2),
    )


def _loads(arm, t, piece_time):
    """(forces, dipoles, moments in world axes, wrenches in body axes) of the drive's loads on the
    nodes."""
    st, robot, lin, dtype = arm.st, arm.robot, arm.st.lin, arm.num.gravity.dtype
    K, ang = st.elements + 1, st.dim - st.lin
    force, moment = jnp.zeros((st.links, K, lin), dtype), jnp.zeros((st.links, K, ang), dtype)
    body, dipole = (
        jnp.zeros((st.links, K, st.dim), dtype),
        jnp.zeros((st.links, K, lin, lin), dtype),
    )
    for load in arm.drive.loads:
        i = robot.link_index(load.link)
        w = jnp.asarray(load.wrench.evaluate(t, piece_time)[0], dtype)
        f, m = (w[:2], w[5:]) if st.planar else (w[:3], w[3:])
        if st.rigid[i]:
            pose = centreline_pose(robot.links[i], load.s)
            lever = pose.position[:lin]
            if load.frame == "world":
                force, moment = force.at[i, 0].add(f), moment.at[i, 0].add(m)
                dipole = dipole.at[i, 0].add(lever[:, None] * f[None, :])
            else:
                space = space_of(st.dim)
                section = space.Pose(pose.rotation[:lin, :lin], lever)
                body = body.at[i, 0].add(space.transport_wrench(section, jnp.concatenate([f, m])))
            continue
        share = _station_weights(load.s, st.elements)[:, None]
        link = robot.links[i]
        arc = _on_the_arc(link, load.s, share, lin) if curved(link) else None
        if load.frame == "world":
            force, moment = force.at[i].add(share * f[None]), moment.at[i].add(share * m[None])
            if arc is not None:
                dipole = dipole.at[i].add(share[..., None] * arc[1][:, :, None] * f[None, None])
        else:
            wrench = jnp.concatenate([f, m])
            carried = wrench[None] if arc is None else _carried(space_of(st.dim), *arc, wrench)
            body = body.at[i].add(share * carried)
    follower = any(load.frame == "section" for load in arm.drive.loads)
    return (
        force,
        dipole if any(st.rigid) or any(curved(link) for link in robot.links) else None,
        moment,
        body if follower else None,
    )


def _carried(space, turn, lever, wrench):
    """One wrench as each node feels it, from which the section is seen by (turn, lever)."""
    return jax.vmap(lambda R, c: space.transport_wrench(space.Pose(R, c), wrench))(turn, lever)


def _on_the_arc(link, s, share, lin: int):
    """(rotations (K, D, D), ways (K, D)) from the axes of every node to the section at ``s``: from
    that point of the chord which the nodes' shares make."""
    node = jax.vmap(lambda k: centreline_pose(link, k / (share.shape[0] - 1)))(
        jnp.arange(share.shape[0], dtype=share.dtype)
    )
    here = centreline_pose(link, s)
    off = here.position - jnp.sum(share * node.position, axis=0)
    back = jnp.swapaxes(node.rotation, 1, 2)
    return jnp.einsum("kij,jl->kil", back, here.rotation)[:, :lin, :lin], jnp.einsum(
        "kij,j->ki", back, off
    )[:, :lin]


class JointForces(eqx.Module):
    """Generalised forces (nv,): of springs and stops; of motors; of dampers and friction."""

    elastic: Float[Array, " nv"]
    driven: Float[Array, " nv"]
    damped: Float[Array, " nv"]

    @property
    def total(self):
        return self.elastic + self.driven + self.damped


def joint_forces(arm, t, q, v, piece_time, memory) -> JointForces:
    num, st, D = arm.num, arm.st, arm.st.total_dofs
    x, xd = arm.coordinates(q), v[:D]
    xm, xmd = arm.motor_side(q, v)
    driven = (
        arm.to_v(arm.drive.effort(arm.robot, t, piece_time, xm, xmd, memory))
        if arm.drive.joints
        else jnp.zeros_like(v)
    )
    if not arm.passive_hardware:
        return JointForces(jnp.zeros_like(v), driven, jnp.zeros_like(v))
    hardware = num.hardware
    flexible = np.zeros(D, bool)
    flexible[[st.v_start[i] for i in st.motors]] = True
    stretch = jnp.where(flexible, hardware.stiffness * (x - xm), 0.0)
    damper = hardware.damping * jnp.where(flexible, xd - xmd, xd)
    pad = jnp.zeros(st.nv - D, v.dtype)
    on_motor = np.arange(st.nv) >= D
    elastic = jnp.concatenate([hardware.stop_force(x) - stretch, pad]) + jnp.where(
        on_motor, arm.to_v(stretch), 0.0
    )
    damped = jnp.concatenate([-damper - hardware.stop_slopes(x)[1] * xd, pad]) + jnp.where(
        on_motor, arm.to_v(damper), 0.0
    )
    damped = damped - arm.to_v(hardware.friction(xmd))
    return JointForces(elastic, driven, damped)
