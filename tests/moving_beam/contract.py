"""The robot and the drive with which this formulation joins the contract test: a telescope of two
tubes on a driven carrier."""

import flexjax as fx
from tests.contract_parts import ACROSS, FLAT, Case, Contract


def arm() -> fx.Robot:
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    column = fx.Link(
        "column",
        0.2,
        body=fx.Body(0.8, (0.1, 0.01, 0.0), (1e-3, 2e-3, 2e-3, 0.0, 0.0, 0.0)),
        rigid=True,
    )
    outer = fx.Link(
        "outer",
        0.5,
        section=fx.Tube(0.03, 0.002),
        material=soft,
        damping=fx.Damping(strain_rate=2e-3),
    )
    inner = fx.Link(
        "inner", 0.4, section=fx.Tube(0.024, 0.002), material=soft, damping=fx.Damping(mass=0.1)
    )
    joints = (
        fx.Joint(
            "turn",
            "revolute",
            "ground",
            "column",
            offset=(0.02, 0.01, 0.0),
            damping=0.1,
            hub=fx.Hub(0.1, 2e-3),
            friction=fx.Friction(0.3, 0.1),
        ),
        fx.Joint(
            "lift",
            "revolute",
            "column",
            "outer",
            home=0.2,
            damping=0.05,
            mass=0.1,
            stops=fx.Stops(-1.0, 0.1, 30.0, 0.5),
        ),
        fx.Joint("extend", "prismatic", "outer", "inner", home=0.25, damping=0.3),
    )
    payload = fx.Payload("tool", "inner", 0.1, inertia=1e-4)
    sensors = (
        fx.Sensor("gauge", "strain_gauge", "outer", s=0.13, position=(0.005, 0.0), gain=1e2),
        fx.Sensor("reach", "tip", "inner", s=0.9, direction=(1.0, 0.5, 0.0)),
    )
    return fx.Robot(
        "telescope",
        (column, outer, inner),
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
            "turn": fx.PD(20.0, 1.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05)),
            "lift": fx.Effort(fx.polynomial([1.0, 2.0])),
            "extend": fx.Motion(fx.quintic(0.25, 0.3, 0.5, begin=-0.05)),
        },
        loads=(fx.Load("outer", push, s=0.4),),
    )


def boom() -> fx.Robot:
    """One beam that slides out of a guide on the ground. A payload and a load would double the
    time of compilation; the full case has both."""
    tube = fx.Link(
        "tube",
        0.5,
        section=fx.Tube(0.03, 0.002),
        material=fx.Material(E=5e9, nu=0.3, rho=1200.0),
        damping=fx.Damping(strain_rate=5e-3),
    )
    joint = fx.Joint(
        "extend",
        "prismatic",
        "ground",
        "tube",
        rotation=(0.0, 0.0, 0.3),
        home=0.3,
        damping=0.3,
        friction=fx.Friction(0.1, v_eps=0.5),
    )
    gauge = fx.Sensor("gauge", "strain_gauge", "tube", s=0.8, position=(0.005, 0.0), gain=1e2)
    return fx.Robot("boom", (tube,), (joint,), sensors=(gauge,), planar=True)


def boom_drive() -> fx.Drive:
    reference = fx.constant(0.3) + fx.sine(0.05, 1.5, phase=0.3)
    return fx.Drive(joints={"extend": fx.PD(100.0, 5.0, reference)})


_NU = "bending in the plane neither shears nor twists"
CONTRACT = Contract(
    smallest=lambda: fx.MovingBeam(elements=1),
    fine=lambda: fx.MovingBeam(elements=4),
    methods={
        "limited effort": lambda: fx.MovingBeam(elements=2),
        "short steps": fx.MovingBeam,
        "shapes": lambda: fx.MovingBeam(elements=3),
    },
    settings={
        "short steps": {"h": 2e-3},
        # The others bend to half the length of their link, where this energy (of the fourth order)
        # does not hold and Newton's iteration fails at steps of 5 ms. Half of the recording: its
        # steps cost the most.
        "identify": {"size": 0.025, "samples": 61},
    },
    quick=Case(
        lambda: fx.MovingBeam(elements=1),
        boom,
        boom_drive,
        {},
        balance=1e-6,
        zero={
            "gravity[2]": ACROSS,
            "sensors[0].position[1]": ACROSS,
            **{f"joints[0].rotation[{k}]": ACROSS for k in (0, 1)},
            "links[0].material.nu": _NU,
        },
    ),
    full={
        "": Case(
            lambda: fx.MovingBeam(elements=3),
            arm,
            drive,
            {},
            balance=1e-6,
            steps=4,
            zero=FLAT | {f"links[{i}].material.nu": _NU for i in (1, 2)},
        )
    },
)
