"""Solvers of constrained problems on the host, behind one interface."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

FIRST_STEP = 0.05  # largest first change of an unknown by the slope alone


@dataclasses.dataclass
class Program:
    """Minimise ``value(y)`` with ``above(y) >= 0``, ``zero(y) = 0`` and ``low <= y <= high``."""

    value: Callable[[np.ndarray], float]
    slope: Callable[[np.ndarray], np.ndarray]
    above: Callable[[np.ndarray], np.ndarray]
    above_slopes: Callable[[np.ndarray], np.ndarray]
    zero: Callable[[np.ndarray], np.ndarray]
    zero_slopes: Callable[[np.ndarray], np.ndarray]
    low: np.ndarray
    high: np.ndarray
    note: Callable[[np.ndarray], None]
    careful: bool = False  # far steps are of no use
    # Second derivatives of a sum of the value and the constraints, with these weights.
    second: Callable[[np.ndarray, float, np.ndarray], np.ndarray] | None = None


@dataclasses.dataclass
class Ended:
    """Where a solver ended, and why."""

    y: np.ndarray
    status: str
    message: str


def slsqp(program: Program, y0: np.ndarray, iterations: int, tolerance: float) -> Ended:
    """scipy's sequential least-squares programming."""
    # Its first step is the slope. That of a time would leave the limits by hundreds of times.
    steepest = float(np.max(np.abs(program.slope(y0))))
    unit = FIRST_STEP / steepest if program.careful and steepest > FIRST_STEP else 1.0
    constraints = []
    if program.above(y0).size:
        constraints.append({"type": "ineq", "fun": program.above, "jac": program.above_slopes})
    if program.zero(y0).size:
        constraints.append({"type": "eq", "fun": program.zero, "jac": program.zero_slopes})
    found = minimize(
        lambda y: unit * program.value(y),
        y0,
        jac=lambda y: unit * program.slope(y),
        bounds=list(zip(program.low, program.high, strict=True)),
        constraints=constraints,
        method="SLSQP",
        callback=program.note,
        options={"maxiter": iterations, "ftol": unit * tolerance},
    )
    named = {0: "converged", 9: "iterations", 4: "infeasible", 8: "no descent"}
    return Ended(np.asarray(found.x), named.get(int(found.status), "failed"), str(found.message))


def nlopt_slsqp(program: Program, y0: np.ndarray, iterations: int, tolerance: float) -> Ended:
    """nlopt's own version of SLSQP."""
    try:
        import nlopt  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("method 'nlopt': pip install 'flexjax[optimise]'") from error
    solver = nlopt.opt(nlopt.LD_SLSQP, y0.size)
    last = [y0]

    def value(y, slope):
        last[0] = np.array(y)
        program.note(y)
        if slope.size:
            slope[:] = program.slope(y)
        return float(program.value(y))

    def constraint(function, slopes, sign):
        def call(result, y, slope):
            result[:] = sign * function(y)
            if slope.size:
                slope[:] = sign * slopes(y)

        return call

    solver.set_min_objective(value)
    if program.above(y0).size:
        call = constraint(program.above, program.above_slopes, -1.0)
        solver.add_inequality_mconstraint(call, np.full(program.above(y0).size, 1e-9))
    if program.zero(y0).size:
        call = constraint(program.zero, program.zero_slopes, 1.0)
        solver.add_equality_mconstraint(call, np.full(program.zero(y0).size, 1e-9))
    solver.set_lower_bounds(program.low)
    solver.set_upper_bounds(program.high)
    solver.set_ftol_rel(tolerance)
    solver.set_xtol_rel(1e-12)
    solver.set_maxeval(4 * iterations)
    try:
        y = solver.optimize(y0)
    except nlopt.RoundoffLimited:
        # No further decrease within rounding: the last point is as good as it gets.
        return Ended(last[0], "no descent", "limited by rounding")
    code = solver.last_optimize_result()
    status = "converged" if code in (1, 2, 3, 4) else "iterations" if code in (5, 6) else "failed"
    return Ended(np.asarray(y), status, f"nlopt ended with code {code}")


def interior_point(program: Program, y0: np.ndarray, iterations: int, tolerance: float) -> Ended:
    """An interior-point method: pounce, a port of Ipopt."""
    try:
        import pounce  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("method 'interior-point': pip install 'flexjax[optimise]'") from error
    above, zero = program.above(y0).size, program.zero(y0).size
    n, m = y0.size, above + zero

    class Callbacks:
        def objective(self, y):
            return float(program.value(y))

        def gradient(self, y):
            return np.asarray(program.slope(y), float)

        def constraints(self, y):
            return np.concatenate([program.above(y), program.zero(y)])

        def jacobianstructure(self):
            return np.repeat(np.arange(m), n), np.tile(np.arange(n), m)

        def jacobian(self, y):
            return np.concatenate([program.above_slopes(y), program.zero_slopes(y)]).reshape(-1)

        def intermediate(self, *args):
            return True

    class Curved(Callbacks):
        def hessianstructure(self):
            return np.tril_indices(n)

        def hessian(self, y, multipliers, weight):
            assert program.second is not None
            return program.second(np.asarray(y), float(weight), np.asarray(multipliers))[
                np.tril_indices(n)
            ]

    far = 2e19
    problem = pounce.Problem(
        n=n,
        m=m,
        problem_obj=Callbacks() if program.second is None else Curved(),
        lb=np.maximum(program.low, -far),
        ub=np.minimum(program.high, far),
        cl=np.zeros(m),
        cu=np.concatenate([np.full(above, far), np.zeros(zero)]),
    )
    for name, value in (
        ("hessian_approximation", "limited-memory" if program.second is None else "exact"),
        ("print_level", 0),
        ("tol", max(tolerance, 1e-10)),
        ("max_iter", iterations),
    ):
        problem.add_option(name, value)
    y, info = problem.solve(x0=np.asarray(y0, float))
    message = str(info.get("status_msg", ""))
    if isinstance(info.get("status_msg"), bytes):
        message = info["status_msg"].decode()
    code = int(info["status"])
    named = {0: "converged", 1: "converged", -1: "iterations", 2: "infeasible"}
    program.note(np.asarray(y))
    return Ended(np.asarray(y), named.get(code, "failed"), message)


METHODS: dict[str, Callable[[Program, np.ndarray, int, float], Ended]] = {
    "slsqp": slsqp,
    "nlopt": nlopt_slsqp,
    "interior-point": interior_point,
}
