"""From the free parameters of a move to its costs, its margins and what is missing to rest."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, Float

from flexjax._compile import filter_jit, under_transformation
from flexjax._results import EquilibriumError, Status
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate import Rest, rest, simulate
from flexjax.simulate.analysis._rest import held_motors, rest_of
from flexjax.study.free import Parameters
from flexjax.study.optimise.problem._costs import Cost, Move
from flexjax.study.optimise.problem._limits import Limit
from flexjax.study.optimise.problem._motions import at_rest
from flexjax.study.optimise.problem._samples import Samples

# Fields of signals that are times: they grow with the duration of the move.
TIMES = ("duration", "times", "begin", "ramp", "period", "delay", "delays", "switches")
ONE_BY_ONE = 32  # samples up to which the states at rest are found one by one
NO_REST = (
    "the arm does not rest there; expected joint coordinates at which its weight has an "
    "equilibrium with the motors held."
)


def _times(x: Any) -> Any:
    return None if x is None else np.asarray(x, float)


class Duration(eqx.Module):
    """The duration: ``reference`` is that of the given drive; free between two bounds, or not.

    The times are arrays: another duration with as many steps is the same program.
    """

    reference: np.ndarray = eqx.field(converter=_times)
    bounds: np.ndarray | None = eqx.field(converter=_times)

    @property
    def free(self) -> bool:
        return self.bounds is not None

    @property
    def longest(self) -> float:
        return float(self.reference if self.bounds is None else self.bounds[1])

    def at(self, share: Float[Array, ""]) -> Float[Array, ""]:
        """The duration at a share in [0, 1] of the way between the bounds."""
        if self.bounds is None:
            return jnp.asarray(self.reference, share.dtype)
        low, high = jnp.asarray(self.bounds, share.dtype)
        return low + (high - low) * share

    def share(self, duration: float) -> float:
        if self.bounds is None:
            return 0.0
        low, high = (float(bound) for bound in self.bounds)
        return (duration - low) / (high - low)


def stretched(drive: Drive, factor: Float[Array, ""]) -> Drive:
    """The drive with all times of its signals multiplied by ``factor``."""

    def stretch(path, x):
        name = getattr(path[-1], "name", None)
        return x * factor if name in TIMES else x

    return jtu.tree_map_with_path(stretch, drive)


class Outcome(eqx.Module):
    """What a search sees of the S samples: costs (S, C), margins of every limit (S, T, n), what is
    missing to rest (S, r), and which runs succeeded."""

    costs: Float[Array, "S C"]
    margins: tuple[Float[Array, "S T n"], ...]
    missing: Float[Array, "S r"]
    ok: Bool[Array, " S"]


class Curved(eqx.Module):
    """What the curvature of the costs follows from: the vectors of those that are sums of squares
    (S, k), and the state at the end."""

    vectors: tuple[Float[Array, "S k"], ...]
    final: State


class Problem(eqx.Module):
    """A move with free parameters x: those of ``parameters``, then the share of the duration."""

    model: AbstractModel
    drive: Drive
    parameters: Parameters
    samples: Samples
    start: Start
    goal: Start
    costs: tuple[Cost, ...]
    limits: tuple[Limit, ...]
    duration: Duration
    hold: np.ndarray  # time after the move [s]
    steps: int = eqx.field(static=True)
    hold_steps: int = eqx.field(static=True)
    stations: int = eqx.field(static=True)
    arrive: bool = eqx.field(static=True)  # the arm has to rest at the end
    undeformed: bool = eqx.field(static=True)  # at rest

    @property
    def size(self) -> int:
        return self.parameters.size + self.duration.free

    def duration_of(self, x: Float[Array, " n"]) -> Float[Array, ""]:
        return self.duration.at(x[-1])

    def drive_of(self, x: Float[Array, " n"]) -> Drive:
        values = self.parameters.values(x[: self.parameters.size])
        drive = self.parameters.place(self.drive, "drive", values)
        if not self.duration.free:
            return drive
        return stretched(drive, self.duration_of(x) / self.duration.reference)

    def robot_of(self, x: Float[Array, " n"]) -> Robot:
        values = self.parameters.values(x[: self.parameters.size])
        return self.parameters.place(self.model.robot, "robot", values)

    def times(self, duration: Float[Array, ""]) -> Float[Array, " T"]:
        """Outputs at every step of the move and after it."""
        grid = jnp.linspace(0.0, 1.0, self.steps + 1, dtype=duration.dtype) * duration
        if not self.hold_steps:
            return grid
        after = jnp.arange(1, self.hold_steps + 1, dtype=duration.dtype)
        return jnp.concatenate([grid, duration + self.hold / self.hold_steps * after])

    def ends(self) -> tuple[Rest, Rest]:
        """The arm at rest before and after the move, for every sample (S, ...)."""
        rows = jnp.asarray(self.samples.values)
        if rows.shape[0] > ONE_BY_ONE or under_transformation():
            return _ends(self, self.model.robot, rows)
        # One by one: reports need the program of a single arm too, and a batch is another one.
        models = [self.model.rebind(self.samples.place(self.model.robot, row)) for row in rows]
        first, last = (
            jtu.tree_map(lambda *a: jnp.stack(a), *(resting(m, name, at) for m in models))
            for name, at in (("start", self.start), ("goal", self.goal))
        )
        return first, last

    @property
    def designs(self) -> bool:
        """Whether parameters of the robot itself are free."""
        return any(t.root == "robot" for targets in self.parameters.targets for t in targets)

    def outcome(self, x: Float[Array, " n"], ends: tuple[Rest, Rest]) -> Outcome:
        """Costs and margins of the move, for every sample."""
        return self.outcome_and_curved(x, ends)[0]

    def outcome_and_curved(
        self, x: Float[Array, " n"], ends: tuple[Rest, Rest]
    ) -> tuple[Outcome, Curved]:
        """As :meth:`outcome`, with what the curvature of the costs follows from."""
        robot, drive, duration = self.robot_of(x), self.drive_of(x), self.duration_of(x)
        rows = jnp.asarray(self.samples.values, duration.dtype)
        if self.designs:
            ends = _ends(self, robot, rows)

        def one(row, first, goal) -> tuple[Outcome, Curved]:
            model = self.model.rebind(self.samples.place(robot, row))
            traj = simulate(
                model,
                drive,
                self.times(duration),
                substeps=1,
                start=at_rest(robot, drive, first.state),
                stations=self.stations,
                throw=False,
            )
            # Read inside: outputs that neither costs nor limits need are not traced.
            move = Move(traj, duration, goal, model, drive, self.steps)
            costs = jnp.stack([cost(move) for cost in self.costs])
            margins = tuple(limit.margins(move) for limit in self.limits)
            found = Outcome(costs, margins, self.missing(move), traj.status == Status.ok)
            return found, Curved(tuple(cost.vector(move) for cost in self.costs), traj.final)

        if self.samples.count == 1:
            # Without vmap, branches of the program stay branches.
            only = jtu.tree_map(lambda a: a[0], (rows, *ends))
            return jtu.tree_map(lambda a: a[None], one(*only))
        return jax.vmap(one)(rows, *ends)

    def missing(self, move: Move) -> Float[Array, " r"]:
        """What keeps the arm from resting at the goal when the move ends, without units."""
        traj, goal, k = move.traj, move.goal, move.steps
        rows = [jnp.zeros(0, traj.ts.dtype)]
        if not self.arrive:
            return rows[0]
        robot = self.model.robot
        slices = robot.dof_slices()
        prescribed = self.drive.prescribed(robot)
        for joint in robot.tree_joints:
            at = slices[joint.name]
            if joint.dofs and (joint.flexible or not prescribed[at].all()):
                rows += [traj.q[k, at] - goal.q[at], traj.qd[k, at] * move.duration]
            if joint.flexible and not prescribed[at].all():
                # No output has the rate of a motor: with the rest at rest, it is zero if and only
                # if the motor has not moved one step later.
                later = (traj.motor[k + 1, at] - traj.motor[k, at]) * self.steps
                rows += [traj.motor[k, at] - goal.motor[at], later]
        ends = traj if traj.ends is None else traj.ends
        across = slice(1, 2) if robot.planar else slice(1, 3)
        for i, link in enumerate(robot.links):
            if link.elastic and self.model.formulation.deforms:
                bent = ends.deflection[k, i, -1] - goal.deflection[i]
                speed = ends.velocity[k, i, -1, :3] * move.duration
                rows += [bent[across] / link.length, speed[across] / link.length]
        return jnp.concatenate(rows)


def resting(model: AbstractModel, name: str, at: Start) -> Rest:
    """The arm at rest at one end of the move."""
    try:
        return rest(model, at)
    except EquilibriumError as error:
        raise ValueError(f"{name}: {NO_REST}") from error


@filter_jit
def _ends(problem: Problem, robot: Robot, rows: Float[Array, "S k"]) -> tuple[Rest, Rest]:
    def one(row):
        model = problem.model.rebind(problem.samples.place(robot, row))
        first, last = (
            rest_of(model, held_motors(model, at), at, problem.undeformed)
            for at in (problem.start, problem.goal)
        )
        return first, last

    if rows.shape[0] == 1:
        return jtu.tree_map(lambda a: a[None], one(rows[0]))
    return jax.vmap(one)(rows)
