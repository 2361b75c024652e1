"""The robot and the drive with which this formulation joins the contract test: everything that it
can hold, in one planar arm."""

import jax.numpy as jnp

import flexjax as fx
from tests.contract_parts import SINGLE_ZERO, Case, Contract, single, single_drive


def arm() -> fx.Robot:
    al = fx.Material.named("aluminium")
    links = (
        fx.Link(
            "upper",
            0.5,
            section=fx.Rectangle(0.02, 0.012),
            section_end=fx.Rectangle(0.02, 0.008),
            material=al,
            curvature=(0.0, 0.0, 0.3),
            damping=fx.Damping(strain_rate=1e-3),
        ),
        fx.Link(
            "fore",
            0.4,
            pieces=(
                fx.Piece(0.4, fx.Tube(0.02, 0.002), material=al),
                fx.Piece(0.6, fx.Circle(0.012), material=al),
            ),
        ),
        fx.Link(
            "hand",
            0.2,
            body=fx.Body(0.3, (0.1, 0.01, 0.0), (1e-3, 1e-3, 2e-3, 0.0, 0.0, 0.0)),
            rigid=True,
        ),
    )
    joints = (
        fx.Joint(
            "shoulder",
            "revolute",
            "ground",
            "upper",
            rotation=(0.0, 0.0, 0.3),
            offset=(0.1, 0.05, 0.0),
            hub=fx.Hub(0.2, 1e-2),
            friction=fx.Friction(0.3, 0.1),
            damping=0.2,
            motor=fx.Motor(rotor=2e-3, gear=3.0),
        ),
        fx.Joint(
            "elbow",
            "revolute",
            "upper",
            "fore",
            stiffness=150.0,
            damping=0.1,
            mass=0.1,
            motor=fx.Motor(rotor=1e-3, gear=4.0),
        ),
        fx.Joint(
            "wrist",
            "revolute",
            "fore",
            "hand",
            home=0.3,
            stops=fx.Stops(-0.5, 0.2, 20.0, 0.1),
            damping=0.02,
        ),
    )
    sensors = (
        fx.Sensor("angle", "encoder", "shoulder", gain=2.0, offset=0.1),
        fx.Sensor("gauge", "strain_gauge", "upper", s=0.1, position=(0.006, 0.0), gain=1e3),
        fx.Sensor("shake", "accelerometer", "fore", s=0.45, direction=(0.0, 1.0, 0.0), gain=1e-2),
    )
    payload = fx.Payload("tool", "fore", 0.2, inertia=1e-3, offset=(0.02, 0.01, 0.0), s=0.8)
    return fx.Robot(
        "segments", links, joints, (payload,), sensors, gravity=(0.5, -9.81, 0.0), planar=True
    )


def drive() -> fx.Drive:
    push = fx.constant(jnp.array([0.5, 1.0, 0.0, 0.0, 0.0, 0.03]))
    return fx.Drive(
        joints={
            "shoulder": fx.PD(40.0, 2.0, fx.quintic(0.0, 0.6, 0.5, begin=-0.05)),
            "elbow": fx.Motion(fx.quintic(0.1, 0.5, 0.4, begin=-0.05)),
        },
        loads=(fx.Load("upper", push, s=0.45), fx.Load("hand", 0.3 * push, s=0.9, frame="section")),
    )


_ACROSS, _DEAD = "across the plane", "planar segments neither shear nor twist"
ZERO = {
    "gravity[2]": _ACROSS,
    "sensors[1].position[1]": _ACROSS,
    "sensors[2].direction[2]": _ACROSS,
    "payloads[0].offset[2]": _ACROSS,
    "links[0].curvature[0]": _ACROSS,
    "links[0].curvature[1]": _ACROSS,
    "links[2].body.com[2]": _ACROSS,
    **{f"links[2].body.inertia[{k}]": _ACROSS for k in (0, 1, 3, 4, 5)},
    **{f"joints[{i}].rotation[{k}]": _ACROSS for i in range(3) for k in (0, 1)},
    **{f"joints[{i}].offset[2]": _ACROSS for i in range(3)},
    **{
        f"drive.loads[{i}].wrench.{inner}value[{k}]": _ACROSS
        for i, inner in enumerate(("", "signal."))
        for k in (2, 3, 4)
    },
    "links[0].material.nu": _DEAD,
    "links[1].pieces[0].material.nu": _DEAD,
    "links[1].pieces[1].material.nu": _DEAD,
    "sensors[0].s": "an encoder has no station",
    "joints[2].stops.lower": "the stop at the other end is not touched",
    "joints[1].home": "a Motion says where the joint is",
    "links[1].pieces[1].fraction": "the last piece goes to the end of the link",
}

CONTRACT = Contract(
    light=True,
    smallest=lambda: fx.TransferMatrix(segments=2),
    fine=lambda: fx.TransferMatrix(segments=24),
    settings={"shapes": {"frequency": 2e-3}},
    methods={
        "limited effort": lambda: fx.TransferMatrix(segments=4),
        "short steps": fx.TransferMatrix,
        "shapes": lambda: fx.TransferMatrix(segments=20),
        "start": lambda: fx.TransferMatrix(segments=5),  # the coordinates of two finite elements
        "identify": lambda: fx.TransferMatrix(segments=3),
    },
    quick=Case(
        lambda: fx.TransferMatrix(segments=2),
        single,
        single_drive,
        {},
        balance=1e-3,
        zero=SINGLE_ZERO | {"links[0].material.nu": _DEAD},
    ),
    full={
        # The balance of the segments' chain is of second order in dt
        # (tests/transfer_matrix/test_time.py); here its size at 5 ms.
        "": Case(
            lambda: fx.TransferMatrix(segments=3),
            arm,
            drive,
            {},
            balance=1e-3,
            steps=4,
            zero=ZERO,
            finer=64,
        )
    },
)
