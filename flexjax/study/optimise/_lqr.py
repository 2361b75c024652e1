"""A linear-quadratic regulator as a controller, and as the start of a search for gains."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import solve_continuous_are

from flexjax.drive import Drive, Feedback
from flexjax.drive.signal import AbstractSignal
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import linearise, rest
from flexjax.study.optimise.problem import drivable, read_end


def state_feedback(t: Any, q: Array, qd: Array, params: dict) -> Array:
    """Effort of one joint: hold + kp (r - q) + kd (r' - q'), cut off at ``limit``."""
    r, rate = params["goal"], jnp.zeros_like(qd)
    if params["reference"] is not None:
        pairs = [signal.evaluate(t)[:2] for signal in params["reference"]]
        r, rate = (jnp.stack([jnp.asarray(p[k]) for p in pairs]) for k in (0, 1))
    effort = params["hold"] + params["kp"] @ (r - q) + params["kd"] @ (rate - qd)
    return jnp.clip(effort, -params["limit"], params["limit"])


class Regulator(eqx.Module):
    """Result of :func:`flexjax.lqr`: gains (D, D) on coordinates and rates of the motors, the drive
    that applies them, and the eigenvalues (1/s) of the rigid arm under it."""

    kp: Float[Array, "D D"]
    kd: Float[Array, "D D"]
    drive: Drive
    eigenvalues: np.ndarray


def lqr(
    model: AbstractModel,
    goal: Start | Mapping[str, float] | None = None,
    *,
    position: float | Mapping[str, float] = 0.1,
    velocity: float | Mapping[str, float] = 1.0,
    effort: float | Mapping[str, float] = 1.0,
    reference: Mapping[str, AbstractSignal] | None = None,
    limit: float | Mapping[str, float] = np.inf,
) -> Regulator:
    """The linear-quadratic regulator of the rigid arm, for controllers that measure the motors.

    Deflections are not measured, so the gains are those of the arm without deflection. Check the
    flexible arm with ``fx.linearise`` or tune the gains with :func:`optimise` from here, e.g.
    ``free="drive.joints.*.params.kd"`` and ``limits={"stability": 1.0}``.

    Arguments:
        model: a robot in a formulation.
        goal: where the arm is linearised, and where it is held.
        position, velocity, effort: deviations that count as much as each other, for all joints or
            by name [rad or m, 1/s, N m or N].
        reference: signals to follow, by name of the joint; by default the goal.
        limit: largest effort, for all joints or by name.

    Returns:
        :class:`Regulator`.

    Raises:
        ValueError: the goal does not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> found = fx.lqr(fx.RigidArm().bind(fx.load_robot("rigid-3r")), effort=50.0)
    >>> bool((found.eigenvalues.real < 0).all())
    True
    """
    from flexjax.formulation.rigid_arm import RigidArm

    goal = read_end(model.robot, "goal", goal)
    joints = tuple(
        dataclasses.replace(j, stiffness=None) if j.flexible else j for j in model.robot.joints
    )
    rigid = RigidArm().bind(dataclasses.replace(model.robot, joints=joints))
    robot = rigid.robot
    names = [j.name for j in robot.tree_joints if j.dofs]
    if names != drivable(robot) or robot.dofs != len(names):
        raise ValueError(
            "lqr: joints with several coordinates; expected revolute and prismatic joints only."
        )
    column = lambda key, value: _numbers(key, value, names)
    found = linearise(rigid, None, rest(rigid, goal).state)
    A, B = np.asarray(found.A), np.asarray(found.B)
    weights = 1 / np.concatenate([column("position", position), column("velocity", velocity)]) ** 2
    R = np.diag(1 / column("effort", effort) ** 2)
    P = solve_continuous_are(A, B, np.diag(weights), R)
    K = np.linalg.solve(R, B.T @ P)
    D = len(names)
    held, bound = np.asarray(rest(model, goal).effort), column("limit", limit)
    q = np.asarray(goal.vectors(robot)[0])
    if reference is not None and set(reference) != set(names):
        raise ValueError(
            f"reference: {sorted(reference)}; expected signals for {', '.join(names)}."
        )
    signals = None if reference is None else tuple(reference[name] for name in names)
    drive = Drive(
        joints={
            name: Feedback(
                state_feedback,
                {
                    "kp": jnp.asarray(K[k, :D]),
                    "kd": jnp.asarray(K[k, D:]),
                    "hold": jnp.asarray(held[k]),
                    "goal": jnp.asarray(q),
                    "limit": jnp.asarray(bound[k]),
                    "reference": signals,
                },
            )
            for k, name in enumerate(names)
        }
    )
    values = np.linalg.eigvals(A - B @ K)
    return Regulator(jnp.asarray(K[:, :D]), jnp.asarray(K[:, D:]), drive, values)


def _numbers(key: str, value: float | Mapping[str, float], names: list[str]) -> np.ndarray:
    given = value if isinstance(value, Mapping) else dict.fromkeys(names, value)
    if set(given) != set(names):
        raise ValueError(f"{key}: {sorted(given)}; expected one number, or one for each joint.")
    found = np.array([float(given[name]) for name in names])
    if not np.all(found > 0):
        raise ValueError(f"{key}: {value}; expected positive numbers.")
    return found
