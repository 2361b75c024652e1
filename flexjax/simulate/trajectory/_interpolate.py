"""A trajectory between its output times."""

import dataclasses
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from flexjax._types import ScalarLike, is_traced
from flexjax.mechanism import Snapshot
from flexjax.numerics.screw import se3
from flexjax.robot import Robot

if TYPE_CHECKING:
    from flexjax.simulate.trajectory._trajectory import Trajectory

FIELDS = tuple(field.name for field in dataclasses.fields(Snapshot))


def snapshot(traj: "Trajectory", i: int) -> Snapshot:
    """The output ``i`` of a trajectory."""
    return Snapshot(**{name: getattr(traj, name)[i] for name in FIELDS})


def interpolated(traj: "Trajectory", t: ScalarLike) -> Snapshot:
    """The snapshot at a time; NaN for a traced time outside of the trajectory."""
    ts = traj.ts
    if not (is_traced(t) or is_traced(ts)):
        first, last = float(ts[0]), float(ts[-1])
        if np.ndim(t) or not first <= float(np.asarray(t)) <= last:
            raise ValueError(
                f"t: {t}; expected one time from {first:g} to {last:g} s, the times of the "
                "trajectory. Simulate longer, or use jax.vmap(traj.at) for several times."
            )
    t = jnp.asarray(t, ts.dtype)
    i = jnp.clip(jnp.searchsorted(ts, jax.lax.stop_gradient(t), side="right") - 1, 0, len(ts) - 2)
    between = _Between(traj, i, t)
    found = {name: between.linear(name) for name in FIELDS}
    single = single_coordinates(traj.robot)
    found["q"] = jnp.where(single, between.cubic("q", "qd"), found["q"])
    found["qd"] = jnp.where(single, between.cubic("qd", "qdd"), found["qd"])
    found["motor"] = jnp.where(single & between.rigid(), found["q"], found["motor"])
    found["frames"] = between.poses()
    inside = (t >= ts[0]) & (t <= ts[-1])
    return Snapshot(**{name: jnp.where(inside, x, jnp.nan) for name, x in found.items()})


def single_coordinates(robot: Robot) -> np.ndarray:
    """Static mask (D,) of coordinates whose rate is their time derivative.

    Rotation vectors of spherical and free joints have none such.
    """
    mask = [j.type not in ("spherical", "free") for j in robot.tree_joints for _ in range(j.dofs)]
    return np.array(mask, bool).reshape(-1)


class _Between:
    """The outputs beside a time: ``share`` of the interval has passed."""

    def __init__(self, traj: "Trajectory", i: Int[Array, ""], t: Float[Array, ""]):
        self.traj, self.i = traj, i
        self.step = traj.ts[i + 1] - traj.ts[i]
        self.share = (t - traj.ts[i]) / self.step

    def ends(self, name: str) -> tuple[Array, Array]:
        """Both values. On an output the other is not used: after a failure it is NaN."""
        values = getattr(self.traj, name)
        a, b = values[self.i], values[self.i + 1]
        return jnp.where(self.share == 1, b, a), jnp.where(self.share == 0, a, b)

    def linear(self, name: str) -> Array:
        a, b = self.ends(name)
        return a + self.share * (b - a)

    def cubic(self, name: str, rate: str) -> Array:
        return self._hermite(*self.ends(name), *self.ends(rate))

    def _hermite(self, a: Array, b: Array, slope_a: Array, slope_b: Array) -> Array:
        """The cubic polynomial with given values and slopes at both ends."""
        x, h = self.share, self.step
        rise = b - a
        return a + x * (
            h * slope_a
            + x * (3 * rise - h * (2 * slope_a + slope_b))
            + x * x * (h * (slope_a + slope_b) - 2 * rise)
        )

    def rigid(self) -> Bool[Array, " D"]:
        """Coordinates whose motor side is the link side."""
        robot = self.traj.robot
        return jnp.array([not j.flexible for j in robot.tree_joints for _ in range(j.dofs)], bool)

    def poses(self) -> Float[Array, "L S 7"]:
        """Positions with their velocities; orientations along the shortest rotation."""
        (a, b), (va, vb) = self.ends("frames"), self.ends("velocity")
        each = lambda fn: jax.vmap(jax.vmap(fn))
        world = each(lambda pose, twist: se3.quat_to_matrix(pose[3:]) @ twist[:3])
        place = self._hermite(a[..., :3], b[..., :3], world(a, va), world(b, vb))

        def turn(qa, qb):
            back = qa * jnp.array([1.0, -1.0, -1.0, -1.0], qa.dtype)
            angle = se3.quat_log(se3.quat_multiply(back, qb))
            return se3.quat_retract(qa, self.share * angle)

        return jnp.concatenate([place, each(turn)(a[..., 3:], b[..., 3:])], axis=-1)
