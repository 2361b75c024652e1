"""Measured motions with noise: the motion itself is estimated, with its measurement as residual.

The motion is a cubic B-spline c = c0 + D w. c0 is the spline nearest to the samples, and D makes
the measurement's residuals, in units of their noise, those of independent normal numbers w, plus a
constant. So each w is a parameter with the prior (0, 1), and nothing else changes.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import PieceTime, ScalarLike
from flexjax.drive import Drive, Motion
from flexjax.drive.signal import AbstractSignal, BSpline
from flexjax.formulation import Start
from flexjax.study.free import Parameters, Target
from flexjax.study.identify.records._experiment import Experiment

DEGREE = 3
PREFIX = "motion."  # of the names of these parameters


class UnknownMotion(AbstractSignal):
    """A spline whose control values are ``nearest + change @ unknown``."""

    spline: BSpline
    change: Float[Array, "n n"]
    unknown: Float[Array, " n"]

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None):
        values = self.spline.values + self.change @ self.unknown
        found = eqx.tree_at(lambda s: s.values, self.spline, values)
        # A recording is not read outside its times, so that the ends of the spline do not jump.
        return found.evaluate(t, self.spline.begin + 0.5 * self.spline.duration)

    def breaks(self) -> Float[Array, "0"]:
        return jnp.zeros((0,), self.unknown.dtype)


def unknown_motion(ts: np.ndarray, samples: np.ndarray, sd: float) -> UnknownMotion:
    """The spline with the fewest control values that explains the samples but for their noise.

    Its residuals are then no larger than ``sd``, corrected for the number of control values.
    """
    span, count = float(ts[-1] - ts[0]), DEGREE + 1
    # Half a step more, so that no time of the recording is beyond the last piece.
    begin, span = float(ts[0]), span * (1 + 0.5 / len(ts))
    while True:
        table = _table(ts, count, begin, span)
        values, *_ = np.linalg.lstsq(table, samples, rcond=None)
        left = np.sum((samples - table @ values) ** 2) / max(len(ts) - count, 1)
        more = min(count + max(1, count // 4), len(ts))
        if left <= sd**2 or more == count:
            break
        count = more
    # Samples beyond those that explain the motion show only noise.
    upper = np.linalg.qr(table, mode="r")
    change = sd * np.linalg.inv(upper)
    spline = BSpline(values, span, begin, DEGREE, "free")
    return UnknownMotion(spline, jnp.asarray(change), jnp.zeros(count))


def _table(ts: np.ndarray, count: int, begin: float, span: float) -> np.ndarray:
    """Samples (T, n) of the splines with one control value of one."""
    from scipy.interpolate import BSpline as ScipySpline

    pieces = count - DEGREE
    inner = begin + span * np.arange(pieces + 1) / pieces
    knots = np.concatenate([np.full(DEGREE, begin), inner, np.full(DEGREE, begin + span)])
    return ScipySpline(knots, np.eye(count), DEGREE)(ts)


def with_unknown_motions(experiment: Experiment, drive: Drive) -> Drive:
    """The drive with motions that are parameters where the recording gives their noise."""
    new = {
        joint: Motion(unknown_motion(experiment.ts, experiment.motions[joint], sd))
        for joint, sd in experiment.motion_noise.items()
    }
    return Drive({**drive.joints, **new}, drive.loads, drive.base) if new else drive


def unstretched(start: Start, drive: Drive, t0: ScalarLike) -> Start:
    """The start with flexible joints where their unknown motions begin."""
    joints, rates = dict(start.joints), dict(start.rates)
    for name, act in drive.joints.items():
        if name in joints and isinstance(act, Motion) and isinstance(act.signal, UnknownMotion):
            joints[name], rates[name], _ = act.signal.evaluate(t0)
    return Start(joints, rates, start.motors, start.links)


def motion_rows(experiments: Sequence[Experiment], drives: Sequence[Drive]) -> list[dict]:
    """Rows of the parameters for every unknown of measured motions with noise."""
    rows = []
    for e, (experiment, drive) in enumerate(zip(experiments, drives, strict=True)):
        for joint in experiment.motion_noise:
            motion = drive.joints[joint]
            assert isinstance(motion, Motion) and isinstance(motion.signal, UnknownMotion)
            signal = motion.signal
            for i in range(len(signal.unknown)):
                steps = ("joints", joint, "signal", "unknown")
                rows.append(
                    {
                        "name": f"{PREFIX}{joint}.{i} of {experiment.name}",
                        "unit": "",
                        "kind": "none",
                        "targets": [Target("drive", steps, (i,), e, 1.0)],
                        "start": 0.0,
                        "lower": -np.inf,
                        "upper": np.inf,
                        "scale": 1.0,
                        "prior_mean": 0.0,
                        "prior_sd": 1.0,
                    }
                )
    return rows


def of_motions(par: Parameters) -> np.ndarray:
    """Mask of the parameters that belong to measured motions."""
    return np.array([name.startswith(PREFIX) for name in par.names], bool)
