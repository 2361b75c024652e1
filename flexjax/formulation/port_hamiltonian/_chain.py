"""Links, joints and loops together as a term: what solvers, modes and equilibrium see of a
mechanism."""

import dataclasses

import jax.numpy as jnp

from flexjax.drive import Drive, Feedback
from flexjax.formulation.port_hamiltonian import _dynamics, _loops, _newton, _stage
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._dynamics import Accelerations
from flexjax.numerics.term import AbstractPortHamiltonianTerm, PortState, PortTangent, State


class PortTerm(AbstractPortHamiltonianTerm):
    """Equations of motion of a mechanism under one drive."""

    arm: Assembly

    @property
    def drive(self) -> Drive:
        return self.arm.drive

    @property
    def exact(self) -> bool:
        feedback = any(isinstance(a, Feedback) for a in self.drive.joints.values())
        return (
            not feedback
            and self.arm.num.deformation_damping is None
            and _loops.exact(self.arm.plans, self.arm.st.planar)
        )

    # --- a stage
    def prepare(self, t, mech: PortState, h, arrival, piece_time, memory):
        return _stage.prepare(self.arm, t, mech, h, arrival, piece_time, memory)

    def guess(self, mech: PortState):
        return _stage.guess(self.arm, mech)

    def residual(self, stage, unknowns):
        return _stage.residual(self.arm, stage, unknowns)

    def limits(self, stage, unknowns):
        return _stage.limits(self.arm, stage, unknowns)

    def linearise(self, stage, unknowns):
        return _newton.linearise(self.arm, stage, unknowns)

    @property
    def batches(self) -> bool:
        # In space the blocks are worked on with the batch in front; a user's density knows no axes
        # of a batch.
        return self.arm.st.planar and self.arm.num.elements.density is None

    def corrections(self, stage, unknowns, batched, size):
        return _newton.corrections(self.arm, stage, unknowns, (batched[0].arm, batched[1]), size)

    def arrive(self, stage, unknowns, factor):
        return _stage.arrive(
            self.arm, stage, unknowns, factor, _stage.evaluate(self.arm, stage, unknowns)
        )

    def blend(self, a: PortState, b: PortState, weight, step, unknowns) -> PortState:
        return _stage.blend(self.arm, a, b, weight, step, unknowns)

    def settle(self, t, mech: PortState, piece_time) -> PortState:
        return self.arm.settle(t, mech, piece_time)

    # --- the differential equation itself
    def instant(self, t, mech: PortState, piece_time, memory) -> Accelerations:
        return _dynamics.accelerations(self.arm, t, mech, piece_time, memory)

    def with_prescribed_rates(self, t, y: State, piece_time) -> State:
        # The midpoint rule gives rates whose mean over a step is right; after a jump they
        # alternate.
        arm = self.arm
        locked = arm.collect(arm.masks()[1].astype(y.mech.v.dtype)) > 0
        rate = arm.to_v(arm.drive.motion(arm.robot, t, piece_time)[1])
        mech = dataclasses.replace(y.mech, v=jnp.where(locked, rate, y.mech.v))
        return dataclasses.replace(y, mech=mech)

    def held(self, t, dx: PortTangent) -> PortTangent:
        return self.arm.held(dx)

    def complete(self, t, mech: PortState, piece_time) -> PortState:
        return _dynamics.complete(self.arm, t, mech, piece_time)

    def rate(self, t, y: State, piece_time) -> PortTangent:
        return self.instant(t, y.mech, piece_time, y.memory).tangent

    def retract(self, mech: PortState, dx: PortTangent) -> PortState:
        q, Q = self.arm.move_q(mech.q, dx.q), mech.Q + dx.Q
        return _dynamics.assemble(
            self.arm, jnp.zeros((), q.dtype), q, mech.v + dx.v, mech.V[:, 1:] + dx.V, Q, None
        )

    def ambient(self, mech: PortState, dx: PortTangent) -> PortState:
        return _dynamics.ambient(self.arm, mech, dx)

    def power(self, t, y: State, piece_time):
        a = self.instant(t, y.mech, piece_time, y.memory)
        return a.power, a.loss

    def motor_coordinates(self, y: State):
        return self.arm.motor_side(y.mech.q, y.mech.v)

    def energies(self, y: PortState):
        """(kinetic, elastic, gravity)."""
        return self.arm.energies(y)
