"""Friction with bristles (Dahl, LuGre) against its differential equation, and its energy."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexjax as fx
from tests.mechanism.test_friction import HELD, K, arm

INERTIA = 0.02 + 0.2**2  # of the link, about the joint
STEEL = fx.Material(7e10, 8000, 0.3)
LUGRE = fx.Friction(0.4, breakaway=0.6, stribeck=0.2, bristle=60.0, bristle_damping=0.1)
TS = np.linspace(0.0, 0.5, 126)
START = fx.Start({"pin": 0.1})


def simulated(friction: fx.Friction, place="output_friction", formulation=None, **options):
    model = (formulation or fx.RigidArm()).bind(arm(**{place: friction}))
    return fx.simulate(model, HELD, TS, dt=1e-3, start=START, **options)


@pytest.fixture(scope="module")
def lugre():
    return simulated(LUGRE)


def reference(f: fx.Friction) -> np.ndarray:
    """x(t) of I x'' = -K x - F, z' = x' - |x'| z / limit, F = bristle z + damping z'."""
    c, s, vs, k, d = (float(x) for x in (f.coulomb, f.breakaway, f.stribeck, f.bristle, 0.1))

    def rate(t, y):
        x, v, z = y
        slip = v - abs(v) * z * k / (c + (s - c) * np.exp(-((v / vs) ** 2)))
        return v, -(K * x + k * z + d * slip) / INERTIA, slip

    found = solve_ivp(rate, (0, TS[-1]), [0.1, 0.0, 0.0], t_eval=TS, rtol=1e-10, atol=1e-12)
    return found.y[0]


def test_lugre_follows_its_differential_equation(lugre):
    assert np.max(np.abs(np.asarray(lugre.q[:, 0]) - reference(LUGRE))) < 2e-4  # of 0.1 rad


def test_energy_is_stored_or_dissipated(lugre):
    energy = lugre.energy
    balance = np.asarray(energy.balance)
    np.testing.assert_allclose(balance, balance[0], atol=1e-3 * balance[0])
    spring = 0.5 * K * np.asarray(lugre.q[:, 0]) ** 2
    bristles = np.asarray(energy.elastic) - spring
    assert bristles.min() > -1e-9 and bristles.max() > 1e-4
    # Bristles return energy, the friction does not.
    assert np.diff(np.asarray(energy.dissipated)).min() > -1e-5 * balance[0]


def test_gradients_agree_also_from_rest():
    robot = arm(spring_friction=LUGRE)
    ts = np.linspace(0.0, 0.1, 11)

    def loss(friction):
        joint = dataclasses.replace(robot.joints[0], spring_friction=friction)
        model = fx.RigidArm().bind(dataclasses.replace(robot, joints=(joint,)))
        return fx.simulate(model, HELD, ts, start=START).q[-1, 0]

    table = fx.check_gradients(loss, (dataclasses.replace(LUGRE, v_eps=1.0),))
    assert table.worst < 1e-5, str(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation",
    [fx.FiniteElement(), fx.ScrewSynthesis(), fx.PortHamiltonian(), fx.TransferMatrix()],
    ids=str,
)
@pytest.mark.parametrize("place", ["output_friction", "spring_friction"])
def test_formulations_agree(lugre, formulation, place):
    traj = simulated(LUGRE, place, formulation)
    np.testing.assert_allclose(traj.q, lugre.q, atol=5e-4)
    balance = np.asarray(traj.energy.balance)
    np.testing.assert_allclose(balance, balance[0], atol=2e-3 * balance[0])


def slipping(formulation, link: fx.Link):
    """A motor without spring under a controller, with friction that sticks."""
    pin = fx.Joint("pin", "revolute", "ground", "link", friction=LUGRE)
    robot = fx.Robot("arm", (link,), (pin,), planar=True, gravity=(0, 0, 0))
    drive = fx.Drive({"pin": fx.PD(K, 0.1, fx.constant(0.0))})
    return fx.simulate(formulation.bind(robot), drive, TS, dt=5e-4, start=START)


@pytest.mark.slow
def test_bristles_of_a_joint_beside_half_segments():
    """There the joint's angle is a state of its own, along which the friction acts."""
    link = fx.Link("link", 0.5, section=fx.Rectangle(0.05, 0.006), material=STEEL)
    whole = slipping(fx.FiniteElement(elements=4), link)
    traj = slipping(fx.TransferMatrix(segments=16), link)
    size = np.max(np.abs(np.asarray(whole.q)))
    np.testing.assert_allclose(traj.q, whole.q, atol=1e-2 * size)
    balance = np.asarray(traj.energy.balance)
    work = np.ptp(np.asarray(traj.energy.work))
    np.testing.assert_allclose(balance, balance[0], atol=1e-3 * work)


def test_adaptive_steps_and_published_transfer_matrices_are_refused():
    import diffrax

    with pytest.raises(ValueError, match="bristles at joint 'pin'; expected the fixed grid"):
        simulated(LUGRE, adaptive=diffrax.PIDController(1e-6, 1e-6))
    with pytest.raises(ValueError, match="friction.bristle"):
        fx.TransferMatrix(variant="paper").bind(arm(stiffness=None, friction=LUGRE))
