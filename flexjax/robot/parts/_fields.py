"""Unit, rule, meaning and shape of every parameter of a robot, in one table.

Checks, files, the JSON schema, printed tables and paths all read it. It imports no jax.
"""

import math
import operator
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """One parameter.

    ``unit`` may contain two units, "angular|linear"; the second applies to sliding and prismatic
    joints.
    """

    unit: str
    rule: str
    about: str
    shapes: tuple[tuple[int, ...], ...] = ((),)


class Rule(NamedTuple):
    """The range of a parameter. ``schema``: its bounds, as a JSON schema has them."""

    expected: str
    schema: dict[str, float]
    zero: bool = True  # whether zero is allowed, which no bound can say

    def holds(self, x: Any):
        """Whether ``x`` is finite and in range: a number, or elementwise an array, traced too."""
        good = abs(x) < math.inf
        for bound, value in self.schema.items():
            good = good & _COMPARE[bound](x, value)
        return good if self.zero else good & (x != 0)


_COMPARE = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}

FULL_ROTATION = 2 * math.pi * (1 + 1e-6)  # 2 pi rounded to single precision must pass

RULES = {
    "finite": Rule("a finite number", {}),
    "positive": Rule("a positive number", {"exclusiveMinimum": 0}),
    "not negative": Rule("zero or a positive number", {"minimum": 0}),
    "not zero": Rule("a number other than zero", {}, zero=False),
    "station": Rule("a station from 0 (base) to 1 (tip)", {"minimum": 0, "maximum": 1}),
    "fraction": Rule(
        "a fraction of the link's length, above 0 and at most 1",
        {"exclusiveMinimum": 0, "maximum": 1},
    ),
    "ratio": Rule(
        "a damping ratio of at least 0 and below 1 (not per cent)",
        {"minimum": 0, "exclusiveMaximum": 1},
    ),
    "poisson": Rule(
        "Poisson's ratio above -1 and below 0.5",
        {"exclusiveMinimum": -1, "exclusiveMaximum": 0.5},
    ),
}

# (small, large, share) of a class: small is less than that share of large.
SMALLER: dict[str, tuple[tuple[str, str, float], ...]] = {
    "Tube": (("wall", "diameter", 0.5),),
    "IBeam": (("flange", "height", 0.5), ("web", "width", 1.0)),
    "Stops": (("lower", "upper", 1.0),),
    "Joint": (("backlash_smooth", "backlash", 1.0),),
}

_3, _6 = ((3,),), ((6,),)
_1or3 = ((), (3,))


def _m(about: str) -> Parameter:
    return Parameter("m", "positive", about)


def _stiff(unit: str, about: str) -> Parameter:
    return Parameter(unit, "positive", about)


