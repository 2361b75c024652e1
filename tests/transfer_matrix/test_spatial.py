"""The spatial chain: planar motion equal to the planar version, energy, symmetry, and a swing beside another
formulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.term import State

SOFT = fx.Material(E=5e9, nu=0.3, rho=1200.0)


def flat_arm(planar: bool) -> fx.Robot:
    damped = fx.Damping(strain_rate=2e-3)
    links = (
        fx.Link("a", 0.4, section=fx.Rectangle(0.02, 0.01), material=SOFT, damping=damped),
        fx.Link("b", 0.3, section=fx.Rectangle(0.02, 0.008), material=SOFT),
    )
    joints = (
        fx.Joint("j1", "revolute", "ground", "a", stiffness=100.0, damping=0.1, offset=(0.1, 0.05, 0.0)),
        fx.Joint("j2", "revolute", "a", "b", damping=0.02, rotation=(0.0, 0.0, 0.3), offset=(0.01, 0.02, 0.0)),
    )
    payload = fx.Payload("p", "b", 0.1, inertia=1e-4, offset=(0.01, 0.02, 0.0))
    return fx.Robot("flat", links, joints, (payload,), (), planar=planar)


def flat_drive() -> fx.Drive:
    move = fx.Motion(fx.quintic(0.1, 0.5, 0.4, begin=-0.05))
    return fx.Drive(joints={"j1": move, "j2": fx.PD(2.0, 0.05, fx.constant(0.4))})


def swing_arm() -> fx.Robot:
    """A universal joint, a revolute one across it, a payload beside the axis: bending both ways, and torsion."""
    links = (
        fx.Link("a", 0.5, section=fx.Rectangle(0.012, 0.01), material=SOFT),
        fx.Link("b", 0.4, section=fx.Rectangle(0.008, 0.01), material=SOFT),
    )
    joints = (
        fx.Joint("j1", "universal", "ground", "a", axis=(0.0, 0.0, 1.0), axis2=(0.0, 1.0, 0.0)),
        fx.Joint("j2", "revolute", "a", "b", axis=(0.0, 1.0, 0.0), damping=0.01),
    )
    payload = fx.Payload("p", "b", 0.05, inertia=1e-5, offset=(0.0, 0.0, 0.02))
    return fx.Robot("swing", links, joints, (payload,), ())


START = Start(joints={"j1": (0.3, -0.2), "j2": 0.4})


def _march(method, robot, drive, start, dt, steps):
    model = method.bind(robot)

    @jax.jit
    def run(dt, steps):
        term, t0 = model.term(drive), jnp.asarray(0.0)
        y0 = model.initial_state(drive, t0, start)

        def step(i, carry):
            y, carried, _ = term.advance(i * dt, (i + 1) * dt, *carry, None, method.beta, method.gamma)
            return y, carried

        y, _ = jax.lax.fori_loop(0, steps, step, (y0, term.start(t0, y0, None)))
        place = term.points(y.mech, term.ground(t0, None)) if robot.planar else term.points(y.mech)
        first, last = model.energy(t0, y0, drive), model.energy(dt * steps, y, drive)
        return place[0][-1], place[1][-1], first, last

    return run(jnp.asarray(dt), steps)


def test_planar_motion_equals_the_planar_version(record_number):
    flat, space = (
        _march(fx.TransferMatrix(segments=4), flat_arm(planar), flat_drive(), Start(), 2e-3, 50)
        for planar in (True, False)
    )
    worst = max(np.abs(a - b[:2]).max() for a, b in zip(flat[:2], space[:2], strict=True))
    record_number("planar motion in space against the plane: tip [m], [m/s]", worst, 1e-10)
    a, b = (np.array([getattr(x[3], k) for k in ("kinetic", "elastic", "work", "dissipated")]) for x in (flat, space))
    record_number("planar motion in space against the plane: energies [J]", np.abs(a - b).max(), 1e-10)


@pytest.mark.slow
def test_energy_rate_is_power_in_space(record_number):
    """d/dt of the energies along the equations of motion = power of drive less dissipation, at a bent moving state."""
    model = fx.TransferMatrix(segments=3).bind(swing_arm())
    drive = fx.Drive(joints={"j1": fx.Effort(fx.constant((0.3, -0.2))), "j2": fx.Motion(fx.sine(0.4, 1.3))})
    term, t = model.term(drive), jnp.asarray(0.23)
    y = model.initial_state(drive, t, Start(joints={"j1": (0.3, -0.2)}))
    rng = np.random.default_rng(0)
    q = term.moved(y.mech.q, jnp.asarray(0.05 * rng.normal(size=y.mech.v.shape)))
    mech = type(y.mech)(q, jnp.asarray(rng.normal(size=y.mech.v.shape)))
    y = State(mech, y.work, y.dissipated, y.memory)

    @jax.jit
    def slope(y):
        rate = term.rate(t, y, None)

        def energy(h):
            moved = term.retract(y.mech, jax.tree.map(lambda x: h * x, rate))
            return model.energy(t + h, State(moved, y.work, y.dissipated, y.memory), drive).mechanical

        return jax.jvp(energy, (0.0,), (1.0,))[1], *term.power(t, y, None)

    change, power, lost = slope(y)
    gap = abs(float(change - power + lost)) / abs(float(change))
    record_number("spatial chain: energy rate against power", gap, 1e-9)


@pytest.mark.slow
def test_every_output_of_a_planar_motion(record_number):
    ts = jnp.linspace(0.0, 0.1, 3)
    flat, space = (
        fx.simulate(fx.TransferMatrix(segments=3).bind(flat_arm(p)), flat_drive(), ts, dt=2e-3, stations=4)
        for p in (True, False)
    )
    outputs = ("q", "qd", "qdd", "motor", "effort", "frames", "velocity", "acceleration", "deflection", "strain")
    for field in (*outputs, "reaction"):
        a, b = np.asarray(getattr(flat, field)), np.asarray(getattr(space, field))
        record_number(f"planar motion in space, {field}", np.abs(a - b).max() / (1e-3 + np.abs(a).max()), 1e-10)


@pytest.mark.slow
def test_swing_in_space_against_port_hamiltonian(record_number):
    """Both refined: what is left is what shear and extension add, which the segments do not have."""
    ts = jnp.linspace(0.0, 0.3, 4)
    tips = [
        np.asarray(fx.simulate(method.bind(swing_arm()), None, ts, substeps=100, start=START, stations=2).tip[1:])
        for method in (fx.TransferMatrix(segments=4), fx.TransferMatrix(segments=16), fx.PortHamiltonian(elements=8))
    ]
    gaps = [np.linalg.norm(tips[k] - tips[2], axis=1).max() for k in (0, 1)]
    record_number("swing in space against PortHamiltonian, 16 segments [m]", gaps[1], 1e-4)
