"""Structure (static) and parameters (traced) of a mechanism of port-Hamiltonian links.

Arrays of nodes and elements have the components first, then links (L), then nodes (K = N + 1) or
elements (N). Joints are records stacked over the links, one joint per link.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from flexjax.formulation.port_hamiltonian._joint import JointParameters
from flexjax.formulation.port_hamiltonian._link import (
    Elements,
    couples_fully,
    curved,
    element_table,
    station_weights,
)
from flexjax.mechanism import (
    BALL_COLUMN,
    PLANAR,
    CoordinateLayout,
    JointHardware,
    centreline_pose,
    coordinate_layout,
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
from flexjax.numerics.linalg._components_first import components_first
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import cayley_screw
from flexjax.robot import Joint, Link, Robot


@dataclasses.dataclass(frozen=True)
class Structure:
    """Links, joints and loops of a mechanism; static."""

    elements: int
    planar: bool
    parents: tuple[int, ...]  # link indices, -1: ground
    order: tuple[int, ...]  # links, parents before children
    joint_of: tuple[int, ...]  # index among the robot's joints of the joint that carries a link
    kinds: tuple[str, ...]
    joint_dofs: tuple[int, ...]
    rigid: tuple[bool, ...]
    flexible: tuple[int, ...]  # links whose joint is flexible, in robot order
    loops: tuple[int, ...]  # indices among the robot's joints
    coordinates: CoordinateLayout

    @property
    def links(self) -> int:
        return len(self.parents)

    @property
    def width(self) -> int:
        """Columns to which every joint is padded."""
        return max(1, *self.joint_dofs)

    @property
    def unknowns(self) -> int:
        """Unknown rates per joint: its padded columns, and a motor if any joint is flexible."""
        return self.width + (1 if self.flexible else 0)

    @property
    def dim(self) -> int:
        return 3 if self.planar else 6

    @property
    def lin(self) -> int:
        return 2 if self.planar else 3

    @property
    def roots(self) -> Bool[np.ndarray, " L"]:
        """Which links are on the ground."""
        return np.array(self.parents) < 0

    def attachment(self, link: int) -> int:
        """The node that carries the children of a link: the base of a rigid one, or the tip."""
        return 0 if self.rigid[link] else -1

    def rate_table(self) -> np.ndarray:
        """(L, unknowns) index into v of the unknowns of a link's joint, nv where padded."""
        table = np.full((self.links, self.unknowns), self.coordinates.nv)
        for i, (joint, dofs) in enumerate(zip(self.joint_of, self.joint_dofs, strict=True)):
            table[i, :dofs] = self.coordinates.v_start[joint] + np.arange(dofs)
        for k, i in enumerate(self.flexible):
            table[i, -1] = self.coordinates.dofs + k
        return table

    def joint_table(self) -> np.ndarray:
        """(nv,) index of every rate among the unknowns of all joints, flattened."""
        table = self.rate_table().reshape(-1)
        return np.array([np.flatnonzero(table == k)[0] for k in range(self.coordinates.nv)], int)

    def plain_table(self) -> np.ndarray:
        """(L, width) index into q of the coordinates of a joint without its ball, nq elsewhere."""
        table = np.full((self.links, self.width), self.coordinates.nq)
        for i, kind in enumerate(self.kinds):
            plain = BALL_COLUMN.get(kind, self.joint_dofs[i])
            table[i, :plain] = self.coordinates.q_start[self.joint_of[i]] + np.arange(plain)
        return table

    def ball_columns(self, link: int) -> np.ndarray:
        """(3, width) which columns of a joint are the rates of its ball."""
        out = np.zeros((3, self.width))
        if self.kinds[link] in BALL_COLUMN:
            start = BALL_COLUMN[self.kinds[link]]
            out[:, start : start + 3] = np.eye(3)
        return out

    def to_joints(self, v: Float[Array, " nv"]) -> Float[Array, "L n"]:
        """Values per rate as unknowns of the joints, zero where padded."""
        return jnp.concatenate([v, jnp.zeros(1, v.dtype)])[self.rate_table()]

    def from_joints(self, y: Float[Array, "L n"]) -> Float[Array, " nv"]:
        """Unknowns of the joints as values per rate."""
        return y.reshape(-1)[self.joint_table()]


