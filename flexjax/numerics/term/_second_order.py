"""M(q) v' + h(q, v) = Q(t, q, v) with some coordinates prescribed: the form of floating-frame
chains."""

import abc
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.numerics.term._base import AbstractTerm, Limits, Mechanical, State


class EnergyFlow(eqx.Module):
    """Forces through which energy enters (drive, loads, base) and leaves (dampers, friction) at one
    time, with the velocities along which they act."""

    force: Float[Array, " k"]
    along: Float[Array, " k"]
    damped: Velocities
    v: Velocities

    def powers(self) -> tuple[Scalar, Scalar]:
        """(power of the drive, power dissipated)."""
        return jnp.sum(self.force * self.along), -jnp.sum(self.damped * self.v)

    def until(self, later: "EnergyFlow", dt: ScalarLike) -> tuple[Scalar, Scalar]:
        """(work of the drive, energy dissipated) of a step: mean forces times mean velocities.

        The trapezoidal rule moves by mean velocities, so that a linear system keeps its balance to
        rounding. The mean of the powers would count the squares of what alternates from step to
        step in stiff modes."""
        work = jnp.sum((self.force + later.force) * (self.along + later.along))
        lost = -jnp.sum((self.damped + later.damped) * (self.v + later.v))
        return 0.25 * dt * work, 0.25 * dt * lost


class AbstractSecondOrderTerm(AbstractTerm):
    """Second-order mechanics on configurations q with velocities v (both flat arrays).

    Rows of prescribed coordinates are imposed by the solver; ``balance`` in such a row is the
    effort that the prescription takes.
    """

    @abc.abstractmethod
    def accelerate(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> Velocities:
        """v' with prescribed rows as the drive says."""

    @abc.abstractmethod
    def balance(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        piece_time: PieceTime,
        memory: PyTree,
    ) -> Velocities:
        """M a + h - Q (nv,): zero in free rows when a is the acceleration."""

    @abc.abstractmethod
    def preconditioner(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        cm: ScalarLike,
        cv: ScalarLike,
        cq: ScalarLike,
        piece_time: PieceTime,
        memory: PyTree,
    ) -> PyTree:
        """Factors of a symmetric approximation P of cm M + cv dQ/dv + cq dQ/dq (signs turned), unit
        rows where prescribed."""

    def limits(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> Limits | None:
        """Efforts of controllers that have limits; None (static) where none has."""
        return None

    @abc.abstractmethod
    def precondition(self, factors: PyTree, r: Velocities) -> Velocities:
        """P^-1 r, at a cost linear in the length of the chain."""

    @abc.abstractmethod
    def move(self, q: Coordinates, dx: Velocities) -> Coordinates:
        """The configuration ``q`` displaced by ``dx`` (nv,)."""

    @abc.abstractmethod
    def prescribed(
        self, t: ScalarLike, piece_time: PieceTime
    ) -> tuple[np.ndarray, Velocities, Velocities, Velocities]:
        """(static mask (nv,), then coordinate, rate and acceleration (nv,) there; zero
        elsewhere)."""

    @abc.abstractmethod
    def impose(self, q: Coordinates, target: Velocities) -> Coordinates:
        """``q`` with prescribed coordinates replaced by ``target`` (nv,)."""

    @abc.abstractmethod
    def displacement(self, q: Coordinates, target: Velocities) -> Velocities:
        """``target - q`` (nv,) in the prescribed coordinates; zero elsewhere."""

    @abc.abstractmethod
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        """M(q) v."""

    @abc.abstractmethod
    def forces(
        self, t: ScalarLike, q: Coordinates, v: Velocities, piece_time: PieceTime, memory: PyTree
    ) -> tuple[Velocities, Velocities]:
        """Generalised forces without potential (nv,): (of drive and loads, of dampers and
        friction)."""

    def energy_flow(
        self,
        t: ScalarLike,
        q: Coordinates,
        v: Velocities,
        a: Velocities,
        piece_time: PieceTime,
        memory: PyTree,
    ) -> EnergyFlow:
        """Of drive and dampers when the acceleration is known already."""
        driven, damped = self.forces(t, q, v, piece_time, memory)
        locked = self.prescribed(t, piece_time)[0]
        if locked.any():
            reaction = self.balance(t, q, v, a, piece_time, memory)
            driven = driven + jnp.where(locked, reaction, 0.0)
        return EnergyFlow(driven, v, damped, v)

    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        q, v = y.mech.q, y.mech.v
        a = self.accelerate(t, q, v, piece_time, y.memory)
        return self.energy_flow(t, q, v, a, piece_time, y.memory).powers()

    def with_prescribed_rates(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        """An impulse acts on the prescribed coordinates alone. The momenta of the others stay, so
        that their rates jump too. The work of the impulse is the drive's."""
        mask, _, rate, _ = self.prescribed(t, piece_time)
        q, v = y.mech.q, y.mech.v
        if not mask.any():
            return y
        given = jnp.where(mask, rate - v, 0.0)
        if not self.drive.breaks().shape[0]:  # static: nothing jumps, and this is round-off
            return dataclasses.replace(y, mech=Mechanical(q, v + given))
        still = jax.tree.map(lax.stop_gradient, (self, t, q, v, piece_time, y.memory))
        frozen, (t, *at, piece_time, memory) = still[0], still[1:]
        factors = frozen.preconditioner(t, *at, 1.0, 0.0, 0.0, piece_time, memory)

        def mass(x):
            return jnp.where(mask, x, self.momentum(q, jnp.where(mask, 0.0, x)))

        rest = lax.custom_linear_solve(
            mass,
            jnp.where(mask, 0.0, -self.momentum(q, given)),
            lambda _, b: frozen.precondition(factors, b),
            symmetric=True,
        )
        change = given + rest
        work = y.work + jnp.sum((v + 0.5 * change) * self.momentum(q, change))
        return dataclasses.replace(y, mech=Mechanical(q, v + change), work=work)

    def held(self, t: ScalarLike, dx: Mechanical) -> Mechanical:
        mask = jnp.asarray(self.prescribed(t, None)[0])
        return Mechanical(mask, mask)

    def complete(self, t: ScalarLike, mech: Mechanical, piece_time: PieceTime) -> Mechanical:
        mask, value, rate, _ = self.prescribed(t, piece_time)
        return Mechanical(self.impose(mech.q, value), jnp.where(mask, rate, mech.v))

    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        return Mechanical(y.mech.v, self.accelerate(t, y.mech.q, y.mech.v, piece_time, y.memory))

    def imbalance(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        q, v = y.mech.q, y.mech.v
        mask, _, _, known = self.prescribed(t, piece_time)
        force = self.balance(t, q, v, jnp.where(mask, known, 0.0), piece_time, y.memory)
        return Mechanical(v, -force)

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return Mechanical(self.move(mech.q, dx.q), mech.v + dx.v)
