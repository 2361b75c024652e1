"""Paper 002: flexible arms as chains of rigid segments and springs, advanced by transfer
matrices."""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._results import Status
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel
from flexjax.formulation.transfer_matrix._balance import energies
from flexjax.formulation.transfer_matrix._chain import (
    Chain,
    Layout,
    build_chain,
    chain_layout,
)
from flexjax.formulation.transfer_matrix._observe import snapshot
from flexjax.formulation.transfer_matrix._paper import (
    LINEARISATIONS as PAPER_LINEARISATIONS,
    PaperTerm,
)
from flexjax.formulation.transfer_matrix._series import moved, with_bend
from flexjax.formulation.transfer_matrix._spatial_chain import spatial_chain
from flexjax.formulation.transfer_matrix._spatial_model import SpatialTransferMatrixModel
from flexjax.formulation.transfer_matrix._sweep import SWEEPS
from flexjax.formulation.transfer_matrix._term import LINEARISATIONS, TransferTerm
from flexjax.mechanism import Curve, Energy, Start, serial_refusals
from flexjax.numerics.solver import ChainNewmark
from flexjax.numerics.term import Mechanical, State
from flexjax.robot import Robot

VARIANTS = {"acceleration": LINEARISATIONS, "paper": PAPER_LINEARISATIONS}


