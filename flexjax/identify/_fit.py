"""Search: Levenberg-Marquardt of optimistix step by step, with a bar, interruption and checkpoints; optax for large problems."""

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from flexjax.identify._problem import FAILED, Measured, Problem, for_solver, residuals, residuals_and_jacobian


class Fit(NamedTuple):
    z: np.ndarray
    loss: float  # half the sum of squared weighted residuals
    history: list[float]
    status: str  # "converged", "stopped at max_steps", "interrupted"
    evaluations: int
    residual: np.ndarray  # at z, with Jacobian by z and predictions
    jacobian: np.ndarray
    predicted: tuple


def lm(rtol: float, atol: float) -> optx.LevenbergMarquardt:
    solver = optx.LevenbergMarquardt(rtol=rtol, atol=atol, norm=optx.max_norm)
    # optimistix lowers the damping only where the quadratic model is right to a hundredth, which costs twice the evaluations here.
    search = optx.ClassicalTrustRegion(high_cutoff=0.7, low_cutoff=0.2, high_constant=8.0, low_constant=0.25)
    return eqx.tree_at(lambda s: s.search, solver, search)


@eqx.filter_jit
def _begin(solver, z, args):
    """Inside a jit of its own, so that what the state holds besides arrays is the same object in every later call."""
    shape, aux = jax.eval_shape(lambda z: for_solver(z, args), z)
    return solver.init(for_solver, z, args, {"jac": "fwd"}, shape, aux, frozenset())


@eqx.filter_jit
def _advance(solver, z, state, args):
    z, state, _ = solver.step(for_solver, z, args, {"jac": "fwd"}, state, frozenset())
    done, result = solver.terminate(for_solver, z, args, {"jac": "fwd"}, state, frozenset())
    r, J = state.f_info.residual, state.f_info.jac.as_matrix()
    loss = 0.5 * jnp.sum(r**2)
    # What a full Gauss-Newton step could still gain. Below a
    # ten-thousandth of the loss of one sample the numbers are within a hundredth of their standard errors.
    left = 0.5 * jnp.sum((jnp.linalg.pinv(J, rtol=1e-10).T @ (J.T @ r)) * r)
    done = done | (left <= 1e-4 * loss / r.shape[0])
    return z, state, done, result == optx.RESULTS.successful, loss, (r, J, state.aux)


@eqx.filter_jit
def loss_of(z, problem: Problem, measured: Measured):
    return 0.5 * jnp.sum(residuals(z, problem, measured)[0] ** 2)


value_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss_of))


def levenberg_marquardt(problem, measured, z0, *, max_steps, rtol, atol, bar=None, checkpoint=None, history=()) -> Fit:
    """Step by step from the host. Interrupted, it returns the best so far."""
    solver, z0 = lm(rtol, atol), jnp.asarray(z0)
    history, status, n = list(history), "stopped at max_steps", 0
    best, there = (np.inf, np.asarray(z0)), None
    w, scale = jnp.zeros_like(z0), jnp.ones_like(z0)
    try:
        state = _begin(solver, w, (problem, measured, z0, scale))
        for n in range(1, max_steps + 1):
            w, state, done, good, loss, point = _advance(solver, w, state, (problem, measured, z0, scale))
            loss = float(loss)
            history.append(loss)
            if loss < best[0]:
                r, J, predicted = point
                best, there = (loss, np.asarray(z0 + scale * w)), (r, J / scale[None, :], predicted)
                _keep(checkpoint, problem, best, history)
            if bar is not None:
                bar(n, loss)
            if bool(done):
                status = "converged" if bool(good) else "stopped: a linear solve failed"
                break
            if n == 1 and there is not None:
                # Now the slopes are known: from here on in units in which each number does as much as the others, and the solver's first damping (one) halves
                # the first step. A full one from far away lands in other valleys.
                scale = 1 / jnp.maximum(jnp.linalg.norm(there[1], axis=0), 1e-3 * jnp.max(jnp.linalg.norm(there[1], axis=0)) + 1e-12)
                state = _begin(solver, w, (problem, measured, z0, scale))
    except KeyboardInterrupt:
        status = "interrupted"
    return _fit(problem, measured, best[1], history, status, n, there)


def _fit(problem, measured, z, history, status, evaluations, there=None) -> Fit:
    r, J, predicted = residuals_and_jacobian(jnp.asarray(z), problem, measured) if there is None else there
    return Fit(np.asarray(z), 0.5 * float(jnp.sum(r**2)), history, status, evaluations, np.asarray(r), np.array(J), predicted)


def spread_starts(problem: Problem, n: int, spread: float, key) -> jax.Array:
    """The start itself, and others drawn around it (normal in z; in z a number's logarithm is natural)."""
    noise = spread * jax.random.normal(key, (n - 1, problem.parameters.size), problem.parameters.start.dtype)
    return jnp.concatenate([jnp.zeros((1, problem.parameters.size), noise.dtype), noise])


def gradient_descent(problem, measured, z0, optimiser, *, max_steps, batch=None, key=None, bar=None, checkpoint=None, history=()) -> Fit:
    """A first-order search with an optax optimiser on the sum of squares; ``batch``: experiments drawn at random for each step."""
    import optax

    z, history, status, n = jnp.asarray(z0), list(history), "stopped at max_steps", 0
    state = optimiser.init(z)
    best = (np.inf, np.asarray(z0))

    @eqx.filter_jit
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
    return _fit(problem, measured, best[1], history, status, n)


def _chosen(weights, batch: int, total: int, key):
    """Weights of a random part of the experiments, scaled up so that the loss keeps its size on average."""
    pick = jnp.zeros(total).at[jax.random.permutation(key, total)[:batch]].set((total / batch) ** 0.5)
    parts, at = [], 0
    for w in weights:
        parts.append(w * pick[at : at + w.shape[0], None, None].astype(w.dtype))
        at += w.shape[0]
    return tuple(parts)


# ---- checkpoints --------------------------------------------------------------------------------------------------------


def _keep(path, problem: Problem, best, history) -> None:
    if path is None:
        return
    path = Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".npz", delete=False) as file:
        np.savez(
            file, z=best[1], loss=best[0], history=np.asarray(history), names=np.asarray(problem.parameters.names),
            start=np.asarray(problem.parameters.start), time=time.time(),
        )  # fmt: skip
    os.replace(file.name, path)


def resume(path, problem: Problem) -> tuple[np.ndarray, list[float]] | None:
    """z and history of a checkpoint; None if there is none yet; an error if it belongs to another problem."""
    if path is None:
        return None
    path = Path(path)
    if path.suffix != ".npz" or not path.parent.is_dir():
        raise ValueError(f"checkpoint: {str(path)!r}; expected a name that ends in .npz, in a folder that exists.")
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as kept:
        names, z, start, history = tuple(kept["names"].tolist()), kept["z"], kept["start"], kept["history"].tolist()
    par = problem.parameters
    if names != par.names or not np.allclose(start, np.asarray(par.start), rtol=1e-12):
        raise ValueError(
            f"checkpoint {str(path)!r}: belongs to another problem ({', '.join(names)}); expected {', '.join(par.names)} from the same start. "
            "Delete it or choose another name."
        )
    return z, history
