"""Robots in Exudyn: rigid mechanisms agree to the error of the steps, elastic ones with the
formulation of geometrically exact beams; what has no counterpart is refused."""

import dataclasses
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

pytestmark = pytest.mark.outside
END = 0.2
TS = np.linspace(0.0, END, 11)


def rigid_arm() -> fx.Robot:
    """Two hinges and a slide in space: offsets, hub, rotor, damping, friction, end stops."""
    links = [
        fx.Link(
            name,
            0.4,
            body=fx.Body(mass, (0.2, 0.01, -0.02), (2e-3, 8e-3, 9e-3, 1e-4, 0.0, 2e-4)),
            rigid=True,
        )
        for name, mass in (("upper", 0.8), ("slide", 0.5), ("hand", 0.3))
    ]
    joints = [
        fx.Joint(
            "shoulder",
            "revolute",
            "ground",
            "upper",
            axis=(0.2, 0.1, 1.0),
            offset=(0.02, 0.01, 0.03),
            rotation=(0.1, 0.2, 0.3),
            home=0.4,
            damping=0.2,
            friction=fx.Friction(0.2, v_eps=0.3),
            hub=fx.Hub(0.2, 5e-3),
        ),
        fx.Joint(
            "guide",
            "prismatic",
            "upper",
            "slide",
            axis=(1.0, 0.2, 0.1),
            rotation=(0.0, 0.4, 0.0),
            home=0.05,
            damping=3.0,
            friction=fx.Friction(0.3, v_eps=0.2),
        ),
        fx.Joint(
            "wrist",
            "revolute",
            "slide",
            "hand",
            axis=(0.0, 1.0, 0.2),
            offset=(0.01, 0.0, 0.02),
            home=0.3,
            stops=fx.Stops(-0.5, 0.2, 8.0, 0.1),
        ),
    ]
    tool = fx.Payload("tool", "hand", 0.2, inertia=(1e-4, 2e-4, 3e-4), offset=(0.01, 0.02, 0.0))
    return fx.Robot("rigid", links, joints, [tool], gravity=(0.5, -9.0, 1.0))


def rigid_drive() -> fx.Drive:
    zero = fx.constant(0.0)
    push = [fx.constant(x) for x in (0.5, -0.3, 0.2, 0.02, 0.01, -0.03)]
    shake = fx.quintic(0.0, 0.05, 0.3, begin=-0.05)
    return fx.Drive(
        joints={
            "shoulder": fx.PD(15.0, 0.5, fx.quintic(0.4, 0.9, 0.4), limit=4.0),
            "guide": fx.PD(200.0, 5.0, fx.quintic(0.05, 0.1, 0.3)),
            "wrist": fx.Effort(fx.sine(0.3, 3.0)),
        },
        loads=[fx.Load("hand", fx.stack(push), frame="section"), fx.Load("upper", fx.stack(push))],
        base=fx.Base(fx.stack([shake, zero, -0.4 * shake]), shake, axis=(0.3, 1.0, 0.2)),
    )


@pytest.mark.slow
def test_a_rigid_mechanism_in_space(record_number):
    pytest.importorskip("exudyn")
    robot, drive = rigid_arm(), rigid_drive()
    start = fx.Start(rates={"shoulder": 0.5, "wrist": -0.4})
    model = fx.RigidArm().bind(robot)
    tips, theirs = [], []
    for dt in (2e-3, 1e-3):
        tips.append(np.asarray(fx.simulate(model, drive, TS, dt=dt, start=start, stations=2).tip))
        found = fx.to_exudyn(robot, drive, start=start).run(TS, dt / 2)
        theirs.append(found.tip)
    ours, others = ((4 * fine - coarse) / 3 for coarse, fine in (tips, theirs))
    apart = np.max(np.linalg.norm(ours - others, axis=1))
    record_number("rigid mechanism in Exudyn: tip, extrapolated [m]", apart, 2e-5)


AXIS, SLIDE, TURN = (0.2, 0.1, 1.0), (1.0, 0.5, 0.3), (0.1, 0.2, 0.3)
GRAVITY = (0.5, -9.0, 1.0)
UPPER = fx.Body(0.8, (0.2, 0.0, 0.0), (2e-3, 8e-3, 9e-3, 0.0, 0.0, 0.0))
SLED = fx.Body(0.5, (0.05, 0.02, 0.01), (1e-3, 2e-3, 2.5e-3, 0.0, 0.0, 0.0))
TORQUE, FORCE, SPRING, DAMPER = 1.0, -0.7, 30.0, 2.0


