"""What a chain of rigid bodies shows at one instant."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam import centreline_pose
from flexjax.chain._parameters import PLANAR
from flexjax.chain._term import ChainTerm
from flexjax.screw import se3
from flexjax.term import State
from flexjax.trajectory import Snapshot


def spatial_pose(pose, planar: bool):
    """A pose of the plane as one of space."""
    if not planar:
        return pose
    R = jnp.eye(3, dtype=pose.position.dtype).at[:2, :2].set(pose.rotation)
    return se3.Pose(R, jnp.concatenate([pose.position, jnp.zeros(1, pose.position.dtype)]))


def spatial_vector(z, planar: bool):
    """A planar twist or wrench (..., 3) as a spatial one (..., 6)."""
    return jnp.zeros((*z.shape[:-1], 6), z.dtype).at[..., PLANAR].set(z) if planar else z


def point_acceleration(z, z_dot):
    """[acceleration of the point; angular acceleration] in body axes, from the body twist and its component derivative."""
    return z_dot.at[..., :3].add(jnp.cross(z[..., 3:], z[..., :3]))


def rigid_snapshot(term: ChainTerm, t, y: State, s: Float[Array, " S"], at) -> Snapshot:
    lay, robot, planar = term.layout, term.robot, term.layout.planar
    q, v = y.mech.q, y.mech.v
    a = term.accelerate(t, q, v, at, y.memory)
    _, W, _, acc, m = term.inverse(t, q, v, a, at)
    gap = term.balance(t, q, v, a, at, y.memory)
    xm, xmd = term.motor_coordinates(y)
    effort = term.drive.effort(robot, t, at, xm, xmd, y.memory)
    motors = np.array(lay.motors, int)
    wanted = gap[: lay.dofs].at[motors].set(gap[lay.dofs :])
    effort = jnp.where(term.drive.prescribed(robot), wanted, effort)

    z, acc, W = spatial_vector(m.z, planar), spatial_vector(acc, planar), spatial_vector(W, planar)
    world = jax.vmap(lambda p: spatial_pose(p, planar))(m.world)
    # Undo the trick that made weight out of the base's acceleration.
    acc = acc.at[:, :3].add(jax.vmap(lambda R: R.T @ robot.gravity)(world.rotation))
    stage_of = {st.link: i for i, st in enumerate(lay.stages) if st.link >= 0}

    def along(i):
        b = stage_of[i]
        pose = se3.Pose(world.rotation[b], world.position[b])

        def station(s):
            section = centreline_pose(robot.links[i], s)
            back = se3.adjoint_inverse(section)
            zs, as_ = back @ z[b], back @ acc[b]
            return se3.to_pose7(se3.compose(pose, section)), zs, point_acceleration(zs, as_)

        return jax.vmap(station)(s)

    rows = [along(i) for i in range(len(robot.links))]
    frames, velocity, acceleration = (jnp.stack([r[k] for r in rows]) for k in range(3))
    zeros = jnp.zeros((len(robot.links), s.shape[0], 6), q.dtype)
    reaction = jnp.stack([_reaction(term, i, W, q) for i in range(len(robot.joints))])
    return Snapshot(
        q=term.coordinates(q), qd=v[: lay.dofs], qdd=a[: lay.dofs], motor=xm, effort=effort,
        frames=frames, velocity=velocity, acceleration=acceleration, deflection=zeros[..., :3], strain=zeros, reaction=reaction,
    )  # fmt: skip


def _reaction(term: ChainTerm, joint_index: int, W, q) -> Array:
    """Wrench of parent on child at the joint, child axes."""
    last = max(i for i, s in enumerate(term.layout.stages) if s.joint == joint_index)
    joint = term.robot.joints[joint_index]
    if joint.type == "prismatic" and joint.axis is None:
        # The link's frame is at its rear end; the joint stands length - free length ahead of it.
        length = term.robot.links[term.layout.stages[last].link].length
        lever = jnp.zeros(3, q.dtype).at[0].set(length - q[term.layout.stages[last].q_start])
        return W[last].at[3:].add(-jnp.cross(lever, W[last][:3]))
    return W[last]
