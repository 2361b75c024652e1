"""One start in every formulation: place and velocity of the tip, gradients, and the motion that
follows.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.screw import se3
from tests.contract_cases import ELASTIC, each, light, method, settings
from tests.start.rods import OMEGA, first_mode, rod


def chosen(name: str):
    return method(name, "shapes")


def limits(name: str) -> dict[str, float]:
    """Discretisation errors: of the tip's place at the start of a bent, turning link, and of the
    first frequency."""
    return {"tip": 1e-5, "frequency": 1e-4} | settings(name, "shapes")


def supporting(names, **how) -> list[str]:
    return [name for name in names if not chosen(name).refusals(rod("revolute", **how))]


QUICK = {"plane": ELASTIC, "space": light("shapes in space")}
CASES = [
    pytest.param(where, name, marks=() if name in QUICK[where] else pytest.mark.slow)
    for where in QUICK
    for name in supporting(ELASTIC, planar=where == "plane")
]
TIP = jnp.ones(1)


def y(s):
    return 0.03 * (1 - np.cos(2 * s))


def z(s):
    return 0.02 * s**2


def bent(space: bool) -> fx.Shape:
    out = {"z": z, "z_rate": lambda s: -0.3 * s**3} if space else {}
    return fx.Shape.of(y=y, y_rate=lambda s: 0.5 * s**2, **out)


def exact_tip(space: bool, q: float, qd: float):
    """Position and velocity of the tip of an inextensible rod at angle q and rate qd."""
    s = np.linspace(0.0, 1.0, 20001)
    slopes, rates = [np.gradient(y(s), s, edge_order=2)], [s]
    tip, rate = [y(1.0)], [0.5]
    if space:
        slopes, rates = [*slopes, 0.04 * s], [*rates, -0.9 * s**2]
        tip, rate = [*tip, z(1.0)], [*rate, -0.3]
    ahead = np.sqrt(1 - sum(x**2 for x in slopes))
    back = -sum(a * b for a, b in zip(slopes, rates, strict=True)) / ahead
    place = np.array([np.trapezoid(ahead, s), *tip, 0.0][:3])
    speed = np.array([np.trapezoid(back, s), *rate, 0.0][:3])
    speed = speed + qd * np.array([-place[1], place[0], 0.0])
    R = np.array([[np.cos(q), -np.sin(q), 0.0], [np.sin(q), np.cos(q), 0.0], [0.0, 0.0, 1.0]])
    return R @ place, R @ speed


def tip_of(model, drive, state):
    """Place and velocity of the tip in world axes, from the frames at the start and along the
    motion.
    """
    zero = jnp.zeros(())
    o = model.observe(zero, state, drive, TIP)
    R = se3.quat_to_matrix(o.frames[0, 0, 3:])
    return o.frames[0, 0, :3], R @ o.velocity[0, 0, :3], o.qd


@pytest.mark.parametrize(("where", "name"), CASES)
def test_a_bent_turning_link_starts_alike(where, name, record_number):
    space = where == "space"
    model, limit = chosen(name).bind(rod("revolute", planar=not space)), limits(name)["tip"]
    drive = fx.Drive(joints={"pin": fx.Motion(fx.polynomial([0.4, 1.5]))})
    start = fx.Start(links={"rod": bent(space)})
    start.check(model.robot)
    place, speed, qd = jax.jit(
        lambda start: tip_of(model, drive, model.initial_state(drive, jnp.zeros(()), start))
    )(start)
    wanted, wanted_speed = exact_tip(space, 0.4, 1.5)
    record_number(
        f"start of a bent link, {name}, {where}: place of the tip [m]",
        float(np.max(np.abs(place - wanted))),
        limit,
    )
    record_number(
        f"start of a bent link, {name}, {where}: velocity of the tip [m/s]",
        float(np.max(np.abs(speed - wanted_speed))),
        20 * limit,
    )
    assert float(qd[0]) == pytest.approx(1.5)


@pytest.mark.parametrize(("where", "name"), CASES)
def test_derivatives_of_the_start(where, name):
    """Both modes agree with differences, also at the straight link."""
    space = where == "space"
    model = chosen(name).bind(rod("revolute", planar=not space))
    drive = fx.Drive()
    direction = bent(space)

    def numbers(a):
        shape = jax.tree_util.tree_map(lambda x: a * x, direction)
        state = model.initial_state(
            drive, jnp.zeros(()), fx.Start({"pin": 0.3}, links={"rod": shape})
        )
        return jnp.concatenate([jnp.ravel(x) for x in jax.tree_util.tree_leaves(state.mech)])

    h = 1e-4

    @jax.jit
    def derivatives(a):
        difference = (numbers(a + h) - numbers(a - h)) / (2 * h)
        return jax.jacfwd(numbers)(a), jax.jacrev(numbers)(a), difference

    for a in (0.0, 1.0):
        forward, reverse, difference = derivatives(a)
        np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(forward, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", each(light(), of=ELASTIC))
def test_a_released_link_swings_in_its_first_mode(name, record_number):
    model = chosen(name).bind(rod())
    steps, period = 200, 2 * np.pi / OMEGA
    ts = np.linspace(0.0, 2 * period, 33)
    start = fx.Start(links={"rod": fx.Shape.of(y=lambda s: 1e-3 * first_mode(s))})
    traj = fx.simulate(model, None, ts, dt=period / steps, start=start, stations=2)
    tip = np.asarray(traj.tip[:, 1]) / 1e-3
    # The cosine that fits best, about the first frequency.
    w = OMEGA * np.linspace(0.99, 1.01, 4001)
    basis = np.cos(w[:, None] * ts)
    size = basis @ tip / np.sum(basis**2, axis=1)
    best = int(np.argmin(np.sum((size[:, None] * basis - tip) ** 2, axis=1)))
    own = 2 * np.pi * float(fx.modes(model, n=1).frequencies[0])
    # An implicit step of second order lowers a frequency by (w h)^2 / 12 of it, or by a third of
    # that.
    lag = (2 * np.pi / steps) ** 2 / 12
    limit = limits(name)["frequency"]
    record_number(f"released link, {name}: frequency of the model", abs(own / OMEGA - 1), limit)
    record_number(f"released link, {name}: frequency of the run", abs(w[best] / own - 1), 1.5 * lag)
    record_number(f"released link, {name}: amplitude", abs(size[best] - 1), 1e-3)
    rest = float(np.max(np.abs(size[best] * basis[best] - tip)))
    record_number(f"released link, {name}: what is not first mode", rest, 2e-3)


def test_release_from_the_equilibrium_under_a_force():
    """A rod held by a force at its tip, then let go: it starts at F L^3 / 3 EI and swings about
    zero.
    """
    model = fx.TransferMatrix(segments=10).bind(rod())
    push = fx.Load("rod", fx.constant([0.0, 0.03, 0.0, 0.0, 0.0, 0.0]))
    held = fx.equilibrium(model, fx.Drive(loads=[push]))
    period = 2 * np.pi / OMEGA
    traj = fx.simulate(
        model, None, np.array([0.0, 0.5, 1.0]) * period, dt=period / 100, start=held, stations=2
    )
    np.testing.assert_allclose(traj.tip[:, 1], [0.01, -0.01, 0.01], rtol=0.1)
    assert float(traj.tip[0, 1]) == pytest.approx(0.01, rel=5e-3)
    # The same from the shape that a force at the tip makes.
    bent = fx.Start(links={"rod": fx.Shape(y=0.01)})
    again = fx.simulate(model, None, traj.ts, dt=period / 100, start=bent, stations=2)
    np.testing.assert_allclose(again.tip, traj.tip, atol=1e-4)


@pytest.mark.parametrize("name", supporting(ELASTIC, count=2))
def test_the_next_link_goes_on_along_the_tangent(name):
    model = chosen(name).bind(rod("revolute", count=2))
    drive = fx.Drive(
        joints={k: fx.Motion(fx.constant(v)) for k, v in (("pin", 0.2), ("pin2", -0.1))}
    )
    start = fx.Start(links={"rod": fx.Shape(y=0.05)})
    ends = jnp.array([0.0, 1.0])

    @jax.jit
    def look(start):
        state = model.initial_state(drive, jnp.zeros(()), start)
        return model.observe(jnp.zeros(()), state, drive, ends).frames

    frames = look(start)
    along = np.asarray(frames[1, 1, :2] - frames[1, 0, :2])
    slope = 1.5 * 0.05
    # The tangent at the tip: arcsin(slope), or slope in linear kinematics, which is 7e-5 less.
    angle = 0.2 + np.arcsin(slope) - 0.1
    assert np.arctan2(along[1], along[0]) == pytest.approx(angle, abs=2e-3)
