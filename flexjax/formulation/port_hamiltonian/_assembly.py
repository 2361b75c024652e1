"""A mechanism under a drive: coordinates, poses of its nodes, forces in its joints, energies."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from flexjax import mechanism
from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.formulation.port_hamiltonian import _joint
from flexjax.formulation.port_hamiltonian._joint import JointStage, pick
from flexjax.formulation.port_hamiltonian._loops import LoopParameters, LoopPlan, Side, sides
from flexjax.formulation.port_hamiltonian._nodes import momentum
from flexjax.formulation.port_hamiltonian._parameters import MechanismParameters, Structure
from flexjax.mechanism import PLANAR, JointForces
from flexjax.numerics.linalg._components_first import mm, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import (
    orientation_matrix,
    orientation_of,
    rotate_by,
    space_of,
)
from flexjax.numerics.term import Instant, PortState, PortTangent, State
from flexjax.robot import Robot

# Rotation, position and twist of the ground.
Ground = tuple[Float[Array, "lin lin"], Float[Array, " lin"], Float[Array, " d"]]


class Assembly(eqx.Module):
    """Parameters (traced) and structure (static) of a mechanism, and its drive."""

    robot: Robot
    parameters: MechanismParameters
    loops: tuple[LoopParameters, ...]
    drive: Drive
    structure: Structure = eqx.field(static=True)
    plans: tuple[LoopPlan, ...] = eqx.field(static=True)

    # --- static facts
    @property
    def rotors(self) -> bool:
        return any(
            j.motor is not None and j.motor.rotor is not None for j in self.robot.tree_joints
        )

    @property
    def passive_hardware(self) -> bool:
        """Whether a joint has a spring, a damper, friction or stops."""
        return any(
            p is not None
            for j in self.robot.tree_joints
            for p in (j.stiffness, j.damping, j.friction, j.stops)
        )

    @property
    def joint_hardware(self) -> bool:
        """Whether a force in a joint depends on its motion."""
        return self.drive.acts(self.robot) or self.passive_hardware

    @property
    def locked(self) -> Bool[np.ndarray, " nv"]:
        """Rates that a Motion fixes: the motor of a flexible joint, or the joint."""
        return mechanism.locked(self.structure.coordinates, self.drive.prescribed(self.robot))

    def masks(self) -> tuple[Bool[np.ndarray, "L n"], Bool[np.ndarray, "L n"]]:
        """Unknowns of the joints that exist (not padded), and those that a Motion fixes."""
        table = self.structure.rate_table()
        return table < self.structure.coordinates.nv, np.append(self.locked, False)[table]

    # --- coordinates
    def move(self, q: Coordinates, dv: Velocities) -> Coordinates:
        """``q`` displaced by ``dv``."""
        return mechanism.move(self.structure.coordinates, q, dv)

    def coordinates(self, q: Coordinates) -> Float[Array, " D"]:
        """Link-side joint coordinates: rotation vectors for balls."""
        return mechanism.joint_coordinates(self.structure.coordinates, q)

    def motor_side(
        self, q: Coordinates, v: Velocities
    ) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Motor-side joint coordinates and rates."""
        return mechanism.motor_side(self.structure.coordinates, q, v)

    def to_v(self, per_dof: Float[Array, " D"]) -> Velocities:
        """Motor-side values per rate; those of flexible joints at their motors."""
        return mechanism.to_v(self.structure.coordinates, per_dof)

    def prescribed(
        self, t: ScalarLike, piece_time: PieceTime
    ) -> tuple[Velocities, Velocities, Velocities]:
        """Coordinates, rates and accelerations of all Motions; zero elsewhere."""
        x, xd, xdd = self.drive.motion(self.robot, t, piece_time)
        return self.to_v(x), self.to_v(xd), self.to_v(xdd)

    def plain(self, q: Coordinates) -> Velocities:
        """Coordinates in the order of v; zero at balls, which no Motion fixes."""
        table = self.structure.coordinates.q_of_v()
        return jnp.where(table >= 0, q[np.maximum(table, 0)], 0.0)

    def held(self, dx: PortTangent) -> PortTangent:
        """Masks of the tangent ``dx``: coordinates that a Motion holds."""
        mask = jnp.asarray(self.locked)
        return PortTangent(mask, mask, jnp.zeros(dx.V.shape, bool), jnp.zeros(dx.Q.shape, bool))

    def _joint_coordinates(
        self, q: Coordinates
    ) -> tuple[Float[Array, "L k"], Float[Array, "L D D"]]:
        """Plain coordinates and rotations of balls of all joints."""
        structure = self.structure
        lin = structure.lin
        plain = jnp.concatenate([q, jnp.zeros(1, q.dtype)])[structure.plain_table()]
        balls = jnp.broadcast_to(jnp.eye(lin, dtype=q.dtype), (structure.links, lin, lin))
        for joint, at, _ in structure.coordinates.balls:
            link = structure.joint_of.index(joint)
            balls = balls.at[link].set(se3.quat_to_matrix(q[at : at + 4]))
        return plain, balls

    # --- ground, joints, loops
    def ground(self, t: ScalarLike, piece_time: PieceTime) -> Ground:
        """Rotation, position and twist of the ground frame."""
        structure, dtype = self.structure, self.parameters.gravity.dtype
        lin = structure.lin
        if self.drive.base is None:
            zero = jnp.zeros(structure.dim, dtype)
            return jnp.eye(lin, dtype=dtype), zero[:lin], zero
        pose, twist, _ = self.drive.base.motion(t, piece_time)
        twist = twist[PLANAR] if structure.planar else twist
        return pose.rotation[:lin, :lin], pose.position[:lin], twist

    def ground_rate(self, t: ScalarLike, piece_time: PieceTime) -> Float[Array, " d"]:
        """Time derivative of the ground's twist."""
        if self.drive.base is None:
            return jnp.zeros(self.structure.dim, self.parameters.gravity.dtype)
        rate = self.drive.base.motion(t, piece_time)[2]
        return rate[PLANAR] if self.structure.planar else rate

    def at_parents(self, per_node: Float[Array, "*c L K"], ground: Array) -> Float[Array, "*c L"]:
        """Values at the nodes that carry the joints of all links."""
        rigid, tips = np.array(self.structure.rigid), per_node[..., -1]
        if rigid.any():
            mask = rigid.reshape((1,) * (tips.ndim - 1) + (-1,))
            tips = jnp.where(mask, per_node[..., 0], tips)
        return jnp.concatenate([tips, ground[..., None]], axis=-1)[
            ..., np.array(self.structure.parents)
        ]

    def joint_stage(
        self,
        mech: PortState,
        R: Float[Array, "lin lin L K"],
        h: Scalar | None,
        t: ScalarLike,
        piece_time: PieceTime,
    ) -> tuple[JointStage, Float[Array, " d"]]:
        """(joints at the start of a stage, twist of the ground); at ``t`` itself without ``h``."""
        start_R, _, ground_V = self.ground(t, piece_time)
        if h is not None:
            start_R = rotate_by(start_R, -h * ground_V[self.structure.lin :])
        plain, balls = self._joint_coordinates(mech.q)
        parents = jnp.moveaxis(self.at_parents(R, start_R), -1, 0)
        children = jnp.moveaxis(R[..., 0], -1, 0)
        spin = jnp.zeros(self.structure.links, R.dtype)
        if self.rotors:
            spin = self.spins(self.at_parents(mech.V, ground_V), mech.v)
        return JointStage(plain, balls, parents, children, spin), ground_V

    def spins(self, parents: Float[Array, "d L"], v: Velocities) -> Float[Array, " L"]:
        """Angular momenta of the rotors."""
        each = jax.vmap(_joint.spin_of, in_axes=(0, 1, 0))
        return each(self.parameters.joints, parents, self.structure.to_joints(v))

    def base_twists(
        self,
        joint: JointStage,
        h: Scalar | None,
        ground: Float[Array, " d"],
        y: Float[Array, "L n"],
        ends: Float[Array, "d L"],
    ) -> tuple[Float[Array, "d L"], Float[Array, "d L"]]:
        """(twists of the base nodes, twists of the nodes that carry the joints), from the unknowns
        of the joints and the twists of the last nodes."""
        structure = self.structure
        if any(structure.rigid):
            tip = lambda V0, rigid, end: jnp.where(rigid, V0, end)
            return self.outward(joint, h, ground, y, tip, ends.T)
        parents = jnp.concatenate([ends, ground[:, None]], axis=1)[:, np.array(structure.parents)]
        each = jax.vmap(_joint.base_twist, in_axes=(0, 0, None, 1, 0), out_axes=1)
        return each(self.parameters.joints, joint, h, parents, y), parents

    def outward(
        self,
        joint: JointStage,
        h: Scalar | None,
        ground: Array,
        y: Float[Array, "L n"],
        tip: Callable[..., Array],
        *rows: Array,
    ) -> tuple[Float[Array, "d L"], Float[Array, "d L"]]:
        """:func:`_joint.outward` for the links of this mechanism."""
        s, joints = self.structure, self.parameters.joints
        return _joint.outward(s.parents, s.order, s.rigid, joints, joint, h, ground, y, tip, *rows)

    def loop_sides(
        self,
        k: int,
        V: Float[Array, "d L K"],
        R: Float[Array, "lin lin L K"],
        x: Float[Array, "lin L K"],
        ground: Ground,
    ) -> tuple[Side, Side]:
        """Both sides of loop ``k``."""
        return sides(self.plans[k], self.loops[k], V, R, x, ground)

    # --- poses
    def _placements(
        self, q: Coordinates
    ) -> list[tuple[Float[Array, "lin lin"], Float[Array, " lin"]]]:
        """Per link (rotation, position) of its base in the axes of the parent's node."""
        plain, balls = self._joint_coordinates(q)
        joints, links = self.parameters.joints, range(self.structure.links)
        if self.structure.planar:
            return [_joint.relative(pick(joints, i), plain[i], balls[i]) for i in links]
        # All at once: their exponentials are compiled once.
        R, x = jax.vmap(_joint.relative)(joints, plain, balls)
        return [(R[i], x[i]) for i in links]

    def settle(self, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
        """``mech`` with the base nodes placed on their joints."""
        structure = self.structure
        ground_R, ground_x, _ = self.ground(t, piece_time)
        orientation, x, placed = mech.orientation, mech.x, self._placements(mech.q)
        R: dict[int, Array] = {}
        for i in structure.order:
            p = structure.parents[i]
            if p < 0:
                Rp, xp = ground_R, ground_x
            else:
                Rp = R[p] if structure.rigid[p] else orientation_matrix(orientation[:, p, -1])
                xp = x[:, p, structure.attachment(p)]
            R[i] = mm(Rp, placed[i][0])
            x = x.at[:, i, 0].set(xp + mv(Rp, placed[i][1]))
        near = jax.vmap(lambda R, before: _near(orientation_of(R), before), -1, -1)
        base = near(_joint.stack_links(R), orientation[:, :, 0])
        return PortState(mech.q, mech.v, mech.V, mech.Q, orientation.at[:, :, 0].set(base), x)

    def shape(
        self, t: ScalarLike, q: Coordinates, Q: Float[Array, "d L N"], piece_time: PieceTime
    ) -> tuple[Float[Array, "r L K"], Float[Array, "lin L K"]]:
        """(orientations, positions) of all nodes from joint coordinates and strains: products of
        exp(Q + n_hat l)."""
        structure, space = self.structure, space_of(self.structure.dim)
        ground_R, ground_x, _ = self.ground(t, piece_time)
        strains = Q + self.parameters.elements.shape
        # Poses (L, N): a scan runs along the nodes.
        steps = jax.vmap(jax.vmap(space.exp, in_axes=-1), in_axes=1)(strains)
        placed, poses = self._placements(q), {}
        for i in structure.order:
            p = structure.parents[i]
            at = space.Pose(ground_R, ground_x)
            if p >= 0:
                at = pick(poses[p], structure.attachment(p))
            base = space.compose(at, space.Pose(*placed[i]))

            def along(pose, step):
                new = space.compose(pose, step)
                return new, new

            rest = lax.scan(along, base, pick(steps, i))[1]
            poses[i] = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), base, rest)
        R, x = (
            jnp.stack([getattr(poses[i], part) for i in range(structure.links)])
            for part in ("rotation", "position")
        )
        orientation = jnp.moveaxis(jax.vmap(jax.vmap(orientation_of))(R), -1, 0)
        if structure.planar:
            # Angles add up along the link, so that they are continuous beyond half a revolution.
            orientation = orientation.at[:, :, 1:].set(
                orientation[:, :, :1] + jnp.cumsum(strains[2:], axis=2)
            )
        return orientation, jnp.moveaxis(x, -1, 0)

    # --- forces and energies
    def between(self, V: Float[Array, "d L K"]) -> Float[Array, "d L N"]:
        """Twists of the elements: the mean of both ends, or weighted by alpha."""
        a = 0.5 if self.parameters.alpha is None else self.parameters.alpha
        return a * V[:, :, :-1] + (1 - a) * V[:, :, 1:]

    def momentum(self, V: Float[Array, "d L K"]) -> Float[Array, "d L K"]:
        return momentum(self.parameters.mass, self.parameters.mass_coupling, V)

    def advanced_memory(self, memory: PyTree, mech: PortState) -> PyTree:
        """The memory for the step that starts at ``mech``."""
        sides = mechanism.joint_sides(self.structure.coordinates, mech.q, mech.v)
        return mechanism.advanced_bristles(self.parameters.hardware, memory, *sides)

    def energy_of(self, t: ScalarLike, y: State, piece_time: PieceTime) -> mechanism.Energy:
        """All energies of a state."""
        sides = mechanism.joint_sides(self.structure.coordinates, y.mech.q, y.mech.v)
        bristles = mechanism.bristle_energy(self.parameters.hardware, y.memory, *sides)
        return mechanism.energy_of(self.energies(t, y.mech, piece_time), y, bristles)

    def joint_forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> JointForces:
        """Generalised forces of springs and stops, motors, dampers and friction."""
        structure, robot, drive = self.structure, self.robot, self.drive
        if self.passive_hardware:
            hardware = self.parameters.hardware
            now = Instant(t, piece_time, memory)
            return mechanism.joint_forces(structure.coordinates, hardware, drive, robot, now, q, v)
        driven = zero = jnp.zeros_like(v)
        if drive.acts(robot):
            x, xd = self.motor_side(q, v)
            driven = self.to_v(drive.effort(robot, t, piece_time, x, xd, memory))
        return JointForces(zero, driven, zero)

    def energies(
        self, t: ScalarLike, y: PortState, piece_time: PieceTime
    ) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        parameters, structure = self.parameters, self.structure
        kinetic = 0.5 * jnp.sum(y.V * self.momentum(y.V))
        if parameters.inertia is not None:
            kinetic = kinetic + 0.5 * jnp.sum(parameters.inertia * self.between(y.V) ** 2)
        rigid = np.array(structure.rigid)
        if rigid.any():
            # Further nodes of rigid links have unit inertia.
            unused = jnp.where(rigid[None, :, None], y.V[:, :, 1:] ** 2, 0.0)
            kinetic = kinetic - 0.5 * jnp.sum(unused)
        if self.rotors:
            # A rotor on the ground rotates with it.
            ground = self.ground(t, piece_time)[2]
            spin, rotor = self.spins(self.at_parents(y.V, ground), y.v), parameters.joints.rotor
            each = jnp.where(rotor > 0, spin**2 / jnp.where(rotor > 0, rotor, 1.0), 0.0)
            kinetic = kinetic + 0.5 * jnp.sum(each)
        joints = mechanism.joint_energy(structure.coordinates, parameters.hardware, y.q)
        moment = parameters.weight[None] * y.x
        if parameters.moment is not None:
            moment = moment + mv(orientation_matrix(y.orientation), parameters.moment)
        gravity = -jnp.sum(moment * parameters.gravity[:, None, None])
        return kinetic, parameters.elements.energy(y.Q) + joints, gravity


def _near(orientation: Float[Array, " r"], before: Float[Array, " r"]) -> Float[Array, " r"]:
    """The same orientation, written as close to ``before`` as possible."""
    if orientation.shape[0] == 1:
        return orientation + 2 * jnp.pi * lax.stop_gradient(
            jnp.round((before - orientation) / (2 * jnp.pi))
        )
    return orientation * jnp.where(jnp.sum(orientation * before) < 0, -1.0, 1.0)
