"""Frequencies of clamped links with payload against the closed form, and their order."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import flexjax as fx
from flexjax.formulation.finite_element._spin_limit import first_frequency
from tests.contract_cases import pendulum

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "001_finite_element.json").read_text()
)


def dense(band):
    band = np.asarray(band)
    m = band.shape[0]
    return sum(
        np.diag(band[max(0, 3 - k) : m - max(0, k - 3), k], k - 3)
        for k in range(7)
        if abs(k - 3) < m
    )


def clamped_frequencies(name, link, elements, free=None, basis="auto"):
    model = fx.FiniteElement(elements=elements, basis=basis, variant="paper").bind(
        fx.load_robot(name)
    )
    links, stage = model.links, 1
    eta = jnp.zeros((2, links.numbers.a.shape[1] + any(links.through)))
    eta = eta if free is None else eta.at[:, -1].set(free)
    length = float(links.length[stage]) if free is None else free
    K, M = dense(links.numbers.K[stage]) / length**3, dense(links.mass(eta).ee.band[stage])
    return np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True)) / (2 * np.pi)


@pytest.mark.parametrize("basis", ["hermite", "bspline"])
def test_order_four(basis, record_number):
    exact = np.array(REFERENCE["frequencies_exact_hz"]["PaR"])
    counts = [4, 8, 16]
    errors = np.array(
        [clamped_frequencies("my-par", "link2", n, basis=basis)[:3] / exact - 1 for n in counts]
    )
    assert np.all(errors > 0)  # from above: the elements conform
    order = np.log2(errors[0] / errors[1])[1], np.log2(errors[1] / errors[2])[1]
    record_number(f"order of the second clamped frequency, {basis}", float(order[1]), 3.8, ">=")
    if basis == "hermite":
        table = REFERENCE["frequency_relerr_PaR"]
        wanted = [table[f"f{k}"][table["n"].index(8)] for k in (1, 2, 3)]
        np.testing.assert_allclose(errors[1], wanted, rtol=0.03)


def test_free_length_decides(record_number):
    """A link that runs through its joint has the frequencies of its free length, not of a number of
    whole elements.
    """
    # The reference took EI = .1688 (the printed I = 8.44e-12); the robot's rectangle has 2e10 *
    # 8.4375e-12. Frequencies go with the root.
    scale = np.sqrt(2e10 * 8.4375e-12 / REFERENCE["parameters"]["RPb"]["EI"])
    exact = scale * np.array(REFERENCE["frequencies_exact_hz"]["RPb_d04"])
    found = clamped_frequencies("my-rpb", "link2", 12, free=0.4)[:3]
    record_number(
        "clamped frequencies of the RPb link at d = .4, relative",
        float(np.max(np.abs(found / exact - 1))),
        1e-4,
    )
    for d, _, _, f1, paper, _ in REFERENCE["pb_paper_rule_f1"]["rows"][:3]:
        assert abs(clamped_frequencies("my-rpb", "link2", 8, free=d)[0] / (scale * f1) - 1) < 1e-5
        assert paper / f1 > 1.05


@pytest.mark.parametrize("elements", [1, 4])
def test_limit_of_rotation_for_any_number_of_elements(elements):
    """The frequency behind the warning about fast rotation; one element has fewer unknowns than the
    band.
    """
    model = fx.FiniteElement(elements=elements, variant="paper").bind(pendulum())
    links = model.links
    length = float(links.length[0])
    loads = [(float(x.s), float(x.inertia[0, 0])) for x in links.loads]
    found = first_frequency(
        np.asarray(links.numbers.M[0]),
        np.asarray(links.numbers.K[0]),
        links.tables[0],
        length,
        loads,
    )
    np.testing.assert_allclose(found, 2 * np.pi * fx.modes(model).frequencies[0], rtol=1e-6)
