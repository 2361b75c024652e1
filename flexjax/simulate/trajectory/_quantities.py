"""Single quantities of a run: residual vibration, settling time, deflection, surface strain.

Plain functions of a trajectory, for losses, sweeps and reports. They are differentiable where their
value is: a peak has the derivative of the time at which it occurs.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._types import ScalarLike, is_traced
from flexjax.mechanism import half_sizes
from flexjax.simulate.trajectory._trajectory import Trajectory


def _distances(
    traj: Trajectory, after: ScalarLike, rest: Float[Array, "3"] | None
) -> tuple[Float[Array, " T"], Array]:
    """Distance of the tip from its rest position, and which outputs lie after ``after``."""
    if not is_traced(traj.ts) and not is_traced(after) and float(after) > float(traj.ts[-1]):
        raise ValueError(
            f"after: {float(after):g} s; expected a time before the last output, "
            f"{float(traj.ts[-1]):g} s. Simulate longer, or give an earlier time."
        )
    dtype = traj.ts.dtype
    rest = None if rest is None else jnp.asarray(rest, dtype)
    return _away(traj.ts, traj.tip, jnp.asarray(after, dtype), rest)


@filter_jit
def _away(ts: Array, tip: Array, after: Array, rest: Array | None) -> tuple[Array, Array]:
    late = ts >= after - 1e-9 * (ts[-1] - ts[0])
    if rest is None:
        low = jnp.min(jnp.where(late[:, None], tip, jnp.inf), axis=0)
        high = jnp.max(jnp.where(late[:, None], tip, -jnp.inf), axis=0)
        rest = 0.5 * (low + high)
    away = tip - rest[None]
    square = jnp.sum(away**2, axis=1)
    # The derivative of the root at zero is infinite; a tip that rests has none.
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0), late


def residual_vibration(
    traj: Trajectory, after: ScalarLike, *, rest: Float[Array, "3"] | None = None
) -> Float[Array, ""]:
    """Largest distance of the tip from its rest position after a time [m].

    Arguments:
        traj: a trajectory that continues after the move.
        after: end of the move [s].
        rest: where the tip comes to rest, e.g. ``fx.rest(model, goal).tip``; by default the centre
            of the box in which it moves after ``after``.

    Returns:
        The distance. It is NaN for a run that failed.

    Raises:
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> hold = {j.name: fx.Motion(fx.constant(0.1)) for j in model.robot.joints}
    >>> traj = fx.simulate(model, fx.Drive(joints=hold), np.linspace(0.0, 0.02, 3))
    >>> float(fx.residual_vibration(traj, 0.01)) < 1e-12
    True
    """
    away, late = _distances(traj, after, rest)
    return jnp.max(jnp.where(late, away, 0.0))


def settling_time(
    traj: Trajectory,
    band: ScalarLike,
    after: ScalarLike = 0.0,
    *,
    rest: Float[Array, "3"] | None = None,
) -> Float[Array, ""]:
    """Time from ``after`` until the tip stays within a distance of its rest position [s].

    Arguments:
        traj: a trajectory that continues after the move.
        band: the distance [m].
        after: end of the move [s].
        rest: where the tip comes to rest, e.g. ``fx.rest(model, goal).tip``; by default the centre
            of the box in which it moves after ``after``.

    Returns:
        The time, with the resolution of the outputs; infinite if the tip is outside at the last
        output. It has no derivative.

    Raises:
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> hold = {j.name: fx.Motion(fx.constant(0.1)) for j in model.robot.joints}
    >>> traj = fx.simulate(model, fx.Drive(joints=hold), np.linspace(0.0, 0.02, 3))
    >>> float(fx.settling_time(traj, 1e-3))
    0.0
    """
    away, late = _distances(traj, after, rest)
    # NaN is outside.
    outside = late & ~(away <= band)
    last = jnp.max(jnp.where(outside, jnp.arange(away.shape[0]), -1))
    following = jnp.minimum(last + 1, away.shape[0] - 1)
    time = jnp.where(last < 0, 0.0, jnp.maximum(traj.ts[following] - after, 0.0))
    return jnp.where(last == away.shape[0] - 1, jnp.inf, time)


def peak_deflection(traj: Trajectory) -> Float[Array, " L"]:
    """Largest deflection of every link's stations from the tangent at its base [m].

    Arguments:
        traj: a trajectory.

    Returns:
        One number for each link (L,).

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, np.linspace(0.0, 0.02, 3))
    >>> fx.peak_deflection(traj).shape
    (3,)
    """
    square = jnp.max(jnp.sum(traj.whole().deflection ** 2, axis=-1), axis=(0, 2))
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def surface_strain(traj: Trajectory) -> Float[Array, "T L S"]:
    """Largest axial strain at the surface of the links, from stretch and bending in both planes.

    The surface is that of the section's bounding box, which for a circle is on the safe side.

    Arguments:
        traj: a trajectory.

    Returns:
        The strain at every output, link and station. A rigid link has none. ValueError is raised
        for a link whose section has no dimensions.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, np.linspace(0.0, 0.02, 3))
    >>> float(fx.surface_strain(traj).max())
    0.0
    """
    rows = []
    for i, link in enumerate(traj.robot.links):
        e = traj.strain[:, i]
        if not link.elastic:
            rows.append(jnp.zeros_like(e[..., 0]))
            continue
        y, z = half_sizes(link, traj.stations)
        bending = y[None] * jnp.abs(e[..., 5]) + z[None] * jnp.abs(e[..., 4])
        rows.append(jnp.abs(e[..., 0]) + bending)
    return jnp.stack(rows, axis=1)
