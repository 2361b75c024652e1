"""Posterior samples by Hamiltonian Monte Carlo (blackjax), with identify's likelihood."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flexjax._compile import filter_jit
from flexjax._html import block, curves
from flexjax.study.identify._result import Identification
from flexjax.study.identify.fit._problem import residuals
from flexjax.study.identify.uncertainty._statistics import noise_factors, row_scale, rows_of


class Posterior(NamedTuple):
    """``values``: samples (chains, draws, p); ``accepted``: mean acceptance; ``divergent``:
    number of divergent transitions."""

    names: tuple[str, ...]
    values: np.ndarray
    accepted: float
    divergent: int

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Equal-tailed intervals (p, 2)."""
        flat = self.values.reshape(-1, self.values.shape[-1])
        return np.quantile(flat, [0.5 - level / 2, 0.5 + level / 2], axis=0).T

    def __str__(self) -> str:
        flat = self.values.reshape(-1, self.values.shape[-1])
        rows = [
            f"{n:<36}{m:14.7g}{s:12.2g}   [{lo:.6g}, {hi:.6g}]"
            for n, m, s, (lo, hi) in zip(
                self.names, flat.mean(0), flat.std(0), self.intervals(), strict=True
            )
        ]
        return "\n".join([f"{'parameter':<36}{'mean':>14}{'std. dev.':>12}   95 % interval", *rows])

    def _repr_html_(self) -> str:
        flat = self.values.reshape(-1, self.values.shape[-1])
        draws = np.arange(len(flat))
        pictures = [
            curves(draws, {name: flat[:, k]}, "draw", name) for k, name in enumerate(self.names[:4])
        ]
        return block(str(self), *pictures)


def sample_posterior(
    result: Identification, draws: int = 500, *, warmup: int = 200, chains: int = 2, seed: int = 0
) -> Posterior:
    """Sample the posterior of the free parameters with the no-U-turn sampler.

    The noise is fixed at its estimate. Priors are those of ``free``; without one, the prior is
    flat in the transformed parameter. Chains start at the estimates, with their covariance as
    metric. Needs blackjax: ``pip install 'flexjax[bayes]'``.

    Arguments:
        result: an identification.
        draws: samples per chain.
        warmup: steps that adapt the step size.
        chains: number of chains.
        seed: of all random draws.

    Returns:
        The samples, with :meth:`Posterior.intervals`.

    Raises:
        ImportError: blackjax is not installed.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=10).bind(fx.load_robot("li-zhang-single-link"))
    >>> result = fx.identify(model, fx.Modal([6.05]), "links.link.material.E")
    >>> posterior = fx.sample_posterior(result, draws=20, warmup=20, chains=1)
    """
    try:
        import blackjax  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            "sample_posterior needs the package blackjax: pip install 'flexjax[bayes]'."
        ) from None
    problem, measured = result.problem, result.measured
    rows = rows_of(problem, measured)
    scale = np.ones(len(rows.channel))
    if not result.noise_known:
        r = np.asarray(residuals(jnp.asarray(result.z), problem, measured)[0])
        scale = row_scale(rows, noise_factors(r, rows, problem.parameters.size))
    scale = jnp.asarray(scale)
    metric = jnp.asarray(result.z_covariance)

    def density(z):
        return -0.5 * jnp.sum((scale * residuals(z, problem, measured)[0]) ** 2)

    @filter_jit
    def chain(key):
        first, second, third = jax.random.split(key, 3)
        start = jax.random.multivariate_normal(first, jnp.asarray(result.z), metric)
        # The metric is known; dual averaging adapts only the step size.
        init, update, final = blackjax.adaptation.step_size.dual_averaging_adaptation(0.8)
        kernel = blackjax.nuts.build_kernel()

        def warm(carry, key):
            state, adaptation = carry
            state, info = kernel(key, state, density, jnp.exp(adaptation.log_step_size), metric)
            return (state, update(adaptation, info.acceptance_rate)), None

        state = blackjax.nuts.init(start, density)
        (state, adaptation), _ = jax.lax.scan(
            warm, (state, init(1.0)), jax.random.split(second, warmup)
        )
        step = final(adaptation)

        def draw(state, key):
            state, info = kernel(key, state, density, step, metric)
            return state, (state.position, info.acceptance_rate, info.is_divergent)

        return jax.lax.scan(draw, state, jax.random.split(third, draws))[1]

    found = [chain(key) for key in jax.random.split(jax.random.key(seed), chains)]
    z = jnp.stack([f[0] for f in found])
    values = jax.vmap(jax.vmap(problem.parameters.values))(z)
    return Posterior(
        result.names,
        np.asarray(values),
        float(np.mean([np.mean(f[1]) for f in found])),
        int(sum(np.sum(f[2]) for f in found)),
    )
