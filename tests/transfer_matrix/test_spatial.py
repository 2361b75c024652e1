"""The spatial chain: planar motion equal to the planar version, energy, symmetry, and a swing
beside another formulation.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import State

SOFT = fx.Material(E=5e9, nu=0.3, rho=1200.0)


def flat_arm(planar: bool, stops=None) -> fx.Robot:
    damped = fx.Damping(strain_rate=2e-3)
    links = (
        fx.Link("a", 0.4, section=fx.Rectangle(0.02, 0.01), material=SOFT, damping=damped),
        fx.Link("b", 0.3, section=fx.Rectangle(0.02, 0.008), material=SOFT),
    )
    joints = (
        fx.Joint(
            "j1", "revolute", "ground", "a", stiffness=100.0, damping=0.1, offset=(0.1, 0.05, 0.0)
        ),
        fx.Joint(
            "j2",
            "revolute",
            "a",
            "b",
            damping=0.02,
            rotation=(0.0, 0.0, 0.3),
            offset=(0.01, 0.02, 0.0),
            stops=stops,
        ),
    )
    payload = fx.Payload("p", "b", 0.1, inertia=1e-4, offset=(0.01, 0.02, 0.0))
    return fx.Robot("flat", links, joints, (payload,), (), planar=planar)


def flat_drive(loads=()) -> fx.Drive:
    move = fx.Motion(fx.quintic(0.1, 0.5, 0.4, begin=-0.05))
    return fx.Drive(joints={"j1": move, "j2": fx.PD(2.0, 0.05, fx.constant(0.4))}, loads=loads)


STOPS = fx.Stops(-0.1, 0.1, 20.0, 0.05)
LOADS = (
    fx.Load("a", fx.constant(jnp.array([0.5, 2.0, 0.0, 0.0, 0.0, 0.05])), s=0.4),
    fx.Load("b", fx.constant(jnp.array([1.0, -0.5, 0.0, 0.0, 0.0, 0.02])), s=0.9, frame="section"),
)


def swing_arm(stops=None) -> fx.Robot:
    """A universal joint, a revolute one across it, a payload beside the axis: bending both ways,
    and torsion.
    """
    links = (
        fx.Link("a", 0.5, section=fx.Rectangle(0.012, 0.01), material=SOFT),
        fx.Link("b", 0.4, section=fx.Rectangle(0.008, 0.01), material=SOFT),
    )
    joints = (
        fx.Joint("j1", "universal", "ground", "a", axis=(0.0, 0.0, 1.0), axis2=(0.0, 1.0, 0.0)),
        fx.Joint("j2", "revolute", "a", "b", axis=(0.0, 1.0, 0.0), damping=0.01, stops=stops),
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
            y, carried, _ = term.advance(
                i * dt, (i + 1) * dt, *carry, None, method.beta, method.gamma
            )
            return y, carried

        y, _ = jax.lax.fori_loop(0, steps, step, (y0, term.start(t0, dt, y0, None)))
        place = term.points(term.instant(t0, None), y.mech)
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
    a, b = (
        np.array([getattr(x[3], k) for k in ("kinetic", "elastic", "work", "dissipated")])
        for x in (flat, space)
    )
    record_number(
        "planar motion in space against the plane: energies [J]", np.abs(a - b).max(), 1e-10
    )


@pytest.mark.slow
def test_loads_and_stops_of_a_planar_motion(record_number):
    """Forces and torques inside links, in world and in section axes, and a joint that runs into its
    stop.
    """
    flat, space = (
        _march(
            fx.TransferMatrix(segments=4),
            flat_arm(planar, STOPS),
            flat_drive(LOADS),
            Start(),
            2e-3,
            50,
        )
        for planar in (True, False)
    )
    free = _march(
        fx.TransferMatrix(segments=4), flat_arm(True), flat_drive(LOADS), Start(), 2e-3, 50
    )
    assert np.abs(free[0] - flat[0]).max() > 1e-3  # the stop acts
    worst = max(np.abs(a - b[:2]).max() for a, b in zip(flat[:2], space[:2], strict=True))
    record_number("loads and stops in space against the plane: tip [m], [m/s]", worst, 1e-10)
    a, b = (
        np.array([getattr(x[3], k) for k in ("kinetic", "elastic", "dissipated")])
        for x in (flat, space)
    )
    record_number(
        "loads and stops in space against the plane: energies [J]", np.abs(a - b).max(), 1e-10
    )
    # Work of torques is summed along quaternions instead of angles: apart by the cube of a step's
    # turn.
    gap = abs(float(flat[3].work - space[3].work)) / abs(float(flat[3].work))
    record_number("loads and stops in space against the plane: work", gap, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True])
def test_energy_rate_is_power_in_space(loaded, record_number):
    """d/dt of the energies along the equations of motion = power of drive less dissipation, at a
    bent moving state.
    """
    robot = swing_arm(STOPS) if loaded else swing_arm()
    model = fx.TransferMatrix(segments=3).bind(robot)
    second = fx.Effort(fx.constant(0.1)) if loaded else fx.Motion(fx.sine(0.4, 1.3))
    push = fx.constant(jnp.array([0.5, 2.0, -0.7, 0.03, -0.02, 0.05]))
    loads = (
        (fx.Load("a", push, s=0.4), fx.Load("b", push, s=0.9, frame="section")) if loaded else ()
    )
    drive = fx.Drive(joints={"j1": fx.Effort(fx.constant((0.3, -0.2))), "j2": second}, loads=loads)
    term, t = model.term(drive), jnp.asarray(0.23)
    y = model.initial_state(
        drive, t, Start(joints={"j1": (0.3, -0.2)} | ({"j2": 0.4} if loaded else {}))
    )
    rng = np.random.default_rng(0)
    q = term.moved(y.mech.q, jnp.asarray(0.05 * rng.normal(size=y.mech.v.shape)))
    mech = dataclasses.replace(y.mech, q=q, v=jnp.asarray(rng.normal(size=y.mech.v.shape)))
    y = State(mech, y.work, y.dissipated, y.memory)

    @jax.jit
    def slope(y):
        rate = term.rate(t, y, None)

        def energy(h):
            moved = term.retract(y.mech, jax.tree.map(lambda x: h * x, rate))
            return model.energy(
                t + h, State(moved, y.work, y.dissipated, y.memory), drive
            ).mechanical

        return jax.jvp(energy, (0.0,), (1.0,))[1], *term.power(t, y, None)

    change, power, lost = slope(y)
    gap = abs(float(change - power + lost)) / abs(float(change))
    record_number(f"spatial chain: energy rate against power, loads and stops {loaded}", gap, 1e-9)


@pytest.mark.slow
def test_every_output_of_a_planar_motion(record_number):
    ts = jnp.linspace(0.0, 0.1, 3)
    flat, space = (
        fx.simulate(
            fx.TransferMatrix(segments=3).bind(flat_arm(p)), flat_drive(), ts, dt=2e-3, stations=4
        )
        for p in (True, False)
    )
    outputs = (
        "q",
        "qd",
        "qdd",
        "motor",
        "effort",
        "frames",
        "velocity",
        "acceleration",
        "deflection",
        "strain",
    )
    for field in (*outputs, "reaction"):
        a, b = np.asarray(getattr(flat, field)), np.asarray(getattr(space, field))
        record_number(
            f"planar motion in space, {field}",
            np.abs(a - b).max() / (1e-3 + np.abs(a).max()),
            1e-10,
        )


def _swing(method, robot, substeps=100):
    ts = jnp.linspace(0.0, 0.3, 4)
    return np.asarray(
        fx.simulate(method.bind(robot), None, ts, substeps=substeps, start=START, stations=2).tip[
            1:
        ]
    )


@pytest.mark.slow
def test_swing_in_space_beside_port_hamiltonian(record_number):
    """What is left at 16 segments is the other's mesh and shear (8 elements)."""
    want = _swing(fx.PortHamiltonian(elements=8), swing_arm())
    gap = np.linalg.norm(_swing(fx.TransferMatrix(segments=16), swing_arm()) - want, axis=1).max()
    record_number("swing in space against PortHamiltonian, 16 segments [m]", gap, 1e-4)


