"""The rod of these tests: 1 m of a slender section, first frequency 3.516 / (2 pi) Hz times 10."""

import numpy as np

import flexjax as fx

OMEGA = 3.516015268541 * 10.0


def rod(joint: str = "fixed", planar: bool = True, count: int = 1) -> fx.Robot:
    """EI = 1, rhoA = 0.01: sqrt(EI / (rhoA L^4)) = 10 rad/s; no rotary inertia to speak of."""
    constants = fx.BeamConstants(
        EA=4e5,
        EIy=1.0,
        EIz=1.0,
        GJ=1.0,
        GAy=2e5,
        GAz=2e5,
        rhoA=0.01,
        rhoIx=1e-7,
        rhoIy=5e-8,
        rhoIz=5e-8,
    )
    names = ["rod", *(f"rod{k}" for k in range(2, count + 1))]
    joints = [
        fx.Joint(
            "pin" if k == 0 else f"pin{k + 1}",
            joint,
            "ground" if k == 0 else names[k - 1],
            name,
            **({"axis": (0.0, 0.0, 1.0)} if joint == "revolute" else {}),
        )
        for k, name in enumerate(names)
    ]
    return fx.Robot(
        "rod",
        [fx.Link(name, 1.0, constants=constants) for name in names],
        joints,
        gravity=(0.0, 0.0, 0.0),
        planar=planar,
    )


def first_mode(s):
    """First mode of a cantilever, one at the tip."""
    b = 1.87510406871
    k = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    return 0.5 * (np.cosh(b * s) - np.cos(b * s) - k * (np.sinh(b * s) - np.sin(b * s)))
