"""A run in which a term matters that the default of its formulation leaves out says so, with its
size."""

import types
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import REGISTRY, formulation
from flexjax.formulation._left_out import shear_share

BEND = [name for name in REGISTRY if formulation(name).bend_power is not None]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in BEND[1:]]


class Finished(NamedTuple):
    """What the warnings read of a run."""

    q: np.ndarray
    status: np.ndarray = np.zeros((), int)

    def beside(self, name):
        assert name == "coordinates"
        return self.q


def arm(height=0.005, length=0.5):
    section, steel = fx.Rectangle(0.02, height), fx.Material(2e11, 7850.0, 0.3)
    return fx.Robot.serial([fx.Link("boom", length, section=section, material=steel)], planar=True)


@eqx.filter_jit
def bent(model, tip):
    """Coordinates of a link whose tip is ``tip`` off, by the formulation's own start."""
    start = fx.Start(links={"boom": fx.Shape(y=tip)})
    return model.initial_state(fx.Drive(), 0.0, start).mech.q[None]


@pytest.mark.parametrize("name", [BEND[0], *SLOW])
def test_bending_beyond_a_formulation_is_said_with_its_size(name):
    model = formulation(name)().bind(arm())
    warnings = model.formulation.run_warnings
    assert warnings(model, Finished(bent(model, jnp.asarray(0.05)))) == []
    (said,) = warnings(model, Finished(bent(model, jnp.asarray(0.2))))
    assert "links.boom bends by 40% of its length" in said
    assert f"about {0.4 ** formulation(name).bend_power:.1g} of the length" in said
    thick = formulation(name)().bind(arm(height=0.1))
    (said,) = warnings(thick, Finished(bent(thick, jnp.asarray(0.0))))
    assert "links.boom" in said and "would add 3.1% to its deflection" in said


def test_transfer_matrix_lacks_shear_and_port_hamiltonian_nothing():
    thick = types.SimpleNamespace(robot=arm(height=0.1), links=None)
    (said,) = fx.TransferMatrix().run_warnings(thick, None)
    assert "shear, which TransferMatrix leaves out" in said
    assert fx.PortHamiltonian().run_warnings(thick, None) == []
    assert fx.RigidArm().run_warnings(thick, None) == []


def test_share_of_shear():
    """Timoshenko: P L / (k G A) over P L^3 / (3 EI)."""
    height, length = 0.1, 0.5
    exact = 3 * 2 * 1.3 * height**2 / 12 / (5 / 6) / length**2
    link = arm(height, length).links[0]
    assert shear_share(link) == pytest.approx(exact)
    thin = shear_share(arm(0.005).links[0])  # a bound
    assert 0.01 > thin >= exact * (0.005 / height) ** 2
    beam = fx.BeamConstants(EA=1.0, EIy=1.0, EIz=2.0, GJ=1.0, rhoA=1.0)
    assert shear_share(fx.Link("a", 1.0, constants=beam)) == 0.0
