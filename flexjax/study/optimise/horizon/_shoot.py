"""Multiple shooting: efforts over a long or unstable horizon."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from flexjax._html import block, curves
from flexjax.drive import Drive, Effort
from flexjax.drive.signal import piecewise_constant
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import rest
from flexjax.study.optimise.horizon._horizon import Horizon, improve, make_horizon
from flexjax.study.optimise.problem import read_end


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """Result of :func:`flexjax.shoot`.

    ``drive``: efforts that are constant between samples; ``times`` (H,) at which they begin [s];
    ``effort`` (H, D). ``states`` (H, n): flat states at the ends of the samples; ``gap``: the
    largest distance between the end of one piece and the begin of the next. ``status`` is
    "converged", "iterations" or "interrupted".
    """

    drive: Drive
    times: np.ndarray
    effort: np.ndarray
    states: np.ndarray
    cost: float
    gap: float
    status: str
    history: list[dict[str, float]]
    seconds: float

    @property
    def ok(self) -> bool:
        return self.status == "converged"

    def __str__(self) -> str:
        return (
            f"{self.status} after {len(self.history)} iterations, {self.seconds:.1f} s; cost "
            f"{self.cost:.6g}, largest gap {self.gap:.1e}; {len(self.times)} samples"
        )

    def _repr_html_(self) -> str:
        efforts = {f"{k + 1}": x for k, x in enumerate(np.asarray(self.effort).T)}
        return block(str(self), curves(self.times, efforts, "time [s]", "efforts [N m, N]"))


def shoot(
    model: AbstractModel,
    *,
    goal: Start | Mapping[str, float],
    start: Start | Mapping[str, float] | None = None,
    duration: float,
    samples: int,
    effort: float | Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    dt: float = 1e-3,
    iterations: int = 60,
    tolerance: float = 1e-6,
    progress: bool | Callable[[str], None] = False,
) -> Plan:
    """Find efforts that bring an arm to rest at a goal, by multiple shooting.

    The horizon is divided into samples, each simulated from a state of its own. The states are
    unknowns too, and the gaps between the pieces close along with the search. So a run is never
    longer than one sample, and an unstable arm does not spoil the derivatives. A step solves a
    linear-quadratic problem stage by stage, at a cost that is linear in the number of samples.

    Arguments:
        model: a robot in a formulation; its joints take efforts.
        goal, start: coordinates by name of the joint; both are at rest.
        duration: duration [s].
        samples: number of samples, with one effort of every joint each.
        effort: largest effort of all joints, or by name [N m or N].
        weights: of the squares of "position" (joint errors), "velocity" (joint rates), "tip" (its
            distance from the goal), "effort" (deviation from the effort at rest), and "final" (all
            errors at the end, on top).
        dt: longest step [s].
        iterations: largest number of steps.
        tolerance: largest gap, and relative change of the cost, at which the search ends.
        progress: show cost and gap of every step; a function takes the lines.

    Returns:
        :class:`Plan`.

    Raises:
        ValueError: the goal does not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> plan = fx.shoot(model, goal={"shoulder": 0.2}, duration=0.2, samples=4, dt=1e-2)
    >>> plan.gap < 1e-5
    True
    """
    if int(samples) != samples or samples < 2:
        raise ValueError(f"samples: {samples}; expected a whole number of at least 2.")
    first = rest(model, read_end(model.robot, "start", start))
    last = rest(model, read_end(model.robot, "goal", goal))
    horizon = make_horizon(model, last, duration / samples, dt, effort, weights)
    s0, s1 = horizon.flat(first.state), horizon.flat(last.state)
    share = jnp.arange(1, samples + 1)[:, None] / samples
    S = s0[None] + share * (s1 - s0)[None]
    U = jnp.clip(jnp.tile(last.effort, (samples, 1)), horizon.low[None], horizon.high[None])
    show = (progress if callable(progress) else print) if progress else None
    history, begin, status = [], time.perf_counter(), "iterations"
    cost, gap = np.inf, np.inf
    try:
        for k in range(iterations):
            found = improve(horizon, s0, U, S)
            U, S, before, cost, gap = found.U, found.S, cost, float(found.cost), float(found.gap)
            history.append({"cost": cost, "gap": gap})
            if show is not None:
                show(f"step {k + 1}: cost {cost:.6e}, gap {gap:.1e}")
            if gap < tolerance and abs(before - cost) < tolerance * cost:
                status = "converged"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    return make_plan(horizon, U, S, cost, gap, status, history, time.perf_counter() - begin)


def make_plan(horizon: Horizon, U: Any, S: Any, cost, gap, status, history, seconds) -> Plan:
    times = float(horizon.sample) * np.arange(U.shape[0] + 1)
    hold = np.asarray(horizon.goal.effort)
    values = np.concatenate([np.asarray(U), hold[None]])
    drive = Drive(
        joints={
            name: Effort(piecewise_constant(times, values[:, k]))
            for k, name in enumerate(horizon.names)
        }
    )
    return Plan(
        drive, times[:-1], np.asarray(U), np.asarray(S), cost, gap, status, history, seconds
    )
