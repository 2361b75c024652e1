"""The contract of failure on random cases: a hundred here, five thousand in the full report."""

import jax
import pytest

from tests.fuzz.cases import BLOCK, results
from tests.fuzz.runs import report, run

SEED = 0
PLANAR = (18, 8)  # structures that compile quickly: a rigid arm and one of finite elements


def quick() -> list[int]:
    """Runs of two structures, and the nonsense about them and about others of their kind."""
    runs = [b * BLOCK + i for b in PLANAR for i in (*range(0, 6), *range(28, 32), *range(36, 40))]
    nonsense = [PLANAR[0] * BLOCK + i for i in range(42, BLOCK)]
    return sorted(runs + nonsense + [PLANAR[1] * BLOCK + i for i in range(42, BLOCK - 4)])


def test_a_hundred_cases(record_number):
    numbers = quick()
    found = list(results(SEED, numbers))
    jax.clear_caches()
    failed = [r for r in found if r.failed]
    print(report(found, sum(r.seconds for r in found)))
    record_number("fuzzed contract of failure, quick: cases", len(found), 100, ">=")
    record_number("fuzzed contract of failure, quick: failures", len(failed), 0)


@pytest.mark.slow
def test_five_thousand_cases(record_number):
    found = list(run(SEED, list(range(5000))))
    failed = [r for r in found if r.failed]
    print(report(found, sum(r.seconds for r in found)))
    record_number("fuzzed contract of failure: cases", len(found), 5000, ">=")
    record_number("fuzzed contract of failure: failures", len(failed), 0)
