"""Bounds of drift, memory and repetition; `python -m tests.long_runs` makes a million steps."""

import pytest

from tests.long_runs._run import RUNS, long_run

# Of the balance of energy, relative to the kinetic energy. ChainNewmark does not conserve it: its
# error is of second order in the step and does not grow.
ENERGY = dict.fromkeys(RUNS, 1e-10) | {"TransferMatrix": 1e-4}
CONSTRAINT = 1e-12  # m
MEMORY = 20.0  # MB


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_drift(name, record_number):
    found = long_run(name, 20_000, 4_000)
    record_number(f"{name}: energy drift over 20 000 steps", found["energy"], ENERGY[name])
    record_number(f"{name}: constraint over 20 000 steps [m]", found["constraint"], CONSTRAINT)
    record_number(f"{name}: growth of memory [MB]", found["memory_growth"], MEMORY)
    assert found["repeated"] == found["asked"] > 0
