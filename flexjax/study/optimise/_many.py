"""Many moves at once: different goals of one arm, in one program."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from flexjax._compile import filter_jit
from flexjax._html import block, curves
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.study.free import FreeLike
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise._goals import Goals, build_goals
from flexjax.study.optimise._optimise import INSIDE, make_result, read_method
from flexjax.study.optimise._result import Optimisation
from flexjax.study.optimise.problem import Minimise, Problem, Spread
from flexjax.study.optimise.search import Iterate, Search, Setting, box
from flexjax.study.optimise.search._contradict import contradict
from flexjax.study.optimise.search._sqp import Values, advance, begin, finished, propose, settled
from flexjax.study.optimise.search._values import values_at


@dataclasses.dataclass(frozen=True, eq=False)
class Moves:
    """Result of :func:`flexjax.optimise_many`: arrays over the B moves; ``moves[k]`` is one of
    them as an :class:`Optimisation`.

    ``values`` (B, n): free parameters ``names``; ``duration`` (B,) [s]; ``cost`` (B,): of the worst
    sample, relative to the first guess; ``violation`` (B,); ``kkt`` (B,); ``status``: "converged",
    "iterations", "infeasible" or "no descent" for each; ``iterations`` (B,).
    """

    names: tuple[str, ...]
    values: np.ndarray
    duration: np.ndarray
    cost: np.ndarray
    violation: np.ndarray
    kkt: np.ndarray
    status: tuple[str, ...]
    iterations: np.ndarray
    goals: Goals
    ends: Iterate
    over: str

    @property
    def ok(self) -> bool:
        """Whether all searches converged to moves within all limits."""
        return all(status == "converged" for status in self.status)

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, k: int) -> Optimisation:
        if not -len(self) <= k < len(self):
            raise IndexError(f"moves[{k}]; there are {len(self)}.")
        it = jtu.tree_map(lambda a: a[k], self.ends)
        problem = self.goals.problem(k)
        search = Search(problem, None, self.over, None)
        found = search.ended(it, self.status[k], box(problem))
        return make_result(problem, found)

    def __str__(self) -> str:
        counts = {name: self.status.count(name) for name in dict.fromkeys(self.status)}
        listed = ", ".join(f"{n} {name}" for name, n in counts.items())
        return (
            f"{len(self)} moves: {listed}; at most {self.iterations.max()} iterations, violation "
            f"{self.violation.max():.1e}, KKT {self.kkt.max():.1e}"
        )

    def _repr_html_(self) -> str:
        count = np.arange(len(self))
        return block(str(self), curves(count, {"cost": self.cost}, "move", "relative cost"))


def optimise_many(
    model: AbstractModel,
    drive: Drive | None = None,
    *,
    goals: Sequence[Start | Mapping[str, float]],
    start: Start | Mapping[str, float] | None = None,
    duration: float | tuple[float, float],
    minimise: Minimise = "residual_energy",
    limits: Mapping[str, Any] | None = None,
    spread: Mapping[str, Spread] | None = None,
    samples: int | None = None,
    over: str = "worst",
    free: FreeLike | None = None,
    knots: int = 8,
    dt: float = 1e-3,
    steps: int | None = None,
    hold: float | None = None,
    method: str | None = None,
    batch: int = 16,
    iterations: int = 60,
    tolerance: float = 1e-5,
) -> Moves:
    """Find the best moves to many goals in one program.

    All searches run inside jit, side by side.

    Arguments:
        model, drive, start, duration, minimise, limits: as in :func:`optimise`, for all moves.
        spread, samples, over, free, knots, dt, steps, hold: as in :func:`optimise`.
        goals: coordinates at the end of every move.
        method: "gauss-newton" or "sqp".
        batch: number of searches that run side by side; a search that ends makes room for the
            next. More need more memory.
        iterations: largest number of iterations of every search.
        tolerance: change of the cost that ends a search, relative to the first guess.

    Returns:
        :class:`Moves`.

    Raises:
        ValueError: goals, limits or drive do not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
    >>> goals = [{"motor": 0.4}, {"motor": 0.5}]
    >>> moves = fx.optimise_many(model, goals=goals, duration=0.4, dt=1e-2, knots=4)
    >>> moves.ok
    True
    """
    if over not in ("worst", "mean"):
        raise ValueError(f"over: {over!r}; expected 'worst' or 'mean'.")
    if not goals:
        raise ValueError("goals: none; expected the coordinates at the end of each move.")

    def build(goal: Start) -> Problem:
        return build_problem(
            model,
            drive,
            goal=goal,
            start=start,
            duration=duration,
            minimise=minimise,
            limits=limits,
            spread=spread,
            samples=samples,
            free=free,
            knots=knots,
            dt=dt,
            steps=steps,
            hold=hold,
        )

    moves = build_goals(build, model.robot, goals, knots if drive is None else None)
    if method is None:
        method = "gauss-newton" if read_method(moves.common, None) == "gauss-newton" else "sqp"
    if read_method(moves.common, method) not in INSIDE:
        raise ValueError(f"method: {method!r}; expected one of {', '.join(INSIDE)}.")
    found = _search_all(
        moves,
        Setting(over, method == "gauss-newton"),
        min(batch, moves.count),
        jnp.asarray(iterations),
        jnp.asarray(tolerance),
    )
    return _moves(moves, found, over)


class _Queue(eqx.Module):
    """Searches in places: each place works on one move and takes the next when that is done."""

    move: Int[Array, " B"]  # of every place; the number of moves where none is left
    begun: Bool[Array, " B"]
    its: Iterate  # of the places
    following: Int[Array, ""]  # the next move
    found: Iterate  # of the moves; the last row takes what is not finished


class _Ends(eqx.Module):
    """Where the searches ended, and what follows from that."""

    its: Iterate
    values: Float[Array, "B n"]
    duration: Float[Array, " B"]
    violation: Float[Array, " B"]


@filter_jit
def _search_all(
    goals: Goals, setting: Setting, places: int, iterations: Array, least: Array
) -> _Ends:
    """All searches in one program. No place waits for the slowest search of a batch, and every
    evaluation is of use: a search that ends leaves that of its last step to the next one."""
    count, common = goals.count, goals.common
    ends = jax.lax.map(lambda k: goals.problem(k).ends(), jnp.arange(count))
    low, high = (jnp.asarray(b) for b in box(common))
    dtype = common.model.robot.gravity.dtype
    x0 = jnp.zeros(common.parameters.size + 1, dtype)
    x0 = x0.at[-1].set(1.0 if common.duration.free else 0.0)

    def evaluate(k, x):
        rests = jtu.tree_map(lambda a: a[k], ends)
        return values_at(goals.problem(k), rests, setting.over, setting.curved, x)

    def following(it, step, fresh, new):
        after = advance(it, step, new, least)
        return jtu.tree_map(lambda a, b: jnp.where(fresh, a, b), begin(x0, new), after)

    propose_all = jax.vmap(lambda it: propose(it, low, high))
    shapes = jax.eval_shape(lambda x: evaluate(0, x), x0)
    blank = begin(x0, jtu.tree_map(lambda a: jnp.zeros(a.shape, a.dtype), shapes))
    rows = lambda n: jtu.tree_map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), blank)
    steps_of = jax.eval_shape(propose_all, rows(places))

    def body(queue: _Queue) -> _Queue:
        # Nothing is known yet where no search has begun.
        none = lambda its: jtu.tree_map(lambda a: jnp.zeros(a.shape, a.dtype), steps_of)
        steps = jax.lax.cond(jnp.any(queue.begun), propose_all, none, queue.its)
        sure = jax.vmap(lambda it, step: settled(it, step, least))(queue.its, steps)
        its = jax.vmap(finished)(queue.its, steps, sure & queue.begun)
        ended = queue.begun & (its.done | (its.count >= iterations)) & (queue.move < count)
        slot = jnp.where(ended, queue.move, count)
        found = jtu.tree_map(lambda all, a: all.at[slot].set(a), queue.found, its)
        next_one = jnp.minimum(queue.following + jnp.cumsum(ended) - 1, count)
        move, fresh = jnp.where(ended, next_one, queue.move), ended | ~queue.begun
        x = jnp.where(fresh[:, None], x0, its.x + steps.d)
        new = jax.vmap(evaluate)(jnp.minimum(move, count - 1), x)
        its = jax.vmap(following)(its, steps, fresh, new)
        return _Queue(move, move < count, its, queue.following + jnp.sum(ended), found)

    first = jnp.arange(places)
    start = _Queue(first, first < 0, rows(places), jnp.asarray(places), rows(count + 1))
    end = jax.lax.while_loop(lambda queue: jnp.any(queue.move < count), body, start)
    its = jtu.tree_map(lambda a: a[:count], end.found)

    def described(k, it):
        problem = goals.problem(k)
        values = problem.parameters.values(it.x[: problem.parameters.size])
        return values, problem.duration_of(it.x), it.at.violation

    return _Ends(its, *jax.vmap(described)(jnp.arange(count), its))


def _contradict(at: Values, k: int) -> bool:
    return contradict(at.margins[k], at.margin_slopes[k], at.missing[k], at.missing_slopes[k])


def _moves(goals: Goals, found: _Ends, over: str) -> Moves:
    it = jtu.tree_map(np.asarray, found.its)
    violation = np.asarray(found.violation)
    status = [
        ("infeasible" if _contradict(it.at, k) else "no descent")
        if (c or s) and v > 1e-5
        else "converged"
        if c
        else "no descent"
        if s
        else "iterations"
        for k, (v, c, s) in enumerate(zip(violation, it.converged, it.stuck, strict=True))
    ]
    return Moves(
        names=goals.common.parameters.names,
        values=np.asarray(found.values),
        duration=np.asarray(found.duration),
        cost=np.max(it.at.levels, axis=1) / it.first,
        violation=violation,
        kkt=it.kkt,
        status=tuple(status),
        iterations=it.count,
        goals=goals,
        ends=it,
        over=over,
    )
