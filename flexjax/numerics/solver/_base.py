"""What all solvers of flexjax share."""

from typing import ClassVar

import diffrax
from jaxtyping import Array, Bool, PyTree

from flexjax._types import PieceTime, ScalarLike
from flexjax.numerics.term import State


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
    return results.where(ok, results.successful, results.nonlinear_divergence)  # pyright: ignore[reportArgumentType]
