"""Design of experiments: rank candidate drives by the information in their readings."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from flexjax._compile import filter_jit
from flexjax._html import bars, block
from flexjax._types import NumbersLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.study.free import FreeLike, Parameters, as_free, listed, parameters
from flexjax.study.identify.fit._problem import (
    Measured,
    Problem,
    build,
    measure_data,
    residuals_and_jacobian,
)
from flexjax.study.identify.records._experiment import Experiment


class Candidate(NamedTuple):
    """A candidate drive.

    ``score``: log determinant of the information about relative changes; one more shrinks the
    volume of the confidence region to 0.61. ``errors``: relative standard errors.
    """

    name: str
    drive: Drive
    score: float
    errors: np.ndarray


class Design(NamedTuple):
    """Candidates, best first."""

    names: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    def __str__(self) -> str:
        width = max(len(c.name) for c in self.candidates)
        head = "expected relative standard errors: " + ", ".join(self.names)
        rows = [
            f"{c.name:<{width}}  score {c.score:8.3f}   " + "  ".join(f"{e:.2e}" for e in c.errors)
            for c in self.candidates
        ]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        return block(str(self), bars({c.name: c.score for c in self.candidates}, "score"))


def design(
    model: AbstractModel,
    free: FreeLike,
    candidates: Mapping[str, Drive],
    ts: NumbersLike,
    *,
    noise: Mapping[str, float],
    tune: FreeLike | None = None,
    dt: float = 1e-3,
    steps: int = 10,
) -> Design:
    """Rank candidate drives by their information about the free parameters (D-optimality).

    Arguments:
        model: the information is evaluated at the parameters of its robot.
        free: free parameters, as in :func:`identify`.
        candidates: drives by name.
        ts: times of the readings [s].
        noise: standard deviation of each sensor that will be recorded.
        tune: paths in the drive ("joints.shoulder.signal.amplitude", or :class:`Free` with
            bounds) that are optimised for the best candidate, which joins the list as
            "<name>, tuned".
        dt: largest step of the simulation [s].
        steps: iterations of the optimisation.

    Returns:
        The candidates, best first, with their expected standard errors.

    Raises:
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("two-link"))
    >>> efforts = {"slow": fx.Effort(fx.sine(0.2, 1.0)), "fast": fx.Effort(fx.sine(0.2, 2.0))}
    >>> drives = {name: fx.Drive({"shoulder": effort}) for name, effort in efforts.items()}
    >>> noise = {"shoulder-angle": 1e-3}
    >>> ts, free = [0.0, 0.1, 0.2], "payloads.gripper.mass"
    >>> len(fx.design(model, free, drives, ts, noise=noise, dt=0.05).candidates)
    2
    """
    if not candidates:
        raise ValueError("candidates: none; expected {name: fx.Drive(...)}.")
    if not noise:
        raise ValueError(
            "noise: none; expected {sensor: standard deviation} of the sensors that will be "
            "recorded."
        )
    ts = np.asarray(ts, float)
    problems = {
        name: _problem(model, free, drive, ts, noise, dt) for name, drive in candidates.items()
    }
    rows = [_row(name, candidates[name], *p) for name, p in problems.items()]
    rows.sort(key=lambda c: -c.score)
    if tune is not None:
        best = rows[0]
        rows.append(_tuned(best, *problems[best.name], tune, steps))
        rows.sort(key=lambda c: -c.score)
    return Design(next(iter(problems.values()))[0].parameters.names, tuple(rows))


def _problem(
    model: AbstractModel,
    free: FreeLike,
    drive: Drive,
    ts: np.ndarray,
    noise: Mapping[str, float],
    dt: float,
):
    blank = Experiment(ts, {s: 0 * ts for s in noise}, drive=drive, noise=dict(noise))
    problem = build(model, [blank], free, dt=dt)
    return problem, measure_data(problem, [blank])[0]


def _information(problem: Problem, measured: Measured, drive: Drive | None = None):
    """Fisher information about relative changes of the free parameters."""
    if drive is not None:
        problem = eqx.tree_at(lambda p: p.groups[0].drives, problem, (drive,))
    par = problem.parameters
    z = jnp.zeros(par.size, par.start.dtype)
    _, J, _ = residuals_and_jacobian(z, problem, measured)
    slope = jnp.diag(jax.jacfwd(par.values)(z))
    size = jnp.where(par.start != 0, jnp.abs(par.start), par.scale)
    J = J[: J.shape[0] - par.size] * (size / slope)[None, :]  # without the rows of priors
    return J.T @ J


def _row(name: str, drive: Drive, problem: Problem, measured: Measured) -> Candidate:
    info = np.asarray(_information(problem, measured))
    sign, score = np.linalg.slogdet(info)
    if not sign > 0:
        return Candidate(name, drive, -np.inf, np.full(len(info), np.inf))
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(np.linalg.pinv(info, hermitian=True)))
    return Candidate(name, drive, float(score), errors)


def _tuned(
    best: Candidate, problem: Problem, measured: Measured, tune: FreeLike, steps: int
) -> Candidate:
    from scipy.optimize import minimize

    tuning = _tuning(tune, problem, best.drive)
    base = problem.groups[0].drives[0]

    @filter_jit
    def score(z, problem, measured):
        drive = tuning.place(base, "drive", tuning.values(z))
        return -jnp.linalg.slogdet(_information(problem, measured, drive))[1]

    # Few parameters of the drive: forward mode over the forward mode of the Jacobian.
    slope = filter_jit(lambda z, p, m: (score(z, p, m), jax.jacfwd(score)(z, p, m)))

    def fun(x):
        value, gradient = slope(jnp.asarray(x), problem, measured)
        return float(value), np.asarray(gradient, float)

    found = minimize(
        fun, np.zeros(tuning.size), jac=True, method="BFGS", options={"maxiter": steps}
    )
    values = tuning.values(jnp.asarray(found.x))
    changed = eqx.tree_at(
        lambda p: p.groups[0].drives, problem, (tuning.place(base, "drive", values),)
    )
    drive = tuning.place(best.drive, "drive", values)
    return _row(f"{best.name}, tuned", drive, changed, measured)


def _tuning(tune: FreeLike, problem: Problem, drive: Drive) -> Parameters:
    items = [as_free(item) for item in listed(tune)]
    items = [
        dataclasses.replace(
            i, path=i.path if str(i.path).startswith("drive.") else f"drive.{i.path}"
        )
        for i in items
    ]
    return parameters(items, problem.model.robot, [drive], [], ["design"], {})
