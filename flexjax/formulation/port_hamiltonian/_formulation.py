"""Port-Hamiltonian links on SE(3): large deflections in the plane and in space, serial arms, trees
and closed chains."""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from flexjax._results import Status
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._chain import PortTerm
from flexjax.formulation.port_hamiltonian._loops import (
    LoopNumbers,
    LoopPlan,
    loop_numbers,
    loop_plans,
)
from flexjax.formulation.port_hamiltonian._observe import snapshot
from flexjax.formulation.port_hamiltonian._paper_chain import PaperTerm, paper_refusals
from flexjax.formulation.port_hamiltonian._parameters import Numbers, mechanism_numbers
from flexjax.formulation.port_hamiltonian._start import first_state
from flexjax.formulation.port_hamiltonian._structure import (
    Structure,
    curvature_refusals,
    refusals,
    structure,
)
from flexjax.mechanism import Energy, Start
from flexjax.numerics.solver import ImplicitMidpoint
from flexjax.numerics.term import State
from flexjax.robot import Robot


class PortHamiltonian(AbstractFormulation):
    """Geometrically exact links with ``elements`` elements each: strains and momenta as states,
    joints as power-conserving interconnections.

    ``mass``: 1 for the consistent inertia of the elements, 0 for lumped (better in high modes), or
    between. ``drag``: six viscous coefficients per length [linear; angular] on the absolute twist,
    the damping port of the paper. ``coupling``: 3 x 3 compliance C_c between linear and angular
    strain. ``scheme``: "staggered" (twists on nodes, strains on elements) or "paper" (Fig. 3 of the
    paper, with ``alpha`` in (0, 1); dense algebra and massless nodes, for comparisons).
    ``strain_energy``: your own density U(q, stiffness) of the strain q [linear; angular] (planar
    robots: three components).

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
    scheme: str = eqx.field(static=True, default="staggered")
    alpha: float = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        if int(self.elements) != self.elements or self.elements < 1:
            raise ValueError(f"elements: {self.elements}; expected a whole number of at least 1.")
        if not 0 <= self.mass <= 1:
            raise ValueError(
                f"mass: {self.mass}; expected a number from 0 (lumped) to 1 (consistent)."
            )
        if self.drag is not None and len(self.drag) != 6:
            raise ValueError(f"drag: {len(self.drag)} numbers; expected six, [linear; angular].")
        if self.scheme not in ("staggered", "paper"):
            raise ValueError(f"scheme: {self.scheme!r}; expected 'staggered' or 'paper'.")
        if not 0 < self.alpha < 1:
            raise ValueError(
                f"alpha: {self.alpha}; expected a number between 0 and 1, ends excluded."
            )

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(robot) + (
            paper_refusals(robot)
            if self.scheme == "paper"
            else curvature_refusals(robot, self.elements)
        )

    def build(self, robot: Robot) -> "PortHamiltonianModel":
        st = structure(robot, self.elements)
        alpha = self.alpha if self.scheme == "paper" else None
        numbers = mechanism_numbers(
            robot,
            st,
            blend=self.mass,
            coupling=self.coupling,
            drag=self.drag,
            density=self.strain_energy,
            alpha=alpha,
        )
        return PortHamiltonianModel(
            robot, self, st, loop_plans(robot, st), numbers, loop_numbers(robot, st)
        )


class PortHamiltonianModel(AbstractModel):
    robot: Robot
    formulation: PortHamiltonian
    st: Structure = eqx.field(static=True)
    plans: tuple[LoopPlan, ...] = eqx.field(static=True)
    numbers: Numbers
    loops: tuple[LoopNumbers, ...]

    def assembly(self, drive: Drive) -> Assembly:
        return Assembly(self.robot, self.numbers, self.loops, drive, self.st, self.plans)

    def term(self, drive: Drive) -> PortTerm | PaperTerm:
        arm = self.assembly(drive)
        return PortTerm(arm) if arm.num.alpha is None else PaperTerm(arm)

    def initial_state(self, drive: Drive, t0, start: Start) -> State:
        mech = first_state(self.assembly(drive), t0, start)
        return State.fresh(mech, self.robot.gravity.dtype, drive.initial_memory(self.robot))

    def observe(self, t, y: State, drive: Drive, s, piece_time=None):
        return snapshot(
            self.assembly(drive), y, s, self.term(drive).instant(t, y.mech, piece_time, y.memory)
        )

    def energy(self, t, y: State, drive: Drive, piece_time=None) -> Energy:
        return Energy(*self.assembly(drive).energies(y.mech), y.dissipated, y.work)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return ImplicitMidpoint()

    def failure(self, t, y: State, drive: Drive) -> tuple[Array, Array]:
        return jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)
