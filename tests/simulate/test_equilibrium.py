"""Rest of flexible arms of which a Motion holds a joint."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import elastic_pair

METHODS = (
    fx.PortHamiltonian(elements=8),
    fx.TransferMatrix(segments=24),
    fx.FiniteElement(elements=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_held_joint_stays_and_the_rest_gives_way(method, record_number):
    """The held joint is where its Motion says, nothing accelerates, and the controller's effort is
    what its law says at the angle reached.
    """
    model = method.bind(elastic_pair())
    drive = fx.Drive(
        joints={
            "shoulder": fx.Motion(fx.constant(0.3)),
            "elbow": fx.PD(20.0, 1.0, fx.constant(0.2)),
        }
    )
    rest = fx.equilibrium(model, drive, {"elbow": 0.2})
    snap = model.observe(jnp.zeros(()), rest, drive, jnp.linspace(0.0, 1.0, 3))
    name = type(method).__name__
    record_number(f"{name}: angle of a held joint at rest", abs(float(snap.q[0]) - 0.3), 1e-12)
    assert float(snap.q[1]) < 0.19
    record_number(f"{name}: acceleration at rest", np.max(np.abs(snap.acceleration)), 1e-6)
    record_number(
        f"{name}: effort of the PD",
        abs(float(snap.effort[1]) - 20.0 * (0.2 - float(snap.q[1]))),
        1e-8,
    )
