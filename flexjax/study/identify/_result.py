"""What identification returns: numbers with their uncertainty, and how far to trust them."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from flexjax.formulation import AbstractModel
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.uncertainty._bootstrap import Bootstrap, repeat
from flexjax.study.identify.uncertainty._statistics import Whiteness, fit_percent, whiteness

UNSEEN = 0.5  # a combination of relative changes known no better than this counts as not determined


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Data beside the model's prediction; for time series ``predicted`` maps sensors to arrays."""

    data: Any
    predicted: Any

    @property
    def fits(self) -> dict[str, float]:
        """NRMSE fit [%] of every sensor; of other data the fit of all values together."""
        if isinstance(self.data, Experiment):
            return {s: fit_percent(y, self.predicted[s]) for s, y in self.data.sensors.items()}
        measured, predicted = (
            np.asarray(self.data.shown(self.data.measured()[0])),
            np.asarray(self.predicted),
        )
        if len(measured) < 3:
            return {}
        spread = np.linalg.norm(measured - measured.mean())
        return {
            self.data.channels[0] if len(self.data.channels) == 1 else self.data.name: float(
                100 * (1 - np.linalg.norm(predicted - measured) / spread)
            )
        }

    @property
    def whiteness(self) -> dict[str, Whiteness]:
        if not isinstance(self.data, Experiment):
            return {}
        return {
            s: whiteness(_apart_from_rounding(y, self.predicted[s]))
            for s, y in self.data.sensors.items()
        }


def _apart_from_rounding(y: np.ndarray, predicted: np.ndarray):
    error = y - predicted
    return error if np.nanstd(error) > 1e-8 * np.nanstd(y) else np.zeros(0)


