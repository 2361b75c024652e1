"""Rates that jump: at a break of the drive an impulse gives prescribed joints and the base new
rates. One code for every formulation and solver."""

import dataclasses
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike, Times
from flexjax.drive import Base, Drive, Motion
from flexjax.drive.signal import AbstractSignal
from flexjax.formulation import AbstractModel
from flexjax.numerics.term import State


class _Kicked(AbstractSignal):
    """A signal at a break after the piece ``before``: ``gain`` times the jump of its rate is added
    to its acceleration."""

    signal: AbstractSignal
    before: Scalar
    gain: Scalar

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None):
        value, rate, acceleration = self.signal.evaluate(t, piece_time)
        jump = rate - self.signal.evaluate(t, self.before)[1]
        return value, rate, acceleration + self.gain * jump

    def breaks(self) -> Times:
        return self.signal.breaks()


def _moving(drive: Drive) -> list[AbstractSignal]:
    """Signals that prescribe a motion."""
    base = () if drive.base is None else (drive.base.translation, drive.base.angle)
    joints = [act.signals()[0] for act in drive.joints.values() if act.prescribes]
    return [*joints, *(s for s in base if s is not None)]


def rates_jump(drive: Drive) -> bool:
    """Static: whether a prescribed rate may jump at a break."""
    return any(s.rate_jumps for s in _moving(drive))


def _kicked(drive: Drive, before: Scalar, gain: Scalar) -> Drive:
    def kick(signal):
        return None if signal is None else _Kicked(signal, before, gain)

    joints = {
        name: Motion(_Kicked(act.signals()[0], before, gain)) if act.prescribes else act
        for name, act in drive.joints.items()
    }
    base = drive.base
    if base is not None:
        base = Base(kick(base.translation), kick(base.angle), base.axis)
    return dataclasses.replace(drive, joints=joints, base=base)


def after_jump(
    model: AbstractModel,
    drive: Drive,
    t: ScalarLike,
    y: State,
    before: Scalar,
    after: PieceTime,
) -> State:
    """The state behind a break at ``t`` between the pieces ``before`` and ``after``.

    An impulse acts on prescribed joints and on the base alone. The momenta of all other coordinates
    stay, so that their rates jump too: they change as they would under prescribed accelerations
    as large as the jump. The work of the impulse is the drive's.
    """

    def rate(gain):
        return model.term(_kicked(drive, before, gain)).rate(t, y, after)

    term, zero = model.term(drive), jnp.zeros((), y.work.dtype)
    change = jax.jvp(rate, (zero,), (jnp.ones_like(zero),))[1]
    mech = term.complete(t, term.retract(y.mech, change), after)
    new = dataclasses.replace(y, mech=mech)
    kinetic = [model.energy(t, *x).kinetic for x in ((new, drive, after), (y, drive, before))]
    return dataclasses.replace(new, work=y.work + (kinetic[0] - kinetic[1]))


class AfterJumps(diffrax.AbstractWrappedSolver):
    """A solver in ``diffeqsolve``, which has no pieces: a step begins behind a break at its time.

    ``begin``: up to this time the state has the new rates already. ``scale``: the largest time.
    """

    solver: diffrax.AbstractSolver
    model: AbstractModel
    drive: Drive
    begin: Scalar
    scale: Scalar

    @property
    def term_structure(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.solver.term_structure

    @property
    def interpolation_cls(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.solver.interpolation_cls

    @property
    def scan_kind(self) -> Any:
        return getattr(self.solver, "scan_kind", "bounded")

    def order(self, terms: PyTree) -> int | None:
        return self.solver.order(terms)

    def error_order(self, terms: PyTree) -> Any:
        return self.solver.error_order(terms)

    def func(self, terms: PyTree, t0: ScalarLike, y0: State, args: PieceTime) -> State:
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms: PyTree, t0: ScalarLike, t1: ScalarLike, y0: State, args: PieceTime):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(
        self,
        terms: PyTree,
        t0: ScalarLike,
        t1: ScalarLike,
        y0: State,
        args: PieceTime,
        solver_state: Any,
        made_jump: Bool[Array, ""] | bool,
    ):
        y0, jumped = self.begun(t0, y0)
        return self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump | jumped)

    def begun(self, t0: ScalarLike, y0: State) -> tuple[State, Bool[Array, ""]]:
        """The state with which a step begins, and whether a rate jumped."""
        # Steps begin on a break or one rounding error behind it.
        before = lax.stop_gradient(t0 - 2 * jnp.finfo(self.scale.dtype).eps * self.scale)
        jumps = [
            jnp.any(s.evaluate(t0)[1] != s.evaluate(t0, before)[1]) for s in _moving(self.drive)
        ]
        jumped = jnp.any(jnp.stack(jumps)) & (t0 > self.begin)
        y = lax.cond(
            jumped,
            lambda: after_jump(self.model, self.drive, t0, y0, before, t0),
            lambda: y0,
        )
        return y, jumped
