"""One generator of random robots, drives, starts, solvers, steps and formulations.

What is compiled (names, types, counts, kinds of signals, the formulation and its solver) follows
from one random stream, the numbers from another: cases of one structure share their programs.
"""

import dataclasses
import functools
from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np

import flexjax as fx

ROTATING = ("revolute", "revolute", "revolute", "fixed")
FORMULATIONS = (
    *("RigidArm", "ScrewSynthesis", "FiniteElement"),
    *("TransferMatrix", "MovingBeam", "PortHamiltonian"),
)
# What a formulation is likely to support; a robot that it refuses all the same is drawn again.
KINDS: dict[str, dict[str, Any]] = {
    "RigidArm": dict(
        space=0.6, types=(*ROTATING, "prismatic", "sliding", "universal", "spherical", "free")
    ),
    "ScrewSynthesis": dict(
        space=0.5, types=(*ROTATING, "prismatic", "universal", "spherical", "free"), modal=True
    ),
    "FiniteElement": dict(space=0.0, types=(*ROTATING, "prismatic", "sliding", "telescope")),
    "TransferMatrix": dict(
        space=0.4, types=(*ROTATING, "universal"), sides=False, bristles=False, mass_damping=False
    ),
    "MovingBeam": dict(
        space=0.3, types=("revolute", "prismatic", "fixed", "telescope"), elastic="last"
    ),
    "PortHamiltonian": dict(
        space=0.4,
        types=(*ROTATING, "prismatic", "universal", "spherical", "free"),
        curved=True,
        branches=True,
    ),
}
ANY = dict(
    space=0.5,
    types=(*ROTATING, "prismatic", "sliding", "telescope", "universal", "spherical", "free"),
    modal=True,
    curved=True,
    branches=True,
)
OUTPUTS = 33  # of a run, one step between each two


@dataclasses.dataclass
class Case:
    """A run as a user writes it. ``steps``: n times of one step each, from ``t0`` on."""

    formulation: Any
    robot: fx.Robot
    drive: fx.Drive
    start: fx.Start
    solver: Any
    dt: float
    t0: float = 0.0

    @property
    def ts(self) -> np.ndarray:
        return self.times(0)

    def times(self, halvings: int) -> np.ndarray:
        return self.t0 + self.dt / 2**halvings * np.arange(OUTPUTS)

    def simulate(self, model: Any = None, halvings: int = 0) -> Any:
        """A trajectory; ``halvings``: of the step, and with it of the span."""
        model = self.formulation.bind(self.robot) if model is None else model
        return fx.simulate(
            model,
            self.drive,
            self.times(halvings),
            substeps=1,
            solver=self.solver,
            start=self.start,
            stations=2,
            throw=False,
        )


class Dice:
    """Two streams: ``pick`` and ``chance`` shape what is compiled, the others give numbers."""

    def __init__(self, shape: tuple[int, ...], value: tuple[int, ...] | None):
        self.shape = np.random.default_rng(shape)
        self.value = np.random.default_rng((*shape, 1) if value is None else value)

    def pick(self, options: Any) -> Any:
        return options[int(self.shape.integers(len(options)))]

    def chance(self, p: float) -> bool:
        return bool(self.shape.random() < p)

    def count(self, low: int, high: int) -> int:
        return int(self.shape.integers(low, high + 1))

    def between(self, low: float, high: float, size: Any = None) -> Any:
        x = self.value.uniform(low, high, size)
        return float(x) if size is None else x

    def log(self, low: float, high: float) -> float:
        return float(np.exp(self.value.uniform(np.log(low), np.log(high))))

    def direction(self) -> list[float]:
        x = self.value.normal(size=3)
        return list(x / np.linalg.norm(x))


# ---- robots -------------------------------------------------------------------------------------


def section(d: Dice, kind: str, height: float) -> Any:
    if kind == "rectangle":
        return fx.Rectangle(width=d.between(0.01, 0.03), height=height)
    if kind == "circle":
        return fx.Circle(diameter=height)
    if kind == "tube":
        return fx.Tube(diameter=1.5 * height, wall=d.between(0.1, 0.3) * height)
    if kind == "i":
        return fx.IBeam(
            height=2 * height, width=1.5 * height, flange=0.2 * height, web=0.2 * height
        )
    w = d.between(0.01, 0.03)
    return fx.GivenSection(
        A=w * height, Iy=height * w**3 / 12, Iz=w * height**3 / 12, J=w * height**3 / 4
    )


SECTIONS = ("rectangle", "rectangle", "circle", "tube", "i", "given")