def structure_of(robot: Robot, elements: int) -> Structure:
    """The static facts of a robot whose links have ``elements`` elements each."""
    by_link = {robot.link_index(j.child): i for i, j in enumerate(robot.joints) if not j.loop}
    joint_of = [by_link[link] for link in range(len(robot.links))]
    joints = [robot.joints[i] for i in joint_of]
    parents = tuple(robot.link_index(j.parent) for j in joints)
    order: list[int] = []
    while len(order) < len(parents):
        order += [i for i, p in enumerate(parents) if i not in order and (p < 0 or p in order)]
    flexible = tuple(robot.link_index(j.child) for j in robot.tree_joints if j.flexible)
    return Structure(
        elements=elements,
        planar=robot.planar,
        parents=parents,
        order=tuple(order),
        joint_of=tuple(joint_of),
        kinds=tuple(j.type for j in joints),
        joint_dofs=tuple(j.dofs for j in joints),
        rigid=tuple(link.rigid for link in robot.links),
        flexible=flexible,
        loops=tuple(i for i, j in enumerate(robot.joints) if j.loop),
        coordinates=coordinate_layout(robot),
    )


class MechanismParameters(eqx.Module):
    """Parameters of all links and joints. None: the robot has nothing of the kind."""

    elements: Elements
    mass: Float[Array, "d d L K"]  # diagonal blocks
    # Coupling of neighbouring nodes: its diagonal (d, L, N), or in full (d, d, L, N) where a link
    # is curved or without shear.
    mass_coupling: Array
    # Of whole elements, in the paper's variant; its nodes have none.
    inertia: Float[Array, "d L N"] | None
    alpha: Float[Array, ""] | None  # weight of the first node in e_p, in the paper's variant
    weight: Float[Array, "L K"]  # mass that gravity acts on
    moment: Float[Array, "lin L K"] | None  # its first moment about the node
    deformation_damping: Float[Array, " L"] | None
    drag: Float[Array, "d L K"] | None
    joints: JointParameters
    gravity: Float[Array, " lin"]
    hardware: JointHardware


class _LinkRows(NamedTuple):
    """Elements (n) and nodes (n + 1) of one link in space."""

    stiffness: Float[Array, "n 6"]
    mass: Float[Array, "n+1 6 6"]
    coupling: Array
    weight: Float[Array, " n+1"]
    moment: Float[Array, "n+1 3"]
    inertia: Float[Array, "n 6"]


def _mass_and_moment(inertia: Float[Array, "6 6"]) -> tuple[Array, Array]:
    """(mass, first moment (3,)) of an inertia about its frame."""
    return inertia[0, 0], jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])


def _rigid_rows(robot: Robot, link: Link, hub: Array, n: int, full: bool) -> _LinkRows:
    whole = hub + rigid_inertia(link)
    for p in robot.payloads:
        if p.link == link.name:
            whole = whole + payload_inertia(p, centreline_pose(link, p.s))
    like = robot.gravity
    bodies = jnp.zeros((n + 1, 6, 6), like.dtype).at[0].set(whole)
    weight, moment = jax.vmap(_mass_and_moment)(bodies)
    # A rigid link needs one node. The others have unit inertia, no force, and never move.
    mass = bodies.at[1:].add(jnp.eye(6, dtype=like.dtype)[None])
    zero = jnp.zeros((n, 6), like.dtype)
    coupling = jnp.zeros((n, 6, 6), like.dtype) if full else zero
    return _LinkRows(zero, mass, coupling, weight, moment, zero)


