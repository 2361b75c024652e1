"""States at rest: the links relax while the joints are held, then the joints move until nothing
has to hold them. One code for every formulation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from flexjax._compile import filter_jit
from flexjax._results import EquilibriumError
from flexjax._types import Scalar, ScalarLike, is_traced, ravel
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import AbstractTerm, State
from flexjax.robot import Robot, effort_unit
from flexjax.simulate._start import marked, read_drive, starting_state
from flexjax.simulate._tangent import (
    displaced,
    free_coordinates,
    takes_effort,
    tangent_space,
    with_efforts,
)
from flexjax.simulate.analysis._play import beyond_play
from flexjax.simulate.loop._range import nan_outside_range, refuse_outside_range

LARGEST_STEP = 0.5  # rad or m of a joint in one iteration
LEAST_SHARE = 0.02  # of a step: below it the joints follow the forces, or the search ends
TINY = 1e-30  # N m/rad, against a division by zero where nothing acts
BALANCED = 1e-9  # remaining effort, relative to the efforts that act


class Equilibrium(eqx.Module):
    """Result of :func:`find_equilibrium`, also inside compiled code.

    ``ok``: ``state`` is at rest. Otherwise ``remaining`` [N m or N] is the effort on the joint
    coordinate ``coordinate`` (robot order) that nothing balances. ``coordinate`` is -1 where the
    joints are balanced and a link is not.
    """

    state: State
    ok: Bool[Array, ""]
    coordinate: Int[Array, ""]
    remaining: Float[Array, ""]


def equilibrium(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
    iterations: int = 60,
) -> State:
    """A state at rest under the drive's values at a time (gravity, loads, controllers).

    Rest is relative to the drive: a rotation of a Motion or the base at a constant rate goes on.
    If there are several such states, the result is the one next to ``at``, stable or not: the links
    relax first while the joints are held, then the joints follow the path on which the efforts that
    hold them fall to zero. Where that path ends, they follow the forces. The result is
    differentiable by the implicit-function theorem.

    Arguments:
        model: a robot in a formulation.
        drive: motions, efforts, controllers and loads; None for none.
        at: where the search starts; by default the robot's home.
        t: time at which the drive is evaluated [s].
        iterations: largest number of Newton's iterations.

    Returns:
        The state. :class:`EquilibriumError` is raised if none is found, e.g. if nothing balances a
        torque on a free joint. Compiled code raises nothing: :func:`find_equilibrium` reports
        whether the state is at rest.

    Raises:
        EquilibriumError: no state at rest is found, outside compiled code.
        ValueError: the drive or the state does not fit the robot.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> hold = {j.name: fx.PD(500.0, 10.0, fx.constant(0.3)) for j in model.robot.joints}
    >>> rest = fx.equilibrium(model, fx.Drive(joints=hold))
    """
    found = find_equilibrium(model, drive, at, t=t, iterations=iterations)
    if not is_traced(found.ok) and not bool(found.ok):
        raise _error(model.robot, int(found.coordinate), float(found.remaining))
    return found.state


def find_equilibrium(
    model: AbstractModel,
    drive: Drive | None = None,
    at: State | Start | dict | None = None,
    *,
    t: ScalarLike = 0.0,
    iterations: int = 60,
) -> Equilibrium:
    """As :func:`equilibrium`, with a flag in place of an error.

    Arguments:
        model: a robot in a formulation.
        drive: motions, efforts, controllers and loads; None for none.
        at: where the search starts; by default the robot's home.
        t: time at which the drive is evaluated [s].
        iterations: largest number of Newton's iterations.

    Returns:
        The state, ``ok``, and the largest effort that remains, with its coordinate.

    Raises:
        ValueError: the drive or the state does not fit the robot.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> hold = {j.name: fx.PD(500.0, 10.0, fx.constant(0.3)) for j in model.robot.joints}
    >>> bool(fx.find_equilibrium(model, fx.Drive(joints=hold)).ok)
    True
    """
    drive = read_drive(drive, model.robot)
    refuse_outside_range("equilibrium", model)
    start = starting_state(model, drive, at, t)
    t = jnp.asarray(t, model.robot.gravity.dtype)
    found = _find(model, drive, marked(start, ""), t, iterations)
    if any(j.backlash is not None for j in model.robot.joints) and not _known(found.ok):
        search = lambda model, y: _find(model, drive, y, t, iterations)
        near = beyond_play(lambda *at: search(*at).state, model, drive, marked(start, ""), t)
        again, first = search(model, near), found
        found = jax.tree.map(lambda a, b: jnp.where(first.ok, a, b), first, again)
    state, remaining = nan_outside_range(model, drive, (found.state, found.remaining))
    ok = found.ok & ~jnp.isnan(remaining)
    return Equilibrium(marked(state, start.origin), ok, found.coordinate, remaining)


def _known(ok: Array) -> bool:
    return not is_traced(ok) and bool(jnp.all(ok))


def _error(robot: Robot, coordinate: int, remaining: float) -> EquilibriumError:
    for joint, where in zip(robot.tree_joints, robot.dof_slices().values(), strict=True):
        if where.start <= coordinate < where.stop:
            number = f".{coordinate - where.start}" if joint.dofs > 1 else ""
            return EquilibriumError(f"{joint.name}{number}", remaining, effort_unit(joint))
    return EquilibriumError(None, remaining, "")


def _holdable(robot: Robot, drive: Drive) -> np.ndarray:
    """Static indices of the joint coordinates that an effort can hold. None in a robot with loops,
    where the coordinates depend on each other."""
    if len(robot.tree_joints) < len(robot.joints):
        return np.zeros(0, int)
    able = [takes_effort(j) for j in robot.tree_joints for _ in range(j.dofs)]
    return np.flatnonzero(np.array(able, bool) & ~drive.prescribed(robot))


class _Linear(eqx.Module):
    """The equations about a state, with the joints held by efforts. Rows and efforts have units in
    which stiff and soft coordinates count alike."""

    matrix: Float[Array, "n+m n+m"]
    inverse: Float[Array, "n+m n+m"]
    rows: Float[Array, " n"]
    efforts: Float[Array, " m"]
    flexibility: Float[Array, "m m"]  # of the joints, in those units

    def descend(self, effort: Float[Array, " m"]) -> Float[Array, " m"]:
        """Change of the joints along the forces that ``effort`` (N m, N) holds: downhill, also if
        the joints have no stiffness or a negative one."""
        n = self.rows.shape[0]
        K = self.efforts[:, None] * self.inverse[n:, n:]
        values, axes = jnp.linalg.eigh(0.5 * (K + K.T))
        force = axes.T @ -effort
        return axes @ (force / (jnp.abs(values) + _largest(effort, None) / LARGEST_STEP + TINY))

    def relaxation(self, r: Float[Array, " n"]) -> Float[Array, " n+m"]:
        """Change of the coordinates with the joints held, and the efforts that hold them."""
        return self.inverse[:, : r.shape[0]] @ (-r / self.rows)

    def defect(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """The part of the residual that no change of the coordinates and no effort removes."""
        n = r.shape[0]
        return self.matrix[:n] @ self.relaxation(r) + r / self.rows

    def correction(
        self, r: Float[Array, " n"], limit: Float[Array, " m"]
    ) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Changes of the coordinates with the joints held, and of the joints: after both, no effort
        above ``limit`` holds them."""
        both, n = self.relaxation(r), r.shape[0]
        effort = jnp.where(jnp.abs(both[n:] * self.efforts) > limit, both[n:], 0.0)
        return both[:n], -self.flexibility @ effort

    def follow(self, joints: Float[Array, " m"]) -> Float[Array, " n"]:
        """Change of the coordinates when the joints move."""
        n = self.rows.shape[0]
        return self.inverse[:n, n:] @ joints


