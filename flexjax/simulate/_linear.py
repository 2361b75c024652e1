"""Modes, equilibrium and linearisation: one code for every formulation, on the term's rate and retraction."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, ScalarLike, is_traced, ravel
from flexjax.drive import AbstractActuation, ActuationState, Drive, Effort, Load, Motion
from flexjax.drive.signal import constant, stack
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import AbstractTerm, State
from flexjax.robot import effort_unit, sensor_unit
from flexjax.simulate._readings import read
from flexjax.simulate._start import first_state, marked, origin_of, read_start


class Modes(eqx.Module):
    """Vibration about a state: frequencies [Hz], damping ratios, and complex shapes in retract coordinates (columns; no derivative)."""

    frequencies: Float[Array, " n"]
    damping: Float[Array, " n"]
    shapes: Array
    at: State

    def __str__(self) -> str:
        if len(self.frequencies) == 0:
            return "no mode that vibrates: nothing here is elastic but what is held"
        rows = [
            f"  {i + 1:3d}  {float(f):12.5g}  {float(z):10.3g}"
            for i, (f, z) in enumerate(zip(self.frequencies, self.damping, strict=True))
        ]
        return "mode  frequency [Hz]  damping ratio\n" + "\n".join(rows)


class Linear(eqx.Module):
    """x' = A x + B u, y = C x + D u about a state; x in retract coordinates, u = efforts then loads, y = sensors in order; units of u and y by the side."""

    A: Float[Array, "n n"]
    B: Float[Array, "n m"]
    C: Float[Array, "p n"]
    D: Float[Array, "p m"]
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    input_units: tuple[str, ...] = eqx.field(static=True, default=())
    output_units: tuple[str, ...] = eqx.field(static=True, default=())


def _state(model: AbstractModel, drive: Drive, at: State | Start | dict | None) -> State:
    start = read_start(at, model, drive, None)
    if isinstance(start, State):
        return start
    return marked(_first(model, drive, start), origin_of(model, start))


@eqx.filter_jit
def _first(model: AbstractModel, drive: Drive, start: Start | State) -> State:
    return first_state(model, drive, jnp.zeros((), model.robot.gravity.dtype), start)


def _shifted(
    term: AbstractTerm, y: State, unravel: Callable[[Array], PyTree]
) -> Callable[[Array], State]:
    """The state moved by a flat tangent."""
    return lambda x: State(term.retract(y.mech, unravel(x)), y.work, y.dissipated, y.memory)


def _tangent(
    term: AbstractTerm, y: State, t: ScalarLike
) -> tuple[Float[Array, " n"], Callable[[Array], PyTree]]:
    """(size of the tangent space, from flat to tangent)."""
    shape = jax.eval_shape(lambda: term.rate(t, y, None))
    flat, unravel = ravel(jax.tree_util.tree_map(lambda s: jnp.zeros(s.shape, s.dtype), shape))
    return flat, unravel


def _lock(model: AbstractModel, at: State | Start | dict | None, lock: str) -> Drive:
    if lock not in ("motors", "none"):
        raise ValueError(
            f"lock: {lock!r}; expected 'motors' (every joint held at its motor) or 'none' (all joints free)."
        )
    if lock == "none":
        return Drive()
    start = at if isinstance(at, Start) else Start(joints=at) if isinstance(at, dict) else Start()
    q, _, motor = start.vectors(model.robot)
    slices = model.robot.dof_slices()
    held = {}
    for j in model.robot.tree_joints:
        if j.dofs and j.type not in ("spherical", "free"):
            value = (motor if j.flexible else q)[slices[j.name]]
            held[j.name] = Motion(
                constant(value[0]) if j.dofs == 1 else stack([constant(x) for x in value])
            )
    return Drive(joints=held)


def jacobian(
    model: AbstractModel, drive: Drive, y: State, t: ScalarLike = 0.0
) -> Float[Array, "n n"]:
    """d rate / d x in retract coordinates at a state (column by column, forward mode)."""
    term = model.term(drive)
    zero, unravel = _tangent(term, y, t)
    move = _shifted(term, y, unravel)

    def rate(x):
        # At an equilibrium the rate vanishes, so its dependence on where the tangent is attached does not matter.
        return ravel(term.rate(t, move(x), None))[0]

    return jax.jacfwd(rate)(zero)


