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
from scipy.optimize import minimize, nnls

from flexjax.study.optimise._costs import SQUARES
from flexjax.study.optimise._problem import Problem, outcome_and_jacobian

FAILED = 1e6  # cost of a move whose simulation failed: the line search rejects it
NEAR = 0.3  # margins below enter the working set
ROUNDS = 8  # of the working set
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

    def __init__(self, problem: Problem, ends: Any, over: str, show: Callable[[str], None] | None):
        self.problem, self.ends, self.over, self.show = problem, ends, over, show
        self.weights = np.array([c.weight for c in problem.costs])
        self.square = all(c.name in SQUARES for c in problem.costs)
        self.scale = 1.0
        self.steepness = 1.0  # of the cost at the first guess
        self.last: Point | None = None
        self.best: Point | None = None
        self.history: list[dict[str, float]] = []
        self.count = 0
        self.begin = time.perf_counter()

    def at(self, x: np.ndarray) -> Point:
        """The point at x; the last one is kept, since a solver asks for its parts one by one."""
        if self.last is not None and np.array_equal(x, self.last.x):
            return self.last
        found, slope = outcome_and_jacobian(self.problem, jnp.asarray(x), self.ends)
        n, ok = x.size, bool(np.all(found.ok))
        costs = np.asarray(found.costs)
        totals = costs @ self.weights / self.scale
        slopes = np.einsum("scn,c->sn", np.asarray(slope.costs), self.weights) / self.scale
        join = lambda parts, *shape: np.concatenate(
            [np.zeros((0, *shape)), *(np.asarray(m).reshape(-1, *shape) for m in parts)]
        )
        point = Point(
            np.array(x, float),
            totals,
            slopes,
            costs,
            join(found.margins),
            join(slope.margins, n),
            np.asarray(found.missing).reshape(-1),
            np.asarray(slope.missing).reshape(-1, n),
            ok,
        )
        parts = (point.totals, point.slopes, point.margins, point.margin_slopes, point.missing)
        if not ok or not all(np.all(np.isfinite(a)) for a in parts):
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

    # ---- the solver ----

    def run(self, x0: np.ndarray, bounds: list, iterations: int, tolerance: float) -> Found:
        """Search from ``x0``."""
        first = self.at(x0)
        if not first.ok:
            raise ValueError(
                "optimise: the simulation of the first guess fails; give a drive whose simulation "
                "succeeds, or a longer duration."
            )
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
                result = self._solve(x, bounds, working, iterations, tolerance)
                x, message = np.asarray(result.x)[: x0.size], str(result.message)
                status = "converged" if result.success else self._named(result.status)
                point = self.at(x)
                broken = np.flatnonzero(point.margins < -1e-9)
                new = np.setdiff1d(broken, working)
                if new.size == 0:
                    break
                working = np.union1d(working, np.flatnonzero(point.margins < 0.1))
        except KeyboardInterrupt:
            status, message = "interrupted", "stopped by the user; this is the best move so far"
        final = self.at(x) if status == "converged" else self.best or self.at(x)
        if final.violation > 1e-5 and status == "converged":
            status = "infeasible"
        return Found(
            final,
            status,
            message,
            self.kkt(final, working, bounds),
            self.history,
            self.count,
            time.perf_counter() - self.begin,
        )

    @staticmethod
    def _named(code: int) -> str:
        return {9: "iterations", 4: "infeasible", 8: "no descent"}.get(int(code), "failed")

    def _solve(self, x, bounds, working, iterations, tolerance):
        worst = self.over == "worst" and self.last is not None and self.last.totals.size > 1
        n = x.size

        def note(xk):
            point = self.at(np.asarray(xk)[:n])
            self.history.append({"cost": self.value(point), "violation": point.violation})
            if self.show is not None:
                self.show(
                    f"iteration {len(self.history)}: cost {self.value(point):.3e}, violation "
                    f"{point.violation:.1e}"
                )

        def limits(y):
            point = self.at(y[:n])
            levels = y[n] - self._levels(point)[0] if worst else np.zeros(0)
            return np.concatenate([levels, point.margins[working]])

        def limit_slopes(y):
            point = self.at(y[:n])
            rows = point.margin_slopes[working]
            if not worst:
                return rows
            rows = np.concatenate([rows, np.zeros((rows.shape[0], 1))], axis=1)
            slopes = self._levels(point)[1]
            ones = np.ones((slopes.shape[0], 1))
            return np.concatenate([np.concatenate([-slopes, ones], axis=1), rows])

        def rest_slopes(y):
            rows = self.at(y[:n]).missing_slopes
            return np.concatenate([rows, np.zeros((rows.shape[0], 1))], axis=1) if worst else rows

        constraints: list[Any] = []
        if worst or working.size:
            constraints.append({"type": "ineq", "fun": limits, "jac": limit_slopes})
        if self.last is not None and self.last.missing.size:
            missing = lambda y: self.at(y[:n]).missing
            constraints.append({"type": "eq", "fun": missing, "jac": rest_slopes})
        if worst:
            y0 = np.append(x, np.max(self._levels(self.at(x))[0]))
            unit = np.append(np.zeros(n), 1.0)
            value, slope = (lambda y: y[n]), (lambda y: unit)
            limits_of = [*bounds, (0.0, None)]
        else:
            y0, limits_of = x, bounds
            value = lambda y: float(np.mean(self.at(y).totals))
            slope = lambda y: np.mean(self.at(y).slopes, axis=0)
        return minimize(
            value,
            y0,
            jac=slope,
            bounds=limits_of,
            constraints=constraints,
            method="SLSQP",
            callback=note,
            options={"maxiter": iterations, "ftol": tolerance},
        )

    def kkt(self, point: Point, working: np.ndarray, bounds: list) -> float:
        """Norm of the gradient that no multiplier balances, relative to that of the first guess."""
        n = point.x.size
        active = [point.margin_slopes[k] for k in working if point.margins[k] < 1e-6]
        for k, (low, high) in enumerate(bounds):
            unit = np.eye(n)[k]
            if low is not None and point.x[k] <= low + 1e-9:
                active.append(unit)
            if high is not None and point.x[k] >= high - 1e-9:
                active.append(-unit)
        rows = [*active, *point.missing_slopes, *-point.missing_slopes]
        if self.over == "worst" and point.totals.size > 1:
            levels, slopes = self._levels(point)
            worst = slopes[levels >= np.max(levels) * (1 - 1e-6) - 1e-12]
            # The slope is a mean of those of the worst samples.
            A = np.concatenate([worst, *(-r[None] for r in rows)]) if rows else worst
            ones = np.concatenate([np.ones(len(worst)), np.zeros(len(rows))])
            weight = max(np.max(np.linalg.norm(slopes, axis=1)), 1e-300)
            left = nnls(np.vstack([A.T, weight * ones]), np.append(np.zeros(n), weight))[1]
            return float(left / self.steepness)
        slope = np.mean(point.slopes, axis=0)
        left = nnls(np.array(rows).T, slope)[1] if rows else np.linalg.norm(slope)
        return float(left / self.steepness)