class _Problem(eqx.Module):
    """Residual, joint coordinates and linear equations beside a state."""

    model: AbstractModel
    drive: Drive
    t: Scalar
    free: tuple[int, ...] = eqx.field(static=True)
    held: tuple[int, ...] = eqx.field(static=True)

    @property
    def term(self) -> AbstractTerm:
        return self.model.term(self.drive)

    def beside(self, y: State, x: Float[Array, " n"]) -> State:
        zero, unravel = tangent_space(self.term, y, self.t)
        return displaced(self.term, y, self.t, unravel(zero.at[np.array(self.free, int)].set(x)))

    def residual(
        self, y: State, x: Float[Array, " n"], effort: Float[Array, " m"]
    ) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """(imbalance of the free coordinates beside ``y``, joint coordinates there) with ``effort``
        added on the joints."""
        robot, held = self.model.robot, np.array(self.held, int)
        full = jnp.zeros(robot.dofs, effort.dtype).at[held].set(effort)
        term = self.model.term(with_efforts(self.drive, robot, full))
        at = self.beside(y, x)
        left = ravel(term.imbalance(self.t, at, None))[0]
        return left[np.array(self.free, int)], self.term.motor_coordinates(at)[0][held]

    def acting(self, linear: _Linear, y: State, r: Float[Array, " n"]) -> Float[Array, " m"]:
        """Size of the efforts that act on the joints."""
        x, xd = self.term.motor_coordinates(y)
        effort = self.drive.effort(self.model.robot, self.t, None, x, xd, y.memory)
        driven = effort[np.array(self.held, int)]
        # What holds a joint is opposed to the drive, and to weight, loads and springs.
        holding = linear.relaxation(r)[r.shape[0] :] * linear.efforts
        return jnp.abs(driven) + jnp.abs(driven + holding)

    def linear(self, y: State) -> tuple[_Linear, Float[Array, " n"]]:
        """(equations about ``y``, residual there)."""
        n, m = len(self.free), len(self.held)
        eps = jnp.finfo(self.t.dtype).eps
        none = jnp.zeros(n, self.t.dtype), jnp.zeros(m, self.t.dtype)
        (r, _), slope = jax.linearize(lambda x, u: self.residual(y, x, u), *none)
        eye = jnp.eye(n + m, dtype=self.t.dtype)
        both, C = (z.T for z in jax.vmap(slope)(eye[:, :n], eye[:, n:]))
        J, B, C = both[:, :n], both[:, n:], C[:, :n]
        rows = _largest(J, 1)
        rows = jnp.where(rows > 0, rows, _largest(B, 1))
        rows = jnp.where(rows > 0, rows, 1.0)
        B = B / rows[:, None]
        efforts = 1 / jnp.where(_largest(B, 0) > 0, _largest(B, 0), 1.0)
        corner = jnp.zeros((m, m), C.dtype)
        A = jnp.block([[J / rows[:, None], B * efforts[None]], [C, corner]])
        inverse = jnp.linalg.pinv(A, rtol=500 * eps)
        # Joints without stiffness give round-off.
        cut = 5e3 * eps * _largest(inverse[n:], None)
        return _Linear(A, inverse, rows, efforts, _pseudo_inverse(inverse[n:, n:], cut)), r


