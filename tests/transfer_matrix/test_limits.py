"""Rigid links: every quantity equals that of the rigid chain, with all joint hardware."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import State


def equipped_arm(rigid=True) -> fx.Robot:
    material, section = fx.Material(E=70e9, rho=2700.0, nu=0.3), fx.Rectangle(0.02, 0.01)
    links = [
        fx.Link("a", 0.5, section=section, material=material, rigid=rigid, curvature=(0, 0, 0.8)),
        fx.Link("b", 0.4, section=section, material=material, rigid=rigid),
        fx.Link("c", 0.3, section=section, material=material, rigid=rigid),
    ]
    joints = [
        fx.Joint(
            "j1",
            "revolute",
            "ground",
            "a",
            offset=(0.1, 0.05, 0),
            rotation=(0, 0, 0.3),
            hub=fx.Hub(0.2, 1e-2),
            motor=fx.Motor(rotor=2e-3, gear=5.0),
            friction=fx.Friction(0.3, 0.1),
            damping=0.2,
        ),
        fx.Joint(
            "j2",
            "revolute",
            "a",
            "b",
            stiffness=50.0,
            damping=0.3,
            mass=0.1,
            motor=fx.Motor(rotor=1e-3, gear=3.0),
        ),
        fx.Joint(
            "j3",
            "revolute",
            "b",
            "c",
            stops=fx.Stops(-0.1, 0.2, 100.0, 0.5),
            motor=fx.Motor(rotor=1e-4, gear=10.0),
            damping=0.01,
        ),
    ]
    return fx.Robot.serial(
        links,
        joints,
        payloads=[fx.Payload("p", "c", 0.3, inertia=1e-3, offset=(0.01, 0.02, 0))],
        planar=True,
    )


LOADS = [
    fx.Load("b", fx.constant(jnp.array([1.0, 2.0, 0, 0, 0, 0.5])), s=0.6),
    fx.Load("c", fx.constant(jnp.array([1.0, -2.0, 0, 0, 0, 0.1])), s=0.4, frame="section"),
]
BASE = fx.Base(
    translation=fx.stack([fx.sine(0.1, 1.0), fx.sine(0.2, 0.7), fx.constant(0.0)]),
    angle=fx.sine(0.3, 0.5),
)
DRIVES = {
    "efforts": (
        fx.Drive(
            joints={
                "j1": fx.PD(20.0, 2.0, fx.quintic(0, 1, 1.0)),
                "j2": fx.Effort(fx.sine(1.0, 2.0)),
            },
            loads=LOADS,
        ),
        Start(joints={"j3": 0.4}, rates={"j1": 0.7, "j3": -1.2}),
    ),
    "motions": (
        fx.Drive(
            joints={f"j{i}": fx.Motion(fx.sine(0.2 + 0.1 * i, 1.0 + 0.3 * i)) for i in (1, 2, 3)},
            loads=LOADS,
            base=BASE,
        ),
        Start(),
    ),
    "mixed": (
        fx.Drive(joints={"j2": fx.Motion(fx.sine(0.4, 1.3))}, base=BASE),
        Start(joints={"j3": 0.4}, rates={"j3": -1.2}),
    ),
}


@eqx.filter_jit
def _look(model, drive, start, t, s):
    y = model.initial_state(drive, t, start)
    return model.observe(t, y, drive, s), model.energy(t, y, drive)


@eqx.filter_jit
def _slope(model, drive, start, t):
    """(d/dt of the energy along the equations of motion, power of the drive, dissipation)."""
    term = model.term(drive)
    y = model.initial_state(drive, t, start)
    rate = term.rate(t, y, None)

    def energy(h):
        moved = State(
            term.retract(y.mech, jax.tree.map(lambda x: h * x, rate)),
            y.work,
            y.dissipated,
            y.memory,
        )
        return model.energy(t + h, moved, drive).mechanical

    return jax.jvp(energy, (0.0,), (1.0,))[1], *term.power(t, y, None)


SOME = ["efforts", *(pytest.param(n, marks=pytest.mark.slow) for n in ("motions", "mixed"))]


@pytest.mark.parametrize("name", SOME)
def test_rigid_links_equal_the_rigid_chain(name, record_number):
    drive, start = DRIVES[name]
    robot, t, s = equipped_arm(), jnp.asarray(0.23), jnp.array([0.0, 0.3, 1.0])
    worst = 0.0
    seen = []
    for method in (fx.RigidArm(), fx.TransferMatrix()):
        seen.append(_look(method.bind(robot), drive, start, t, s))
    for a, b in zip(*seen, strict=True):
        for field in a.__dataclass_fields__:
            x, y = np.asarray(getattr(a, field)), np.asarray(getattr(b, field))
            worst = max(worst, np.abs(x - y).max() / (1 + np.abs(x).max()))
    record_number(f"rigid links against the rigid chain, {name}", worst, 1e-11)


@pytest.mark.parametrize("rigid", [pytest.param(True, marks=pytest.mark.slow), False])
def test_energy_rate_is_power(rigid, record_number):
    """d/dt of the energies along the equations of motion = power of drive, loads and base, less
    dissipation.
    """
    model = fx.TransferMatrix(segments=3).bind(equipped_arm(rigid))
    for name, (drive, start) in DRIVES.items():
        slope, power, lost = _slope(model, drive, start, jnp.asarray(0.23))
        record_number(
            f"energy rate against power, {name}, rigid {rigid}",
            abs(float(slope - power + lost)) / (1 + abs(float(power))),
            1e-8,
        )
