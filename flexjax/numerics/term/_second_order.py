"""M(q) v' + h(q, v) = Q(t, q, v) with some coordinates prescribed: the form of floating-frame
chains."""

import abc
import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.numerics.term._base import AbstractTerm, Limits, Mechanical, State

Prescribed = tuple[Bool[np.ndarray, " nv"], Velocities, Velocities, Velocities]


class Instant(eqx.Module):
    """A time, the time that picks the piece of a piecewise signal (None: the same), and
    the memory of sampled controllers."""

    t: ScalarLike
    piece_time: PieceTime = None
    memory: PyTree = ()


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

    The solver imposes prescribed coordinates; ``balance`` in such a row is the effort that the
    prescription requires. Methods about coordinates assume that v is the rate of q; a term with
    rotations overrides them.
    """

    @abc.abstractmethod
    def accelerate(self, now: Instant, q: Coordinates, v: Velocities) -> Velocities:
        """v', in prescribed rows that of the drive."""

    @abc.abstractmethod
    def balance(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> Velocities:
        """M a + h - Q (nv,): zero in free rows when a is the acceleration."""

    @abc.abstractmethod
    def momentum(self, q: Coordinates, v: Velocities) -> Velocities:
        """M(q) v."""

    @abc.abstractmethod
    def forces(self, now: Instant, q: Coordinates, v: Velocities) -> tuple[Velocities, Velocities]:
        """Generalised forces without potential (nv,): (of drive and loads, of dampers and
        friction)."""

    @abc.abstractmethod
    def prescribed(self, t: ScalarLike, piece_time: PieceTime) -> Prescribed:
        """(static mask (nv,), then coordinate, rate and acceleration (nv,) there; zero
        elsewhere)."""

    @abc.abstractmethod
    def preconditioner(
        self, now: Instant, q: Coordinates, v: Velocities, cv: ScalarLike, cq: ScalarLike
    ) -> PyTree:
        """Factors of a symmetric approximation P of M - cv dQ/dv - cq dQ/dq, with unit rows where
        prescribed."""

    @abc.abstractmethod
    def precondition(self, factors: PyTree, r: Velocities) -> Velocities:
        """P^-1 r, at a cost linear in the length of the chain."""

    def limits(self, now: Instant, q: Coordinates, v: Velocities) -> Limits | None:
        """Efforts of controllers that have limits; None (static) where none has."""
        return None

    # --- coordinates
    def move(self, q: Coordinates, dx: Velocities) -> Coordinates:
        """The configuration ``q`` displaced by ``dx`` (nv,)."""
        return q + dx

    def ambient(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return dx

    def impose(
        self, q: Coordinates, mask: Bool[np.ndarray, " nv"], target: Velocities
    ) -> Coordinates:
        """``q`` with the coordinates of ``mask`` replaced by ``target`` (nv,)."""
        return jnp.where(mask, target, q)

    def displacement(
        self, q: Coordinates, mask: Bool[np.ndarray, " nv"], target: Velocities
    ) -> Velocities:
        """``target - q`` (nv,) in the coordinates of ``mask``; zero elsewhere."""
        return jnp.where(mask, target - q, 0.0)

    def retract(self, mech: Mechanical, dx: Mechanical) -> Mechanical:
        return Mechanical(self.move(mech.q, dx.q), mech.v + dx.v)

    def held(self, t: ScalarLike, dx: Mechanical) -> Mechanical:
        mask = jnp.asarray(self.prescribed(t, None)[0])
        return Mechanical(mask, mask)

    def complete(self, t: ScalarLike, mech: Mechanical, piece_time: PieceTime) -> Mechanical:
        mask, value, rate, _ = self.prescribed(t, piece_time)
        return Mechanical(self.impose(mech.q, mask, value), jnp.where(mask, rate, mech.v))

    # --- dynamics
    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        now = Instant(t, piece_time, y.memory)
        return Mechanical(y.mech.v, self.accelerate(now, y.mech.q, y.mech.v))

    def imbalance(self, t: ScalarLike, y: State, piece_time: PieceTime) -> Mechanical:
        q, v = y.mech.q, y.mech.v
        mask, _, _, known = self.prescribed(t, piece_time)
        now = Instant(t, piece_time, y.memory)
        return Mechanical(v, -self.balance(now, q, v, jnp.where(mask, known, 0.0)))

    def energy_flow(self, now: Instant, q: Coordinates, v: Velocities, a: Velocities) -> EnergyFlow:
        """Energy flow of drive and dampers at a known acceleration."""
        driven, damped = self.forces(now, q, v)
        locked = self.prescribed(now.t, now.piece_time)[0]
        if locked.any():
            driven = driven + jnp.where(locked, self.balance(now, q, v, a), 0.0)
        return EnergyFlow(driven, v, damped, v)

    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        now, q, v = Instant(t, piece_time, y.memory), y.mech.q, y.mech.v
        return self.energy_flow(now, q, v, self.accelerate(now, q, v)).powers()

    def with_prescribed_rates(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        mask, _, rate, _ = self.prescribed(t, piece_time)
        mech = Mechanical(y.mech.q, jnp.where(mask, rate, y.mech.v))
        return dataclasses.replace(y, mech=mech) if mask.any() else y
