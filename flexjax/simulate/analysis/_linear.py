"""Modes and linearisation: one code for every formulation, on the term's rate and retraction."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._html import bars, block, curves
from flexjax._types import ScalarLike, is_traced, ravel
from flexjax.drive import Drive, Load
from flexjax.drive.signal import constant, stack
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import Robot, effort_unit, sensor_unit
from flexjax.simulate._start import read_drive, starting_state
from flexjax.simulate._tangent import (
    displaced,
    free_coordinates,
    takes_effort,
    tangent_space,
    with_efforts,
)
from flexjax.simulate.analysis._rest import held_motors
from flexjax.simulate.analysis._state_space import (
    Matrices,
    balance,
    control_system,
    frequency_response,
    observed,
    truncated,
    write_mat,
)
from flexjax.simulate.loop._range import nan_outside_range, refuse_outside_range
from flexjax.simulate.trajectory._readings import static_readings


class Modes(eqx.Module):
    """Vibration about a state under a drive: frequencies [Hz], damping ratios, and complex shapes
    in retract coordinates (columns, without derivative)."""

    frequencies: Float[Array, " n"]
    damping: Float[Array, " n"]
    shapes: Array
    at: State
    drive: Drive = eqx.field(default_factory=Drive)

    def __str__(self) -> str:
        if len(self.frequencies) == 0:
            return "no mode that vibrates: nothing here is elastic but what is held"
        rows = [
            f"  {i + 1:3d}  {float(f):12.5g}  {float(z):10.3g}"
            for i, (f, z) in enumerate(zip(self.frequencies, self.damping, strict=True))
        ]
        return "mode  frequency [Hz]  damping ratio\n" + "\n".join(rows)

    def _repr_html_(self) -> str:
        if is_traced(self.frequencies) or self.frequencies.ndim != 1:
            return block(repr(self))
        found = {f"mode {k}": float(f) for k, f in enumerate(self.frequencies, 1)}
        return block(str(self), bars(found, "frequency [Hz]"))


class Linear(eqx.Module):
    """A linear model about a state: x' = A x + B u, y = C x + D u.

    Arguments:
        A, B, C, D: matrices. x is the deviation of the state, in the model's own coordinates.
        inputs: names of u: efforts of the joints, then loads.
        outputs: names of y: sensors, in the robot's order.
        input_units, output_units: units of u and of y.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> hold = {j.name: fx.PD(500.0, 10.0, fx.constant(0.3)) for j in model.robot.joints}
    >>> fx.linearise(model, fx.Drive(joints=hold)).A.shape
    (6, 6)
    """

    A: Float[Array, "n n"]
    B: Float[Array, "n m"]
    C: Float[Array, "p n"]
    D: Float[Array, "p m"]
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    input_units: tuple[str, ...] = eqx.field(static=True, default=())
    output_units: tuple[str, ...] = eqx.field(static=True, default=())

    def __str__(self) -> str:
        n, m, p = self.A.shape[-1], len(self.inputs), len(self.outputs)
        named = lambda names, units: ", ".join(
            f"{name} [{unit}]" for name, unit in zip(names, units, strict=True)
        )
        return (
            f"linear model: {n} states, {m} inputs, {p} outputs\n"
            f"inputs: {named(self.inputs, self.input_units) or 'none'}\n"
            f"outputs: {named(self.outputs, self.output_units) or 'none'}"
        )

    def _repr_html_(self) -> str:
        if is_traced(self.A) or self.A.ndim != 2 or not (self.inputs and self.outputs):
            return block(str(self))
        hertz, gains = frequency_response(self._matrices())
        labels = (f"{u} to {y}" for y in self.outputs for u in self.inputs)
        found = dict(zip(labels, gains.reshape(len(hertz), -1).T, strict=True))
        few = dict(list(found.items())[:4])
        return block(str(self), curves(hertz, few, "frequency [Hz]", "gain", logarithmic=True))

    def _matrices(self) -> Matrices:
        """The matrices on the host, in double precision."""
        if is_traced(self.A) or self.A.ndim != 2:
            raise ValueError("linear model: traced or a batch; expected one with known numbers.")
        return Matrices(*(np.asarray(x, float) for x in (self.A, self.B, self.C, self.D)))

    def to_control(self) -> Any:
        """The model as ``control.StateSpace`` of python-control, with names of inputs and outputs.

        States that no other state and no output depends on (held joints) are left out. Needs
        ``pip install 'flexjax[control]'``.

        Returns:
            The ``control.StateSpace``.

        >>> import flexjax as fx
        >>> linear = fx.linearise(fx.RigidArm().bind(fx.load_robot("two-link")))
        >>> linear.to_control().ninputs  # doctest: +SKIP
        2
        """
        return control_system(observed(self._matrices())[0], self.inputs, self.outputs, "flexjax")

    def to_mat(self, path: str | os.PathLike[str]) -> Path:
        """Write A, B, C, D, and names and units of inputs and outputs to a MAT file.

        In MATLAB: ``load run.mat; sys = ss(A, B, C, D, 'InputName', inputs)``.

        Arguments:
            path: a name that ends in ``.mat``.

        Returns:
            The path.

        >>> import flexjax as fx
        >>> linear = fx.linearise(fx.RigidArm().bind(fx.load_robot("two-link")))
        >>> linear.to_mat("arm.mat").name
        'arm.mat'
        """
        names = {
            name: getattr(self, name)
            for name in ("inputs", "outputs", "input_units", "output_units")
        }
        return write_mat(self._matrices(), names, path)

    def reduce(self, order: int | None = None, *, tolerance: float = 1e-3) -> "Linear":
        """A model with fewer states by balanced truncation, with the same static response.

        The gain between any input and output differs at no frequency by more than twice the sum of
        the Hankel singular values that are left out. Inputs and outputs with different units count
        as they are: scale B and C where this matters.

        Arguments:
            order: number of states; by default the least within ``tolerance``.
            tolerance: bound of the error, as a share of the largest Hankel singular value.

        Returns:
            The reduced model, in balanced coordinates. A model that is unstable or not damped is
            refused.

        >>> import flexjax as fx
        >>> home = {"shoulder": 0.0, "elbow": -0.5}
        >>> hold = {n: fx.PD(20.0, 1.0, fx.constant(x)) for n, x in home.items()}
        >>> model = fx.RigidArm().bind(fx.load_robot("two-link"))
        >>> fx.linearise(model, fx.Drive(joints=hold)).reduce(2).A.shape
        (2, 2)
        """
        reduced, _ = truncated(self._matrices(), order, tolerance)
        cast = [jnp.asarray(x, self.A.dtype) for x in reduced]
        return dataclasses.replace(self, **dict(zip("ABCD", cast, strict=True)))

    def hankel_values(self) -> np.ndarray:
        """Hankel singular values, largest first: how much each balanced state contributes."""
        return balance(observed(self._matrices())[0]).hankel


def _lock(model: AbstractModel, at: State | Start | dict | None, lock: str) -> Drive:
    if lock not in ("motors", "none"):
        raise ValueError(
            f"lock: {lock!r}; expected 'motors' (every joint held at its motor) or 'none' (all "
            "joints free)."
        )
    if lock == "none":
        return Drive()
    return held_motors(model, None if isinstance(at, State) else at)


def jacobian(
    model: AbstractModel, drive: Drive, y: State, t: ScalarLike = 0.0
) -> tuple[Float[Array, "n f"], np.ndarray]:
    """(d rate / d x in retract coordinates at a state, static indices of the f free ones).

    What a Motion holds and what follows from other coordinates is no unknown."""
    term, t = model.term(drive), jnp.asarray(t, model.robot.gravity.dtype)
    zero, unravel = tangent_space(term, y, t)
    free = free_coordinates(term, y, t)

    def rate(x):
        # At an equilibrium the rate vanishes: it does not matter where the tangent is attached.
        moved = displaced(term, y, t, unravel(zero.at[free].set(x)))
        return ravel(term.relative_rate(t, moved, None, y))[0]

    return jax.jacfwd(rate)(zero[free]), free


@filter_jit
def _modes(model: AbstractModel, drive: Drive, y: State, t: Float[Array, ""], n: int):
    whole, free = jacobian(model, drive, y, t)
    A = whole[free]
    values, right = jnp.linalg.eig(jax.lax.stop_gradient(A))
    left = jnp.linalg.inv(right)
    # Perturbation to second order, because differentiating eig gives NaN at repeated eigenvalues:
    # with E = left dA right, an eigenvalue changes by E_ii + sum_k E_ik E_ki / (gap of i and k).
    E = left @ (A - jax.lax.stop_gradient(A)).astype(values.dtype) @ right
    gap = values[:, None] - values[None, :]
    apart = jnp.abs(gap) > 1e-7 * jnp.abs(values)[:, None]
    coupled = jnp.where(apart, E * E.T / jnp.where(apart, gap, 1.0), 0.0)
    change = jnp.diagonal(E) + jnp.sum(coupled, axis=1)
    values = values + change
    fixed = jax.lax.stop_gradient(values)
    size = jnp.abs(fixed)
    # One of each conjugate pair. A free coordinate without stiffness appears at round-off of the
    # fastest mode, so what lies there is left out; but only below 0.05 rad/s: with shear or
    # strain-rate damping the fastest is 1e8 1/s and more, and arms vibrate at a ten-millionth of
    # that (3 Hz of two-link).
    vibrates = (fixed.imag > 0) & (size > jnp.minimum(3e-7 * jnp.max(size, initial=0.0), 0.05))
    order = jnp.argsort(jnp.where(vibrates, size, jnp.inf))[:n]
    picked, real = values[order], vibrates[order]
    safe = jnp.where(real, picked, 1.0)
    magnitude = jnp.sqrt(safe.real**2 + safe.imag**2)
    # Coordinates that follow from others are parts of a shape too: x = x' / eigenvalue.
    shapes = (whole.astype(values.dtype) @ right[:, order]) / jax.lax.stop_gradient(safe)[None]
    # Infinity, not NaN, marks what does not vibrate: a good call passes under jax_debug_nans.
    frequency = jnp.where(real, magnitude / (2 * jnp.pi), jnp.inf)
    return frequency, jnp.where(real, -safe.real / magnitude, jnp.inf), shapes


def decay_rates(model: AbstractModel, drive: Drive, y: State, t: ScalarLike) -> Float[Array, " n"]:
    """Decay rates [1/s] of small motions about a state under a drive, in no order: the negative
    real parts of the eigenvalues, with first derivatives also where they coincide."""
    whole, free = jacobian(model, drive, y, t)
    A = whole[free]
    values, right = jnp.linalg.eig(jax.lax.stop_gradient(A))
    change = jnp.linalg.inv(right) @ (A - jax.lax.stop_gradient(A)).astype(values.dtype) @ right
    return -(values + jnp.diagonal(change)).real


def modes(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
    lock: str = "motors",
    n: int = 6,
) -> Modes:
    """Natural frequencies, damping ratios and shapes of small vibrations.

    Frequencies have first and second derivatives, the first also where they coincide.

    Arguments:
        model: a robot in a formulation.
        drive: motions, controllers and loads, which replace ``lock``; None for ``lock``.
        at: the state about which the robot vibrates; by default the robot's home.
        t: time at which the drive is evaluated [s].
        lock: "motors" locks every motor, and flexible joints keep their springs; "none" frees all
            joints.
        n: number of modes.

    Returns:
        :class:`Modes`. Entries beyond the last vibrating mode are infinite if the call is traced,
        and left out otherwise.

    Raises:
        ValueError: the drive or the state does not fit the robot.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("li-zhang-three-link"))
    >>> round(float(fx.modes(model).frequencies[0]), 1) > 0
    True
    """
    refuse_outside_range("modes", model)
    drive = read_drive(_lock(model, at, lock) if drive is None else drive, model.robot)
    y = starting_state(model, drive, at, t)
    t = jnp.asarray(t, model.robot.gravity.dtype)
    frequency, damping, shapes = _modes(model, drive, y, t, n)
    frequency, damping = nan_outside_range(model, drive, (frequency, damping))
    if not is_traced(frequency):
        keep = np.flatnonzero(np.isfinite(np.asarray(frequency)))
        frequency, damping, shapes = frequency[keep], damping[keep], shapes[:, keep]
    return Modes(frequency, damping, jax.lax.stop_gradient(shapes), y, drive)


def linearise(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
) -> Linear:
    """Linear state-space model about a state.

    Arguments:
        model: a robot in a formulation.
        drive: motions, controllers and loads; None for none.
        at: the state; by default the robot's home.
        t: time at which the drive is evaluated [s].

    Returns:
        :class:`Linear`: x in retract coordinates, in which coordinates that a Motion prescribes
        or that follow from others have zero columns; u are the efforts of joints without a Motion,
        then the drive's loads; y are the robot's sensors in order (static readings with gain and
        offset, without low-pass and delay).

    Raises:
        ValueError: the drive or the state does not fit the robot.

    >>> import flexjax as fx
    >>> fx.linearise(fx.RigidArm().bind(fx.load_robot("rigid-3r"))).A.shape
    (6, 6)
    """
    drive = read_drive(drive, model.robot)
    refuse_outside_range("linearise", model)
    y = starting_state(model, drive, at, t)
    t = jnp.asarray(t, model.robot.gravity.dtype)
    joints = [
        j
        for j in model.robot.tree_joints
        if j.dofs == 1 and not (j.name in drive.joints and drive.joints[j.name].prescribes)
    ]
    joints = [j for j in joints if takes_effort(j)]
    inputs = [j.name for j in joints] + [
        f"load{i}.{c}"
        for i in range(len(drive.loads))
        for c in ("fx", "fy", "fz", "mx", "my", "mz")
    ]

    names = tuple(j.name for j in joints)
    A, B, C, D = _matrices(model, drive, y, t, names, jnp.zeros(len(inputs), t.dtype))
    A, B, C, D = nan_outside_range(model, drive, (A, B, C, D))
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


@filter_jit
def _matrices(
    model: AbstractModel,
    drive: Drive,
    y: State,
    t: Float[Array, ""],
    names: Sequence[str],
    u0: Float[Array, " m"],
):
    robot = model.robot
    zero, unravel = tangent_space(model.term(_with_inputs(drive, robot, names, u0)), y, t)

    def at(x, u):
        term = model.term(_with_inputs(drive, robot, names, u))
        return term, displaced(term, y, t, unravel(x))

    def rate(x, u):
        term, moved = at(x, u)
        return ravel(term.relative_rate(t, moved, None, y))[0]

    def sensors(x, u):
        term, moved = at(x, u)
        return static_readings(model, term.drive, t, moved)

    return *jax.jacfwd(rate, (0, 1))(zero, u0), *jax.jacfwd(sensors, (0, 1))(zero, u0)


def _with_inputs(drive: Drive, robot: Robot, names: Sequence[str], u: Float[Array, " m"]) -> Drive:
    """The drive with inputs u: efforts on joints, then a constant wrench on each load."""
    slices = robot.dof_slices()
    at = np.array([slices[name].start for name in names], int)
    effort = jnp.zeros(robot.dofs, u.dtype).at[at].set(u[: len(names)])
    loads = []
    for k, load in enumerate(drive.loads):
        extra = u[len(names) + 6 * k : len(names) + 6 * k + 6]
        loads.append(
            Load(load.link, load.wrench + stack([constant(x) for x in extra]), load.s, load.frame)
        )
    return with_efforts(Drive(drive.joints, tuple(loads), drive.base), robot, effort)
