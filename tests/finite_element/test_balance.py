"""Ten seconds by the default solver, which conserves energy: balances of energy and of the base's
momentum, over element borders, in and out of a guide.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.finite_element.arms import both, model_of

pytestmark = pytest.mark.slow  # compiled runs of thousands of steps

SWITCHES = (0.0, 0.25, 0.4)  # what is left of the force: a tenth of a second times its amplitude
LEFT = 2 * SWITCHES[1] - SWITCHES[2]


def drift(traj):
    """Largest error of the energy balance, relative to the largest energy."""
    e = traj.energy
    scale = max(float(np.max(np.abs(x))) for x in (e.kinetic, e.elastic, e.gravity, e.work))
    return float(np.max(np.abs(e.balance - e.balance[0]))) / scale


# Of each arm: joints, lengths, EI; stiffness of the second drive, its centre, amplitude and
# frequency; what pushes the first joint. Stiff enough to turn slower than their first clamped
# frequencies, beyond which a linear link diverges.
ARMS = {
    "PaR": (("Pa", "R"), (0.2, 0.6), 20.0, (5.0, 0.0, 0.3, 0.4), 1.0),
    "RPa": (("R", "Pa"), (0.8, 0.3), 2.0, (20.0, 0.4, 0.22, 0.5), 0.05),
    "RPb": (("R", "Pb"), (0.3, 0.8), 2.0, (60.0, 0.4, 0.15, 0.5), 0.05),
}


@pytest.mark.parametrize("name", ARMS)
def test_energy_and_base_momentum(name, record_number):
    """Without gravity nothing but the drive acts on the first coordinate: angular momentum about
    the base (R), momentum along it (Pa), is the drive's impulse. The momentum is that of the
    independent Lagrangian.
    """
    kinds, lengths, EI, (kp, centre, amplitude, frequency), push = ARMS[name]
    elements = (0, 4) if kinds[0] == "Pa" else (4, 3)
    robot, arm = both(kinds, lengths=lengths, elements=elements, mu=0.5, EI=EI, gravity=(0.0, 0.0))
    model = model_of(robot, elements)
    swing = fx.PD(kp, 0.0, fx.constant(centre) + fx.sine(amplitude, frequency))
    drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(push, SWITCHES)), "joint2": swing})
    traj = fx.simulate(
        model, drive, jnp.linspace(0.0, 10.0, 201), dt=1e-3, start={"joint2": centre}, stations=2
    )
    record_number(f"{name}: energy balance over 10 s at 1 ms, relative", drift(traj), 1e-8)
    end = traj.final.mech
    momentum = jax.grad(arm.kinetic, argnums=1)(end.q, end.v)[0]
    record_number(
        f"{name}: momentum of the base after 10 s, relative to the largest impulse",
        float(abs(momentum - push * LEFT) / (push * SWITCHES[1])),
        1e-8,
    )
    travelled = np.asarray(traj.q[:, 1])
    if name == "RPa":
        borders = np.sum(np.diff(np.floor(travelled / 0.2)) != 0)
        record_number("RPa: element borders crossed in 10 s", float(borders), 20, ">=")
    else:
        record_number(
            f"{name}: range of the second joint [m or rad]", float(np.ptp(travelled)), 0.2, ">="
        )


def test_two_revolute_joints(record_number):
    """Released under gravity with a torque on the elbow.

    The default conserves at any step; the error of Newmark's rule falls with its order.
    """
    robot, _ = both(("R", "R"), lengths=(0.7, 0.5), elements=(3, 3), mu=0.5, EI=40.0)
    model = model_of(robot, (3, 3))
    drive = fx.Drive(joints={"joint2": fx.Effort(fx.sine(0.1, 0.5))})
    traj = fx.simulate(model, drive, jnp.linspace(0.0, 10.0, 101), dt=1e-3, stations=2)
    record_number("RR: energy balance over 10 s at 1 ms, relative", drift(traj), 1e-8)
    # The order of the default solver's own error, in the motion, is asked by the contract test.
    drifts = [
        drift(
            fx.simulate(
                model,
                drive,
                jnp.linspace(0.0, 0.5, 11),
                substeps=n,
                solver=fx.Newmark(),
                stations=2,
            )
        )
        for n in (200, 400)
    ]
    record_number(
        "RR: order of Newmark's energy error",
        float(np.log2(drifts[0] / drifts[1])),
        (1.8, 2.2),
        relation="in",
    )


def test_paper_arm_leaves_its_guide(record_number):
    """RPb under its bang-bang input: balanced to 5 s, and the paper's 20 s end where the link has
    crept out of its joint.
    """
    drive = fx.Drive(
        joints={
            k: fx.Effort(fx.bang_bang(a, [0.0, 0.25, 0.5]))
            for k, a in dict(turn=0.1, guide=0.2).items()
        }
    )
    model = fx.FiniteElement(elements=5).bind(fx.load_robot("my-rpb"))
    ts = jnp.linspace(0.0, 20.0, 401)
    traj = fx.simulate(model, drive, ts, dt=1e-3, stations=2, throw=False)
    first = jax.tree_util.tree_map(lambda x: x[np.asarray(ts) <= 5.0], traj.energy)
    scale = float(np.max(np.abs(first.work)))
    record_number(
        "RPb: energy balance over 5 s at 1 ms, relative",
        float(np.max(np.abs(first.balance - first.balance[0]))) / scale,
        1e-8,
    )
    assert fx.Status(int(traj.status)).name == "ran_off_link"
    assert traj.robot.joints[int(traj.where)].name == "guide"
    record_number("RPb: leaves its guide at [s]", float(traj.t_fail), (5.2, 5.4), relation="in")


def test_a_thousand_elements(record_number):
    """Stiffness times coefficients is 1e12 times as large as their sum here: Newton converges only
    because its round-off is in equilibrium.
    """
    link = fx.Link(
        "link",
        1.0,
        section=fx.Rectangle(0.01, 0.01),
        material=fx.Material(E=70e9, nu=0.3, rho=2700.0),
    )
    robot = fx.Robot.serial([link], gravity=(0.0, -9.81, 0.0))
    fine, coarse = (
        fx.simulate(
            fx.FiniteElement(elements=n).bind(robot),
            None,
            jnp.array([0.0, 0.05]),
            dt=1e-3,
            stations=2,
        )
        for n in (1000, 10)
    )
    record_number(
        "a falling link of 1000 elements against 10 [m]",
        float(np.max(np.abs(fine.tip - coarse.tip))),
        1e-6,
    )
    record_number("1000 elements: energy balance, relative", drift(fine), 1e-8)
