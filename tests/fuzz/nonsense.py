"""Things that a user may write and that mean nothing: each must be refused before tracing.

``NONSENSE``: by name, a function of (dice, a healthy case, its model) that must raise, and the word
that its message must have (the field or the option that is wrong).
"""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import diffrax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from tests.fuzz.robots import (
    ANY,
    FORMULATIONS,
    KINDS,
    Case,
    Dice,
    formulation,
    robot as random_robot,
)

NAN, INF = float("nan"), float("inf")
Thunk = Callable[[Dice, Case, Any], Any]


class Accepted(Exception):
    """Nonsense passed every check, and would have been traced."""


@contextlib.contextmanager
def no_tracing() -> Iterator[None]:
    """What compiles a model or a run raises instead."""
    stop = mock.Mock(side_effect=Accepted)
    with (
        mock.patch("flexjax.simulate._simulate.run_on_grid", stop),
        mock.patch("flexjax.simulate._simulate.run_adaptive", stop),
        mock.patch("flexjax.simulate._simulate.run_with_bar", stop),
        mock.patch("flexjax.formulation._base._build", stop),
    ):
        yield


REFUSALS = (ValueError, TypeError)  # RobotError is a ValueError


def fault_of(error: BaseException, field: str, needs_value: bool = True) -> str | None:
    """What a refusal lacks: the field, a value, what was expected; None if it is complete."""
    text = str(error)
    if not isinstance(error, REFUSALS):
        return f"{type(error).__name__}: {text[:300]}"
    if not re.search(field, text):
        return f"does not name {field}: {text[:300]}"
    if not re.search(r"expected|contradicts|did you mean|the examples are", text):
        return f"does not say what is expected: {text[:300]}"
    if needs_value and not re.search(r"[=:] ?\S", text):
        return f"has no value: {text[:300]}"
    return None


# ---- robots -------------------------------------------------------------------------------------


def _arm(d: Dice, planar: bool = True) -> dict[str, Any]:
    """The parts of a healthy arm of two links, to be spoiled."""
    al = fx.Material(E=d.log(1e9, 1e11), rho=2700.0, nu=0.3)
    links = [
        fx.Link(n, d.between(0.2, 0.6), section=fx.Rectangle(0.02, 0.01), material=al)
        for n in ("upper", "fore")
    ]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "upper"),
        fx.Joint("elbow", "revolute", "upper", "fore", damping=0.1),
    ]
    return dict(
        name="arm",
        links=links,
        joints=joints,
        payloads=[fx.Payload("tool", "fore", 0.1)],
        sensors=[fx.Sensor("angle", "encoder", "elbow")],
        gravity=[0.0, -9.81, 0.0],
        planar=planar,
    )


def _spoil(part: str, index: int | None, **fields: Any) -> Thunk:
    """A robot with other fields in one of its parts; values may be functions of the dice."""

    def thunk(d: Dice, case: Case, model: Any) -> Any:
        given = {k: v(d) if callable(v) else v for k, v in fields.items()}
        arm = _arm(d, given.pop("planar", True))
        if index is None:
            return fx.Robot(**(arm | given))
        arm[part] = list(arm[part])
        arm[part][index] = dataclasses.replace(arm[part][index], **given)
        return fx.Robot(**arm)

    return thunk


def _bad(d: Dice) -> float:
    return float(d.value.choice([NAN, INF, -INF, -1.0, 0.0, -d.log(1e-9, 1e9)]))


def _bad_or_negative(d: Dice) -> float:
    return float(d.value.choice([NAN, INF, -1.0, -d.log(1e-9, 1e9)]))


def _infinite(d: Dice) -> float:
    return float(d.value.choice([NAN, INF, -INF]))


def _link(**fields: Any) -> Thunk:
    return _spoil("links", 0, **fields)


def _joint(**fields: Any) -> Thunk:
    return _spoil("joints", 1, **fields)


def _material(**given: Any) -> Thunk:
    fields = dict(E=7e10, rho=2700.0, nu=0.3)
    make = lambda d: fx.Material(
        **(fields | {k: v(d) if callable(v) else v for k, v in given.items()})
    )
    return _link(material=make)


