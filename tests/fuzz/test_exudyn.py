"""Random arms in flexjax and in Exudyn; ``python -m tests.fuzz.exudyn`` writes the page of it."""

import pytest

from tests.fuzz.exudyn import WANTED, compared

pytestmark = [pytest.mark.outside, pytest.mark.slow]
ROBOTS, STRUCTURES = 50, 10


@pytest.mark.parametrize("shape", range(STRUCTURES))
def test_random_arms_move_as_in_exudyn(shape, record_number):
    pytest.importorskip("exudyn")
    found = list(compared(shape, list(range(shape, ROBOTS, STRUCTURES))))
    assert len(found) >= ROBOTS // STRUCTURES and not [x for x in found if x.note]
    for name in sorted({x.formulation for x in found}):
        apart = max(x.apart for x in found if x.formulation == name)
        record_number(f"structure {shape} beside Exudyn, {name}: tip", apart, WANTED)