def _close(dtype: DTypeLike) -> Scalar:
    """A correction [rad, m] after which the next one is round-off, as Newton's converge."""
    return 10 * jnp.sqrt(jnp.finfo(dtype).eps)


def _largest(x: Array, axis: int | None) -> Array:
    return jnp.max(jnp.abs(x), axis=axis, initial=0.0)


def _pseudo_inverse(K: Float[Array, "m m"], cut: Scalar) -> Float[Array, "m m"]:
    if K.shape[0] == 0:
        return K
    U, s, Vh = jnp.linalg.svd(K)
    good = s > cut
    return (Vh.T * jnp.where(good, 1 / jnp.where(good, s, 1.0), 0.0)[None]) @ U.T


class _Point(eqx.Module):
    """A state with the equations about it, and the step from there."""

    y: State
    linear: _Linear
    acting: Float[Array, " m"]  # efforts
    limit: Float[Array, " m"]  # efforts below are round-off
    effort: Float[Array, " m"]  # that holds the joints
    moving: Bool[Array, ""]  # the joints, because the links are relaxed
    held: Float[Array, " n"]  # change of the coordinates with the joints held
    joints: Float[Array, " m"]  # change of the joints
    size: Scalar  # of the correction

    def correction(self, r: Float[Array, " n"]) -> Scalar:
        """Size of the correction with the matrix of this point."""
        held, joints = self.linear.correction(r, self.limit)
        return _largest(jnp.concatenate([held, jnp.where(self.moving, joints, 0.0)]), None)

    @property
    def stiff(self) -> Bool[Array, ""]:
        """Whether the joints have a stiffness against the efforts that hold them: then Newton's
        step removes these."""
        n = self.linear.rows.shape[0]
        K = self.linear.efforts[:, None] * self.linear.inverse[n:, n:]
        effort = jnp.where(jnp.abs(self.effort) > self.limit, self.effort, 0.0)
        left = _largest(effort + K @ self.joints, None)
        return ~self.moving | (left <= 0.5 * _largest(effort, None))

    def step(self, downhill: Bool[Array, ""]) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Changes of the coordinates and of the joints. Joints move by at most LARGEST_STEP, and
        the links with them."""
        joints = jnp.where(downhill, self.linear.descend(self.effort), self.joints)
        share = LARGEST_STEP / jnp.maximum(_largest(joints, None), LARGEST_STEP)
        return share * (self.held + self.linear.follow(joints)), share * joints


class _Iteration(eqx.Module):
    point: _Point
    trial: State
    share: Scalar  # of the step from ``point`` to ``trial``
    downhill: Bool[Array, ""]  # that step follows the forces, and is not Newton's
    count: Int[Array, ""]
    going: Bool[Array, ""]


def _point(problem: _Problem, y: State, linear: _Linear, r: Float[Array, " n"]) -> _Point:
    acting = problem.acting(linear, y, r)
    limit = 10 * jnp.finfo(r.dtype).eps * (linear.efforts + acting)
    held, joints = linear.correction(r, limit)
    effort = linear.relaxation(r)[r.shape[0] :] * linear.efforts
    # The effort that holds a joint is known only once the links are at rest.
    moving = _largest(held, None) < _close(r.dtype)
    joints = jnp.where(moving, joints, 0.0)
    size = _largest(jnp.concatenate([held, joints]), None)
    return _Point(y, linear, acting, limit, effort, moving, held, joints, size)


def _iterate(problem: _Problem, y: State, iterations: int) -> _Point:
    """Newton's iteration. A step must reduce the correction with the same matrix, which is
    independent of units; otherwise it is halved. If no such step exists, or the joints have no
    stiffness, the joints follow the forces until these change sign."""
    close = _close(problem.t.dtype)

    def body(s: _Iteration) -> _Iteration:
        linear, r = problem.linear(s.trial)
        old, new = s.point, _point(problem, s.trial, linear, r)
        nearer = (old.correction(r) <= (1 - 0.25 * s.share) * old.size) | (old.size < 1e-9)
        way = old.step(s.downhill)[1]
        before, after = (-jnp.sum(e * way) for e in (old.effort, new.effort))
        good = jnp.where(s.downhill, after >= -0.9 * before, nearer) & jnp.isfinite(new.size)
        point = jax.tree_util.tree_map(lambda a, b: jnp.where(good, a, b), new, old)
        # Corrections that no longer shrink are round-off.
        end = good & ((new.size <= 1e-13) | ((new.size < close) & (new.size > 0.5 * old.size)))
        end = end & new.stiff
        short = ~good & (0.5 * s.share < LEAST_SHARE)
        downhill = jnp.where(good, ~new.stiff, s.downhill | (short & old.moving))
        share = jnp.where(good | (short & ~s.downhill), 1.0, 0.5 * s.share)
        stuck = short & (s.downhill | ~old.moving)
        going = ~end & ~stuck & (s.count + 1 < iterations)
        trial = problem.beside(point.y, share * point.step(downhill)[0])
        return _Iteration(point, trial, share, downhill, s.count + 1, going)

    y = problem.beside(y, jnp.zeros(len(problem.free), problem.t.dtype))
    like = jax.eval_shape(lambda y: _point(problem, y, *problem.linear(y)), y)
    # Infinitely far: any point is nearer.
    first = jax.tree_util.tree_map(lambda x: jnp.ones(x.shape, x.dtype), like)
    far = jnp.asarray(jnp.inf, problem.t.dtype)
    first = eqx.tree_at(lambda p: (p.y, p.size), first, (y, far))
    one, count = jnp.ones_like(far), jnp.zeros((), jnp.int32)
    yes = jnp.asarray(True)
    start = _Iteration(first, y, one, ~yes, count, yes)
    return lax.while_loop(lambda s: s.going, body, start).point


@filter_jit
def _find(model: AbstractModel, drive: Drive, y: State, t: Scalar, iterations: int) -> Equilibrium:
    free = free_coordinates(model.term(drive), y, t)
    held = _holdable(model.robot, drive)
    problem = _Problem(model, drive, t, tuple(map(int, free)), tuple(map(int, held)))
    fixed = lax.stop_gradient(problem)
    end = _iterate(fixed, lax.stop_gradient(y), iterations)
    linear, eps, n = end.linear, jnp.finfo(t.dtype).eps, len(free)
    none, nothing = jnp.zeros(n, t.dtype), jnp.zeros(held.size, t.dtype)
    near = State(end.y.mech, y.work, y.dissipated, y.memory)

    def step(y, _):
        r, _ = problem.residual(y, none, nothing)
        left = lax.stop_gradient(r)
        change, joints = linear.correction(r - left, nothing - 1)
        return problem.beside(y, change + linear.follow(joints)), left

    # Two Newton steps with a constant matrix, which move nothing: the first has the derivative of
    # the root, by the implicit-function theorem, both have its second. No effort is round-off
    # there.
    rest, (left, _) = lax.scan(step, near, None, length=2)
    # The bound on round-off that ended the iteration may be far above round-off itself.
    close = _close(t.dtype)
    change, joints = linear.correction(left, nothing - 1)
    joints = jnp.where(_largest(joints, None) < close, joints, 0.0)
    last = jnp.where(end.size < close, change + linear.follow(joints), 0.0)
    rest = problem.beside(rest, last)

    both = linear.relaxation(left)
    holding = both[n:] * linear.efforts
    relaxed = _largest(both[:n], None) < _close(t.dtype)
    limit = 100 * end.limit + BALANCED * end.acting
    balanced = jnp.all(jnp.abs(holding) <= limit)
    ok = relaxed & balanced & (_largest(linear.defect(left), None) <= 1e3 * eps)
    if not held.size:
        return Equilibrium(rest, ok, jnp.full((), -1, jnp.int32), jnp.zeros((), t.dtype))
    worst = jnp.argmax(jnp.abs(holding) / limit)
    coordinate = jnp.where(balanced, -1, jnp.asarray(held)[worst]).astype(jnp.int32)
    return Equilibrium(rest, ok, coordinate, -holding[worst])
