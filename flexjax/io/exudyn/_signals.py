"""Signals for Exudyn, which asks for numbers one instant at a time: tables over the steps."""

import bisect
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.drive import PD, Drive, Effort
from flexjax.drive.signal import AbstractSignal, prepare
from flexjax.robot import Joint


class Tables:
    """The signals of a drive, evaluated together before a run; linear between the steps.

    A signal that jumps has its value after the jump.
    """

    def __init__(self) -> None:
        self.signals: list[AbstractSignal] = []
        self.times: list[float] = []
        self.values: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, signal: AbstractSignal) -> int:
        self.signals.append(prepare(signal))
        return len(self.signals) - 1

    def fill(self, times: np.ndarray) -> None:
        self.times = times.tolist()
        self.values = []
        for signal in self.signals:
            value, rate, _ = jax.vmap(signal.evaluate)(jnp.asarray(times))
            self.values.append((np.asarray(value), np.asarray(rate)))

    def at(self, which: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Value and rate."""
        k = min(max(bisect.bisect_right(self.times, t) - 1, 0), len(self.times) - 2)
        a, b = self.times[k], self.times[k + 1]
        w = min(max((t - a) / (b - a), 0.0), 1.0)
        w = round(w) if abs(w - round(w)) < 1e-6 else w  # the end of a step, but for rounding
        value, rate = self.values[which]
        return (1 - w) * value[k] + w * value[k + 1], (1 - w) * rate[k] + w * rate[k + 1]


Force = Callable[[float, float, float], float]


def joint_force(joint: Joint, drive: Drive, tables: Tables) -> Force | None:
    """Effort on the child by time, coordinate and rate, of a joint that no Motion makes rigid.

    None where nothing acts along it.
    """
    parts = [_drive_force(joint, drive, tables), _damper(joint), _friction(joint), _stops(joint)]
    given = [part for part in parts if part is not None]
    return (lambda t, q, qd: sum(part(t, q, qd) for part in given)) if given else None


def _drive_force(joint: Joint, drive: Drive, tables: Tables) -> Force | None:
    act = drive.joints.get(joint.name)
    if act is None:
        return None
    which = tables.add(act.signals()[0])
    first = lambda t: (float(np.ravel(x)[0]) for x in tables.at(which, t))
    if joint.stiffness is not None:  # held by a Motion: the spring acts
        k, d = float(joint.stiffness), 0.0 if joint.damping is None else float(joint.damping)

        def spring(t: float, q: float, qd: float) -> float:
            motor, rate = first(t)
            return k * (motor - q) + d * (rate - qd)

        return spring
    limits = [float(x) for x in (getattr(act, "limit", None),) if x is not None]
    motor = [] if joint.motor_limit is None else [float(joint.motor_limit)]
    most = min([*limits, *motor], default=float("inf"))
    if isinstance(act, Effort):
        return lambda t, q, qd: min(max(next(iter(first(t))), -most), most)
    assert isinstance(act, PD)  # others are refused
    kp, kd = float(act.kp), float(act.kd)

    def control(t: float, q: float, qd: float) -> float:
        wanted, rate = first(t)
        return min(max(kp * (wanted - q) + kd * (rate - qd), -most), most)

    return control


def _damper(joint: Joint) -> Force | None:
    if joint.damping is None or joint.stiffness is not None:
        return None
    d = float(joint.damping)
    return lambda t, q, qd: -d * qd


def _friction(joint: Joint) -> Force | None:
    if joint.friction is None or joint.stiffness is not None:
        return None
    f = joint.friction
    level, v_eps = float(f.coulomb), float(f.v_eps)
    rise = 0.0 if f.breakaway is None else float(f.breakaway) - level
    slow = 1.0 if f.stribeck is None else float(f.stribeck)
    return lambda t, q, qd: -(level + rise * np.exp(-((qd / slow) ** 2))) * np.tanh(qd / v_eps)


def _stops(joint: Joint) -> Force | None:
    if joint.stops is None:
        return None
    s = joint.stops
    lower, upper, k, d = (float(x) for x in (s.lower, s.upper, s.stiffness, s.damping))

    def push(t: float, q: float, qd: float) -> float:
        beyond = min(q - lower, 0.0) + max(q - upper, 0.0)
        return -k * beyond - d * qd if beyond else 0.0

    return push
