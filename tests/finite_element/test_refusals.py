"""What the formulation does not hold, it says, with what to do."""

from typing import NamedTuple

import numpy as np
import pytest

import flexjax as fx
from flexjax._registry import REGISTRY
from flexjax.formulation import formulation

BEAM = fx.BeamConstants(EA=1, EIy=1, EIz=1, GJ=1, rhoA=1)


def arm(link, joint_type="revolute", planar=True, **joint):
    return fx.Robot(
        "arm", [link], [fx.Joint("j", joint_type, "ground", link.name, **joint)], planar=planar
    )


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (arm(fx.Link("a", 1.0, constants=BEAM), planar=False), "planar"),
        (arm(fx.Link("a", 1.0, constants=BEAM, curvature=[0, 0, 0.1])), "curvature"),
        (
            arm(fx.Link("a", 1.0, constants=BEAM, damping=fx.Damping(modal=0.01))),
            "strain_rate or mass",
        ),
        (
            arm(fx.Link("a", 1.0, constants=BEAM, damping=fx.Damping(mass=0.01)), "prismatic"),
            "runs through its joint",
        ),
        (
            arm(
                fx.Link(
                    "a", 1.0, pieces=[fx.Piece(0.5, constants=BEAM), fx.Piece(0.5, constants=BEAM)]
                ),
                "prismatic",
            ),
            "varies",
        ),
    ],
)
def test_refusals(robot, message):
    with pytest.raises(ValueError, match=message):
        fx.FiniteElement().bind(robot)


@pytest.mark.parametrize(
    "options", [dict(elements=-1), dict(elements={"a": 1.5}), dict(basis="modal")]
)
def test_options(options):
    with pytest.raises(ValueError, match="expected"):
        fx.FiniteElement(**options)


def test_unknown_link():
    with pytest.raises(ValueError, match="no such link"):
        fx.FiniteElement(elements={"nobody": 3}).bind(arm(fx.Link("a", 1.0, constants=BEAM)))


class Run(NamedTuple):
    """What a warning reads of a trajectory."""

    ts: np.ndarray
    q: np.ndarray
    velocity: np.ndarray
    deflection: np.ndarray
    status: np.ndarray = np.zeros((), int)


def run(spin, bent):
    still = np.zeros((21, 1, 2, 6))
    still[..., 5] = spin
    return Run(
        np.linspace(0.0, 2.0, 21),
        np.full((21, 1), 0.5),
        still,
        np.full((21, 1, 2, 3), bent),
    )


def test_a_link_in_a_guide_says_what_it_lacks():
    """A link through its joint has no foreshortening by default; asked for, it is refused."""
    robot = arm(fx.Link("a", 1.0, constants=BEAM), "prismatic")
    model = fx.FiniteElement(elements=2).bind(robot)
    assert not any(model.links.stiffening)
    assert model.formulation.run_warnings(model, run(0.1, 0.001)) == []
    (said,) = model.formulation.run_warnings(model, run(0.1, 0.05))
    assert "links.a" in said and "0.003 m too far out" in said
    (said,) = model.formulation.run_warnings(model, run(4.0, 0.001))
    assert "% too low" in said and "PortHamiltonian" in said
    with pytest.raises(ValueError, match="stiffening of a link that runs through"):
        fx.FiniteElement(stiffening=True).bind(robot)


def test_every_formulation_has_the_same_variants():
    for name in REGISTRY:
        make = formulation(name)
        if name == "RigidArm":
            continue
        assert make().variant == "complete"
        make(variant="paper")
        with pytest.raises(ValueError, match="variant: 'published'; expected 'complete'"):
            make(variant="published")
