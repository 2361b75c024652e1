"""Connections in space: how far a spring is bent, which way a joint may turn, and the moment that
follows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax.formulation.transfer_matrix._chain import Layout
from flexjax.numerics.linalg import inverse2, inverse3, mm, mv, transpose
from flexjax.numerics.screw import se3
from flexjax.robot import Robot


class Sites:
    """Static: where the joint coordinates (D, robot order) sit, and which of them a Motion
    holds."""

    def __init__(self, robot: Robot, layout: Layout, prescribed: np.ndarray):
        self.n, self.dofs = layout.n, layout.dofs
        self.given = prescribed
        self.at = np.zeros((layout.dofs, 2), int)  # (connection, column)
        self.free = np.zeros((layout.n, 2), bool)  # axes about which a connection may turn
        self.pairs = []  # connections of free joints: (connection, number of axes)
        for s in layout.joints:
            count = robot.joints[s.joint].dofs
            for j in range(count):
                self.at[s.dof + j] = s.first, j
                self.free[s.first, j] = not prescribed[s.dof]
            if not prescribed[s.dof]:
                self.pairs.append((s.first, count))

    def spread(self, per_dof) -> Array:
        """(n, 2) from (D,), zero where no axis is."""
        index = np.full((self.n, 2), self.dofs)
        index[self.at[:, 0], self.at[:, 1]] = np.arange(self.dofs)
        return jnp.concatenate([per_dof, jnp.zeros(1, per_dof.dtype)])[index]

    def gather(self, per_axis) -> Array:
        """(D,) from (n, 2)."""
        return per_axis[self.at[:, 0], self.at[:, 1]]


class Bends(NamedTuple):
    """Of every connection: joint angles (n, 2) and rates, bending vector (n, 3) in the outboard
    body's axes and its rate; what the relative angular velocity in world axes gives of each (n, 3,
    3) and (n, 2, 3); ``axes`` (n, 3, 2) of the joint in world axes; stiffness and damping matrices
    (n, 3, 3). ``give`` (n, 2): compliance of the half segments about free axes, ``lag`` that times
    the time in which they bend; ``drag`` (n, 2): derivative of the elastic energy by the joint's
    angles, as the half segment of the parent turns against that of the child."""

    angle: Array
    angle_rate: Array
    bend: Array
    bend_rate: Array
    of_bend: Array
    of_angle: Array
    axes: Array
    stiffness: Array
    damping: Array
    give: Array
    lag: Array
    drag: Array

    def moment(self) -> Array:
        """(n, 3) elastic and viscous moment in the coordinates of the bending vector."""
        return mv(self.stiffness, self.bend) + mv(self.damping, self.bend_rate)


def _free_angles(Q, axes, count: int) -> Array:
    """Angles (2,) of a free joint from the rotation Q across it: what is left bends about
    directions it cannot turn."""
    if count == 1:
        quat = se3.matrix_to_quat(Q)
        angle = 2 * jnp.arctan2(jnp.sum(quat[1:] * axes[0]), quat[0])
        return jnp.stack([angle, jnp.zeros_like(angle)])
    B = jnp.stack([axes[0], axes[1], jnp.cross(axes[0], axes[1])])
    R = mm(mm(B, Q), B.T)
    return jnp.stack([jnp.arctan2(-R[1, 2], R[2, 2]), jnp.arcsin(jnp.clip(R[0, 2], -1.0, 1.0))])


def bends(chain, sites: Sites, R, w, target, target_rate) -> Bends:
    """At rotations ``R`` (n, 3, 3) and angular velocities ``w`` (n, 3) of the bodies; ``target``
    (D,) and its rate of the joints that a Motion holds."""
    eye = jnp.eye(3, dtype=R.dtype)
    parent = jnp.concatenate([eye[None], R[:-1]])
    w_rel = w - jnp.concatenate([jnp.zeros((1, 3), w.dtype), w[:-1]])
    Q = mm(transpose(chain.fix), mm(transpose(parent), R))
    angle, rate = sites.spread(target), sites.spread(target_rate)
    for i, count in sites.pairs:
        angle = angle.at[i].set(_free_angles(Q[i], chain.axes[i], count))
    outer = jnp.concatenate([jnp.zeros((1, 3), w.dtype), chain.give_out[:-1]])
    outer_slow = jnp.concatenate([jnp.zeros((1, 3), w.dtype), chain.slow_out[:-1]])
    outer_lag = jnp.concatenate([jnp.zeros((1, 3), w.dtype), chain.lag_out[:-1]])
    free = jnp.asarray(sites.free, R.dtype)

    def one(
        Q,
        R,
        w_rel,
        fix,
        axes,
        angle,
        rate,
        free,
        give,
        give_out,
        slow,
        slow_out,
        lag,
        lag_out,
        joint_give,
        joint_slow,
    ):
        first, second = (se3.rotation_exp(axes[j] * angle[j]) for j in (0, 1))
        turn = mm(first, second)
        bend = se3.rotation_log(mm(turn.T, Q))
        back = se3.so3_dexp_inv(bend)
        A = mm(
            se3.rotation_exp(-bend), jnp.stack([mv(second.T, axes[0]), axes[1]], -1)
        )  # body axes
        across = mm(fix, turn)

        def parents(other):
            return mm(across.T * other[None], across)

        def both(own, other, joint):
            return eye * own[None] + parents(other) + joint * axes[0][:, None] * axes[0][None]

        C, E = both(give, give_out, joint_give), axes * free[:, None]
        K, late = inverse3(C), both(slow, slow_out, joint_slow)
        KE = mm(K, E.T)
        K = K - mm(KE, mm(inverse2(mm(E, KE) + _absent(free)), KE.T))
        turned = mm(back, A)  # what the joint's rates take from the rate of bending
        solve = inverse2(mm(E, turned * free[None]) + _absent(free))
        of_angle = mm(solve, mm(E, back)) * free[:, None]
        of_bend = back - mm(turned, of_angle)
        of_angle, of_bend = mm(of_angle, R.T), mm(of_bend, R.T)
        moment = mv(K, bend)
        turns = jnp.stack([mv(second.T, axes[0]), axes[1]])
        drag = -mv(turns, jnp.cross(moment, mv(parents(give_out), moment)))
        axis_give = jnp.sum(E * mm(E, C), axis=1)
        axis_lag = jnp.sum(E * mm(E, both(lag, lag_out, joint_slow)), axis=1)
        held = rate * (1 - free)
        bend_rate = mv(of_bend, w_rel) - mv(turned, held)
        rate = held + mv(of_angle, w_rel)
        damping = mm(mm(K, late), K)
        return (
            angle,
            rate,
            bend,
            bend_rate,
            of_bend,
            of_angle,
            mm(R, A),
            K,
            damping,
            axis_give,
            axis_lag,
            drag,
        )

    return Bends(
        *jax.vmap(one)(
            Q,
            R,
            w_rel,
            chain.fix,
            chain.axes,
            angle,
            rate,
            free,
            chain.give_in,
            outer,
            chain.slow_in,
            outer_slow,
            chain.lag_in,
            outer_lag,
            chain.joint_give,
            chain.joint_slow,
        )
    )


def _absent(free):
    """Ones on the diagonal where there is no free axis."""
    return jnp.eye(2, dtype=free.dtype) * (1 - free)[None]
