"""Inputs of linear models beside controllers of every kind."""

import numpy as np
import pytest

import flexjax as fx

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
