"""The robots of the validation page, in units in which EI = rhoA = L = 1 where nothing else is
said."""

import functools

import numpy as np

import flexjax as fx
from tests.validation._row import REFERENCE

SLENDER = dict(EA=1e7, EIy=1.0, EIz=1.0, GJ=1.0, rhoA=1.0, rhoIx=1e-9, rhoIy=1e-9, rhoIz=1e-9)
SLENDER |= dict(GAy=1e7, GAz=1e7)


@functools.cache
def beam(**changed) -> fx.Robot:
    """A slender beam on a revolute joint with a hub and a payload, both without mass."""
    link = fx.Link("beam", 1.0, constants=fx.BeamConstants(**(SLENDER | changed)))
    joint = fx.Joint("root", "revolute", "ground", "beam", hub=fx.Hub(0.0, 0.0))
    payload = fx.Payload("tip", "beam", 0.0)
    still = (0.0, 0.0, 0.0)
    return fx.Robot("beam", (link,), (joint,), (payload,), planar=True, gravity=still)


def _round(given: dict[str, float], *, shear: float) -> fx.BeamConstants:
    """A section with the same bending stiffness EI about every axis, and torsion GJ = EI."""
    stiff = dict.fromkeys(("EIy", "EIz", "GJ"), given["EI"]) | dict.fromkeys(("GAy", "GAz"), shear)
    inertia = dict.fromkeys(("rhoIy", "rhoIz"), given["rhoI"]) | {"rhoIx": 2 * given["rhoI"]}
    return fx.BeamConstants(EA=given["EA"], rhoA=given["rhoA"], **stiff, **inertia)


@functools.cache
def spin_up() -> fx.Robot:
    """Simo and Vu-Quoc's beam of 10 m, with its shear and rotary inertia."""
    given = REFERENCE["spin_up"]["beam"]
    constants = _round(given, shear=given["GA"])
    link = fx.Link("beam", given["L"], constants=constants)
    joint = fx.Joint("hub", "revolute", "ground", "beam")
    return fx.Robot("spin-up", (link,), (joint,), planar=True, gravity=(0.0, 0.0, 0.0))


@functools.cache
def bend() -> fx.Robot:
    """Bathe and Bolourchi's bend: an arc of 45 degrees of radius 100, 1 by 1."""
    stiff = dict(EA=1e7, EIy=1e7 / 12, EIz=1e7 / 12, GJ=1e7 / 12, GAy=5e6, GAz=5e6)
    inertia = dict(rhoA=1.0, rhoIx=1.0, rhoIy=1.0, rhoIz=1.0)
    link = fx.Link(
        "bend",
        25 * np.pi,
        constants=fx.BeamConstants(**stiff, **inertia),
        curvature=(0.0, 0.0, 0.01),
    )
    joint = fx.Joint("root", "fixed", "ground", "bend")
    return fx.Robot("bend", (link,), (joint,), gravity=(0.0, 0.0, 0.0))


@functools.cache
def boom() -> fx.Robot:
    """The beam that a guide pays out, from 5 to 10 m."""
    given = REFERENCE["extending"]["beam"]
    constants = fx.BeamConstants(
        EA=given["EA"], EIy=given["EI"], EIz=given["EI"], GJ=1e4, rhoA=given["rhoA"]
    )
    link = fx.Link("boom", 10.0, constants=constants)
    joint = fx.Joint("guide", "prismatic", "ground", "boom", home=5.0)
    return fx.Robot("boom", (link,), (joint,), planar=True, gravity=(0.0, 0.0, 0.0))


@functools.cache
def flying() -> fx.Robot:
    """Simo and Vu-Quoc's free beam (L = 10, EI = 500), as a link on a free joint."""
    given = REFERENCE["flying"]["beam"]
    constants = _round(given, shear=given["GA"])
    link = fx.Link("beam", given["L"], constants=constants)
    joint = fx.Joint("base", "free", "ground", "beam")
    return fx.Robot("flying beam", (link,), (joint,), gravity=(0.0, 0.0, 0.0))


@functools.cache
def right_angle() -> fx.Robot:
    """Simo and Vu-Quoc's two beams of 10, joined at a right angle, clamped at one end."""
    given = REFERENCE["right_angle"]["beam"]
    constants = _round(given, shear=given["EA"])
    links = [fx.Link(name, given["L"], constants=constants) for name in ("first", "second")]
    joints = [
        fx.Joint("clamp", "fixed", "ground", "first"),
        fx.Joint("corner", "fixed", "first", "second", rotation=(0.0, 0.0, np.pi / 2)),
    ]
    return fx.Robot("right angle", links, joints, gravity=(0.0, 0.0, 0.0))


@functools.cache
def pendulum() -> fx.Robot:
    """A rigid rod of 1 m and 1 kg."""
    body = fx.Body(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12, 0.0, 0.0, 0.0))
    link = fx.Link("rod", 1.0, body=body, rigid=True)
    joint = fx.Joint("pin", "revolute", "ground", "rod")
    return fx.Robot("pendulum", (link,), (joint,), planar=True, gravity=(0.0, -9.81, 0.0))


def _rods(lengths: dict[str, float]) -> list[fx.Link]:
    return [
        fx.Link(
            name,
            length,
            rigid=True,
            body=fx.Body(1.0, (length / 2, 0.0, 0.0), (0.01, 0.1, 0.1, 0.0, 0.0, 0.0)),
        )
        for name, length in lengths.items()
    ]


@functools.cache
def four_bar() -> fx.Robot:
    """Crank 0.4, coupler 1, rocker 0.8, ground 1."""
    given = REFERENCE["four_bar"]
    links = _rods({k: given[k] for k in ("crank", "coupler", "rocker")})
    crank, coupler, rocker = given["home"]
    joints = [
        fx.Joint("A", "revolute", "ground", "crank", home=crank),
        fx.Joint("B", "revolute", "crank", "coupler", home=coupler - crank),
        fx.Joint("C", "revolute", "coupler", "rocker", home=rocker - coupler),
        fx.Joint(
            "D",
            "revolute",
            "ground",
            "rocker",
            loop=True,
            child_at="tip",
            offset=(given["ground"], 0.0, 0.0),
        ),
    ]
    return fx.Robot("four-bar", links, joints, planar=True, gravity=(0.0, -9.81, 0.0))


@functools.cache
def slider_crank() -> fx.Robot:
    """Crank 0.4, rod 1; the slider moves along x."""
    given = REFERENCE["slider_crank"]
    links = _rods({"crank": given["crank"], "rod": given["rod"], "slider": 0.1})
    crank, rod = given["home"]
    x = given["crank"] * np.cos(crank) + given["rod"] * np.cos(rod)
    joints = [
        fx.Joint("A", "revolute", "ground", "crank", home=crank),
        fx.Joint("B", "revolute", "crank", "rod", home=rod - crank),
        fx.Joint("guide", "prismatic", "ground", "slider", axis=(1.0, 0.0, 0.0), home=x),
        fx.Joint("pin", "revolute", "rod", "slider", loop=True),
    ]
    return fx.Robot("slider-crank", links, joints, planar=True, gravity=(0.0, -9.81, 0.0))
