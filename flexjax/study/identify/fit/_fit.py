"""Searches: Levenberg-Marquardt on growing segments of the recordings, optax, checkpoints."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from flexjax._compile import filter_jit
from flexjax._files import read_npz, reading, write_whole
from flexjax._types import ScalarLike
from flexjax.study.identify.fit._effect import refuse_without_effect
from flexjax.study.identify.fit._problem import (
    FAILED,
    Measured,
    Objective,
    Problem,
    for_solver,
    residuals,
    residuals_and_jacobian,
)

Bar = Callable[[int, float], None]


class Fit(NamedTuple):
    z: np.ndarray
    loss: float  # half the sum of squared weighted residuals
    history: list[float]
    status: str  # "converged", "stopped at max_steps", "interrupted"
    evaluations: float  # of whole recordings
    residual: np.ndarray  # at z, with its Jacobian w.r.t. z and predictions
    jacobian: np.ndarray
    predicted: tuple


class _Within(optx.AbstractDescent):
    """The Gauss-Newton step, damped to the length of the radius where it is longer.

    Steps are in u, in units of each parameter's own size. So no parameter changes by orders of
    magnitude because the data near the start do not depend on it.
    """

    def init(self, y: Float[Array, " p"], f_info_struct: PyTree):
        p = y.shape[0]
        return jnp.zeros((p, p), y.dtype), jnp.zeros(p, y.dtype)

    def query(self, y: Float[Array, " p"], f_info: Any, state: PyTree):
        J = f_info.jac.as_matrix()
        return J.T @ J, J.T @ f_info.residual

    def step(self, step_size: ScalarLike, state: PyTree):
        gram, slope = state
        size, directions = jnp.linalg.eigh(gram)
        size = jnp.maximum(size, 1e-14 * size[-1] + 1e-300)
        along = directions.T @ slope

        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            long = jnp.linalg.norm(along / (size + jnp.exp(middle))) > step_size
            return jnp.where(long, middle, low), jnp.where(long, high, middle)

        # Bisect the logarithm of the damping, from none to one that shortens any step enough.
        top = jnp.log(jnp.linalg.norm(along) / step_size + 1e-300) + 1.0
        _, damping = jax.lax.fori_loop(
            0, 60, halve, (jnp.minimum(jnp.log(size[0]) - 30.0, top - 1.0), top)
        )
        full = jnp.linalg.norm(along / size) <= step_size
        damping = jnp.where(full, 0.0, jnp.exp(damping))
        return -directions @ (along / (size + damping)), optx.RESULTS.successful


RADIUS = 0.5  # of the first step, in u


def lm(rtol: float, atol: float) -> optx.LevenbergMarquardt:
    """The method of optimistix, controlled by the radius of a step instead of its damping.

    The cutoffs are less cautious than its own, which need twice the evaluations here.
    """
    solver = optx.LevenbergMarquardt(rtol=rtol, atol=atol, norm=optx.max_norm)
    search = optx.ClassicalTrustRegion(
        high_cutoff=0.7, low_cutoff=0.1, high_constant=3.0, low_constant=0.25
    )
    return eqx.tree_at(lambda s: (s.search, s.descent), solver, (search, _Within()))


@filter_jit
def _begin(solver: optx.LevenbergMarquardt, args: Objective):
    """Start the solver; compiled, so that static parts of its state stay the same objects."""
    u = jnp.zeros_like(args.z0)
    shape, aux = jax.eval_shape(lambda u: for_solver(u, args), u)
    state = solver.init(for_solver, u, args, {"jac": "fwd"}, shape, aux, frozenset())
    step_size = jnp.full_like(state.search_state.step_size, RADIUS)
    return u, eqx.tree_at(lambda s: s.search_state.step_size, state, step_size)


class Point(NamedTuple):
    """State of a search.

    ``ahead``: end of the next step if the last one was good, else z. ``gain``: what a full
    Gauss-Newton step could still take off the loss. ``mean``: mean square of the residuals that
    count. ``beside``: residuals, their Jacobian w.r.t. z, predictions.
    """

    z: jax.Array
    ahead: jax.Array
    loss: jax.Array
    gain: jax.Array
    mean: jax.Array
    beside: tuple


@filter_jit
def _advance(
    solver: optx.LevenbergMarquardt, u: Float[Array, " p"], state: PyTree, args: Objective
):
    u, state, _ = solver.step(for_solver, u, args, {"jac": "fwd"}, state, frozenset())
    done, result = solver.terminate(for_solver, u, args, {"jac": "fwd"}, state, frozenset())
    r, J, _ = state.aux
    loss = 0.5 * jnp.sum(state.f_info.residual**2)
    gain = 0.5 * jnp.sum(state.f_info.residual[:-1] ** 2)
    mean = jnp.sum(r**2) / jnp.maximum(jnp.sum(jnp.any(J != 0, axis=1)), 1)
    # The first evaluation, where the search starts, counts as an accepted step.
    good = (state.num_accepted_steps > 1) & (state.num_steps_since_acceptance == 0)
    ahead = jnp.where(good, state.y_eval, u)
    point = Point(args.at(u)[0], args.at(ahead)[0], loss, gain, mean, state.aux)
    return u, state, done, result == optx.RESULTS.successful, point


@filter_jit
def _last_step(u: Float[Array, " p"], point: Point, args: Objective) -> Point:
    """A full Gauss-Newton step with residuals from the linear model; predictions stay."""
    r, J, predicted = point.beside
    here = J * args.at(u)[1][None]
    step = -jnp.linalg.lstsq(here, r, rcond=1e-12)[0]
    r = r + here @ step
    z = args.at(u + step)[0]
    loss, gain = 0.5 * jnp.sum(r**2), jnp.zeros_like(point.gain)
    return Point(z, z, loss, gain, point.mean, (r, J, predicted))


@filter_jit
def loss_of(z: Float[Array, " p"], problem: Problem, measured: Measured):
    return 0.5 * jnp.sum(residuals(z, problem, measured)[0] ** 2)


value_and_gradient = filter_jit(eqx.filter_value_and_grad(loss_of))


# Fit the first segment of each recording first. Towards the end of a long recording an error of a
# third shifts a vibration by whole periods, and the loss has many local minima.
PARTS = (1 / 16, 1 / 4)
PART_STEPS = 8
# Standard deviation, in u, of the prior that keeps a parameter near the start of a segment's fit.
HOLD = 0.25


def levenberg_marquardt(
    problem: Problem,
    measured: Measured,
    z0: np.ndarray | Array,
    *,
    max_steps: int,
    rtol: float,
    atol: float,
    bar: Bar | None = None,
    checkpoint: str | os.PathLike | None = None,
    history: Sequence[float] = (),
    grow: bool = True,
    moving: np.ndarray | None = None,
) -> Fit:
    """Run optimistix's method from the host on growing segments (``grow``), then on all data.

    An interruption returns the best estimate so far. ``moving``: mask of the parameters that the
    search moves; then the data may leave some of them without effect.
    """
    search = _Search(problem, measured, lm(rtol, atol), jnp.asarray(z0), bar, moving)
    history, status = list(history), "stopped at max_steps"
    best: float = np.inf
    there: Any = None

    def keep(point):
        nonlocal best, there
        history.append(float(point.loss))
        if history[-1] < best:
            best, there = history[-1], (np.asarray(point.z), point.beside)
            _keep(checkpoint, problem, (best, there[0]), history)

    try:
        if (
            grow
            and measured.lines is None
            and problem.groups
            and min(g.ts.shape[1] for g in problem.groups) >= 64
        ):
            for share in PARTS:
                search.part(share)
        status = search.whole(max_steps, keep)
    except KeyboardInterrupt:
        status = "interrupted"
        if there is None:
            search.whole(1, keep)
    if there is None:
        raise ValueError(
            "the loss or its derivative is not finite where the search starts; start from other "
            "parameters, or take a smaller dt."
        )
    z, point = there
    if moving is None:
        _refuse_idle(problem, point[1])
    return _fit(problem, measured, z, history, status, search.evaluations, point)


def _near(gain: float, last: float, sample: float) -> bool:
    """Whether the linear model can replace the run of the next step.

    A ``gain`` of the loss of one ``sample`` is a distance of one standard error, and goes with its
    square. Within a tenth of an error the model is linear. Within a third, steps shrink at the
    rate of the last two gains; the next one must leave less than a twentieth.
    """
    return gain <= 1e-2 * sample or (gain <= 0.1 * sample and gain**2 <= 2e-3 * sample * last)


class _Search:
    """A running search: its position and its cost, in evaluations of whole recordings."""

    def __init__(
        self,
        problem: Problem,
        measured: Measured,
        solver: optx.LevenbergMarquardt,
        z: Float[Array, " p"],
        bar: Bar | None,
        moving: np.ndarray | None = None,
    ):
        self.problem, self.measured, self.solver = problem, measured, solver
        self.masked = moving is not None
        self.moving = jnp.ones_like(z) if moving is None else jnp.asarray(moving, z.dtype)
        self.z, self.bar = z, bar
        self.steps, self.evaluations = 0, 0.0

    def _run(self, share: float, hold: float, max_steps: int):
        """Yield points; z is the end of the last accepted step."""
        args = Objective(
            self.problem,
            self.measured,
            self.z,
            jnp.asarray(share, self.z.dtype),
            jnp.asarray(hold, self.z.dtype),
            self.moving,
        )
        u, state = _begin(self.solver, args)
        last = 0.0
        for _ in range(max_steps):
            u, state, done, good, point = _advance(self.solver, u, state, args)
            if self.steps == 0 and not self.masked:
                _refuse_idle(self.problem, point.beside[1])
            self.z, self.steps, self.evaluations = point.z, self.steps + 1, self.evaluations + share
            if self.bar is not None:
                self.bar(self.steps, float(point.loss))
            near = hold == 0 and _near(
                float(point.gain), last, float(point.loss) / point.beside[0].shape[0]
            )
            last = float(point.gain)
            yield _last_step(u, point, args) if near else point, near or bool(done), bool(good)

    def part(self, share: float) -> None:
        for point, done, _ in self._run(share, 1 / HOLD, PART_STEPS):
            # A smaller gain would follow noise in directions that the segment does not show.
            # ``ahead`` uses the step that is already computed.
            if done or point.gain <= 1e-2 * point.loss or point.mean < 1e-3:
                self.z = point.ahead
                return

    def whole(self, max_steps: int, keep: Callable[[Point], None]) -> str:
        for point, done, good in self._run(1.0, 0.0, max_steps):
            keep(point)
            if done:
                return "converged" if good else "stopped: a linear solve failed"
        return "stopped at max_steps"


def _fit(
    problem: Problem,
    measured: Measured,
    z: np.ndarray | Array,
    history: list[float],
    status: str,
    evaluations: float,
    there: Any = None,
) -> Fit:
    r, J, predicted = (
        residuals_and_jacobian(jnp.asarray(z), problem, measured) if there is None else there
    )
    return Fit(
        np.asarray(z),
        0.5 * float(jnp.sum(r**2)),
        history,
        status,
        evaluations,
        np.asarray(r),
        np.array(J),
        predicted,
    )


def _refuse_idle(problem: Problem, jacobian: np.ndarray | Array) -> None:
    """Refuse parameters without effect on the data; the last rows belong to priors."""
    data = np.asarray(jacobian)[: -problem.parameters.size]
    idle = np.flatnonzero(~np.any(data, axis=0))
    if len(idle):
        refuse_without_effect(problem, idle)


def spread_starts(problem: Problem, n: int, spread: float, key: PRNGKeyArray) -> jax.Array:
    """The start, and ``n - 1`` others drawn around it (normal in z)."""
    noise = spread * jax.random.normal(
        key, (n - 1, problem.parameters.size), problem.parameters.start.dtype
    )
    return jnp.concatenate([jnp.zeros((1, problem.parameters.size), noise.dtype), noise])


def gradient_descent(
    problem: Problem,
    measured: Measured,
    z0: np.ndarray | Array,
    *,
    optimiser: Any,
    max_steps: int,
    batch: int | None = None,
    key: PRNGKeyArray | None = None,
    bar: Bar | None = None,
    checkpoint: str | os.PathLike | None = None,
    history: Sequence[float] = (),
    grow: bool = False,
) -> Fit:
    """Search with an optax optimiser; ``batch``: experiments drawn at random in each step.

    ``grow`` has no effect: segments are for Levenberg-Marquardt.
    """
    import optax

    z, history, status, n = jnp.asarray(z0), list(history), "stopped at max_steps", 0
    state = optimiser.init(z)
    best = (np.inf, np.asarray(z0))

    @filter_jit
    def step(z, state, weights):
        data = eqx.tree_at(lambda m: m.weights, measured, weights)
        loss, slope = eqx.filter_value_and_grad(loss_of)(z, problem, data)
        change, state = optimiser.update(slope, state, z)
        return optax.apply_updates(z, change), state, loss

    total = sum(len(g.members) for g in problem.groups)
    try:
        for n in range(1, max_steps + 1):
            before = np.asarray(z)
            weights = measured.weights
            if batch is not None and batch < total:
                assert key is not None  # identify makes one from its seed
                key, sub = jax.random.split(key)
                weights = _chosen(measured.weights, batch, total, sub)
            z, state, loss = step(z, state, weights)
            loss = float(loss)
            history.append(loss)
            if loss < best[0] or batch is not None:
                best = (loss, before)
                _keep(checkpoint, problem, best, history)
            if bar is not None:
                bar(n, loss)
            if not np.isfinite(loss) or loss > FAILED**2:
                status = "stopped: the loss is no longer finite; take a smaller learning rate"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    fit = _fit(problem, measured, best[1], history, status, n)
    _refuse_idle(problem, fit.jacobian)
    return fit


def _chosen(weights: tuple[Array, ...], batch: int, total: int, key: PRNGKeyArray):
    """Weights of a random subset of experiments; the expected loss stays the same."""
    pick = (
        jnp.zeros(total).at[jax.random.permutation(key, total)[:batch]].set((total / batch) ** 0.5)
    )
    parts, at = [], 0
    for w in weights:
        parts.append(w * pick[at : at + w.shape[0], None, None].astype(w.dtype))
        at += w.shape[0]
    return tuple(parts)


# ---- checkpoints ----


def _keep(
    path: str | os.PathLike | None,
    problem: Problem,
    best: tuple[float, np.ndarray],
    history: list[float],
) -> None:
    if path is None:
        return
    content = {
        "z": best[1],
        "loss": best[0],
        "history": np.asarray(history),
        "names": np.asarray(problem.parameters.names),
        "start": np.asarray(problem.parameters.start),
        "time": time.time(),
    }
    write_whole(path, lambda part: np.savez(part, **content))


def resume(
    path: str | os.PathLike | None, problem: Problem
) -> tuple[np.ndarray, list[float]] | None:
    """z and history of a checkpoint, or None without one; refuses that of another problem."""
    if path is None:
        return None
    path = Path(path)
    if path.suffix != ".npz" or not path.parent.is_dir():
        raise ValueError(
            f"checkpoint: {str(path)!r}; expected a name that ends in .npz, in a folder that "
            "exists."
        )
    if not path.exists():
        return None
    where = f"checkpoint {str(path)!r}"
    kept = read_npz(path, where)
    with reading(where, "a checkpoint of fx.identify", "Delete it or choose another name."):
        names, history = tuple(kept["names"].tolist()), kept["history"].tolist()
        z, start = kept["z"], kept["start"]
    par = problem.parameters
    same = names == par.names and start.shape == z.shape == par.start.shape
    if not same or not np.allclose(start, np.asarray(par.start), rtol=1e-12):
        raise ValueError(
            f"checkpoint {str(path)!r}: belongs to another problem ({', '.join(names)}); "
            f"expected {', '.join(par.names)} from the same start. "
            "Delete it or choose another name."
        )
    return z, history
