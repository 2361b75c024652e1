"""The least-squares problem: from the vector of free parameters to weighted residuals."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._results import EquilibriumError, SimulationError
from flexjax._types import ScalarLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.robot import Robot
from flexjax.simulate import equilibrium, simulate
from flexjax.study.free import FreeLike, Parameters, as_free, listed, parameters
from flexjax.study.identify.fit._readings import readings, stations_for
from flexjax.study.identify.fit._unknown_start import (
    FreeStart,
    free_start,
    of_recordings,
    start_rows,
)
from flexjax.study.identify.noise._colour import Colour
from flexjax.study.identify.noise._unknown_motion import (
    motion_rows,
    unstretched,
    with_unknown_motions,
)
from flexjax.study.identify.records._data import Data
from flexjax.study.identify.records._experiment import Experiment

FAILED = 1e6  # residual of a sample that the simulation did not reach

# Noise relative to the readings until the first fit has estimated it; limits the first steps.
ASSUMED = 0.01


class Group(eqx.Module):
    """Experiments of one shape, run together under vmap."""

    ts: Float[Array, "E T"]
    drives: tuple[Drive, ...]
    starts: tuple[Start | FreeStart, ...]
    members: tuple[int, ...] = eqx.field(static=True)
    sensors: tuple[str, ...] = eqx.field(static=True)
    currents: tuple[str, ...] = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    rest: bool = eqx.field(static=True)

    def reached(self, share: ScalarLike):
        """Output intervals in this share of the recording."""
        return jnp.ceil(share * (self.ts.shape[1] - 1) - 1e-6).astype(jnp.int32)


class Measured(eqx.Module):
    """Measured values and weights of every group and of every other set of data.

    A weight is one over the standard deviation, and zero in gaps. ``lines``: weights of the
    lines of the DFT where spectra are compared. ``colour``: of the noise where it is not white.
    """

    values: tuple[Float[Array, "E T S"], ...]
    weights: tuple[Float[Array, "E T S"], ...]
    other_values: tuple[Float[Array, " n"], ...]
    other_weights: tuple[Float[Array, " n"], ...]
    lines: tuple[Float[Array, " k"], ...] | None
    colour: tuple[Colour, ...] | None = None


class Problem(eqx.Module):
    model: AbstractModel
    parameters: Parameters
    groups: tuple[Group, ...]
    stations: tuple[float, ...] = eqx.field(static=True)
    solver: diffrax.AbstractSolver | None
    others: tuple = eqx.field(static=True)  # Modal, FrequencyResponse

    def rebound(self, z: Float[Array, " p"]) -> AbstractModel:
        return self.model.rebind(
            self.parameters.place(self.model.robot, "robot", self.parameters.values(z))
        )

    @filter_jit
    def predict(
        self, z: Float[Array, " p"], share: ScalarLike | None = None
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Readings of every group (E, T, S), and the predictions of the other data.

        ``share``: run only the first part of every recording (forward mode only); the rest is NaN.
        """
        model = self.rebound(z)
        values = self.parameters.values(z)
        return tuple(self.readings_of(model, values, g, share) for g in self.groups), tuple(
            data.predict(model) for data in self.others
        )

    def drive_of(
        self,
        model: AbstractModel,
        values: Float[Array, " p"] | Sequence[Array],
        group: Group,
        k: int,
    ) -> Drive:
        """The drive of a group's k-th experiment with free parameters and torque constants."""
        drive = self.parameters.place(group.drives[k], "drive", values, group.members[k])
        for joint in group.currents:
            constant = model.robot.joints[model.robot.joint_index(joint)].torque_constant
            factor = lambda d, joint=joint: d.joints[joint].signal.factor
            drive = eqx.tree_at(factor, drive, constant)
        return drive

    def refuse_failed_start(self, z: Float[Array, " p"], group: Group, k: int, name: str) -> None:
        """Raise where the run of a group's k-th experiment cannot start."""
        model, values = self.rebound(z), self.parameters.values(z)
        drive = self.drive_of(model, values, group, k)
        start = self.parameters.place(group.starts[k], "start", values, group.members[k])
        ts = group.ts[k]
        if isinstance(start, FreeStart):
            start = start.state(model, drive, ts[0])
        try:
            at = equilibrium(model, drive, start, t=ts[0]) if group.rest else start
            simulate(model, drive, ts[:2], substeps=1, solver=self.solver, start=at)
        except (EquilibriumError, SimulationError) as error:
            what = "start = 'rest'" if group.rest else "the run"
            raise ValueError(f"{name}: {what} fails at the best estimate: {error}") from error

    def readings_of(
        self,
        model: AbstractModel,
        values: Float[Array, " p"] | Sequence[Array],
        group: Group,
        share: ScalarLike | None = None,
    ):
        """Readings (E, T, S) of a group's experiments."""
        intervals = None if share is None else group.reached(share)

        def run(ts, drive, start):
            return readings(
                model,
                drive,
                start,
                ts,
                sensors=group.sensors,
                substeps=group.substeps,
                stations=self.stations,
                solver=self.solver,
                rest=group.rest,
                intervals=intervals,
            )

        def inputs(k):
            start = self.parameters.place(group.starts[k], "start", values, group.members[k])
            drive = self.drive_of(model, values, group, k)
            if isinstance(start, Start):
                start = unstretched(start, drive, group.ts[k][0])
            return drive, start

        each = [inputs(k) for k in range(len(group.members))]
        if len(each) == 1:
            # Without vmap, steps after the last interval are skipped instead of masked.
            return run(group.ts[0], *each[0])[None]
        together = jax.tree_util.tree_map(lambda *x: jnp.stack(x), *each)
        return jax.vmap(run)(group.ts, *together)


