"""Observations of a mechanism at one instant."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._chain import Accelerations
from flexjax.formulation.port_hamiltonian._link import without_shear
from flexjax.mechanism import Energy, centreline_pose
from flexjax.mechanism.chain._observe import point_acceleration, spatial_pose, spatial_vector
from flexjax.numerics.linalg._components_first import components_last
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import orientation_matrix
from flexjax.numerics.term import State

# Frames (S, 7), velocities, accelerations, deflections (S, 3), strains of the stations of a link.
Stations = tuple[Array, Array | None, Array | None, Array, Array]
Moving = tuple[Array, Array] | None  # twists and their rates


MOVING = frozenset({"qdd", "effort", "velocity", "acceleration", "reaction"})
SECTIONS = ("frames", "velocity", "acceleration", "deflection", "strain")


def outputs(
    arm: Assembly,
    t: ScalarLike,
    y: State,
    s: Float[Array, " S"],
    piece_time: PieceTime,
    now: Accelerations | None,
    names: frozenset[str],
) -> dict[str, Any]:
    """Outputs of the state ``y`` at the stations ``s`` of all links; ``now`` for those of
    ``MOVING``."""
    structure, dofs, mech = arm.structure, arm.structure.coordinates.dofs, y.mech
    found = {"q": arm.coordinates(mech.q), "qd": mech.v[:dofs]}
    found["motor"] = arm.motor_side(mech.q, mech.v)[0]
    if "energy" in names:
        found["energy"] = Energy(*arm.energies(t, mech, piece_time), y.dissipated, y.work)
    if now is not None:
        motors = np.array(structure.coordinates.motors, int)
        effort = now.effort[:dofs].at[motors].set(now.effort[dofs:])
        reaction = jnp.zeros((len(arm.robot.joints), 6), mech.v.dtype)
        wrench = spatial_vector(now.reaction.T, structure.planar)
        reaction = reaction.at[np.array(structure.joint_of)].set(wrench)
        found |= {"qdd": now.tangent.v[:dofs], "effort": effort, "reaction": reaction}
    if names & {"positions", *SECTIONS}:
        found |= dict(zip(SECTIONS, _sections(arm, y, s, now), strict=True))
        found["positions"] = found["frames"][..., :3]
    return {name: found[name] for name in names}


def _sections(
    arm: Assembly, y: State, s: Float[Array, " S"], now: Accelerations | None
) -> Stations:
    structure, robot, mech = arm.structure, arm.robot, y.mech
    planar, elements = structure.planar, arm.parameters.elements
    R = components_last(orientation_matrix(mech.orientation), 2)
    # Per link: nodes and elements in front, as the stations are computed.
    x, Q = components_last(mech.x), components_last(mech.Q)
    moving = None if now is None else (components_last(now.V), components_last(now.rate))
    each = jax.vmap(functools.partial(_flexible, s, planar))
    rest = components_last(elements.shape)[:, 0]
    parts = each(R, x, moving, Q, elements.length, rest)
    for i in np.flatnonzero(structure.rigid).tolist():
        at_base = jax.tree.map(lambda z, i=i: z[i, 0], moving)
        own = _rigid(arm, i, R[i, 0], x[i, 0], at_base, s)
        parts = jax.tree.map(lambda all, one, i=i: all.at[i].set(one), parts, own)
    # In a link without shear, the strain across it is the element's own bending.
    shear = np.array([[0, *without_shear(link), 0, 0, 0] for link in robot.links], bool)
    frames, velocity, acceleration, deflection, strain = parts
    return frames, velocity, acceleration, deflection, jnp.where(shear[:, None], 0.0, strain)


def _rigid(
    arm: Assembly, i: int, R: Array, x: Array, moving: Moving, s: Float[Array, " S"]
) -> Stations:
    planar = arm.structure.planar
    pose = spatial_pose(se3.Pose(R, x), planar)

    def station(s):
        section = centreline_pose(arm.robot.links[i], s)
        frame = se3.to_pose7(se3.compose(pose, section))
        if moving is None:
            return frame, None, None
        back = se3.adjoint_inverse(section)
        v, r = (back @ spatial_vector(z, planar) for z in moving)
        return frame, v, point_acceleration(v, r)

    frames, velocity, acceleration = jax.vmap(station)(s)
    zero = jnp.zeros((s.shape[0], 6), s.dtype)
    return frames, velocity, acceleration, zero[:, :3], zero


def _flexible(
    s: Float[Array, " S"],
    planar: bool,
    R: Float[Array, "K lin lin"],
    x: Float[Array, "K lin"],
    moving: Moving,
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
    rest = spatial_vector(rest, planar)
    if moving is not None:
        moving = spatial_vector(moving[0], planar), spatial_vector(moving[1], planar)
    base = se3.inverse(se3.Pose(poses.rotation[0], poses.position[0]))
    element = jnp.clip(jnp.floor(s * n), 0, n - 1).astype(jnp.int32)

    def station(s, e):
        part = s * n - e
        node = se3.Pose(poses.rotation[e], poses.position[e])
        pose = se3.compose(node, se3.exp(part * screws[e]))
        deflection = se3.compose(base, pose).position - se3.exp(s * n * rest).position
        if moving is None:
            return se3.to_pose7(pose), None, None, deflection
        v, r = ((1 - part) * z[e] + part * z[e + 1] for z in moving)
        return se3.to_pose7(pose), v, point_acceleration(v, r), deflection

    frames, velocity, acceleration, deflection = jax.vmap(station)(s, element)
    q = spatial_vector(Q / length, planar)
    centres = (jnp.arange(n, dtype=s.dtype) + 0.5) / n
    beyond = None if n == 1 else "extrapolate"
    between = lambda column: jnp.interp(s, centres, column, left=beyond, right=beyond)
    strain = jax.vmap(between, in_axes=1, out_axes=1)(q)
    return frames, velocity, acceleration, deflection, strain
