"""The same planar arm in three formulations, each refined: what is left is what only one of them models."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

SLENDER = fx.Material(E=20e9, nu=0.3, rho=2000.0)


def arm() -> fx.Robot:
    links = (
        fx.Link("a", 0.5, section=fx.Rectangle(0.01, 0.008), material=SLENDER),
        fx.Link("b", 0.4, section=fx.Rectangle(0.01, 0.006), material=SLENDER),
    )
    joints = (
        fx.Joint("j1", "revolute", "ground", "a"),
        fx.Joint("j2", "revolute", "a", "b"),
    )
    return fx.Robot("pair", links, joints, (fx.Payload("p", "b", 0.05),), (), planar=True)


def _tips(method, substeps):
    motion = fx.Drive(joints={n: fx.Motion(fx.quintic(0.0, 0.6, 0.4)) for n in ("j1", "j2")})
    traj = fx.simulate(method.bind(arm()), motion, jnp.linspace(0.0, 0.4, 5), substeps=substeps, stations=2)
    return np.asarray(traj.tip[1:, :2]), np.abs(np.asarray(traj.deflection)).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FiniteElement", "PortHamiltonian"])
def test_agreement_as_meshes_grow(name, record_number):
    other = fx.FiniteElement(elements=4) if name == "FiniteElement" else fx.PortHamiltonian(elements=16)
    want, bent = _tips(other, 100)
    tips = [_tips(fx.TransferMatrix(segments=n), 100)[0] for n in (4, 8, 16)]
    order = np.log2(np.linalg.norm(tips[1] - tips[0]) / np.linalg.norm(tips[2] - tips[1]))
    record_number(f"order in the segment length, beside {name}", order, (1.85, 2.15), "in")
    limit = tips[2] + (tips[2] - tips[1]) / 3
    gap = np.abs(limit - want).max() / bent
    record_number(f"tip against {name}, segments extrapolated, relative to the bending", gap, 5e-3)