class TransferMatrix(AbstractFormulation):
    """Rigid ``segments`` joined by springs; one sweep of small matrices per time step, no global
    ones.

    ``segments``: per link, one number for all or one for each link of the robot. ``beta``,
    ``gamma``: Newmark's pair. ``chain``: "riccati" (linear cost, keeps all digits), "parallel" (the
    same by associative scans, for GPUs), "product" (the published product of matrices, which loses
    digits at small steps). ``half_springs``: springs of the half segments at both ends of a link,
    second order in the segment length; without them first order. ``rotary``: rotary inertia of the
    sections. ``linearisation``: where a step takes its geometry: "history", extrapolated from the
    angles of the last steps (robust, the default), or "extrapolated", from rates and accelerations
    (only while dt resolves the fastest mode). ``passes``: sweeps per step, each at the geometry of
    the one before. One is of second order already, but at coarse steps it can gain energy without
    bound in long undamped runs; hence two with "history".

    ``variant="paper"`` is the method as published: positions instead of accelerations, no half
    springs and no rotary inertia unless asked for, with ``linearisation`` "newton" (two ``passes``
    of it), "extrapolated" or "frozen". Give it a pair such as (0.3, 0.5): with (1/4, 1/2) it
    diverges.

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
    variant: str = eqx.field(static=True, default="acceleration")
    half_springs: bool | None = eqx.field(static=True, default=None)
    rotary: bool | None = eqx.field(static=True, default=None)
    linearisation: str | None = eqx.field(static=True, default=None)
    passes: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.variant not in VARIANTS:
            raise ValueError(f"variant: {self.variant!r}; expected one of {', '.join(VARIANTS)}.")
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
                "(below, energy is fed in)."
            )

    def refusals(self, robot: Robot) -> list[str]:
        faults = serial_refusals(robot)
        if not robot.planar:
            faults += spatial_refusals(self, robot)
        types = ("revolute", "fixed") if robot.planar else ("revolute", "universal", "fixed")
        for j in robot.tree_joints:
            if j.type not in types:
                faults.append(
                    f"joints.{j.name}.type: {j.type}; expected {', '.join(types[:-1])} or "
                    f"{types[-1]}"
                )
        for link in robot.links:
            for field in ("mass", "modal"):
                if link.damping is not None and getattr(link.damping, field) is not None:
                    faults.append(
                        f"links.{link.name}.damping.{field}: springs damp by strain rate only; "
                        "expected strain_rate"
                    )
        if isinstance(self.segments, tuple) and len(self.segments) != len(robot.links):
            faults.append(f"segments: {len(self.segments)} numbers for {len(robot.links)} links")
        return faults

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

    def build(self, robot: Robot) -> "TransferMatrixModel | SpatialTransferMatrixModel":
        segments = (
            self.segments
            if isinstance(self.segments, tuple)
            else (self.segments,) * len(robot.links)
        )
        if not robot.planar:
            layout = chain_layout(robot, segments, True, hubs=False)
            return SpatialTransferMatrixModel(robot, self, layout, spatial_chain(robot, layout))
        published = self.variant == "paper"
        half, rotary = (not published if x is None else x for x in (self.half_springs, self.rotary))
        layout = chain_layout(robot, segments, half)
        return TransferMatrixModel(robot, self, layout, build_chain(robot, layout, rotary))


def spatial_refusals(method: TransferMatrix, robot: Robot) -> list[str]:
    """What the plane can hold and the spatial chain cannot."""
    faults = []
    for field, wanted in (("variant", "acceleration"), ("chain", "riccati")):
        if getattr(method, field) != wanted:
            faults.append(
                f"{field}: {getattr(method, field)}; expected {wanted} for a robot in space"
            )
    if method.half_springs is False or method.rotary is False:
        faults.append("half_springs, rotary: false; expected true or none for a robot in space")
    rigid = {"ground": True} | {link.name: not link.elastic for link in robot.links}
    for link in robot.links:
        if link.curvature is not None and not rigid[link.name]:
            faults.append(f"links.{link.name}.curvature: expected straight flexible links in space")
    for j in robot.tree_joints:
        if rigid.get(j.parent, False) and rigid.get(j.child, False):
            faults.append(
                f"joints.{j.name}: between two rigid bodies; expected a flexible link on one side"
            )
        if j.motor is not None and j.motor.rotor is not None:
            faults.append(f"joints.{j.name}.motor.rotor: expected none in space")
        if j.stops is not None and (j.flexible or j.type != "revolute"):
            faults.append(
                f"joints.{j.name}.stops: in space expected on a revolute joint without stiffness"
            )
        if j.flexible and j.type != "revolute":
            faults.append(f"joints.{j.name}.stiffness: expected a revolute joint")
    return faults


class TransferMatrixModel(AbstractModel):
    robot: Robot
    formulation: TransferMatrix
    layout: Layout = eqx.field(static=True)
    chain: Chain

    def sweeps(self, drive: Drive) -> TransferTerm:
        """The equations at the acceleration level, which also tell what follows from a motion."""
        method = self.formulation
        linearisation = LINEARISATIONS[0]
        if method.variant == "acceleration" and method.linearisation is not None:
            linearisation = method.linearisation
        passes = method.passes or (2 if linearisation == "history" else 1)
        return TransferTerm(
            self.robot, self.chain, drive, self.layout, method.chain, linearisation, passes
        )

    def term(self, drive: Drive) -> TransferTerm | PaperTerm:
        method, term = self.formulation, self.sweeps(drive)
        if method.variant == "acceleration":
            return term
        linearisation = method.linearisation or PAPER_LINEARISATIONS[0]
        return PaperTerm(
            term, linearisation, method.passes or (2 if linearisation == "newton" else 1)
        )

    def initial_state(self, drive: Drive, t0, start: Start) -> State:
        mech, term = start_mech(self.sweeps(drive), t0, start), self.term(drive)
        if isinstance(term, PaperTerm):
            mech = term.extended(t0, None, mech)
        return State.fresh(mech, self.robot.gravity.dtype, drive.initial_memory(self.robot))

    def _angles(self, y: State) -> State:
        n = self.layout.n + len(self.layout.motors)
        mech = moved(y.mech, y.mech.q[:n], y.mech.v[:n])
        return State(mech, y.work, y.dissipated, y.memory)

    def observe(self, t, y: State, drive: Drive, s, piece_time=None):
        return snapshot(self.sweeps(drive), t, self._angles(y), s, piece_time)

    def energy(self, t, y: State, drive: Drive, piece_time=None) -> Energy:
        return Energy(
            *energies(self.sweeps(drive), t, self._angles(y).mech, piece_time), y.dissipated, y.work
        )

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return ChainNewmark(self.formulation.beta, self.formulation.gamma)

    def failure(self, t, y: State, drive: Drive) -> tuple[Array, Array]:
        return jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)


def start_mech(term: TransferTerm, t0, start: Start) -> Mechanical:
    """Links and joints as ``start`` says; prescribed joints as the drive says."""
    lay, robot = term.layout, term.robot
    elastic = {span.link for span in lay.spans if not span.rigid}
    shapes = start.shapes(robot, lambda i: i in elastic, "TransferMatrix")
    x, xd, xm = start.vectors(robot)
    value, rate, _ = term.drive.motion(robot, t0, None)
    prescribed = term.drive.prescribed(robot)
    ground = term.ground(t0, None)
    turn, spin = term.chain.connections.rest, jnp.zeros(lay.n, x.dtype)
    motor, motor_rate = jnp.zeros((2, len(lay.motors)), x.dtype)
    for s in lay.joints:
        name, d = robot.joints[s.joint].name, s.dof
        # Under a Motion a flexible joint starts unstretched on its motor unless the start names it.
        q = value[d] if prescribed[d] and (s.motor < 0 or name not in start.joints) else x[d]
        qd = rate[d] if prescribed[d] and (s.motor < 0 or name not in start.rates) else xd[d]
        turn, spin = turn.at[s.first].add(q), spin.at[s.first].add(qd)
        if s.motor >= 0:
            motor = motor.at[s.motor].set(value[d] if prescribed[d] else xm[d])
            motor_rate = motor_rate.at[s.motor].set(rate[d] if prescribed[d] else xd[d])
    deflected = jnp.zeros(lay.n, x.dtype)
    for s in lay.spans:
        if s.link in shapes:
            bend, bend_rate = shapes[s.link].push(
                lambda curve, s=s: segment_turns(curve, s.count, robot.links[s.link].length)
            )
            # The last one is between the last segment and the tip: it turns the next link.
            last = min(s.start + s.count + 1, lay.n)
            deflected = deflected.at[s.start : last].add(bend[: last - s.start])
            spin = spin.at[s.start : last].add(bend_rate[: last - s.start])
    q = jnp.concatenate([ground.angle + jnp.cumsum(turn + deflected), motor])
    mech = Mechanical(q, jnp.concatenate([ground.rate + jnp.cumsum(spin), motor_rate]))
    # The joint stands where the start says; the bodies beside it have turned further.
    bend = -deflected[term.kinds.first]
    return term.impose(t0, None, with_bend(term.series, mech, bend), ground)


def segment_turns(curve: Curve, count: int, length) -> Float[Array, " count+1"]:
    """Angles of a deflected link from base to first segment, from each segment to the next, and to
    the tip section. Its segments end on the curve."""
    ends = curve(np.arange(count + 1) / count)
    rise = jnp.concatenate([jnp.diff(ends[0, 0]) * count, ends[1, 0, -1:]]) / length
    return jnp.diff(jnp.arcsin(rise), prepend=0.0)
