"""Design of experiments: drives whose readings have much information, inside limits."""

import csv
import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from flexjax._compile import filter_jit
from flexjax._files import write_whole
from flexjax._html import bars, block
from flexjax._types import NumbersLike
from flexjax.drive import Drive, Effort, Motion
from flexjax.formulation import AbstractModel
from flexjax.robot import Robot
from flexjax.robot._units import effort_unit
from flexjax.study.free import FreeLike, Parameters, as_free, listed, parameters
from flexjax.study.identify.fit._problem import (
    Measured,
    Problem,
    build,
    measure_data,
    residuals_and_jacobian,
)
from flexjax.study.identify.records._experiment import Experiment

# Norm of the readings that stands for their largest; of 1000 equal ones it is 5 % too large.
POWER = 128


class Candidate(NamedTuple):
    """A candidate drive.

    ``score``: log determinant of the information about relative changes; one more shrinks the
    volume of the confidence region to 0.61. ``errors``: relative standard errors. ``use``: largest
    reading over its limit, above one outside the limits; zero without limits.
    """

    name: str
    drive: Drive
    score: float
    errors: np.ndarray
    use: float = 0.0


class Design(NamedTuple):
    """Candidates, best first; those outside the limits are last."""

    names: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    robot: Robot
    ts: np.ndarray

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    def __str__(self) -> str:
        width = max(len(c.name) for c in self.candidates)
        head = "expected relative standard errors: " + ", ".join(self.names)
        rows = [
            f"{c.name:<{width}}  score {c.score:8.3f}   "
            + "  ".join(f"{e:.2e}" for e in c.errors)
            + (f"   {100 * c.use:.0f} % of the limits" if c.use else "")
            for c in self.candidates
        ]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        return block(str(self), bars({c.name: c.score for c in self.candidates}, "score"))

    def to_csv(self, path: str | os.PathLike[str], rate: float = 1000.0) -> Path:
        """Write the motions and efforts of the best candidate as a table for the rig.

        The columns have the names by which :meth:`Experiment.read` takes them as inputs. A rig that
        adds its readings makes the file a recording.

        Arguments:
            path: the file.
            rate: sampling rate [Hz].

        Returns:
            The path.
        """
        return write_inputs(path, self.best.drive, self.robot, self.ts, rate)


def design(
    model: AbstractModel,
    free: FreeLike,
    candidates: Mapping[str, Drive],
    ts: NumbersLike,
    *,
    noise: Mapping[str, float],
    limits: Mapping[str, float] | None = None,
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
        limits: largest size of the readings of sensors, recorded or not: of an encoder for the way
            of a joint, of a torque sensor, of a strain gauge.
        tune: paths in the drive ("joints.shoulder.signal.amplitude", or :class:`Free` with
            bounds) that are optimised for the best candidate, which joins the list as
            "<name>, tuned". The limits, if any, are constraints.
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
    ts, limits = np.asarray(ts, float), dict(limits or {})
    for name, limit in limits.items():
        if not limit > 0:
            raise ValueError(f"limits.{name}: {limit}; expected a positive number.")
    problems = {
        name: _problem(model, free, drive, ts, noise, limits, dt)
        for name, drive in candidates.items()
    }
    rows = [_row(name, candidates[name], *p, limits) for name, p in problems.items()]
    rows.sort(key=_rank)
    if tune is not None:
        best = rows[0]
        rows.append(_tuned(best, *problems[best.name], limits, tune, steps))
        rows.sort(key=_rank)
    names = next(iter(problems.values()))[0].parameters.names
    return Design(names, tuple(rows), model.robot, ts)


def _rank(row: Candidate) -> tuple[bool, float]:
    return row.use > 1 + 1e-6, -row.score


def _problem(
    model: AbstractModel,
    free: FreeLike,
    drive: Drive,
    ts: np.ndarray,
    noise: Mapping[str, float],
    limits: Mapping[str, float],
    dt: float,
):
    watched = {s: 1.0 for s in limits if s not in noise}
    known = {**noise, **watched}
    blank = Experiment(ts, {s: 0 * ts for s in known}, drive=drive, noise=known)
    problem = build(model, [blank], free, dt=dt)
    measured = measure_data(problem, [blank])[0]
    # A sensor that is only limited gives no information.
    recorded = jnp.asarray([s not in watched for s in problem.groups[0].sensors])
    weights = (measured.weights[0] * recorded[None, None],)
    return problem, eqx.tree_at(lambda m: m.weights, measured, weights)


def _information(problem: Problem, measured: Measured, drive: Drive | None = None):
    """Fisher information about relative changes of the free parameters, and the readings (T, S)."""
    if drive is not None:
        problem = eqx.tree_at(lambda p: p.groups[0].drives, problem, (drive,))
    par = problem.parameters
    z = jnp.zeros(par.size, par.start.dtype)
    _, J, ((run,), _) = residuals_and_jacobian(z, problem, measured)
    slope = jnp.diag(jax.jacfwd(par.values)(z))
    size = jnp.where(par.start != 0, jnp.abs(par.start), par.scale)
    J = J[: J.shape[0] - par.size] * (size / slope)[None, :]  # without the rows of priors
    return J.T @ J, run[0]


def _sizes(problem: Problem, limits: Mapping[str, float]) -> np.ndarray:
    """The limit of every sensor of the problem; infinite without one."""
    return np.array([limits.get(s, np.inf) for s in problem.groups[0].sensors])


def _row(
    name: str, drive: Drive, problem: Problem, measured: Measured, limits: Mapping[str, float]
) -> Candidate:
    info, run = (np.asarray(x) for x in _information(problem, measured))
    use = float(np.max(np.abs(run) / _sizes(problem, limits)))
    sign, score = np.linalg.slogdet(info)
    if not sign > 0:
        return Candidate(name, drive, -np.inf, np.full(len(info), np.inf), use)
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(np.linalg.pinv(info, hermitian=True)))
    return Candidate(name, drive, float(score), errors, use)