def _elastic_rows(
    robot: Robot, link: Link, hub: Array, n: int, blend: float, full: bool
) -> _LinkRows:
    like = robot.gravity
    table = element_table(link, n, blend)
    own, weight, lever = table.nodal()
    coupling = table.coupling
    if full and coupling.ndim == 2:
        coupling = coupling[..., None] * jnp.eye(6, dtype=like.dtype)[None]
    bodies = jnp.zeros((n + 1, 6, 6), like.dtype).at[0].set(hub)
    for p in robot.payloads:
        if p.link != link.name:
            continue

        def share(k, w, p=p):
            # The payload's share at node k, transported there along the undeformed link.
            node = centreline_pose(link, k / n)
            section = se3.compose(se3.inverse(node), centreline_pose(link, p.s))
            return w * payload_inertia(p, section)

        nodes = jnp.arange(n + 1, dtype=like.dtype)
        bodies = bodies + jax.vmap(share)(nodes, station_weights(p.s, n))
    mass, moment = jax.vmap(_mass_and_moment)(bodies)
    return _LinkRows(
        table.stiffness, bodies + own, coupling, mass + weight, moment + lever, table.inertia
    )


def _joint_parameters(robot: Robot, structure: Structure, i: int) -> JointParameters:
    """Of the joint that carries link ``i``."""
    like = robot.gravity
    joint, k = robot.joints[structure.joint_of[i]], structure.width
    zero = jnp.zeros(3, like.dtype)
    pose = placement(joint, like)
    parent = structure.parents[i]
    if parent >= 0 and structure.rigid[parent]:
        pose = se3.compose(centreline_pose(robot.links[parent], jnp.ones((), like.dtype)), pose)
    rotates = joint.type in ("revolute", "universal")
    first = rotation_axis(joint, 0, like) if rotates else zero
    second = rotation_axis(joint, 1, like) if joint.type == "universal" else zero
    shift = jnp.zeros((3, k), like.dtype)
    if joint.type == "prismatic":
        shift = shift.at[:, 0].set(shift_axis(joint, like))
    if joint.type == "free":
        shift = shift.at[:, :3].set(jnp.eye(3, dtype=like.dtype))
    rotor, gear = rotor_and_gear(joint, like)
    column = structure.unknowns - 1 if joint.flexible else 0
    gears = jnp.zeros(structure.unknowns, like.dtype).at[column].set(gear)
    ball = jnp.asarray(structure.ball_columns(i), like.dtype)
    # In the plane: two of three directions, and rotations about z.
    to, z = (2, 2) if structure.planar else (3, 0)
    return JointParameters(
        pose.rotation[:to, :to],
        pose.position[:to],
        first[z:],
        second[z:],
        shift[:to],
        ball[z:],
        rotor,
        gears,
        (pose.rotation @ first)[z:],
    )


def _coupled(
    stiffness: Float[Array, "L N d"], coupling: tuple[tuple[float, ...], ...], planar: bool
) -> Float[Array, "L N d d"]:
    """Full stiffness per length from the diagonal one and the compliance C_c (linear rows, angular
    columns) that couples the two halves."""
    C_c = np.asarray(coupling, float)
    C = jnp.zeros((6, 6), stiffness.dtype).at[:3, 3:].set(C_c).at[3:, :3].set(C_c.T)
    C = C[PLANAR][:, PLANAR] if planar else C
    live = stiffness > 0
    compliance = jnp.where(live, 1.0 / jnp.where(live, stiffness, 1.0), 1.0)
    full = jnp.linalg.inv(jax.vmap(jax.vmap(jnp.diag))(compliance) + C[None, None])
    return jnp.where(live[..., None, :] & live[..., :, None], full, 0.0)


def _per_link(values: list[Array | None], like: Array) -> Float[Array, " L"] | None:
    if all(value is None for value in values):
        return None
    return jnp.stack([or_zero(value, like) for value in values])


