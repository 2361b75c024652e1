"""Nodes of all links in a stage: forces on them (weight, loads, drag), their balance of wrenches,
and its derivative with respect to their twists. Components first, then links, then nodes."""

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.drive import Load
from flexjax.formulation.port_hamiltonian._link import (
    Elements,
    Kinematics,
    curved,
    station_weights,
)
from flexjax.mechanism import centreline_pose
from flexjax.numerics.linalg._components_first import eye_like, mm, mtv, mv, transpose
from flexjax.numerics.screw._components_first import (
    ad,
    coad,
    dipole_torque,
    rotate_by,
    sinc,
    space_of,
)
from flexjax.numerics.term import PortState
from flexjax.robot import Link

if TYPE_CHECKING:
    from flexjax.formulation.port_hamiltonian._assembly import Assembly

NodeTwists = Float[Array, "d L K *b"]
NodeBlocks = Float[Array, "d d L K *b"]
NodeRotations = Float[Array, "lin lin L K *b"]
StepSize = Float[Array, "1 1 1 *b"]
Power = Float[Array, "*b"]


class NodeForces(eqx.Module):
    """Distributed port of the links in one stage.

    ``weight`` and ``load`` are forces in world axes. Dipoles are sums of lever times force. The
    rest is in body axes. None: nothing of the kind.
    """

    weight: Float[Array, "lin L K *b"]
    weight_dipole: Float[Array, "lin lin L K *b"] | None
    load: Float[Array, "lin L K *b"] | None
    load_dipole: Float[Array, "lin lin L K *b"] | None
    moment: Float[Array, "a L K *b"] | None
    body: NodeTwists | None
    drag: NodeTwists | None
    # Twist of the base -> twist of the node if the link were rigid; and damping of the difference.
    relative: NodeBlocks | None
    relative_damping: NodeBlocks | None

    def _in_body_axes(
        self,
        R: NodeRotations,
        force: Array,
        dipole: Array | None,
        h: StepSize,
        w: Float[Array, "a L K *b"],
    ) -> NodeTwists:
        """Wrenches of a force and a dipole in world axes, with the moments of the loads."""
        m = jnp.zeros_like(w)
        if dipole is not None:
            m = m + sinc(h * w) * dipole_torque(mm(dipole, R))
        if self.moment is not None:
            m = m + (self.moment if R.shape[0] == 2 else mtv(R, self.moment))
        out = jnp.concatenate([mtv(R, force), m])
        return out if self.body is None else out + self.body

    def wrench(self, start: NodeRotations, h: StepSize, w: Float[Array, "a L K *b"]) -> NodeTwists:
        """Wrenches at the rotations that ``start`` reaches by h times the angular velocities w."""
        force, dipole = self.weight, self.weight_dipole
        if self.load is not None:
            force = force + self.load
        if self.load_dipole is not None:
            dipole = self.load_dipole if dipole is None else dipole + self.load_dipole
        return self._in_body_axes(rotate_by(start, h * w), force, dipole, h, w)

    def power(self, R: NodeRotations, h: StepSize, V: NodeTwists) -> Scalar:
        """Power of the loads at the rotations R of the stage."""
        if self.load is None:
            return jnp.zeros((), V.dtype)
        out = self._in_body_axes(R, self.load, self.load_dipole, h, V[R.shape[0] :])
        return jnp.sum(out * V)

    def damping(self, V: NodeTwists) -> tuple[Power, NodeTwists]:
        """(power dissipated, wrenches that resist the twists)."""
        out, loss = jnp.zeros_like(V), jnp.zeros(V.shape[3:], V.dtype)
        if self.drag is not None:
            out = out + self.drag * V
            loss = loss + jnp.sum(self.drag * V * V, axis=(0, 1, 2))
        if self.relative is not None and self.relative_damping is not None:
            moving = V - mv(self.relative, V[:, :, :1])
            f = mv(self.relative_damping, moving)
            out = (out + f).at[:, :, 0].add(-jnp.sum(mtv(self.relative, f), axis=2))
            loss = loss + jnp.sum(f * moving, axis=(0, 1, 2))
        return loss, out

    def tangent(self, start: NodeRotations, h: StepSize, V: NodeTwists) -> NodeBlocks:
        """Derivative of wrench less damping with respect to the node's own twist."""
        lin = start.shape[0]
        w = V[lin:]

        def column(e):
            along = jnp.broadcast_to(
                jnp.asarray(e, w.dtype).reshape(-1, *(1,) * (w.ndim - 1)), w.shape
            )
            return jax.jvp(lambda w: self.wrench(start, h, w), (w,), (along,))[1]

        angular = jnp.stack([column(e) for e in np.eye(w.shape[0])], axis=1)
        linear = jnp.zeros((V.shape[0], lin, *V.shape[1:]), V.dtype)
        out = jnp.concatenate([linear, angular], axis=1)
        if self.drag is not None:
            out = out - eye_like(out) * self.drag[None]
        if self.relative_damping is not None:
            # Without the reaction of all nodes on the base: it is outside the band, and h times
            # the damping is small.
            out = out - self.relative_damping
        return out