@dataclasses.dataclass(frozen=True, eq=False)
class Identification:
    """Result of :func:`flexjax.study.identify`; ``print`` shows the table.

    ``names``, ``units``, ``start``, ``values``: the sought numbers. ``covariance``: of the numbers (Gauss-Newton Fisher information),
    ``robust_covariance``: the same when residuals are not white. ``noise``: standard deviation of every sensor, given or estimated.
    ``model``, ``robot``: with the estimates in them. ``training``, ``validation``: data beside predictions. ``singular_values``: of the
    readings by relative changes of the numbers, in units of the noise.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    start: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    robust_covariance: np.ndarray
    noise: dict[str, float]
    model: AbstractModel
    training: tuple[Comparison, ...]
    validation: tuple[Comparison, ...]
    singular_values: np.ndarray
    directions: np.ndarray
    sizes: np.ndarray  # what a relative change of one means
    loss: float
    history: list[float]
    status: str
    evaluations: float  # of whole records
    seconds: float
    samples: int
    noise_known: bool
    starts: np.ndarray | None  # final losses of a multi-start, sorted
    problem: Any
    measured: Any
    z: np.ndarray
    z_covariance: np.ndarray
    z_robust: np.ndarray

    @property
    def robot(self):
        return self.model.robot

    @property
    def estimates(self) -> dict[str, float]:
        return {n: float(v) for n, v in zip(self.names, self.values, strict=True)}

    @property
    def standard_errors(self) -> np.ndarray:
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        se = self.standard_errors
        return self.covariance / np.outer(se, se)

    def intervals(self, level: float = 0.95, *, robust: bool = False) -> np.ndarray:
        """(p, 2): lower and upper ends; intervals of logarithms where the transform is one, so that they keep within bounds."""
        if not 0 < level < 1:
            raise ValueError(f"level: {level}; expected a share such as 0.95.")
        free = np.inf if self.noise_known else max(1, self.samples - len(self.names))
        q = stats.t.ppf(0.5 + level / 2, free)
        half = q * np.sqrt(np.diag(self.z_robust if robust else self.z_covariance))
        values = self.problem.parameters.values
        with np.errstate(over="ignore"):
            return np.stack(
                [
                    np.asarray(values(jnp.asarray(self.z - half))),
                    np.asarray(values(jnp.asarray(self.z + half))),
                ],
                axis=1,
            )

    def bootstrap(
        self, n: int = 100, *, seed: int = 0, level: float = 0.95, max_steps: int = 30
    ) -> Bootstrap:
        """Fit ``n`` records simulated at the estimates with fresh noise (under vmap): how estimates scatter, and how often the intervals
        cover the numbers that the records were made with."""
        return repeat(
            self.problem,
            self.measured,
            self.z,
            self.noise,
            n=n,
            seed=seed,
            level=level,
            max_steps=max_steps,
        )

    @property
    def unseen(self) -> list[str]:
        """Combinations of the numbers that the data do not determine, in words."""
        out = []
        for s, direction in zip(self.singular_values, self.directions.T, strict=True):
            if s * UNSEEN >= 1:
                continue
            order = np.argsort(-np.abs(direction))
            parts = [k for k in order if abs(direction[k]) > 0.1 * abs(direction[order[0]])]
            sign = np.sign(direction[parts[0]])
            words = [
                f"{self.names[k]} {sign * direction[k] / abs(direction[parts[0]]):+.2g}"
                for k in parts
            ]
            size = "no trace at all" if s < 1e-6 else f"relative standard error {1 / s:.2g}"
            out.append(
                f"{words[0].split()[0]} alone ({size})"
                if len(parts) == 1
                else f"changes in the ratio {', '.join(words)} ({size})"
            )
        return out

    @property
    def undetermined(self) -> list[str]:
        """Numbers whose own standard error exceeds half their size."""
        return [
            n
            for n, se, size in zip(self.names, self.standard_errors, self.sizes, strict=True)
            if not se < UNSEEN * size
        ]

    @property
    def white(self) -> bool:
        """Whether no training residual shows anything that the model misses."""
        return all(w.white for c in self.training for w in c.whiteness.values())

    def __str__(self) -> str:
        low_high = self.intervals()
        width = max(len(n) for n in self.names)
        lines = [
            f"identification of {self.robot.name} ({type(self.model.formulation).__name__}): {self.status} after {self.evaluations:.3g} evaluations in "
            f"{self.seconds:.1f} s, {self.samples} samples",
            f"{'number':<{width}}  {'start':>11}  {'estimate':>13}  {'std. error':>10}  {'95 % interval':>25}  unit",
        ]
        for n, u, a, v, se, (lo, hi) in zip(
            self.names,
            self.units,
            self.start,
            self.values,
            self.standard_errors,
            low_high,
            strict=True,
        ):
            lines.append(
                f"{n:<{width}}  {a:11.5g}  {v:13.7g}  {se:10.2g}  {f'[{lo:.6g}, {hi:.6g}]':>25}  {u}"
            )
        lines += self._fit_lines()
        lines += [f"not determined by these data: {text}" for text in self.unseen]
        if not self.white:
            lines.append(
                "residuals are not white: the model misses something, intervals are too narrow (intervals(robust=True) allows for it)"
            )
        return "\n".join(lines)

    def _fit_lines(self) -> list[str]:
        lines = []
        for label, comparisons in (("fit", self.training), ("validation", self.validation)):
            for c in comparisons:
                if isinstance(c.data, Experiment):
                    text = ", ".join(f"{s} {f:.2f} %" for s, f in c.fits.items())
                else:
                    measured, predicted = c.data.shown(c.data.measured()[0]), c.predicted
                    fits = "".join(f", fit {f:.2f} %" for f in c.fits.values())
                    few = len(measured) <= 8
                    text = (
                        ", ".join(
                            f"{n} {p:.5g} (measured {m:.5g})"
                            for n, p, m in zip(c.data.channels, predicted, measured, strict=True)
                        )
                        if few
                        else f"{len(measured)} values{fits}"
                    )
                lines.append(f"{label}, {c.data.name}: {text}")
        return lines
