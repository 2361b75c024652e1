"""The contract of RigidArm: links in space on every kind of joint."""

import flexjax as fx
from tests.contract_parts import ON_GROUND, Case, Contract


def every_joint() -> fx.Robot:
    """Rigid links in space: flexible and geared, universal and spherical joints, shifts, stops,
    friction, hubs, payload, curvature, taper."""
    al = fx.Material.named("aluminium")
    column = fx.Link(
        "column",
        0.4,
        body=fx.Body(1.2, (0.2, 0.01, 0.0), (0.01, 0.02, 0.02, 0.001, 0.0, 0.002)),
        rigid=True,
    )
    upper = fx.Link(
        "upper",
        0.5,
        section=fx.Rectangle(0.03, 0.02),
        section_end=fx.Rectangle(0.02, 0.01),
        material=al,
        curvature=(0.1, 0.2, 0.3),
    )
    pieces = (
        fx.Piece(0.4, fx.Tube(0.03, 0.002), material=al),
        fx.Piece(0.6, fx.Circle(0.02), material=al),
    )
    fore = fx.Link("fore", 0.4, pieces=pieces)
    hand = fx.Link("hand", 0.2, section=fx.IBeam(0.03, 0.02, 0.004, 0.003), material=al)
    joints = (
        fx.Joint(
            "turntable",
            "revolute",
            "ground",
            "column",
            axis=(0.1, 1.0, 0.0),
            rotation=(0.0, 0.0, 1.5),
            stiffness=150.0,
            damping=0.2,
            friction=fx.Friction(0.3, 0.05),
            hub=fx.Hub(0.2, 0.01),
            motor=fx.Motor(rotor=1e-3, gear=4.0),
            mass=0.1,
        ),
        fx.Joint(
            "shoulder",
            "universal",
            "column",
            "upper",
            axis=(0.0, 0.0, 1.0),
            axis2=(0.0, 1.0, 0.0),
            offset=(0.0, 0.05, 0.0),
            damping=0.1,
        ),
        fx.Joint(
            "slide",
            "prismatic",
            "upper",
            "fore",
            axis=(1.0, 0.2, 0.0),
            stops=fx.Stops(-0.1, 0.05, 150.0, 5.0),
            home=0.06,
            motor=fx.Motor(rotor=0.02, gear=2.0),
            hub=fx.Hub(0.1, (1e-4, 2e-4, 3e-4)),
        ),
        fx.Joint("wrist", "spherical", "fore", "hand", home=(0.2, -0.3, 0.1), damping=0.02),
    )
    sensors = (
        fx.Sensor("angle", "encoder", "turntable", gain=2.0, offset=0.1),
        fx.Sensor("reach", "tip", "hand", s=0.7, direction=(1.0, 0.5, 0.2)),
        fx.Sensor(
            "shake",
            "accelerometer",
            "upper",
            s=0.45,
            direction=(0.0, 1.0, 0.3),
            lowpass=fx.Lowpass(20.0, 0.6),
        ),
    )
    payload = fx.Payload(
        "tool", "hand", 0.4, inertia=(1e-3, 2e-3, 1.5e-3), offset=(0.02, 0.01, -0.01)
    )
    return fx.Robot(
        "every-joint",
        (column, upper, fore, hand),
        joints,
        (payload,),
        sensors,
        gravity=(0.5, -9.81, 0.3),
    )


def every_drive() -> fx.Drive:
    push = fx.stack([fx.constant(x) for x in (0.5, 1.0, -0.5, 0.02, 0.01, 0.03)])
    return fx.Drive(
        joints={
            "turntable": fx.PD(40.0, 2.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05)),
            "shoulder": fx.Motion(
                fx.stack([fx.quintic(0.1, 0.5, 0.4, begin=-0.05), fx.sine(0.2, 1.5)])
            ),
            "slide": fx.Effort(fx.polynomial([1.0, 2.0])),
        },
        loads=(fx.Load("fore", push, s=0.3), fx.Load("hand", 0.3 * push, s=0.9, frame="section")),
    )


def pair() -> fx.Robot:
    """Two links in space: a geared joint with friction, then a slider that touches a stop."""
    al = fx.Material.named("aluminium")
    upper = fx.Link("upper", 0.5, section=fx.Rectangle(0.03, 0.02), material=al)
    body = fx.Body(0.3, (0.1, 0.01, 0.02), (1e-3, 2e-3, 2e-3, 1e-4, 0.0, 2e-4))
    fore = fx.Link("fore", 0.3, body=body, rigid=True)
    joints = (
        fx.Joint(
            "turntable",
            "revolute",
            "ground",
            "upper",
            axis=(0.1, 1.0, 0.2),
            stiffness=150.0,
            damping=0.2,
            friction=fx.Friction(0.3, v_eps=0.5),
            hub=fx.Hub(0.2, 0.01),
            motor=fx.Motor(rotor=1e-3, gear=4.0),
        ),
        fx.Joint(
            "slide",
            "prismatic",
            "upper",
            "fore",
            axis=(1.0, 0.2, 0.1),
            home=0.06,
            stops=fx.Stops(-0.1, 0.05, 150.0, 5.0),
        ),
    )
    payload = fx.Payload("tool", "fore", 0.1, inertia=1e-4, offset=(0.01, 0.02, -0.01))
    sensor = fx.Sensor("reach", "tip", "fore", s=0.7, direction=(1.0, 0.5, 0.2))
    gravity = (0.5, -9.81, 0.3)
    return fx.Robot("rigid-pair", (upper, fore), joints, (payload,), (sensor,), gravity=gravity)


def pair_drive() -> fx.Drive:
    push = fx.constant((0.5, 1.0, -0.5, 0.02, 0.01, 0.03))
    return fx.Drive(
        joints={"turntable": fx.PD(20.0, 1.0, fx.sine(0.4, 1.5, phase=0.3))},
        loads=(fx.Load("fore", push, s=0.9, frame="section"),),
    )


_ELASTIC = "elastic constants do not matter where every link is rigid"
_FAR_STOP = "the stop at the other end is not touched"
_DIRECTION = "only the direction of an axis counts"
CONTRACT = Contract(
    light=True,
    smallest=fx.RigidArm,
    fine=fx.RigidArm,
    quick=Case(
        fx.RigidArm,
        pair,
        pair_drive,
        {"turntable": 0.05},
        balance=1e-12,
        rigid=None,
        zero={
            "links[0].material.E": _ELASTIC,
            "links[0].material.nu": _ELASTIC,
            "joints[1].stops.lower": _FAR_STOP,
            "joints[0].hub.mass": ON_GROUND,
            "joints[0].home": "the start says where the joint is",
        },
    ),
    full={
        "": Case(
            fx.RigidArm,
            every_joint,
            every_drive,
            {"turntable": 0.05},
            balance=1e-12,
            rigid=None,
            zero={
                **{f"links[{i}].material.{k}": _ELASTIC for i in (1, 3) for k in ("E", "nu")},
                **{
                    f"links[2].pieces[{i}].material.{k}": _ELASTIC
                    for i in (0, 1)
                    for k in ("E", "nu")
                },
                "joints[2].stops.lower": _FAR_STOP,
                "joints[1].home": "a Motion says where the joint is",
                "joints[0].home": "the start says where the joint is",
                "sensors[0].s": "an encoder has no station",
                "links[0].body.inertia[2]": "the column turns about an axis in its x-y plane only",
                "joints[1].axis[2]": _DIRECTION,
                "joints[1].axis2[1]": _DIRECTION,
            },
        )
    },
)
