"""Paper 002: flexible arms as chains of rigid segments and springs: options, refusals, model."""

from typing import Any, ClassVar

import diffrax
import equinox as eqx
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel, check_variant, refuse
from flexjax.formulation._left_out import lacks_shear
from flexjax.formulation.transfer_matrix._chain import LINEARISATIONS
from flexjax.formulation.transfer_matrix._layout import Layout, chain_layout, joint_tables
from flexjax.formulation.transfer_matrix._link import Chain, build_chain
from flexjax.formulation.transfer_matrix._observe import positions, snapshot
from flexjax.formulation.transfer_matrix._paper import (
    PAPER_LINEARISATIONS,
    PaperTerm,
)
from flexjax.formulation.transfer_matrix._plane import PlanarTerm
from flexjax.formulation.transfer_matrix._refusals import half_springs, refusals
from flexjax.formulation.transfer_matrix._series import moved
from flexjax.formulation.transfer_matrix._space import SpatialTerm
from flexjax.formulation.transfer_matrix.sweep import SWEEPS
from flexjax.mechanism import (
    SNAPSHOT,
    Energy,
    Start,
    bristle_energy,
    energy_of,
)
from flexjax.numerics.solver import ChainNewmark
from flexjax.numerics.term import Mechanical, State
from flexjax.robot import Robot

VARIANTS = {"complete": LINEARISATIONS, "paper": PAPER_LINEARISATIONS}


class TransferMatrix(AbstractFormulation):
    """Rigid segments joined by springs; one sweep of small matrices per pass, no global matrix.

    Arguments:
        segments: per link; one number for all links, or one for each link of the robot.
        beta, gamma: parameters of Newmark's rule.
        chain: "riccati" (linear cost, keeps all digits), "parallel" (the same by associative scans,
            for GPUs), or "product" (the published product of matrices, which loses digits at small
            steps).
        variant: "complete", or "paper", the published method: positions instead of
            accelerations, by default without half springs and rotary inertia. It diverges with
            (beta, gamma) = (1/4, 1/2); use, for example, (0.3, 0.5).
        half_springs: springs of the half segments at both ends of a link. They give second order in
            the segment length instead of first.
        rotary: rotary inertia of the sections.
        linearisation: where a step takes its geometry: "history" (default), extrapolated from the
            angles of the last steps, or "extrapolated", from rates and accelerations, which
            requires that dt resolves the fastest mode. With variant="paper": "newton" (default),
            "extrapolated" or "frozen".
        passes: sweeps per step, each with the geometry of the one before; by default two with
            "history" and "newton", else one. One pass is of second order too, but at coarse steps
            it can gain energy without bound in long undamped runs.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=10).bind(fx.load_robot("li-zhang-three-link"))
    """

    paper: ClassVar[str] = (
        "H. Li, X. Zhang, A Method for Modeling Flexible Manipulators: Transfer Matrix Method "
        "with Finite Segments, "
        "International Journal of Computer and Information Engineering 10 (2016)."
    )
    segments: int | tuple[int, ...] = eqx.field(static=True, default=20)
    beta: float = eqx.field(static=True, default=0.25)
    gamma: float = eqx.field(static=True, default=0.5)
    chain: str = eqx.field(static=True, default="riccati")
    variant: str = eqx.field(static=True, default="complete")
    half_springs: bool | None = eqx.field(static=True, default=None)
    rotary: bool | None = eqx.field(static=True, default=None)
    linearisation: str | None = eqx.field(static=True, default=None)
    passes: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_variant(self.variant)
        known = VARIANTS[self.variant]
        if self.linearisation not in (None, *known):
            raise ValueError(
                f"linearisation: {self.linearisation!r}; expected one of {', '.join(known)} "
                f"with variant={self.variant!r}, or none for the first of them."
            )
        if self.passes is not None and self.passes < 1:
            raise ValueError(f"passes: {self.passes}; expected at least 1.")
        if self.chain not in SWEEPS:
            raise ValueError(f"chain: {self.chain!r}; expected one of {', '.join(SWEEPS)}.")
        counts = self.segments if isinstance(self.segments, tuple) else (self.segments,)
        if any(not isinstance(c, int) or c < 1 for c in counts):
            raise ValueError(
                f"segments: {self.segments}; expected whole numbers of at least 1, e.g. 20 or "
                "(20, 10)."
            )
        if not (self.beta > 0 and self.gamma >= 0.5):
            raise ValueError(
                f"beta, gamma: {self.beta}, {self.gamma}; expected beta > 0 and gamma >= 1/2 "
                "(smaller values of gamma gain energy)."
            )

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def drive_refusals(self, robot: Robot, drive: Drive) -> list[str]:
        if robot.planar:
            return []
        faults = []
        if drive.base is not None:
            faults.append("drive.base: a moving base; expected none for a robot in space")
        for joint in robot.tree_joints:
            held = joint.name in drive.joints and drive.joints[joint.name].prescribes
            if joint.flexible and not held:
                faults.append(
                    f"drive.joints.{joint.name}: no Motion on a flexible joint; expected one for a "
                    "robot in space"
                )
        return faults

    def run_warnings(self, model: AbstractModel, traj: Any) -> list[str]:
        return lacks_shear(self, model.robot)

    def build(self, robot: Robot) -> "TransferMatrixModel":
        segments = self.segments
        if not isinstance(segments, tuple):
            segments = (segments,) * len(robot.links)
        rotary = self.variant != "paper" if self.rotary is None else self.rotary
        layout = chain_layout(robot, segments, half_springs(self))
        return TransferMatrixModel(robot, self, layout, build_chain(robot, layout, rotary))


