"""What every number of a description is: unit, shape, rule, meaning. Checks, files, the schema, tables and paths all
read this one table."""

import dataclasses
import math
import typing
from typing import Any, NamedTuple

import equinox as eqx

from flexjax.robot._section import SECTIONS, AbstractSection


class Number(NamedTuple):
    """``unit`` may hold two units, "angular|linear", of which the second goes with sliding and prismatic joints."""

    unit: str
    rule: str
    about: str
    shapes: tuple[tuple[int, ...], ...] = ((),)


class Rule(NamedTuple):
    holds: typing.Callable[[float], bool]
    expected: str
    schema: dict


TURN = 2 * math.pi * (1 + 1e-6)  # single precision must not turn a full turn into a fault

RULES = {
    "finite": Rule(lambda x: True, "a finite number", {}),
    "positive": Rule(lambda x: x > 0, "a positive number", {"exclusiveMinimum": 0}),
    "not negative": Rule(lambda x: x >= 0, "zero or a positive number", {"minimum": 0}),
    "not zero": Rule(lambda x: x != 0, "a number other than zero", {}),
    "station": Rule(
        lambda x: 0 <= x <= 1, "a station from 0 (base) to 1 (tip)", {"minimum": 0, "maximum": 1}
    ),
    "fraction": Rule(
        lambda x: 0 < x <= 1,
        "a fraction of the link's length, above 0 and at most 1",
        {"exclusiveMinimum": 0, "maximum": 1},
    ),
    "ratio": Rule(
        lambda x: 0 <= x < 1,
        "a damping ratio from 0 to below 1 (not per cent)",
        {"minimum": 0, "exclusiveMaximum": 1},
    ),
    "poisson": Rule(
        lambda x: -1 < x < 0.5,
        "Poisson's ratio above -1 and below 0.5",
        {"exclusiveMinimum": -1, "exclusiveMaximum": 0.5},
    ),
}

_3, _6 = ((3,),), ((6,),)
_1or3 = ((), (3,))


def _m(about: str) -> Number:
    return Number("m", "positive", about)


def _stiff(unit: str, about: str) -> Number:
    return Number(unit, "positive", about)


