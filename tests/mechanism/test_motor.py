"""Motors at a voltage, and their torque ripple: motion, energy, gradients, formulations."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexjax as fx
from tests.mechanism.test_friction import arm

INERTIA = 0.02 + 0.2**2  # of the link, about the joint
GEAR, KT, KE, R, ROTOR = 20.0, 1.2, 0.05, 2.0, 5e-5
MOTOR = fx.Motor(ROTOR, GEAR, KT, resistance=R, back_emf=KE, ripple=fx.Ripple(2.0, 0.3, 0.2, 0.5))
WITH_SPRINGS = (fx.FiniteElement(), fx.TransferMatrix(), fx.PortHamiltonian())
TS = np.linspace(0.0, 0.5, 51)
STEP = fx.Drive({"pin": fx.Voltage(fx.constant(4.0))})


def simulated(formulation=None, drive=STEP, motor=MOTOR, dt=1e-3, **joint):
    model = (formulation or fx.RigidArm()).bind(arm(stiffness=None, motor=motor, **joint))
    return fx.simulate(model, drive, TS, dt=dt)


@pytest.fixture(scope="module")
def driven():
    return simulated()


def test_a_motor_at_a_voltage_follows_its_differential_equation(driven):
    def rate(t, y):
        effort = KT * (4.0 - KE * GEAR * y[1]) / R
        effort += (0.3 + 0.2 * effort) * np.sin(2 * GEAR * y[0] + 0.5)
        return y[1], effort / (INERTIA + ROTOR * GEAR**2)

    exact = solve_ivp(rate, (0, TS[-1]), [0.0, 0.0], t_eval=TS, rtol=1e-10, atol=1e-12).y
    np.testing.assert_allclose(driven.q[:, 0], exact[0], atol=1e-4)
    effort = [rate(0.0, y)[1] * (INERTIA + ROTOR * GEAR**2) for y in exact.T]
    np.testing.assert_allclose(driven.effort[:, 0], effort, atol=1e-3)
    energy = driven.energy
    np.testing.assert_allclose(energy.balance, 0.0, atol=1e-6 * float(energy.kinetic[-1]))
    assert energy.work[-1] > 0.1


def test_a_motor_without_other_losses_has_the_back_emf_of_its_torque_constant():
    from flexjax.drive import ActuationState

    lossless = dataclasses.replace(MOTOR, back_emf=None)
    q = jnp.zeros(1)
    at = lambda rate: ActuationState(q, q + rate, q, q + rate, None, lossless)
    speed = 4.0 / KT  # where the voltage of the rotor's speed is that of the drive
    assert abs(float(STEP.joints["pin"].effort(0.0, None, at(speed))[0])) < 1e-12
    np.testing.assert_allclose(STEP.joints["pin"].effort(0.0, None, at(0.0)), [KT * 4.0 / R])


def test_a_voltage_needs_the_constants_of_the_motor():
    with pytest.raises(ValueError, match="a Voltage needs joints.pin.motor.resistance"):
        simulated(motor=fx.Motor(ROTOR, GEAR, KT))
    with pytest.raises(ValueError, match="a Voltage needs joints.pin.motor.torque_constant"):
        simulated(motor=None)


@pytest.mark.slow
def test_a_motor_cogs_without_a_drive():
    """A passive joint swings about the nearest rest position of the cogging."""
    motor = fx.Motor(ripple=fx.Ripple(5.0, 0.3, phase=np.pi))
    traj = simulated(drive=fx.Drive(), motor=motor, home=0.05)
    q = np.asarray(traj.q[:, 0])
    exact = solve_ivp(
        lambda t, y: (y[1], -0.3 * np.sin(5 * y[0]) / INERTIA),
        (0, TS[-1]),
        [0.05, 0.0],
        t_eval=TS,
        rtol=1e-10,
    ).y[0]
    np.testing.assert_allclose(q, exact, atol=1e-5)
    assert q.min() < -0.02
    potential = -0.3 / 5 * (np.cos(5 * q) - np.cos(5 * q[0]))
    np.testing.assert_allclose(traj.energy.work, -potential, atol=1e-6)


@pytest.mark.slow
def test_gradients_agree():
    robot = arm(stiffness=None, motor=MOTOR)
    ts = np.linspace(0.0, 0.1, 11)

    def loss(motor):
        joint = dataclasses.replace(robot.joints[0], motor=motor)
        model = fx.RigidArm().bind(dataclasses.replace(robot, joints=(joint,)))
        # From rest: the rate is zero at the first output.
        return fx.simulate(model, STEP, ts).q[-1, 0]

    table = fx.check_gradients(loss, (MOTOR,))
    assert table.worst < 1e-6, str(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formulation", "spring"),
    [
        (fx.MovingBeam(), False),  # supports no joint springs
        *((f, spring) for spring in (False, True) for f in WITH_SPRINGS),
    ],
    ids=str,
)
def test_formulations_agree(formulation, spring):
    """On a stiff link, whose bending is a thousandth of the motion."""
    link = fx.Link("link", 0.5, section=fx.Circle(0.03), material=fx.Material(7e10, 2700, 0.3))
    pin = fx.Joint("pin", "revolute", "ground", "link", motor=MOTOR, hub=fx.Hub(0.1, 1e-3))
    pin = dataclasses.replace(pin, stiffness=80.0 if spring else None)
    robot = fx.Robot("arm", (link,), (pin,), planar=True, gravity=(0, 0, 0))
    ts = TS[:26]
    rigid = dataclasses.replace(robot, links=(dataclasses.replace(link, rigid=True),))
    whole = fx.simulate(fx.RigidArm().bind(rigid), STEP, ts, dt=1e-3)
    traj = fx.simulate(formulation.bind(robot), STEP, ts, dt=1e-3)
    size = float(jnp.max(jnp.abs(whole.q)))
    np.testing.assert_allclose(traj.q, whole.q, atol=5e-3 * size)
    balance, work = np.asarray(traj.energy.balance), np.ptp(np.asarray(traj.energy.work))
    np.testing.assert_allclose(balance, balance[0], atol=2e-3 * work)
