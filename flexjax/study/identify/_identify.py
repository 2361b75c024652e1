"""identify: estimate robot parameters from measured data, with confidence intervals."""

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._phases import phases
from flexjax.formulation import AbstractModel
from flexjax.study.free import FreeLike, Parameters
from flexjax.study.identify._result import Comparison, Identification
from flexjax.study.identify.fit import _fit
from flexjax.study.identify.fit._batch import solve_batch
from flexjax.study.identify.fit._problem import Measured, Problem, build, measure_data
from flexjax.study.identify.fit._unknown_start import ROOTS
from flexjax.study.identify.fit._validate import predict_validation
from flexjax.study.identify.noise._reml import NoiseModel
from flexjax.study.identify.noise._unknown_motion import of_motions
from flexjax.study.identify.records._data import Data
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.uncertainty._ar import (
    noise_model,
    noise_of,
    refuse_ar,
    same_noise,
    white,
    with_noise,
)
from flexjax.study.identify.uncertainty._statistics import (
    effective_size,
    noise_factors,
    precision,
    robust_covariance,
    row_scale,
    rows_of,
)

KINDS = "fx.Experiment, fx.Modal, fx.ModalTrack or fx.FrequencyResponse"
COLOURS = 6  # rounds that estimate autoregressions of the noise from the residuals