def node_forces(
    arm: "Assembly", t: ScalarLike, mech: PortState, R: NodeRotations, piece_time: PieceTime
) -> NodeForces:
    """Forces on the nodes in a stage that starts from ``mech`` with rotations R."""
    parameters, gravity = arm.parameters, arm.parameters.gravity
    dipole = None
    if parameters.moment is not None:
        dipole = parameters.moment[:, None] * gravity[None, :, None, None]
    relative = damping = None
    if parameters.deformation_damping is not None:
        relative = _relative_maps(R, mech.x)
        elastic = jnp.where(np.array(arm.structure.rigid), 0.0, parameters.deformation_damping)
        damping = elastic[None, None, :, None] * parameters.mass
    loads = _loads(arm, t, piece_time) if arm.drive.loads else NodeLoads(None, None, None, None)
    return NodeForces(
        weight=gravity[:, None, None] * parameters.weight[None],
        weight_dipole=dipole,
        load=loads.force,
        load_dipole=loads.dipole,
        moment=loads.moment,
        body=loads.body,
        drag=parameters.drag,
        relative=relative,
        relative_damping=damping,
    )


def _relative_maps(R: NodeRotations, x: Float[Array, "lin L K"]) -> NodeBlocks:
    """Twists of the base -> twists of the nodes of links that do not deform."""
    space = space_of(3 if x.shape[0] == 2 else 6)

    def one(R, x, base_R, base_x):
        base = space.inverse(space.Pose(base_R, base_x))
        return space.adjoint_inverse(space.compose(base, space.Pose(R, x)))

    nodes = jax.vmap(one, in_axes=(2, 1, None, None), out_axes=2)
    links = jax.vmap(lambda R, x: nodes(R, x, R[:, :, 0], x[:, 0]), in_axes=(2, 1), out_axes=2)
    return links(R, x)


# --- loads of the drive
class NodeLoads(NamedTuple):
    """Forces, dipoles and moments in world axes, wrenches in body axes."""

    force: Float[Array, "lin L K"] | None
    dipole: Float[Array, "lin lin L K"] | None
    moment: Float[Array, "a L K"] | None
    body: Float[Array, "d L K"] | None


def _loads(arm: "Assembly", t: ScalarLike, piece_time: PieceTime) -> NodeLoads:
    """All loads of the drive on the nodes."""
    structure, links = arm.structure, arm.robot.links
    lin, dim = structure.lin, structure.dim
    nodes, dtype = (structure.links, structure.elements + 1), arm.parameters.gravity.dtype
    force, moment = jnp.zeros((lin, *nodes), dtype), jnp.zeros((dim - lin, *nodes), dtype)
    dipole, body = jnp.zeros((lin, lin, *nodes), dtype), jnp.zeros((dim, *nodes), dtype)
    for load in arm.drive.loads:
        i = arm.robot.link_index(load.link)
        link = links[i]
        w = jnp.asarray(load.wrench.evaluate(t, piece_time)[0], dtype)
        w = jnp.concatenate([w[:2], w[5:]]) if structure.planar else w
        share, place = _share(link, load, nodes[1], dim)
        if load.frame == "world":
            f = w[:lin, None] * share[None]
            force = force.at[:, i].add(f)
            moment = moment.at[:, i].add(w[lin:, None] * share[None])
            if place is not None:
                dipole = dipole.at[:, :, i].add(place[1][:, None] * f[None])
        elif place is None:
            body = body.at[:, i].add(share[None] * w[:, None])
        else:
            body = body.at[:, i].add(share[None] * _transported(w, *place))
    levers = any(link.rigid or curved(link) for link in links)
    follower = any(load.frame == "section" for load in arm.drive.loads)
    return NodeLoads(force, dipole if levers else None, moment, body if follower else None)


Place = tuple[Float[Array, "lin lin K"], Float[Array, "lin K"]]


def _share(link: Link, load: Load, nodes: int, dim: int) -> tuple[Array, Place | None]:
    """(shares (K,) of the nodes in a load, place of its section from every node or None)."""
    lin = 2 if dim == 3 else 3
    if link.rigid:
        pose = centreline_pose(link, load.s)
        share = jnp.zeros(nodes, load.s.dtype).at[0].set(1.0)
        rotation = jnp.broadcast_to(pose.rotation[:lin, :lin, None], (lin, lin, nodes))
        return share, (rotation, jnp.broadcast_to(pose.position[:lin, None], (lin, nodes)))
    share = station_weights(load.s, nodes - 1)
    return share, place_on_arc(link, load.s, share, lin) if curved(link) else None


def _transported(
    wrench: Float[Array, " d"], rotation: Float[Array, "lin lin K"], lever: Float[Array, "lin K"]
) -> Float[Array, "d K"]:
    """A wrench on a section as a wrench on each node."""
    space = space_of(wrench.shape[0])
    one = lambda R, c: space.transport_wrench(space.Pose(R, c), wrench)
    return jax.vmap(one, in_axes=(2, 1), out_axes=1)(rotation, lever)


