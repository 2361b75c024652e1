"""The start of a simulation: joint coordinates and rates by name, and shapes of elastic links."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import NumbersLike, ScalarLike, as_float, is_traced
from flexjax.drive import Drive
from flexjax.robot import Robot

Curve = Callable[[Array | np.ndarray], Float[Array, "3 2 S"]]
FIELDS = ("y", "z", "y_rate", "z_rate")


@functools.cache
def _slopes(s: tuple[float, ...]) -> np.ndarray:
    """(n, n): slopes at the stations of the cubic spline through values there.

    Value and slope are zero at the base. At the tip the last two pieces are one cubic; a single
    value has zero curvature at the tip.
    """
    n = len(s)
    h = np.diff([0.0, *s])
    # Slopes of the pieces from the values, (n, n).
    rise = (np.eye(n) - np.eye(n, k=-1)) / h[:, None]
    if n == 1:
        return 1.5 * rise
    left, right = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n - 1):
        if i:
            left[i, i - 1] = h[i + 1]
        left[i, i], left[i, i + 1] = 2 * (h[i] + h[i + 1]), h[i]
        right[i] = 3 * (h[i + 1] * rise[i] + h[i] * rise[i + 1])
    before, last = h[-2] ** -2, h[-1] ** -2
    if n > 2:
        left[-1, -3] = before
    left[-1, -2], left[-1, -1] = before - last, -last
    right[-1] = 2 * (before * rise[-2] - last * rise[-1])
    return np.linalg.solve(left, right)


class Shape(eqx.Module):
    """Initial deflection of an elastic link and its rate.

    Deflections are transverse displacements from the tangent at the link's base. Between the
    stations they are cubic splines, with zero value and slope at the base. The link neither
    stretches nor twists. One number is the deflection of the tip under a force there.

    Arguments:
        y, z: deflections along the link's y and z axes [m]; zero by default.
        y_rate, z_rate: their rates [m/s]; zero by default.
        s: stations, increasing up to 1 (the tip); evenly spaced by default. On a link that runs
            through its joint they divide the free length.

    >>> import flexjax as fx
    >>> start = fx.Start(links={"link": fx.Shape(y=0.02)})
    """

    y: Float[Array, "*n"] | None
    z: Float[Array, "*n"] | None
    y_rate: Float[Array, "*n"] | None
    z_rate: Float[Array, "*n"] | None
    s: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self,
        y: NumbersLike | None = None,
        z: NumbersLike | None = None,
        y_rate: NumbersLike | None = None,
        z_rate: NumbersLike | None = None,
        *,
        s: NumbersLike | None = None,
    ):
        fields = zip(FIELDS, (y, z, y_rate, z_rate), strict=True)
        given = {k: as_float(v) for k, v in fields if v is not None}
        if not given:
            raise ValueError(f"shape: nothing given; expected one of {', '.join(FIELDS)}.")
        first, values = next(iter(given.items()))
        n = values.size
        even = np.arange(1, n + 1) / max(n, 1)
        stations = even if s is None else np.asarray(s, float).reshape(-1)
        faults = [
            f"{k}: numbers of shape {v.shape}; expected {n} in one dimension, as many as {first} "
            "has."
            for k, v in given.items()
            if v.size != n or v.ndim > 1
        ]
        if len(stations) != n:
            faults.append(f"s: {len(stations)} stations; expected one for each of {n} numbers.")
        elif not (n and np.isfinite(stations).all() and (np.diff([-1e-300, *stations]) > 0).all()):
            faults.append(f"s: {stations.tolist()}; expected increasing stations, from 0 to 1.")
        elif abs(stations[-1] - 1) > 1e-9:
            faults.append(f"s: ends at {stations[-1]:g}; expected 1, the tip.")
        if faults:
            raise ValueError("shape: " + " ".join(faults))
        if stations[0] == 0.0:
            given = {k: _without_base(k, v) for k, v in given.items()}
            stations = stations[1:]
        if not len(stations):
            raise ValueError("shape: s: the base alone; expected the tip too.")
        for field in FIELDS:
            setattr(self, field, given.get(field))
        self.s = (*stations[:-1].tolist(), 1.0)

    @classmethod
    def of(
        cls,
        y: Callable | None = None,
        z: Callable | None = None,
        y_rate: Callable | None = None,
        z_rate: Callable | None = None,
        *,
        n: int = 40,
    ) -> "Shape":
        """Sample functions of s.

        Arguments:
            y, z, y_rate, z_rate: functions of an array of stations in [0, 1]; value and slope are
                zero at 0.
            n: number of stations.

        Returns:
            The shape through the samples.

        >>> import flexjax as fx
        >>> fx.Shape.of(y=lambda s: 0.01 * s**2).y[-1].item()
        0.01
        """
        stations = np.arange(1, n + 1) / n
        sampled = {
            k: jnp.broadcast_to(as_float(f(stations)), (n,))
            for k, f in zip(FIELDS, (y, z, y_rate, z_rate), strict=True)
            if f is not None
        }
        return cls(**sampled, s=stations)

    @property
    def values(self) -> Float[Array, "2 n"]:
        """(y, z) at the stations."""
        return self._stacked("y", "z")

    @property
    def rates(self) -> Float[Array, "2 n"]:
        """Rates of (y, z) at the stations."""
        return self._stacked("y_rate", "z_rate")

    def _stacked(self, *fields: str):
        like = next(v for k in FIELDS if (v := getattr(self, k)) is not None)
        given = [getattr(self, k) for k in fields]
        given = [jnp.zeros_like(like) if v is None else v for v in given]
        return jnp.stack([v.reshape(-1) for v in given])

    def curve(self, values: Float[Array, "2 n"]) -> Curve:
        """(value, slope, curvature) per unit of s of (y, z) at stations (S,): (3, 2, S)."""
        return functools.partial(self._evaluate, values)

    def push(self, f: Callable, *others: tuple[Array, Array]):
        """``f(curve, *values)`` and its rate; ``others``: (value, rate) of further arguments."""
        primals, tangents = zip((self.values, self.rates), *others, strict=True)
        return jax.jvp(lambda values, *rest: f(self.curve(values), *rest), primals, tangents)

    def _evaluate(
        self, values: Float[Array, "2 n"], s: Array | np.ndarray
    ) -> Float[Array, "3 2 S"]:
        dtype = values.dtype
        s = jnp.asarray(s, dtype)
        knots = jnp.asarray((0.0, *self.s), dtype)
        slopes = values @ jnp.asarray(_slopes(self.s).T, dtype)
        values, slopes = (jnp.pad(x, ((0, 0), (1, 0))) for x in (values, slopes))
        i = jnp.clip(jnp.searchsorted(knots, s, side="right") - 1, 0, len(self.s) - 1)
        h = (knots[i + 1] - knots[i])[None]
        x = (s - knots[i])[None] / h
        a, b = values[:, i], values[:, i + 1]
        ma, mb = h * slopes[:, i], h * slopes[:, i + 1]
        c, d = 3 * (b - a) - 2 * ma - mb, 2 * (a - b) + ma + mb
        return jnp.stack(
            [
                a + x * (ma + x * (c + x * d)),
                (ma + x * (2 * c + 3 * x * d)) / h,
                (2 * c + 6 * x * d) / h**2,
            ]
        )

    def faults(self, robot: Robot, name: str) -> list[str]:
        """What does not fit the link of that name; names as in a file."""
        where = f"start.links.{name}"
        link = robot.links[robot.link_index(name)]
        if not link.elastic:
            return [f"{where}: the link is rigid; expected an elastic link. Leave it out."]
        if link.curvature is not None:
            return [f"{where}: the link is curved at rest; expected a straight one."]
        faults = [
            f"{where}.{field}: out of the plane; expected y only, as planar = true."
            for field in ("z", "z_rate")
            if robot.planar and getattr(self, field) is not None
        ]
        if faults or any(is_traced(x) for x in (self.y, self.z, link.length)):
            return faults
        stations = np.linspace(0.0, 1.0, 201)
        slope = self.push(lambda curve: curve(stations)[1])[0]
        steepest = np.max(np.linalg.norm(np.asarray(slope), axis=0)) / float(link.length)
        if steepest >= 1 and not any(j.telescopes and j.child == name for j in robot.tree_joints):
            faults.append(
                f"{where}: rises by {steepest:.3g} m per metre of the link; expected less than 1. "
                "Give smaller deflections, in metres, or smoother ones."
            )
        return faults


def _without_base(field: str, values: Float[Array, " n"]) -> Array:
    values = values.reshape(-1)
    if not is_traced(values) and values[0] != 0:
        raise ValueError(
            f"shape: {field}: {float(values[0]):g} at the base; expected 0. A link is measured "
            "from the tangent at its base; the joint's coordinate gives the position of the base."
        )
    return values[1:]


def _by_name(values: dict) -> dict[str, Array]:
    return {k: as_float(v) for k, v in values.items()}


class Start(eqx.Module):
    """Initial joint coordinates and rates, and initial shapes of elastic links.

    A joint that is not named starts at its ``home`` (or where its Motion starts) and at rest, a
    link that is not named starts undeformed. Motors of flexible joints start unstretched.

    Arguments:
        joints: joint coordinates by joint name, on the link side [rad or m].
        rates: joint rates by joint name [rad/s or m/s].
        motors: motor-side coordinates of flexible joints by joint name [rad or m].
        links: deflections of elastic links by link name, :class:`Shape` each.

    >>> import flexjax as fx
    >>> shape = fx.Shape(y=0.01)
    >>> start = fx.Start({"shoulder": 0.5}, rates={"shoulder": 2.0}, links={"upper": shape})
    """

    joints: dict[str, Array] = eqx.field(converter=_by_name, default_factory=dict)
    rates: dict[str, Array] = eqx.field(converter=_by_name, default_factory=dict)
    motors: dict[str, Array] = eqx.field(converter=_by_name, default_factory=dict)
    links: dict[str, Shape] = eqx.field(converter=dict, default_factory=dict)

    def __check_init__(self):
        for name, shape in self.links.items():
            if not isinstance(shape, Shape):
                raise ValueError(
                    f"start.links.{name}: {type(shape).__name__}; expected fx.Shape, e.g. "
                    "fx.Shape(y=0.02)."
                )

    def check(self, robot: Robot) -> None:
        known = {j.name: j for j in robot.tree_joints}
        for field in ("joints", "rates", "motors"):
            for name, value in getattr(self, field).items():
                if name not in known:
                    raise ValueError(
                        f"start.{field}.{name}: no such joint; expected one of {', '.join(known)}."
                    )
                dofs = known[name].dofs
                if value.size != dofs:
                    raise ValueError(
                        f"start.{field}.{name}: {value.size} numbers; expected {dofs} for a "
                        f"{known[name].type} joint."
                    )
        names = [link.name for link in robot.links]
        for name, shape in self.links.items():
            if name not in names:
                raise ValueError(
                    f"start.links.{name}: no such link; expected one of {', '.join(names)}."
                )
            faults = shape.faults(robot, name)
            if faults:
                raise ValueError("\n".join(faults))

    def shapes(self, robot: Robot, elastic: Callable[[int], bool], by: str) -> dict[int, Shape]:
        """Shapes by the index of their link; refused where the link is rigid in a formulation."""
        found = {robot.link_index(name): shape for name, shape in self.links.items()}
        for i in found:
            if not elastic(i):
                raise ValueError(
                    f"start.links.{robot.links[i].name}: the link is rigid in {by}; "
                    "expected an elastic one. Leave the shape out, or take another formulation."
                )
        return found

    def names(self, robot: Robot, field: str) -> np.ndarray:
        """Mask (D,) of the coordinates whose joint is named in ``field``."""
        named = getattr(self, field)
        return np.array([j.name in named for j in robot.tree_joints for _ in range(j.dofs)], bool)

    def vectors(
        self, robot: Robot
    ) -> tuple[Float[Array, " D"], Float[Array, " D"], Float[Array, " D"]]:
        """(coordinates, rates, motor coordinates), (D,) each, in robot order."""
        dtype = robot.gravity.dtype

        def full(value: NumbersLike, dofs: int) -> Array:
            return jnp.broadcast_to(jnp.asarray(value, dtype).reshape(-1), (dofs,))

        empty = jnp.zeros(0, dtype)
        q, qd, motor = [empty], [empty], [empty]
        for j in robot.tree_joints:
            home = 0.0 if j.home is None else j.home
            q.append(full(self.joints.get(j.name, home), j.dofs))
            qd.append(full(self.rates.get(j.name, 0.0), j.dofs))
            motor.append(full(self.motors.get(j.name, q[-1]), j.dofs))
        return jnp.concatenate(q), jnp.concatenate(qd), jnp.concatenate(motor)


def joint_start(
    robot: Robot, drive: Drive, t0: ScalarLike, start: Start
) -> tuple[Float[Array, " D"], Float[Array, " D"], Float[Array, " D"], Float[Array, " D"]]:
    """(coordinates, rates, motor coordinates, motor rates), (D,) each, at ``t0``.

    A Motion prescribes the motor. A flexible joint under a Motion starts unstretched unless
    ``start`` names it.
    """
    x, xd, xm = start.vectors(robot)
    target, rate, _ = drive.motion(robot, t0, None)
    prescribed = drive.prescribed(robot)
    sprung = np.array([j.flexible for j in robot.tree_joints for _ in range(j.dofs)], bool)
    x = jnp.where(prescribed & ~(sprung & start.names(robot, "joints")), target, x)
    link_rate = jnp.where(prescribed & ~(sprung & start.names(robot, "rates")), rate, xd)
    return x, link_rate, jnp.where(prescribed, target, xm), jnp.where(prescribed, rate, xd)


def directions(slope: Float[Array, "2 S"]) -> Float[Array, "S 3"]:
    """Unit tangents of a link that does not stretch, from dy/dx and dz/dx along it."""
    ahead = jnp.sqrt(1 - jnp.sum(slope**2, axis=0))
    return jnp.concatenate([ahead[None], slope]).T


def least_rotation(tangent: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The least rotation that takes the x axis into a unit tangent."""
    x, y, z = tangent
    k = 1 / (1 + x)
    return jnp.stack(
        [
            jnp.stack([x, -y, -z]),
            jnp.stack([y, 1 - k * y * y, -k * y * z]),
            jnp.stack([z, -k * y * z, 1 - k * z * z]),
        ]
    )


def untwisted(tangents: Float[Array, "S 3"]) -> Float[Array, "S 3 3"]:
    """Rotations of sections with these tangents, without torsion.

    Each follows from the one before (the first from the x axis) by the least rotation.
    """

    def rotate(R, tangent):
        R = R @ least_rotation(tangent @ R)
        return R, R

    return jax.lax.scan(rotate, jnp.eye(3, dtype=tangents.dtype), tangents)[1]
