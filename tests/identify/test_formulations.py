"""Recovery and coverage in every flexible formulation: Young's modulus, damping, payload, and joint
stiffness where joints may be flexible.
"""

import numpy as np
import pytest

import flexjax as fx
from tests.identify.cases import ELASTIC_FREE, filled, flexible_arm, flexible_record, study

METHODS = {
    "TransferMatrix": lambda: fx.TransferMatrix(segments=3),
    "FiniteElement": lambda: fx.FiniteElement(elements=2),
    "ScrewSynthesis": lambda: fx.ScrewSynthesis(modes=2),
    "PortHamiltonian": lambda: fx.PortHamiltonian(elements=3),
    "MovingBeam": lambda: fx.MovingBeam(elements=1),
}

# In the motion of the others the tip bends to half the length of the link, where MovingBeam's
# energy (of the fourth order) is not meant to hold and Newton's iteration fails at steps of 5 ms
# (in half of it for 7 of 100 arms): a quarter of it. Its steps cost the most, too: half of the
# record, one element.
RECORDS = {"MovingBeam": {"size": 0.025, "samples": 61}}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_recovery_and_coverage(name, record_number):
    method = METHODS[name]()
    soft = not method.refusals(flexible_arm(True))
    free = ELASTIC_FREE if soft else ELASTIC_FREE[:3]
    worst, noisy = study(
        method.bind(flexible_arm(soft)),
        flexible_record(soft, **RECORDS.get(name, {})),
        free,
        dt=0.005,
    )
    record_number(
        f"identify {name}: largest relative error over 100 arms within 30 %, no noise", worst, 1e-3
    )
    for path, share in zip(free, noisy.coverage, strict=True):
        record_number(
            f"identify {name}: coverage of 95 % intervals, 2 % noise, {path}",
            share,
            (0.90, 0.99),
            "in",
        )
    assert np.all(np.isfinite(noisy.values))


@pytest.mark.slow
def test_a_single_search_in_a_large_program():
    """One record in PortHamiltonian: the program that ended with LAPACK's routines not found."""
    model = fx.PortHamiltonian(elements=2).bind(flexible_arm(True))
    record = filled(
        flexible_record(True, samples=70), model, free=ELASTIC_FREE, noise=0.02, dt=0.005
    )
    result = fx.identify(model, record, ELASTIC_FREE, dt=0.005, reweight=0)
    assert result.status == "converged"
    truth = np.array([70e9, 5e-3, 0.2, 60.0])
    assert np.all(np.abs(result.values - truth) < 4 * result.standard_errors)
