"""Recovery and coverage in every flexible formulation: Young's modulus, damping, payload, and joint stiffness where joints may be flexible."""

import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import ELASTIC_FREE, flexible_arm, flexible_record, study

METHODS = {
    "TransferMatrix": lambda: fx.TransferMatrix(segments=3),
    "FiniteElement": lambda: fx.FiniteElement(elements=2),
    "ScrewSynthesis": lambda: fx.ScrewSynthesis(modes=2),
    "PortHamiltonian": lambda: fx.PortHamiltonian(elements=3),
    "MovingBeam": lambda: fx.MovingBeam(elements=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_recovery_and_coverage(name, record_number):
    method = METHODS[name]()
    soft = not method.refusals(flexible_arm(True))
    free = ELASTIC_FREE if soft else ELASTIC_FREE[:3]
    worst, noisy = study(method.bind(flexible_arm(soft)), flexible_record(soft), free, dt=0.005)
    record_number(f"identify {name}: largest relative error over 100 arms within 30 %, no noise", worst, 1e-3)
    for path, share in zip(free, noisy.coverage, strict=True):
        record_number(f"identify {name}: coverage of 95 % intervals, 2 % noise, {path}", share, (0.90, 0.99), "in")
    assert np.all(np.isfinite(noisy.values))
