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
    """Two hinges and a weld in space: offsets, hub, rotor, damping, friction, end stops."""
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
            "fixed",
            "upper",
            "slide",
            rotation=(0.0, 0.4, 0.0),
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
        "joints.j.type: universal; expected revolute or fixed",
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
