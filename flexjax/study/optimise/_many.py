"""Many moves at once: different goals of one arm, in one program."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, Int

from flexjax._compile import filter_jit
from flexjax._html import block, curves
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.study.free import FreeLike
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise._optimise import INSIDE, make_result, read_method
from flexjax.study.optimise._result import Optimisation
from flexjax.study.optimise.problem import Minimise, Problem, Spread
from flexjax.study.optimise.search import Iterate, Search, Setting, box
from flexjax.study.optimise.search._sqp import advance, begin, propose
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
    problems: tuple[Problem, ...]
    ends: Iterate
    over: str

    @property
    def ok(self) -> bool:
        """Whether all searches converged to moves within all limits."""
        return all(status == "converged" for status in self.status)

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, k: int) -> Optimisation:
        it = jtu.tree_map(lambda a: a[k], self.ends)
        problem = self.problems[k]
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
    problems = tuple(
        build_problem(
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
        for goal in goals
    )
    if method is None:
        method = "gauss-newton" if read_method(problems[0], None) == "gauss-newton" else "sqp"
    if read_method(problems[0], method) not in INSIDE:
        raise ValueError(f"method: {method!r}; expected one of {', '.join(INSIDE)}.")
    setting = Setting(over, method == "gauss-newton")
    varying, common = _split(problems)
    found = _search_all(
        common,
        varying,
        setting,
        len(problems),
        min(batch, len(problems)),
        jnp.asarray(iterations),
        jnp.asarray(tolerance),
    )
    return _moves(problems, found, over)


def _split(problems: tuple[Problem, ...]) -> tuple[Problem, Problem]:
    """(arrays that differ, stacked; all else, once)."""
    arrays = [eqx.filter(p, eqx.is_array) for p in problems]
    stacks = jtu.tree_map(lambda *a: np.stack([np.asarray(x) for x in a]), *arrays)
    differs = jtu.tree_map(lambda a: bool(np.any(a != a[:1])), stacks)
    varying = jtu.tree_map(lambda a, yes: jnp.asarray(a) if yes else None, stacks, differs)
    same = jtu.tree_map(lambda a, yes: None if yes else a, arrays[0], differs)
    common = eqx.combine(same, eqx.filter(problems[0], eqx.is_array, inverse=True))
    return varying, common


class _Queue(eqx.Module):
    """Searches in places: each place works on one move and takes the next when that is done."""

    move: Int[Array, " B"]  # of every place; the number of moves where none is left
    begun: Bool[Array, " B"]
    its: Iterate  # of the places
    following: Int[Array, ""]  # the next move
    found: Iterate  # of the moves; the last row takes what is not finished


@filter_jit
def _search_all(
    common: Problem,
    varying: Problem,
    setting: Setting,
    count: int,
    places: int,
    iterations: Array,
    least: Array,
) -> Iterate:
    """All searches in one program. No place waits for the slowest search of a batch."""
    problem_of = lambda k: eqx.combine(jtu.tree_map(lambda a: a[k], varying), common)
    ends = jax.lax.map(lambda k: problem_of(k).ends(), jnp.arange(count))
    low, high = (jnp.asarray(b) for b in box(common))
    dtype = common.model.robot.gravity.dtype
    x0 = jnp.zeros(common.parameters.size + 1, dtype)
    x0 = x0.at[-1].set(1.0 if common.duration.free else 0.0)

    def evaluate(k, x):
        rests = jtu.tree_map(lambda a: a[k], ends)
        return values_at(problem_of(k), rests, setting.over, setting.curved, x)

    def advanced(k, it, begun):
        step = propose(it, low, high)
        # The first evaluation is one of the loop's, so that the simulation is compiled once.
        new = evaluate(jnp.minimum(k, count - 1), jnp.where(begun, it.x + step.d, x0))
        after = advance(it, step, new, least)
        return jtu.tree_map(lambda a, b: jnp.where(begun, a, b), after, begin(x0, new))

    def body(queue: _Queue) -> _Queue:
        its = jax.vmap(advanced)(queue.move, queue.its, queue.begun)
        ended = (its.done | (its.count >= iterations)) & (queue.move < count)
        slot = jnp.where(ended, queue.move, count)
        found = jtu.tree_map(lambda all, a: all.at[slot].set(a), queue.found, its)
        new = queue.following + jnp.cumsum(ended) - 1
        move = jnp.where(ended, jnp.minimum(new, count), queue.move)
        return _Queue(move, ~ended, its, queue.following + jnp.sum(ended), found)

    shapes = jax.eval_shape(lambda x: evaluate(0, x), x0)
    blank = begin(x0, jtu.tree_map(lambda a: jnp.zeros(a.shape, a.dtype), shapes))
    rows = lambda n: jtu.tree_map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), blank)
    first = jnp.arange(places)
    start = _Queue(first, first < 0, rows(places), jnp.asarray(places), rows(count + 1))
    end = jax.lax.while_loop(lambda queue: jnp.any(queue.move < count), body, start)
    return jtu.tree_map(lambda a: a[:count], end.found)


def _moves(problems: tuple[Problem, ...], it: Iterate, over: str) -> Moves:
    par = problems[0].parameters
    x = jnp.asarray(it.x)
    pairs = list(zip(problems, x, strict=True))
    values = [np.asarray(p.parameters.values(row[: par.size])) for p, row in pairs]
    duration = [float(p.duration_of(row)) for p, row in pairs]
    violation = np.asarray(jax.vmap(lambda at: at.violation)(it.at))
    status = [
        ("infeasible" if v > 1e-5 else "converged") if c else "no descent" if s else "iterations"
        for v, c, s in zip(violation, np.asarray(it.converged), np.asarray(it.stuck), strict=True)
    ]
    return Moves(
        names=par.names,
        values=np.stack(values),
        duration=np.array(duration),
        cost=np.asarray(jnp.max(it.at.levels, axis=1) / it.first),
        violation=violation,
        kkt=np.asarray(it.kkt),
        status=tuple(status),
        iterations=np.asarray(it.count),
        problems=problems,
        ends=it,
        over=over,
    )
