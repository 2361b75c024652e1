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
from flexjax.formulation.port_hamiltonian._joint import pick
from flexjax.formulation.port_hamiltonian._link import without_shear
from flexjax.mechanism import centreline_pose
from flexjax.mechanism.chain._observe import point_acceleration, spatial_pose, spatial_vector
from flexjax.numerics.linalg._components_first import components_last
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import orientation_matrix, space_of
from flexjax.numerics.term import State

# Outputs of the stations of a link by name.
Stations = dict[str, Array]
Moving = tuple[Array, Array] | None  # twists and their rates


MOVING = frozenset({"qdd", "effort", "velocity", "acceleration", "reaction"})
SECTIONS = frozenset({"positions", "frames", "velocity", "acceleration", "deflection", "strain"})


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
        found["energy"] = arm.energy_of(t, y, piece_time)
    if now is not None:
        motors = np.array(structure.coordinates.motors, int)
        effort = now.effort[:dofs].at[motors].set(now.effort[dofs:])
        reaction = jnp.zeros((len(arm.robot.joints), 6), mech.v.dtype)
        wrench = spatial_vector(now.reaction.T, structure.planar)
        reaction = reaction.at[np.array(structure.joint_of)].set(wrench)
        found |= {"qdd": now.tangent.v[:dofs], "effort": effort, "reaction": reaction}
    if names & SECTIONS:
        found |= _sections(arm, y, s, now, names)
    return {name: found[name] for name in names}


def _sections(
    arm: Assembly,
    y: State,
    s: Float[Array, " S"],
    now: Accelerations | None,
    names: frozenset[str],
) -> Stations:
    structure, robot, mech = arm.structure, arm.robot, y.mech
    planar, elements = structure.planar, arm.parameters.elements
    R = components_last(orientation_matrix(mech.orientation), 2)
    # Per link: nodes and elements in front, as the stations are computed.
    x, Q = components_last(mech.x), components_last(mech.Q)
    moving = None if now is None else (components_last(now.V), components_last(now.rate))
    each = jax.vmap(functools.partial(_flexible, s, planar, names))
    rest = components_last(elements.shape)[:, 0]
    parts = each(R, x, moving, Q, elements.length, rest)
    for i in np.flatnonzero(structure.rigid).tolist():
        at_base = jax.tree.map(lambda z, i=i: z[i, 0], moving)
        own = _rigid(arm, i, R[i, 0], x[i, 0], at_base, s)
        parts = {name: all.at[i].set(own[name]) for name, all in parts.items()}
    if "strain" in parts:
        # In a link without shear, the strain across it is the element's own bending.
        shear = np.array([[0, *without_shear(link), 0, 0, 0] for link in robot.links], bool)
        parts["strain"] = jnp.where(shear[:, None], 0.0, parts["strain"])
    return parts


def _rigid(
    arm: Assembly, i: int, R: Array, x: Array, moving: Moving, s: Float[Array, " S"]
) -> Stations:
    planar = arm.structure.planar
    pose = spatial_pose(se3.Pose(R, x), planar)

    def station(s):
        section = centreline_pose(arm.robot.links[i], s)
        frame = se3.to_pose7(se3.compose(pose, section))
        found = {"positions": frame[:3], "frames": frame}
        if moving is None:
            return found
        back = se3.adjoint_inverse(section)
        v, r = (back @ spatial_vector(z, planar) for z in moving)
        return found | {"velocity": v, "acceleration": point_acceleration(v, r)}

    zero = jnp.zeros((s.shape[0], 6), s.dtype)
    return jax.vmap(station)(s) | {"deflection": zero[:, :3], "strain": zero}


def _flexible(
    s: Float[Array, " S"],
    planar: bool,
    names: frozenset[str],
    R: Float[Array, "K lin lin"],
    x: Float[Array, "K lin"],
    moving: Moving,
    Q: Float[Array, "N d"],
    length: Scalar,
    rest: Float[Array, " d"],
) -> Stations:
    """Between nodes along the screw from one to the next. Strains are linear between the centres of
    the elements, and extrapolated to the ends of the link."""
    n, space = Q.shape[0], space_of(Q.shape[1])
    poses = space.Pose(R, x)
    behind, ahead = (pick(poses, slice(k, k + n)) for k in (0, 1))
    screws = jax.vmap(lambda p, q: space.log(space.compose(space.inverse(p), q)))(behind, ahead)
    base = space.inverse(pick(poses, 0))
    element = jnp.clip(jnp.floor(s * n), 0, n - 1).astype(jnp.int32)

    def point(p: Array) -> Array:
        return jnp.pad(p, (0, 3 - p.shape[0]))

    def station(s, e):
        part = s * n - e
        pose = space.compose(pick(poses, e), space.exp(part * screws[e]))
        found = {"positions": point(pose.position)}
        if "frames" in names:
            found["frames"] = space.to_pose7(pose)
        if "deflection" in names:
            straight = space.exp(s * n * rest).position
            found["deflection"] = point(space.compose(base, pose).position - straight)
        if moving is not None:
            v, r = (spatial_vector((1 - part) * z[e] + part * z[e + 1], planar) for z in moving)
            found |= {"velocity": v, "acceleration": point_acceleration(v, r)}
        return found

    found = jax.vmap(station)(s, element)
    if "strain" in names:
        q = spatial_vector(Q / length, planar)
        centres = (jnp.arange(n, dtype=s.dtype) + 0.5) / n
        beyond = None if n == 1 else "extrapolate"
        between = lambda column: jnp.interp(s, centres, column, left=beyond, right=beyond)
        found["strain"] = jax.vmap(between, in_axes=1, out_axes=1)(q)
    return found
