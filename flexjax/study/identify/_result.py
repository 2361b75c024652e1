"""Results of an identification: estimates, their uncertainty, fits."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from flexjax._files import write_whole
from flexjax._html import block, curves
from flexjax.formulation import AbstractModel
from flexjax.robot import robot_to_toml
from flexjax.study.identify.noise._unknown_motion import PREFIX
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.uncertainty._bootstrap import Bootstrap, repeat
from flexjax.study.identify.uncertainty._statistics import Whiteness, fit_percent, whiteness

UNSEEN = 0.5  # relative standard error from which a combination counts as not determined


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Data beside the model's prediction; of time series, ``predicted`` maps sensors to arrays.

    ``ar``: coefficients of the noise of fitted sensors, if it was taken as an autoregression.
    """

    data: Any
    predicted: Any
    ar: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def fits(self) -> dict[str, float]:
        """NRMSE fit [%] of every sensor; of other data, of all values together."""
        if isinstance(self.data, Experiment):
            return {s: fit_percent(y, self.predicted[s]) for s, y in self.data.sensors.items()}
        measured = np.asarray(self.data.shown(self.data.measured()[0]))
        if len(measured) < 3:
            return {}
        channels = self.data.channels
        name = channels[0] if len(channels) == 1 else self.data.name
        spread = np.linalg.norm(measured - measured.mean())
        error = np.linalg.norm(np.asarray(self.predicted) - measured)
        return {name: float(100 * (1 - error / spread))}

    @property
    def whiteness(self) -> dict[str, Whiteness]:
        """Of every sensor's error, or of what an autoregression of the noise leaves of it."""
        if not isinstance(self.data, Experiment):
            return {}
        return {
            s: whiteness(_innovations(_apart_from_rounding(y, self.predicted[s]), self.ar.get(s)))
            for s, y in self.data.sensors.items()
        }


def _innovations(error: np.ndarray, ar: np.ndarray | None) -> np.ndarray:
    if ar is None or len(error) <= len(ar):
        return error
    return np.convolve(error, np.concatenate([[1.0], -ar]), "valid")


def _apart_from_rounding(y: np.ndarray, predicted: np.ndarray):
    error = y - predicted
    return error if np.nanstd(error) > 1e-8 * np.nanstd(y) else np.zeros(0)


