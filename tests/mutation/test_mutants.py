"""The faults that the mutation check makes."""

import ast
from collections import Counter

import pytest

from tests.mutation._mutants import mutants
from tests.mutation._targets import files, stages

SOURCE = '''
"""Text with 1 + 2."""
def f(x: "3 3", n: int = 2) -> "6":
    """Twice 1.5."""
    if n < 0:
        raise ValueError(f"n = {n - 1}: expected 0")
    é = -x[n - 1, 0] @ x.T * 0.5
    return jnp.sin(é) if n is None and x.size else é
'''


def test_each_fault_is_one_changed_expression():
    found = mutants("f.py", SOURCE)
    assert Counter(m.kind for m in found) == {
        "constant": 5,  # the default, 0, the index's 1 and 0, 0.5
        "comparison": 3,
        "operator": 3,  # * and @, and - in the index
        "sign": 1,
        "transpose": 1,
        "function": 1,
    }
    whole = ast.dump(ast.parse(SOURCE))
    for m in found:
        assert ast.dump(ast.parse(m.apply(SOURCE))) != whole
    with pytest.raises(ValueError, match="not the one"):
        found[0].apply("")


def test_operands_keep_their_parentheses():
    (m,) = [m for m in mutants("f.py", "y = a * (b + c)\n") if " / " in m.new]
    assert eval(m.apply("y = a * (b + c)\n").split("=")[1], {"a": 6.0, "b": 1, "c": 2}) == 2.0


def test_every_target_has_tests():
    found = files()
    assert len(found) > 40
    for file in found:
        assert stages(file), file