def _tuned(
    best: Candidate,
    problem: Problem,
    measured: Measured,
    limits: Mapping[str, float],
    tune: FreeLike,
    steps: int,
) -> Candidate:
    from scipy.optimize import minimize

    tuning = _tuning(tune, problem, best.drive)
    base, sizes = problem.groups[0].drives[0], _sizes(problem, limits)
    limited = np.flatnonzero(np.isfinite(sizes))

    @filter_jit
    def judged(z, problem, measured):
        """Minus the score, and of every limited sensor the norm of its readings over the limit."""
        drive = tuning.place(base, "drive", tuning.values(z))
        info, run = _information(problem, measured, drive)
        peaks = jnp.sum(jnp.abs(run[:, limited] / sizes[None, limited]) ** POWER, axis=0)
        worth = -jnp.linalg.slogdet(info)[1]
        return jnp.concatenate([worth[None], (1e-30 + peaks) ** (1 / POWER)])

    # Few parameters of the drive: forward mode over the forward mode of the Jacobian.
    slope = filter_jit(lambda z, p, m: (judged(z, p, m), jax.jacfwd(judged)(z, p, m)))

    @functools.lru_cache(2)  # scipy asks for the score and for the constraints at the same point
    def at(key: bytes):
        values, slopes = slope(jnp.asarray(np.frombuffer(key)), problem, measured)
        return np.asarray(values, float), np.asarray(slopes, float)

    of = lambda x: at(np.ascontiguousarray(x, float).tobytes())
    inside = {
        "type": "ineq",
        "fun": lambda x: 1 - of(x)[0][1:],
        "jac": lambda x: -of(x)[1][1:],
    }
    method = {"method": "SLSQP", "constraints": [inside]} if len(limited) else {"method": "BFGS"}
    found = minimize(
        lambda x: (of(x)[0][0], of(x)[1][0]),
        np.zeros(tuning.size),
        jac=True,
        options={"maxiter": steps},
        **method,
    )
    values = tuning.values(jnp.asarray(found.x))
    changed = eqx.tree_at(
        lambda p: p.groups[0].drives, problem, (tuning.place(base, "drive", values),)
    )
    drive = tuning.place(best.drive, "drive", values)
    return _row(f"{best.name}, tuned", drive, changed, measured, limits)


def _tuning(tune: FreeLike, problem: Problem, drive: Drive) -> Parameters:
    items = [as_free(item) for item in listed(tune)]
    items = [
        dataclasses.replace(
            i, path=i.path if str(i.path).startswith("drive.") else f"drive.{i.path}"
        )
        for i in items
    ]
    return parameters(items, problem.model.robot, [drive], [], ["design"], {})


def write_inputs(
    path: str | os.PathLike[str], drive: Drive, robot: Robot, ts: np.ndarray, rate: float
) -> Path:
    """Motions and efforts of a drive as CSV with the columns of :meth:`Experiment.read`."""
    if not (np.isfinite(rate) and rate > 0):
        raise ValueError(f"rate: {rate}; expected a positive sampling rate in Hz, e.g. 1000.")
    count = int(np.ceil((ts[-1] - ts[0]) * rate - 1e-9))
    grid = ts[0] + np.arange(count + 1) / rate
    columns = {"time [s]": grid}
    for joint in robot.tree_joints:
        act = drive.joints.get(joint.name)
        if not isinstance(act, Motion | Effort) or joint.dofs != 1:
            continue
        role, force = "motion" if isinstance(act, Motion) else "effort", effort_unit(joint)
        unit = force if role == "effort" else "rad" if force == "N m" else "m"
        value = jax.vmap(lambda t, s=act.signal: s.evaluate(t)[0])(jnp.asarray(grid))
        columns[f"{role}.{joint.name} [{unit}]"] = np.asarray(value).reshape(-1)
    if len(columns) == 1:
        raise ValueError(
            "to_csv: no joint follows a Motion or an Effort; expected one, whose course the rig "
            "can repeat. A controller has its own reference."
        )

    def write(part: Path) -> None:
        with open(part, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(columns)
            values = (column.tolist() for column in columns.values())
            rows.writerows([repr(x) for x in row] for row in zip(*values, strict=True))

    return write_whole(Path(path), write)
