"""Observations of a mechanism at one instant."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._chain import Accelerations
from flexjax.formulation.port_hamiltonian._link import without_shear
from flexjax.mechanism import Snapshot, centreline_pose
from flexjax.mechanism.chain._observe import point_acceleration, spatial_pose, spatial_vector
from flexjax.numerics.linalg._components_first import components_last
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import orientation_matrix
from flexjax.numerics.term import State

# Frames (S, 7), velocities, accelerations, deflections (S, 3), strains of the stations of a link.
Stations = tuple[Array, Array, Array, Array, Array]


def snapshot(arm: Assembly, y: State, s: Float[Array, " S"], now: Accelerations) -> Snapshot:
    """The state ``y`` at the stations ``s`` of all links."""
    structure, robot, mech = arm.structure, arm.robot, y.mech
    xm, _ = arm.motor_side(mech.q, mech.v)
    dofs = structure.dofs
    effort = now.effort[:dofs].at[np.array(structure.motors, int)].set(now.effort[dofs:])
    planar, elements = structure.planar, arm.parameters.elements
    R = components_last(orientation_matrix(mech.orientation), 2)
    # Per link: nodes and elements in front, as the stations are computed.
    x, V, rate, Q = (components_last(z) for z in (mech.x, now.V, now.rate, mech.Q))
    each = jax.vmap(functools.partial(_flexible, s, planar))
    rest = components_last(elements.shape)[:, 0]
    parts = each(R, x, V, rate, Q, elements.length, rest)
    for i in np.flatnonzero(structure.rigid).tolist():
        own = _rigid(arm, i, R[i, 0], x[i, 0], V[i, 0], rate[i, 0], s)
        parts = jax.tree.map(lambda all, one, i=i: all.at[i].set(one), parts, own)
    frames, velocity, acceleration, deflection, strain = parts
    # In a link without shear, the strain across it is the element's own bending.
    shear = np.array([[0, *without_shear(link), 0, 0, 0] for link in robot.links], bool)
    strain = jnp.where(shear[:, None], 0.0, strain)
    reaction = jnp.zeros((len(robot.joints), 6), mech.v.dtype)
    reaction = reaction.at[np.array(structure.joint_of)].set(spatial_vector(now.reaction.T, planar))
    return Snapshot(
        q=arm.coordinates(mech.q),
        qd=mech.v[:dofs],
        qdd=now.tangent.v[:dofs],
        motor=xm,
        effort=effort,
        frames=frames,
        velocity=velocity,
        acceleration=acceleration,
        deflection=deflection,
        strain=strain,
        reaction=reaction,
    )


def _rigid(
    arm: Assembly, i: int, R: Array, x: Array, V: Array, rate: Array, s: Float[Array, " S"]
) -> Stations:
    planar = arm.structure.planar
    pose = spatial_pose(se3.Pose(R, x), planar)
    V, rate = spatial_vector(V, planar), spatial_vector(rate, planar)

    def station(s):
        section = centreline_pose(arm.robot.links[i], s)
        back = se3.adjoint_inverse(section)
        v, r = back @ V, back @ rate
        return se3.to_pose7(se3.compose(pose, section)), v, point_acceleration(v, r)

    frames, velocity, acceleration = jax.vmap(station)(s)
    zero = jnp.zeros((s.shape[0], 6), s.dtype)
    return frames, velocity, acceleration, zero[:, :3], zero


def _flexible(
    s: Float[Array, " S"],
    planar: bool,
    R: Float[Array, "K lin lin"],
    x: Float[Array, "K lin"],
    V: Float[Array, "K d"],
    rate: Float[Array, "K d"],
    Q: Float[Array, "N d"],
    length: Scalar,
    rest: Float[Array, " d"],
) -> Stations:
    """Between nodes along the screw from one to the next. Strains are linear between the centres of
    the elements, and extrapolated to the ends of the link."""
    n = Q.shape[0]
    poses = jax.vmap(lambda R, x: spatial_pose(se3.Pose(R, x), planar))(R, x)
    behind, ahead = (jax.tree.map(lambda z, k=k: z[k : k + n], poses) for k in (0, 1))
    screws = jax.vmap(lambda p, q: se3.log(se3.compose(se3.inverse(p), q)))(behind, ahead)
    V, rate, rest = (spatial_vector(z, planar) for z in (V, rate, rest))
    base = se3.inverse(se3.Pose(poses.rotation[0], poses.position[0]))
    element = jnp.clip(jnp.floor(s * n), 0, n - 1).astype(jnp.int32)

    def station(s, e):
        part = s * n - e
        node = se3.Pose(poses.rotation[e], poses.position[e])
        pose = se3.compose(node, se3.exp(part * screws[e]))
        v, r = ((1 - part) * z[e] + part * z[e + 1] for z in (V, rate))
        deflection = se3.compose(base, pose).position - se3.exp(s * n * rest).position
        return se3.to_pose7(pose), v, point_acceleration(v, r), deflection

    frames, velocity, acceleration, deflection = jax.vmap(station)(s, element)
    q = spatial_vector(Q / length, planar)
    centres = (jnp.arange(n, dtype=s.dtype) + 0.5) / n
    beyond = None if n == 1 else "extrapolate"
    between = lambda column: jnp.interp(s, centres, column, left=beyond, right=beyond)
    strain = jax.vmap(between, in_axes=1, out_axes=1)(q)
    return frames, velocity, acceleration, deflection, strain