def _elements(
    robot: Robot,
    structure: Structure,
    stiffness: Float[Array, "L N d"],
    coupling: tuple[tuple[float, ...], ...] | None,
    density: Callable | None,
    as_printed: bool,
) -> Elements:
    """``as_printed``: undeformed elements as in the paper, and not as arcs."""
    like, n = robot.gravity, structure.elements
    length = jnp.stack([link.length for link in robot.links]) / n
    ahead = jnp.array([1.0, 0.0, 0.0], like.dtype)
    screws = [jnp.concatenate([ahead, or_zero(x.curvature, like, (3,))]) for x in robot.links]
    shape = length[:, None] * jnp.stack(screws)
    arcs = any(curved(link) for link in robot.links) and not as_printed
    rest = jax.vmap(cayley_screw)(shape) if arcs else shape

    def along(x):
        x = x[:, PLANAR] if structure.planar else x
        return jnp.broadcast_to(x.T[:, :, None], (structure.dim, structure.links, n))

    if coupling is None:
        per_length = components_first(stiffness / length[:, None, None])
    else:
        full = _coupled(stiffness, coupling, structure.planar)
        per_length = components_first(full / length[:, None, None, None], 2)
    rates = [None if x.damping is None else x.damping.strain_rate for x in robot.links]
    tau = _per_link(rates, like)
    return Elements(
        length,
        along(rest),
        along(shape),
        per_length,
        None if tau is None else tau[None, :, None],
        density,
    )


def _drag(
    robot: Robot, structure: Structure, drag: tuple[float, ...] | None
) -> Float[Array, "d L K"] | None:
    if drag is None:
        return None
    like, n = robot.gravity, structure.elements
    share = np.ones(n + 1)
    share[[0, n]] = 0.5
    live = jnp.stack([0.0 * x.length if x.rigid else x.length for x in robot.links]) / n
    rows = np.asarray(drag, float)[PLANAR] if structure.planar else np.asarray(drag, float)
    shares = jnp.asarray(rows[:, None, None] * share[None, None], like.dtype)
    return shares * live[None, :, None]


def _joint_of(robot: Robot, structure: Structure, link: int) -> Joint:
    return robot.joints[structure.joint_of[link]]


def mechanism_parameters(
    robot: Robot,
    structure: Structure,
    *,
    blend: float,
    coupling: tuple[tuple[float, ...], ...] | None,
    drag: tuple[float, ...] | None,
    density: Callable | None,
    alpha: float | None,
) -> MechanismParameters:
    """All parameters; pure and traceable in the robot's leaves."""
    like, n, planar = robot.gravity, structure.elements, structure.planar
    full = any(couples_fully(link) for link in robot.links)
    rows = []
    for i, link in enumerate(robot.links):
        hub = hub_inertia(_joint_of(robot, structure, i), like)
        rows.append(
            _rigid_rows(robot, link, hub, n, full)
            if link.rigid
            else _elastic_rows(robot, link, hub, n, blend, full)
        )
    stack = lambda *x: jnp.stack(x)
    row: _LinkRows = jax.tree.map(stack, *rows)
    joints = [_joint_parameters(robot, structure, i) for i in range(structure.links)]
    cut = lambda x: x[..., PLANAR] if planar else x
    cut_both = lambda x: x[..., PLANAR, :][..., PLANAR] if planar else x
    mass = components_first(cut_both(row.mass), 2)
    couplings = components_first(cut_both(row.coupling) if full else cut(row.coupling), 1 + full)
    damped = [None if x.damping is None or x.rigid else x.damping.mass for x in robot.links]
    offset = bool(robot.payloads) or any(structure.rigid) or full
    paper = alpha is not None
    return MechanismParameters(
        elements=_elements(robot, structure, cut(row.stiffness), coupling, density, paper),
        mass=jnp.zeros_like(mass) if paper else mass,
        mass_coupling=jnp.zeros_like(couplings) if paper else couplings,
        inertia=components_first(cut(row.inertia)) if paper else None,
        alpha=jnp.asarray(alpha, like.dtype) if paper else None,
        weight=row.weight,
        moment=components_first(row.moment[..., : structure.lin]) if offset else None,
        deformation_damping=_per_link(damped, like),
        drag=_drag(robot, structure, drag),
        joints=jax.tree.map(stack, *joints),
        gravity=robot.gravity[: structure.lin],
        hardware=joint_hardware(robot),
    )
