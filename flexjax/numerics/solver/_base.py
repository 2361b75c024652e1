"""What all solvers of flexjax share."""

import abc
from typing import Any, ClassVar

import diffrax
from jaxtyping import Array, Bool, PyTree

from flexjax._types import PieceTime, ScalarLike
from flexjax.numerics.term import State, Step, unwrap

Jump = Bool[Array, ""] | bool  # whether the drive jumps at the start of a step


class AbstractStepSolver(diffrax.AbstractSolver):
    """A method of second order that reports the state at the end of a step, and no dense output.

    diffrax calls ``init`` and ``step``; a method of flexjax writes ``begin`` and ``advance``.
    """

    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    @abc.abstractmethod
    def begin(self, term: Any, step: Step, y0: State) -> PyTree:
        """The solver's own state before the first step."""

    @abc.abstractmethod
    def advance(
        self, term: Any, step: Step, y0: State, solver_state: Any, made_jump: Jump
    ) -> tuple[State, State | None, PyTree, Bool[Array, ""]]:
        """(state at the end, estimate of its error, own state, whether the step converged)."""

    def init(
        self, terms: PyTree, t0: ScalarLike, t1: ScalarLike, y0: State, args: PieceTime
    ) -> PyTree:
        return self.begin(unwrap(terms), Step(t0, t1, args), y0)

    def step(
        self,
        terms: PyTree,
        t0: ScalarLike,
        t1: ScalarLike,
        y0: State,
        args: PieceTime,
        solver_state: PyTree,
        made_jump: Jump,
        running: Bool[Array, ""] | bool = True,
    ):
        term, step = unwrap(terms), Step(t0, t1, args, running)
        y1, error, state, ok = self.advance(term, step, y0, solver_state, made_jump)
        return y1, error, dict(y0=y0, y1=y1), state, outcome(ok)

    def order(self, terms: PyTree) -> int:
        return 2

    def func(self, terms: PyTree, t0: ScalarLike, y0: State, args: PieceTime) -> State:
        return terms.vf(t0, y0, args)


def outcome(ok: Bool[Array, ""]) -> diffrax.RESULTS:
    """Success, or failure of Newton's iteration."""
    results = diffrax.RESULTS
    # pyright takes the members of an equinox enumeration for literals of another type.
    good, bad = results.successful, results.nonlinear_divergence
    return results.where(ok, good, bad)  # pyright: ignore[reportArgumentType]