def material(d: Dice) -> fx.Material:
    given = dict(G=d.log(1e9, 3e10)) if d.chance(0.2) else dict(nu=d.between(0.0, 0.45))
    return fx.Material(E=d.log(3e9, 2e11), rho=d.log(800.0, 8000.0), **given)


def beam(d: Dice, space: bool, width: float = 0.015) -> fx.BeamConstants:
    E, rho, h = d.log(3e9, 2e11), d.log(800.0, 8000.0), d.between(0.005, 0.02)
    A, Iz, Iy = width * h, width * h**3 / 12, h * width**3 / 12
    extra = {}
    if d.chance(0.5):
        extra = dict(GAy=0.3 * E * A, GAz=0.3 * E * A)
    if space or d.chance(0.5):
        extra |= dict(rhoIx=rho * (Iy + Iz), rhoIy=rho * Iy, rhoIz=rho * Iz)
    return fx.BeamConstants(
        EA=E * A, EIy=E * Iy, EIz=E * Iz, GJ=0.3 * E * (Iy + Iz), rhoA=rho * A, **extra
    )


def body(d: Dice, length: float, planar: bool) -> fx.Body:
    mass, side = d.log(0.05, 2.0), d.between(0.02, 0.1, 3)
    moments = mass / 12 * (np.sum(side**2) - side**2 + np.array([0, 1, 1]) * length**2)
    com = [0.5 * length, d.between(-0.02, 0.02), 0.0 if planar else d.between(-0.02, 0.02)]
    return fx.Body(mass, com, [*moments, 0.0, 0.0, 0.0])


def link(d: Dice, name: str, elastic: bool, planar: bool, can: dict) -> fx.Link:
    length = d.between(0.2, 0.7)
    if not elastic and d.chance(0.6):
        return fx.Link(name, length, body=body(d, length, planar), rigid=True)
    height = length * d.log(0.01, 0.04)
    kind, form = d.pick(SECTIONS), d.pick(("section", "section", "section", "taper", "pieces", "k"))
    given: dict[str, Any] = {}
    if form == "k":
        given = dict(constants=beam(d, not planar))
    elif form == "pieces":
        share = d.between(0.3, 0.7)
        given = dict(
            pieces=[
                fx.Piece(share, section(d, kind, height), material=material(d)),
                fx.Piece(1 - share, section(d, kind, 0.8 * height), material=material(d)),
            ]
        )
    else:
        given = dict(section=section(d, kind, height), material=material(d))
        if form == "taper" and kind == "rectangle":
            given["section_end"] = section(d, kind, 0.7 * height)
    if elastic and can.get("curved") and d.chance(0.15):
        twist = [0.0, 0.0] if planar else list(d.between(-0.3, 0.3, 2))
        given["curvature"] = [*twist, d.between(-0.5, 0.5)]
    if elastic and d.chance(0.5):
        kind = d.pick(("strain_rate", "mass", "modal"))
        if kind == "mass" and not can.get("mass_damping", True):
            kind = "strain_rate"
        if kind == "modal" and not can.get("modal"):
            kind = "strain_rate"
        size = dict(strain_rate=d.log(1e-5, 3e-3), mass=d.log(0.01, 2.0), modal=d.log(1e-3, 0.1))
        given["damping"] = fx.Damping(**{kind: size[kind]})
    return fx.Link(name, length, rigid=not elastic, **given)


def friction(d: Dice, bristles: bool) -> fx.Friction:
    level = d.log(0.01, 1.0)
    given: dict[str, Any] = dict(v_eps=d.log(0.02, 0.5))
    if d.chance(0.3):
        given |= dict(breakaway=1.3 * level, stribeck=d.log(0.05, 0.5))
    if bristles and d.chance(0.3):
        given |= dict(bristle=d.log(30.0, 3e3) * level)
        if d.chance(0.5):
            given |= dict(bristle_damping=d.log(0.01, 0.3))
    return fx.Friction(level, **given)


