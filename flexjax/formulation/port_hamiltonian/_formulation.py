"""Port-Hamiltonian links on SE(3): large deflections in the plane and in space, serial arms, trees
and closed chains."""

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel, check_variant
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._chain import (
    AbstractMechanismTerm,
    PlanarPortTerm,
    PortTerm,
)
from flexjax.formulation.port_hamiltonian._loops import (
    LoopParameters,
    LoopPlan,
    loop_parameters,
    loop_plans,
)
from flexjax.formulation.port_hamiltonian._observe import MOVING, outputs
from flexjax.formulation.port_hamiltonian._paper import PaperTerm
from flexjax.formulation.port_hamiltonian._parameters import (
    MechanismParameters,
    Structure,
    mechanism_parameters,
    structure_of,
)
from flexjax.formulation.port_hamiltonian._refusals import refusals
from flexjax.formulation.port_hamiltonian._start import initial_state
from flexjax.mechanism import Energy, Start
from flexjax.numerics.solver import ImplicitMidpoint
from flexjax.numerics.term import PortState, State
from flexjax.robot import Robot


class PortHamiltonian(AbstractFormulation):
    """Geometrically exact links with ``elements`` elements each: strains and momenta as states,
    joints as power-conserving interconnections.

    Arguments:
        elements: number of elements of every link.
        mass: 1 for the consistent inertia of the elements, 0 for the lumped one (better in high
            modes), or a value between.
        drag: six viscous coefficients per length [linear; angular] on the absolute twist, the
            damping port of the paper.
        coupling: 3 x 3 compliance C_c between linear and angular strain.
        strain_energy: a density U(q, stiffness) of the strain q [linear; angular] (three components
            in planar robots) in place of the quadratic one.
        variant: "complete" (twists on nodes, strains on elements), or "paper" (Fig. 3 of the paper;
            dense algebra and massless nodes, for comparisons).
        alpha: weight of the first node in the twist of an element, for variant="paper"; in (0, 1).

    >>> import flexjax as fx
    >>> model = fx.PortHamiltonian(elements=8).bind(fx.load_robot("metal-link"))
    """

    paper: ClassVar[str] = (
        "A. Macchelli, C. Melchiorri, S. Stramigioli, Port-based modeling of a flexible link, "
        "IEEE Transactions on Robotics 23(4), 2007, 650-660."
    )
    elements: int = eqx.field(static=True, default=20)
    mass: float = eqx.field(static=True, default=1.0)
    drag: tuple[float, ...] | None = eqx.field(static=True, default=None)
    coupling: tuple[tuple[float, ...], ...] | None = eqx.field(static=True, default=None)
    strain_energy: Callable | None = eqx.field(static=True, default=None)
    variant: str = eqx.field(static=True, default="complete")
    alpha: float = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        if not isinstance(self.elements, int | np.integer) or self.elements < 1:
            raise ValueError(
                f"elements: {self.elements}; expected a whole number of at least 1, e.g. 20."
            )
        if not 0 <= self.mass <= 1:
            raise ValueError(
                f"mass: {self.mass}; expected a number from 0 (lumped) to 1 (consistent)."
            )
        if self.drag is not None and len(self.drag) != 6:
            raise ValueError(f"drag: {len(self.drag)} numbers; expected six, [linear; angular].")
        if self.drag is not None and not all(0 <= x < np.inf for x in self.drag):
            raise ValueError(
                f"drag: {self.drag}; expected six numbers, zero or positive: a negative one adds "
                "energy."
            )
        if self.coupling is not None:
            given = np.asarray(self.coupling, float)
            if given.shape != (3, 3) or not np.isfinite(given).all():
                raise ValueError(
                    f"coupling: {self.coupling}; expected three rows of three finite numbers."
                )
        check_variant(self.variant)
        if not 0 < self.alpha < 1:
            raise ValueError(
                f"alpha: {self.alpha}; expected a number between 0 and 1, ends excluded."
            )

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def build(self, robot: Robot) -> "PortHamiltonianModel":
        structure = structure_of(robot, self.elements)
        parameters = mechanism_parameters(
            robot,
            structure,
            blend=self.mass,
            coupling=self.coupling,
            drag=self.drag,
            density=self.strain_energy,
            alpha=self.alpha if self.variant == "paper" else None,
        )
        plans, loops = loop_plans(robot, structure), loop_parameters(robot, structure)
        return PortHamiltonianModel(robot, self, structure, plans, parameters, loops)


class PortHamiltonianModel(AbstractModel):
    robot: Robot
    formulation: PortHamiltonian
    structure: Structure = eqx.field(static=True)
    plans: tuple[LoopPlan, ...] = eqx.field(static=True)
    parameters: MechanismParameters
    loops: tuple[LoopParameters, ...]

    def assembly(self, drive: Drive) -> Assembly:
        return Assembly(self.robot, self.parameters, self.loops, drive, self.structure, self.plans)

    def term(self, drive: Drive) -> AbstractMechanismTerm:
        arm = self.assembly(drive)
        if arm.parameters.alpha is not None:
            return PaperTerm(arm)
        quadratic = arm.parameters.elements.density is None
        return PlanarPortTerm(arm) if arm.structure.planar and quadratic else PortTerm(arm)

    def initial_mechanics(self, drive: Drive, t0: ScalarLike, start: Start) -> PortState:
        return initial_state(self.assembly(drive), t0, start)

    def outputs(
        self,
        t: ScalarLike,
        y: State,
        drive: Drive,
        s: Float[Array, " S"],
        piece_time: PieceTime,
        names: frozenset[str],
    ) -> dict[str, Any]:
        now = None
        if names & MOVING:
            now = self.term(drive).instant(t, y.mech, piece_time, y.memory)
        return outputs(self.assembly(drive), t, y, s, piece_time, now, names)

    def energy(self, t: ScalarLike, y: State, drive: Drive, piece_time: PieceTime = None) -> Energy:
        return self.assembly(drive).energy_of(t, y, piece_time)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return ImplicitMidpoint()