def identify(
    model: AbstractModel,
    experiments: Data | Sequence[Data],
    free: FreeLike,
    *,
    validation: Data | Sequence[Data] = (),
    dt: float = 1e-3,
    solver: diffrax.AbstractSolver | None = None,
    band: tuple[float, float] | None = None,
    method: Any = "lm",
    max_steps: int = 50,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    starts: int = 1,
    spread: float = 0.3,
    batch: int | None = None,
    reweight: int = 2,
    ar: int = 0,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Identification:
    """Estimate parameters of a robot (its drive, sensors, start) from measured data.

    Arguments:
        model: the search starts from the parameters of its robot.
        experiments: :class:`Experiment` (time series), :class:`Modal` (natural frequencies),
            :class:`ModalTrack` (over time) or :class:`FrequencyResponse`; one or several,
            of any kind.
        free: paths, :class:`Free`, or ``{path: (lower, upper)}``.
        validation: data that are predicted but not fitted.
        dt: largest step of the simulation [s].
        solver: time integration (default: the model's own).
        band: (low, high) [Hz] compares spectra instead of samples.
        method: "lm" (Levenberg-Marquardt), or an optax optimiser such as ``optax.adam(1e-2)``
            for very many parameters.
        max_steps, rtol, atol: limits of the search.
        starts: number of searches that run at once (under vmap); the best continues.
        spread: relative standard deviation of their starts.
        batch: experiments drawn at random in each step of an optax optimiser.
        reweight: rounds that estimate the noise of each sensor, if there are several and
            neither ``Experiment.noise`` nor the robot's ``noise`` gives it.
        ar: order of an autoregression of each sensor's noise, estimated with the parameters by
            restricted maximum likelihood. Then the intervals hold where the noise is not white. A
            model error that resembles the effect of a parameter remains one.
        seed: of all random draws.
        progress: show a progress bar.
        checkpoint: a file name ending in .npz that stores the best estimate so far; a later
            call with the same name continues from it.

    Returns:
        Estimates, their covariance, fits and predictions. An interruption (Ctrl-C) returns the
        best estimate so far.

    Raises:
        ValueError: data, parameters or drive do not fit the robot; all faults are listed.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=10).bind(fx.load_robot("li-zhang-single-link"))
    >>> result = fx.identify(model, fx.Modal([6.05]), "links.link.material.E")
    >>> bool(66e9 < result.values[0] < 70e9)
    True
    """
    begin = time.perf_counter()
    data, checks = _listed("experiments", experiments), _listed("validation", validation)
    if not data:
        raise ValueError(f"experiments: none; expected {KINDS}.")
    problem, checked = _problems(model, data, checks, free, dt, solver)
    measured, known = measure_data(problem, data, band=band)
    if ar:
        refuse_ar(ar, data, band, method)
        measured = white(problem, measured, ar)
    if not np.any(rows_of(problem, measured).channel >= 0):
        raise ValueError(
            "experiments: no measured sample is left; expected at least one reading "
            "that is not NaN."
        )
    z0, history = _fit.resume(checkpoint, problem) or (np.zeros(problem.parameters.size), [])
    finals = None
    if starts > 1:
        z0, finals = _multi_start(problem, measured, starts, spread, seed, max_steps)
    search = _searcher(method, max_steps, rtol, atol, batch, seed, checkpoint)
    with _bar(progress, max_steps, model.robot.name) as bar:
        run = functools.partial(search, problem, bar=bar)
        fit = run(measured, z0, history=history, grow=starts == 1 and not history)
        _refuse_failed_starts(problem, data, fit)
        measured, fit = _reweighted(run, problem, data, measured, known, fit, band, reweight)
        noise = None
        for _ in range(COLOURS if ar else 0):
            noise = noise_of(problem, measured, fit.z, ar, known)
            new = with_noise(problem, measured, noise)
            if same_noise(measured, new):
                break
            measured = new
            again = run(measured, fit.z, history=fit.history, grow=False)
            fit = again._replace(evaluations=fit.evaluations + again.evaluations)
        if bar is not None:
            bar.finish(fit.status)
    return _finish(
        model, data, checks, problem, checked, measured, known, fit, finals, noise, begin
    )


def _refuse_failed_starts(problem: Problem, data: list[Data], fit: _fit.Fit) -> None:
    """Without its first reading an experiment gives no information: the search stands still."""
    names = [d.name for d in data if isinstance(d, Experiment)]
    for group, run in zip(problem.groups, fit.predicted[0], strict=True):
        for row, k in enumerate(group.members):
            if not np.all(np.isfinite(np.asarray(run[row, 0]))):
                problem.refuse_failed_start(jnp.asarray(fit.z), group, row, names[k])


def _problems(
    model: AbstractModel,
    data: list[Data],
    checks: list[Data],
    free: FreeLike,
    dt: float,
    solver: diffrax.AbstractSolver | None,
) -> tuple[Problem, Problem | None]:
    """The problem of the data, and that of the validation data, if there are any."""
    problem = build(model, data, free, dt=dt, solver=solver)
    if not checks:
        return problem, None
    targets = (t for row in problem.parameters.targets for t in row)
    if any(t.root == "start" and t.steps[0] not in ROOTS for t in targets):
        raise ValueError(
            "validation: the starts of the experiments are free, so validation data have none; "
            "leave validation out, or give the experiments start = fx.UnknownStart(...)."
        )
    return problem, build(model, checks, free, dt=dt, solver=solver, like=problem.parameters)


def _reweighted(
    search: Callable[..., Any],
    problem: Problem,
    data: list[Data],
    measured: Measured,
    known: dict[str, bool],
    fit: Any,
    band: tuple[float, float] | None,
    rounds: int,
):
    """Data and fit after rounds that weight each sensor by the noise that the last fit shows."""
    rows = rows_of(problem, measured)
    sizes = {s: _weight_size(problem, measured, s) for s in rows.names}
    noise = dict.fromkeys(rows.names, 1.0)
    unknown = sum(not k for k in known.values())
    # Measured motions have a known noise, beside which that of the sensors has a weight.
    relative = unknown > 1 or (unknown == 1 and of_motions(problem.parameters).any())
    for _ in range(rounds if relative and fit.status == "converged" else 0):
        factors = noise_factors(fit.residual, rows, effective_size(fit.jacobian, rows))
        # Rounding is no noise.
        new = {s: noise[s] * (1.0 if known[s] else max(factors[s], 1e-7)) for s in rows.names}
        if all(f < 1e-6 for f in factors.values()) or all(
            abs(new[s] / noise[s] - 1) < 0.02 for s in rows.names
        ):
            break
        noise = new
        colour = measured.colour
        measured, _ = measure_data(
            problem, data, noise={s: noise[s] * sizes[s] for s in noise}, band=band
        )
        measured = dataclasses.replace(measured, colour=colour)
        again = search(measured, fit.z, history=fit.history, grow=False)
        fit = again._replace(evaluations=fit.evaluations + again.evaluations)
    return measured, fit


def _listed(field: str, data: Data | Sequence[Data]) -> list:
    data = [data] if isinstance(data, Data) else list(data)
    for item in data:
        if not isinstance(item, Data):
            raise ValueError(f"{field}: {type(item).__name__}; expected {KINDS}.")
    return data


def _searcher(
    method: Any,
    max_steps: int,
    rtol: float,
    atol: float,
    batch: int | None,
    seed: int,
    checkpoint: str | os.PathLike[str] | None,
):
    if method == "lm":
        if batch is not None:
            raise ValueError(
                "batch: needs method=optax...; Levenberg-Marquardt takes all data at once."
            )
        return functools.partial(
            _fit.levenberg_marquardt,
            max_steps=max_steps,
            rtol=rtol,
            atol=atol,
            checkpoint=checkpoint,
        )
    if not (hasattr(method, "init") and hasattr(method, "update")):
        raise ValueError(
            f"method: {method!r}; expected 'lm' or an optax optimiser, e.g. optax.adam(1e-2)."
        )
    return functools.partial(
        _fit.gradient_descent,
        optimiser=method,
        max_steps=max_steps,
        batch=batch,
        key=jax.random.key(seed),
        checkpoint=checkpoint,
    )


def _multi_start(
    problem: Problem, measured: Measured, starts: int, spread: float, seed: int, max_steps: int
):
    z0 = _fit.spread_starts(problem, starts, spread, jax.random.key(seed))
    zs, r, _ = solve_batch(problem, measured, z0, min(max_steps, 30))
    losses = 0.5 * np.sum(np.asarray(r) ** 2, axis=1)
    losses = np.where(np.isfinite(losses), losses, np.inf)
    return np.asarray(zs)[int(np.argmin(losses))], np.sort(losses)


@contextlib.contextmanager
def _bar(shown: bool, total: int, name: str) -> Iterator["_Bar | None"]:
    """Show the loss on a progress bar, or nothing."""
    if not shown:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=f"identify {name}: tracing", unit="step") as bar:
        with phases(lambda phase: bar.set_description(f"identify {name}: {phase}")):
            yield _Bar(bar)