def joint(
    d: Dice, name: str, kind: str, parent: fx.Link | None, child: fx.Link, planar: bool, can: dict
) -> fx.Joint:
    given: dict[str, Any] = {}
    telescopes = kind == "telescope"
    kind = "prismatic" if telescopes else kind
    if kind in ("revolute", "universal") and not planar and d.chance(0.7):
        given["axis"] = d.direction()
    if kind == "universal":
        given["axis"] = given.get("axis", [0.0, 0.0, 1.0])
        given["axis2"] = np.cross(given["axis"], d.direction())
    if kind == "prismatic" and not telescopes:
        x = d.between(-1.0, 1.0, 2)
        given["axis"] = [1.0 + abs(x[0]), x[1], 0.0 if planar else 0.3]
    if d.chance(0.6):
        z = d.between(-1.5, 1.5)
        given["rotation"] = [0.0, 0.0, z] if planar else [*d.between(-0.8, 0.8, 2), z]
    if d.chance(0.3):
        z = 0.0 if planar else d.between(-0.05, 0.05)
        given["offset"] = [*d.between(-0.05, 0.05, 2), z]
    dofs = {"fixed": 0, "universal": 2, "spherical": 3, "free": 6}.get(kind, 1)
    if kind == "sliding":
        given["home"] = d.between(0.4, 0.6) * float(parent.length if parent else 1.0)
    elif telescopes:
        given["home"] = d.between(0.5, 0.7) * float(child.length)
    elif dofs and d.chance(0.5):
        given["home"] = d.between(-0.5, 0.5) if dofs == 1 else d.between(-0.4, 0.4, dofs)
    if dofs:
        if dofs == 1 and not telescopes and can.get("flexible", True) and d.chance(0.25):
            given["stiffness"] = d.log(50.0, 3000.0)
            given["motor"] = fx.Motor(rotor=d.log(1e-5, 1e-2), gear=d.between(1.0, 20.0))
            for side in ("output_friction", "spring_friction"):
                if can.get("sides", True) and d.chance(0.2):
                    given[side] = friction(d, can.get("bristles", True))
        elif dofs == 1 and not telescopes and d.chance(0.3):
            limit = dict(limit=d.log(0.5, 50.0)) if d.chance(0.4) else {}
            given["motor"] = fx.Motor(rotor=d.log(1e-5, 1e-2), gear=d.between(1.0, 20.0), **limit)
        if d.chance(0.4):
            given["damping"] = d.log(1e-3, 1.0)
        if d.chance(0.25):
            given["friction"] = friction(d, can.get("bristles", True))
        if dofs == 1 and kind == "revolute" and d.chance(0.2):
            given["stops"] = fx.Stops(
                -d.between(0.2, 1.0), d.between(0.2, 1.0), d.log(20.0, 500.0), d.log(0.01, 1.0)
            )
    if kind in ("revolute", "universal", "spherical") and d.chance(0.4):
        given["hub"] = fx.Hub(d.log(0.01, 0.5), d.log(1e-4, 1e-2))
    if d.chance(0.15):
        given["mass"] = d.log(0.01, 0.3)
    return fx.Joint(name, kind, parent.name if parent else "ground", child.name, **given)


def payload(d: Dice, name: str, link: fx.Link, planar: bool) -> fx.Payload:
    given: dict[str, Any] = {}
    if d.chance(0.6):
        given["inertia"] = d.log(1e-6, 1e-3)
    if d.chance(0.4):
        z = 0.0 if planar else d.between(-0.03, 0.03)
        given["offset"] = [*d.between(-0.03, 0.03, 2), z]
    if d.chance(0.4):
        given["s"] = d.between(0.1, 1.0)
    return fx.Payload(name, link.name, d.log(0.01, 1.0), **given)


def robot(d: Dice, can: dict) -> fx.Robot:
    """A serial arm of one to five links (rarely with a branch), one of them elastic at least."""
    planar = not d.chance(can["space"])
    flat = ("revolute", "fixed", "prismatic", "sliding", "telescope")
    types = [t for t in can["types"] if not planar or t in flat]
    count = d.pick((1, 1, 2, 2, 2, 3, 3, 4, 5))
    only_last = can.get("elastic") == "last"
    elastic = [(i == count - 1) if only_last else d.chance(0.7) for i in range(count)]
    links = [link(d, f"link{i}", on, planar, can) for i, on in enumerate(elastic)]
    joints = []
    for i, child in enumerate(links):
        kinds = [t for t in types if not (t == "free" and i) and not (t == "sliding" and not i)]
        kind = d.pick(kinds)
        if i == 0 and kind == "fixed" and count == 1 and not elastic[0]:
            kind = "revolute"
        before = links[i - 1] if i else None
        if i > 1 and can.get("branches") and d.chance(0.2):
            before = links[0]
        joints.append(joint(d, f"joint{i}", kind, before, child, planar, can))
    payloads = [
        payload(d, f"load{i}", x, planar)
        for i, x in enumerate(links)
        if d.chance(0.7 if i == count - 1 else 0.2)
    ]
    gravity = [d.between(-3, 3), d.between(-12, 0), 0.0 if planar else d.between(-5, 5)]
    gravity = [0.0, 0.0, 0.0] if d.chance(0.15) else gravity
    return fx.Robot("random", links, joints, payloads, gravity=gravity, planar=planar)


