"""A chain advanced from one time to the next by itself: the form of transfer-matrix methods, which
have no global matrices."""

import abc
from typing import Any

from jaxtyping import Array

from flexjax.numerics.term._base import AbstractTerm, State


class AbstractChainStepTerm(AbstractTerm):
    """Mechanics whose implicit step is one sweep along a chain. ``carried`` is what a step passes
    to the next besides the state (accelerations, powers); the solver only stores it."""

    @abc.abstractmethod
    def start(self, t0, t1, y: State, piece_time) -> Any:
        """``carried`` at the state ``y``, as the equations of motion give it there, for a step from
        t0 to t1."""

    @abc.abstractmethod
    def advance(
        self, t0, t1, y: State, carried, piece_time, beta, gamma
    ) -> tuple[State, Any, Array]:
        """(state at t1, carried, whether it succeeded), by Newmark's rule with ``beta`` and
        ``gamma``."""
