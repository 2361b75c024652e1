"""What the formulation does not hold, it says, with what to do."""

import pytest

import flexjax as fx

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