def place_on_arc(link: Link, s: Scalar, share: Float[Array, " K"], lin: int) -> Place:
    """Rotation from each node to the section at ``s``, and lever in the axes of each node.

    The lever begins at the point of the chord that the nodes' shares define.
    """
    stations = jnp.arange(share.shape[0], dtype=share.dtype) / (share.shape[0] - 1)
    nodes = jax.vmap(lambda s: centreline_pose(link, s))(stations)
    here = centreline_pose(link, s)
    off = here.position - jnp.sum(share[:, None] * nodes.position, axis=0)
    rotation = jnp.einsum("kji,jl->ilk", nodes.rotation, here.rotation)
    lever = jnp.einsum("kji,j->ik", nodes.rotation, off)
    return rotation[:lin, :lin], lever[:lin]


# --- balance of the nodes
def _pad(x: Array, front: int, back: int) -> Array:
    """Zeros on nodes that an element does not touch, for vectors (d, L, N, ...)."""
    return jnp.pad(x, ((0, 0), (0, 0), (front, back), *((0, 0),) * (x.ndim - 3)))


def _pad_blocks(x: Array, front: int, back: int) -> Array:
    """The same for matrices (d, d, L, N, ...)."""
    return jnp.pad(x, ((0, 0), (0, 0), (0, 0), (front, back), *((0, 0),) * (x.ndim - 4)))


def to_nodes(on_first: Array, on_last: Array) -> Array:
    """Vectors on the nodes from vectors on the first and the last node of every element."""
    return _pad(on_first, 0, 1) + _pad(on_last, 1, 0)


def momentum(mass: NodeBlocks, coupling: Array, V: NodeTwists) -> NodeTwists:
    """M V with diagonal blocks and the coupling of neighbours, as its diagonal or in full."""
    ahead, behind = V[:, :, 1:], V[:, :, :-1]
    if coupling.ndim == V.ndim:
        return mv(mass, V) + to_nodes(coupling * ahead, coupling * behind)
    return mv(mass, V) + to_nodes(mv(coupling, ahead), mtv(coupling, behind))


class Nodes(eqx.Module):
    """Nodes and elements at the start of a stage; a batch may stand behind the axes of all."""

    h: StepSize
    Q: Float[Array, "d L N *b"]
    momentum: NodeTwists
    rotation: NodeRotations
    mass: NodeBlocks
    coupling: Array  # (d, L, N, ...) or (d, d, L, N, ...)
    elements: Elements
    forces: NodeForces

    def resistance(self, V: NodeTwists) -> tuple[NodeTwists, Power]:
        """(wrenches of drag less those of weight and loads, power that drag dissipates)."""
        loss, damped = self.forces.damping(V)
        return damped - self.forces.wrench(self.rotation, self.h, V[self.rotation.shape[0] :]), loss

    def kinematics(self, V: NodeTwists) -> Kinematics:
        """What residual and blocks share."""
        return self.elements.kinematics(self.Q, self.h, V)

    def residual(
        self, V: NodeTwists, kinematics: Kinematics
    ) -> tuple[NodeTwists, Float[Array, "d L N *b"], Power]:
        """(wrenches that balance the nodes, Q, power dissipated)."""
        P = momentum(self.mass, self.coupling, V)
        resistance, drag_loss = self.resistance(V)
        fa, fb, Q, loss = self.elements.forces(self.Q, self.h, kinematics)
        rows = (P - self.momentum) / self.h - mv(coad(P), V) - to_nodes(fa, fb) + resistance
        return rows, Q, loss + drag_loss

    def blocks(
        self, V: NodeTwists, kinematics: Kinematics
    ) -> tuple[NodeBlocks, NodeBlocks, NodeBlocks]:
        """Derivative of the residual with respect to the twists: lower, diagonal, upper blocks."""
        h, adT = self.h[None], transpose(ad(V))
        P = momentum(self.mass, self.coupling, V)
        forces = self.forces.tangent(self.rotation, self.h, V)
        diagonal = self.mass / h - mm(adT, self.mass) - coad(P) - forces
        from_momentum = eye_like(adT) / h - adT
        before, after = from_momentum[:, :, :, :-1], from_momentum[:, :, :, 1:]
        if self.coupling.ndim == V.ndim:
            upper, lower = before * self.coupling[None], after * self.coupling[None]
        else:
            upper, lower = mm(before, self.coupling), mm(after, transpose(self.coupling))
        aa, ab, ba, bb = self.elements.tangent(self.Q, self.h, kinematics)
        return (
            _pad_blocks(lower - ba, 1, 0),
            diagonal - _pad_blocks(aa, 0, 1) - _pad_blocks(bb, 1, 0),
            _pad_blocks(upper - ab, 0, 1),
        )
