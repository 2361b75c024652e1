"""States at rest: what counts as one, which one is found, what is reported where there is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import SMALLEST, each, elastic_pair, light

METHODS = (
    fx.PortHamiltonian(elements=8),
    fx.TransferMatrix(segments=24),
    fx.FiniteElement(elements=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_held_joint_stays_and_the_rest_gives_way(method, record_number):
    """The held joint is where its Motion says, nothing accelerates, and the controller's effort is
    what its law says at the angle reached.
    """
    model = method.bind(elastic_pair())
    drive = fx.Drive(
        joints={
            "shoulder": fx.Motion(fx.constant(0.3)),
            "elbow": fx.PD(20.0, 1.0, fx.constant(0.2)),
        }
    )
    rest = fx.equilibrium(model, drive, {"elbow": 0.2})
    snap = model.observe(jnp.zeros(()), rest, drive, jnp.linspace(0.0, 1.0, 3))
    name = type(method).__name__
    record_number(f"{name}: angle of a held joint at rest", abs(float(snap.q[0]) - 0.3), 1e-12)
    assert float(snap.q[1]) < 0.19
    record_number(f"{name}: acceleration at rest", np.max(np.abs(snap.acceleration)), 1e-6)
    record_number(
        f"{name}: effort of the PD",
        abs(float(snap.effort[1]) - 20.0 * (0.2 - float(snap.q[1]))),
        1e-8,
    )


def pair(planar=True, gravity=(0.0, -9.81, 0.0), rigid="", **joint) -> fx.Robot:
    soft, section = fx.Material(E=5e9, nu=0.3, rho=1200.0), fx.Rectangle(0.02, 0.008)
    links = [fx.Link(n, 0.4, section=section, material=soft, rigid=n in rigid) for n in "ab"]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "a", **joint),
        fx.Joint("elbow", "revolute", "a", "b", **joint),
    ]
    return fx.Robot.serial(links, joints, planar=planar, gravity=gravity)


SMALL = {name: make() for name, make in SMALLEST.items()}
EACH = each(light("equilibrium"))


def single(**joint) -> fx.Robot:
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    link = fx.Link("a", 0.4, section=fx.Rectangle(0.02, 0.008), material=soft)
    joints = [fx.Joint("shoulder", "revolute", "ground", "a", **joint)]
    return fx.Robot.serial([link], joints, planar=True, gravity=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("name", EACH)
def test_a_torque_that_nothing_balances_is_an_error(name):
    """A free joint without weight: the error names it and the whole torque."""
    model = SMALL[name].bind(single())
    drive = fx.Drive(joints={"shoulder": fx.Effort(fx.constant(0.2))})
    with pytest.raises(fx.EquilibriumError, match="joints.shoulder is left with 0.2 N m") as error:
        fx.equilibrium(model, drive)
    assert error.value.joint == "shoulder" and error.value.unit == "N m"
    np.testing.assert_allclose(error.value.remaining, 0.2, rtol=1e-3)
    found = fx.find_equilibrium(model, drive)
    assert not found.ok and int(found.coordinate) == 0
    # Without the torque the arm rests wherever it is.
    rest = fx.equilibrium(model, fx.Drive(), {"shoulder": 0.7})
    x, _ = model.term(fx.Drive()).motor_coordinates(rest)
    np.testing.assert_allclose(x, [0.7], atol=1e-12)


@pytest.mark.parametrize("torque", [1e-9, 1e3])
def test_the_limit_follows_the_forces(torque):
    """A torque of any size is an imbalance; nothing of a fixed size is overlooked."""
    model = fx.RigidArm().bind(single())
    drive = fx.Drive(joints={"shoulder": fx.Effort(fx.constant(torque))})
    with pytest.raises(fx.EquilibriumError) as error:
        fx.equilibrium(model, drive)
    np.testing.assert_allclose(error.value.remaining, torque, rtol=1e-9)


def test_a_level_arm_falls_until_it_hangs():
    """Weight has no stiffness there, so that Newton's iteration alone leads nowhere."""
    model = fx.RigidArm().bind(pair())
    rest = fx.equilibrium(model)
    np.testing.assert_allclose(rest.mech.q, [-np.pi / 2, 0.0], atol=1e-9)


def test_a_torque_above_the_largest_weight():
    """The joint moves as far as weight helps, and what is left is reported."""
    model = fx.RigidArm().bind(pair())
    hold = {"shoulder": fx.Motion(fx.constant(0.0))}
    level = fx.Drive(joints={**hold, "elbow": fx.Motion(fx.constant(0.0))})
    y = model.initial_state(level, 0.0, fx.Start())
    weight = model.observe(0.0, y, level, jnp.ones(1)).effort[1]
    drive = fx.Drive(joints={**hold, "elbow": fx.Effort(fx.constant(1.5 * weight))})
    with pytest.raises(fx.EquilibriumError, match="joints.elbow") as error:
        fx.equilibrium(model, drive, {"elbow": -0.4})
    assert error.value.remaining >= 0.49 * float(weight)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("elbow", [-1.1, 0.4])
def test_the_root_next_to_the_start(name, elbow):
    """Torques that hold the arm at a pose leave it there, from that pose with straight links."""
    # MovingBeam supports one elastic link, at the end of the chain.
    model = SMALL[name].bind(pair(rigid="a" if name == "MovingBeam" else ""))
    at = {"shoulder": 0.6, "elbow": elbow}
    motions = fx.Drive(joints={k: fx.Motion(fx.constant(x)) for k, x in at.items()})
    held = fx.equilibrium(model, motions)
    look = jax.jit(lambda y, drive: model.observe(jnp.zeros(()), y, drive, jnp.ones(1)))
    wanted = look(held, motions)
    torques = {k: fx.Effort(fx.constant(x)) for k, x in zip(at, wanted.effort, strict=True)}
    drive = fx.Drive(joints=torques)
    rest = fx.equilibrium(model, drive, at)
    snap = look(rest, drive)
    np.testing.assert_allclose(snap.frames, wanted.frames, atol=1e-9)
    assert np.abs(snap.qd).max() < 1e-9 and np.abs(snap.acceleration).max() < 1e-6
    # An equilibrium is returned as it is.
    again = fx.equilibrium(model, drive, rest)
    for a, b in zip(jax.tree.leaves(again.mech), jax.tree.leaves(rest.mech), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_gradient(name):
    """Forward, reverse and differences of the tip at rest, with respect to gain, target, load."""
    model = SMALL[name].bind(pair())

    @jax.jit
    def tip(p):
        drive = fx.Drive(
            joints={
                "shoulder": fx.Motion(fx.constant(p[1])),
                "elbow": fx.PD(p[0], 1.0, fx.constant(0.2)),
            },
            loads=[fx.Load("b", fx.constant((0.0, p[2], 0.0, 0.0, 0.0, 0.0)))],
        )
        found = fx.find_equilibrium(model, drive, {"elbow": 0.2})
        snap = model.observe(jnp.zeros(()), found.state, drive, jnp.ones(1))
        return snap.frames[-1, -1, 1]

    p, e = jnp.array([20.0, 0.3, 0.4]), 1e-5
    forward, reverse = jax.jacfwd(tip)(p), jax.grad(tip)(p)
    steps = e * jnp.eye(3)
    differences = [(tip(p + s) - tip(p - s)) / (2 * e) for s in steps]
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    np.testing.assert_allclose(forward, differences, rtol=1e-6)