@pytest.mark.slow
def test_swing_in_space_beside_screw_synthesis(record_number):
    """The payload's inertia sits on the last segment, first order, so the gap halves.

    Steps of 1/8 ms and five modes: at 1 ms both are off by 1e-5 m in time, and three modes by
    6.7e-6 m, more than the gap of 16 segments.
    """
    want = _swing(fx.ScrewSynthesis(modes=5), swing_arm(), 800)
    ours = [_swing(fx.TransferMatrix(segments=n), swing_arm(), 800) for n in (4, 8, 16)]
    gaps = [np.linalg.norm(x - want, axis=1).max() for x in ours]
    record_number("swing in space against ScrewSynthesis, 16 segments [m]", gaps[2], 5e-6)
    record_number(
        "swing in space against ScrewSynthesis, gap of 8 over that of 4 segments",
        gaps[1] / gaps[0],
        0.8,
    )
    record_number(
        "swing in space against ScrewSynthesis, gap of 16 over that of 8 segments",
        gaps[2] / gaps[1],
        0.8,
    )


def _welded(pieces: int) -> fx.Robot:
    links = [
        fx.Link(f"l{i}", 0.6 / pieces, section=fx.Rectangle(0.012, 0.01), material=SOFT)
        for i in range(pieces)
    ]
    joints = [
        fx.Joint(
            "j0",
            "universal",
            "ground",
            "l0",
            axis=(0.0, 0.0, 1.0),
            axis2=(0.0, 1.0, 0.0),
            damping=0.02,
        )
    ]
    joints += [fx.Joint(f"j{i}", "fixed", f"l{i - 1}", f"l{i}") for i in range(1, pieces)]
    payload = fx.Payload("p", links[-1].name, 0.05, inertia=1e-5, offset=(0.0, 0.0, 0.02))
    return fx.Robot("welded", tuple(links), tuple(joints), (payload,), ())


