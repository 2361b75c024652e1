"""Whether a run is right: finite, energy balance closed, and the same with half the step.

A run at half the step covers half the span, so that both are one compiled program. Where a step is
too long for the motion, steps are halved until the answer settles; a run that never settles is
wrong.

The tolerances follow from what they bound:

- ``SETTLED``. A scheme of order p has the error e at a step and differs from the run at half the
  step by (1 - 2^-p) e. Friction, end stops, sampled controllers and a Newmark scheme with numerical
  damping are of first order, the rest of second. A difference of 2 % so bounds the error of the
  motion by 4 % (p = 1) or 2.7 % (p = 2). A single small difference may be chance: two in succession
  are asked for.
- ``FALLING``. Energies are quadratic: a motion that is right to 2.7 % has energies that are right
  to 5.3 %. Their balance must close better than that, and is asked for at the same two steps.
- ``CLOSED``. DiscreteGradient conserves energy to the residual of its iterations.
- ``BENT``. Formulations differ by the shapes that their links may take. A few elements do not
  resolve the waves of a short run, so the change of the deflection may be wrong by all of it.
- ``LEFT_OUT``. Published variants and ``rotary=False`` leave out the rotary inertia of sections,
  (h/L)^2 of a link's, with h/L up to 0.08 in these robots, and axial forces: 2 % of the motion.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import flexjax as fx
from tests.fuzz.robots import OUTPUTS

HALVINGS = 14
SETTLED = 0.02  # difference between two steps, over the motion in that span
FALLING = 0.03  # error of the energy balance, over the largest energy
CLOSED = 1e-6  # the same of solvers that conserve energy
EXACT = ("DiscreteGradient",)
BENT = 1.0  # of the change of deflection, between two formulations
LEFT_OUT = 0.02  # of the motion, where a formulation leaves terms out


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

    @property
    def moved(self) -> np.ndarray:
        """The tip from where it started."""
        return self.tip - self.tip[:1]

    @property
    def changes(self) -> np.ndarray:
        """The energies, that of gravity from its first value on."""
        return self.parts - np.where(np.arange(5) == 2, self.parts[:, 0], 0.0)[:, None]

    def drift(self, upto: int = OUTPUTS) -> float:
        """Error of the balance up to an output, over the largest change of an energy."""
        p = self.changes[:, :upto]
        balance = p[0] + p[1] + p[2] + p[3] - p[4]
        return float(np.max(np.abs(balance - balance[0])) / (_size(p) + 1e-300))


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


@dataclasses.dataclass
class Verdict:
    """``kind``: "right", "coarse" (right after halving the step), "status NAME", or a failure."""

    kind: str
    detail: str = ""
    halvings: int = 0
    runs: tuple[Run, Run] | None = None  # that settled, and with half the step

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


def disagreement(a: tuple[Run, Run], b: tuple[Run, Run], whole: bool) -> tuple[float, float]:
    """Two formulations, each at a step and half of it: their distance over what is allowed, and
    that of the tips over the motion. ``whole``: none leaves out terms.

    Compared is the way of the tip from its start. Allowed is twice what half the step changes in
    either (an error of first order), and what the links' shapes may differ by. Energies, and so the
    work of prescribed motions, are compared where nothing bends.
    """
    half, every = slice(0, OUTPUTS // 2 + 1), slice(0, OUTPUTS, 2)
    (one, one_fine), (two, two_fine) = ((x.moved[half], y.moved[every]) for x, y in (a, b))
    moved = _size(one)
    bent = max(
        float(np.abs(x.bent - x.bent[:1])[half].max(axis=(0, 2, 3)).sum()) for x in (a[0], b[0])
    )
    steps = _size(one - one_fine) + _size(two - two_fine)
    left = 0.0 if whole else LEFT_OUT
    worst = _size(one - two) / (2 * steps + BENT * bent + left * moved + 1e-9)
    if not bent and whole:
        one_e, one_half, two_e, two_half = (x.changes for x in (*a, *b))
        steps = _size(one_e[:, half] - one_half[:, every])
        steps += _size(two_e[:, half] - two_half[:, every])
        allowed = 2 * steps + 1e-6 * _size(one_e) + 1e-12
        worst = max(worst, _size((one_e - two_e)[:, half]) / allowed)
    return worst, _size(one - two) / (moved + 1e-300)


def judge(run: Callable[[int], Run], solver: str, length: float) -> Verdict:
    """``run(k)``: with the step halved k times; ``length``: of the arm."""
    first = run(0)
    if first.status != fx.Status.ok:
        return Verdict(f"status {fx.Status(first.status).name}")
    if not first.finite:
        return Verdict("wrong: not finite with status ok")
    limit = CLOSED if solver in EXACT else FALLING
    before = coarse = first
    log, good = [], 0
    for k in range(HALVINGS):
        fine = run(k + 1)
        if fine.status != fx.Status.ok:
            name = fx.Status(fine.status).name
            return Verdict(f"ok, but finer steps: {name}", f"{log}", k)
        if not fine.finite:
            return Verdict("wrong: not finite with status ok", f"halved {k + 1} times", k)
        apart, drift = difference(coarse, fine, length), coarse.drift()
        log.append((float(f"{apart:.1e}"), float(f"{drift:.1e}")))
        good = good + 1 if apart < SETTLED and drift < limit else 0
        if good == 2:
            return Verdict("coarse" if k > 1 else "right", f"{log}", k - 1, (before, coarse))
        before, coarse = coarse, fine
    settled = min(x for x, _ in log) < SETTLED
    what = "the energy balance stays open" if settled else "steps do not converge"
    return Verdict(f"wrong: {what}", f"{log}", HALVINGS)
