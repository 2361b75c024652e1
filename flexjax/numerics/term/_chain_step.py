"""A chain advanced from one time to the next by itself: the form of transfer-matrix methods, which
have no global matrices."""

import abc
from typing import Any

from jaxtyping import Array

from flexjax._types import PieceTime, ScalarLike
from flexjax.numerics.term._base import AbstractTerm, State


class AbstractChainStepTerm(AbstractTerm):
    """Mechanics whose implicit step is one sweep along a chain. ``carried`` is what a step passes
    to the next besides the state (accelerations, powers); the solver only stores it."""

    @abc.abstractmethod
    def start(self, t0: ScalarLike, t1: ScalarLike, y: State, piece_time: PieceTime) -> Any:
        """``carried`` at the state ``y``, as the equations of motion give it there, for a step from
        t0 to t1."""

    @abc.abstractmethod
    def advance(
        self,
        t0: ScalarLike,
        t1: ScalarLike,
        y: State,
        carried: Any,
        piece_time: PieceTime,
        beta: ScalarLike,
        gamma: ScalarLike,
    ) -> tuple[State, Any, Array]:
        """(state at t1, carried, whether it succeeded), by Newmark's rule with ``beta`` and
        ``gamma``."""
