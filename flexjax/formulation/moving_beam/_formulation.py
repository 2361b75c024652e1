"""The nonlinear moving beam of variable length on a joint frame with arbitrary motion."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._results import Status
from flexjax._types import PieceTime, ScalarLike, Velocities
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel
from flexjax.formulation.moving_beam import _carrier, _layout
from flexjax.formulation.moving_beam._chain import MovingBeamTerm
from flexjax.formulation.moving_beam._link import Arm
from flexjax.formulation.moving_beam._observe import snapshot
from flexjax.formulation.moving_beam._paper import Matrices, global_matrices
from flexjax.formulation.moving_beam._shapes import Shapes
from flexjax.formulation.moving_beam._start import bent_unknowns
from flexjax.formulation.moving_beam._strain import Term, is_bounded, resolve, table, tables
from flexjax.mechanism import Energy, JointHardware, Start, joint_hardware
from flexjax.numerics.beam._polynomial import ShapeSet
from flexjax.numerics.solver import DiscreteGradient
from flexjax.numerics.term import Mechanical, State
from flexjax.robot import Robot


def _as_order(order: str | Iterable[str | Term]):
    return order if isinstance(order, str) else tuple(sorted(order, key=str))


def _as_shapes(shapes: Mapping[str, str | ShapeSet] | tuple):
    return tuple(sorted(dict(shapes).items(), key=lambda x: x[0]))


class MovingBeam(AbstractFormulation):
    """One elastic arm (a beam, a beam that runs out of its joint, or telescoping tubes) on a rigid carrier, geometrically nonlinear.

    ``order``: "consistent" (default: every product of the fourth order), "complete" (curvatures end at products of two: the quartic energy of bending is
    three times too large), "cubic" (the order of the paper; its energy is unbounded below and collapses at a deflection of about one
    radius of gyration), "linear", or a collection of terms, e.g. ``{"EA a c c", "EA c c c c"}``; ``print(formulation)`` lists them.
    ``shapes``: shape functions of single fields ("ux", "alpha", "uy", "uz"), e.g. ``{"uy": "quintic"}``: "linear", "cubic", "quintic" or a
    ``ShapeSet`` of Hermite's kind; by default cubic, and linear for the twist. ``rotary``: rotary inertia of the sections. ``inertia="constant"``: the
    state-independent matrices of a linear model, for comparison.

    >>> import flexjax as fx
    >>> model = fx.MovingBeam(elements=5).bind(fx.load_robot("soeffker-telescopic"))
    """

    paper: ClassVar[str] = (
        "D. Söffker, Automatic generation of the equations of motion of the moving nonlinear elastic beam (1998)."
    )
    elements: int = eqx.field(static=True, default=5)
    order: str | tuple = eqx.field(static=True, converter=_as_order, default="consistent")
    rotary: bool = eqx.field(static=True, default=True)
    inertia: str = eqx.field(static=True, default="complete")
    shapes: Mapping[str, str | ShapeSet] | tuple = eqx.field(
        static=True, converter=_as_shapes, default=()
    )

    def __check_init__(self):
        if self.elements < 1:
            raise ValueError(f"elements: {self.elements}; expected at least 1.")
        if self.inertia not in ("complete", "constant"):
            raise ValueError(f"inertia: {self.inertia!r}; expected 'complete' or 'constant'.")
        resolve(self.order)
        Shapes.of(dict(self.shapes))

    def layout(self, robot: Robot) -> _layout.Layout:
        return _layout.layout(robot, self.elements, Shapes.of(dict(self.shapes)))

    @property
    def terms(self) -> tuple[Term, ...]:
        return resolve(self.order)

    def planar_terms(self, planar: bool) -> tuple[Term, ...]:
        """The terms without those that vanish when the beam stays in its plane."""
        return tuple(t for t in self.terms if t.planar or not planar)

    def __str__(self) -> str:
        return f"MovingBeam(elements={self.elements}), {table(self.terms)}"

    def refusals(self, robot: Robot) -> list[str]:
        faults = _layout.refusals(robot, self.elements)
        if self.inertia == "constant" and not faults and self.layout(robot).lengths:
            faults.append("inertia='constant' with a variable length; expected 'complete'")
        return faults

    def option_warnings(self, robot: Robot) -> list[str]:
        if is_bounded(self.terms):
            return []
        return [
            "the chosen order couples extension and slope without the fourth power of the slope: its energy is unbounded below. Trust it for "
            "deflections below 0.3 radii of gyration; near one radius it collapses (Status.energy_collapse). order='consistent' does not."
        ]

    def build(self, robot: Robot) -> "MovingBeamModel":
        lay = self.layout(robot)
        couplings = {
            t.name: jnp.ones((), robot.gravity.dtype) for t in self.planar_terms(lay.planar)
        }
        return MovingBeamModel(
            robot, self, lay, _carrier.carrier(robot, lay), _carrier.arm(robot, lay, self.rotary), _carrier.payloads(robot, lay), joint_hardware(robot),
            couplings,
        )  # fmt: skip


class MovingBeamModel(AbstractModel):
    """``couplings`` multiply the terms of the strain energy, by name (1 each; ``model.couplings["EA a c c"]``): to ask what a coupling does, and how much of
    it data can see, differentiate with respect to them."""

    robot: Robot
    formulation: MovingBeam
    layout: _layout.Layout = eqx.field(static=True)
    car: _carrier.Carrier
    arm: Arm
    tip: _carrier.Tip
    hardware: JointHardware
    couplings: dict[str, Array]

    def term(self, drive: Drive) -> MovingBeamTerm:
        tab = tables(self.formulation.planar_terms(self.layout.planar), self.layout.shapes)
        constant = self.formulation.inertia == "constant"
        return MovingBeamTerm(
            self.robot,
            drive,
            self.car,
            self.arm,
            self.tip,
            self.hardware,
            self.couplings,
            self.layout,
            tab,
            constant,
        )

    def initial_state(self, drive: Drive, t0: ScalarLike, start: Start) -> State:
        x, xd, _ = start.vectors(self.robot)
        rest = jnp.zeros(self.layout.nv - self.layout.dofs, x.dtype)
        term = self.term(drive)
        mask, q_p, v_p, _ = term.prescribed(t0, None)
        q, v = (
            jnp.where(mask, q_p, jnp.concatenate([x, rest])),
            jnp.where(mask, v_p, jnp.concatenate([xd, rest])),
        )
        shapes = start.shapes(self.robot, lambda i: i in self.layout.tubes, "MovingBeam")
        if shapes:
            lengths = np.array(self.layout.lengths, int)
            bent, bent_rate = bent_unknowns(self.arm, self.layout, shapes, q[lengths], v[lengths])
            q, v = (
                jnp.concatenate([a[: self.layout.dofs], b]) for a, b in ((q, bent), (v, bent_rate))
            )
        return State.fresh(
            Mechanical(q, v), self.robot.gravity.dtype, drive.initial_memory(self.robot)
        )

    def matrices(
        self, t: ScalarLike, y: State, drive: Drive, acceleration: Velocities | None = None
    ) -> Matrices:
        """M, D, K, K_strain and f of eq. (22) at one instant, over the elastic unknowns (payloads left out)."""
        term = self.term(drive)
        q, v = y.mech.q, y.mech.v
        a = term.accelerate(t, q, v, None, y.memory) if acceleration is None else acceleration
        return global_matrices(term, self.formulation.planar_terms(self.layout.planar), t, q, v, a)

    def observe(
        self, t: ScalarLike, y: State, drive: Drive, s: Float[Array, " S"], at: PieceTime = None
    ):
        return snapshot(self.term(drive), t, y, s, at)

    def energy(self, t: ScalarLike, y: State, drive: Drive, at: PieceTime = None) -> Energy:
        kinetic, elastic, gravity = self.term(drive).energies(t, y.mech.q, y.mech.v, at)
        return Energy(kinetic, elastic, gravity, y.dissipated, y.work)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return DiscreteGradient()

    def failure(self, t: ScalarLike, y: State, drive: Drive) -> tuple[Array, Array]:
        """A strain energy below zero is a collapse; a tube that leaves its guide, or an overlap that vanishes, has run off."""
        term = self.term(drive)
        _, d, _ = term.split(y.mech.q)
        code = jnp.where(
            term.strain(y.mech.q) < -1e-12 * jnp.max(self.arm.stiffness),
            int(Status.energy_collapse),
            int(Status.ok),
        )
        where = jnp.full((), -1)
        if self.layout.lengths:
            X, l = self.arm.mesh(d)
            off = jnp.any(l <= 0)
            own = np.array([k for k, m in enumerate(self.layout.length_of_tube) if m >= 0])
            # A motion that ends at the tube's very end arrives there with rounding.
            slack = 1e-9 * self.arm.tube_length[own]
            out = (d < -slack) | (d > self.arm.tube_length[own] + slack)
            code = jnp.where(off | jnp.any(out), int(Status.ran_off_link), code)
            where = jnp.where(
                off | jnp.any(out), jnp.asarray(self.layout.length_joints)[jnp.argmax(out)], where
            )
        return jax.lax.stop_gradient((code.astype(jnp.int32), where.astype(jnp.int32)))
