"""Frequencies: theory, the reference on the same span, two welded links, a rotating cantilever."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.term import Instant
from tests.screw_synthesis.arms import REFERENCE, SLENDER, arm, frequencies

STILL = {"gravity": (0.0, 0.0, 0.0)}


def _relative(ours, theirs):
    return np.max(np.abs(np.asarray(ours) / np.asarray(theirs) - 1))


def test_one_link_on_the_same_span(record_number):
    reference = REFERENCE["frequencies"]["poly(2, 3, 3, 2)"]
    ours = frequencies(
        fx.ScrewSynthesis(modes=(2, 3, 3, 2)).bind(arm(("fixed",), **STILL, **SLENDER))
    )
    record_number(
        "one link, polynomials (2, 3, 3, 2): all frequencies",
        _relative(ours, sorted(sum(reference.values(), []))),
        1e-7,
    )


def test_error_falls_with_the_number_of_modes(record_number):
    """Bending frequencies of a clamped link against theory: polynomials converge faster than any
    power.
    """
    theory = np.array(REFERENCE["frequencies"]["theory"]["v"][:2])
    errors = []
    for r in (2, 3, 4, 5):
        ours = frequencies(
            fx.ScrewSynthesis(modes=(0, r, 0, 0)).bind(arm(("fixed",), **STILL, **SLENDER))
        )
        errors.append(ours[0] / theory[0] - 1)
    assert all(b < a / 8 for a, b in zip(errors[:-1], errors[1:], strict=True)), errors
    record_number(
        "one clamped link, first frequency with 5 polynomials, relative error", errors[-1], 1e-7
    )
    ours = frequencies(
        fx.ScrewSynthesis(modes=(0, 3, 0, 0), basis="clamped-free").bind(
            arm(("fixed",), **STILL, **SLENDER)
        )
    )
    record_number(
        "one clamped link, clamped-free functions: frequencies are theirs",
        _relative(ours[:2], theory),
        1e-8,
    )


@pytest.mark.parametrize(
    ("basis", "r", "name"), [("polynomial", 3, "poly3"), ("clamped-free", 3, "modal3")]
)
def test_welded_links_see_the_tips_slope(basis, r, name, record_number):
    ours = frequencies(
        fx.ScrewSynthesis(modes=(0, r, 0, 0), basis=basis).bind(
            arm(("fixed", "fixed"), **STILL, **SLENDER)
        )
    )
    record_number(
        f"two welded links, {name}: first three frequencies",
        _relative(ours[:3], REFERENCE["weld_two_links"][name]),
        1e-7,
    )
    if name == "poly3":
        record_number(
            "two welded links, first frequency against theory 24.2794 rad/s",
            abs(ours[0] - 24.2794),
            1e-4,
        )


@eqx.filter_jit
def _rotating(model, speed):
    """Frequencies about steady rotation at ``speed`` about z, from the linearised shape equations
    with the joint's motion prescribed.
    """
    signal = fx.polynomial(jnp.stack([jnp.zeros_like(speed), speed]))
    term = model.term(fx.Drive(joints={"joint0": fx.Motion(signal)}))
    lay = model.layout
    n = sum(lay.shapes)

    def shape_acceleration(eta, rate):
        q = jnp.concatenate([jnp.zeros(1), eta])
        v = jnp.concatenate([speed[None], rate])
        return term.accelerate(Instant(jnp.zeros(())), q, v)[1:]

    def newton(eta, _):
        f = shape_acceleration(eta, jnp.zeros(n))
        return eta - jnp.linalg.solve(jax.jacfwd(shape_acceleration)(eta, jnp.zeros(n)), f), None

    eta, _ = jax.lax.scan(newton, jnp.zeros(n), None, length=6)
    K, G = jax.jacfwd(shape_acceleration, argnums=(0, 1))(eta, jnp.zeros(n))
    return jnp.concatenate(
        [jnp.concatenate([jnp.zeros((n, n)), jnp.eye(n)], 1), jnp.concatenate([K, G], 1)]
    )


@pytest.mark.parametrize(
    "stiffening",
    [pytest.param(False, id="linear", marks=pytest.mark.slow), pytest.param(True, id="stiffening")],
)
def test_rotating_cantilever(stiffening, record_number):
    rows = REFERENCE["rotating_cantilever"]["rows"]
    model = fx.ScrewSynthesis(modes=(6 if stiffening else 0, 4, 4, 0), stiffening=stiffening)
    model = model.bind(arm(("revolute",), **STILL, EA=9e6, rhoIx=0.0, **SLENDER))
    for row in rows:
        matrix = np.asarray(_rotating(model, jnp.asarray(float(row["Omega"]))))
        ours = np.sort(np.abs(np.imag(np.linalg.eigvals(matrix))))[::2][:2]
        theirs = row["geo" if stiffening else "linear"]
        word = "with stiffening" if stiffening else "linear strain"
        record_number(
            f"cantilever rotating at {row['Omega']:g} rad/s, {word}: frequencies, relative",
            _relative(ours, theirs),
            1e-6,
        )
