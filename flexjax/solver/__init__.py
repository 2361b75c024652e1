"""diffrax solvers for the terms of flexjax, one per file."""

from flexjax.solver._chain_newmark import ChainNewmark as ChainNewmark
from flexjax.solver._discrete_gradient import DiscreteGradient as DiscreteGradient
from flexjax.solver._implicit_midpoint import TRBDF2 as TRBDF2, ImplicitMidpoint as ImplicitMidpoint
from flexjax.solver._newmark import GeneralisedAlpha as GeneralisedAlpha, Newmark as Newmark
from flexjax.solver._newton import implicit_solve as implicit_solve
