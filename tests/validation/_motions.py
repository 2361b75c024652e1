"""Motions: spin-up, extending beam, flying beam, pendulum, and mechanisms with a loop."""

import jax.numpy as jnp
import numpy as np

import flexjax as fx
from tests.validation import _beams
from tests.validation._row import REFERENCE, Row, method, row


def spin_up(case: str, name: str) -> list[Row]:
    """Tip in the rotating frame at four times, relative to the largest deflection."""
    given = REFERENCE["spin_up"]
    times, u, v = np.array(given["rows"]).T
    model = method(name).bind(_beams.spin_up())
    drive = fx.Drive(joints={"hub": fx.Motion(fx.spin_up(6.0, 15.0))})
    ts = np.concatenate([[0.0], times])
    run = fx.simulate(model, drive, ts, dt=0.01, stations=2)
    found = np.asarray(run.deflection)[1:, 0, -1]
    size = np.abs(v).max()
    return [
        row(case, name, "across", found[:, 1], v, size),
        row(case, name, "along", found[:, 0], u, size),
    ]


def _first_mode(x):
    b = REFERENCE["frequencies"]["rows"]["clamped"]["beta"][0]
    s = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    return 0.5 * (jnp.cosh(b * x) - jnp.cos(b * x) - s * (jnp.sinh(b * x) - jnp.sin(b * x)))


def extending(case: str, name: str) -> list[Row]:
    """Tip of a beam that vibrates while a guide pays it out, relative to the first deflection."""
    given = REFERENCE["extending"]
    model = method(name).bind(_beams.boom())
    drive = fx.Drive(joints={"guide": fx.Motion(fx.quintic(5.0, 10.0, 4.0))})
    start = fx.Start(links={"boom": fx.Shape.of(y=lambda s: 0.05 * _first_mode(s))})
    run = fx.simulate(model, drive, given["t"], dt=2.5e-3, stations=2, start=start)
    found = np.asarray(run.tip)[:, 1]
    return [row(case, name, "tip", found, given["tip"], 0.05)]


def flying(case: str, name: str) -> list[Row]:
    """Centre of mass under a force and a moment at one end, and after; momentum."""
    given = REFERENCE["flying"]
    force, moment, end = given["force"], given["moment"], given["load_ends"]
    load = fx.stack(
        [
            fx.piecewise_constant([0.0, end], [value, 0.0])
            for value in (force, 0.0, 0.0, 0.0, 0.0, moment)
        ]
    )
    nodes, weights = np.polynomial.legendre.leggauss(12)
    s, weights = 0.5 * (nodes + 1), 0.5 * weights
    model = method(name).bind(_beams.flying())
    ts = np.array([0.0, 1.25, 2.5, 3.5])
    run = fx.simulate(
        model, fx.Drive(loads=(fx.Load("beam", load, s=0.0),)), ts, dt=0.01, stations=s
    )
    points = np.asarray(run.frames)[:, 0, :, :3]
    centre = np.einsum("tsx,s->tx", points, weights)
    mass = given["beam"]["rhoA"] * given["beam"]["L"]
    speed = force / mass * end
    exact = np.where(ts < end, 0.5 * force / mass * ts**2, 0.5 * speed * end + speed * (ts - end))
    return [
        row(case, name, "centre of mass, x", centre[:, 0] - centre[0, 0], exact, 10.0),
        row(case, name, "centre of mass, y", centre[:, 1], 0 * ts, 10.0),
    ]


def right_angle(case: str, name: str) -> list[Row]:
    """Corner and tip out of the plane at 1, 2, 3 and 4 s, against a finer PortHamiltonian."""
    load, zero = REFERENCE["right_angle"]["force"], fx.constant(0.0)
    force = fx.ramp(load, 1.0) + fx.ramp(-load, 1.0, 1.0)
    wrench = fx.stack([zero, zero, force, zero, zero, zero])
    drive = fx.Drive(loads=(fx.Load("first", wrench),))
    found = []
    for made in (method(name), fx.PortHamiltonian(elements=32)):
        model = made.bind(_beams.right_angle())
        run = fx.simulate(model, drive, [0.0, 1.0, 2.0, 3.0, 4.0], dt=0.02, stations=2)
        found.append(np.asarray(run.frames)[1:, :, -1, 2])
    words = enumerate(("corner", "tip"))
    return [row(case, name, word, found[0][:, k], found[1][:, k], 10.0) for k, word in words]


def pendulum(case: str, name: str) -> list[Row]:
    """Angle after a quarter and three quarters of the exact period, where the rod is fastest."""
    period = REFERENCE["pendulum"]["period"]
    model = method(name).bind(_beams.pendulum())
    ts = np.array([0.0, 0.25, 0.5, 0.75]) * period
    run = fx.simulate(model, None, ts, substeps=250, start={"pin": 0.0})
    q = np.asarray(run.q)[:, 0]
    exact = np.pi * np.array([-0.5, -1.0, -0.5])
    return [row(case, name, "angle after quarters of a period", q[1:], exact, 1.0)]


def four_bar(case: str, name: str) -> list[Row]:
    """Angles of coupler and rocker by Freudenstein's equation, at a driven crank."""
    given = REFERENCE["four_bar"]
    model = method(name).bind(_beams.four_bar())
    begin, end = given["crank_angles"][0], given["crank_angles"][-1]
    drive = fx.Drive(joints={"A": fx.Motion(fx.polynomial((begin, end - begin)))})
    ts = (np.array(given["crank_angles"]) - begin) / (end - begin)
    run = fx.simulate(model, drive, ts, dt=1e-2)
    q = np.asarray(run.q)
    coupler, rocker = q[:, 0] + q[:, 1], q[:, 0] + q[:, 1] + q[:, 2]
    return [
        row(case, name, "angle of the coupler [rad]", coupler, given["coupler_angles"], 1.0),
        row(case, name, "angle of the rocker [rad]", rocker, given["rocker_angles"], 1.0),
    ]


def slider_crank(case: str, name: str) -> list[Row]:
    """Place of the slider, r cos(theta) + sqrt(l^2 - r^2 sin(theta)^2)."""
    given = REFERENCE["slider_crank"]
    model = method(name).bind(_beams.slider_crank())
    begin = given["home"][0]
    drive = fx.Drive(joints={"A": fx.Motion(fx.polynomial((begin, 2 * np.pi)))})
    ts = np.linspace(0.0, 1.0, 9)
    run = fx.simulate(model, drive, ts, dt=1e-2)
    angle = begin + 2 * np.pi * ts
    r, l = given["crank"], given["rod"]
    exact = r * np.cos(angle) + np.sqrt(l**2 - (r * np.sin(angle)) ** 2)
    return [row(case, name, "place of the slider [m]", np.asarray(run.q)[:, 2], exact, 1.0)]
