"""Friction on the two sides of a joint spring and across it, on a rigid link behind that spring."""

import dataclasses

import jax
import numpy as np
import pytest

import flexjax as fx

K, C = 40.0, 0.4  # of the spring, of the friction
HELD = fx.Drive({"pin": fx.Motion(fx.constant(0.0))})
PLACES = ("output_friction", "spring_friction")


def arm(stiffness: float | None = K, **joint) -> fx.Robot:
    body = fx.Body(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02, 0, 0, 0))
    link = fx.Link("link", 0.5, rigid=True, body=body)
    pin = fx.Joint("pin", "revolute", "ground", "link", stiffness=stiffness, **joint)
    return fx.Robot("arm", (link,), (pin,), planar=True, gravity=(0, 0, 0))


def released(robot: fx.Robot, end: float = 0.5, x0: float = 0.1, formulation=None, drive=HELD):
    model = (formulation or fx.RigidArm()).bind(robot)
    ts = np.linspace(0.0, end, 251)
    return fx.simulate(model, drive, ts, start=fx.Start({"pin": x0}))


@pytest.fixture(scope="module")
def runs():
    return {place: released(arm(**{place: fx.Friction(C, 1e-3)})) for place in PLACES}


@pytest.mark.parametrize("place", PLACES)
def test_dry_friction_takes_the_same_from_every_half_period(runs, place):
    """Coulomb: turning points approach the rest position by 2 c / k, however large they are."""
    traj = runs[place]
    q, v = np.asarray(traj.q[:, 0]), np.asarray(traj.qd[:, 0])
    turns = [abs(q[i]) for i in np.flatnonzero(v[1:-1] * v[2:] < 0) + 1]
    np.testing.assert_allclose(turns[:3], 0.1 - 2 * C / K * np.arange(1, 4), atol=4e-4)
    balance = np.asarray(traj.energy.balance)
    np.testing.assert_allclose(balance, balance[0], atol=2e-3 * balance[0])
    assert traj.energy.dissipated[-1] > 0.5 * balance[0]


def test_a_held_motor_feels_friction_across_the_spring_only(runs):
    output, across = (runs[place] for place in PLACES)
    np.testing.assert_allclose(output.q, across.q, atol=1e-9)
    torque = C * np.tanh(np.asarray(across.qd[:, 0]) / 1e-3)
    gap = np.asarray(across.effort[:, 0] - output.effort[:, 0])
    np.testing.assert_allclose(gap, -torque, atol=1e-6)


@pytest.mark.slow
def test_gradients_agree_also_at_zero_velocity():
    friction = fx.Friction(0.2, 0.05, breakaway=0.3, stribeck=0.1)
    robot = arm(output_friction=friction, spring_friction=fx.Friction(0.1, 0.05))
    ts = np.linspace(0.0, 0.1, 11)

    def loss(output, across):
        places = {"output_friction": output, "spring_friction": across}
        joint = dataclasses.replace(robot.joints[0], **places)
        model = fx.RigidArm().bind(dataclasses.replace(robot, joints=(joint,)))
        # From rest: the velocity is zero at the first output.
        return fx.simulate(model, HELD, ts, start=fx.Start({"pin": 0.1})).q[-1, 0]

    joint = robot.joints[0]
    table = fx.check_gradients(loss, (joint.output_friction, joint.spring_friction))
    assert table.worst < 1e-6, str(table)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "formulation", [fx.FiniteElement(), fx.PortHamiltonian(), fx.TransferMatrix()], ids=str
)
def test_formulations_agree(runs, place, formulation):
    traj = released(arm(**{place: fx.Friction(C, 1e-3)}), formulation=formulation)
    np.testing.assert_allclose(traj.q, runs[place].q, atol=1e-3)


@pytest.mark.parametrize(
    ("joint", "says"),
    [
        ({"stiffness": None, "output_friction": fx.Friction(0.1)}, "without stiffness"),
        ({"friction": fx.Friction(0.1, breakaway=0.2)}, "breakaway and stribeck together"),
        (
            {"friction": fx.Friction(0.2, breakaway=0.1, stribeck=0.1)},
            r"friction.breakaway = 0.1",
        ),
    ],
)
def test_bad_friction_is_refused(joint, says):
    pin = dataclasses.replace(arm().joints[0], **joint)
    with pytest.raises(fx.RobotError, match=says):
        dataclasses.replace(arm(), joints=(pin,))


def test_transfer_matrix_names_the_formulations_that_can():
    link = fx.Link("link", 0.5, section=fx.Circle(0.01), material=fx.Material(7e10, 2700, 0.3))
    soft = dataclasses.replace(arm(output_friction=fx.Friction(0.1)), links=(link,))
    with pytest.raises(ValueError, match="output_friction(.|\n)*Supported by: RigidArm"):
        fx.TransferMatrix().bind(soft)
    pin = dataclasses.replace(soft.joints[0], hub=fx.Hub(0.1, 1e-4))
    fx.TransferMatrix().bind(dataclasses.replace(soft, joints=(pin,)))


def test_stribeck_friction_falls_from_breakaway_to_coulomb():
    from flexjax.mechanism import joint_hardware

    robot = arm(friction=fx.Friction(1.0, 1e-3, breakaway=2.0, stribeck=0.1))
    friction = joint_hardware(robot).motor
    assert friction is not None
    rate = np.array([1e-2, 10.0, -10.0])
    torque = jax.vmap(lambda v: friction.torque(v[None])[0])(rate)
    np.testing.assert_allclose(torque, [2.0, 1.0, -1.0], atol=1e-2)