STEEL = dict(material=fx.Material(E=2e11, rho=7800.0, nu=0.3))
BODY = dict(section=None, material=None, rigid=True)
ROBOTS: dict[str, tuple[str, Thunk]] = {
    "length": ("length", _link(length=_bad)),
    "length as text": ("'long'", _link(length="long")),
    "length of three numbers": ("length", _link(length=[1.0, 2.0, 3.0])),
    "modulus": ("material.E", _material(E=_bad)),
    "density": ("material.rho", _material(rho=_bad)),
    "Poisson's ratio": ("material.nu", _material(nu=lambda d: d.between(0.5, 3.0))),
    "nu and G": ("nu", lambda d, c, m: fx.Material(E=1e9, rho=1e3, nu=0.3, G=1e9)),
    "no nu, no G": ("nu", lambda d, c, m: fx.Material(E=d.log(1e9, 1e11), rho=1e3)),
    "unknown material": ("material", lambda d, c, m: fx.Material.named("unobtainium")),
    "width": ("width", _link(section=lambda d: fx.Rectangle(_bad(d), 0.01))),
    "tube without a hole": ("wall", _link(section=lambda d: fx.Tube(0.02, d.between(0.011, 1.0)))),
    "I without a web": ("web", _link(section=lambda d: fx.IBeam(0.02, 0.01, 1e-3, 0.05))),
    "section and body": ("links.upper", _link(body=fx.Body(1.0))),
    "nothing": ("links.upper", _link(section=None, material=None)),
    "section without material": ("material", _link(material=None)),
    "other taper": ("section_end", _link(section_end=fx.Circle(0.01))),
    "body that bends": ("rigid", _link(section=None, material=None, body=fx.Body(1.0))),
    "body mass": ("mass", _link(body=lambda d: fx.Body(_bad_or_negative(d)), **BODY)),
    "body inertia": (
        "inertia",
        _link(body=lambda d: fx.Body(1.0, inertia=[-d.log(1e-3, 1), 1, 1, 0, 0, 0]), **BODY),
    ),
    "body inertia of four": (
        "inertia",
        _link(body=lambda d: fx.Body(1.0, inertia=[1] * 4), **BODY),
    ),
    "curvature": ("curvature", _link(curvature=lambda d: [0.0, 0.0, _infinite(d)])),
    "curvature out of the plane": ("curvature", _link(curvature=lambda d: [0, d.between(1, 2), 0])),
    "curvature of two": ("curvature", _link(curvature=[0.1, 0.2])),
    "strain rate": (
        "strain_rate",
        _link(damping=lambda d: fx.Damping(strain_rate=_bad_or_negative(d))),
    ),
    "modal damping in per cent": (
        "modal",
        _link(damping=lambda d: fx.Damping(modal=d.between(1.0, 50.0))),
    ),
    "pieces that do not sum": (
        "pieces",
        _link(
            section=None,
            material=None,
            pieces=lambda d: [fx.Piece(d.between(0.1, 0.8), fx.Circle(0.01), **STEEL)],
        ),
    ),
    "stiffness constants": (
        "constants.EIz",
        _link(
            section=None,
            material=None,
            constants=lambda d: fx.BeamConstants(1e5, 1.0, _bad(d), 1.0, 0.5),
        ),
    ),
    "name twice": ("name", _link(name="fore")),
    "name with a dot": ("name", _link(name="a.b")),
    "empty name": ("name", _link(name="")),
    "link called ground": ("name", _link(name="ground")),
    "long name": ("name", _link(name="x" * 500)),
    "joint name twice": ("name", _joint(name="shoulder")),
    "joint type": ("type", _joint(type="hinge")),
    "parent": ("parent", _joint(parent="nobody")),
    "child": ("child", _joint(child="nobody")),
    "own parent": ("child", _joint(parent="fore")),
    "two parents": ("child", _joint(child="upper", parent="ground")),
    "cycle": ("fore|upper", _spoil("joints", 0, parent="fore")),
    "axis of zeros": ("axis", _joint(axis=[0.0, 0.0, 0.0])),
    "axis of two": ("axis", _joint(axis=[0.0, 1.0])),
    "axis": ("axis", _joint(axis=lambda d: [0.0, 0.0, _infinite(d)])),
    "axis out of the plane": ("axis", _joint(axis=lambda d: [0.0, d.between(0.1, 1.0), 1.0])),
    "second axis of a hinge": ("axis2", _joint(axis2=[0.0, 1.0, 0.0])),
    "universal without axis2": ("axis2", _joint(type="universal", planar=False)),
    "universal, parallel axes": (
        "axis2",
        _joint(type="universal", axis=[0, 1, 0], axis2=[0, 2, 0], planar=False),
    ),
    "ball in a plane": ("type", _joint(type="spherical")),
    "offset": ("offset", _joint(offset=lambda d: [_infinite(d), 0.0, 0.0])),
    "offset out of the plane": ("offset", _joint(offset=lambda d: [0, 0, d.between(0.1, 1)])),
    "rotation in degrees": ("rotation", _joint(rotation=lambda d: [0, 0, d.between(20, 360)])),
    "home in degrees": ("home", _joint(home=lambda d: d.between(10, 360))),
    "home of two numbers": ("home", _joint(home=[0.1, 0.2])),
    "home of a fixed joint": ("home", _joint(type="fixed", home=0.1, damping=None)),
    "joint stiffness": ("stiffness", _joint(stiffness=_bad)),
    "joint damping": ("damping", _joint(damping=_bad_or_negative)),
    "damping of a fixed joint": ("damping", _joint(type="fixed")),
    "friction": ("coulomb", _joint(friction=lambda d: fx.Friction(_bad_or_negative(d)))),
    "friction speed": ("v_eps", _joint(friction=lambda d: fx.Friction(0.1, v_eps=_bad(d)))),
    "breakaway alone": ("stribeck", _joint(friction=fx.Friction(0.1, breakaway=0.2))),
    "breakaway below coulomb": (
        "breakaway",
        _joint(friction=fx.Friction(0.1, breakaway=0.05, stribeck=0.1)),
    ),
    "bristle damping alone": ("bristle", _joint(friction=fx.Friction(0.1, bristle_damping=1.0))),
    "output friction of a rigid joint": (
        "output_friction",
        _joint(output_friction=fx.Friction(0.1)),
    ),
    "hub": ("hub.mass", _joint(hub=lambda d: fx.Hub(_bad_or_negative(d)))),
    "hub inertia of two": ("hub.inertia", _joint(hub=fx.Hub(0.1, [1.0, 2.0]))),
    "gear": ("gear", _joint(motor=fx.Motor(rotor=1.0, gear=0.0))),
    "rotor": ("rotor", _joint(motor=lambda d: fx.Motor(rotor=_bad(d)))),
    "motor limit": ("limit", _joint(motor=lambda d: fx.Motor(limit=_bad(d)))),
    "stops the wrong way": (
        "stops.lower",
        _joint(stops=lambda d: fx.Stops(d.between(0.5, 1), 0.1, 10.0)),
    ),
    "stop stiffness": ("stops.stiffness", _joint(stops=lambda d: fx.Stops(-1, 1, _bad(d)))),
    "stops of a ball": (
        "stops",
        _joint(type="spherical", stops=fx.Stops(-1, 1, 10.0), planar=False),
    ),
    "joint mass": ("mass", _joint(mass=_bad_or_negative)),
    "payload link": ("link", _spoil("payloads", 0, link="nobody")),
    "payload mass": ("mass", _spoil("payloads", 0, mass=_bad_or_negative)),
    "payload station": ("payloads.tool.s", _spoil("payloads", 0, s=lambda d: d.between(1.01, 9))),
    "payload inertia": ("inertia", _spoil("payloads", 0, inertia=_bad_or_negative)),
    "payload inertia of two": ("inertia", _spoil("payloads", 0, inertia=[1.0, 2.0])),
    "sensor kind": ("kind", _spoil("sensors", 0, kind="camera")),
    "sensor on nothing": ("on", _spoil("sensors", 0, on="nobody")),
    "gravity": ("gravity", _spoil("", None, gravity=lambda d: [0.0, _infinite(d), 0.0])),
    "gravity of two": ("gravity", _spoil("", None, gravity=[0.0, -9.81])),
    "gravity as text": ("'down'", _spoil("", None, gravity="down")),
    "no links": ("links", _spoil("", None, links=[], joints=[], payloads=[], sensors=[])),
    "a link without a joint": ("fore", lambda d, c, m: _short(d)),
    "unknown path": ("materials", lambda d, c, m: c.robot.replace("links.link0.materials.E", 1.0)),
    "replaced length": (
        "length",
        lambda d, c, m: c.robot.replace("links.link0.length", -d.log(0.1, 9)),
    ),
    "replaced by text": ("length", lambda d, c, m: c.robot.replace("links.link0.length", "long")),
    "replaced by two": ("length", lambda d, c, m: c.robot.replace("links.link0.length", [1, 2])),
    "unknown robot": ("robot", lambda d, c, m: fx.load_robot("no-such-robot")),
}


