"""Coloured noise by restricted maximum likelihood: autoregressions, variances, and how well known.

A fit absorbs the slow part of the noise into its parameters. An autoregression of the residuals is
therefore too small, most of all in short recordings. The restricted likelihood is that of the
residuals' part which no parameter can change. The readings are taken as linear in the parameters.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from flexjax._compile import filter_jit
from flexjax.study.identify.noise._colour import colour_of

LARGEST = 0.9999  # size of a reflection coefficient
RIDGE = 1e-12  # of the information about parameters that the data do not determine


class Linear(eqx.Module):
    """Weighted residuals and their Jacobian at an estimate, not whitened, last column residuals.

    ``runs``: of every group (E, T, S, p + 1), with zeros in gaps. ``others``: rows of other data.
    ``priors``: rows with known noise. ``channel``: of every row of ``others``.
    """

    runs: tuple[Float[Array, "E T S q"], ...]
    weights: tuple[Float[Array, "E T S"], ...]
    others: Float[Array, "n q"]
    priors: Float[Array, "m q"]
    channel: tuple[int, ...] = eqx.field(static=True)
    series: tuple[tuple[int, ...], ...] = eqx.field(static=True)  # channels of a group's sensors


class NoiseModel(NamedTuple):
    """``reflections`` (C, order) and standard deviations ``sizes`` (C,) of the channels, in units
    of the weights. ``freedom``: degrees of freedom of each parameter's variance (p,)."""

    reflections: np.ndarray
    sizes: np.ndarray
    freedom: np.ndarray


def _split(theta: Float[Array, " k"], channels: int, order: int):
    reflections = LARGEST * jnp.tanh(theta[: channels * order].reshape(channels, order))
    return reflections, jnp.exp(theta[channels * order :])


def _whitened(data: Linear, theta: Float[Array, " k"], channels: int, order: int):
    """Rows of Jacobian and residual in units of independent noise, and log det of the noise."""
    reflections, sizes = _split(theta, channels, order)
    rows, logdet = [data.priors], 0.0
    for run, weight, own in zip(data.runs, data.weights, data.series, strict=True):
        index = np.array(own)
        colour = colour_of(reflections[index])
        white = jax.vmap(lambda x, c=colour, w=weight: c.whitened(x, w), -1, -1)(run)
        rows.append((white / sizes[None, None, index, None]).reshape(-1, white.shape[-1]))
        spread = jnp.where(
            weight > 0, jnp.log(sizes[None, None, index] / colour.gain_of(weight)), 0.0
        )
        logdet = logdet + 2 * jnp.sum(spread)
    if len(data.channel):
        rows.append(data.others / sizes[np.array(data.channel)][:, None])
        logdet = logdet + 2 * jnp.sum(jnp.log(sizes[np.array(data.channel)]))
    return jnp.concatenate(rows), logdet


def _information(rows: Float[Array, "N q"]):
    gram = rows.T @ rows
    information = gram[:-1, :-1]
    return information + RIDGE * jnp.diag(jnp.diag(information) + 1e-30), gram


@filter_jit
def _criterion(theta: Float[Array, " k"], data: Linear, channels: int, order: int):
    """Minus the logarithm of the restricted likelihood, and its gradient."""

    def value(theta):
        rows, logdet = _whitened(data, theta, channels, order)
        information, gram = _information(rows)
        slope = gram[:-1, -1]
        left = gram[-1, -1] - slope @ jnp.linalg.solve(information, slope)
        return 0.5 * (logdet + jnp.linalg.slogdet(information)[1] + left)

    return jax.value_and_grad(value)(theta)


@filter_jit
def _variances(theta: Float[Array, " k"], data: Linear, channels: int, order: int):
    """Variance of every parameter of the search."""
    rows, _ = _whitened(data, theta, channels, order)
    return jnp.diag(jnp.linalg.inv(_information(rows)[0]))


@filter_jit
def _variance_slopes(theta: Float[Array, " k"], data: Linear, channels: int, order: int):
    return jax.jacfwd(lambda x: _variances(x, data, channels, order))(theta)


def restricted_likelihood(
    data: Linear, start: np.ndarray, sizes: np.ndarray, known: np.ndarray
) -> NoiseModel:
    """The noise that maximises the restricted likelihood.

    ``start``: reflection coefficients (C, order). ``sizes``: standard deviations (C,), which stay
    where ``known``. Degrees of freedom are Satterthwaite's: 2 V^2 / var(V) of a variance V.
    """
    channels, order = start.shape
    first = np.arctanh(np.clip(start / LARGEST, -0.999, 0.999)).reshape(-1)
    theta = np.concatenate([first, np.log(sizes)])
    moved = np.concatenate([np.ones(channels * order, bool), ~known])

    def fun(x: np.ndarray):
        at = theta.copy()
        at[moved] = x
        value, slope = _criterion(jnp.asarray(at), data, channels, order)
        return float(value), np.asarray(slope)[moved]

    found = minimize(
        fun, theta[moved], jac=True, method="L-BFGS-B", bounds=[(-20, 20)] * sum(moved)
    )
    best = theta.copy()
    best[moved] = found.x
    curvature = _curvature(lambda x: fun(x)[1], found.x)
    slopes = np.asarray(_variance_slopes(jnp.asarray(best), data, channels, order))[:, moved]
    variance = np.asarray(_variances(jnp.asarray(best), data, channels, order))
    spread = np.einsum("pi,ij,pj->p", slopes, np.linalg.pinv(curvature, hermitian=True), slopes)
    freedom = 2 * variance**2 / np.maximum(spread, 1e-300)
    reflections, sizes = (np.asarray(x) for x in _split(jnp.asarray(best), channels, order))
    return NoiseModel(reflections, sizes, np.maximum(freedom, 1.0))


def _curvature(slope, x: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Hessian from central differences of the gradient, with no negative eigenvalue."""
    columns = [(slope(x + step * e) - slope(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    value, vector = np.linalg.eigh(0.5 * (np.stack(columns) + np.stack(columns).T))
    return (vector * np.maximum(value, 0.0)) @ vector.T
