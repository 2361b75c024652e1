"""Newmark's rule for chains that advance themselves."""

from typing import Any, ClassVar

import equinox as eqx
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import as_float
from flexjax.numerics.solver._base import AbstractStepSolver, Jump
from flexjax.numerics.term import AbstractChainStepTerm, State, Step


class ChainNewmark(AbstractStepSolver):
    """One sweep along the chain per step, Newmark's ``beta`` and ``gamma``: second order with gamma
    = 1/2, damped and first order above.

    >>> import flexjax as fx
    >>> solver = fx.ChainNewmark(beta=0.3025, gamma=0.6)
    """

    term_structure: ClassVar = AbstractChainStepTerm
    beta: Float[Array, ""] = eqx.field(converter=as_float, default=0.25)
    gamma: Float[Array, ""] = eqx.field(converter=as_float, default=0.5)

    def begin(self, term: AbstractChainStepTerm, step: Step, y0: State) -> Any:
        return term.start(step.t0, step.t1, y0, step.piece_time)

    def advance(
        self,
        term: AbstractChainStepTerm,
        step: Step,
        y0: State,
        solver_state: Any,
        made_jump: Jump,
    ):
        carried = solver_state
        # A grid on which nothing jumps passes a plain False, and the second sweep is not compiled.
        if made_jump is not False:
            carried = lax.cond(made_jump, lambda: self.begin(term, step, y0), lambda: solver_state)
        at = (step.t0, step.t1, y0, carried, step.piece_time)
        y1, carried, ok = term.advance(*at, self.beta, self.gamma)
        return y1, None, carried, ok
