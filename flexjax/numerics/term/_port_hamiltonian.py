"""z' = J(z) grad H(z) + ports: the form of mechanisms of power ports, with strains, momenta and
poses as states."""

import abc

import equinox as eqx
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.numerics.term._base import AbstractTerm, Limits


class PortState(eqx.Module):
    """State of a mechanism of L links with N elements and K = N + 1 nodes each.

    Joint coordinates ``q`` and rates ``v`` (motors of flexible joints behind them), body twists
    ``V`` of all nodes, strains ``Q`` integrated over the elements, ``orientation`` (an angle, or a
    quaternion wxyz) and position ``x`` of the nodes. Components come first.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    V: Float[Array, "d L K"]
    Q: Float[Array, "d L N"]
    orientation: Float[Array, "r L K"]
    x: Float[Array, "lin L K"]


class PortTangent(eqx.Module):
    """Independent directions of a PortState: poses follow from q and Q, twists of base nodes from v
    and V of the other nodes."""

    # Bool: the masks of ``held``.
    q: Float[Array, " nv"] | Bool[Array, " nv"]
    v: Float[Array, " nv"] | Bool[Array, " nv"]
    V: Float[Array, "d L N"] | Bool[Array, "d L N"]
    Q: Float[Array, "d L N"] | Bool[Array, "d L N"]


class AbstractPortHamiltonianTerm(AbstractTerm):
    """What an implicit solver needs. A *stage* is the solution of z = z* + h f(t, z), of which
    midpoint, backward Euler and the BDF formulas consist."""

    @abc.abstractmethod
    def prepare(
        self,
        t: ScalarLike,
        mech: PortState,
        h: ScalarLike,
        arrival: tuple[ScalarLike, float],
        piece_time: PieceTime,
        memory: PyTree,
    ) -> PyTree:
        """The parts of a stage from ``mech`` = z* that its iteration does not change.

        ``arrival`` = (time, factor): coordinates prescribed by a drive reach their value at
        ``time`` when they move from z* by ``factor`` times h.
        """

    @abc.abstractmethod
    def guess(self, mech: PortState) -> PyTree:
        """The unknowns of a stage (twists and rates) with their values in ``mech``."""

    @abc.abstractmethod
    def residual(self, stage: PyTree, unknowns: PyTree) -> PyTree:
        """Zero at the solution; the form of the unknowns."""

    @abc.abstractmethod
    def linearise(self, stage: PyTree, unknowns: PyTree) -> tuple[PyTree, PyTree]:
        """The residual and its derivative, which has ``solve(r)`` and ``transpose()``. The
        derivative may be approximate if ``exact`` is False."""

    @property
    @abc.abstractmethod
    def exact(self) -> bool:
        """Whether ``linearise`` returns the exact derivative (static)."""

    @abc.abstractmethod
    def arrive(
        self, stage: PyTree, unknowns: PyTree, factor: float
    ) -> tuple[PortState, Scalar, Scalar]:
        """z* + factor h f (factor 2: the end of a midpoint step, 1: the stage itself), power of the
        drive and power dissipated at the stage."""

    @abc.abstractmethod
    def settle(self, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
        """``mech`` with base nodes placed on their joints, so that no joint opens by rounding."""

    def limits(self, stage: PyTree, unknowns: PyTree) -> Limits | None:
        """Efforts of controllers that have limits, on rows of the unknowns as one vector (``kd`` is
        the slope in the unknown, ``kp`` zero); None (static) where none has."""
        return None


class AbstractMultistageTerm(AbstractPortHamiltonianTerm):
    """A term for solvers whose later stages start from a combination of earlier states."""

    @abc.abstractmethod
    def blend(
        self, a: PortState, b: PortState, weight: float, step: ScalarLike, unknowns: PyTree
    ) -> PortState:
        """b + weight (a - b) as z*, for a state ``b`` that was reached from ``a`` by ``step`` times
        ``unknowns``."""


class AbstractBatchedTerm(AbstractPortHamiltonianTerm):
    """A term whose Newton iteration treats a batch of stages together."""

    @abc.abstractmethod
    def corrections(
        self, stage: PyTree, unknowns: PyTree, batched: tuple[PyTree, PyTree], size: int
    ) -> PyTree:
        """Newton's corrections of ``size`` runs, in the last axis of all unknowns and of those
        leaves of (self, stage) that ``batched`` marks."""
