"""Many moves at once: different goals of one arm, in one program."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array

from flexjax._compile import filter_jit
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.study.free import FreeLike
from flexjax.study.optimise._build import build_problem
from flexjax.study.optimise._optimise import INSIDE, make_result, read_method
from flexjax.study.optimise._result import Optimisation
from flexjax.study.optimise.problem import Minimise, Problem, Spread
from flexjax.study.optimise.search import Iterate, Search, Setting, box, search_one


@dataclasses.dataclass(frozen=True, eq=False)
class Moves:
    """Result of :func:`flexjax.optimise_many`: arrays over the B moves; ``moves[k]`` is one of
    them as an :class:`Optimisation`.

    ``values`` (B, n): free numbers ``names``; ``duration`` (B,) [s]; ``cost`` (B,): of the worst
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
        batch: number of moves that run side by side; the batches follow one another. Larger ones
            need more memory, and each waits for its slowest search.
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


@filter_jit
def _search_all(
    common: Problem, varying: Problem, setting: Setting, batch: int, iterations: Array, least: Array
) -> Iterate:
    def one(arrays):
        problem = eqx.combine(arrays, common)
        x = jnp.zeros(problem.parameters.size + 1, problem.model.robot.gravity.dtype)
        x = x.at[-1].set(1.0 if problem.duration.free else 0.0)
        return search_one(problem, setting, x, iterations, least)

    # The last batch repeats moves where the number is no multiple.
    count = jtu.tree_leaves(varying)[0].shape[0]
    rounds = -(-count // batch)
    order = jnp.arange(rounds * batch).reshape(rounds, batch) % count
    found = jax.lax.map(lambda rows: jax.vmap(one)(jtu.tree_map(lambda a: a[rows], varying)), order)
    return jtu.tree_map(lambda a: a.reshape(rounds * batch, *a.shape[2:])[:count], found)


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
