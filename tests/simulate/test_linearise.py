"""Linear models: inputs beside controllers of every kind, and the time of the drive."""

import jax
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import CONTRACTS, light, method
from tests.simulate.test_start import arm

CONTROLLERS = {
    "PD": fx.PD(20.0, 1.0, fx.constant(0.0)),
    "Sampled": fx.Sampled(lambda t, q, qd, params: -q, 0.01),
}


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("method", [fx.RigidArm(), fx.TransferMatrix(segments=1)])
def test_an_effort_beside_a_controller(method, name):
    """A torque accelerates the link by its inertia, or bends its half segment first."""
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    link = fx.Link("a", 0.4, section=fx.Rectangle(0.02, 0.008), material=soft)
    joint = fx.Joint("j", "revolute", "ground", "a")
    model = method.bind(fx.Robot.serial([link], [joint], planar=True))
    found = fx.linearise(model, fx.Drive(joints={"j": CONTROLLERS[name]}))
    assert found.inputs == ("j",) and np.isfinite(found.B).all()
    if isinstance(method, fx.RigidArm):
        inertia = 1200.0 * 0.02 * 0.008 * 0.4 * (0.4**2 / 3 + 0.008**2 / 12)
        np.testing.assert_allclose(found.B[:, 0], [0.0, 1 / inertia], rtol=1e-9)


def shifted(start: float) -> fx.Drive:
    """A link on a base that rotates at 2 rad/s and moves, at the time ``start`` of the motion."""
    angle = fx.polynomial((2.0 * start, 2.0))
    way = [fx.polynomial((0.5 * start, 0.5)), fx.constant(0.0), fx.constant(0.0)]
    return fx.Drive(
        joints={"joint0": fx.PD(3.0, 0.1, fx.constant(0.2))},
        base=fx.Base(translation=fx.stack(way), angle=angle),
    )


TIMED = {
    "linearise": lambda model, drive, t: fx.linearise(model, drive, t=t).A,
    "modes": lambda model, drive, t: fx.modes(model, drive, t=t, n=1).frequencies,
    "equilibrium": lambda model, drive, t: fx.equilibrium(model, drive, t=t).mech,
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow][: n not in light()]) for n in CONTRACTS]
)
@pytest.mark.parametrize("use", TIMED)
def test_the_base_stands_where_it_is_at_the_time(name, use):
    """The drive at a time is the drive that starts there."""
    model = method(name, "start").bind(arm())
    found, wanted = (TIMED[use](model, shifted(start), t) for start, t in ((0.0, 0.3), (0.3, 0.0)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9), found, wanted)
    before = TIMED[use](model, shifted(0.0), 0.0)
    assert any(
        not np.allclose(a, b, rtol=1e-4)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(before), strict=True)
    )


@pytest.mark.parametrize("use", [fx.linearise, fx.modes, fx.equilibrium])
def test_a_state_in_the_place_of_a_drive_is_refused(use):
    with pytest.raises(ValueError, match=r"drive: dict; expected fx\.Drive"):
        use(fx.RigidArm().bind(arm()), {"joint0": 0.1})
