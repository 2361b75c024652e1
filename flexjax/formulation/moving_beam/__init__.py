"""The nonlinear moving beam of variable length (Söffker), from a list of energy terms."""

from flexjax.formulation.moving_beam._formulation import (
    MovingBeam as MovingBeam,
    MovingBeamModel as MovingBeamModel,
)
from flexjax.formulation.moving_beam.beam._strain import ORDERS as ORDERS, Term as Term