def _short(d: Dice) -> Any:
    arm = _arm(d)
    return fx.Robot(**(arm | dict(joints=arm["joints"][:1], sensors=[])))


# ---- formulations -------------------------------------------------------------------------------


def _unsupported(d: Dice, case: Case, model: Any) -> Any:
    """A formulation on a robot with a feature that it does not support."""
    for _ in range(60):
        method = formulation(d, d.pick(FORMULATIONS))
        try:
            arm = random_robot(d, ANY)
        except fx.RobotError:
            continue
        if method.refusals(arm):
            return method.bind(arm)
    raise RuntimeError("every robot was supported")


def _option(field: str, name: str, **given: Any) -> tuple[str, Thunk]:
    return field, lambda d, c, m: getattr(fx, name)(
        **{k: v(d) if callable(v) else v for k, v in given.items()}
    )


negative = lambda d: -int(d.value.integers(1, 1000))
METHODS: dict[str, tuple[str, Thunk]] = {
    **{
        f"unsupported {i}": ("expected|planar|joints|links|elements", _unsupported)
        for i in range(12)
    },
    "elements": _option("elements", "FiniteElement", elements=negative),
    "half an element": _option("elements", "FiniteElement", elements=2.5),
    "elements as text": _option("elements", "FiniteElement", elements="many"),
    "no elements": _option("elements", "PortHamiltonian", elements=0),
    "elements of nobody": (
        "elements.nobody",
        lambda d, c, m: fx.FiniteElement(elements={"nobody": 2}).bind(fx.load_robot("two-link")),
    ),
    "variant": _option("variant", "FiniteElement", variant="best"),
    "basis": _option("basis", "FiniteElement", basis="spline"),
    "contact": _option("contact", "FiniteElement", contact="sticky"),
    "modes": _option("modes", "ScrewSynthesis", modes=negative),
    "two modes": _option("modes", "ScrewSynthesis", modes=(1, 2)),
    "modes as text": _option("modes", "ScrewSynthesis", modes="few"),
    "frame": _option("frame", "ScrewSynthesis", frame=lambda d: d.between(1.1, 9.0)),
    "frame that is no number": _option("frame", "ScrewSynthesis", frame=NAN),
    "basis of modes": _option("basis", "ScrewSynthesis", basis="sine"),
    "segments": _option("segments", "TransferMatrix", segments=0),
    "segments as text": _option("segments", "TransferMatrix", segments="ten"),
    "beta": _option("beta", "TransferMatrix", beta=lambda d: -d.between(0, 1)),
    "beta that is no number": _option("beta", "TransferMatrix", beta=NAN),
    "gamma": _option("gamma", "TransferMatrix", gamma=lambda d: d.between(0.0, 0.49)),
    "chain": _option("chain", "TransferMatrix", chain="gold"),
    "passes": _option("passes", "TransferMatrix", passes=0),
    "linearisation": _option("linearisation", "TransferMatrix", linearisation="none"),
    "beam elements": _option("elements", "MovingBeam", elements=negative),
    "half a beam element": _option("elements", "MovingBeam", elements=1.5),
    "beam order": _option("order", "MovingBeam", order="fifth"),
    "beam inertia": _option("inertia", "MovingBeam", inertia="lumped"),
    "beam shapes": _option("shapes", "MovingBeam", shapes={"uy": "sine"}),
    "blend": _option("mass", "PortHamiltonian", mass=lambda d: d.between(1.1, 9.0)),
    "blend that is no number": _option("mass", "PortHamiltonian", mass=NAN),
    "alpha": _option("alpha", "PortHamiltonian", alpha=lambda d: -d.between(0, 1)),
    "drag": _option("drag", "PortHamiltonian", drag=(1.0, 2.0)),
    "drag that is no number": _option("drag", "PortHamiltonian", drag=(NAN,) * 6),
    "coupling": _option("coupling", "PortHamiltonian", coupling=((1.0,),)),
    "bind a name": ("robot", lambda d, c, m: c.formulation.bind("two-link")),
    "bind nothing": ("robot", lambda d, c, m: c.formulation.bind(None)),
}


