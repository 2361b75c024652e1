"""The robot and the drive with which this formulation joins the contract test: all three kinds of
joints, and everything that they and the links support."""

import flexjax as fx
from tests.contract_parts import FLAT, SINGLE_ZERO, Case, Contract, single, single_drive


def arm() -> fx.Robot:
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    damping = fx.Damping(strain_rate=2e-3, mass=0.1)
    carrier = fx.Link(
        "carrier",
        0.5,
        section=fx.Rectangle(0.02, 0.014),
        section_end=fx.Rectangle(0.02, 0.01),
        material=soft,
        damping=damping,
    )
    rider = fx.Link("rider", 0.3, section=fx.Rectangle(0.02, 0.01), material=soft)
    boom = fx.Link("boom", 0.4, section=fx.Rectangle(0.02, 0.01), material=soft)
    joints = (
        fx.Joint(
            "shoulder",
            "revolute",
            "ground",
            "carrier",
            offset=(0.02, 0.01, 0.0),
            stiffness=150.0,
            damping=0.1,
            hub=fx.Hub(0.1, 2e-3),
            motor=fx.Motor(rotor=1e-3, gear=3.0),
            friction=fx.Friction(0.3, 0.1),
        ),
        fx.Joint(
            "slider",
            "sliding",
            "carrier",
            "rider",
            rotation=(0.0, 0.0, 0.7),
            home=0.3,
            damping=0.5,
            mass=0.1,
            stops=fx.Stops(0.1, 0.25, 60.0, 1.0),
        ),
        fx.Joint(
            "guide",
            "prismatic",
            "rider",
            "boom",
            rotation=(0.0, 0.0, -0.9),
            home=0.25,
            damping=0.3,
            mass=0.1,
        ),
    )
    payload = fx.Payload("tool", "boom", 0.1, inertia=1e-4, offset=(0.01, 0.005, 0.0))
    sensors = (
        fx.Sensor("gauge", "strain_gauge", "carrier", s=0.13, position=(0.005, 0.0), gain=1e2),
        fx.Sensor("reach", "tip", "boom", s=0.9, direction=(1.0, 0.5, 0.0)),
    )
    return fx.Robot(
        "finite-elements",
        (carrier, rider, boom),
        joints,
        (payload,),
        sensors,
        gravity=(0.5, -9.81, 0.0),
        planar=True,
    )


def drive() -> fx.Drive:
    push = fx.stack([fx.constant(x) for x in (0.1, 0.2, 0.0, 0.0, 0.0, 0.01)])
    return fx.Drive(
        joints={
            "shoulder": fx.PD(20.0, 1.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05)),
            "slider": fx.Effort(fx.polynomial([1.0, 2.0])),
            "guide": fx.Motion(fx.quintic(0.25, 0.3, 0.5, begin=-0.05)),
        },
        loads=(
            fx.Load("carrier", push, s=0.4),
            fx.Load("boom", 0.3 * push, s=0.9, frame="section"),
        ),
    )


_NU = "bending in the plane neither shears nor twists"
CONTRACT = Contract(
    smallest=lambda: fx.FiniteElement(elements=1),
    fine=lambda: fx.FiniteElement(elements=6),
    quick_in=("equilibrium",),
    methods={
        "shapes": lambda: fx.FiniteElement(elements=4),
    }
    | dict.fromkeys(
        ("limited effort", "short steps", "identify", "start"),
        lambda: fx.FiniteElement(elements=2),
    ),
    quick=Case(
        lambda: fx.FiniteElement(elements=2),
        single,
        single_drive,
        {},
        balance=1e-10,
        zero=SINGLE_ZERO | {"links[0].material.nu": _NU},
    ),
    full={
        # The loss is uncertain by 5e-13 (reactions of stiff links), which steps of a thousandth
        # turn into 1e-6 of the smaller derivatives.
        "": Case(
            lambda: fx.FiniteElement(elements=2),
            arm,
            drive,
            {},
            balance=1e-10,
            steps=4,
            step=3e-3,
            zero=FLAT | {f"links[{i}].material.nu": _NU for i in range(3)},
        )
    },
)
