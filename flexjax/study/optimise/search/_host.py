"""The search: sequential quadratic programming on exact derivatives, with a working set of limits.

The number of margins is large (every step of every sample), and few of them bind. The solver sees
those that come near zero. A solution that violates others is continued with these added.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls

from flexjax.study.optimise.problem import SQUARES, Problem
from flexjax.study.optimise.search._contradict import contradict
from flexjax.study.optimise.search._inside import Setting, advanced, proposal, values
from flexjax.study.optimise.search._methods import METHODS, Program
from flexjax.study.optimise.search._sqp import Iterate, Proposal, Values, begin

FIRST_FAILS = (
    "optimise: the simulation of the first guess fails; give a drive whose simulation succeeds, or "
    "a longer duration."
)
INTERRUPTED = "stopped by the user; this is the best move so far"
FAILED = 1e6  # cost of a move whose simulation failed: the line search rejects it
NEAR = 0.3  # margins below enter the working set
ROUNDS = 8  # of the working set
DIFFERENCE = 1e-5  # of a free parameter, for second derivatives
TINY = 1e-8  # amplitude below which the root of a square is rounded


@dataclasses.dataclass
class Point:
    """Costs of the samples and their slopes, margins, and what is missing to rest, at x."""

    x: np.ndarray
    totals: np.ndarray  # (S,)
    slopes: np.ndarray  # (S, n)
    costs: np.ndarray  # (S, C)
    margins: np.ndarray  # (M,)
    margin_slopes: np.ndarray  # (M, n)
    missing: np.ndarray  # (R,)
    missing_slopes: np.ndarray  # (R, n)
    ok: bool
    shapes: tuple[tuple[int, ...], ...]  # (S, T, n) of every limit's margins

    @property
    def violation(self) -> float:
        """Largest violation of a limit, or of rest at the goal."""
        outside = np.max(-self.margins, initial=0.0)
        # Adding zero removes the sign of -0.
        return float(max(outside, np.max(np.abs(self.missing), initial=0.0))) + 0.0


@dataclasses.dataclass
class Found:
    """Where a search ended."""

    point: Point
    status: str
    message: str
    kkt: float
    history: list[dict[str, float]]
    evaluations: int
    seconds: float


class Search:
    """Evaluates a problem on the host and remembers the best feasible point."""

    def __init__(
        self,
        problem: Problem,
        ends: Any,
        over: str,
        show: Callable[[str], None] | None,
        keep: Callable[[np.ndarray], None] | None = None,
    ):
        self.problem, self.ends, self.over, self.show = problem, ends, over, show
        self.keep = keep
        self.weights = np.array([c.weight for c in problem.costs])
        self.square = all(c.name in SQUARES for c in problem.costs)
        # A time is linear in its parameter: the curvature of the limits alone decides.
        self.fast = all(c.name == "time" for c in problem.costs)
        self.scale = 1.0
        self.steepness = 1.0  # of the cost at the first guess
        self.last: Point | None = None
        self.best: Point | None = None
        self.history: list[dict[str, float]] = []
        self.count = 0
        self.iterations = 0  # at most
        self.begin = time.perf_counter()

    def at(self, x: np.ndarray) -> Point:
        """The point at x; the last one is kept, since a solver asks for its parts one by one."""
        if self.last is not None and np.array_equal(x, self.last.x):
            return self.last
        at = values(self.problem, self.ends, Setting(self.over, False), jnp.asarray(x))
        point = self._point(x, at)
        parts = (point.totals, point.slopes, point.margins, point.margin_slopes, point.missing)
        if not point.ok or not all(np.all(np.isfinite(a)) for a in parts):
            point = self._rejected(point)
        self.count += 1
        self.last = point
        if point.ok and (self.best is None or self._rank(point) < self._rank(self.best)):
            self.best = point
        return point

    def _rejected(self, point: Point) -> Point:
        """A failed simulation is a step that no line search accepts; its slopes are not used."""
        clean = lambda a, value=0.0: np.where(np.isfinite(a), a, value)
        return dataclasses.replace(
            point,
            totals=np.full_like(point.totals, FAILED),
            slopes=clean(point.slopes),
            margins=clean(point.margins, -1.0),
            margin_slopes=clean(point.margin_slopes),
            missing=clean(point.missing, 1.0),
            missing_slopes=clean(point.missing_slopes),
            ok=False,
        )

    def _rank(self, point: Point) -> tuple[float, float]:
        """Feasible points first."""
        violation = point.violation
        return (violation if violation > 1e-6 else 0.0, self.value(point))

    def value(self, point: Point) -> float:
        """The objective."""
        levels = self._levels(point)[0]
        return float(np.max(levels) if self.over == "worst" else np.mean(point.totals))

    def _levels(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """Level of every sample and its slope; amplitudes where the costs are squares, which keeps
        the slope of order one near zero."""
        if not self.square:
            return point.totals, point.slopes
        level = np.sqrt(np.maximum(point.totals, 0.0) + TINY**2)
        return level, point.slopes / (2 * level[:, None])

    # ---- the solvers ----

    def run(
        self,
        x0: np.ndarray,
        bounds: tuple[np.ndarray, np.ndarray],
        method: str,
        iterations: int,
        tolerance: float,
    ) -> Found:
        """Search from ``x0`` by a solver on the host."""
        self.iterations = iterations
        first = self.at(x0)
        if not first.ok:
            raise ValueError(FIRST_FAILS)
        size = float(np.max(np.abs(first.costs @ self.weights)))
        self.scale = size if size > 0 else 1.0
        self.last = self.best = None
        first = self.at(x0)
        # A first guess without slope leaves the residual absolute.
        self.steepness = float(np.max(np.linalg.norm(self._levels(first)[1], axis=1))) or 1.0
        working = np.flatnonzero(first.margins < NEAR)
        x, status, message = x0, "iterations", ""
        try:
            for _ in range(ROUNDS):
                program, y0 = self._program(x, bounds, working)
                ended = METHODS[method](program, y0, iterations, tolerance)
                x, status, message = ended.y[: x0.size], ended.status, ended.message
                point = self.at(x)
                broken = np.flatnonzero(point.margins < -1e-9)
                new = np.setdiff1d(broken, working)
                if new.size == 0:
                    break
                working = np.union1d(working, np.flatnonzero(point.margins < 0.1))
        except KeyboardInterrupt:
            status, message = "interrupted", INTERRUPTED
        final = self.at(x) if status == "converged" else self.best or self.at(x)
        return self.found(final, status, message, bounds)

    def found(
        self, final: Point, status: str, message: str, bounds: tuple[np.ndarray, np.ndarray]
    ) -> Found:
        if final.violation > 1e-5 and status in ("converged", "no descent", "infeasible"):
            low, high = bounds
            nearer = (low - final.x, high - final.x)
            rows = (final.margins, final.margin_slopes, final.missing, final.missing_slopes)
            status = "infeasible" if contradict(*rows, nearer) else "no descent"
        return Found(
            final,
            status,
            message,
            self.kkt(final, bounds),
            self.history,
            self.count,
            time.perf_counter() - self.begin,
        )

    def ended(self, it: Iterate, status: str, bounds: tuple[np.ndarray, np.ndarray]) -> Found:
        """The end of a search that ran inside jit."""
        self.scale, self.square = float(it.first), False
        self.steepness = float(it.steepness / it.first)
        point = self._point(it.x, it.at)
        self.history.append({"cost": self.value(point), "violation": point.violation})
        self.count = int(it.count) + 1
        return self.found(point, status, "found with others in one program", bounds)

    def note(self, point: Point) -> None:
        """Record an iteration, and show it."""
        self.history.append({"cost": self.value(point), "violation": point.violation})
        if self.show is not None:
            spent, done = time.perf_counter() - self.begin, len(self.history)
            left = spent / done * max(0, self.iterations - done)
            self.show(
                f"iteration {done}: cost {self.value(point):.3e}, violation "
                f"{point.violation:.1e}, {spent:.1f} s, at most {left:.0f} s left"
            )
        if self.keep is not None:
            self.keep(point.x)

    def _program(self, x, bounds, working) -> tuple[Program, np.ndarray]:
        """The problem with the limits of the working set, and its first guess."""
        first = self.at(x)
        worst = self.over == "worst" and first.totals.size > 1
        n = x.size
        low, high = bounds

        def widened(rows):
            return np.concatenate([rows, np.zeros((rows.shape[0], 1))], axis=1) if worst else rows

        def above(y):
            point = self.at(y[:n])
            levels = y[n] - self._levels(point)[0] if worst else np.zeros(0)
            return np.concatenate([levels, point.margins[working]])

        def above_slopes(y):
            point = self.at(y[:n])
            rows = widened(point.margin_slopes[working])
            if not worst:
                return rows
            slopes = self._levels(point)[1]
            ones = np.ones((slopes.shape[0], 1))
            return np.concatenate([np.concatenate([-slopes, ones], axis=1), rows])

        def second_of(y, weight, multipliers):
            margins, missing = np.zeros(first.margins.size), multipliers[above(y).size :]
            levels = np.full(first.totals.size, weight / first.totals.size)
            if worst:
                levels, multipliers = -multipliers[: levels.size], multipliers[levels.size :]
            margins[working] = multipliers[: working.size]
            shares = (levels / self.scale, margins, missing)
            return np.pad(self.second(y[:n], shares), (0, y.size - n))

        y0 = np.append(x, np.max(self._levels(first)[0])) if worst else x
        unit = np.append(np.zeros(n), 1.0)
        mean = lambda y: float(np.mean(self.at(y).totals))
        return Program(
            value=(lambda y: float(y[n])) if worst else mean,
            slope=(lambda y: unit) if worst else (lambda y: np.mean(self.at(y).slopes, axis=0)),
            above=above,
            above_slopes=above_slopes,
            zero=lambda y: self.at(y[:n]).missing,
            zero_slopes=lambda y: widened(self.at(y[:n]).missing_slopes),
            low=np.append(low, 0.0) if worst else low,
            high=np.append(high, np.inf) if worst else high,
            note=lambda y: self.note(self.at(np.asarray(y)[:n])),
            careful=self.fast,
            second=second_of if self.fast else None,
        ), y0

    def run_inside(
        self,
        x0: np.ndarray,
        bounds: tuple[np.ndarray, np.ndarray],
        curved: bool,
        iterations: int,
        tolerance: float,
    ) -> Found:
        """Search from ``x0`` by the steps that also run inside jit."""
        self.iterations = iterations
        setting = Setting(self.over, curved)
        low, high = (jnp.asarray(b) for b in bounds)
        x = jnp.asarray(x0)
        it = begin(x, values(self.problem, self.ends, setting, x))
        if not bool(it.at.ok):
            raise ValueError(FIRST_FAILS)
        # Costs are relative to the given drive's, also where an earlier result is the start.
        given = np.append(np.zeros(x0.size - 1), 1.0 if self.problem.duration.free else 0.0)
        if not np.array_equal(given, x0):
            at = values(self.problem, self.ends, setting, jnp.asarray(given))
            usual = begin(jnp.asarray(given), at)
            if bool(at.ok):
                it = dataclasses.replace(it, first=usual.first, steepness=usual.steepness)
        self.scale, self.steepness, self.square = float(it.first), 1.0, False
        self.steepness = float(it.steepness / it.first)
        status, message, self.count = "iterations", "the largest number of iterations", 1
        known = np.zeros(0)  # where the curvature is known
        try:
            for _ in range(iterations):
                step = proposal(it, low, high)
                if self.fast and not np.array_equal(known, it.x):
                    known, it = np.asarray(it.x), self._curved(it, step)
                    step = proposal(it, low, high)
                # From the host, as the first one: results of kept programs are bound to their
                # device, for which another program would be compiled.
                new = values(self.problem, self.ends, setting, jnp.asarray(np.array(it.x + step.d)))
                it = advanced(it, step, new, tolerance)
                self.count += 1
                self.note(self._point(it.x, it.at))
                if bool(it.done):
                    status = "converged" if bool(it.converged) else "no descent"
                    message = "the expected decrease is below the tolerance"
                    message = message if bool(it.converged) else "no step decreases the cost"
                    break
        except KeyboardInterrupt:
            status, message = "interrupted", INTERRUPTED
        return self.found(self._point(it.x, it.at), status, message, bounds)

    def second(self, x: np.ndarray, shares: tuple[np.ndarray, ...]) -> np.ndarray:
        """Second derivatives of a weighted sum of levels, margins and what is missing to rest, as
        differences of the exact first ones: they need no other program."""

        def slope(x):
            self.count += 1
            at = values(self.problem, self.ends, Setting(self.over, False), jnp.asarray(x))
            parts = (at.slopes, at.margin_slopes, at.missing_slopes)
            return sum(s @ np.asarray(part) for s, part in zip(shares, parts, strict=True))

        first, H = slope(x), np.zeros((x.size, x.size))
        for k in range(self.problem.size):
            H[k] = (slope(x + DIFFERENCE * np.eye(x.size)[k]) - first) / DIFFERENCE
        # Where a simulation fails nothing is known.
        return np.where(np.isfinite(H + H.T), 0.5 * (H + H.T), 0.0)

    def _curved(self, it: Iterate, step: Proposal) -> Iterate:
        """The point with the curvature of the Lagrangian of a step, made convex."""
        K, M, R = it.at.levels.shape[0], it.at.margins.shape[0], it.at.missing.shape[0]
        u, v, above, below = np.split(np.asarray(step.multipliers), (K, K + M, K + M + R))[:4]
        shares = (u / float(step.scale), -v, above - below[:R])
        sizes, axes = np.linalg.eigh(self.second(np.asarray(it.x), shares))
        convex = (axes * np.maximum(sizes, 0.0)) @ axes.T
        return dataclasses.replace(it, hessian=jnp.asarray(convex))

    def _point(self, x: Any, at: Values) -> Point:
        array = lambda a: np.array(a, float)
        return Point(
            array(x),
            array(at.levels) / self.scale,
            array(at.slopes) / self.scale,
            array(at.costs),
            array(at.margins),
            array(at.margin_slopes),
            array(at.missing),
            array(at.missing_slopes),
            bool(at.ok),
            at.shapes,
        )

    def kkt(self, point: Point, bounds: tuple[np.ndarray, np.ndarray]) -> float:
        """Norm of the gradient that no multiplier balances, relative to that of the first guess."""
        n = point.x.size
        active = [*point.margin_slopes[point.margins < 1e-6]]
        low, high = bounds
        active += [*np.eye(n)[point.x <= low + 1e-9], *-np.eye(n)[point.x >= high - 1e-9]]
        rows = [*active, *point.missing_slopes, *-point.missing_slopes]
        if self.over == "worst" and point.totals.size > 1:
            levels, slopes = self._levels(point)
            worst = slopes[levels >= np.max(levels) * (1 - 1e-3) - 1e-12]
            # The slope is a mean of those of the worst samples.
            A = np.concatenate([worst, *(-r[None] for r in rows)]) if rows else worst
            ones = np.concatenate([np.ones(len(worst)), np.zeros(len(rows))])
            weight = max(np.max(np.linalg.norm(slopes, axis=1)), 1e-300)
            left = nnls(np.vstack([A.T, weight * ones]), np.append(np.zeros(n), weight))[1]
            return float(left / self.steepness)
        slope = np.mean(point.slopes, axis=0)
        left = nnls(np.array(rows).T, slope)[1] if rows else np.linalg.norm(slope)
        return float(left / self.steepness)
