"""Springs of flexible joints with play and hardening: the law, its motion, energy and gradients."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexjax as fx
from flexjax.mechanism import SpringLaw, joint_hardware
from tests.mechanism.test_friction import HELD, K, arm

INERTIA = 0.02 + 0.2**2  # of the link, about the joint
ALU = fx.Material(7e10, 2700, 0.3)
PLAY = {"backlash": 0.06, "backlash_smooth": 0.02, "hardening": 800.0}
TS = np.linspace(0.0, 0.5, 126)
START = fx.Start({"pin": 0.1})


def law(**joint) -> SpringLaw:
    return joint_hardware(arm(**joint)).spring


def test_force_and_slope_are_derivatives_of_the_energy():
    x = jnp.asarray(np.concatenate([np.linspace(-0.1, 0.1, 41), [-0.04, -0.02, 0.02, 0.04]]))
    for joint in (PLAY, {"hardening": 800.0}):
        spring, h = law(**joint), 1e-6
        force, slope = spring.force(x), spring.slope(x)
        for whole, part in ((spring.energy, force), (spring.force, slope)):
            own = jax.grad(lambda s, whole=whole: jnp.sum(whole(s)))(x)
            np.testing.assert_allclose(own, part, atol=1e-12 * K)
            # Also at both ends of where the spring builds up: the slope has no kink there.
            differences = (whole(x + h) - whole(x - h)) / (2 * h)
            np.testing.assert_allclose(differences, part, atol=1e-6 * K)


def test_play_is_free_and_then_the_spring_has_its_stiffness():
    spring = law(**PLAY)
    inside = jnp.linspace(-0.0199, 0.0199, 9)
    assert not np.any(spring.force(inside)) and not np.any(spring.energy(inside))
    d = jnp.array([0.0, 0.01, 0.05])
    torque = K * (d + 0.01) + 800.0 * (d + 0.01) ** 3
    np.testing.assert_allclose(spring.force(0.04 + d), torque, rtol=1e-12)


def test_a_joint_without_play_beside_one_with_it_stays_linear():
    robot = arm()
    other = dataclasses.replace(robot.links[0], name="next")
    pin = dataclasses.replace(robot.joints[0], name="last", parent="link", child="next")
    pin = dataclasses.replace(pin, backlash=0.06)
    two = fx.Robot("two", (*robot.links, other), (robot.joints[0], pin), planar=True)
    spring = joint_hardware(two).spring
    x = jnp.array([0.01, 0.01])
    np.testing.assert_allclose(spring.force(x), [K * 0.01, 0.0], atol=1e-15)
    np.testing.assert_allclose(spring.energy(x), [0.5 * K * 0.01**2, 0.0], atol=1e-15)


def simulated(formulation=None, dt=1e-3, **joint):
    model = (formulation or fx.RigidArm()).bind(arm(**(PLAY | joint)))
    return fx.simulate(model, HELD, TS, dt=dt, start=START)


@pytest.fixture(scope="module")
def played():
    return simulated()


def reference() -> np.ndarray:
    """x(t) of I x'' = -K e - 800 e^3, with e behind the play of 0.06, built up over 0.02."""

    def rate(t, y):
        u = abs(y[0]) - 0.03
        s = (u + 0.01) / 0.02
        e = 0.0 if s < 0 else 0.02 * s**3 * (1 - s / 2) if s < 1 else u
        return y[1], -np.sign(y[0]) * (K * e + 800.0 * e**3) / INERTIA

    return solve_ivp(rate, (0, TS[-1]), [0.1, 0.0], t_eval=TS, rtol=1e-10, atol=1e-12).y[0]


def test_a_link_in_play_follows_its_differential_equation(played):
    q = np.asarray(played.q[:, 0])
    assert np.max(np.abs(q - reference())) < 1e-4  # of 0.1 rad
    assert np.sum(np.abs(q) < 0.02) > 10  # some of it inside the play
    balance = np.asarray(played.energy.balance)
    np.testing.assert_allclose(balance, balance[0], atol=1e-6 * balance[0])


@pytest.mark.slow
@pytest.mark.parametrize("x0", [0.1, 0.0], ids=["through the play", "at rest inside it"])
def test_gradients_agree(x0):
    robot = arm(**PLAY)
    ts = np.linspace(0.0, 0.15, 16)

    def loss(joint):
        model = fx.RigidArm().bind(dataclasses.replace(robot, joints=(joint,)))
        start = fx.Start({"pin": x0})
        return jnp.sum(fx.simulate(model, HELD, ts, start=start).q ** 2)

    table = fx.check_gradients(loss, (robot.joints[0],))
    assert table.worst < 1e-6, str(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation", [fx.FiniteElement(), fx.TransferMatrix(), fx.PortHamiltonian()], ids=str
)
def test_formulations_agree(played, formulation):
    traj = simulated(formulation)
    np.testing.assert_allclose(traj.q, played.q, atol=1e-4)
    # The steps of the last two do not conserve the energy of a nonlinear spring: second order.
    drifts = []
    for run in (traj, simulated(formulation, dt=5e-4)):
        balance = np.asarray(run.energy.balance)
        drifts.append(np.ptp(balance) / balance[0])
    assert drifts[0] < 5e-4
    assert drifts[1] < max(0.35 * drifts[0], 1e-6)


@pytest.mark.slow
def test_a_half_segment_beside_a_nonlinear_spring_is_in_series():
    """Deflection at rest under a load: converges to the finite elements with the segments."""
    link = fx.Link("link", 0.5, section=fx.Rectangle(0.02, 0.003), material=ALU)
    pin = fx.Joint("pin", "revolute", "ground", "link", stiffness=2.0, hardening=2e4)
    pin = dataclasses.replace(pin, backlash=0.02)
    robot = fx.Robot("arm", (link,), (pin,), planar=True)
    load = fx.Load("link", fx.constant([0.0, -3.0, 0.0, 0.0, 0.0, 0.0]))
    drive = fx.Drive(HELD.joints, (load,))

    def rest(formulation):
        model = formulation.bind(robot)
        state = fx.equilibrium(model, drive, {"pin": -0.1})
        names = frozenset({"q", "effort"})
        found = model.outputs(0.0, state, drive, np.array([0.0, 1.0]), None, names)
        return np.asarray(found["q"][0]), np.asarray(found["effort"][0])

    (q, effort), (whole, torque) = rest(fx.TransferMatrix(segments=8)), rest(fx.FiniteElement())
    np.testing.assert_allclose(q, whole, rtol=1e-4)
    np.testing.assert_allclose(effort, torque, rtol=1e-3)
    spring = joint_hardware(robot).spring
    np.testing.assert_allclose(spring.force(q[None])[0], -effort, rtol=1e-9)


@pytest.mark.parametrize(
    ("joint", "says"),
    [
        ({"stiffness": None, "backlash": 0.1}, "backlash.*no backlash on a joint without stiff"),
        ({"stiffness": None, "hardening": 1.0}, "hardening.*no hardening on a joint without"),
        ({"backlash_smooth": 0.1}, "backlash with backlash_smooth"),
        ({"backlash": 0.1, "backlash_smooth": 0.2}, r"backlash_smooth = 0.2.*less than backlash"),
        ({"backlash": 0.0}, "backlash = 0.*positive"),
    ],
)
def test_bad_springs_are_refused(joint, says):
    pin = dataclasses.replace(arm().joints[0], **joint)
    with pytest.raises(fx.RobotError, match=says):
        dataclasses.replace(arm(), joints=(pin,))


def test_transfer_matrices_in_space_refuse_nonlinear_springs():
    robot = dataclasses.replace(arm(**PLAY), planar=False)
    with pytest.raises(ValueError, match="backlash: expected a linear joint spring in space"):
        fx.TransferMatrix().bind(robot)


@pytest.mark.slow
@pytest.mark.parametrize("start", [None, {"pin": 0.02}], ids=["centre", "wrong side"])
def test_a_link_falls_to_the_end_of_its_play(start):
    """Without a torque inside the play, Newton's iteration alone has no direction there."""
    robot = dataclasses.replace(arm(**PLAY), gravity=np.array([0.0, -9.81, 0.0]))
    model = fx.RigidArm().bind(robot)
    rest = fx.equilibrium(model, HELD, start)
    q = model.outputs(0.0, rest, HELD, np.array([0.0, 1.0]), None, frozenset({"q"}))["q"]
    weight = 9.81 * 0.2 * np.cos(q)
    np.testing.assert_allclose(joint_hardware(robot).spring.force(q), -weight, rtol=1e-10)
