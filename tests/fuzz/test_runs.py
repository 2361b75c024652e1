"""The contract of failure on random cases: a hundred here, five thousand in the full report."""

import jax
import pytest

from tests.fuzz.cases import BROKEN, SANE, WILD, Block, result
from tests.fuzz.runs import report, run

SEED = 0
PLANAR = (1, 5)  # structures that compile quickly, one beside another formulation
RUNS = SANE + WILD + BROKEN
QUICK = [*range(6), *range(SANE, SANE + 4), *range(SANE + WILD, RUNS), *range(RUNS, RUNS + 36)]


def test_a_hundred_cases(record_number):
    """Runs of two structures, and nonsense about them: the contract of failure in short."""
    found = []
    for number in PLANAR:
        block = Block(SEED, number)
        found += [result(block, index) for index in QUICK]
    jax.clear_caches()
    failed = [r for r in found if r.failed]
    print(report(found))
    assert not failed, failed
    record_number("fuzzed contract of failure, quick: cases", len(found), 100, ">=")


@pytest.mark.slow
def test_five_thousand_cases(record_number):
    found = list(run(SEED, list(range(5000))))
    failed = [r for r in found if r.failed]
    print(report(found))
    record_number("fuzzed contract of failure: cases", len(found), 5000, ">=")
    record_number("fuzzed contract of failure: failures", len(failed), 0)
    beside = sum(r.apart is not None for r in found)
    record_number("fuzzed contract of failure: beside another formulation", beside, 1000, ">=")
