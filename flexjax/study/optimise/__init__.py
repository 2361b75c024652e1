"""Moves that are optimal: fast, without vibration, within limits, robust."""

from flexjax.study.optimise._lqr import Regulator as Regulator, lqr as lqr
from flexjax.study.optimise._many import Moves as Moves, optimise_many as optimise_many
from flexjax.study.optimise._optimise import optimise as optimise
from flexjax.study.optimise._result import Active as Active, Optimisation as Optimisation
from flexjax.study.optimise.horizon import (
    Mpc as Mpc,
    Plan as Plan,
    mpc as mpc,
    shoot as shoot,
)
