"""The paper's own elements as a model: power, energy, frequencies and the step response of an
independent implementation of the same element.
"""

import os
import subprocess
import sys
from pathlib import Path

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.port_hamiltonian import zoo
from tests.port_hamiltonian.test_power import BASE, power_gap
from tests.port_hamiltonian.test_statics_modes import DENSITY, cantilever
from tests.port_hamiltonian.test_step import REFERENCE

ROOT = Path(__file__).resolve().parent.parent.parent
LOADS = [
    fx.Load("b", fx.constant((1.0, -2.0, 0.0, 0.0, 0.0, 0.3)), s=0.6),
    fx.Load("a", fx.constant((0.5, 0.2, 0.0, 0.0, 0.0, -0.1)), frame="section"),
]
JOINTS = {"j1": fx.PD(3.0, 0.2, fx.constant(0.3)), "j2": fx.PD(2.0, 0.3, fx.sine(0.4, 1.0))}


def pair():
    """Two links, one curved, one damped, on plain joints."""
    links = [
        fx.Link("a", 0.8, constants=zoo.constants(), curvature=(0.0, 0.0, 0.5)),
        fx.Link("b", 0.6, constants=zoo.constants(), damping=fx.Damping(strain_rate=1e-3)),
    ]
    return fx.Robot(
        "pair",
        links,
        [fx.Joint("j1", "revolute", "ground", "a"), fx.Joint("j2", "revolute", "a", "b", home=0.4)],
        planar=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, 0.5])
def test_power_and_energy_balance(alpha, record_number):
    model = fx.PortHamiltonian(elements=3, variant="paper", alpha=alpha).bind(pair())
    drive = fx.Drive(joints=JOINTS, loads=LOADS)
    record_number(
        f"paper's scheme, alpha = {alpha}: power balance, random state",
        power_gap(model, drive),
        1e-12,
    )
    traj = fx.simulate(model, drive, jnp.array([0.0, 0.05, 0.1]), substeps=50)
    b = np.asarray(traj.energy.balance)
    record_number(
        f"paper's scheme, alpha = {alpha}: energy balance over 100 steps",
        np.max(np.abs(b - b[0])) / np.max(np.abs(traj.energy.work)),
        1e-11,
    )


@pytest.mark.slow
def test_explicit_solvers_follow_a_moving_base(record_number):
    """The first section moves with the base, and the tip as with implicit steps."""
    link = fx.Link("a", 0.8, constants=zoo.constants())
    robot = fx.Robot("one", (link,), (fx.Joint("j", "revolute", "ground", "a"),), planar=True)
    drive = fx.Drive(joints={"j": fx.Motion(fx.polynomial([0.1, 0.5, 2.0]))}, base=BASE)
    ts = jnp.array([0.0, 0.05, 0.1])
    model = fx.PortHamiltonian(elements=1, variant="paper").bind(robot)
    explicit = fx.simulate(model, drive, ts, dt=1e-3, stations=2, solver=diffrax.Tsit5())
    rigid = fx.simulate(fx.RigidArm().bind(robot), drive, ts, stations=2)
    for field in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(explicit, field), getattr(rigid, field), atol=1e-9)
    off = lambda a, b: float(np.max(np.abs(np.asarray(a - b))))
    record_number(
        "paper's scheme, explicit steps on a moving base: first section [m]",
        off(explicit.frames[:, 0, 0], rigid.frames[:, 0, 0]),
        1e-8,
    )
    coarse, fine = (
        off(explicit.tip, fx.simulate(model, drive, ts, dt=dt, stations=2).tip)
        for dt in (1e-3, 5e-4)
    )
    record_number("paper's scheme, explicit less implicit steps on a moving base", coarse, 1e-5)
    record_number("the same: order of the difference", np.log2(coarse / fine), (1.9, 2.2), "in")


def test_explicit_solvers_refuse_algebraic_rates():
    model = fx.PortHamiltonian(elements=1, variant="paper").bind(pair())
    drive = fx.Drive(joints=JOINTS | {"j1": fx.Motion(fx.constant(0.3))})
    with pytest.raises(ValueError, match="solver: Tsit5 .* joints j2 are algebraic"):
        fx.simulate(model, drive, jnp.array([0.0, 0.1]), solver=diffrax.Tsit5())


def test_frequencies_are_those_of_the_element(record_number):
    model = fx.PortHamiltonian(elements=10, variant="paper").bind(cantilever(DENSITY))
    found = 2 * np.pi * np.asarray(fx.modes(model, n=3).frequencies)
    wanted = np.array(REFERENCE["linear"]["density"]["N10"]["first"][:3])
    record_number(
        "paper's scheme: modes against the element's frequencies, N = 10",
        np.max(np.abs(found / wanted - 1)),
        1e-8,
    )


@pytest.mark.slow
def test_step_response_of_the_paper(record_number):
    """N = 20, alpha = 1/2, K = 15, R = 3, Table I as densities: the same numbers as an independent
    implementation, to the error in time of either.
    """
    ref = REFERENCE["cases"]["step_density"]
    model = fx.PortHamiltonian(elements=20, variant="paper").bind(
        fx.load_robot("macchelli-single-link")
    )
    drive = fx.Drive(joints={"joint": fx.PD(15.0, 3.0, fx.constant(1.0))})
    ts = jnp.asarray([0.0, *(t for t in ref["t"] if t <= 0.1)])
    traj = fx.simulate(model, drive, ts, dt=5e-5, stations=2, throw=False)
    wanted = np.array(ref["theta"])[: len(ts) - 1]
    record_number(
        "paper's scheme: step response against an independent implementation [rad]",
        np.max(np.abs(np.asarray(traj.q[1:, 0]) - wanted)),
        2e-5,
    )
    b = np.asarray(traj.energy.balance)
    record_number(
        "paper's scheme: energy balance of the step response over the work",
        np.max(np.abs(b)) / float(traj.energy.work[-1]),
        1e-11,
    )


FIRST = """
import os
# On one core jaxlib 0.10.1 loses LAPACK's calls: flexjax._types.ravel
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import flexjax as fx
model = fx.PortHamiltonian(elements=1, variant="paper").bind(fx.load_robot("macchelli-single-link"))
print(fx.simulate(model, None, jnp.array([0.0, 1e-3])).ok)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="processes cannot be held to one core here"
)
def test_the_first_program_of_a_process_on_one_core():
    run = subprocess.run([sys.executable, "-c", FIRST], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip() == "True", run.stderr[-2000:]


def test_bodies_on_massless_nodes_are_refused():
    told = " ".join(fx.PortHamiltonian(variant="paper").refusals(zoo.planar()))
    assert "joints.elbow.stiffness" in told and "payloads.p" in told
    with pytest.raises(ValueError, match="variant"):
        fx.PortHamiltonian(variant="papre")
    with pytest.raises(ValueError, match="alpha"):
        fx.PortHamiltonian(variant="paper", alpha=1.0)