class TransferMatrixModel(AbstractModel):
    """A chain in the plane or in space."""

    robot: Robot
    formulation: TransferMatrix
    layout: Layout = eqx.field(static=True)
    chain: Chain

    def chain_term(self, drive: Drive) -> PlanarTerm | SpatialTerm:
        """The equations at the acceleration level, from which all outputs follow."""
        method, robot = self.formulation, self.robot
        faults = method.drive_refusals(robot, drive)
        refuse(method, f"this drive of the robot {robot.name!r}", faults, robot, drive)
        linearisation = LINEARISATIONS[0]
        if method.variant == "complete" and method.linearisation is not None:
            linearisation = method.linearisation
        return (PlanarTerm if robot.planar else SpatialTerm)(
            robot=robot,
            chain=self.chain,
            drive=drive,
            layout=self.layout,
            tables=joint_tables(robot, self.layout, drive),
            sweep=method.chain,
            linearisation=linearisation,
            passes=method.passes or (2 if linearisation == "history" else 1),
        )

    def term(self, drive: Drive) -> PlanarTerm | SpatialTerm | PaperTerm:
        method, term = self.formulation, self.chain_term(drive)
        if method.variant == "complete" or not isinstance(term, PlanarTerm):
            return term
        linearisation = method.linearisation or PAPER_LINEARISATIONS[0]
        passes = method.passes or (2 if linearisation == "newton" else 1)
        return PaperTerm(term, linearisation, passes)

    def initial_mechanics(self, drive: Drive, t0: ScalarLike, start: Start) -> Mechanical:
        inner, term = self.chain_term(drive), self.term(drive)
        at = inner.instant(t0, None)
        mech = inner.initial(at, start)
        return term.extended(at, mech) if isinstance(term, PaperTerm) else mech

    def _rotations(self, mech: Mechanical) -> Mechanical:
        """Without the points that the published form integrates too."""
        if not self.robot.planar:
            return mech
        n = self.layout.n + self.layout.motors
        return moved(mech, mech.q[:n], mech.v[:n])

    def outputs(
        self,
        t: ScalarLike,
        y: State,
        drive: Drive,
        s: Float[Array, " S"],
        piece_time: PieceTime,
        names: frozenset[str],
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "energy" in names:
            found["energy"] = self.energy(t, y, drive, piece_time)
        wanted = names - {"energy"}
        if not wanted:
            return found
        term, mech = self.chain_term(drive), self._rotations(y.mech)
        at = term.instant(t, piece_time, y.memory)
        if wanted == {"positions"}:
            return found | {"positions": positions(term, at, mech, s)}
        snap = snapshot(term, at, term.readings(at, mech), s)
        found |= {name: getattr(snap, name) for name in SNAPSHOT & wanted}
        if "positions" in wanted:
            found["positions"] = snap.frames[..., :3]
        return found

    def energy(self, t: ScalarLike, y: State, drive: Drive, piece_time: PieceTime = None) -> Energy:
        term, mech = self.chain_term(drive), self._rotations(y.mech)
        at = term.instant(t, piece_time, y.memory)
        energies = term.energies(at, mech)
        bristles = bristle_energy(self.chain.hardware, y.memory, *term.joint_sides(at, mech))
        return energy_of(energies, y, bristles)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return ChainNewmark(self.formulation.beta, self.formulation.gamma)
