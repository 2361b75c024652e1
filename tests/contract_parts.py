"""What a formulation declares for the contract test, and robots that several formulations share."""

import dataclasses
from collections.abc import Callable

import flexjax as fx


@dataclasses.dataclass(frozen=True)
class Case:
    """One robot under one drive, and the limits that its rows of the contract must keep.

    ``zero``: paths (prefixes) of parameters whose gradient is exactly zero, each with the reason.
    """

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
    # Largest difference from the rigid arm, relative to its motion, when every link is ``stiffer``
    # times as stiff; None: the formulation has no elastic links.
    rigid: float | None = 1e-5
    stiffer: float = 1e6
    rigid_robot: Callable[[fx.Robot], fx.Robot] = lambda robot: robot
    # How many times shorter steps are there: the limits are compared, not the errors in time.
    finer: int = 1


@dataclasses.dataclass(frozen=True)
class Contract:
    """What ``tests/<folder of the formulation>/contract.py`` declares as ``CONTRACT``.

    ``quick``: the smallest arm that shows what is particular to the formulation; its programs must
    compile in a few seconds, because `make test` runs all its rows. ``full``: arms with every
    feature that the formulation supports, by a word that distinguishes them; in the full report.
    """

    smallest: Callable[[], object]  # the fewest unknowns, for tests of programs and not of physics
    fine: Callable[[], object]  # resolves the shared robots to one per cent of their deflection
    quick: Case
    full: dict[str, Case]
    # Its programs compile within seconds: `make test` runs it in tests of every formulation. Others
    # name the topics in which they run there.
    light: bool = False
    quick_in: tuple[str, ...] = ()
    # Other options than ``smallest``, and settings, for tests that need them: topic of the test ->
    # formulation, or the test's own keywords.
    methods: dict[str, Callable[[], object]] = dataclasses.field(default_factory=dict)
    settings: dict[str, dict] = dataclasses.field(default_factory=dict)


def elastic_pair() -> fx.Robot:
    """Two elastic links in the plane: hub, payload, damping, a joint's damping; what every flexible
    formulation of serial arms supports."""
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
    """One elastic link on a hub: what every formulation supports."""
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


def single() -> fx.Robot:
    """One elastic link on a driven joint with friction, a rotor, a hub and an eccentric payload."""
    link = fx.Link(
        "link",
        0.5,
        section=fx.Rectangle(0.02, 0.01),
        material=fx.Material(E=5e9, nu=0.3, rho=1200.0),
        damping=fx.Damping(strain_rate=5e-3),
    )
    joint = fx.Joint(
        "root",
        "revolute",
        "ground",
        "link",
        damping=0.05,
        hub=fx.Hub(0.1, 2e-3),
        motor=fx.Motor(rotor=1e-4, gear=3.0),
        friction=fx.Friction(0.1, v_eps=0.5),
    )
    payload = fx.Payload("tool", "link", 0.05, inertia=1e-4, offset=(0.01, 0.005, 0.0), s=0.9)
    gauge = fx.Sensor("gauge", "strain_gauge", "link", s=0.1, position=(0.005, 0.0), gain=1e2)
    return fx.Robot("single", (link,), (joint,), (payload,), (gauge,), planar=True)


def single_drive() -> fx.Drive:
    """A controller that follows a smooth reference, and a force on the link."""
    push = fx.constant((0.1, 0.2, 0.0, 0.0, 0.0, 0.01))
    return fx.Drive(
        joints={"root": fx.PD(10.0, 0.5, fx.sine(0.4, 1.5, phase=0.3))},
        loads=(fx.Load("link", push, s=0.4),),
    )


ACROSS = "across the plane"
ON_GROUND = "a hub on the ground has no effect but on the reaction, which quick rows leave out"
SINGLE_ZERO = {
    "joints[0].hub.mass": ON_GROUND,
    "gravity[2]": ACROSS,
    "sensors[0].position[1]": ACROSS,
    "payloads[0].offset[2]": ACROSS,
    **{f"drive.loads[0].wrench.value[{k}]": ACROSS for k in (2, 3, 4)},
}
FLAT = {
    "gravity[2]": ACROSS,
    "sensors[0].position[1]": ACROSS,
    "sensors[1].direction[2]": ACROSS,
    "payloads[0].offset[2]": ACROSS,
    **{f"joints[{i}].rotation[{k}]": ACROSS for i in range(3) for k in (0, 1)},
    **{f"joints[{i}].offset[2]": ACROSS for i in range(3)},
    **{
        f"drive.loads[{i}].wrench.{inner}signals[{k}]": ACROSS
        for i, inner in enumerate(("", "signal."))
        for k in (2, 3, 4)
    },
    "joints[2].home": "a Motion says where the joint is",
    "joints[1].stops.lower": "the stop at the other end is not touched",
    "links[0].body.com[2]": ACROSS,
    **{f"links[0].body.inertia[{k}]": ACROSS for k in (0, 1, 3, 4, 5)},
}
