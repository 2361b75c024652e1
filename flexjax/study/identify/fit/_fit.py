"""Searches: Levenberg-Marquardt on growing segments of the recordings, optax, checkpoints."""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from flexjax._compile import filter_jit
from flexjax._files import read_npz, reading, write_whole
from flexjax.study.identify.fit._effect import refuse_without_effect
from flexjax.study.identify.fit._problem import (
    FAILED,
    Beside,
    Measured,
    Objective,
    Problem,
    evaluate,
    residuals,
)
from flexjax.study.identify.fit._trust_region import Evaluation, Step, trust_region

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
    checkpoint: str | os.PathLike[str] | None = None,
    history: Sequence[float] = (),
    grow: bool = True,
    moving: np.ndarray | None = None,
) -> Fit:
    """Search from the host on growing segments (``grow``), then on all data.

    An interruption returns the best estimate so far. ``moving``: mask of the parameters that the
    search moves; then the data may leave some of them without effect.
    """
    search = _Search(problem, measured, np.asarray(z0), (rtol, atol), bar, moving)
    history, status = list(history), "stopped at max_steps"
    best: float = np.inf
    there: Any = None

    def keep(z: np.ndarray, loss: float, beside: Beside):
        nonlocal best, there
        history.append(loss)
        if loss < best:
            best, there = loss, (z, beside)
            _keep(checkpoint, problem, (best, z), history)

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
    z, beside = there
    if moving is None:
        _refuse_idle(problem, beside.jacobian)
    return _fit(problem, measured, z, history, status, search.evaluations, beside)


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
        z: np.ndarray,
        tolerances: tuple[float, float],
        bar: Bar | None,
        moving: np.ndarray | None = None,
    ):
        self.problem, self.measured, self.tolerances = problem, measured, tolerances
        self.masked = moving is not None
        self.moving = np.ones(len(z)) if moving is None else np.asarray(moving, float)
        self.z, self.bar = z, bar
        self.steps, self.evaluations = 0, 0.0

    def _run(self, share: float, hold: float, max_steps: int) -> Iterator[tuple[Objective, Step]]:
        """Yield steps; z is the end of the last accepted one."""
        objective = Objective(self.problem, self.measured, self.z, share, hold, self.moving)
        for step in itertools.islice(trust_region(objective, *self.tolerances), max_steps):
            if self.steps == 0 and not self.masked:
                _refuse_idle(self.problem, step.best.beside.jacobian)
            self.z = objective.at(step.best.u)[0]
            self.steps, self.evaluations = self.steps + 1, self.evaluations + share
            if self.bar is not None:
                self.bar(self.steps, step.best.loss)
            yield objective, step

    def part(self, share: float) -> None:
        for objective, step in self._run(share, 1 / HOLD, PART_STEPS):
            r, jacobian, _ = step.best.beside
            mean = np.sum(r**2) / max(np.sum(np.any(jacobian != 0, axis=1)), 1)
            # A smaller gain would follow noise in directions that the segment does not show.
            # ``ahead`` uses the step that is already computed.
            if step.done or step.best.gain <= 1e-2 * step.best.loss or mean < 1e-3:
                self.z = objective.at(step.ahead)[0]
                return

    def whole(self, max_steps: int, keep: Callable[[np.ndarray, float, Beside], None]) -> str:
        last = 0.0
        for objective, step in self._run(1.0, 0.0, max_steps):
            best = step.best
            if _near(best.gain, last, best.loss / len(best.beside.residual)):
                keep(*_last_step(objective, best))
                return "converged"
            last = best.gain
            keep(objective.at(best.u)[0], best.loss, best.beside)
            if step.done:
                return "converged"
        return "stopped at max_steps"


def _last_step(objective: Objective, best: Evaluation) -> tuple[np.ndarray, float, Beside]:
    """A full Gauss-Newton step with residuals from the linear model; predictions stay."""
    r, jacobian, predicted = best.beside
    here = jacobian * objective.at(best.u)[1]
    step = -np.linalg.lstsq(here, r, rcond=1e-12)[0]
    r = r + here @ step
    return objective.at(best.u + step)[0], 0.5 * float(r @ r), Beside(r, jacobian, predicted)


def _fit(
    problem: Problem,
    measured: Measured,
    z: np.ndarray | Array,
    history: list[float],
    status: str,
    evaluations: float,
    there: Beside | None = None,
) -> Fit:
    z = np.asarray(z)
    r, jacobian, predicted = evaluate(z, problem, measured) if there is None else there
    loss = 0.5 * float(np.sum(r**2))
    return Fit(z, loss, history, status, evaluations, r, jacobian, predicted)


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
    checkpoint: str | os.PathLike[str] | None = None,
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
    path: str | os.PathLike[str] | None,
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
    path: str | os.PathLike[str] | None, problem: Problem
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