# ---- drives and runs ----------------------------------------------------------------------------


def _run(**given: Any) -> Thunk:
    """The healthy run with other arguments; values may be functions of (dice, case)."""

    def thunk(d: Dice, c: Case, m: Any) -> Any:
        now = {k: v(d, c) if callable(v) else v for k, v in given.items()}
        healthy = dict(drive=c.drive, ts=c.ts, substeps=1, solver=c.solver, start=c.start)
        options = healthy | now
        model = options.pop("model", m)
        return fx.simulate(model, options.pop("drive"), options.pop("ts"), **options)

    return thunk


def _drive(make: Callable[[Dice, Case], Any]) -> Thunk:
    return _run(drive=make, start=None)


def _of_joint(c: Case, act: Any) -> fx.Drive:
    """``act`` on the first joint that can be driven."""
    name = next((j.name for j in c.robot.tree_joints if j.dofs == 1), c.robot.tree_joints[0].name)
    return fx.Drive(joints={name: act})


def _signal(field: str, make: Callable[[Dice], Any]) -> tuple[str, Thunk]:
    return field, lambda d, c, m: make(d)


ZERO6 = [0.0] * 6
DRIVES: dict[str, tuple[str, Thunk]] = {
    "unknown joint": (
        "nobody",
        _drive(lambda d, c: fx.Drive({"nobody": fx.Effort(fx.constant(1))})),
    ),
    "a signal as actuation": ("joint", _drive(lambda d, c: _of_joint(c, fx.constant(1.0)))),
    "effort without signal": ("signal", _drive(lambda d, c: _of_joint(c, fx.Effort(3.0)))),
    "signal of five": (
        "signal",
        _drive(lambda d, c: _of_joint(c, fx.Effort(fx.constant([1.0] * 5)))),
    ),
    "text as drive": ("drive", _drive(lambda d, c: "fast")),
    "dict as drive": ("drive", _drive(lambda d, c: {"joint0": 1.0})),
    "PD limit": (
        "limit",
        _drive(lambda d, c: _of_joint(c, fx.PD(1.0, 1.0, fx.constant(0.0), limit=-d.log(0.1, 10)))),
    ),
    "PD gain": ("kp", _drive(lambda d, c: _of_joint(c, fx.PD(_infinite(d), 1.0, fx.constant(0))))),
    "PD gains of two": (
        "kp",
        _drive(lambda d, c: _of_joint(c, fx.PD([1.0, 2.0], 1.0, fx.constant(0.0)))),
    ),
    "sampling period": (
        "period",
        _drive(lambda d, c: _of_joint(c, fx.Sampled(_zero, period=_bad(d)))),
    ),
    "sampling delay": (
        "delay",
        _drive(lambda d, c: _of_joint(c, fx.Sampled(_zero, 0.1, delay=negative(d)))),
    ),
    "gauge beyond the tip": (
        "gauges",
        _drive(lambda d, c: _of_joint(c, fx.Sampled(_zero, 0.1, gauges=[("link0", 1.5)]))),
    ),
    "load on nothing": (
        "loads.0.link",
        _drive(lambda d, c: fx.Drive(loads=[fx.Load("nobody", fx.constant(ZERO6))])),
    ),
    "load beyond the tip": (
        "s:",
        _drive(
            lambda d, c: fx.Drive(
                loads=[fx.Load("link0", fx.constant(ZERO6), s=d.between(1.01, 9))]
            )
        ),
    ),
    "load of three": (
        "wrench",
        _drive(lambda d, c: fx.Drive(loads=[fx.Load("link0", fx.constant([1.0] * 3))])),
    ),
    "load frame": (
        "frame",
        _drive(lambda d, c: fx.Drive(loads=[fx.Load("link0", fx.constant(ZERO6), frame="local")])),
    ),
    "load that is no number": (
        "loads|constant",
        _drive(lambda d, c: fx.Drive(loads=[fx.Load("link0", fx.constant([_infinite(d)] * 6))])),
    ),
    "base without axis": (
        "axis",
        _drive(lambda d, c: fx.Drive(base=fx.Base(angle=fx.constant(0.1), axis=[0, 0, 0]))),
    ),
    "base of two": (
        "translation",
        _drive(lambda d, c: fx.Drive(base=fx.Base(translation=fx.constant([0.1, 0.2])))),
    ),
    "base angle of two": (
        "angle",
        _drive(lambda d, c: fx.Drive(base=fx.Base(angle=fx.constant([0.1, 0.2])))),
    ),
    "quintic": _signal("duration", lambda d: fx.quintic(0.0, 1.0, _bad(d))),
    "quintic to nowhere": _signal("end", lambda d: fx.quintic(0.0, _infinite(d), 1.0)),
    "quintic of two shapes": _signal("start", lambda d: fx.quintic([0.0, 1.0], [0.0] * 3, 1.0)),
    "trapezoid": _signal("ramp", lambda d: fx.trapezoid(0.0, 1.0, 1.0, d.between(0.6, 3))),
    "ramp": _signal("duration", lambda d: fx.ramp(1.0, _bad(d))),
    "times back": _signal("times", lambda d: fx.piecewise_constant([0.0, 1.0, 0.5], [1.0] * 3)),
    "values missing": _signal("values", lambda d: fx.piecewise_constant([0.0, 1.0], [1.0] * 3)),
    "spline times": _signal("times", lambda d: fx.spline([0.0, 0.0, 1.0, 2.0], [0.0] * 4)),
    "spline of NaN": _signal("values", lambda d: fx.spline([0, 1, 2, 3], [0, 1, _infinite(d), 2])),
    "spline ends": _signal("ends", lambda d: fx.spline([0, 1, 2, 3], [0, 1, 1, 2], "periodic")),
    "bang-bang times": _signal("times", lambda d: fx.bang_bang(1.0, [1.0, 0.5])),
    "sine": _signal("frequency", lambda d: fx.sine(1.0, _infinite(d))),
    "chirp": _signal("duration", lambda d: fx.chirp(1.0, 1.0, 2.0, _bad(d))),
    "constant": _signal("value", lambda d: fx.constant(_infinite(d))),
    "constant as text": _signal("'one'", lambda d: fx.constant("one")),
    "cosine": _signal("period", lambda d: fx.cosine(1.0, _bad(d))),
    "polynomial": _signal("coefficients", lambda d: fx.polynomial([1.0, _infinite(d)])),
    "stack of two shapes": (
        "signal",
        _drive(
            lambda d, c: fx.Drive(
                loads=[fx.Load("link0", fx.stack([fx.constant([1, 2]), fx.constant(1)]))]
            )
        ),
    ),
}