def slider() -> fx.Robot:
    """A sled on a skew axis of an arm that turns about a skew one."""
    links = [fx.Link("upper", 0.4, body=UPPER, rigid=True)]
    links += [fx.Link("sled", 0.1, body=SLED, rigid=True)]
    joints = [fx.Joint("shoulder", "revolute", "ground", "upper", axis=AXIS)]
    given = dict(axis=SLIDE, rotation=TURN, damping=DAMPER)
    joints += [fx.Joint("guide", "prismatic", "upper", "sled", **given)]
    return fx.Robot("slider", links, joints, gravity=GRAVITY)


def by_newton(ts, start):
    """Angle and way by Newton's law of the sled in the turning frame, without flexjax."""
    from scipy.integrate import solve_ivp
    from scipy.spatial.transform import Rotation

    k, turned = np.array(AXIS) / np.linalg.norm(AXIS), Rotation.from_rotvec(TURN).as_matrix()
    d = turned @ np.array(SLIDE) / np.linalg.norm(SLIDE)
    centre, inertia = turned @ np.array(SLED.com), turned @ np.diag(SLED.inertia[:3]) @ turned.T
    arm, m = np.cross(k, UPPER.com), float(SLED.mass)
    turning = k @ np.diag(UPPER.inertia[:3]) @ k + float(UPPER.mass) * arm @ arm + k @ inertia @ k

    def rate(t, y):
        angle, s, w, v = y
        g = Rotation.from_rotvec(k * angle).as_matrix().T @ np.array(GRAVITY)
        across = np.cross(k, np.array([0.4, 0.0, 0.0]) + d * s + centre)
        M = np.array([[turning + m * across @ across, m * across @ d], [m * across @ d, m]])
        bias = 2 * w * v * np.cross(k, d) + w**2 * np.cross(k, across)  # Coriolis, centripetal
        push = FORCE - SPRING * s - DAMPER * v + m * d @ (g - bias)
        moment = TORQUE + float(UPPER.mass) * arm @ g + m * across @ (g - bias)
        return [w, v, *np.linalg.solve(M, [moment, push])]

    return solve_ivp(rate, (0, ts[-1]), start, rtol=1e-11, atol=1e-13, t_eval=ts).y[:2].T


@pytest.mark.slow
def test_a_prismatic_joint_on_a_turning_arm(record_number):
    """flexjax and Exudyn against Newton's law, with the terms of Coriolis."""
    pytest.importorskip("exudyn")
    robot, start = slider(), fx.Start({"shoulder": 0.3, "guide": 0.05}, rates={"shoulder": 2.0})
    force = fx.PD(SPRING, 0.0, fx.constant(FORCE / SPRING))
    drive = fx.Drive(joints={"shoulder": fx.Effort(fx.constant(TORQUE)), "guide": force})
    exact = by_newton(TS, [0.3, 0.05, 2.0, 0.0])
    ours = fx.simulate(fx.RigidArm().bind(robot), drive, TS, dt=2e-4, start=start, stations=2)
    theirs = fx.to_exudyn(robot, drive, start=start).run(TS, 2e-4)
    apart = np.max(np.abs(np.asarray(ours.q) - exact))
    record_number("prismatic joint on a turning arm, RigidArm: coordinates", apart, 1e-6)
    apart = np.max(np.abs(theirs.q - exact))
    record_number("prismatic joint on a turning arm, Exudyn: coordinates", apart, 1e-6)
    slide = {"shoulder": fx.Effort(fx.constant(TORQUE))}
    slide["guide"] = fx.Motion(fx.quintic(0.05, 0.15, 0.25))
    drive, start = fx.Drive(joints=slide), fx.Start({"shoulder": 0.3}, rates={"shoulder": 2.0})
    ours = fx.simulate(fx.RigidArm().bind(robot), drive, TS, dt=2e-4, start=start, stations=2)
    theirs = fx.to_exudyn(robot, drive, start=start).run(TS, 2e-4)
    apart = np.max(np.linalg.norm(np.asarray(ours.tip) - theirs.tip, axis=1))
    record_number("prismatic joint with a motion, beside Exudyn: tip [m]", apart, 1e-6)


