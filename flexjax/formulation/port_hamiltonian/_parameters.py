"""The numbers of a mechanism from the robot: elements, nodal inertia, weights, joints. Computed in
space and cut down for planar robots."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import cayley_screw
from flexjax.formulation.port_hamiltonian._inertia import couples_fully, curved, element_table
from flexjax.formulation.port_hamiltonian._joint import JointNumbers
from flexjax.formulation.port_hamiltonian._link import Elements
from flexjax.formulation.port_hamiltonian._structure import Structure
from flexjax.mechanism import (
    PLANAR,
    JointHardware,
    centreline_pose,
    hub_inertia,
    joint_hardware,
    or_zero,
    payload_inertia,
    placement,
    rigid_inertia,
    rotation_axis,
    rotor_and_gear,
    shift_axis,
)
from flexjax.numerics.screw import se3
from flexjax.robot import Joint, Robot


class Numbers(eqx.Module):
    """Stacked over links (L), nodes (K = N + 1), elements (N), joint coordinates (D). None: nothing
    of the kind on this robot."""

    elements: Elements
    mass: Float[Array, "L K d d"]  # diagonal blocks
    # Coupling of neighbouring nodes: its diagonal (L, N, d), or in full (L, N, d, d) where a link
    # is curved or without shear.
    mass_off: Array
    inertia: (
        Float[Array, "L N d"] | None
    )  # of whole elements, in the paper's scheme; the nodes then have none
    alpha: Float[Array, ""] | None  # where on its element the paper's scheme takes efforts
    weight: Float[Array, "L K"]
    moment: Float[Array, "L K lin"] | None  # first moment of mass about the node
    deformation_damping: Float[Array, " L"] | None
    drag: Float[Array, "L K d"] | None
    joints: JointNumbers
    gravity: Float[Array, " lin"]
    hardware: JointHardware


def _station_weights(s, n: int):
    """(n+1,) linear shape functions of the nodes at station s. On a node they have a kink; their
    derivative there is that of the element behind it, on the tip that of the last element."""
    element = jnp.clip(jnp.floor(lax.stop_gradient(s) * n), 0, n - 1)
    part, node = s * n - element, jnp.arange(n + 1, dtype=s.dtype)
    return jnp.where(node == element, 1.0 - part, jnp.where(node == element + 1, part, 0.0))


def _mass_and_moment(inertia6):
    """(mass, first moment (3,)) of a 6 x 6 inertia about its frame."""
    return inertia6[0, 0], jnp.stack([inertia6[5, 1], inertia6[3, 2], inertia6[4, 0]])


def _link_numbers(robot: Robot, i: int, joint: Joint, n: int, blend: float, full: bool):
    """``full``: couplings of nodes in full and not as their diagonal."""
    link, like = robot.links[i], robot.gravity
    eye = jnp.eye(6, dtype=like.dtype)
    payloads = [p for p in robot.payloads if p.link == link.name]
    extra = jnp.zeros((n + 1, 6, 6), like.dtype).at[0].add(hub_inertia(joint, like))
    if link.rigid:
        whole = rigid_inertia(link)
        for p in payloads:
            whole = whole + payload_inertia(p, centreline_pose(link, p.s))
        extra = extra.at[0].add(whole)
        mass, moment = jax.vmap(_mass_and_moment)(extra)
        # Nodes that a rigid link does not need: unit inertia, no force, never moving.
        mass_matrix = extra.at[1:].add(eye[None])
        zero = jnp.zeros((n, 6), like.dtype)
        return (
            zero,
            mass_matrix,
            jnp.zeros((n, 6, 6), like.dtype) if full else zero,
            mass,
            moment,
            zero,
        )
    table = element_table(link, n, blend)
    own, weight, lever = table.nodal()
    off = table.coupling
    if full and off.ndim == 2:
        off = off[..., None] * eye[None]
    for p in payloads:
        weights = _station_weights(p.s, n)

        def attached(k, w, p=p):
            # The payload's share of node k, carried there along the undeformed link.
            node = centreline_pose(link, k / n)
            section = se3.compose(se3.inverse(node), centreline_pose(link, p.s))
            return w * payload_inertia(p, section)

        extra = extra + jax.vmap(attached)(jnp.arange(n + 1, dtype=like.dtype), weights)
    mass, moment = jax.vmap(_mass_and_moment)(extra)
    return table.stiffness, extra + own, off, mass + weight, moment + lever, table.inertia


def _joint_numbers(robot: Robot, st: Structure, i: int) -> JointNumbers:
    like = robot.gravity
    joint, k = robot.joints[st.joint_of[i]], st.width
    eye, zero = jnp.eye(3, dtype=like.dtype), jnp.zeros(3, like.dtype)
    pose = placement(joint, like)
    parent = st.parents[i]
    if parent >= 0 and st.rigid[parent]:
        pose = se3.compose(centreline_pose(robot.links[parent], jnp.ones((), like.dtype)), pose)

    turning = joint.type in ("revolute", "universal")
    first = rotation_axis(joint, 0, like) if turning else zero
    second = rotation_axis(joint, 1, like) if joint.type == "universal" else zero
    shift = jnp.zeros((3, k), like.dtype)
    if joint.type == "prismatic":
        shift = shift.at[:, 0].set(shift_axis(joint, like))
    if joint.type == "free":
        shift = shift.at[:, :3].set(eye)
    rotor, gear = rotor_and_gear(joint, like)
    column = st.unknowns - 1 if joint.flexible else 0
    gears = jnp.zeros(st.unknowns, like.dtype).at[column].set(gear)
    ball = jnp.asarray(st.ball_columns()[i], like.dtype)
    return JointNumbers(
        pose.rotation,
        pose.position,
        first,
        second,
        shift,
        ball,
        rotor,
        gears,
        pose.rotation @ first,
    )


def mechanism_numbers(
    robot: Robot,
    st: Structure,
    *,
    blend: float,
    coupling,
    drag,
    density,
    alpha: Array | float | None,
) -> Numbers:
    """All numbers; pure and traceable in the robot's leaves."""
    like, n = robot.gravity, st.elements
    arcs = any(curved(link) for link in robot.links)
    full = any(couples_fully(link) for link in robot.links)
    rows = [
        _link_numbers(robot, i, robot.joints[st.joint_of[i]], n, blend, full)
        for i in range(st.links)
    ]
    stiffness, mass, off, weight, moment, inertia = (jnp.stack(x) for x in zip(*rows, strict=True))
    joints = jax.tree_util.tree_map(
        lambda *x: jnp.stack(x), *[_joint_numbers(robot, st, i) for i in range(st.links)]
    )
    lengths = jnp.stack([link.length for link in robot.links])
    ahead = jnp.array([1.0, 0.0, 0.0], like.dtype)
    shapes = jnp.stack(
        [jnp.concatenate([ahead, or_zero(link.curvature, like, (3,))]) for link in robot.links]
    )
    l = lengths / n
    shape = l[:, None] * shapes
    # The paper's element is left as it is printed.
    turned = jax.vmap(cayley_screw)(shape) if arcs and alpha is None else shape
    shape, rest = (jnp.broadcast_to(x[:, None], (st.links, n, 6)) for x in (shape, turned))
    dragged = None
    if drag is not None:
        share = jnp.full((n + 1,), 1.0, like.dtype).at[jnp.array([0, n])].set(0.5)
        live = jnp.array([0.0 if r else 1.0 for r in st.rigid], like.dtype)
        dragged = (
            (live * l)[:, None, None]
            * share[None, :, None]
            * jnp.asarray(drag, like.dtype)[None, None, :]
        )
    gravity = robot.gravity
    if st.planar:
        stiffness, mass, off = (
            stiffness[..., PLANAR],
            mass[..., PLANAR, :][..., PLANAR],
            off[..., PLANAR],
        )
        off = off[..., PLANAR, :] if full else off
        rest, shape = rest[..., PLANAR], shape[..., PLANAR]
        moment, gravity, inertia = moment[..., :2], gravity[:2], inertia[..., PLANAR]
        dragged = None if dragged is None else dragged[..., PLANAR]
        joints = JointNumbers(
            joints.rotation[:, :2, :2],
            joints.offset[:, :2],
            joints.first[:, 2:],
            joints.second[:, 2:],
            joints.shift[:, :2],
            joints.ball[:, 2:],
            joints.rotor,
            joints.gears,
            joints.rotor_axis[:, 2:],
        )
    if alpha is None:
        inertia = None
    else:
        mass, off, alpha = jnp.zeros_like(mass), jnp.zeros_like(off), jnp.asarray(alpha, like.dtype)
    per_length = stiffness / l[:, None, None]
    if coupling is not None:
        per_length = _coupled(stiffness, coupling, st, like) / l[:, None, None, None]
    taus = [None if link.damping is None else link.damping.strain_rate for link in robot.links]
    tau = None if all(t is None for t in taus) else jnp.stack([or_zero(t, like) for t in taus])
    damped = [
        None if link.damping is None or link.rigid else link.damping.mass for link in robot.links
    ]
    deformation = (
        None if all(m is None for m in damped) else jnp.stack([or_zero(m, like) for m in damped])
    )
    offset = (
        any(p.offset is not None for p in robot.payloads)
        or any(st.rigid)
        or bool(robot.payloads)
        or full
    )
    return Numbers(
        elements=Elements(l, rest, shape, per_length, tau, density),
        mass=mass,
        mass_off=off,
        inertia=inertia,
        alpha=alpha,
        weight=weight,
        moment=moment if offset else None,
        deformation_damping=deformation,
        drag=dragged,
        joints=joints,
        gravity=gravity,
        hardware=joint_hardware(robot),
    )


def _coupled(stiffness, coupling, st: Structure, like):
    """Full stiffness per length from the diagonal one and the compliance C_c (linear rows, angular
    columns) that couples the two halves."""
    C_c = np.asarray(coupling, float)
    C = jnp.zeros((6, 6), like.dtype).at[:3, 3:].set(C_c).at[3:, :3].set(C_c.T)
    if st.planar:
        C = C[PLANAR][:, PLANAR]
    diagonal = jax.vmap(jax.vmap(jnp.diag))(
        jnp.where(stiffness > 0, 1.0 / jnp.where(stiffness > 0, stiffness, 1.0), 1.0)
    )
    full = jnp.linalg.inv(diagonal + C[None, None])
    return jnp.where((stiffness > 0)[..., None, :] & (stiffness > 0)[..., :, None], full, 0.0)
