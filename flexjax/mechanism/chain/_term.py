"""The second-order term of a serial chain of rigid bodies and flexible links under a drive."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Scalar, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.mechanism.chain.equations._dynamics import AbstractChainDynamics
from flexjax.mechanism.chain.equations._loads import GeneralisedForce
from flexjax.mechanism.chain.equations._records import KinematicState, Momenta
from flexjax.mechanism.chain.geometry._kinematics import (
    Kinematics,
    at_tip,
    behind,
    contacts,
    from_joints,
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
from flexjax.mechanism.chain.geometry._links import AbstractLinks, Mass, MotionPair, sliding_links
from flexjax.mechanism.chain.geometry._parameters import Parameters
from flexjax.mechanism.joints._joint_forces import joint_energy, spring_forces
from flexjax.numerics.screw import se3
from flexjax.numerics.term import (
    Instant,
    OnGround,
    Step,
)
from flexjax.robot import Robot


class ChainTerm(AbstractChainDynamics):
    """Equations of motion of a serial chain under one drive; ``links`` is None if all are rigid.

    Here are its momenta and energies, which an energy-conserving step requires.
    """

    robot: Robot
    parameters: Parameters
    drive: Drive
    layout: Layout = eqx.field(static=True)
    links: AbstractLinks | None = None

    # --- momenta
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        return self._momenta(kin, mass, v[None], self._still(1))[0].p[0]

    def _momenta(
        self,
        kin: Kinematics,
        mass: Mass,
        v: Float[Array, "k nv"],
        base: Float[Array, "k dim"],
        *others: GeneralisedForce,
    ) -> tuple[Momenta, Array, Array]:
        """Momenta at k velocities and twists of the base, forces that balance ``others``, and the
        parts of both that the base carries (k + others, dim)."""

        def moving(v, base):
            rate, own = to_shapes(self.layout, v), mv(kin.screw, to_joints(self.layout, v))
            deformation = jnp.zeros_like(own) if kin.tip is None else mv(kin.tip.S, rate)
            z = outward(kin, base, own + onto_next(kin, deformation))
            rotors = spins = None
            if self._rotors:
                spin = self._spin(behind(at_tip(kin, z, deformation), base), v)
                rotors, spins = self._rotor_force(spin), self.parameters.rotor * spin
            slide = v[self.layout.slide_table()[0]] if self.layout.slides else z[:, 0]
            return self._times(mass, z, rate), rotors, spins, z, z - own, rate, slide

        force, rotors, spins, *rest = jax.vmap(moving)(v, base)
        k, more = v.shape[0], len(others)
        tree = jax.tree.map
        carried = tree(lambda x, *y: jnp.concatenate([x, *(z[None] for z in y)]), force, *others)
        padding = lambda x: jnp.pad(x, [(0, more)] + [(0, 0)] * (x.ndim - 1))
        p, W, ground = jax.vmap(lambda force, rotors: self._on_coordinates(kin, force, *rotors))(
            carried, tree(padding, (rotors, spins))
        )
        T = jax.vmap(lambda W, rotors: tip_wrench(kin, W, rotors))(W[:k], rotors)
        return Momenta(p[:k], W[:k], T, *rest), p[k:], ground

    def _still(self, count: int) -> Float[Array, "k dim"]:
        """Twists of a base at rest."""
        return jnp.zeros((count, self.parameters.space.DIM), self.parameters.gravity.dtype)

    # --- Lagrangian
    def lagrangian(
        self, q: Coordinates, va: Velocities, vb: Velocities
    ) -> tuple[Velocities, Velocities, Velocities]:
        rest = self.parameters.space.identity(q.dtype)
        return self._lagrangian(q, va, vb, rest, self._still(2))[0]

    def _lagrangian(
        self,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        pose: se3.Pose,
        twists: Float[Array, "2 dim"],
    ) -> tuple[tuple[Velocities, Velocities, Velocities], Float[Array, "3 dim"]]:
        """``lagrangian`` on a base with this pose and these twists; its momenta, and the weight
        that it carries."""
        # One mass matrix for both: XLA merges two equal ones, but not their derivatives.
        kin, mass = self._kinematics_and_mass(q)
        both, (weight,), ground = self._momenta(
            kin, mass, jnp.stack([va, vb]), twists, self._weight(kin, mass, pose)
        )
        gradient = self._kinetic_gradient(q, both) + weight - self._elastic_gradient(q)
        return (both.p[0], both.p[1], gradient), ground

    def lagrangian_on_ground(
        self, step: Step, s: ScalarLike, q: Coordinates, va: Velocities, vb: Velocities
    ) -> OnGround:
        if self.drive.base is None:
            return (*self.lagrangian(q, va, vb), None)
        za, zb = (self._base(t, step.piece_time)[1] for t in (step.t0, step.t1))
        pose, twist, _ = self._base(step.t0 + s * step.dt, step.piece_time)
        own, (Pa, Pb, weight) = self._lagrangian(q, va, vb, pose, jnp.stack([za, zb]))
        mean = 0.5 * (za + zb)
        return (*own, (jnp.sum(mean * Pa), jnp.sum(mean * Pb), -jnp.sum(twist * weight)))

    # --- its gradient
    def kinetic_gradient(self, q: Coordinates, va: Velocities, vb: Velocities) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        both = self._momenta(kin, mass, jnp.stack([va, vb]), self._still(2))[0]
        return self._kinetic_gradient(q, both)

    def _kinetic_gradient(self, q: Coordinates, both: Momenta) -> Velocities:
        star = jax.vmap(jax.vmap(lambda z, p: self.parameters.space.ad_star(z) @ p))
        transported = jnp.sum(star(both.arriving, both.W[::-1]), axis=0)
        joints = from_joints(self.layout, 0.5 * mtv(self.parameters.screw, transported))
        eta = to_shapes(self.layout, q)
        links = self.links
        if links is None:
            return self._rows(joints, eta)

        # Momenta are the multipliers of the recursion of twists: with them fixed, the dependence
        # on the shape of a link is local to it.
        motions = MotionPair(both.z, both.rate)
        own = links.kinetic_gradient(eta, motions)
        if not self.layout.slides:
            tips = links.tip_gradient(eta, motions, both.T[::-1], self.parameters.space)
            return self._rows(joints, own + tips)

        def on_contacts(eta, q):
            tip, along = contacts(self.layout, sliding_links(links), eta, q)
            Xt = jax.vmap(self.parameters.space.adjoint_inverse)(tip.pose)
            twists = [
                mv(Xt, both.z[i]) + mv(tip.S, both.rate[i]) + along * both.slide[i][:, None]
                for i in range(2)
            ]
            return 0.5 * (jnp.sum(both.T[1] * twists[0]) + jnp.sum(both.T[0] * twists[1]))

        shape, contact = jax.grad(on_contacts, argnums=(0, 1))(eta, q)
        return self._rows(joints + contact[: self.layout.dofs], own + shape)

    def potential_gradient(self, q: Coordinates) -> Velocities:
        kin, mass = self._kinematics_and_mass(q)
        rest = self.parameters.space.identity(q.dtype)
        weight = self._on_coordinates(kin, self._weight(kin, mass, rest), None)[0]
        return self._elastic_gradient(q) - weight

    def _weight(self, kin: Kinematics, mass: Mass, base: se3.Pose) -> GeneralisedForce:
        lin = self.parameters.space.LIN
        world = poses(self.parameters, kin, base)
        down = jax.vmap(lambda R: R.T @ self.parameters.gravity)(world.rotation)
        return GeneralisedForce(mv(mass.zz[:, :, :lin], down), mtv(mass.ze[:, :lin, :], down))

    def _elastic_gradient(self, q: Coordinates) -> Velocities:
        eta = to_shapes(self.layout, q)
        shapes = jnp.zeros_like(eta) if self.links is None else self.links.elastic_force(eta)
        joints = jnp.zeros(self.layout.dofs, q.dtype)
        springs = spring_forces(self.layout.coordinates, self.parameters.hardware, q)
        return self._rows(joints, shapes) - springs

    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        out = jnp.zeros_like(p)
        for s in self.layout.coordinates.balls:
            sl = slice(s.v_start, s.v_start + 3)
            out = out.at[sl].set(jnp.cross(p[sl], v[sl]))
        return out

    def kinks(self, q: Coordinates, dx: Velocities) -> Float[Array, " k"]:
        links = self.links
        if links is None or not self.layout.slides:
            return jnp.zeros(0, q.dtype)
        index, sliding = self.layout.slide_table()
        station, rate = (jnp.where(sliding, x[index] / links.length, 0.0) for x in (q, dx))
        eta, eta_rate = to_shapes(self.layout, q), to_shapes(self.layout, dx)
        return sliding_links(links).kink(eta, station, eta_rate, rate)[np.flatnonzero(sliding)]

    # --- energies
    def elastic_energy(self, q: Coordinates) -> Scalar:
        joints = joint_energy(self.layout.coordinates, self.parameters.hardware, q)
        if self.links is None:
            return joints
        return joints + jnp.sum(self.links.elastic_energy(to_shapes(self.layout, q)))

    def energies(
        self,
        now: Instant,
        q: Coordinates,
        v: Velocities,
        motion: KinematicState | None = None,
    ) -> tuple[Scalar, Scalar, Scalar]:
        """(kinetic, elastic, gravity)."""
        parameters = self.parameters
        m = self.motion(now, q, v) if motion is None else motion
        mass = self.mass(m.eta)
        own = self._times(mass, m.z, m.rate)
        kinetic = 0.5 * (jnp.sum(m.z * own.wrench) + jnp.sum(m.rate * own.shape))
        if self._rotors:
            spin = self._spin(behind(m.z_tip, m.base_twist), v)
            kinetic = kinetic + 0.5 * jnp.sum(parameters.rotor * spin**2)
        moment = jax.vmap(lambda inertia: _mass_moment(inertia, parameters.space.LIN))(mass.zz)
        first = mv(m.world.rotation, moment)
        gravity = -jnp.sum((mass.zz[:, 0, :1] * m.world.position + first) @ parameters.gravity)
        return kinetic, self.elastic_energy(q), gravity


def _mass_moment(inertia: Float[Array, "dim dim"], lin: int) -> Float[Array, " lin"]:
    """Mass times the centre of mass, from the coupling block of a body's inertia."""
    if lin == 2:
        return jnp.stack([inertia[1, 2], -inertia[0, 2]])
    return jnp.stack([inertia[5, 1], inertia[3, 2], inertia[4, 0]])