class _Bar:
    def __init__(self, bar: Any):
        self.bar = bar

    def __call__(self, n: int, loss: float) -> None:
        if self.bar.n >= self.bar.total:  # segments, and fits with other weights
            self.bar.total = self.bar.n + 1
        self.bar.update(1)
        self.bar.set_postfix_str(f"loss {loss:.6g}")

    def finish(self, status: str) -> None:
        """A search that converged before ``max_steps`` is complete."""
        if status == "converged":
            self.bar.total = self.bar.n
        self.bar.set_postfix_str(f"{self.bar.postfix}, {status}")
        self.bar.refresh()


def _weight_size(problem: Problem, measured: Measured, channel: str) -> float:
    """Reciprocal of the present weight of a channel."""
    for group, w in zip(problem.groups, measured.weights, strict=True):
        if channel in group.sensors:
            column = np.asarray(w)[..., group.sensors.index(channel)]
            if column.max() > 0:
                return float(1 / column.max())
    return 1.0


@filter_jit
def _values_and_slopes(par: Parameters, z: Float[Array, " p"]):
    """Parameters in their units, and the derivative of each w.r.t. its own z."""
    return par.values(z), jnp.diagonal(jax.jacfwd(par.values)(z))


def _finish(
    model: AbstractModel,
    data: list[Data],
    checks: list[Data],
    problem: Problem,
    checked: Problem | None,
    measured: Measured,
    known: dict[str, bool],
    fit: _fit.Fit,
    finals: np.ndarray | None,
    colour: NoiseModel | None,
    begin: float,
) -> Identification:
    par = problem.parameters
    z = jnp.asarray(fit.z)
    r, J = fit.residual, fit.jacobian
    rows = rows_of(problem, measured)
    factors = noise_factors(r, rows, effective_size(J, rows))
    noise = {
        s: _weight_size(problem, measured, s) * (1.0 if known[s] else factors[s])
        for s in rows.names
    }
    # Divide by the noise, also where it was estimated.
    scale = row_scale(rows, {s: 1.0 if known[s] else factors[s] for s in rows.names})
    r, J = r * scale, J * scale[:, None]
    J[rows.channel == -2] = 0.0
    values, slope = (np.asarray(x) for x in _values_and_slopes(par, z))
    sizes = np.where(np.abs(values) > 0, np.abs(values), np.asarray(par.scale))
    known_rows = precision(J, rows.channel >= 0, sizes / slope, of_motions(par))
    robust = robust_covariance(J, r, rows, known_rows.covariance)
    fitted = model.rebind(par.place(model.robot, "robot", jnp.asarray(values)))
    outer = np.outer(slope, slope)
    autoregressions = noise_model(problem, measured)
    validated = ()
    if checked is not None:
        predicted = predict_validation(checked, checks, problem, measured, fit.z)
        validated = _compare(checked, checks, predicted)
    return Identification(
        names=par.names,
        units=par.units,
        start=np.asarray(par.start),
        values=values,
        covariance=known_rows.covariance * outer,
        robust_covariance=robust * outer,
        noise=noise,
        model=fitted,
        training=_compare(problem, data, fit.predicted, autoregressions),
        validation=validated,
        ar=autoregressions,
        singular_values=known_rows.singular,
        directions=known_rows.directions,
        sizes=sizes,
        loss=fit.loss,
        history=fit.history,
        status=fit.status,
        evaluations=fit.evaluations,
        seconds=time.perf_counter() - begin,
        samples=int((rows.channel >= 0).sum()),
        freedom=None if colour is None else colour.freedom,
        noise_known=all(known.values()),
        starts=finals,
        problem=problem,
        measured=measured,
        z=np.asarray(fit.z),
        z_covariance=known_rows.covariance,
        z_robust=robust,
    )


def _compare(
    problem: Problem,
    data: list[Data],
    predicted: tuple[Sequence[Array], Sequence[Array]],
    ar: dict[str, np.ndarray] | None = None,
) -> tuple[Comparison, ...]:
    runs, others = predicted
    experiments = [d for d in data if isinstance(d, Experiment)]
    found: dict[int, Comparison] = {}
    for group, run in zip(problem.groups, runs, strict=True):
        for row, k in enumerate(group.members):
            found[id(experiments[k])] = Comparison(
                experiments[k],
                {s: np.asarray(run[row, :, c]) for c, s in enumerate(group.sensors)},
                ar or {},
            )
    for d, prediction in zip(problem.others, others, strict=True):
        found[id(d)] = Comparison(d, d.shown(prediction))
    return tuple(found[id(d)] for d in data)
