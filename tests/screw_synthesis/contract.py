"""The robot of the contract: two elastic links in space with what ScrewSynthesis supports."""

import flexjax as fx
from tests.contract_parts import SINGLE_ZERO, Case, Contract, single, single_drive


def arm() -> fx.Robot:
    """A tapered link on a flexible, geared joint with friction; a second one behind a universal
    joint; hub, payload, damping."""
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    damping = fx.Damping(strain_rate=1e-3)
    upper = fx.Link(
        "upper",
        0.4,
        section=fx.Rectangle(0.02, 0.012),
        section_end=fx.Rectangle(0.016, 0.01),
        material=soft,
        damping=damping,
    )
    fore = fx.Link("fore", 0.3, section=fx.Rectangle(0.016, 0.01), material=soft, damping=damping)
    joints = (
        fx.Joint(
            "turntable",
            "revolute",
            "ground",
            "upper",
            axis=(0.1, 1.0, 0.2),
            rotation=(0.0, 0.0, 0.4),
            stiffness=150.0,
            damping=0.2,
            friction=fx.Friction(0.1, 0.05),
            hub=fx.Hub(0.2, 0.01),
            motor=fx.Motor(rotor=1e-3, gear=4.0),
            mass=0.1,
        ),
        fx.Joint(
            "elbow",
            "universal",
            "upper",
            "fore",
            axis=(0.0, 0.0, 1.0),
            axis2=(0.0, 1.0, 0.1),
            offset=(0.0, 0.02, 0.01),
            damping=0.05,
            home=(0.3, -0.2),
            hub=fx.Hub(0.1, (1e-3, 2e-3, 3e-3)),
        ),
    )
    sensors = (
        fx.Sensor("angle", "encoder", "turntable", gain=2.0, offset=0.1),
        fx.Sensor("gauge", "strain_gauge", "upper", s=0.1, position=(0.005, 0.002), gain=1e3),
        fx.Sensor(
            "shake",
            "accelerometer",
            "fore",
            s=0.45,
            direction=(0.0, 1.0, 0.3),
            lowpass=fx.Lowpass(20.0, 0.6),
        ),
    )
    payload = fx.Payload(
        "tool", "fore", 0.1, inertia=(1e-4, 2e-4, 3e-4), offset=(0.01, 0.02, -0.01), s=0.9
    )
    return fx.Robot(
        "elastic-space", (upper, fore), joints, (payload,), sensors, gravity=(0.5, -9.81, 0.3)
    )


def drive() -> fx.Drive:
    push = fx.stack([fx.constant(x) for x in (0.5, 1.0, -0.5, 0.02, 0.01, 0.03)])
    return fx.Drive(
        joints={"turntable": fx.PD(20.0, 1.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05))},
        loads=(fx.Load("upper", push, s=0.3), fx.Load("fore", 0.3 * push, s=0.9, frame="section")),
    )


ZERO = {
    "sensors[0].s": "an encoder has no station",
    "joints[0].home": "the start says where the joint is",
    "joints[1].axis[2]": "only the direction of an axis counts",
}

CONTRACT = Contract(
    smallest=lambda: fx.ScrewSynthesis(modes=1),
    fine=lambda: fx.ScrewSynthesis(modes=4),
    quick_in=("shapes in space",),
    settings={"shapes": {"frequency": 4e-4}},
    methods={
        "limited effort": fx.ScrewSynthesis,
        "shapes": fx.ScrewSynthesis,
        **dict.fromkeys(("short steps", "identify"), lambda: fx.ScrewSynthesis(modes=2)),
    },
    quick=Case(
        lambda: fx.ScrewSynthesis(modes=1),
        single,
        single_drive,
        {},
        balance=1e-12,
        zero=SINGLE_ZERO
        | {
            "links[0].material.nu": "bending in the plane neither shears nor twists",
            "sensors[0].s": "the curvature of one mode is constant",
        },
    ),
    full={
        # In 20 ms the tip moves 0.6 mm, so compliance weighs more: 2.9e-4, 2.9e-5, 2.9e-6 with
        # links 1e5, 1e6, 1e7 times as stiff.
        "": Case(
            lambda: fx.ScrewSynthesis(modes=2),
            arm,
            drive,
            {"turntable": 0.05},
            balance=1e-12,
            steps=4,
            zero=ZERO,
            rigid=1e-4,
        )
    },
)
