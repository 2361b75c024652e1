"""A run: always spatial, world frame, SI units; planar arms lie in z = 0."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from flexjax._deferred import Deferrable, Source
from flexjax._html import block, curves
from flexjax._results import Status
from flexjax._types import ScalarLike, is_traced
from flexjax.mechanism import Energy, Snapshot
from flexjax.numerics.term import State
from flexjax.robot import Robot
from flexjax.simulate.trajectory._interpolate import interpolated, snapshot


class Statistics(eqx.Module):
    """Number of steps and step [s] of a run, and the names of solver and formulation."""

    steps: Int[Array, ""]
    dt: Float[Array, ""]
    solver: str = eqx.field(static=True)
    formulation: str = eqx.field(static=True)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sections(Deferrable):
    """Quantities of sections at other stations than those of the trajectory."""

    frames: Float[Array, "T L E 7"]
    velocity: Float[Array, "T L E 6"]
    acceleration: Float[Array, "T L E 6"]
    deflection: Float[Array, "T L E 3"]
    strain: Float[Array, "T L E 6"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Deferrable):
    """A simulated motion at T output times; see :class:`Snapshot` for the other axes.

    Fields of joints, links and energies are computed when they are first read. So a loss that reads
    only ``tip`` compiles only what the tip needs.

    ``status`` is 0 for success, and ``t_fail`` is then infinite. Otherwise outputs after ``t_fail``
    are NaN, and ``where`` is the index of the joint concerned (-1: none). ``final`` continues the
    run: ``simulate(model, drive, ts, start=traj.final)``. ``ends`` stores the sections at s = 0
    and s = 1 if ``stations`` lack one of them.

    >>> import flexjax as fx
    >>> import jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> traj.ok, traj.q.shape, traj.tip.shape
    (True, (3, 3), (3, 3))
    >>> traj.at(0.05).q.shape
    (3,)
    """

    ts: Float[Array, " T"]
    q: Float[Array, "T D"]
    qd: Float[Array, "T D"]
    qdd: Float[Array, "T D"]
    motor: Float[Array, "T D"]
    effort: Float[Array, "T D"]
    frames: Float[Array, "T L S 7"]
    velocity: Float[Array, "T L S 6"]
    acceleration: Float[Array, "T L S 6"]
    deflection: Float[Array, "T L S 3"]
    strain: Float[Array, "T L S 6"]
    reaction: Float[Array, "T J 6"]
    energy: Energy
    status: Int[Array, ""]
    t_fail: Float[Array, ""]
    where: Int[Array, ""]
    stats: Statistics
    final: State
    stations: Float[Array, " S"]
    robot: Robot
    # A factory, because a default would be an attribute of the class, and never be deferred.
    ends: Sections | None = dataclasses.field(default_factory=lambda: None)

    @property
    def tip(self) -> Float[Array, "T 3"]:
        """World position of the last link's tip, s = 1, whatever the stations are."""
        return _positions(self if self.ends is None else self.ends)[..., -1, -1, :]

    def __len__(self) -> int:
        """Number of output times."""
        return self.ts.shape[-1]

    def __getitem__(self, i: int) -> Snapshot:
        """The output ``i``; -1 is the last. Iterating gives all outputs in order."""
        self._refuse_batch("[...]")
        if isinstance(i, slice | tuple) or not hasattr(i, "__index__"):
            raise TypeError(
                f"trajectory: the index {i!r}; expected the number of an output, e.g. traj[-1]; "
                "slice fields instead, e.g. traj.q[2:5]."
            )
        if not -len(self) <= int(i) < len(self):
            raise IndexError(f"trajectory: output {i}; expected one of {len(self)}.")
        return snapshot(self, int(i))

    def at(self, t: ScalarLike) -> Snapshot:
        """The snapshot at a time between the outputs.

        Joint coordinates, their rates and positions of sections are interpolated by cubic
        polynomials from values and rates, orientations along the shortest rotation, everything
        else linearly. Across a jump (a break of the drive) values are smeared over the interval.

        Arguments:
            t: a time within the trajectory [s]. Use ``jax.vmap(traj.at)(times)`` for several;
                a traced time outside gives NaN.

        Returns:
            A :class:`Snapshot`.
        """
        self._refuse_batch(".at(t)")
        return interpolated(self, t)

    def _refuse_batch(self, what: str) -> None:
        if self.status.ndim:
            raise ValueError(
                f"traj{what}: a batch of shape {self.status.shape}; expected one trajectory. "
                "Take one with jax.tree.map(lambda x: x[k], traj)."
            )

    @property
    def ok(self) -> bool | Bool[Array, "..."]:
        """Whether the run succeeded; an array for a batch and inside a traced function."""
        if is_traced(self.status):
            return self.status == Status.ok
        good = np.asarray(self.status) == Status.ok
        return jnp.asarray(good) if good.ndim else bool(good)

    def whole(self) -> "Trajectory":
        """The same run with both ends of every link among its stations."""
        if self.ends is None:
            return self
        zero = jnp.zeros((1,), self.stations.dtype)
        s = jnp.concatenate([zero, self.stations, zero + 1])
        # An end that is among the stations is taken once; a traced one may appear twice.
        once = None if is_traced(s) else np.unique(s, return_index=True)[1]

        def join(name: str) -> Array:
            assert self.ends is not None  # asked above
            both = self, self.ends
            x, end = (
                map(_positions, both)
                if name == "positions"
                else (getattr(part, name) for part in both)
            )
            x = jnp.concatenate([end[..., :1, :], x, end[..., 1:, :]], axis=-2)
            return x if once is None else x[..., once, :]

        sections = {"positions", *(f.name for f in dataclasses.fields(Sections))}
        return Trajectory.deferred(
            Source(
                lambda names: {k: join(k) if k in sections else getattr(self, k) for k in names}
            ),
            stations=s if once is None else s[once],
            ends=None,
        )

    def __str__(self) -> str:
        if is_traced(self.ts):
            return f"Trajectory({self.robot.name}, inside a traced function)"
        t, tip = np.asarray(self.ts), np.asarray(self.tip)
        if self.status.ndim:
            good = int(np.sum(np.asarray(self.status) == 0))
            return f"Trajectory({self.robot.name}: batch of shape {self.status.shape}, {good} ok)"
        balance = np.asarray(self.energy.balance)
        parts = [getattr(self.energy, k) for k in ("kinetic", "elastic", "gravity", "work")]
        scale = np.nanmax(np.abs(np.asarray(parts)), initial=1e-300)
        drift = np.nanmax(np.abs(balance - balance[0]), initial=0.0) / scale
        return (
            f"{self.robot.name}: {self.stats.formulation}, {self.stats.solver}, "
            f"t = {t[0]:g} .. {t[-1]:g} s, {len(t)} outputs, "
            f"{int(self.stats.steps)} steps of {float(self.stats.dt):.3g} s\n"
            f"status {Status(int(self.status)).name}; "
            f"tip at the end ({', '.join(f'{x:.6g}' for x in tip[-1])}) m; "
            f"energy balance within {drift:.1e} of the largest energy"
        )

    def _repr_html_(self) -> str:
        if is_traced(self.ts) or self.status.ndim:
            return block(str(self))
        names = [
            joint.name + (f" {k + 1}" if joint.dofs > 1 else "")
            for joint in self.robot.tree_joints
            for k in range(joint.dofs)
        ]
        t, q, tip = (np.asarray(x) for x in (self.ts, self.q, self.tip))
        joints = dict(zip(names, q.T, strict=True))
        return block(
            str(self),
            curves(t, joints, "time [s]", "joints [rad, m]"),
            curves(t, dict(zip("xyz", tip.T, strict=True)), "time [s]", "tip [m]"),
        )


def _positions(part: Trajectory | Sections) -> Float[Array, "T L E 3"]:
    """World positions of sections, which need less than their frames."""
    found = part.beside("positions")
    return part.frames[..., :3] if found is None else found
