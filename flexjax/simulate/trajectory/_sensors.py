"""Sensors evaluated on a trajectory, also inside a loss."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from flexjax.robot import Robot, Sensor
from flexjax.simulate.trajectory._trajectory import Trajectory


def _at_station(
    values: Float[Array, "T S k"], stations: Float[Array, " S"], s: Float[Array, ""]
) -> Float[Array, "T k"]:
    """Values (T, S, k) at station s, linear between stations."""
    interpolate = lambda column: jnp.interp(s, stations, column)
    return jax.vmap(jax.vmap(interpolate, in_axes=1))(values)


def _rotations(frames: Float[Array, "T S 7"]) -> Float[Array, "T S 3 3"]:
    w, x, y, z = jnp.moveaxis(frames[..., 3:], -1, 0)
    return jnp.stack(
        [
            jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            jnp.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )


def _raw(sensor: Sensor, robot: Robot, traj: Trajectory) -> Array:
    """The quantity itself, (T,)."""
    if sensor.kind in ("encoder", "motor_encoder", "torque"):
        column = robot.dof_slices()[sensor.on].start
        fields = {"encoder": traj.q, "motor_encoder": traj.motor, "torque": traj.effort}
        return fields[sensor.kind][:, column]
    link = robot.link_index(sensor.on)
    if sensor.kind == "tip":
        direction = _direction(sensor, (1.0, 0.0, 0.0), traj)
        return _at_station(traj.frames[:, link, :, :3], traj.stations, sensor.s) @ direction
    if sensor.kind == "strain_gauge":
        e = _at_station(traj.strain[:, link], traj.stations, sensor.s)
        y, z = jnp.zeros(2, traj.ts.dtype) if sensor.position is None else sensor.position
        # eps = u' - y v'' - z w''; curvature about z is v'', about y it is -w''.
        return e[:, 0] - y * e[:, 5] + z * e[:, 4]
    if sensor.kind == "flex":
        assert sensor.span is not None  # the robot's checks refuse a flex sensor without
        R = _rotations(traj.frames[:, link])
        ahead = R[..., :, 0]
        a = _at_station(ahead, traj.stations, sensor.span[0])
        b = _at_station(ahead, traj.stations, sensor.span[1])
        up = _at_station(R[..., :, 2], traj.stations, sensor.span[0])
        return jnp.arctan2(jnp.sum(jnp.cross(a, b) * up, -1), jnp.sum(a * b, -1))
    R = _rotations(traj.frames[:, link])
    felt = traj.acceleration[:, link, :, :3] - jnp.einsum("tsji,j->tsi", R, robot.gravity)
    direction = _direction(sensor, (0.0, 1.0, 0.0), traj)
    return _at_station(felt, traj.stations, sensor.s) @ direction


def _direction(sensor: Sensor, default: tuple[float, ...], traj: Trajectory) -> Float[Array, "3"]:
    return jnp.array(default, traj.ts.dtype) if sensor.direction is None else sensor.direction


def _lowpass(
    ts: Float[Array, " T"],
    x: Float[Array, " T"],
    frequency: Float[Array, ""],
    zeta: Float[Array, ""],
    away: Float[Array, "2"] | None = None,
) -> Float[Array, " T"]:
    """Second-order low-pass, exact for input that is linear between samples.

    ``away``: distance of its output, and of the output's rate over its corner, from steady state
    at the start.
    """
    w = 2 * jnp.pi * frequency
    A = jnp.array([[0.0, 1.0], [0.0, 0.0]], ts.dtype) + jnp.stack(
        [jnp.zeros(2, ts.dtype), jnp.stack([-(w**2), -2 * zeta * w])]
    )
    b = jnp.stack([jnp.zeros((), ts.dtype), w**2])
    # Augmented by the input and its slope, one matrix exponential per step is the exact solution.
    full = jnp.zeros((4, 4), ts.dtype).at[:2, :2].set(A).at[:2, 2].set(b).at[2, 3].set(1.0)
    # Computed before the loop, where vmap computes all at once.
    dts = jnp.diff(ts)
    moves = jax.vmap(lambda dt: jax.scipy.linalg.expm(full * dt)[:2])(dts)

    def step(state, row):
        move, u0, slope = row
        new = move @ jnp.concatenate([state, jnp.stack([u0, slope])])
        return new, new[0]

    start = jnp.stack([x[0], jnp.zeros_like(x[0])])
    if away is not None:
        start = start + jnp.stack([away[0], w * away[1]])
    _, rest = jax.lax.scan(step, start, (moves, x[:-1], jnp.diff(x) / dts))
    return jnp.concatenate([start[:1], rest])


def _recorded(sensor: Sensor, ts: Float[Array, " T"], x: Float[Array, " T"]) -> Array:
    """What a logger stores of a filtered reading: delay and clock, drift, steps."""
    if sensor.delay is not None or sensor.skew is not None:
        true = ts if sensor.skew is None else ts - sensor.skew * (ts - ts[0])
        x = jnp.interp(true if sensor.delay is None else true - sensor.delay, ts, x)
    if sensor.drift is not None:
        x = x + sensor.drift * (ts - ts[0])
    if sensor.quantum is not None:
        # The derivative is that of the reading before it is rounded.
        x = x + jax.lax.stop_gradient(sensor.quantum * jnp.round(x / sensor.quantum) - x)
    return x


def measure(
    traj: Trajectory, robot: Robot | None = None, *, key: PRNGKeyArray | None = None
) -> dict[str, Array]:
    """Evaluate the robot's sensors on a trajectory.

    Between two stations of the trajectory the quantities of a link are interpolated linearly.

    Arguments:
        traj: a trajectory.
        robot: a robot whose sensor parameters (gains, offsets) replace the trajectory's, in a loss.
        key: a jax random key; adds the noise of each sensor.

    Returns:
        Readings (T,) by name of the sensor.

    >>> import flexjax as fx
    >>> readings = fx.measure(traj)  # doctest: +SKIP
    """
    robot = traj.robot if robot is None else robot
    values = sensor_readings(traj, robot, [sensor.name for sensor in robot.sensors])
    if key is None:
        return values
    for i, sensor in enumerate(robot.sensors):
        if sensor.noise is not None:
            x = values[sensor.name]
            noise = jax.random.normal(jax.random.fold_in(key, i), x.shape, x.dtype)
            values[sensor.name] = x + sensor.noise * noise
    return values


def sensor_readings(
    traj: Trajectory,
    robot: Robot,
    names: Sequence[str],
    filters: Mapping[str, Float[Array, "2"]] | None = None,
) -> dict[str, Float[Array, " T"]]:
    """Readings of the named sensors without noise.

    ``filters``: starts of low-pass filters away from steady state, by sensor (see `_lowpass`).
    """
    traj, known, out = traj.whole(), {s.name: s for s in robot.sensors}, {}
    for name in names:
        sensor = known[name]
        x = sensor.gain * _raw(sensor, robot, traj) + sensor.offset
        for part in sensor.crosstalk:
            x = x + part.gain * _raw(known[part.sensor], robot, traj)
        if sensor.lowpass is not None:
            away = (filters or {}).get(name)
            x = _lowpass(traj.ts, x, sensor.lowpass.frequency, sensor.lowpass.zeta, away)
        out[name] = _recorded(sensor, traj.ts, x)
    return out