def residuals(
    z: Float[Array, " p"], problem: Problem, measured: Measured, share: ScalarLike | None = None
):
    """All weighted residuals (N,), priors last, and the predictions.

    ``share``: only the first part of every recording counts.
    """
    runs, others = predicted = problem.predict(z, share)
    parts = []
    for k, (run, value, weight) in enumerate(
        zip(runs, measured.values, measured.weights, strict=True)
    ):
        if share is not None:
            weight = jnp.where(
                (jnp.arange(run.shape[1]) <= problem.groups[k].reached(share))[None, :, None],
                weight,
                0.0,
            )
        good = jnp.isfinite(run)
        error = jnp.where(good, run - value, FAILED) * jnp.where(good, weight, (weight > 0) * 1.0)
        if measured.colour is not None:
            error = measured.colour[k].whitened(error, weight)
        if measured.lines is not None:
            lines = (
                jnp.fft.rfft(error, axis=1)
                * jnp.sqrt(2.0 / error.shape[1])
                * measured.lines[k][None, :, None]
            )
            error = jnp.stack([lines.real, lines.imag])
        parts.append(error.reshape(-1))
    for prediction, value, weight in zip(
        others, measured.other_values, measured.other_weights, strict=True
    ):
        good = jnp.isfinite(prediction)
        parts.append(jnp.where(good, (prediction - value) * weight, FAILED))
    parts.append(problem.parameters.prior_residual(problem.parameters.values(z)))
    return jnp.concatenate(parts), predicted


@filter_jit
def residuals_and_jacobian(
    z: Float[Array, " p"], problem: Problem, measured: Measured, share: ScalarLike | None = None
):
    """Residuals (N,), their Jacobian (N, p) and the predictions, in forward mode.

    Compiled on its own: solvers call it in several places, and tracing the model is slow.
    """

    def both(z):
        r, predicted = residuals(z, problem, measured, share)
        return r, (r, predicted)

    jacobian, (r, predicted) = jax.jacfwd(both, has_aux=True)(z)
    return r, jacobian, predicted


class Beside(NamedTuple):
    """Residuals (N,), their Jacobian w.r.t. z and the predictions, as the model gave them."""

    residual: np.ndarray
    jacobian: np.ndarray
    predicted: tuple


