"""Recovery and coverage in every flexible formulation: Young's modulus, damping, payload, and joint
stiffness where joints may be flexible.
"""

import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import ELASTIC, method, settings
from tests.identify.cases import ELASTIC_FREE, filled, flexible_arm, flexible_record, study


@pytest.mark.slow
@pytest.mark.parametrize("name", ELASTIC)
def test_recovery_and_coverage(name, record_number):
    chosen = method(name, "identify")
    soft = not chosen.refusals(flexible_arm(True))
    free = ELASTIC_FREE if soft else ELASTIC_FREE[:3]
    worst, noisy = study(
        chosen.bind(flexible_arm(soft)),
        flexible_record(soft, **settings(name, "identify")),
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