@eqx.filter_jit
def _modes(model: AbstractModel, drive: Drive, y: State, n: int):
    A = jacobian(model, drive, y)
    values, right = jnp.linalg.eig(jax.lax.stop_gradient(A))
    left = jnp.linalg.inv(right)
    # First-order change of an eigenvalue is left_i dA right_i: right for repeated ones too, where differentiating eig gives NaN.
    change = jnp.einsum(
        "ij,jk,ki->i", left, (A - jax.lax.stop_gradient(A)).astype(values.dtype), right
    )
    values = values + change
    fixed = jax.lax.stop_gradient(values)
    size = jnp.abs(fixed)
    # One of each conjugate pair. A free coordinate without stiffness appears at round-off of the fastest mode, so what lies there is left out; but only below
    # 0.05 rad/s: with shear or strain-rate damping the fastest is 1e8 1/s and more, and arms vibrate at a ten-millionth of that (3 Hz of two-link).
    vibrates = (fixed.imag > 0) & (size > jnp.minimum(3e-7 * jnp.max(size, initial=0.0), 0.05))
    order = jnp.argsort(jnp.where(vibrates, size, jnp.inf))[:n]
    picked, real = values[order], vibrates[order]
    safe = jnp.where(real, picked, 1.0)
    magnitude = jnp.sqrt(safe.real**2 + safe.imag**2)
    # Infinity, not NaN, marks what does not vibrate: a good call passes under jax_debug_nans.
    frequency = jnp.where(real, magnitude / (2 * jnp.pi), jnp.inf)
    return frequency, jnp.where(real, -safe.real / magnitude, jnp.inf), right[:, order]


def modes(
    model: AbstractModel,
    at: State | Start | dict | None = None,
    *,
    lock: str = "motors",
    n: int = 6,
    drive: Drive | None = None,
) -> Modes:
    """Natural frequencies, damping ratios and shapes of small vibrations about a state (the robot's home unless told otherwise).

    ``lock="motors"`` holds every motor; flexible joints keep their springs. ``lock="none"`` frees all joints. A ``drive`` replaces both (controllers
    then take part). Frequencies are differentiable, also where they coincide; entries beyond the last vibrating mode
    are infinite where the call is traced, and left out otherwise.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("li-zhang-three-link"))
    >>> round(float(fx.modes(model).frequencies[0]), 1) > 0
    True
    """
    drive = _lock(model, at, lock) if drive is None else drive
    drive.check(model.robot)
    y = _state(model, drive, at)
    frequency, damping, shapes = _modes(model, drive, y, n)
    if not is_traced(frequency):
        keep = np.flatnonzero(np.isfinite(np.asarray(frequency)))
        frequency, damping, shapes = frequency[keep], damping[keep], shapes[:, keep]
    return Modes(frequency, damping, jax.lax.stop_gradient(shapes), y)


def equilibrium(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
    iterations: int = 60,
) -> State:
    """A state at rest under the drive's values at time ``t`` (gravity, loads, controllers): the root of the term's rate nearest to ``at``.

    Damped Gauss-Newton on the whole state; the result is differentiable by the implicit-function theorem. Raises RuntimeError if it does not
    converge (try a nearer start, or smaller loads first).
    """
    drive = Drive() if drive is None else drive
    drive.check(model.robot)
    start = _state(model, drive, at)
    y, residual = _equilibrium(
        model,
        drive,
        marked(start, ""),
        jnp.asarray(t, model.robot.gravity.dtype),
        iterations,
    )
    if not is_traced(residual) and not float(residual) < 1e-6:
        raise RuntimeError(
            f"equilibrium: no rest found (remaining correction {float(residual):.2g}); start nearer to it, or apply the loads in steps."
        )
    return marked(y, start.origin)


@eqx.filter_jit
def _equilibrium(
    model: AbstractModel, drive: Drive, y: State, t: ScalarLike, iterations: int
) -> tuple[State, Float[Array, ""]]:
    term = model.term(drive)
    flat, unravel = _tangent(term, y, t)
    # Not what a Motion holds, although moving it would change the forces on the rest.
    free = ~ravel(term.held(t, unravel(flat)))[0]

    def residual(term, y, x):
        return ravel(
            term.rate(
                t,
                State(
                    term.retract(y.mech, unravel(jnp.where(free, x, 0.0))),
                    y.work,
                    y.dissipated,
                    y.memory,
                ),
                None,
            )
        )[0]

    def correction(term, y):
        r = residual(term, y, flat)
        J = jax.jacfwd(lambda x: residual(term, y, x))(flat)
        # Rows and columns in their own units, so that stiff and soft coordinates weigh alike; locked coordinates have zero rows.
        rows = jnp.max(jnp.abs(J), axis=1)
        rows = jnp.where(rows > 0, rows, 1.0)
        return (
            r,
            -_least(jax.lax.stop_gradient(J / rows[:, None]), r / jax.lax.stop_gradient(rows)),
            rows,
        )

    fixed_term, fixed_y = jax.lax.stop_gradient(term), jax.lax.stop_gradient(y)

    def cond(carry):
        _, size, k, _ = carry
        return (k < iterations) & (size > 1e-13)

    def body(carry):
        y, _, k, trust = carry
        _, dx, _ = correction(fixed_term, y)
        size = jnp.max(jnp.abs(dx), initial=0.0)
        step = jnp.minimum(1.0, trust / jnp.maximum(size, 1e-30))
        moved = State(
            fixed_term.retract(y.mech, unravel(step * dx)), y.work, y.dissipated, y.memory
        )
        return moved, size, k + 1, trust

    start = (
        fixed_y,
        jnp.asarray(jnp.inf, flat.dtype),
        jnp.zeros((), jnp.int32),
        jnp.asarray(0.5, flat.dtype),
    )
    rest, size, _, _ = jax.lax.while_loop(cond, body, start)
    # One more Newton step, differentiated with its matrix held: the implicit-function derivative.
    _, dx, _ = correction(term, rest)
    return State(
        term.retract(rest.mech, unravel(dx)), y.work, y.dissipated, y.memory
    ), jax.lax.stop_gradient(jnp.max(jnp.abs(dx), initial=0.0))


