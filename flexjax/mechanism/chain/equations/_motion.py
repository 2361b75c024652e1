"""Coordinates, motion and inertia of a serial chain under a drive."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import Coordinates, PieceTime, ScalarLike, Velocities
from flexjax.mechanism.chain.equations._loads import GeneralisedForce
from flexjax.mechanism.chain.equations._records import KinematicState
from flexjax.mechanism.chain.geometry._kinematics import (
    Kinematics,
    at_tip,
    from_joints,
    from_shapes,
    inward,
    kinematics,
    mtv,
    mv,
    onto_next,
    outward,
    poses,
    tip_wrench,
    to_joints,
    to_shapes,
)
from flexjax.mechanism.chain.geometry._layout import Layout
from flexjax.mechanism.chain.geometry._links import AbstractLinks, Eta, Mass, Twists
from flexjax.mechanism.chain.geometry._parameters import PLANAR, Parameters
from flexjax.mechanism.joints import _coordinates as coordinates
from flexjax.mechanism.joints._bristles import advanced_bristles, bristle_energy
from flexjax.mechanism.joints._joint_forces import joint_sides
from flexjax.numerics.screw import se3
from flexjax.numerics.term import (
    AbstractLagrangianTerm,
    Instant,
    Mechanical,
    Prescribed,
    State,
)
from flexjax.robot import Robot

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


class AbstractMovingChain(AbstractLagrangianTerm):
    """Coordinates, twists and inertia of a chain; the dynamics build on it."""

    robot: AbstractVar[Robot]
    parameters: AbstractVar[Parameters]
    layout: AbstractVar[Layout]
    links: AbstractVar[AbstractLinks | None]  # None: all are rigid

    # --- coordinates
    @property
    def _tables(self):
        index, mask = self.layout.dof_table()
        motor = self.layout.motor_table()
        return index, mask, motor, motor < self.layout.nv

    def move(self, q: Coordinates, dx: Velocities) -> Coordinates:
        return coordinates.move(self.layout.coordinates, q, dx)

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return Mechanical(coordinates.ambient_rate(self.layout.coordinates, mech.q, dx.q), dx.v)

    @property
    def locked(self) -> np.ndarray:
        return coordinates.locked(self.layout.coordinates, self.drive.prescribed(self.robot))

    def prescribed(self, t: ScalarLike, piece_time: PieceTime) -> Prescribed:
        motion, layout = self.drive.motion(self.robot, t, piece_time), self.layout.coordinates
        x, xd, xdd = (coordinates.to_v(layout, z) for z in motion)
        return self.locked, x, xd, xdd

    def impose(
        self, q: Coordinates, mask: Bool[np.ndarray, " nv"], target: Velocities
    ) -> Coordinates:
        where = np.flatnonzero(mask)
        return q.at[self.layout.coordinates.q_of_v()[where]].set(target[where])

    def displacement(
        self, q: Coordinates, mask: Bool[np.ndarray, " nv"], target: Velocities
    ) -> Velocities:
        where = np.flatnonzero(mask)
        now = q[self.layout.coordinates.q_of_v()[where]]
        return jnp.zeros_like(target).at[where].set(target[where] - now)

    def coordinates(self, q: Coordinates) -> Float[Array, " D"]:
        """Link-side joint coordinates (D,): rotation vectors for balls."""
        return coordinates.joint_coordinates(self.layout.coordinates, q)

    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        return coordinates.motor_side(self.layout.coordinates, y.mech.q, y.mech.v)

    def next_memory(
        self, t0: ScalarLike, t1: ScalarLike, y: State, strains: PyTree = None
    ) -> PyTree:
        memory = super().next_memory(t0, t1, y, strains)
        sides = joint_sides(self.layout.coordinates, y.mech.q, y.mech.v)
        return advanced_bristles(self.parameters.hardware, memory, *sides)

    def bristle_energy(self, y: State) -> ScalarLike:
        """Energy of the joints' bristles."""
        sides = joint_sides(self.layout.coordinates, y.mech.q, y.mech.v)
        return bristle_energy(self.parameters.hardware, y.memory, *sides)

    def _rows(
        self, joints: Float[Array, " D"], shapes: Eta, rotors: Velocities | None = None
    ) -> Velocities:
        """(nv,) from generalised forces on joints (D,), shape coordinates (B, m), rotors (nv,)."""
        motors = jnp.zeros(len(self.layout.coordinates.motors), joints.dtype)
        rest = jnp.zeros(sum(self.layout.shapes), joints.dtype)
        out = jnp.concatenate([joints, motors, rest]) + from_shapes(self.layout, shapes)
        return out if rotors is None else out + rotors

    # --- kinematics
    def _base(
        self, t: ScalarLike, piece_time: PieceTime
    ) -> tuple[se3.Pose, Float[Array, " dim"], Float[Array, " dim"]]:
        """Pose, twist and acceleration of the base."""
        space, dtype = self.parameters.space, self.parameters.gravity.dtype
        if self.drive.base is None:
            still = jnp.zeros(space.DIM, dtype)
            return space.identity(dtype), still, still
        pose, twist, acc = self.drive.base.motion(t, piece_time)
        if self.layout.planar:
            pose = se3.Pose(pose.rotation[:2, :2], pose.position[:2])
            twist, acc = twist[PLANAR], acc[PLANAR]
        return pose, twist, acc

    def motion(self, now: Instant, q: Coordinates, v: Velocities) -> KinematicState:
        parameters, space = self.parameters, self.parameters.space
        kin = kinematics(self.layout, parameters, q, self.links)
        base, twist, acc = self._base(now.t, now.piece_time)
        # Linear accelerations are component derivatives u'; gravity g enters as u' - R^T g.
        acc = acc - jnp.pad(base.rotation.T @ parameters.gravity, (0, space.DIM - space.LIN))
        own = mv(kin.screw, to_joints(self.layout, v))
        eta, rate = to_shapes(self.layout, q), to_shapes(self.layout, v)
        deformation = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
        z = outward(kin, twist, own + onto_next(kin, deformation))
        world, tips = poses(parameters, kin, base), at_tip(kin, z, deformation)
        return KinematicState(kin, world, z, own, tips, eta, rate, q, v, twist, acc)

    # --- rotors
    @property
    def _rotors(self) -> bool:
        """Whether any joint has a rotor."""
        return any(j.motor is not None and j.motor.rotor is not None for j in self.robot.joints)

    def _spin(self, section_rate: Twists, v: Velocities) -> Float[Array, " B"]:
        """Rate (or acceleration) of every rotor about its axis."""
        index, _, motor, has = self._tables
        padded = jnp.concatenate([v, jnp.zeros(1, v.dtype)])
        spin = self.parameters.gear * padded[np.where(has, motor, index[:, 0])]
        return jnp.sum(self.parameters.rotor_axis * section_rate, axis=1) + spin

    def _on_rotor_coordinates(self, per_stage: Float[Array, " B"]) -> Velocities:
        """Generalised forces (nv,) of the rotors from their torques (B,)."""
        index, _, motor, has = self._tables
        where = np.where(has, motor, index[:, 0])
        out = jnp.zeros(self.layout.nv + 1, per_stage.dtype)
        return out.at[where].add(self.parameters.gear * per_stage)[:-1]

    def _rotor_force(self, spin: Float[Array, " B"]) -> Twists:
        return (self.parameters.rotor * spin)[:, None] * self.parameters.rotor_axis

    def _gyroscopic(self, section: Twists, spin: Float[Array, " B"]) -> Twists:
        """Wrench on the section that rotates the spin of the rotors with it."""
        momentum = self._rotor_force(spin)
        return -jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p)(section, momentum)

    # --- inertia
    def mass(self, eta: Eta) -> Mass:
        """Mass matrices of bodies and links together."""
        if self.links is None:
            none = jnp.zeros((*self.parameters.inertia.shape[:2], 0), eta.dtype)
            return Mass(self.parameters.inertia, none, None)
        mass = self.links.mass(eta)
        return Mass(self.parameters.inertia + mass.zz, mass.ze, mass.ee)

    def _kinematics_and_mass(self, q: Coordinates) -> tuple[Kinematics, Mass]:
        kin = kinematics(self.layout, self.parameters, q, self.links)
        return kin, self.mass(to_shapes(self.layout, q))

    def _times(self, mass: Mass, z: Twists, x: Eta) -> GeneralisedForce:
        """The mass matrices of the bodies times (z, x)."""
        shape = mtv(mass.ze, z)
        shape = shape if self.links is None else shape + self.links.apply(mass, x)
        return GeneralisedForce(mv(mass.zz, z) + mv(mass.ze, x), shape)

    def _on_coordinates(
        self,
        kin: Kinematics,
        force: GeneralisedForce,
        rotors: Twists | None,
        spins: Float[Array, " B"] | None = None,
    ) -> tuple[Velocities, Twists, Float[Array, " dim"]]:
        """Generalised forces (nv,), wrenches, and wrench on the ground.

        They balance ``force`` on the bodies, ``rotors`` on the sections, and torques ``spins``
        about the rotors' axes.
        """
        W, ground = inward(kin, force.wrench, rotors)
        shape = force.shape
        if kin.tip is not None:
            shape = shape + mtv(kin.tip.S, tip_wrench(kin, W, rotors))
        on_rotors = None if spins is None else self._on_rotor_coordinates(spins)
        return self._rows(from_joints(self.layout, mtv(kin.screw, W)), shape, on_rotors), W, ground
