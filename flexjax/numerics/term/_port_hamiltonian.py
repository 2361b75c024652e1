"""z' = J(z) grad H(z) + ports: the form of mechanisms put together from power ports, with strains,
momenta and poses as states."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike
from flexjax.numerics.term._base import AbstractTerm, Limits


class PortState(eqx.Module):
    """State of a mechanism: joint coordinates ``q`` and rates ``v`` (motors of flexible joints
    behind them), body twists ``V`` of all nodes (L, K, d), strains ``Q`` integrated over the
    elements (L, N, d), and where the nodes are: ``turn`` (an angle, or a quaternion wxyz) and
    ``x``."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    V: Float[Array, "L K d"]
    Q: Float[Array, "L N d"]
    turn: Float[Array, "L K r"]
    x: Float[Array, "L K lin"]


class PortTangent(eqx.Module):
    """Independent directions of a PortState: poses follow from q and Q, twists of base nodes from v
    and V of the other nodes."""

    q: Float[Array, " nv"]
    v: Float[Array, " nv"]
    V: Float[Array, "L N d"]
    Q: Float[Array, "L N d"]


class AbstractPortHamiltonianTerm(AbstractTerm):
    """What an implicit solver needs. A *stage* is the solution of z = z* + h f(t, z): midpoint,
    backward Euler and the BDF formulas are made of it."""

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
        """Everything of a stage from ``mech`` = z* that does not change in its iteration.
        ``arrival`` = (time, factor): coordinates prescribed by a drive reach their value at
        ``time`` when they move from z* by ``factor`` times h."""

    @abc.abstractmethod
    def guess(self, mech: PortState) -> PyTree:
        """The unknowns of a stage (twists and rates) as they are in ``mech``."""

    @abc.abstractmethod
    def residual(self, stage: PyTree, unknowns: PyTree) -> PyTree:
        """What vanishes at the solution."""

    @abc.abstractmethod
    def linearise(self, stage: PyTree, unknowns: PyTree) -> tuple[PyTree, PyTree]:
        """The residual and its derivative (parts of which may be left out if ``exact`` is False),
        which has ``solve(r)`` and ``transpose()``."""

    def limits(self, stage: PyTree, unknowns: PyTree) -> Limits | None:
        """Efforts of controllers that have limits, on rows of the unknowns as one vector (``kd`` is
        the slope in the unknown, ``kp`` zero); None (static) where none has."""
        return None

    @property
    @abc.abstractmethod
    def exact(self) -> bool:
        """Whether ``linearise`` gives the whole derivative (static)."""

    @property
    def batches(self) -> bool:
        """Whether there is a form of Newton's corrections for batches (static)."""
        return False

    def corrections(
        self, stage: PyTree, unknowns: PyTree, batched: tuple[PyTree, PyTree], size: int
    ) -> PyTree:
        """Newton's corrections of ``size`` lanes in the last axis of all unknowns and of those
        leaves of (self, stage) that ``batched`` marks. Called only where ``batches`` is True."""
        raise NotImplementedError(
            f"{type(self).__name__} has no corrections for batches, and says so by `batches`"
        )

    @abc.abstractmethod
    def arrive(
        self, stage: PyTree, unknowns: PyTree, factor: float
    ) -> tuple[PortState, Scalar, Scalar]:
        """z* + factor h f (factor 2: the end of a midpoint step, 1: the stage itself), power of the
        drive and power dissipated at the stage."""

    @abc.abstractmethod
    def blend(
        self, a: PortState, b: PortState, weight: float, step: ScalarLike, unknowns: PyTree
    ) -> PortState:
        """b + weight (a - b) as z* of a multistep formula, for a state ``b`` that was reached from
        ``a`` by ``step`` times ``unknowns``."""

    @abc.abstractmethod
    def settle(self, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
        """Poses of base nodes set on their joints anew, so that no joint ever opens."""
