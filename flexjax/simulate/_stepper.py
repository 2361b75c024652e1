"""One compiled time step, for control loops, hardware in the loop and reinforcement learning."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, Int

from flexjax._compile import filter_jit
from flexjax._results import Status
from flexjax._types import NumbersLike, ScalarLike, is_traced
from flexjax.drive import Drive, Effort
from flexjax.drive.signal import constant, prepare as prepare_signals
from flexjax.formulation import AbstractModel, Start
from flexjax.mechanism import SNAPSHOT
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.robot.parts._fault import no_such_joint
from flexjax.simulate._simulate import check_solver, differentiable, to_precision
from flexjax.simulate._start import first_state, read_drive, read_start
from flexjax.simulate._tangent import takes_effort
from flexjax.simulate.loop._march import RunState, advance_interval, prepare
from flexjax.simulate.loop._range import guarded
from flexjax.simulate.trajectory._readings import static_readings

OBSERVED = (*sorted(SNAPSHOT), "tip", "energy", "sensors")


class StepperState(eqx.Module):
    """A run between two steps: a pytree to store, to batch and to differentiate.

    ``k`` counts the steps; the time is ``t0 + k * dt``. ``resumed``: the rates are those before a
    break of the drive at this time.
    """

    run: RunState
    k: Int[Array, ""]
    t0: Float[Array, ""]
    resumed: Bool[Array, ""]

    @property
    def status(self) -> Int[Array, ""]:
        """0 while all steps succeeded; otherwise the state is that before the failed step."""
        return self.run.status

    @property
    def ok(self) -> bool | Bool[Array, "..."]:
        """Whether all steps succeeded; an array for a batch and inside a traced function."""
        good = self.status == Status.ok
        return good if is_traced(good) or good.ndim else bool(good)


class Stepper(eqx.Module):
    """What :func:`stepper` returns: ``reset`` and the step itself, ``state, seen = step(state)``.

    ``inputs`` are the joints that take an effort in every step, in order, and ``effort_size`` the
    number of their coordinates.
    """

    model: AbstractModel
    drive: Drive
    solver: diffrax.AbstractSolver
    dt: Float[Array, ""]
    substeps: int = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    observe: tuple[str, ...] = eqx.field(static=True)

    @property
    def effort_size(self) -> int:
        """Number of efforts of one step."""
        return _size(self.model.robot, self.inputs)

    def reset(
        self,
        start: Start | State | dict | None = None,
        *,
        t0: ScalarLike = 0.0,
        efforts: NumbersLike | dict[str, NumbersLike] | None = None,
    ) -> tuple[StepperState, dict[str, Any]]:
        """State and observation at the start.

        Arguments:
            start: as in :func:`simulate`.
            t0: time of the start [s].
            efforts: efforts at the start, as in a step; they affect accelerations and efforts that
                are observed there.

        Returns:
            The state, and a dict of observed quantities.
        """
        begin = jnp.asarray(t0, self.dt.dtype)
        start = read_start(start, self.model, self.drive, begin)
        return _reset(self, start, begin, self._efforts(efforts))

    def __call__(
        self, state: StepperState, efforts: NumbersLike | dict[str, NumbersLike] | None = None
    ) -> tuple[StepperState, dict[str, Any]]:
        """Advance by ``dt`` under constant efforts.

        Arguments:
            state: a state of :meth:`reset` or of another step.
            efforts: efforts of the joints ``inputs`` [N m or N] during the step: an array in
                their order, or a dict by name (joints that are left out are free).

        Returns:
            The state after the step, and what is observed there; NaN after a failure.
        """
        return _step(self, state, self._efforts(efforts))

    def _efforts(self, efforts: Any) -> Float[Array, " m"]:
        dofs = {j.name: j.dofs for j in self.model.robot.tree_joints}
        if efforts is None:
            efforts = {}
        if isinstance(efforts, dict):
            for name in efforts:
                if name not in self.inputs:
                    raise ValueError(no_such_joint(f"efforts.{name}", name, self.inputs))
            parts = [
                jnp.broadcast_to(jnp.asarray(efforts.get(name, 0.0), self.dt.dtype), (dofs[name],))
                for name in self.inputs
            ]
            efforts = jnp.concatenate(parts) if parts else jnp.zeros(0, self.dt.dtype)
        efforts = jnp.asarray(efforts, self.dt.dtype)
        if efforts.shape != (self.effort_size,):
            raise ValueError(
                f"efforts: shape {efforts.shape}; expected ({self.effort_size},), the efforts of "
                f"{', '.join(self.inputs) or 'no joint'}."
            )
        return efforts


def stepper(
    model: AbstractModel,
    drive: Drive | None = None,
    dt: float = 1e-3,
    *,
    substeps: int = 1,
    solver: diffrax.AbstractSolver | None = None,
    observe: Sequence[str] = ("q", "qd", "tip"),
) -> Stepper:
    """One compiled time step: state and efforts in, state and observation out.

    The step is a pure function: ``jax.grad``, ``jax.vmap``, ``jax.jit`` and ``jax.lax.scan`` work
    on it. Steps give the numbers of :func:`simulate` to rounding.

    Arguments:
        model: a robot in a formulation.
        drive: motions, controllers and loads, as in :func:`simulate`; the step takes efforts for
            the joints that it does not drive.
        dt: time between two calls [s].
        substeps: equal time steps in one call.
        solver: a diffrax solver that accepts the model's term; by default the model's own.
        observe: what a step returns: fields of :class:`Snapshot`, "tip" (world position),
            "energy", "sensors" (readings by name, without low-pass, delay and noise).

    Returns:
        A :class:`Stepper`.

    Raises:
        ValueError: the drive does not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> step = fx.stepper(fx.RigidArm().bind(fx.load_robot("two-link")), dt=1e-2)
    >>> state, seen = step.reset()
    >>> state, seen = step(state, {"shoulder": 0.5})
    >>> sorted(seen), state.ok
    (['q', 'qd', 't', 'tip'], True)
    """
    robot = model.robot
    drive = read_drive(drive, robot)
    unknown = [name for name in observe if name not in OBSERVED]
    if unknown:
        raise ValueError(f"observe: {unknown[0]!r}; expected some of {', '.join(OBSERVED)}.")
    if not is_traced(dt) and not (float(dt) > 0 and math.isfinite(float(dt))):
        raise ValueError(f"dt: {dt}; expected a positive time in seconds.")
    if isinstance(substeps, bool) or int(substeps) != substeps or substeps < 1:
        raise ValueError(f"substeps: {substeps}; expected a whole number of at least 1.")
    inputs = tuple(
        joint.name
        for joint in robot.tree_joints
        if joint.dofs and takes_effort(joint) and joint.name not in drive.joints
    )
    dtype = robot.gravity.dtype
    whole = with_inputs(drive, robot, inputs, jnp.zeros(_size(robot, inputs), dtype))
    whole.check(robot)
    solver = model.default_solver(whole) if solver is None else solver
    check_solver(solver, model, whole)
    return Stepper(
        model,
        to_precision(drive, dtype),
        differentiable(to_precision(solver, dtype)),
        jnp.asarray(dt, dtype),
        int(substeps),
        inputs,
        tuple(observe),
    )


def _size(robot: Robot, names: Sequence[str]) -> int:
    """Number of coordinates of some joints."""
    return sum(j.dofs for j in robot.tree_joints if j.name in names)


def with_inputs(drive: Drive, robot: Robot, inputs: Sequence[str], efforts: Array) -> Drive:
    """The drive with a constant effort on every input."""
    joints, at = dict(drive.joints), 0
    for joint in robot.tree_joints:
        if joint.name in inputs:
            joints[joint.name] = Effort(constant(efforts[at : at + joint.dofs]))
            at += joint.dofs
    return dataclasses.replace(drive, joints=joints)


@filter_jit
def _reset(step: Stepper, start: Start | State, t0: Float[Array, ""], efforts: Float[Array, " m"]):
    drive = with_inputs(step.drive, step.model.robot, step.inputs, efforts)
    holds, drive, start = guarded(step.model, drive, start)
    drive = prepare_signals(drive)
    y0 = first_state(step.model, drive, t0, start)
    ts = jnp.stack([t0, t0 + step.dt])
    resumed = isinstance(start, State)
    made = prepare(step.model, drive, step.solver, ts, step.substeps, y0, holds, resumed)
    state = StepperState(made.run, jnp.zeros((), jnp.int32), t0, jnp.asarray(resumed))
    return state, _observation(step, drive, t0, made.first, made.pieces[0], made.run.status)


@filter_jit
def _step(step: Stepper, state: StepperState, efforts: Float[Array, " m"]):
    drive = with_inputs(step.drive, step.model.robot, step.inputs, efforts)
    return advance(step, state, drive, new_efforts=bool(step.inputs))


def advance(
    step: Stepper, state: StepperState, drive: Drive, *, new_efforts: bool
) -> tuple[StepperState, dict[str, Any]]:
    """One step under a drive that actuates every joint; see :func:`advance_interval`."""
    drive = prepare_signals(drive)
    ts = state.t0 + step.dt * jnp.stack([state.k, state.k + 1]).astype(step.dt.dtype)
    run, drive, piece = advance_interval(
        step.model,
        drive,
        step.solver,
        ts,
        step.substeps,
        state.run,
        new_efforts=new_efforts,
        resumed=state.resumed,
    )
    new = StepperState(run, state.k + 1, state.t0, jnp.asarray(True))
    return new, _observation(step, drive, ts[1], run.y, piece, run.status)


def _observation(
    step: Stepper, drive: Drive, t: Array, y: State, piece: Array, status: Array
) -> dict[str, Any]:
    """The observed quantities at one time; NaN after a failure."""
    model = step.model
    y = model.term(drive).with_prescribed_rates(t, y, piece)
    names = {"frames" if name == "tip" else name for name in step.observe if name != "sensors"}
    s = jnp.linspace(0.0, 1.0, 11, dtype=t.dtype)
    found = dict(model.outputs(t, y, drive, s, piece, frozenset(names)))
    if "tip" in step.observe:
        found["tip"] = found["frames"][-1, -1, :3]
    if "sensors" in step.observe:
        readings = static_readings(model, drive, t, y)
        found["sensors"] = {x.name: readings[i] for i, x in enumerate(model.robot.sensors)}
    seen = {name: found[name] for name in step.observe}
    failed = status != int(Status.ok)
    seen = jtu.tree_map(lambda x: jnp.where(failed, jnp.nan, x), seen)
    return {"t": t, **seen}
