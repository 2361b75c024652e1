"""The registry of the contract test: one case per formulation, with one robot that holds every feature that it supports (where that is slow to compile, in a
second case whose name goes on)."""

import dataclasses
from collections.abc import Callable

import flexjax as fx
from tests.finite_element import contract as finite_element
from tests.moving_beam import contract as moving_beam
from tests.port_hamiltonian import contract as port_hamiltonian
from tests.screw_synthesis import contract as screw_synthesis
from tests.transfer_matrix import contract as transfer_matrix


@dataclasses.dataclass(frozen=True)
class Case:
    """``zero`` lists paths (prefixes) of numbers whose gradient is exactly zero, each with the reason."""

    formulation: Callable[[], object]
    robot: Callable[[], fx.Robot]
    drive: Callable[[], fx.Drive]
    start: dict
    zero: dict[str, str]
    balance: float  # largest relative error of the energy balance with the default solver
    dt: float = 5e-3
    steps: int = 12
    gradient: float = 1e-6  # largest relative disagreement of the three derivatives
    step: float = 1e-3  # smallest relative step of the differences
    rigid: float = 1e-5  # largest difference from the rigid arm, relative to its motion, when every link is a million times stiffer
    stiffer: float = 1e6  # or how many times, where the compliance of such links is above the limit
    rigid_robot: Callable[[fx.Robot], fx.Robot] = lambda robot: (
        robot
    )  # what the rigid arm is made of
    finer: int = 1  # how many times shorter steps are there: what is compared are the limits, not the steps' errors
    long: bool = False  # its programs compile for a minute: all of it in the full report only
    one_sided: tuple[
        str, ...
    ] = ()  # numbers at the end of their range, where differences step outside it


def every_joint() -> fx.Robot:
    """Rigid links in space: flexible and geared, universal and spherical joints, shifts, stops, friction, hubs, payload, curvature, taper."""
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
            "turntable", "revolute", "ground", "column", axis=(0.1, 1.0, 0.0), rotation=(0.0, 0.0, 1.5), stiffness=150.0, damping=0.2,
            friction=fx.Friction(0.3, 0.05), hub=fx.Hub(0.2, 0.01), motor=fx.Motor(rotor=1e-3, gear=4.0), mass=0.1,
        ),
        fx.Joint("shoulder", "universal", "column", "upper", axis=(0.0, 0.0, 1.0), axis2=(0.0, 1.0, 0.0), offset=(0.0, 0.05, 0.0), damping=0.1),
        fx.Joint("slide", "prismatic", "upper", "fore", axis=(1.0, 0.2, 0.0), stops=fx.Stops(-0.1, 0.05, 150.0, 5.0), home=0.06,
                 motor=fx.Motor(rotor=0.02, gear=2.0), hub=fx.Hub(0.1, (1e-4, 2e-4, 3e-4))),
        fx.Joint("wrist", "spherical", "fore", "hand", home=(0.2, -0.3, 0.1), damping=0.02),
    )  # fmt: skip
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


def elastic_pair() -> fx.Robot:
    """Two elastic links in the plane: hub, payload, damping, a joint's damping; what every flexible formulation of serial arms can hold."""
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    damping = fx.Damping(strain_rate=2e-3)
    upper = fx.Link("upper", 0.4, section=fx.Rectangle(0.02, 0.01), material=soft, damping=damping)
    fore = fx.Link("fore", 0.3, section=fx.Rectangle(0.02, 0.008), material=soft, damping=damping)
    joints = (
        fx.Joint("shoulder", "revolute", "ground", "upper", hub=fx.Hub(0.1, 2e-3)),
        fx.Joint("elbow", "revolute", "upper", "fore", damping=0.05, hub=fx.Hub(0.15, 1e-3)),
    )
    payload = fx.Payload("tool", "fore", 0.1, inertia=1e-4)
    sensor = fx.Sensor("gauge", "strain_gauge", "upper", s=0.1, position=(0.005, 0.0), gain=1e3)
    return fx.Robot("elastic-pair", (upper, fore), joints, (payload,), (sensor,), planar=True)


def pendulum(damping: fx.Damping | None = None) -> fx.Robot:
    """One elastic link on a hub: what every formulation can hold."""
    link = fx.Link(
        "link",
        0.5,
        section=fx.Rectangle(0.02, 0.01),
        material=fx.Material(E=5e9, nu=0.3, rho=1200.0),
        damping=damping,
    )
    joint = fx.Joint("root", "revolute", "ground", "link", hub=fx.Hub(0.1, 2e-3))
    return fx.Robot("pendulum", (link,), (joint,), (fx.Payload("tool", "link", 0.05),), planar=True)


def pair_drive() -> fx.Drive:
    return fx.Drive(
        joints={
            "shoulder": fx.Motion(fx.quintic(0.1, 0.5, 0.4, begin=-0.05)),
            "elbow": fx.PD(3.0, 0.1, fx.constant(0.6)),
        }
    )


