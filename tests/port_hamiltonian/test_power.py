"""Power balance: what the ports give is what the energy gains, for states at random.

Loops are left out here: twists at random would open them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

import flexjax as fx
from tests.port_hamiltonian import zoo
from tests.port_hamiltonian.test_newton import CASES, random_state
from tests.screw.laws import quick_jit


def _coupled():
    return fx.Robot.serial(
        [fx.Link("a", 0.7, constants=zoo.constants(), curvature=(0.3, -0.4, 0.6))],
        [fx.Joint("j", "spherical", "ground", "a")],
    )


COUPLING = ((1e-3, 0.0, 2e-3), (0.0, -1e-3, 0.0), (1e-3, 0.0, 1e-3))
LOADS = (
    fx.Load("a", fx.constant((1.0, -2.0, 0.0, 0.0, 0.0, 0.3)), s=0.6),
    fx.Load("a", fx.constant((0.5, 0.2, 0.0, 0.0, 0.0, -0.1)), frame="section"),
)
BASE = fx.Base(
    translation=fx.stack([fx.sine(0.05, 2.0), fx.sine(0.03, 3.0, 0.4), fx.constant(0.0)]),
    angle=fx.sine(0.3, 1.5, 0.2),
)
POWER = {
    "spatial": (*CASES["spatial"], LOADS),
    "planar": (*CASES["planar"], LOADS),
    "coupled": (
        _coupled,
        dict(elements=3, coupling=COUPLING, drag=(0.3, 0.3, 0.3, 0.1, 0.1, 0.1)),
        {},
        LOADS,
    ),
    "nonlinear": (
        zoo.planar,
        dict(elements=3, strain_energy=lambda q, k: 0.5 * jnp.sum(k * q**2) + 30.0 * jnp.sum(q**4)),
        {},
        LOADS,
    ),
}


def power_gap(model, drive):
    """Rate of the energies less the power of drive and dampers at a random state, relative to their
    size.
    """

    @quick_jit
    def check():
        term = model.term(drive)
        t = jnp.asarray(0.1)
        y = random_state(model, drive)
        y = dataclasses.replace(y, mech=term.complete(t, y.mech, None))
        rate = term.vf(t, y, None)
        energies = lambda t, m: jnp.stack(term.energies(t, m, None))
        parts = jax.jvp(energies, (t, y.mech), (jnp.ones_like(t), rate.mech))[1]
        power, loss = rate.work, rate.dissipated
        return jnp.sum(parts) - power + loss, jnp.sum(jnp.abs(parts)) + jnp.abs(power) + loss

    gap, scale = check()
    return abs(gap) / scale


# The case "nonlinear" has the robot of "planar".
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "planar" else n for n in POWER]
)
def test_power_balance(name, record_number):
    make, options, joints, loads = POWER[name]
    model = fx.PortHamiltonian(**options).bind(make())
    drive = fx.Drive(joints=joints, loads=loads)
    record_number(f"power balance, random state, {name}", power_gap(model, drive), 1e-12)


@pytest.mark.parametrize("variant", [pytest.param("complete", marks=pytest.mark.slow), "paper"])
def test_power_of_a_moving_base(variant, record_number):
    """A rotor on the base has the rotation of the base too."""
    link = fx.Link("a", 0.8, constants=zoo.constants(), damping=fx.Damping(strain_rate=1e-3))
    motor = fx.Motor(rotor=2e-3, gear=5.0) if variant == "complete" else None
    joint = fx.Joint("j", "revolute", "ground", "a", motor=motor)
    robot = fx.Robot("one", (link,), (joint,), planar=True)
    drive = fx.Drive(joints={"j": fx.Motion(fx.polynomial([0.1, 0.5, 2.0]))}, base=BASE)
    model = fx.PortHamiltonian(elements=2, variant=variant).bind(robot)
    record_number(f"power balance, moving base, {variant}", power_gap(model, drive), 1e-12)