def _contradiction(d: Dice, case: Case, model: Any) -> Any:
    """A start elsewhere than the Motion of the joint."""
    rigid = [j.name for j in case.robot.tree_joints if j.dofs == 1 and not j.flexible]
    if not rigid:
        return _run(start="elsewhere")(d, case, model)
    drive = fx.Drive(joints={rigid[0]: fx.Motion(fx.constant(0.3))})
    return _run(drive=drive, start={rigid[0]: d.between(0.4, 1)})(d, case, model)


RUNS: dict[str, tuple[str, Thunk]] = {
    "no times": ("ts", _run(ts=lambda d, c: [])),
    "one time": ("ts", _run(ts=lambda d, c: [0.0])),
    "times as text": ("ts", _run(ts=lambda d, c: "1 s")),
    "times of two dimensions": ("ts", _run(ts=lambda d, c: np.zeros((3, 3)))),
    "times that stand": ("ts", _run(ts=lambda d, c: [0.0, 0.0, 1.0])),
    "times backwards": ("ts", _run(ts=lambda d, c: c.ts[::-1])),
    "times of NaN": ("ts", _run(ts=lambda d, c: [0.0, _infinite(d), 1.0])),
    "dt": ("dt", _run(substeps=None, dt=lambda d, c: d.value.choice([0.0, -1.0, NAN]))),
    "dt as text": ("dt", _run(substeps=None, dt="fast")),
    "substeps": ("substeps", _run(substeps=lambda d, c: -d.count(0, 9))),
    "half a substep": ("substeps", _run(substeps=1.5)),
    "substeps as text": ("substeps", _run(substeps="two")),
    "substeps of NaN": ("substeps", _run(substeps=NAN)),
    "solver as text": ("solver", _run(solver="euler")),
    "class of a solver": ("solver", _run(solver=lambda d, c: fx.Newmark)),
    "foreign solver": (
        "solver",
        _run(
            solver=lambda d, c: (
                fx.Newmark()
                if type(c.formulation).__name__ in ("TransferMatrix", "PortHamiltonian")
                else fx.ImplicitMidpoint()
            )
        ),
    ),
    "solver of stochastic equations": (
        "solver",
        _run(solver=lambda d, c: diffrax.SemiImplicitEuler()),
    ),
    "start of an unknown joint": ("nobody", _run(start=lambda d, c: {"nobody": 0.1})),
    "start of nine numbers": ("start.joints", _run(start=lambda d, c: {_any_joint(c): [0.1] * 9})),
    "start of NaN": ("start", _run(start=lambda d, c: {_any_joint(c): _nan_like(d, c)})),
    "start as text": ("start", _run(start="home")),
    "start as text of a joint": ("'left'", _run(start=lambda d, c: {_any_joint(c): "left"})),
    "start of an unknown link": (
        "nobody",
        _run(start=lambda d, c: fx.Start(links={"nobody": fx.Shape(y=0.01)})),
    ),
    "start of a link by a number": (
        "links",
        _run(start=lambda d, c: fx.Start(links={"link0": 0.01})),
    ),
    "start bent too far": (
        "link0",
        _run(start=lambda d, c: fx.Start(links={"link0": fx.Shape(y=d.between(3, 9))})),
    ),
    "shape of NaN": (
        "y|link0",
        _run(start=lambda d, c: fx.Start(links={"link0": fx.Shape(y=NAN)})),
    ),
    "shape of nothing": ("shape", lambda d, c, m: fx.Shape()),
    "shape stations": ("s:", lambda d, c, m: fx.Shape(y=[0.1, 0.2], s=[0.5, 0.9])),
    "contradiction": ("start", _contradiction),
    "stations": ("stations", _run(stations=lambda d, c: -d.count(0, 5))),
    "stations back": ("stations", _run(stations=lambda d, c: [1.0, 0.0])),
    "stations beyond": ("stations", _run(stations=lambda d, c: [0.0, d.between(1.1, 9)])),
    "stations as text": ("stations", _run(stations="all")),
    "stations of NaN": ("stations", _run(stations=lambda d, c: [0.0, NAN])),
    "no model": ("model", _run(model=None)),
    "a robot as model": ("model", _run(model=lambda d, c: c.robot)),
    "progress of an adaptive run": (
        "progress",
        _run(progress=True, adaptive=lambda d, c: diffrax.PIDController(rtol=1e-6, atol=1e-9)),
    ),
    "intervals of an adaptive run": (
        "intervals",
        _run(intervals=3, adaptive=lambda d, c: diffrax.PIDController(rtol=1e-6, atol=1e-9)),
    ),
    "adaptive as text": ("adaptive", _run(adaptive="yes")),
}


def _zero(t, q, qd, params):
    return jnp.zeros(())


def _any_joint(c: Case) -> str:
    return next((j.name for j in c.robot.tree_joints if j.dofs), c.robot.tree_joints[0].name)


def _nan_like(d: Dice, c: Case) -> Any:
    dofs = next((j.dofs for j in c.robot.tree_joints if j.dofs), 1)
    return [_infinite(d)] * dofs


NONSENSE = ROBOTS | METHODS | DRIVES | RUNS
assert len(NONSENSE) == sum(map(len, (ROBOTS, METHODS, DRIVES, RUNS)))
assert set(KINDS) == set(FORMULATIONS)
