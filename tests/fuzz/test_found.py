"""What the fuzzed runs found, kept as cases."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.fuzz.nonsense import no_tracing

NAN = float("nan")
ROBOT = fx.load_robot("two-link")
SOFT = fx.BeamConstants(EA=1e5, EIy=2.0, EIz=1.0, GJ=1.0, rhoA=0.3)  # the twist has no inertia


def in_space(constants: fx.BeamConstants) -> fx.Robot:
    joint = fx.Joint("hinge", "revolute", "ground", "rod", axis=(0.0, 1.0, 1.0))
    return fx.Robot("rod", [fx.Link("rod", 0.5, constants=constants)], [joint])


@pytest.mark.parametrize("method", [fx.ScrewSynthesis(modes=1), fx.MovingBeam(elements=1)])
def test_a_twist_without_inertia_is_refused(method):
    """Its mass matrix is singular: every run ended as non-finite in its first step."""
    with pytest.raises(ValueError, match=r"links\.rod\.constants\.rhoIx: missing; expected"):
        method.bind(in_space(SOFT))
    pieces = [fx.Piece(1.0, constants=SOFT)]
    robot = in_space(SOFT)
    link = fx.Link("rod", 0.5, pieces=pieces)
    with pytest.raises(ValueError, match=r"links\.rod\.pieces\.0\.constants\.rhoIx: missing"):
        method.bind(fx.Robot("rod", [link], robot.joints))


def test_a_beam_in_space_without_rotary_inertia_is_refused():
    robot = in_space(fx.BeamConstants(EA=1e5, EIy=2.0, EIz=1.0, GJ=1.0, rhoA=0.3, rhoIx=1e-4))
    with pytest.raises(ValueError, match="rotary: False; expected True"):
        fx.MovingBeam(elements=1, rotary=False).bind(robot)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: fx.FiniteElement(elements=2.5), "elements: 2.5; expected a whole number"),
        (lambda: fx.FiniteElement(elements="many"), "elements: many; expected a whole number"),
        (lambda: fx.MovingBeam(elements=1.5), "elements: 1.5; expected a whole number"),
        (lambda: fx.PortHamiltonian(elements="two"), "elements: two; expected a whole number"),
        (lambda: fx.PortHamiltonian(drag=(NAN,) * 6), "drag: .*expected six numbers"),
        (lambda: fx.PortHamiltonian(coupling=((1.0,),)), "coupling: .*expected three rows"),
        (lambda: fx.constant("one"), "'one': expected a number"),
        (lambda: fx.RigidArm().bind("two-link"), r"robot: str; expected fx\.Robot"),
        (lambda: fx.RigidArm().bind(None), r"robot: NoneType; expected fx\.Robot"),
    ],
)
def test_values_of_a_wrong_type_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(ts="1 s"), "ts: '1 s'; expected output times"),
        (dict(dt="fast"), "dt: 'fast'; expected a positive step"),
        (dict(dt=NAN), "dt: nan; expected a positive step"),
        (dict(substeps="two"), "substeps: 'two'; expected a whole number"),
        (dict(substeps=NAN), "substeps: nan; expected a whole number"),
        (dict(adaptive="yes"), "adaptive: 'yes'; expected a step-size controller"),
        (dict(model=ROBOT), "model: Robot; expected a robot in a formulation"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(given, message):
    model = given.pop("model", None) or fx.RigidArm().bind(ROBOT)
    ts = given.pop("ts", np.linspace(0.0, 0.1, 3))
    with no_tracing(), pytest.raises(ValueError, match=message):
        fx.simulate(model, None, ts, **given)


def test_a_rigid_link_has_no_deflection_beside_links_with_frames_between_their_ends():
    """It was -1 m along the link; found by the change of deflection in a comparison."""
    rigid = fx.Link("rigid", 0.5, body=fx.Body(1.0, (0.2, 0, 0)), rigid=True)
    rod = fx.Link("rod", 0.4, constants=SOFT)
    joints = [fx.Joint("a", "revolute", "ground", "rigid"), fx.Joint("b", "fixed", "rigid", "rod")]
    robot = fx.Robot("arm", [rigid, rod], joints, planar=True)
    model = fx.ScrewSynthesis(modes=1, frame=0.5).bind(robot)
    deflection, _ = model.links.strain(jnp.zeros((2, 2)), jnp.ones(2))
    np.testing.assert_array_equal(deflection, 0.0)