# ---- what moves it ------------------------------------------------------------------------------


def signal(d: Dice, size: float, span: float, t0: float, at: float | None = None) -> Any:
    """A random signal of about the size; ``at``: one that begins there, at rest."""
    end = size * d.between(-1, 1)
    if at is not None:
        kind = d.pick(("quintic", "quintic", "cycloid", "trapezoid", "step", "spline"))
        long, begin = d.between(0.5, 3.0) * span, t0 + d.between(0.0, 0.2) * span
        if kind == "quintic":
            return fx.quintic(at, at + end, long, begin=begin)
        if kind == "step":
            return fx.step_acceleration(at, at + end, long, begin=begin)
        if kind == "trapezoid":
            return fx.trapezoid(at, at + end, long, 0.3 * long, begin=begin)
        if kind == "cycloid":
            return fx.constant(at) + fx.cycloid(0.0, end, long, begin=begin)
        times = t0 + span * np.array([-0.1, 0.3, 0.7, 1.2])
        return fx.spline(times, at + end * np.array([0.0, 0.3, 0.8, 1.0]), "clamped")
    kind = d.pick(("constant", "quintic", "sine", "ramp", "step", "chirp", "pieces"))
    if kind == "constant":
        return fx.constant(end)
    if kind == "quintic":
        return fx.quintic(0.0, end, d.between(0.5, 3.0) * span, begin=t0)
    if kind == "sine":
        return fx.sine(end, d.between(0.2, 3.0) / span, d.between(-3, 3))
    if kind == "ramp":
        return fx.ramp(end, d.between(0.2, 2.0) * span, t0 + d.between(0.0, 0.5) * span)
    if kind == "step":
        return fx.step(end, t0 + d.between(-0.2, 1.2) * span)
    if kind == "chirp":
        return fx.chirp(end, 0.3 / span, 3.0 / span, span, begin=t0)
    times = t0 + span * np.cumsum(d.between(0.1, 0.5, 3))
    return fx.piecewise_constant(times, end * d.between(-1, 1, 3))


def _brake(t, q, qd, params):
    return -params * jnp.tanh(jnp.sum(qd))


def drive(d: Dice, robot: fx.Robot, span: float, t0: float, still: bool = False) -> fx.Drive:
    """``still``: no motion of the base."""
    acts: dict[str, Any] = {}
    for j in robot.tree_joints:
        rotor = j.motor is not None and j.motor.rotor is not None
        kinds = ["none", "effort", "pd", "feedback", "sampled"]
        kinds += [] if j.type in ("spherical", "free") else ["motion", "motion"]
        if j.flexible and not rotor:
            kinds = ["none", "motion"]
        if j.dofs == 0:
            continue
        kind = d.pick(kinds)
        if kind == "none":
            continue
        linear = j.type in ("prismatic", "sliding")
        home = 0.0 if j.home is None else np.asarray(j.home)
        size = 0.05 if linear else 0.8
        if kind == "motion":
            parts = [
                signal(d, size, max(span, 0.1), t0, float(x))
                for x in np.broadcast_to(home, (j.dofs,))
            ]
            acts[j.name] = fx.Motion(parts[0] if j.dofs == 1 else fx.stack(parts))
        elif kind == "effort":
            acts[j.name] = fx.Effort(signal(d, 3.0, span, t0))
        elif kind == "pd":
            limit = d.log(0.5, 20.0) if d.chance(0.3) else None
            goal = float(np.mean(home)) + size * d.between(-1, 1)
            acts[j.name] = fx.PD(d.log(1, 100), d.log(0.01, 2), fx.constant(goal), limit=limit)
        elif kind == "feedback":
            acts[j.name] = fx.Feedback(_brake, jnp.asarray(d.log(0.01, 1.0)))
        else:
            period, delay = d.between(1.5, 6.0) * span / OUTPUTS, d.count(0, 1)
            acts[j.name] = fx.Sampled(_brake, period, jnp.asarray(d.log(0.01, 1.0)), delay=delay)
    loads = []
    for x in robot.links:
        if d.chance(0.25):
            parts = [signal(d, 1.0, span, t0) for _ in range(3)]
            zero = fx.constant(0.0)
            wrench = [parts[0], parts[1], zero, zero, zero, 0.1 * parts[2]]
            s = d.between(0.2, 1.0) if d.chance(0.3) else 1.0
            frame = d.pick(("world", "world", "section"))
            loads.append(fx.Load(x.name, fx.stack(wrench), s=s, frame=frame))
    base = None
    if d.chance(0.2) and not still:
        shift, angle = (signal(d, 0.05, max(span, 0.1), t0, 0.0) for _ in range(2))
        zero = fx.constant(0.0)
        base = fx.Base(
            translation=fx.stack([shift, 0.5 * shift, zero]) if d.chance(0.7) else None,
            angle=angle if d.chance(0.5) else None,
        )
    return fx.Drive(joints=acts, loads=loads, base=base)


