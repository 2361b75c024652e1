"""Newmark's rule for chains that advance themselves."""

from typing import ClassVar

import equinox as eqx
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import as_float
from flexjax.numerics.solver._base import AbstractStepSolver, outcome
from flexjax.numerics.term import AbstractChainStepTerm, unwrap


class ChainNewmark(AbstractStepSolver):
    """One sweep along the chain per step, Newmark's ``beta`` and ``gamma``: second order with gamma
    = 1/2, damped and first order above.

    >>> import flexjax as fx
    >>> solver = fx.ChainNewmark(beta=0.3025, gamma=0.6)
    """

    term_structure: ClassVar = AbstractChainStepTerm
    beta: Float[Array, ""] = eqx.field(converter=as_float, default=0.25)
    gamma: Float[Array, ""] = eqx.field(converter=as_float, default=0.5)

    def init(self, terms, t0, t1, y0, args):
        return unwrap(terms).start(t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        term = unwrap(terms)
        carried = solver_state
        # Static: without breaks nothing jumps, and the second sweep need not be compiled.
        if term.drive.breaks().shape[0]:
            carried = lax.cond(
                made_jump, lambda: term.start(t0, t1, y0, args), lambda: solver_state
            )
        y1, carried, ok = term.advance(t0, t1, y0, carried, args, self.beta, self.gamma)
        return y1, None, dict(y0=y0, y1=y1), carried, outcome(ok)