class Objective(NamedTuple):
    """The problem of the solver: ``share`` of every recording, and rows ``hold`` * u for ``z0``.

    u is the relative change of a parameter with the transform "log", and the change of z of any
    other. Readings are nearly linear in a stiffness or a damping, not in its logarithm.
    """

    problem: Problem
    measured: Measured
    z0: np.ndarray
    share: float
    hold: float
    moving: np.ndarray  # one for parameters of the search, zero for those that stay

    def at(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z and its derivative (p,) w.r.t. u.

        Below half its start, a parameter decays exponentially and so stays positive.
        """
        log, kept = np.asarray(self.problem.parameters.mask("log")), np.maximum(u, -0.5)
        change = np.where(log, np.log1p(np.where(log, kept, 0.0)) + 2 * np.minimum(u + 0.5, 0.0), u)
        slope = np.where(log, 1 / (1 + np.where(log, kept, 0.0)), 1.0)
        return self.z0 + self.moving * change, self.moving * slope

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, Beside]:
        """p + 1 equivalent residuals and their Jacobian; what the model gave.

        An orthogonal transformation of all residuals: same sum of squares, same Gauss-Newton step.
        """
        z, slope = self.at(u)
        beside = evaluate(z, self.problem, self.measured, self.share)
        hold, p = self.hold + (1 - self.moving), len(u)
        held = np.concatenate([beside.residual, hold * u])
        rows = np.concatenate([beside.jacobian * slope, np.diag(hold)])
        if not (np.all(np.isfinite(held)) and np.all(np.isfinite(rows))):
            return np.full(p + 1, np.nan), np.full((p + 1, p), np.nan), beside
        q, upper = np.linalg.qr(rows)
        along = q.T @ held
        rest = np.linalg.norm(held - q @ along)
        return np.append(along, rest), np.concatenate([upper, np.zeros((1, p))]), beside


def evaluate(z: np.ndarray, problem: Problem, measured: Measured, share: float = 1.0) -> Beside:
    """Residuals, Jacobian and predictions, from the one program that a search compiles."""
    dtype = problem.parameters.start.dtype
    at, part = jnp.asarray(z, dtype), jnp.asarray(share, dtype)
    r, jacobian, predicted = residuals_and_jacobian(at, problem, measured, part)
    return Beside(np.asarray(r), np.array(jacobian), predicted)


# ---- building ----


def build(
    model: AbstractModel,
    data: Sequence[Data],
    free: FreeLike | None,
    *,
    dt: float,
    solver: diffrax.AbstractSolver | None = None,
    like: Parameters | None = None,
) -> Problem:
    """Check the data against the robot and build the problem.

    ``like``: parameters of another problem, to predict other data with; free starts are their own.
    """
    robot = model.robot
    experiments = [d for d in data if isinstance(d, Experiment)]
    others = tuple(d for d in data if not isinstance(d, Experiment))
    faults = [f"{d.name}: {fault}" for d in data for fault in d.faults(robot)]
    if faults:
        raise ValueError(
            f"the data do not fit the robot {robot.name!r}:\n"
            + "\n".join(f"  - {f}" for f in faults)
        )
    dtype = robot.gravity.dtype
    drives = [with_unknown_motions(e, e.full_drive(robot)) for e in experiments]
    for drive in drives:
        drive.check(robot)
    starts = [e.full_start(robot) for e in experiments]
    free = () if free is None else free
    given = [_with_free_starts(s, free, robot) for s in starts]
    starts = [free_start(model, e, s) for e, s in zip(experiments, given, strict=True)]
    rows = start_rows(starts, experiments)
    _refuse_two_starts(free, rows)
    if like is not None:
        like = like.among(~of_recordings(like), rows)
    else:
        sizes = {
            f"sensors.{name}.offset": _size(v) for e in experiments for name, v in e.sensors.items()
        }
        rows = [*rows, *motion_rows(experiments, drives)]
        own, labels = [e.drive for e in experiments], [e.name for e in experiments]
        like = parameters(free, robot, own, given, labels, sizes, rows)
        _refuse_recorded(like, experiments)
    cast = lambda x: jnp.asarray(x, dtype) if eqx.is_inexact_array_like(x) else x
    drives, starts = jax.tree.map(cast, (drives, starts))
    groups = _groups(experiments, drives, starts, dt, dtype)
    names = {name for e in experiments for name in e.sensors}
    stations = tuple(stations_for(robot, names, like.names).tolist())
    return Problem(model, like, groups, stations, solver, others)


def _groups(
    experiments: list[Experiment],
    drives: list[Drive],
    starts: list[Start | FreeStart],
    dt: float,
    dtype: Any,
) -> tuple[Group, ...]:
    """Experiments of one shape together."""
    keys: dict = {}
    for k, e in enumerate(experiments):
        substeps = max(1, math.ceil(float(np.max(np.diff(e.ts))) / dt * (1 - 1e-6)))
        leaves, structure = jax.tree.flatten((drives[k], starts[k]))
        static = (tuple(e.sensors), tuple(e.currents), substeps, e.start == "rest")
        shapes = tuple(x.shape for x in leaves)
        keys.setdefault((static, len(e.ts), structure, shapes), []).append(k)
    return tuple(
        Group(
            jnp.asarray(np.stack([experiments[k].ts for k in members]), dtype),
            tuple(drives[k] for k in members),
            tuple(starts[k] for k in members),
            tuple(members),
            *static,
        )
        for (static, *_), members in keys.items()
    )


def _size(values: np.ndarray) -> float:
    return float(np.nanstd(values)) or 1.0


def _with_free_starts(start: Start, free: FreeLike, robot: Robot) -> Start:
    """The start with a value for every joint whose start is free."""
    wanted: list[str] = []
    for item in map(as_free, listed(free)):
        wanted += [item.path] if isinstance(item.path, str) else item.path
    fields = {
        "joints": dict(start.joints),
        "rates": dict(start.rates),
        "motors": dict(start.motors),
    }
    moving = [j for j in robot.tree_joints if j.dofs]
    for path in wanted:
        words = path.split(".")
        if len(words) < 3 or words[0] != "start" or words[1] not in fields:
            continue
        for joint in moving:
            if words[2] in ("*", joint.name):
                home = 0.0 if joint.home is None or words[1] == "rates" else joint.home
                shape = () if joint.dofs == 1 else (joint.dofs,)
                fields[words[1]].setdefault(joint.name, jnp.broadcast_to(home, shape))
    return Start(**fields, links=start.links)


def _refuse_two_starts(free: FreeLike, unknown: list[dict]) -> None:
    """Refuse free starts beside unknown ones, whose modes move the joints too."""
    for item in map(as_free, listed(free)):
        paths = [item.path] if isinstance(item.path, str) else item.path
        named = [path for path in paths if path.partition(".")[0] == "start"]
        if unknown and named:
            raise ValueError(
                f"free {named[0]!r}: an experiment has start = fx.UnknownStart(...), which "
                "estimates the start; leave one of the two out."
            )


def _refuse_recorded(par: Parameters, experiments: list[Experiment]) -> None:
    """Refuse a free start that a recorded motion already fixes."""
    for name, targets in zip(par.names, par.targets, strict=True):
        for t in targets:
            if (
                t.root == "start"
                and t.experiment is not None
                and t.steps[0] in ("joints", "rates")
                and t.steps[1] in experiments[t.experiment].motions
            ):
                joint = t.steps[1]
                raise ValueError(
                    f"free {name!r}: the recorded motion of {joint!r} sets where it starts; "
                    "leave it out."
                )


def measure_data(
    problem: Problem,
    data: Sequence[Data],
    noise: dict[str, float] | None = None,
    band: tuple[float, float] | None = None,
) -> tuple[Measured, dict[str, bool]]:
    """Values and weights of the data, and which channels have a known standard deviation.

    Other channels are weighted by ``noise`` or, without it, by a share of their own readings.
    """
    experiments = [d for d in data if isinstance(d, Experiment)]
    dtype = problem.model.robot.gravity.dtype
    known_noise = {
        s.name: float(s.noise)
        for s in problem.model.robot.sensors
        if s.noise is not None and float(s.noise) > 0
    }
    known: dict[str, bool] = {}
    values, weights, lines = [], [], []
    for group in problem.groups:
        y = np.stack(
            [
                np.stack([experiments[k].sensors[s] for s in group.sensors], axis=-1)
                for k in group.members
            ]
        )
        w = np.empty_like(y)
        for row, k in enumerate(group.members):
            for col, s in enumerate(group.sensors):
                given = experiments[k].noise.get(s, known_noise.get(s))
                known[s] = known.get(s, True) and given is not None
                size = _common_size(experiments, s)
                w[row, :, col] = 1 / (
                    given if given is not None else (noise or {}).get(s, ASSUMED * size)
                )
        gaps = np.isnan(y)
        values.append(jnp.asarray(np.where(gaps, 0.0, y), dtype))
        weights.append(jnp.asarray(np.where(gaps, 0.0, w), dtype))
        if band is not None:
            lines.append(jnp.asarray(_spectral_lines(np.asarray(group.ts[0]), band), dtype))
    ov, ow = [], []
    for d in problem.others:
        v, sd = d.measured()
        known[d.name] = d.absolute
        ov.append(jnp.asarray(v, dtype))
        ow.append(
            jnp.asarray(1 / (sd * (1.0 if d.absolute else (noise or {}).get(d.name, 1.0))), dtype)
        )
    return Measured(
        tuple(values),
        tuple(weights),
        tuple(ov),
        tuple(ow),
        tuple(lines) if band is not None else None,
    ), known


def _spectral_lines(ts: np.ndarray, band: tuple[float, float]) -> np.ndarray:
    """Weights of the lines of a spectrum: one within ``band``, half the power at the ends."""
    f = np.fft.rfftfreq(len(ts), (ts[-1] - ts[0]) / (len(ts) - 1))
    ends = (f == 0) | (2 * f >= 1 / (ts[1] - ts[0]) * (1 - 1e-9))
    weights = ((f >= band[0]) & (f <= band[1])) * np.where(ends, 0.5**0.5, 1.0)
    if not np.any(weights):
        raise ValueError(
            f"band: {band} Hz contains no line of a recording of {len(ts)} samples, which "
            f"has {f[1]:g} to {f[-1]:g} Hz."
        )
    return weights


def _common_size(experiments: list[Experiment], sensor: str) -> float:
    return max(_size(e.sensors[sensor]) for e in experiments if sensor in e.sensors)
