"""Rigid inverse dynamics and inverse kinematics."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._types import is_traced
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, ChainModel, Start
from flexjax.formulation.rigid_arm import RigidArm
from flexjax.numerics.term import Instant
from flexjax.robot import Robot


def _rigid(robot: Robot) -> ChainModel:
    model = RigidArm().bind(robot)
    assert isinstance(model, ChainModel)  # what RigidArm builds
    return model


def inverse_dynamics(
    robot: Robot, q: Float[Array, "*T D"], qd: Float[Array, "*T D"], qdd: Float[Array, "*T D"]
) -> Float[Array, "*T D"]:
    """Joint efforts of a given motion of the rigid arm, at one time or along a path.

    Elastic links are undeformed, and joint springs are left out.

    Arguments:
        robot: the robot.
        q: joint coordinates (D,) or (T, D).
        qd: their rates.
        qdd: their accelerations.

    Returns:
        Efforts in the shape of ``q``.

    Raises:
        ValueError: the motions do not fit the robot.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> fx.inverse_dynamics(fx.load_robot("rigid-3r"), *jnp.zeros((3, 3))).shape
    (3,)
    """
    model = _rigid(robot)
    q, qd, qdd = (jnp.asarray(x, robot.gravity.dtype) for x in (q, qd, qdd))
    for name, x in (("q", q), ("qd", qd), ("qdd", qdd)):
        if x.shape != q.shape or x.shape[-1:] != (robot.dofs,):
            raise ValueError(
                f"{name}: shape {x.shape}; expected (..., {robot.dofs}) like the other two, one "
                "column per joint coordinate."
            )
    term = model.term(Drive())
    layout = term.layout

    def one(q, qd, qdd):
        y = model.initial_state(
            Drive(),
            0.0,
            Start(
                {
                    j.name: q[s]
                    for j, s in zip(robot.tree_joints, robot.dof_slices().values(), strict=True)
                }
            ),
        )
        motors = np.array(layout.coordinates.motors, int)
        v, a = (jnp.concatenate([x, x[motors]]) for x in (qd, qdd))
        tau = term.inverse(Instant(0.0), y.mech.q, v, a).tau
        # A motor that follows its joint rigidly: its inertia adds to the joint's effort.
        return tau[: layout.dofs].at[motors].add(tau[layout.dofs :])

    for _ in range(q.ndim - 1):
        one = jax.vmap(one)
    return filter_jit(one)(q, qd, qdd)


@filter_jit
def _tip_pose(model: AbstractModel, q: Float[Array, " D"]) -> Float[Array, "7"]:
    robot = model.robot
    start = Start(
        {j.name: q[s] for j, s in zip(robot.tree_joints, robot.dof_slices().values(), strict=True)}
    )
    snap = model.observe(
        0.0, model.initial_state(Drive(), 0.0, start), Drive(), jnp.ones(1, q.dtype)
    )
    return snap.frames[-1, 0]


def inverse_kinematics(
    robot: Robot,
    target: Float[Array, " n"],
    *,
    guess: Float[Array, " D"] | None = None,
    tolerance: float = 1e-10,
) -> Float[Array, " D"]:
    """Joint coordinates that bring the rigid arm's tip to a target, by Levenberg-Marquardt.

    Arguments:
        robot: the robot.
        target: a position (3,), or a pose (7,): x y z qw qx qy qz.
        guess: where the search starts; by default the robot's home. A redundant arm ends at the
            solution nearest to it.
        tolerance: largest error of the target.

    Returns:
        Joint coordinates (D,). ValueError is raised if the target is out of reach.

    Raises:
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> robot = fx.load_robot("rigid-3r")
    >>> fx.inverse_kinematics(robot, jnp.array([0.7, 0.5, 0.2]), tolerance=1e-5).shape
    (3,)
    """
    import optimistix as optx

    model = _rigid(robot)
    dtype = model.robot.gravity.dtype
    target = jnp.asarray(target, dtype)
    if target.shape not in ((3,), (7,)):
        raise ValueError(
            f"target: shape {target.shape}; expected (3,) for a position or (7,) for a pose x y "
            "z qw qx qy qz."
        )
    q0 = Start().vectors(model.robot)[0] if guess is None else jnp.asarray(guess, dtype)

    def gap(q, target):
        pose = _tip_pose(model, q)
        if target.shape[0] == 3:
            return pose[:3] - target
        # Quaternions q and -q are one rotation: compare with the nearer one.
        quat = target[3:] / jnp.linalg.norm(target[3:])
        return jnp.concatenate(
            [pose[:3] - target[:3], pose[3:] - jnp.where(jnp.sum(quat * pose[3:]) < 0, -quat, quat)]
        )

    solver = optx.LevenbergMarquardt(rtol=1e-12, atol=1e-14)
    solution = optx.least_squares(gap, solver, q0, target, max_steps=300, throw=False)
    if not is_traced(solution.value):
        miss = float(jnp.max(jnp.abs(gap(solution.value, target))))
        if not miss < tolerance:
            raise ValueError(
                f"target: {np.asarray(target)} was missed by {miss:.2g}; it is out of reach, or "
                "try another guess."
            )
    return solution.value
