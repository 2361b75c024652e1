"""Robot and drive of this formulation in the contract test: all features that it supports, in one
arm in space. Loops are in test_step.py."""

import flexjax as fx
from tests.contract_parts import (
    ACROSS,
    SINGLE_ZERO,
    Case,
    Contract,
    elastic_pair,
    pair_drive,
    single,
    single_drive,
)


def arm() -> fx.Robot:
    """A tapered, curved link on a flexible geared joint, a rigid body that slides, a link of two
    pieces on a ball: hubs, friction, stops, damping, payload."""
    soft = fx.Material(E=2e9, nu=0.3, rho=1200.0)
    upper = fx.Link(
        "upper",
        0.4,
        section=fx.Rectangle(0.02, 0.014),
        section_end=fx.Rectangle(0.016, 0.01),
        material=soft,
        curvature=(0.1, 0.2, 0.3),
        damping=fx.Damping(strain_rate=2e-3, mass=0.1),
    )
    middle = fx.Link(
        "middle",
        0.1,
        body=fx.Body(0.3, (0.05, 0.01, 0.0), (1e-3, 2e-3, 2e-3, 1e-4, 0.0, 2e-4)),
        rigid=True,
    )
    fore = fx.Link(
        "fore",
        0.3,
        pieces=(
            fx.Piece(0.4, fx.Tube(0.02, 0.002), material=soft),
            fx.Piece(0.6, fx.Circle(0.016), material=soft),
        ),
    )
    hand = fx.Link("hand", 0.2, section=fx.Rectangle(0.016, 0.012), material=soft)
    joints = (
        fx.Joint(
            "turntable",
            "revolute",
            "ground",
            "upper",
            axis=(0.1, 1.0, 0.2),
            rotation=(0.0, 0.1, 0.4),
            offset=(0.02, 0.01, 0.03),
            stiffness=150.0,
            damping=0.2,
            friction=fx.Friction(0.1, 0.05),
            hub=fx.Hub(0.2, 0.01),
            motor=fx.Motor(rotor=1e-3, gear=4.0),
            mass=0.1,
        ),
        fx.Joint(
            "slide",
            "prismatic",
            "upper",
            "middle",
            axis=(1.0, 0.2, 0.0),
            stops=fx.Stops(-0.1, 0.05, 150.0, 5.0),
            home=0.06,
        ),
        fx.Joint(
            "elbow",
            "universal",
            "middle",
            "fore",
            axis=(0.0, 0.0, 1.0),
            axis2=(0.0, 1.0, 0.1),
            offset=(0.0, 0.02, 0.01),
            damping=0.05,
            hub=fx.Hub(0.1, (1e-3, 2e-3, 3e-3)),
        ),
        fx.Joint("wrist", "spherical", "fore", "hand", home=(0.2, -0.3, 0.1), damping=0.02),
    )
    sensors = (
        fx.Sensor("angle", "encoder", "turntable", gain=2.0, offset=0.1),
        fx.Sensor("gauge", "strain_gauge", "upper", s=0.1, position=(0.005, 0.002), gain=1e2),
        fx.Sensor("shake", "accelerometer", "fore", s=0.45, direction=(0.0, 1.0, 0.3), gain=0.1),
    )
    payload = fx.Payload(
        "tool", "hand", 0.1, inertia=(1e-4, 2e-4, 3e-4), offset=(0.01, 0.02, -0.01), s=0.8
    )
    return fx.Robot(
        "elastic-mechanism",
        (upper, middle, fore, hand),
        joints,
        (payload,),
        sensors,
        gravity=(0.5, -9.81, 0.3),
    )


def drive() -> fx.Drive:
    push = fx.stack([fx.constant(x) for x in (0.5, 1.0, -0.5, 0.02, 0.01, 0.03)])
    return fx.Drive(
        joints={
            "turntable": fx.PD(20.0, 1.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05)),
            "slide": fx.Effort(fx.polynomial([1.0, 2.0])),
            "elbow": fx.Motion(
                fx.stack([fx.quintic(0.1, 0.5, 0.4, begin=-0.05), fx.sine(0.2, 1.5)])
            ),
        },
        loads=(fx.Load("upper", push, s=0.3), fx.Load("hand", 0.3 * push, s=0.9, frame="section")),
    )


ZERO = {
    "sensors[0].s": "an encoder has no station",
    "joints[0].home": "the start says where the joint is",
    "joints[1].stops.lower": "the stop at the other end is not touched",
    "joints[2].home": "a Motion says where the joint is",
    "joints[2].axis[2]": "only the direction of an axis counts",
}

CONTRACT = Contract(
    smallest=lambda: fx.PortHamiltonian(elements=2),
    fine=lambda: fx.PortHamiltonian(elements=16),
    quick_in=("recomputed runs",),
    methods={
        "short steps": lambda: fx.PortHamiltonian(elements=4),
        "identify": lambda: fx.PortHamiltonian(elements=3),
        "shapes": lambda: fx.PortHamiltonian(elements=20),
        "solver drives": lambda: fx.PortHamiltonian(elements=1),
    },
    settings={"short steps": {"h": 2e-3}, "shapes": {"tip": 1e-4, "frequency": 2e-3}},
    quick=Case(
        lambda: fx.PortHamiltonian(elements=2),
        single,
        single_drive,
        {},
        balance=1e-12,
        zero=SINGLE_ZERO,
    ),
    full={
        # The rigid arm has another step, and the two differ by their errors in time: 3.0e-5 of the
        # motion at 5 ms, 7.4e-6 at half, 2.2e-6 at a quarter; what is left there is the links'
        # compliance (2.5e-4 with links 1e4 times as stiff).
        #
        # The payload is inside an element: on a node the derivative of reactions w.r.t. its place
        # changes within 1e-4 of the link (5.55 N at s = 1, where differences tend to it from 7.3 at
        # 1e-3), because its share takes over the small rotary inertia of the node beside it.
        "": Case(
            lambda: fx.PortHamiltonian(elements=4),
            lambda: elastic_pair().replace("payloads.tool.s", 0.9),
            pair_drive,
            {},
            balance=1e-12,
            finer=4,
            zero={"gravity[2]": ACROSS, "sensors[0].position[1]": ACROSS},
        ),
        # Errors in time 8.1e-4, 5.0e-5, 3.1e-6 at 5 ms, a quarter and a sixteenth of it. The light
        # hand on its ball turns as the links bend: 2.97e-3, 2.97e-4, 2.96e-5, 2.8e-6, 3e-7 with
        # links 1e4, 1e5, 1e6, 1e7, 1e8 times as stiff.
        "in space": Case(
            lambda: fx.PortHamiltonian(elements=2),
            arm,
            drive,
            {"turntable": 0.05},
            balance=1e-12,
            steps=4,
            zero=ZERO,
            finer=16,
            stiffer=1e7,
        ),
    },
)
