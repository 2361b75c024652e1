"""The model of every formulation whose links are floating-frame links of a chain."""

from typing import Any

import diffrax
import equinox as eqx
import numpy as np
from jaxtyping import Array

from flexjax._types import PieceTime, ScalarLike, Stations
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel
from flexjax.mechanism import Energy, Start, energy_of
from flexjax.mechanism.chain import (
    AbstractLinks,
    ChainTerm,
    Layout,
    Parameters,
    chain_outputs,
    chain_parameters,
    chain_start,
    ran_off_link,
    sliding_links,
)
from flexjax.numerics.solver import DiscreteGradient, GeneralisedAlpha
from flexjax.numerics.term import Instant, Mechanical, State
from flexjax.robot import Robot


class ChainModel(AbstractModel):
    """A serial chain of links, which the formulation describes by ``links`` (None: all rigid).

    A formulation builds it from the layout of the chain and its own links:
    ``ChainModel.of(robot, self, layout, links)``.
    """

    robot: Robot
    formulation: AbstractFormulation
    layout: Layout = eqx.field(static=True)
    parameters: Parameters
    links: AbstractLinks | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        formulation: AbstractFormulation,
        layout: Layout,
        links: AbstractLinks | None = None,
    ) -> "ChainModel":
        """The model with the joints and rigid bodies of the robot as parameters."""
        if links is not None and (layout.slides or layout.extends):
            sliding_links(links)  # refuses others
        return cls(robot, formulation, layout, chain_parameters(robot, layout), links)

    def tip_bends(self, q: np.ndarray, across: np.ndarray) -> dict[str, float]:
        """Largest deflection of every elastic link's tip over its length, by its name.

        Arguments:
            q: coordinates (T, nq) of a run.
            across: deflections (B, k, m) of the tips per unit of the shape coordinates.
        """
        index, layout = self.layout.shape_table()[0][:, : across.shape[2]], self.layout
        shapes = np.pad(q[:, layout.q_shapes], ((0, 0), (0, 1 + layout.dofs)))[:, index]
        tips = np.linalg.norm(np.einsum("bkm,tbm->tbk", across, shapes), axis=2)
        largest = np.nanmax(tips, axis=0, initial=0.0)
        elastic = [(b, layout.stages[b].link) for b, m in enumerate(layout.shapes) if m]
        links = self.robot.links
        return {links[i].name: float(largest[b] / links[i].length) for b, i in elastic}

    def term(self, drive: Drive) -> ChainTerm:
        links = self.links
        if links is not None and self.layout.extends:
            prescribed = drive.prescribed(self.robot)
            # A prescribed free length or contact is no unknown of its link.
            links = sliding_links(links).held_by(
                tuple(bool(s.border >= 0 and prescribed[s.border]) for s in self.layout.stages)
            )
        return ChainTerm(self.robot, self.parameters, drive, self.layout, links)

    def initial_mechanics(self, drive: Drive, t0: ScalarLike, start: Start) -> Mechanical:
        return Mechanical(*chain_start(self.term(drive), t0, start))

    def outputs(
        self,
        t: ScalarLike,
        y: State,
        drive: Drive,
        s: Stations,
        piece_time: PieceTime,
        names: frozenset[str],
    ) -> dict[str, Any]:
        return chain_outputs(self.term(drive), t, y, s, piece_time, names)

    def energy(self, t: ScalarLike, y: State, drive: Drive, piece_time: PieceTime = None) -> Energy:
        term = self.term(drive)
        energies = term.energies(Instant(t, piece_time), y.mech.q, y.mech.v)
        return energy_of(energies, y, term.bristle_energy(y))

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        if drive.base is not None:
            # It damps the fast modes that a shaken base excites.
            return GeneralisedAlpha(0.9)
        if self.links is None:
            return DiscreteGradient()
        return DiscreteGradient(points=self.links.path_points)

    def failure(self, t: ScalarLike, y: State, drive: Drive) -> tuple[Array, Array]:
        return ran_off_link(self.term(drive), y)