NUMBERS: dict[str, dict[str, Number]] = {
    "Robot": {"gravity": Number("m/s2", "finite", "acceleration of gravity in world axes", _3)},
    "Rectangle": {"width": _m("size along local z"), "height": _m("size along local y")},
    "Circle": {"diameter": _m("diameter")},
    "Tube": {"diameter": _m("outer diameter"), "wall": _m("wall thickness")},
    "IBeam": {
        "height": _m("overall size along local y"),
        "width": _m("overall size along local z"),
        "flange": _m("flange thickness"),
        "web": _m("web thickness"),
    },
    "GivenSection": {
        "A": Number("m2", "positive", "area"),
        "Iy": Number("m4", "positive", "second moment for bending in z"),
        "Iz": Number("m4", "positive", "second moment for bending in y"),
        "J": Number("m4", "positive", "torsion constant"),
        "ky": Number("", "positive", "shear correction factor along y"),
        "kz": Number("", "positive", "shear correction factor along z"),
    },
    "Material": {
        "E": Number("Pa", "positive", "Young's modulus"),
        "rho": Number("kg/m3", "positive", "density"),
        "nu": Number("", "poisson", "Poisson's ratio"),
        "G": Number("Pa", "positive", "shear modulus"),
    },
    "BeamConstants": {
        "EA": _stiff("N", "axial stiffness"),
        "EIy": _stiff("N m2", "stiffness for bending in z"),
        "EIz": _stiff("N m2", "stiffness for bending in y"),
        "GJ": _stiff("N m2", "torsional stiffness"),
        "rhoA": Number("kg/m", "positive", "mass per length"),
        "GAy": _stiff("N", "shear stiffness along y"),
        "GAz": _stiff("N", "shear stiffness along z"),
        "rhoIx": Number("kg m", "not negative", "rotary inertia per length about x"),
        "rhoIy": Number("kg m", "not negative", "rotary inertia per length about y"),
        "rhoIz": Number("kg m", "not negative", "rotary inertia per length about z"),
    },
    "Damping": {
        "strain_rate": Number("s", "not negative", "tau in sigma = E (eps + tau eps_dot)"),
        "mass": Number("1/s", "not negative", "force per mass and velocity of the deformation"),
        "modal": Number("", "ratio", "damping ratio of every mode"),
    },
    "Body": {
        "mass": Number("kg", "not negative", "mass"),
        "com": Number("m", "finite", "centre of mass from the link's base in link axes", _3),
        "inertia": Number(
            "kg m2", "finite", "inertia about the centre of mass: xx, yy, zz, xy, xz, yz", _6
        ),
    },
    "Piece": {"fraction": Number("", "fraction", "share of the link's length")},
    "Link": {
        "length": Number("m", "not negative", "length from base to tip"),
        "curvature": Number(
            "1/m", "finite", "unstressed twist, curvature about y, curvature about z", _3
        ),
    },
    "Friction": {
        "coulomb": Number("N m|N", "not negative", "dry friction"),
        "v_eps": Number("rad/s|m/s", "positive", "speed over which dry friction turns round"),
    },
    "Hub": {
        "mass": Number("kg", "not negative", "mass at the joint"),
        "inertia": Number(
            "kg m2",
            "not negative",
            "inertia about the joint axis, or about the child's three axes",
            _1or3,
        ),
    },
    "Motor": {
        "rotor": Number("kg m2|kg", "positive", "inertia of the rotor"),
        "gear": Number("", "not zero", "turns of the rotor per turn of the joint"),
        "torque_constant": Number("N m/A|N/A", "not zero", "effort per current, joint side"),
        "limit": Number("N m|N", "positive", "largest effort, joint side"),
    },
    "Stops": {
        "lower": Number("rad|m", "finite", "lower end"),
        "upper": Number("rad|m", "finite", "upper end"),
        "stiffness": Number("N m/rad|N/m", "positive", "stiffness of the stop"),
        "damping": Number("N m s/rad|N s/m", "not negative", "damping of the stop"),
    },
    "Joint": {
        "axis": Number(
            "", "finite", "joint axis in child axes (a revolute joint without it turns about z)", _3
        ),
        "axis2": Number("", "finite", "second axis of a universal joint in child axes", _3),
        "offset": Number("m", "finite", "shift from the parent's tip, in its axes", _3),
        "rotation": Number(
            "rad", "finite", "rotation vector from the parent's tip axes to the child's", _3
        ),
        "home": Number(
            "rad|m", "finite", "joint coordinate at the start", ((), (1,), (2,), (3,), (6,))
        ),
        "stiffness": Number("N m/rad|N/m", "positive", "stiffness of the joint spring"),
        "damping": Number("N m s/rad|N s/m", "not negative", "viscous damping"),
        "mass": Number("kg", "not negative", "mass of the joint"),
    },
    "Payload": {
        "mass": Number("kg", "not negative", "mass"),
        "inertia": Number("kg m2", "not negative", "inertia about its centre of mass", _1or3),
        "offset": Number("m", "finite", "centre of mass in the axes of its section", _3),
        "s": Number("", "station", "station on the link"),
    },
    "Lowpass": {
        "frequency": Number("Hz", "positive", "corner frequency"),
        "zeta": Number("", "positive", "damping ratio"),
    },
    "Sensor": {
        "s": Number("", "station", "station on the link"),
        "span": Number("", "station", "stations between which a flex sensor measures", ((2,),)),
        "position": Number("m", "finite", "y, z of a gauge in its section", ((2,),)),
        "direction": Number("", "finite", "measuring direction", _3),
        "gain": Number("", "finite", "gain"),
        "offset": Number("", "finite", "offset of the reading"),
        "delay": Number("s", "not negative", "delay"),
        "noise": Number("", "not negative", "standard deviation of the noise"),
    },
}


class Part(NamedTuple):
    """One field of a description class: a number, text, a flag, a class, or many of a class."""

    name: str
    required: bool
    default: object
    number: Number | None
    cls: type | None
    many: bool
    text: Any


def parts(cls: type) -> list[Part]:
    """The fields of a description class, in order."""
    found = []
    for field in dataclasses.fields(cls):
        number = NUMBERS.get(cls.__name__, {}).get(field.name)
        required = field.default is dataclasses.MISSING
        text = field.type if field.metadata.get("static") else None
        args = typing.get_args(field.type) or (field.type,)
        inner = (
            next((a for a in args if isinstance(a, type) and issubclass(a, eqx.Module)), None)
            if number is None
            else None
        )
        many = typing.get_origin(field.type) is tuple
        found.append(
            Part(
                field.name, required, None if required else field.default, number, inner, many, text
            )
        )
    return found


def section_class(document) -> type | None:
    """The class of a section as a file gives it; the shape may be left out where A, Iy, Iz, J are given."""
    shape = document.get("shape", "given") if isinstance(document, dict) else None
    return SECTIONS.get(shape) if isinstance(shape, str) else None


def class_of(part: Part, document) -> type | None:
    """The class of the value of ``part``: sections are told apart by their shape."""
    return section_class(document) if part.cls is AbstractSection else part.cls


def unit_of(number: Number, joint_type: str | None = None) -> str:
    """The unit of a number; that of a joint's numbers depends on the type of the joint."""
    angular, _, linear = number.unit.partition("|")
    if linear and joint_type == "free":
        return "m, rad"
    return linear if linear and joint_type in ("sliding", "prismatic") else angular
