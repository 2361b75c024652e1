"""What a mechanism shows at one instant."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import turn_matrix
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._dynamics import Accelerations
from flexjax.formulation.port_hamiltonian._inertia import without_shear
from flexjax.mechanism import Snapshot, centreline_pose
from flexjax.mechanism.chain._observe import point_acceleration, spatial_pose, spatial_vector
from flexjax.numerics.screw import se3
from flexjax.numerics.term import State


def snapshot(arm: Assembly, y: State, s: Float[Array, " S"], a: Accelerations) -> Snapshot:
    st, robot, mech = arm.st, arm.robot, y.mech
    xm, _ = arm.motor_side(mech.q, mech.v)
    D = st.total_dofs
    motors = np.array([st.v_start[i] for i in st.motors], int)
    effort = a.effort[:D].at[motors].set(a.effort[D:])
    R = turn_matrix(mech.turn)
    parts = jax.vmap(
        lambda R, x, V, V_rate, Q, l, rest: _flexible(arm, R, x, V, V_rate, Q, l, rest, s)
    )(R, mech.x, a.V, a.rate, mech.Q, arm.num.elements.length, arm.num.elements.shape[:, 0])
    for i in np.flatnonzero(st.rigid):
        parts = jax.tree_util.tree_map(
            lambda whole, part, i=i: whole.at[i].set(part), parts, _rigid(arm, i, R, mech, a, s)
        )
    frames, velocity, acceleration, deflection, strain = parts
    # Of a link without shear the element's own bending is no shear.
    shear = np.array([[0, *without_shear(link), 0, 0, 0] for link in robot.links], bool)
    strain = jnp.where(shear[:, None], 0.0, strain)
    reaction = jnp.zeros((len(robot.joints), 6), mech.v.dtype)
    for i, j in enumerate(st.joint_of):
        reaction = reaction.at[j].set(spatial_vector(a.reaction[i], st.planar))
    return Snapshot(
        q=arm.coordinates(mech.q),
        qd=mech.v[:D],
        qdd=a.tangent.v[:D],
        motor=xm,
        effort=effort,
        frames=frames,
        velocity=velocity,
        acceleration=acceleration,
        deflection=deflection,
        strain=strain,
        reaction=reaction,
    )


def _pose(arm: Assembly, R, x):
    return spatial_pose(se3.Pose(R, x), arm.st.planar)


def _rigid(arm: Assembly, i, R, mech, a: Accelerations, s):
    planar = arm.st.planar
    pose = _pose(arm, R[i, 0], mech.x[i, 0])
    V, V_rate = spatial_vector(a.V[i, 0], planar), spatial_vector(a.rate[i, 0], planar)

    def station(s):
        section = centreline_pose(arm.robot.links[i], s)
        back = se3.adjoint_inverse(section)
        v, r = back @ V, back @ V_rate
        return se3.to_pose7(se3.compose(pose, section)), v, point_acceleration(v, r)

    frames, velocity, acceleration = jax.vmap(station)(s)
    zero = jnp.zeros((s.shape[0], 6), s.dtype)
    return frames, velocity, acceleration, zero[:, :3], zero


def _flexible(arm: Assembly, R, x, V, V_rate, Q, length, rest, s):
    """Between nodes along the screw that leads from one to the next; strains linear between the
    centres of the elements, and on to the ends of the link (a gauge at a clamp would read half an
    element's share too little otherwise: 2.5 % of a tip load's strain with 20 elements)."""
    planar, n = arm.st.planar, arm.st.elements
    poses = jax.vmap(lambda r, x: _pose(arm, r, x))(R, x)
    between = jax.vmap(lambda p, q: se3.log(se3.compose(se3.inverse(p), q)))(
        jax.tree_util.tree_map(lambda x: x[:-1], poses),
        jax.tree_util.tree_map(lambda x: x[1:], poses),
    )
    V, V_rate, rest = (spatial_vector(z, planar) for z in (V, V_rate, rest))
    base = se3.Pose(poses.rotation[0], poses.position[0])
    element = jnp.clip(jnp.floor(s * n), 0, n - 1).astype(jnp.int32)

    def station(s, e):
        part = s * n - e
        node = se3.Pose(poses.rotation[e], poses.position[e])
        pose = se3.compose(node, se3.exp(part * between[e]))
        v, r = (1 - part) * V[e] + part * V[e + 1], (1 - part) * V_rate[e] + part * V_rate[e + 1]
        here = se3.compose(se3.inverse(base), pose).position
        undeformed = se3.exp(s * n * rest).position
        return se3.to_pose7(pose), v, point_acceleration(v, r), here - undeformed

    frames, velocity, acceleration, deflection = jax.vmap(station)(s, element)
    q = spatial_vector(Q / length, planar)
    centres = (jnp.arange(n, dtype=s.dtype) + 0.5) / n
    beyond = None if n == 1 else "extrapolate"
    between_centres = lambda column: jnp.interp(s, centres, column, left=beyond, right=beyond)
    strain = jax.vmap(between_centres, in_axes=1, out_axes=1)(q)
    return frames, velocity, acceleration, deflection, strain