def _least(J: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, " n"]:
    """Least-squares solution of smallest size (locked coordinates make J singular)."""
    return jnp.linalg.pinv(J, rtol=1e-13) @ r


def linearise(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
) -> Linear:
    """Linear state-space model about a state: x in retract coordinates, u = joint efforts (of joints without a Motion) then the drive's loads, y = the robot's
    sensors in order (static readings: gain and offset; no low-pass, no delay).
    """
    drive = Drive() if drive is None else drive
    drive.check(model.robot)
    y = _state(model, drive, at)
    t = jnp.asarray(t, model.robot.gravity.dtype)
    joints = [
        j
        for j in model.robot.tree_joints
        if j.dofs == 1 and not (j.name in drive.joints and drive.joints[j.name].prescribes)
    ]
    joints = [
        j for j in joints if not j.flexible or (j.motor is not None and j.motor.rotor is not None)
    ]
    inputs = [j.name for j in joints] + [
        f"load{i}.{c}"
        for i in range(len(drive.loads))
        for c in ("fx", "fy", "fz", "mx", "my", "mz")
    ]

    names = tuple(j.name for j in joints)
    A, B, C, D = _matrices(model, drive, y, t, names, jnp.zeros(len(inputs), t.dtype))
    units = [effort_unit(j) for j in joints] + ["N", "N", "N", "N m", "N m", "N m"] * len(
        drive.loads
    )
    sensors = model.robot.sensors
    return Linear(
        A,
        B,
        C,
        D,
        tuple(inputs),
        tuple(s.name for s in sensors),
        tuple(units),
        tuple(sensor_unit(s, model.robot) for s in sensors),
    )


@eqx.filter_jit
def _matrices(
    model: AbstractModel,
    drive: Drive,
    y: State,
    t: Float[Array, ""],
    names: Sequence[str],
    u0: Float[Array, " m"],
):
    zero, unravel = _tangent(model.term(_with_inputs(drive, names, u0)), y, t)

    def at(x, u):
        term = model.term(_with_inputs(drive, names, u))
        return term, State(term.retract(y.mech, unravel(x)), y.work, y.dissipated, y.memory)

    def rate(x, u):
        term, moved = at(x, u)
        return ravel(term.rate(t, moved, None))[0]

    def sensors(x, u):
        term, moved = at(x, u)
        return read(model, term.drive, t, moved)

    return *jax.jacfwd(rate, (0, 1))(zero, u0), *jax.jacfwd(sensors, (0, 1))(zero, u0)


class _Added(AbstractActuation):
    """An actuation plus a constant effort."""

    prescribes = False
    inner: AbstractActuation
    extra: Array

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Array:
        return self.inner.effort(t, piece_time, state) + self.extra

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return self.inner.stiffness()

    def signals(self):
        return self.inner.signals()


def _with_inputs(drive: Drive, names: Sequence[str], u: Float[Array, " m"]) -> Drive:
    """The drive with efforts u added: on free joints as Effort, on the loads as a constant wrench."""
    acts = dict(drive.joints)
    for i, name in enumerate(names):
        old = drive.joints.get(name)
        if old is None:
            acts[name] = Effort(constant(u[i]))
        elif isinstance(old, Effort):
            acts[name] = Effort(old.signal + constant(u[i]))
        else:
            acts[name] = _Added(old, u[i])
    loads = []
    for k, load in enumerate(drive.loads):
        extra = u[len(names) + 6 * k : len(names) + 6 * k + 6]
        loads.append(
            Load(load.link, load.wrench + stack([constant(x) for x in extra]), load.s, load.frame)
        )
    return Drive(acts, tuple(loads), drive.base)
