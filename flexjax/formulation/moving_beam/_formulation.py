"""The nonlinear moving beam of variable length on a joint frame with arbitrary motion."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax._results import Status
from flexjax._types import PieceTime, ScalarLike, Stations, Velocities
from flexjax.drive import Drive
from flexjax.formulation._base import AbstractFormulation, AbstractModel, check_variant
from flexjax.formulation._left_out import coordinates, lacks_shear, large_bending
from flexjax.formulation.moving_beam._carrier import (
    ArmLayout,
    Carrier,
    arm_layout,
    carrier_parameters,
)
from flexjax.formulation.moving_beam._chain import MovingBeamTerm
from flexjax.formulation.moving_beam._link import (
    Arm,
    Payloads,
    arm_parameters,
    payload_parameters,
)
from flexjax.formulation.moving_beam._observe import outputs
from flexjax.formulation.moving_beam._paper import Matrices, global_matrices
from flexjax.formulation.moving_beam._refusals import refusals
from flexjax.formulation.moving_beam._start import bent_unknowns
from flexjax.formulation.moving_beam.beam._shapes import Shapes, field_rows
from flexjax.formulation.moving_beam.beam._strain import Term, is_bounded, resolve, table, tables
from flexjax.mechanism import (
    Energy,
    JointHardware,
    Start,
    bristle_energy,
    energy_of,
    joint_hardware,
)
from flexjax.numerics.beam import ShapeSet
from flexjax.numerics.solver import DiscreteGradient
from flexjax.numerics.term import Instant, Mechanical, State
from flexjax.robot import Robot


def _as_order(order: str | Iterable[str | Term] | None):
    return order if order is None or isinstance(order, str) else tuple(sorted(order, key=str))


def _as_shapes(shapes: Mapping[str, str | ShapeSet] | tuple):
    return tuple(sorted(dict(shapes).items(), key=lambda x: x[0]))


class MovingBeam(AbstractFormulation):
    """One elastic arm on a rigid carrier, geometrically nonlinear.

    The arm is a beam, a beam that slides out of its joint, or telescoping tubes.

    Arguments:
        elements: number of elements of the arm.
        variant: "complete", or "paper", the published order of the strain energy ("cubic").
        order: terms of the strain energy. "consistent" (of the complete variant) has all products
            of the fourth order. In "complete" curvatures end at products of two; the quartic energy
            of bending is three times too large. "cubic" is the order of the paper; its energy is
            unbounded below and collapses at a deflection of about one radius of gyration. "linear",
            or a collection of terms such as ``{"EA a c c", "EA c c c c"}``; ``print(formulation)``
            lists them.
        rotary: whether sections have rotary inertia.
        inertia: "complete", or "constant" for the state-independent matrices of a linear model.
        shapes: shape functions of single fields ("ux", "alpha", "uy", "uz"), such as
            ``{"uy": "quintic"}``: "linear", "cubic", "quintic" or a ``ShapeSet`` of Hermite's
            kind. The default is cubic, and linear for the twist.

    >>> import flexjax as fx
    >>> model = fx.MovingBeam(elements=5).bind(fx.load_robot("soeffker-telescopic"))
    """

    bend_power: ClassVar[int | None] = 4
    paper: ClassVar[str] = (
        "D. Söffker, Automatic generation of the equations of motion of the moving nonlinear "
        "elastic beam (1998)."
    )
    elements: int = eqx.field(static=True, default=5)
    variant: str = eqx.field(static=True, default="complete")
    order: str | tuple | None = eqx.field(static=True, converter=_as_order, default=None)
    rotary: bool = eqx.field(static=True, default=True)
    inertia: str = eqx.field(static=True, default="complete")
    shapes: Mapping[str, str | ShapeSet] | tuple = eqx.field(
        static=True, converter=_as_shapes, default=()
    )

    def __check_init__(self):
        if not isinstance(self.elements, int | np.integer) or self.elements < 1:
            raise ValueError(
                f"elements: {self.elements}; expected a whole number of at least 1, e.g. 5."
            )
        if self.inertia not in ("complete", "constant"):
            raise ValueError(f"inertia: {self.inertia!r}; expected 'complete' or 'constant'.")
        check_variant(self.variant)
        resolve(self._order)
        Shapes.of(dict(self.shapes))

    def layout(self, robot: Robot) -> ArmLayout:
        return arm_layout(robot, self.elements, Shapes.of(dict(self.shapes)))

    @property
    def _order(self) -> str | tuple:
        if self.order is not None:
            return self.order
        return "consistent" if self.variant == "complete" else "cubic"

    @property
    def terms(self) -> tuple[Term, ...]:
        return resolve(self._order)

    def planar_terms(self, planar: bool) -> tuple[Term, ...]:
        """The terms without those that vanish if the beam stays in its plane."""
        return tuple(t for t in self.terms if t.planar or not planar)

    def __str__(self) -> str:
        return f"MovingBeam(elements={self.elements}), {table(self.terms)}"

    def refusals(self, robot: Robot) -> list[str]:
        return refusals(self, robot)

    def option_warnings(self, robot: Robot) -> list[str]:
        if is_bounded(self.terms):
            return []
        return [
            "the chosen order couples extension and slope without the fourth power of the slope: "
            "its energy is unbounded below. Trust it for deflections below 0.3 radii of gyration; "
            "near one radius it collapses (Status.energy_collapse). order='consistent' does not."
        ]

    def run_warnings(self, model: "MovingBeamModel", traj: Any) -> list[str]:
        """Links that bent beyond the fourth order of the energy, and shear."""
        found, layout = lacks_shear(self, model.robot), model.layout
        if self._order == "consistent" and not layout.lengths:
            rest = coordinates(traj)[:, layout.dofs :].reshape(-1, layout.elements, layout.width)
            rows, node = field_rows(layout.shapes), layout.node
            ends = [rows[f][len(rows[f]) // 2] - node for f in ("uy", "uz") if f in rows]
            tips = np.linalg.norm(rest[:, -1, ends], axis=1)
            link = model.robot.links[layout.tubes[0]]
            bends = {link.name: float(np.nanmax(tips, initial=0.0) / link.length)}
            found += large_bending(self, bends)
        return found

    def build(self, robot: Robot) -> "MovingBeamModel":
        layout = self.layout(robot)
        one = jnp.ones((), robot.gravity.dtype)
        return MovingBeamModel(
            robot,
            self,
            layout,
            carrier_parameters(robot, layout),
            arm_parameters(robot, layout, self.rotary),
            payload_parameters(robot, layout),
            joint_hardware(robot),
            {t.name: one for t in self.planar_terms(layout.planar)},
        )


class MovingBeamModel(AbstractModel):
    """A robot as a moving beam.

    ``couplings`` are factors of the terms of the strain energy by name, 1 each
    (``model.couplings["EA a c c"]``). Derivatives with respect to them show the effect of a
    coupling, and how well data can identify it.
    """

    robot: Robot
    formulation: MovingBeam
    layout: ArmLayout = eqx.field(static=True)
    carrier: Carrier
    arm: Arm
    payloads: Payloads
    hardware: JointHardware
    couplings: dict[str, Array]

    def term(self, drive: Drive) -> MovingBeamTerm:
        return MovingBeamTerm(
            robot=self.robot,
            drive=drive,
            carrier=self.carrier,
            arm=self.arm,
            payloads=self.payloads,
            hardware=self.hardware,
            couplings=self.couplings,
            layout=self.layout,
            tables=tables(self._terms, self.layout.shapes),
            constant=self.formulation.inertia == "constant",
        )

    @property
    def _terms(self) -> tuple[Term, ...]:
        return self.formulation.planar_terms(self.layout.planar)

    def initial_mechanics(self, drive: Drive, t0: ScalarLike, start: Start) -> Mechanical:
        layout, D = self.layout, self.layout.dofs
        x, xd, _ = start.vectors(self.robot)
        rest = jnp.zeros(layout.nv - D, x.dtype)
        mask, q, v, _ = self.term(drive).prescribed(t0, None)
        q = jnp.where(mask, q, jnp.concatenate([x, rest]))
        v = jnp.where(mask, v, jnp.concatenate([xd, rest]))
        shapes = start.shapes(self.robot, lambda i: i in layout.tubes, "MovingBeam")
        if shapes:
            lengths = np.array(layout.lengths, int)
            bent, bent_rate = bent_unknowns(self.arm, layout, shapes, q[lengths], v[lengths])
            q, v = jnp.concatenate([q[:D], bent]), jnp.concatenate([v[:D], bent_rate])
        return Mechanical(q, v)

    def matrices(
        self, t: ScalarLike, y: State, drive: Drive, acceleration: Velocities | None = None
    ) -> Matrices:
        """M, D, K, K_strain and f of eq. (22) over the elastic unknowns, without payloads."""
        term = self.term(drive)
        q, v = y.mech.q, y.mech.v
        now = Instant(t, None, y.memory)
        a = term.accelerate(now, q, v) if acceleration is None else acceleration
        return global_matrices(term, self._terms, now, q, v, a)

    def outputs(
        self,
        t: ScalarLike,
        y: State,
        drive: Drive,
        s: Stations,
        piece_time: PieceTime,
        names: frozenset[str],
    ) -> dict[str, Any]:
        found = outputs(self.term(drive), t, y, s, piece_time, names - {"energy"})
        if "energy" in names:
            found["energy"] = self.energy(t, y, drive, piece_time)
        return found

    def energy(self, t: ScalarLike, y: State, drive: Drive, piece_time: PieceTime = None) -> Energy:
        term = self.term(drive)
        energies = term.energies(Instant(t, piece_time), y.mech.q, y.mech.v)
        bristles = bristle_energy(term.hardware, y.memory, *term.joint_sides(y.mech.q, y.mech.v))
        return energy_of(energies, y, bristles)

    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        return DiscreteGradient()

    def failure(self, t: ScalarLike, y: State, drive: Drive) -> tuple[Array, Array]:
        """Collapse: the strain energy is below zero. Run off: a tube has left its guide."""
        term, layout = self.term(drive), self.layout
        collapsed = term.strain(y.mech.q) < -1e-12 * jnp.max(self.arm.stiffness)
        code = jnp.where(collapsed, int(Status.energy_collapse), int(Status.ok))
        where = jnp.full((), -1)
        if layout.lengths:
            _, d, _ = term.split(y.mech.q)
            own = np.array([k for k, m in enumerate(layout.length_of_tube) if m >= 0])
            length = self.arm.tube_length[own]
            # A motion that ends at the tube's end arrives there up to round-off.
            out = (d < -1e-9 * length) | (d > length + 1e-9 * length)
            off = jnp.any(self.arm.mesh(d)[1] <= 0) | jnp.any(out)
            code = jnp.where(off, int(Status.ran_off_link), code)
            where = jnp.where(off, jnp.asarray(layout.length_joints)[jnp.argmax(out)], where)
        return jax.lax.stop_gradient((code.astype(jnp.int32), where.astype(jnp.int32)))
