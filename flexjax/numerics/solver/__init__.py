"""diffrax solvers for the terms of flexjax, one per file."""

from flexjax.numerics.solver._base import AbstractStepSolver as AbstractStepSolver
from flexjax.numerics.solver._chain_newmark import ChainNewmark as ChainNewmark
from flexjax.numerics.solver._discrete_gradient import DiscreteGradient as DiscreteGradient
from flexjax.numerics.solver._implicit_midpoint import (
    TRBDF2 as TRBDF2,
    ImplicitMidpoint as ImplicitMidpoint,
)
from flexjax.numerics.solver._newmark import (
    GeneralisedAlpha as GeneralisedAlpha,
    Newmark as Newmark,
)
from flexjax.numerics.solver._newton import implicit_solve as implicit_solve
