"""Whether a run is right: finite, energy balance closed, and the same with half the step.

A run at half the step covers half the span, so that both are one compiled program. Where a step is
too long for the motion, steps are halved until the answer settles; a run that never settles is
wrong.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import flexjax as fx
from tests.fuzz.robots import OUTPUTS

HALVINGS = 14
SETTLED = 0.02  # largest difference between two steps, over the motion in that span
# Largest error of the energy balance over the largest energy: of solvers that conserve it to the
# round-off of their iterations, and of others, whose error falls with the step.
CLOSED = 1e-6
FALLING = 0.03
EXACT = ("DiscreteGradient",)


@dataclasses.dataclass
class Run:
    """What of a trajectory is judged."""

    status: int
    where: float  # the time of a failure
    tip: np.ndarray
    q: np.ndarray
    bent: np.ndarray  # deflections of sections
    parts: np.ndarray  # kinetic, elastic, gravity, dissipated, work

    @classmethod
    def of(cls, traj: Any) -> "Run":
        e = traj.energy
        parts = [e.kinetic, e.elastic, e.gravity, e.dissipated, e.work]
        return cls(
            int(traj.status),
            float(traj.t_fail),
            np.asarray(traj.tip),
            np.asarray(traj.q),
            np.asarray(traj.deflection),
            np.stack([np.asarray(x) for x in parts]),
        )

    @property
    def finite(self) -> bool:
        return all(np.isfinite(x).all() for x in (self.tip, self.q, self.parts))

    def drift(self, upto: int = OUTPUTS) -> float:
        """Error of the balance up to an output, over the largest change of an energy."""
        p = self.parts[:, :upto]
        balance = p[0] + p[1] + p[2] + p[3] - p[4]
        sizes = [p[0], p[1], p[2] - p[2, 0], p[3], p[4]]
        return float(np.max(np.abs(balance - balance[0])) / (max(map(_size, sizes)) + 1e-300))


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


@dataclasses.dataclass
class Verdict:
    """``kind``: "right", "coarse" (right after halving the step), "status NAME", or a failure."""

    kind: str
    detail: str = ""
    halvings: int = 0
    run: Run | None = None

    @property
    def failed(self) -> bool:
        return self.kind.startswith("wrong")


def difference(a: Run, b: Run, length: float) -> float:
    """Of two runs, the second with half the step, over the motion of the tip and the joints.

    Motions below 1e-9 of the arm's length are rounding.
    """
    half, every = slice(0, OUTPUTS // 2 + 1), slice(0, OUTPUTS, 2)
    worst = 0.0
    for x, y, unit in ((a.tip, b.tip, length), (a.q, b.q, 1.0)):
        if x.size:
            moved = _size(y - y[:1])
            worst = max(worst, _size(x[half] - y[every]) / max(moved, 1e-7 * unit))
    return worst


def disagreement(a: Run, b: Run) -> float:
    """Of two formulations of a robot with few elements: 1 where their tips differ by half of the
    deflection and a fiftieth of the motion."""
    moved, bent = _size(a.tip - a.tip[:1]), max(_size(a.bent), _size(b.bent))
    return _size(a.tip - b.tip) / (0.02 * moved + 0.5 * bent + 1e-9)


def judge(run: Callable[[int], Run], solver: str, length: float) -> Verdict:
    """``run(k)``: with the step halved k times; ``length``: of the arm."""
    first = run(0)
    if first.status != fx.Status.ok:
        return Verdict(f"status {fx.Status(first.status).name}", run=first)
    if not first.finite:
        return Verdict("wrong: not finite with status ok", run=first)
    limit = CLOSED if solver in EXACT else FALLING
    coarse, log = first, []
    for k in range(HALVINGS):
        fine = run(k + 1)
        if fine.status != fx.Status.ok:
            name = fx.Status(fine.status).name
            return Verdict(f"ok, but finer steps: {name}", f"{log}", k, first)
        if not fine.finite:
            return Verdict("wrong: not finite with status ok", f"halved {k + 1} times", k, first)
        apart, drift = difference(coarse, fine, length), coarse.drift()
        log.append((float(f"{apart:.1e}"), float(f"{drift:.1e}")))
        if apart < SETTLED and drift < limit:
            return Verdict("coarse" if k else "right", f"{log}", k, first)
        coarse = fine
    settled = min(x for x, _ in log) < SETTLED
    what = "the energy balance stays open" if settled else "steps do not converge"
    return Verdict(f"wrong: {what}", f"{log}", HALVINGS, first)