_ACROSS = "across the plane"
_FLAT = {
    "gravity[2]": _ACROSS, "sensors[0].position[1]": _ACROSS, "sensors[1].direction[2]": _ACROSS, "payloads[0].offset[2]": _ACROSS,
    **{f"joints[{i}].rotation[{k}]": _ACROSS for i in range(3) for k in (0, 1)}, **{f"joints[{i}].offset[2]": _ACROSS for i in range(3)},
    **{f"drive.loads[{i}].wrench.{inner}signals[{k}]": _ACROSS for i, inner in enumerate(("", "signal.")) for k in (2, 3, 4)},
    "joints[2].home": "a Motion says where the joint is", "joints[1].stops.lower": "the stop at the other end is not touched",
    "links[0].body.com[2]": _ACROSS, **{f"links[0].body.inertia[{k}]": _ACROSS for k in (0, 1, 3, 4, 5)},
}  # fmt: skip
_ELASTIC = "elastic constants do not matter where every link is rigid"

CASES = {
    "RigidArm": Case(
        fx.RigidArm, every_joint, every_drive, {"turntable": 0.05}, balance=1e-12,
        zero={
            "links[1].material.E": _ELASTIC, "links[1].material.nu": _ELASTIC, "links[2].pieces[0].material.E": _ELASTIC,
            "links[2].pieces[0].material.nu": _ELASTIC, "links[2].pieces[1].material.E": _ELASTIC, "links[2].pieces[1].material.nu": _ELASTIC,
            "links[3].material.E": _ELASTIC, "links[3].material.nu": _ELASTIC,
            "joints[2].stops.lower": "the stop at the other end is not touched",
            "joints[1].home": "a Motion says where the joint is", "joints[0].home": "the start says where the joint is",
            "sensors[0].s": "an encoder has no station",
            "links[0].body.inertia[2]": "the column turns about an axis in its x-y plane only",
            "joints[1].axis[2]": "only the direction of an axis counts", "joints[1].axis2[1]": "only the direction of an axis counts",
        },
    ),
    "ScrewSynthesis": Case(
        lambda: fx.ScrewSynthesis(modes=2), screw_synthesis.arm, screw_synthesis.drive, {"turntable": 0.05}, balance=1e-12, long=True, steps=4,
        # In 20 ms the tip moves 0.6 mm, so compliances weigh more: 2.9e-4, 2.9e-5, 2.9e-6 with links 1e5, 1e6, 1e7 times as stiff.
        zero=screw_synthesis.ZERO, rigid=1e-4,
    ),
    # The rigid arm has another step, and the two differ by their errors in time: 3.0e-5 of the motion at 5 ms, 7.4e-6 at half, 2.2e-6 at a quarter; what is
    # left there is the links' compliance (2.5e-4 with links 1e4 times as stiff).
    "PortHamiltonian": Case(
        lambda: fx.PortHamiltonian(elements=4), elastic_pair, pair_drive, {}, balance=1e-12, one_sided=("payloads[0].s",), finer=4,
        zero={"gravity[2]": _ACROSS, "sensors[0].position[1]": _ACROSS},
    ),
    # Errors in time 8.1e-4, 5.0e-5, 3.1e-6 at 5 ms, a quarter and a sixteenth of it. The light hand on its ball turns as the links bend: 2.97e-3, 2.97e-4,
    # 2.96e-5, 2.8e-6, 3e-7 with links 1e4, 1e5, 1e6, 1e7, 1e8 times as stiff.
    "PortHamiltonian in space": Case(
        lambda: fx.PortHamiltonian(elements=2), port_hamiltonian.arm, port_hamiltonian.drive, {"turntable": 0.05}, balance=1e-12, long=True, steps=4,
        zero=port_hamiltonian.ZERO, finer=16, stiffer=1e7,
    ),
    # The balance of the segments' chain is of second order in dt (tests/transfer_matrix/test_time.py); here its size at 5 ms.
    "TransferMatrix": Case(
        lambda: fx.TransferMatrix(segments=3), transfer_matrix.arm, transfer_matrix.drive, {}, balance=1e-3, steps=4, zero=transfer_matrix.ZERO,
        finer=64,
    ),
    # The loss is uncertain by 5e-13 (reactions of stiff links), which steps of a thousandth turn into 1e-6 of the smaller derivatives.
    "FiniteElement": Case(
        lambda: fx.FiniteElement(elements=2), finite_element.arm, finite_element.drive, {}, balance=1e-10, long=True, steps=4,
        step=3e-3, rigid_robot=finite_element.without_rotary_inertia,
        zero=_FLAT | {f"links[{i}].material.nu": "bending in the plane neither shears nor twists" for i in range(3)},
    ),
    "MovingBeam": Case(
        lambda: fx.MovingBeam(elements=3), moving_beam.arm, moving_beam.drive, {}, balance=1e-6, long=True, steps=4,
        zero=_FLAT | {f"links[{i}].material.nu": "bending in the plane neither shears nor twists" for i in (1, 2)},
    ),
}  # fmt: skip

# The fewest unknowns of each formulation, for what is about programs and not about physics.
SMALLEST = {
    "RigidArm": fx.RigidArm,
    "TransferMatrix": lambda: fx.TransferMatrix(segments=2),
    "FiniteElement": lambda: fx.FiniteElement(elements=1),
    "ScrewSynthesis": lambda: fx.ScrewSynthesis(modes=1),
    "PortHamiltonian": lambda: fx.PortHamiltonian(elements=2),
    "MovingBeam": lambda: fx.MovingBeam(elements=1),
}