@dataclasses.dataclass(frozen=True, eq=False)
class Identification:
    """Result of :func:`flexjax.identify`; ``print`` shows the table.

    ``names``, ``units``, ``start``, ``values``: the free parameters. ``covariance``: from the
    Gauss-Newton Fisher information; ``robust_covariance``: the same for residuals that are not
    white. ``noise``: standard deviation of every sensor, given or estimated. ``model``,
    ``robot``: with the estimates. ``training``, ``validation``: data beside predictions.
    ``singular_values``: of the readings w.r.t. relative changes, in units of the noise. ``ar``:
    coefficients a of each sensor's noise r_t = a_1 r_(t-1) + ... + e_t, empty if taken as white.
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
    sizes: np.ndarray  # the change that counts as a relative change of one
    loss: float
    history: list[float]
    status: str
    evaluations: float  # of whole recordings
    seconds: float
    samples: int
    noise_known: bool
    starts: np.ndarray | None  # final losses of a multi-start, sorted
    problem: Any
    measured: Any
    z: np.ndarray
    z_covariance: np.ndarray
    z_robust: np.ndarray
    ar: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    freedom: np.ndarray | None = None  # of the variance of each estimate, with ``ar``

    @property
    def robot(self):
        return self.model.robot

    @property
    def _own(self) -> list[str]:
        """Names of the parameters, without the unknowns of measured motions."""
        return [n for n in self.names if not n.startswith(PREFIX)]

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
        """Confidence intervals (p, 2), computed in the transformed parameters.

        Arguments:
            level: confidence, such as 0.95.
            robust: allow for residuals that are not white.

        Returns:
            Lower and upper ends, inside the bounds.
        """
        if not 0 < level < 1:
            raise ValueError(f"level: {level}; expected a share such as 0.95.")
        free = np.inf if self.noise_known else max(1, self.samples - len(self._own))
        if self.freedom is not None and not robust:
            free = np.minimum(free, self.freedom)
        q = stdtrit(free, 0.5 + level / 2)
        half = q * np.sqrt(np.diag(self.z_robust if robust else self.z_covariance))
        values = self.problem.parameters.values
        with np.errstate(over="ignore"):
            ends = [np.asarray(values(jnp.asarray(self.z + d))) for d in (-half, half)]
        return np.stack(ends, axis=1)

    def bootstrap(
        self, n: int = 100, *, seed: int = 0, level: float = 0.95, max_steps: int = 30
    ) -> Bootstrap:
        """Fit ``n`` recordings simulated at the estimates with fresh noise (under vmap).

        Arguments:
            n: number of recordings.
            seed: of the noise.
            level: confidence of the intervals.
            max_steps: limit of each search.

        Returns:
            The scatter of the estimates, and how often the intervals cover the true parameters.
        """
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

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the robot with the estimates, and their uncertainty as comments.

        Arguments:
            path: path of a robot file; :func:`flexjax.load_robot` reads it.

        Returns:
            The path.
        """
        fitted = f"{', '.join(c.data.name for c in self.training)}; status: {self.status}"
        lines = ["Estimates of fx.identify, with standard errors and 95 % intervals", fitted]
        columns = (self.values, self.standard_errors, self.intervals())
        for n, u, v, se, (lo, hi) in zip(self.names, self.units, *columns, strict=True):
            if n in self._own:
                lines.append(f"{n} = {v:.8g} +- {se:.2g} {u}, in [{lo:.6g}, {hi:.6g}]")
        if not self.white:
            lines.append("The residuals are not white: the intervals are too narrow.")
        comment = "".join(f"# {' '.join(line.split())}\n" for line in lines)
        content = (comment + robot_to_toml(self.robot)).encode("utf-8")
        return write_whole(path, lambda part: part.write_bytes(content))

    @property
    def unseen(self) -> list[str]:
        """Combinations of parameters that the data do not determine, as sentences."""
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
            if len(parts) == 1:
                out.append(f"{self.names[parts[0]]} alone ({size})")
            else:
                out.append(f"changes in the ratio {', '.join(words)} ({size})")
        return out

    @property
    def undetermined(self) -> list[str]:
        """Parameters whose own standard error exceeds half their size."""
        return [
            n
            for n, se, size in zip(self.names, self.standard_errors, self.sizes, strict=True)
            if n in self._own and not se < UNSEEN * size
        ]

    @property
    def white(self) -> bool:
        """Whether all training residuals are white, so that the model misses nothing."""
        return all(w.white for c in self.training for w in c.whiteness.values())

    def __str__(self) -> str:
        width = max(len(n) for n in self._own)
        formulation = type(self.model.formulation).__name__
        lines = [
            f"identification of {self.robot.name} ({formulation}): {self.status} after "
            f"{self.evaluations:.3g} evaluations in {self.seconds:.1f} s, {self.samples} samples",
            f"{'parameter':<{width}}  {'start':>11}  {'estimate':>13}  {'std. error':>10}  "
            f"{'95 % interval':>25}  unit",
        ]
        columns = (self.start, self.values, self.standard_errors, self.intervals())
        for n, u, a, v, se, (lo, hi) in zip(self.names, self.units, *columns, strict=True):
            if n.startswith(PREFIX):
                continue
            interval = f"[{lo:.6g}, {hi:.6g}]"
            lines.append(f"{n:<{width}}  {a:11.5g}  {v:13.7g}  {se:10.2g}  {interval:>25}  {u}")
        if len(self._own) < len(self.names):
            lines.append(f"and {len(self.names) - len(self._own)} values of measured motions")
        lines += self._fit_lines()
        lines += [
            f"noise of {s}: autoregression {', '.join(f'{x:.3g}' for x in a)}"
            for s, a in self.ar.items()
        ]
        lines += [f"not determined by these data: {text}" for text in self.unseen]
        if not self.white:
            lines.append(
                "residuals are not white: the model misses something, intervals are too narrow "
                "(ar=1, or intervals(robust=True), allows for it)"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        pictures = []
        for c in (*self.training, *self.validation)[:2]:
            if isinstance(c.data, Experiment):
                name, measured = next(iter(c.data.sensors.items()))
                both = {f"{name}, measured": measured, "predicted": np.asarray(c.predicted[name])}
                pictures.append(curves(c.data.ts, both, "time [s]", f"{c.data.name}"))
        steps = np.arange(len(self.history))
        found = {"loss": np.asarray(self.history, float)}
        return block(str(self), *pictures, curves(steps, found, "iteration", "loss"))

    def _fit_lines(self) -> list[str]:
        lines = []
        for label, comparisons in (("fit", self.training), ("validation", self.validation)):
            for c in comparisons:
                if isinstance(c.data, Experiment):
                    text = ", ".join(f"{s} {f:.2f} %" for s, f in c.fits.items())
                else:
                    measured = c.data.shown(c.data.measured()[0])
                    if len(measured) == len(c.data.channels) <= 8:
                        values = zip(c.data.channels, c.predicted, measured, strict=True)
                        text = ", ".join(f"{n} {p:.5g} (measured {m:.5g})" for n, p, m in values)
                    else:
                        fits = "".join(f", fit {f:.2f} %" for f in c.fits.values())
                        text = f"{len(measured)} values{fits}"
                lines.append(f"{label}, {c.data.name}: {text}")
        return lines