PARAMETERS: dict[str, dict[str, Parameter]] = {
    "Robot": {"gravity": Parameter("m/s2", "finite", "acceleration of gravity in world axes", _3)},
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
        "A": Parameter("m2", "positive", "area"),
        "Iy": Parameter("m4", "positive", "second moment for bending in z"),
        "Iz": Parameter("m4", "positive", "second moment for bending in y"),
        "J": Parameter("m4", "positive", "torsion constant"),
        "ky": Parameter("", "positive", "shear correction factor along y"),
        "kz": Parameter("", "positive", "shear correction factor along z"),
    },
    "Material": {
        "E": Parameter("Pa", "positive", "Young's modulus"),
        "rho": Parameter("kg/m3", "positive", "density"),
        "nu": Parameter("", "poisson", "Poisson's ratio"),
        "G": Parameter("Pa", "positive", "shear modulus"),
    },
    "BeamConstants": {
        "EA": _stiff("N", "axial stiffness"),
        "EIy": _stiff("N m2", "stiffness for bending in z"),
        "EIz": _stiff("N m2", "stiffness for bending in y"),
        "GJ": _stiff("N m2", "torsional stiffness"),
        "rhoA": Parameter("kg/m", "positive", "mass per length"),
        "GAy": _stiff("N", "shear stiffness along y"),
        "GAz": _stiff("N", "shear stiffness along z"),
        "rhoIx": Parameter("kg m", "not negative", "rotary inertia per length about x"),
        "rhoIy": Parameter("kg m", "not negative", "rotary inertia per length about y"),
        "rhoIz": Parameter("kg m", "not negative", "rotary inertia per length about z"),
    },
    "Damping": {
        "strain_rate": Parameter("s", "not negative", "tau in sigma = E (eps + tau eps_dot)"),
        "mass": Parameter("1/s", "not negative", "force per mass and velocity of the deformation"),
        "modal": Parameter("", "ratio", "damping ratio of every mode"),
    },
    "Body": {
        "mass": Parameter("kg", "not negative", "mass"),
        "com": Parameter("m", "finite", "centre of mass from the link's base in link axes", _3),
        "inertia": Parameter(
            "kg m2", "finite", "inertia about the centre of mass: xx, yy, zz, xy, xz, yz", _6
        ),
    },
    "Piece": {"fraction": Parameter("", "fraction", "share of the link's length")},
    "Link": {
        "length": Parameter("m", "not negative", "length from base to tip"),
        "curvature": Parameter(
            "1/m", "finite", "unstressed twist, curvature about y, curvature about z", _3
        ),
    },
    "Friction": {
        "coulomb": Parameter("N m|N", "not negative", "dry friction"),
        "v_eps": Parameter("rad/s|m/s", "positive", "speed over which dry friction changes sign"),
        "breakaway": Parameter("N m|N", "not negative", "dry friction at low speed"),
        "stribeck": Parameter(
            "rad/s|m/s", "positive", "speed over which friction falls from breakaway to coulomb"
        ),
        "bristle": Parameter("N m/rad|N/m", "positive", "stiffness before the friction slides"),
        "bristle_damping": Parameter(
            "N m s/rad|N s/m", "not negative", "damping of the bristles' deflection"
        ),
    },
    "Hub": {
        "mass": Parameter("kg", "not negative", "mass at the joint"),
        "inertia": Parameter(
            "kg m2",
            "not negative",
            "inertia about the joint axis, or about the child's three axes",
            _1or3,
        ),
    },
    "Motor": {
        "rotor": Parameter("kg m2|kg", "positive", "inertia of the rotor"),
        "gear": Parameter("", "not zero", "gear ratio: rotor speed over joint speed"),
        "torque_constant": Parameter("N m/A|N/A", "not zero", "effort per current, joint side"),
        "limit": Parameter("N m|N", "positive", "largest effort, joint side"),
        "resistance": Parameter("ohm", "positive", "resistance of the winding"),
        "back_emf": Parameter(
            "V s/rad", "not zero", "voltage per speed of the rotor (default torque_constant / gear)"
        ),
    },
    "Ripple": {
        "periods": Parameter("", "positive", "periods per revolution of the rotor"),
        "torque": Parameter("N m|N", "finite", "amplitude without current: cogging"),
        "share": Parameter("", "finite", "amplitude as a share of the effort"),
        "phase": Parameter("rad", "finite", "phase at zero coordinate"),
    },
    "Stops": {
        "lower": Parameter("rad|m", "finite", "lower end"),
        "upper": Parameter("rad|m", "finite", "upper end"),
        "stiffness": Parameter("N m/rad|N/m", "positive", "stiffness of the stop"),
        "damping": Parameter("N m s/rad|N s/m", "not negative", "damping of the stop"),
    },
    "Joint": {
        "axis": Parameter(
            "", "finite", "joint axis in child axes (default of a revolute joint: z)", _3
        ),
        "axis2": Parameter("", "finite", "second axis of a universal joint in child axes", _3),
        "offset": Parameter("m", "finite", "shift from the parent's tip, in its axes", _3),
        "rotation": Parameter(
            "rad", "finite", "rotation vector from the parent's tip axes to the child's", _3
        ),
        "home": Parameter(
            "rad|m", "finite", "joint coordinate at the start", ((), (1,), (2,), (3,), (6,))
        ),
        "stiffness": Parameter("N m/rad|N/m", "positive", "stiffness of the joint spring"),
        "backlash": Parameter("rad|m", "positive", "play of the joint spring"),
        "backlash_smooth": Parameter(
            "rad|m", "positive", "way over which the spring builds up at each end of its play"
        ),
        "hardening": Parameter(
            "N m/rad3|N/m3", "not negative", "cubic stiffness of the joint spring"
        ),
        "damping": Parameter("N m s/rad|N s/m", "not negative", "viscous damping"),
        "mass": Parameter("kg", "not negative", "mass of the joint"),
    },
    "Payload": {
        "mass": Parameter("kg", "not negative", "mass"),
        "inertia": Parameter("kg m2", "not negative", "inertia about its centre of mass", _1or3),
        "offset": Parameter("m", "finite", "centre of mass in the axes of its section", _3),
        "s": Parameter("", "station", "station on the link"),
    },
    "Lowpass": {
        "frequency": Parameter("Hz", "positive", "corner frequency"),
        "zeta": Parameter("", "positive", "damping ratio"),
    },
    "Crosstalk": {"gain": Parameter("", "finite", "reading per unit of the other quantity")},
    "Sensor": {
        "s": Parameter("", "station", "station on the link"),
        "span": Parameter("", "station", "stations between which a flex sensor measures", ((2,),)),
        "position": Parameter("m", "finite", "y, z of a gauge in its section", ((2,),)),
        "direction": Parameter("", "finite", "measuring direction", _3),
        "gain": Parameter("", "finite", "gain"),
        "offset": Parameter("", "finite", "offset of the reading"),
        "delay": Parameter("s", "not negative", "delay"),
        "noise": Parameter("", "not negative", "standard deviation of the noise"),
        "drift": Parameter("1/s", "finite", "rate of the offset"),
        "skew": Parameter("", "finite", "share by which the sensor's clock runs fast"),
        "quantum": Parameter("", "positive", "step to which the reading is rounded"),
    },
}


def unit_of(parameter: Parameter, joint_type: str | None = None) -> str:
    """The unit of a parameter; for parameters of a joint it depends on the joint type."""
    angular, _, linear = parameter.unit.partition("|")
    if linear and joint_type == "free":
        return "m, rad"
    return linear if linear and joint_type in ("sliding", "prismatic") else angular