@pytest.mark.slow
def test_fixed_joints_in_space(record_number):
    """A link cut in two and welded moves like that link, on a universal joint."""
    ends = []
    for pieces in (1, 2):
        start = Start(joints={"j0": (0.3, -0.2)})
        ends.append(
            _march(
                fx.TransferMatrix(segments=6 // pieces),
                _welded(pieces),
                fx.Drive(),
                start,
                2e-3,
                60,
            )
        )
    (whole, speed, _, _), (cut, cut_speed, _, last) = ends
    record_number("welded link in space: tip [m]", np.abs(whole - cut).max(), 1e-10)
    record_number(
        "welded link in space: speed of the tip [m/s]", np.abs(speed - cut_speed).max(), 1e-8
    )
    assert float(last.elastic) > 1e-6  # it bends


@pytest.mark.slow
def test_order_in_the_segment_length_in_space(record_number):
    """The swing with a point mass at the tip.

    Its elbow is damped: a torque that follows the joint's rate acts in series with the half
    segments beside it, and is of first order where the rate of the bodies is taken instead. From 8
    segments (the change from 4 to 8 is still six times that to 16), in steps of 1/8 ms: at 1 ms
    what the step leaves is 1e-5 m, ten times these changes, and orders scatter between 1.8 and 2.2.
    """
    arm = swing_arm()
    arm = fx.Robot(arm.name, arm.links, arm.joints, (fx.Payload("p", "b", 0.05),), ())
    tips = [_swing(fx.TransferMatrix(segments=n), arm, 800) for n in (8, 16, 32)]
    order = np.log2(np.linalg.norm(tips[0] - tips[1]) / np.linalg.norm(tips[1] - tips[2]))
    record_number(
        "swing in space: order in the segment length, damped joint, point mass",
        order,
        (1.85, 2.15),
        "in",
    )


def test_start_of_a_flexible_joint_under_a_motion():
    """The start stretches the spring of a joint whose motor a Motion holds, as in the plane."""
    start, t = Start(joints={"j1": 0.4}, rates={"j1": 0.2}), jnp.asarray(0.0)
    flat, space = (
        fx.TransferMatrix(segments=2).bind(flat_arm(p)).initial_state(flat_drive(), t, start).mech
        for p in (True, False)
    )
    quat = space.q.reshape(-1, 4)
    np.testing.assert_allclose(2 * jnp.arctan2(quat[:, 3], quat[:, 0]), flat.q[:4], atol=1e-14)
    np.testing.assert_allclose(space.v.reshape(-1, 3)[:, 2], flat.v[:4], atol=1e-14)
