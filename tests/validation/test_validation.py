"""Every number of the validation page stays within its stated bound."""

import json

import pytest

from flexjax.formulation import REGISTRY, formulation
from tests.validation import _convergence
from tests.validation.__main__ import RESULTS
from tests.validation._bounds import bound
from tests.validation._cases import CASES
from tests.validation._page import DOCS, unstated
from tests.validation._row import run

ELASTIC = [name for name in REGISTRY if formulation(name).deforms]
PAIRS = [
    pytest.param(word, name, marks=() if name in case.quick else pytest.mark.slow)
    for word, case in CASES.items()
    for name in REGISTRY
    if formulation(name).deforms or not case.elastic
]


@pytest.mark.parametrize(("word", "name"), PAIRS)
def test_case(word, name, record_number):
    stored = json.loads(RESULTS.read_text())[word][name]
    rows = run(word, CASES[word], name)
    assert [r.quantity for r in rows] == [entry["quantity"] for entry in stored]
    for r, entry in zip(rows, stored, strict=True):
        if r.error is None:
            assert r.refused == entry["refused"]
        else:
            record_number(r.key, r.error, bound(r))


def test_the_page_has_every_case_with_bounds():
    results = json.loads(RESULTS.read_text())
    assert not unstated(results)
    page = (DOCS / "validation.md").read_text()
    for word, case in CASES.items():
        assert f"## {case.title}" in page and set(results[word]) >= set(ELASTIC)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELASTIC)
def test_order_in_the_mesh(name, record_number):
    stored = json.loads(RESULTS.read_text())["in_h"][name]["order"]
    found = _convergence.in_h(name)["order"]
    record_number(f"order in the mesh, {name}, off that of the page", abs(found - stored), 0.05)
    record_number(f"order in the mesh, {name}", found, 1.8, ">=")


@pytest.mark.slow
@pytest.mark.parametrize("name", ELASTIC)
def test_order_in_the_step(name, record_number):
    record_number(f"order in the step, {name}", _convergence.in_dt(name)["order"], (1.8, 2.2), "in")
