"""What all solvers of flexjax share."""

from typing import ClassVar

import diffrax
from jax import lax
from jaxtyping import Array, Bool, PyTree

from flexjax._types import PieceTime, ScalarLike
from flexjax.numerics.term import AbstractSecondOrderTerm, State


class AbstractStepSolver(diffrax.AbstractSolver):
    """A method of second order that reports the state at the end of a step, and no dense output."""

    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

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


def after_jump(
    made_jump: Bool[Array, ""] | bool,
    term: AbstractSecondOrderTerm,
    t0: ScalarLike,
    y0: State,
    args: PieceTime,
) -> State:
    """The state at the start of a step: prescribed rates may have jumped.

    A grid without breaks passes a plain False, which saves the code for it."""
    if made_jump is False or not term.prescribed(t0, args)[0].any():
        return y0
    return lax.cond(made_jump, lambda: term.with_prescribed_rates(t0, y0, args), lambda: y0)
