"""The mathematical forms that a solver accepts."""

from flexjax.numerics.term._base import (
    AbstractTerm as AbstractTerm,
    Limits as Limits,
    Mechanical as Mechanical,
    State as State,
    Step as Step,
    unwrap as unwrap,
)
from flexjax.numerics.term._chain_step import AbstractChainStepTerm as AbstractChainStepTerm
from flexjax.numerics.term._lagrangian import (
    AbstractLagrangianTerm as AbstractLagrangianTerm,
    OnGround as OnGround,
)
from flexjax.numerics.term._port_hamiltonian import (
    AbstractBatchedTerm as AbstractBatchedTerm,
    AbstractMultistageTerm as AbstractMultistageTerm,
    AbstractPortHamiltonianTerm as AbstractPortHamiltonianTerm,
    PortState as PortState,
    PortTangent as PortTangent,
)
from flexjax.numerics.term._second_order import (
    AbstractSecondOrderTerm as AbstractSecondOrderTerm,
    EnergyFlow as EnergyFlow,
    Instant as Instant,
    Prescribed as Prescribed,
)
