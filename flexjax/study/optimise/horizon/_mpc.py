"""Model-predictive control: a horizon that recedes with every sample."""

import dataclasses
import time
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from flexjax._compile import filter_jit
from flexjax._html import block, curves
from flexjax.formulation import AbstractModel, Start
from flexjax.simulate import rest
from flexjax.study.optimise.horizon._horizon import Horizon, improve, make_horizon
from flexjax.study.optimise.problem import read_end


@dataclasses.dataclass(frozen=True, eq=False)
class Mpc:
    """Result of :func:`flexjax.mpc`, at K samples.

    ``times`` (K + 1,) [s]; ``q`` (K + 1, D) and ``tip`` (K + 1, 3) of the plant; ``effort`` (K, D).
    ``seconds`` (K,): computing time of every sample; ``sample``: the time that there is for it.
    """

    times: np.ndarray
    q: np.ndarray
    tip: np.ndarray
    effort: np.ndarray
    seconds: np.ndarray
    sample: float
    goal: np.ndarray  # of the tip

    @property
    def distance(self) -> np.ndarray:
        """Distance of the tip from where it rests at the goal (K + 1,) [m]."""
        return np.linalg.norm(self.tip - self.goal[None], axis=1)

    @property
    def in_time(self) -> bool:
        """Whether every sample but the first, which compiles, was computed within its time."""
        return bool(np.all(self.seconds[1:] < self.sample))

    def __str__(self) -> str:
        slow = 1e3 * float(np.max(self.seconds[1:], initial=0.0))
        median = 1e3 * float(np.median(self.seconds[1:]))
        return (
            f"{len(self.seconds)} samples of {1e3 * self.sample:.3g} ms, computed in {median:.3g} "
            f"ms (median) and {slow:.3g} ms (slowest); tip {1e3 * self.distance[-1]:.3g} mm from "
            "the goal at the end"
        )

    def _repr_html_(self) -> str:
        efforts = {f"{k + 1}": x for k, x in enumerate(self.effort.T)}
        return block(
            str(self),
            curves(self.times, {"tip": self.distance}, "time [s]", "tip to goal [m]"),
            curves(self.times[:-1], efforts, "time [s]", "efforts [N m, N]"),
            curves(self.times[1:-1], {"": 1e3 * self.seconds[1:]}, "time [s]", "computing [ms]"),
        )


def mpc(
    model: AbstractModel,
    *,
    goal: Start | Mapping[str, float],
    start: Start | Mapping[str, float] | None = None,
    duration: float,
    sample: float,
    horizon: int = 20,
    effort: float | Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    dt: float = 1e-3,
    iterations: int = 1,
    plant: AbstractModel | None = None,
) -> Mpc:
    """Move an arm by model-predictive control, and measure the computing time.

    At every sample the efforts over the next ``horizon`` samples are improved by steps of multiple
    shooting (see :func:`shoot`), from those of the last sample, shifted. The first effort acts for
    one sample. The controller measures the state of the plant.

    Arguments:
        model: the controller's model.
        goal, start: coordinates by name of the joint; both are at rest.
        duration: simulated time [s].
        sample: sampling time [s].
        horizon: number of samples that the controller looks ahead.
        effort: largest effort of all joints, or by name [N m or N].
        weights: as in :func:`shoot`.
        dt: longest step of the controller's model and of the plant [s].
        iterations: steps of the search in every sample.
        plant: the arm, in the same formulation with other parameters; by default the model.

    Returns:
        :class:`Mpc`, with the computing time of every sample.

    Raises:
        ValueError: the goal does not fit the robot, or an argument is invalid.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> run = fx.mpc(model, goal={"shoulder": 0.1}, duration=0.1, sample=0.05, horizon=4, dt=0.01)
    >>> run.effort.shape
    (2, 3)
    """
    if int(horizon) != horizon or horizon < 2:
        raise ValueError(f"horizon: {horizon}; expected a whole number of at least 2 samples.")
    if int(iterations) != iterations or iterations < 1:
        raise ValueError(f"iterations: {iterations}; expected a whole number of at least 1.")
    plant = model if plant is None else plant
    if plant.formulation != model.formulation:
        raise ValueError(
            f"plant: {type(plant.formulation).__name__}; expected the formulation of the model, "
            f"{model.formulation}: its state is measured."
        )
    robot = model.robot
    start, goal = read_end(robot, "start", start), read_end(robot, "goal", goal)
    ahead = make_horizon(model, rest(model, goal), sample, dt, effort, weights)
    real = make_horizon(plant, rest(plant, goal), sample, dt, effort, weights)
    s = real.flat(rest(plant, start).state)
    U = jnp.clip(jnp.tile(ahead.goal.effort, (horizon, 1)), ahead.low[None], ahead.high[None])
    S = jnp.tile(s[None], (horizon, 1))
    observed, efforts, seconds = [_observe(real, s)], [], []
    for _ in range(max(1, round(duration / sample))):
        begin = time.perf_counter()
        for _ in range(iterations):
            found = improve(ahead, s, U, S)
            U, S = found.U, found.S
        u = jax.block_until_ready(U[0])
        seconds.append(time.perf_counter() - begin)
        s = _advance(real, s, u)
        observed.append(_observe(real, s))
        efforts.append(np.asarray(u))
        U, S = jnp.concatenate([U[1:], U[-1:]]), jnp.concatenate([S[1:], S[-1:]])
    return Mpc(
        times=sample * np.arange(len(observed)),
        q=np.stack([np.asarray(q) for q, _ in observed]),
        tip=np.stack([np.asarray(tip) for _, tip in observed]),
        effort=np.stack(efforts),
        seconds=np.array(seconds),
        sample=float(sample),
        goal=np.asarray(real.goal.tip),
    )


@filter_jit
def _advance(horizon: Horizon, s, u):
    return horizon.next(s, u)


@filter_jit
def _observe(horizon: Horizon, s):
    t, one = jnp.zeros_like(horizon.sample), jnp.ones(1, s.dtype)
    names = frozenset({"q", "positions"})
    found = horizon.model.outputs(t, horizon.state(s), horizon.goal.drive, one, None, names)
    return found["q"], found["positions"][-1, 0]
