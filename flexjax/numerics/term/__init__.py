"""The mathematical forms that a solver accepts."""

from flexjax.numerics.term._base import (
    AbstractTerm as AbstractTerm,
    Limits as Limits,
    Mechanical as Mechanical,
    State as State,
    unwrap as unwrap,
)
from flexjax.numerics.term._chain_step import AbstractChainStepTerm as AbstractChainStepTerm
from flexjax.numerics.term._lagrangian import AbstractLagrangianTerm as AbstractLagrangianTerm
from flexjax.numerics.term._port_hamiltonian import (
    AbstractPortHamiltonianTerm as AbstractPortHamiltonianTerm,
    PortState as PortState,
    PortTangent as PortTangent,
)
from flexjax.numerics.term._second_order import (
    AbstractSecondOrderTerm as AbstractSecondOrderTerm,
    EnergyFlow as EnergyFlow,
)