def start(d: Dice, robot: fx.Robot, drive: fx.Drive, formulation: Any) -> fx.Start:
    joints, rates, links = {}, {}, {}
    for j in robot.tree_joints:
        free = j.name not in drive.joints or not drive.joints[j.name].prescribes
        if not j.dofs or not free or j.type in ("sliding", "prismatic") or j.flexible:
            continue
        if d.chance(0.4):
            joints[j.name] = d.between(-0.5, 0.5, j.dofs)
        if d.chance(0.4):
            rates[j.name] = d.between(-1, 1, j.dofs)
    for x in robot.links:
        runs = any(j.telescopes and j.child == x.name for j in robot.tree_joints)
        if x.elastic and x.curvature is None and not runs and formulation.deforms and d.chance(0.2):
            links[x.name] = fx.Shape(y=d.between(-0.01, 0.01) * float(x.length))
    return fx.Start(joints, rates=rates, links=links)


# ---- how it is computed -------------------------------------------------------------------------


def formulation(d: Dice, name: str) -> Any:
    n = d.pick((1, 2, 2, 3))
    if name == "RigidArm":
        return fx.RigidArm()
    if name == "ScrewSynthesis":
        options = d.pick(({}, {}, dict(variant="paper"), dict(stiffening=False), dict(frame=0.5)))
        return fx.ScrewSynthesis(modes=min(n, 2), **options)
    if name == "FiniteElement":
        options = d.pick(({}, {}, {}, dict(variant="paper"), dict(basis="bspline")))
        return fx.FiniteElement(elements=n, **options)
    if name == "TransferMatrix":
        options = d.pick(({}, {}, {}, dict(rotary=False), dict(chain="parallel")))
        return fx.TransferMatrix(segments=n + 1, **options)
    if name == "MovingBeam":
        return fx.MovingBeam(elements=n + 1, **d.pick(({}, {}, dict(rotary=False))))
    return fx.PortHamiltonian(elements=n, **d.pick(({}, {}, dict(mass=0.5))))


def solver(d: Dice, name: str) -> Any:
    """None for the default."""
    if d.chance(0.65):
        return None
    if name == "TransferMatrix":
        return fx.ChainNewmark(0.3025, 0.6)
    if name == "PortHamiltonian":
        return d.pick((fx.TRBDF2(), fx.ImplicitMidpoint()))
    chain = (fx.Newmark(), fx.GeneralisedAlpha(0.8), fx.DiscreteGradient())
    return d.pick((*chain, diffrax.Tsit5()) if name == "RigidArm" else chain)


@functools.cache
def _attempt(seed: int, block: int) -> int:
    """The number of the first robot of a block that its formulation supports."""
    name = FORMULATIONS[block % len(FORMULATIONS)]
    for attempt in range(400):
        d = Dice((seed, block, attempt), None)
        method = formulation(d, name)
        try:
            if not method.refusals(robot(d, KINDS[name])):
                return attempt
        except fx.RobotError:
            continue
    raise RuntimeError(f"block {block}: no supported robot was drawn")


def structure(seed: int, block: int, value: tuple[int, ...] | None = None) -> Case:
    """The case of a block with numbers of its own: the same structure for every ``value``."""
    name = FORMULATIONS[block % len(FORMULATIONS)]
    attempt = _attempt(seed, block)
    d = Dice((seed, block, attempt), value)
    method = formulation(d, name)
    arm = robot(d, KINDS[name])
    dt, t0 = d.log(1e-4, 1.5e-3), (d.between(-1, 1) if d.chance(0.2) else 0.0)
    span = dt * (OUTPUTS - 1)
    still = name == "TransferMatrix" and not arm.planar
    moves = drive(d, arm, span, t0, still)
    if method.drive_refusals(arm, moves):
        held = {
            j.name: fx.Motion(fx.constant(0.0 if j.home is None else j.home))
            for j in arm.tree_joints
            if j.flexible
        }
        moves = fx.Drive(joints=moves.joints | held, loads=moves.loads)
    begin = start(d, arm, moves, method)
    return Case(method, arm, moves, begin, solver(d, name), dt, t0)