@pytest.mark.slow
def test_elastic_links_in_space(record_number):
    """Two slender links on hinges, one of them elastic, and a payload inside."""
    pytest.importorskip("exudyn")
    soft = fx.Material(E=3e10, rho=2500.0, nu=0.3)
    links = [
        fx.Link(
            name,
            0.4,
            section=fx.Rectangle(0.012, 0.009),
            material=soft,
        )
        for name in ("upper", "fore")
    ]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "upper", axis=(0.2, 1.0, 0.3)),
        fx.Joint(
            "elbow",
            "revolute",
            "upper",
            "fore",
            axis=(0.0, 0.5, 1.0),
            rotation=(0.0, 0.0, 0.5),
            offset=(0.01, 0.0, 0.02),
            stiffness=150.0,
            damping=0.1,
            hub=fx.Hub(0.1, 1e-3),
        ),
    ]
    payloads = [
        fx.Payload("tool", "fore", 0.1, inertia=1e-4),
        fx.Payload("inside", "upper", 0.1, s=0.5),
    ]
    robot = fx.Robot("elastic", links, joints, payloads, gravity=(0.0, -5.0, 2.0))
    drive = fx.Drive(joints={"elbow": fx.Motion(fx.quintic(0.0, 0.4, 0.3))})
    theirs = [
        fx.to_exudyn(robot, drive, elements=n).run(TS, dt).tip
        for n, dt in ((8, 5e-4), (16, 2.5e-4))
    ]
    limit = (4 * theirs[1] - theirs[0]) / 3
    model = fx.PortHamiltonian(elements=16).bind(robot)
    tip = np.asarray(fx.simulate(model, drive, jnp.asarray(TS), dt=2.5e-4, stations=2).tip)
    apart = np.max(np.linalg.norm(tip - limit, axis=1))
    record_number("elastic links in Exudyn: tip over the length", apart / 0.8, 1e-4)


REFUSED = {
    "a universal joint": (
        lambda: fx.Joint("j", "universal", "ground", "upper", axis=(0, 0, 1), axis2=(0, 1, 0)),
        {},
        "joints.j.type: universal; expected revolute, prismatic or fixed",
    ),
    "a spring without a Motion": (
        lambda: fx.Joint("j", "revolute", "ground", "upper", stiffness=100.0),
        {},
        "joints.j.stiffness: 100 without a Motion; expected one",
    ),
    "a controller of one's own": (
        lambda: fx.Joint("j", "revolute", "ground", "upper"),
        {"j": fx.Feedback(lambda t, q, qd, params: -qd)},
        "drive.joints.j: Feedback; expected Motion, Effort or PD",
    ),
    "bristles": (
        lambda: fx.Joint(
            "j", "revolute", "ground", "upper", friction=fx.Friction(0.1, bristle=20.0)
        ),
        {},
        "joints.j.friction.bristle: 20; expected friction without bristles",
    ),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_has_no_counterpart_is_refused(what):
    pytest.importorskip("exudyn")
    joint, acts, message = REFUSED[what]
    link = fx.Link("upper", 0.4, body=fx.Body(1.0), rigid=True)
    with pytest.raises(ValueError, match=message):
        fx.to_exudyn(fx.Robot("arm", [link], [joint()]), fx.Drive(joints=acts))


def test_damping_of_links_is_refused():
    """Exudyn's spatial beam takes a damping matrix and does not use it."""
    pytest.importorskip("exudyn")
    link = fx.load_robot("metal-link").links[0]
    damped = dataclasses.replace(link, damping=fx.Damping(strain_rate=1e-3))
    robot = dataclasses.replace(fx.load_robot("metal-link"), links=(damped,))
    with pytest.raises(ValueError, match="links.link.damping.strain_rate: 0.001; expected none"):
        fx.to_exudyn(robot)


def test_wrong_numbers_are_refused():
    pytest.importorskip("exudyn")
    robot = fx.load_robot("metal-link")
    with pytest.raises(ValueError, match="elements: 0; expected a whole number"):
        fx.to_exudyn(robot, elements=0)
    with pytest.raises(ValueError, match="elements.nobody: no such elastic link"):
        fx.to_exudyn(robot, elements={"nobody": 3})
    with pytest.raises(ValueError, match="ts: .*expected increasing times that begin at t0 = 0"):
        fx.to_exudyn(robot, elements=2).run([0.1, 0.2])


def test_without_exudyn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "exudyn", None)
    with pytest.raises(ImportError, match=r"pip install 'flexjax\[outside\]'"):
        fx.to_exudyn(fx.load_robot("metal-link"))
