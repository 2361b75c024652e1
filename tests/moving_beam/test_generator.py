"""The generator: product integrals, energies of every order and coupling, stiffness matrices,
objectivity.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.formulation.moving_beam._paper import dense_energy, element_strain
from flexjax.formulation.moving_beam.beam._strain import (
    KNOWN,
    LINEAR_TERMS,
    ORDERS,
    STIFFNESSES,
    Term,
    is_bounded,
    resolve,
    strain_energy,
    table,
    tables,
)
from flexjax.numerics.beam import (
    CUBIC,
    LINEAR,
    QUINTIC,
    differentiate,
    product_integrals,
)
from flexjax.numerics.screw import se3
from tests.moving_beam.samples import ORDER, REFERENCE, SAMPLE, STIFFNESS, gauss_energies, unknowns


def _energy(terms, y, l, k=STIFFNESS):
    return strain_energy(tables(terms), y[None], jnp.asarray(l)[None], k[None])


def _random(key, size=14, scale=0.3):
    return scale * jax.random.normal(jax.random.key(key), (size,))


@pytest.mark.parametrize("name", ["D111", "D122", "D1111"])
def test_tensors_are_the_rationals_of_the_reference(name):
    D = product_integrals(tuple((CUBIC, int(n)) for n in name[1:]))
    for index, value in SAMPLE["tensors"][name].items():
        assert D[tuple(int(i) for i in index)] == Fraction(value)


def test_tensors_of_mixed_sets_and_weights():
    """A quintic, a cubic and a linear function with a weight, against polynomials integrated by
    Gauss points.
    """
    D = product_integrals(((QUINTIC, 2), (CUBIC, 1), (LINEAR, 0)), weight=2)
    z, w = np.polynomial.legendre.leggauss(10)
    z, w = 0.5 * (z + 1), 0.5 * w

    def at(shapes, order):
        return np.array(
            [
                sum(float(c) * z**k for k, c in enumerate(differentiate(f, order)))
                for f in shapes.functions
            ]
        )

    expected = np.einsum("g,ag,bg,cg->abc", w * z**2, at(QUINTIC, 2), at(CUBIC, 1), at(LINEAR, 0))
    np.testing.assert_allclose(D.astype(float), expected, atol=1e-13)
    assert D.shape == (6, 4, 2)


@pytest.mark.parametrize("order", ["linear", "cubic", "complete"])
def test_energy_and_forces_of_the_reference_element(order, record_number):
    y, l = unknowns("q"), jnp.asarray(SAMPLE["l"])
    V, dV = jax.jit(jax.value_and_grad(lambda y: _energy(ORDERS[order], y, l)))(y)
    want = SAMPLE["strain"][order]
    record_number(
        f"003 {order}: strain energy of the sample element",
        abs(float(V) - want["V"]) / want["V"],
        1e-13,
    )
    record_number(
        f"003 {order}: its forces",
        float(np.max(np.abs(np.asarray(dV) - np.array(want["dV"])[ORDER]))),
        1e-12,
    )


def test_every_coupling_three_ways(record_number):
    """Each term alone: factored tables as in the time loop, dense rational tensors, Gauss points;
    values and forces.
    """
    l = jnp.asarray(1.3)
    y = _random(1)
    terms = (*KNOWN.values(), Term("GJ", "ppaa", Fraction(3, 7)))

    def factored(y):
        return jnp.stack([_energy((t,), y, l) for t in terms])

    def dense(y):
        return jnp.stack([dense_energy((t,), y, l, STIFFNESS) for t in terms])

    @jax.jit
    def compare(y):
        wanted, forces = (
            gauss_energies(terms, y, l, STIFFNESS),
            jax.jacfwd(lambda y: gauss_energies(terms, y, l, STIFFNESS))(y),
        )
        scale = jnp.max(jnp.abs(forces), axis=1)
        gap = jnp.maximum(jnp.abs(factored(y) - wanted), jnp.abs(dense(y) - wanted)) / scale
        return jnp.max(gap), jnp.max(jnp.abs(jax.jacfwd(factored)(y) - forces) / scale[:, None])

    values, forces = compare(y)
    record_number(
        "003 every coupling: tables, tensors and Gauss points, values", float(values), 1e-12
    )
    record_number("003 every coupling: tables and Gauss points, forces", float(forces), 1e-12)


@pytest.mark.parametrize("order", list(ORDERS))
def test_stiffness_matrices(order, record_number):
    """K(u) u = dV, symmetric; K1 + H3 + H4 is the tangent (in a random direction)."""
    terms, y, w, l = ORDERS[order], _random(2), _random(3), jnp.asarray(0.7)

    @jax.jit
    def parts(y):
        return (
            *element_strain(terms, y, l, STIFFNESS),
            *jax.jvp(jax.grad(lambda y: _energy(terms, y, l)), (y,), (w,)),
        )

    K1, H3, H4, dV, turned = parts(y)
    K = K1 + H3 / 2 + H4 / 3
    scale = float(jnp.max(jnp.abs(dV)))
    record_number(f"003 {order}: K(u) u = dV", float(jnp.max(jnp.abs(K @ y - dV))) / scale, 1e-12)
    record_number(
        f"003 {order}: K symmetric", float(jnp.max(jnp.abs(K - K.T)) / jnp.max(jnp.abs(K))), 1e-12
    )
    record_number(
        f"003 {order}: tangent",
        float(jnp.max(jnp.abs((K1 + H3 + H4) @ w - turned)) / jnp.max(jnp.abs(turned))),
        1e-12,
    )


def _density(terms, z):
    total = 0.0
    for t in terms:
        product = float(t.factor) * STIFFNESS[STIFFNESSES.index(t.stiffness)]
        for x in t.letters:
            product = product * z[x]
        total = total + product
    return total


def _turned(s, order):
    """Letters at x = 0 of a bent, twisted beam of size s, and of the same beam turned by s about an
    oblique axis.
    """
    axis = jnp.array([0.5, -0.7, 0.4])

    def line(turn, x):
        # An extension of size s (cubic order) or s^2 (the weighted order: ux' = O(2)).
        stretch = 0.4 * (s if order == "cubic" else s**2)
        u = jnp.array(
            [stretch * (x + 0.3 * x**2), s * (0.6 * x + 0.8 * x**2), s * (-0.5 * x + 0.9 * x**2)]
        )
        return turn @ (u + jnp.array([1.0, 0.0, 0.0]) * x)

    def frame(turn, alpha, x):
        t = jax.jacfwd(lambda x: line(jnp.eye(3), x))(x)
        t = t / jnp.linalg.norm(t)
        k = 1 / (1 + t[0])
        bend = jnp.array(
            [
                [t[0], -t[1], -t[2]],
                [t[1], 1 - k * t[1] ** 2, -k * t[1] * t[2]],
                [t[2], -k * t[1] * t[2], 1 - k * t[2] ** 2],
            ]
        )
        return turn @ bend @ se3.rotation_exp(jnp.array([1.0, 0.0, 0.0]) * alpha)

    def letters(turn):
        def alpha_of(x):
            # Third angle of the section: z-y-x angles in the paper's sense (turn about z, then y,
            # then the twist about x).
            R = frame(turn, s * (0.3 + 0.7 * x), x)
            return jnp.arctan2(R[2, 1], R[2, 2])

        zero = jnp.zeros(())
        d1 = jax.jacfwd(lambda x: line(turn, x))
        d2 = jax.jacfwd(d1)
        u1, u2 = d1(zero) - jnp.array([1.0, 0.0, 0.0]), d2(zero)
        return {
            "a": u1[0],
            "b": u2[0],
            "c": u1[1],
            "d": u2[1],
            "e": u1[2],
            "f": u2[2],
            "s": alpha_of(zero),
            "p": jax.jacfwd(alpha_of)(zero),
        }

    return letters(jnp.eye(3)), letters(se3.rotation_exp(axis * s))


def test_lists_print_select_and_extend():
    chosen = resolve({"EA a c c", Term("EIz", "dddd", Fraction(1, 24))})
    assert [t.name for t in chosen[:4]] == [t.name for t in LINEAR_TERMS] and len(chosen) == 6
    text = table(chosen)
    assert "EA a c c / 2" in text and "EIz d d d d / 24" in text
    assert not is_bounded(chosen) and not is_bounded(ORDERS["cubic"])
    assert is_bounded(ORDERS["complete"]) and is_bounded(ORDERS["linear"])
    with pytest.raises(ValueError, match="expected one of linear, cubic"):
        resolve("quintic")
    with pytest.raises(ValueError, match="no term"):
        resolve(["EA a a c"])


@pytest.mark.parametrize("order", ["cubic", "consistent"])
def test_objectivity_at_the_order_claimed(order, record_number):
    """A rotation of size s of a deformation of size s must not change the energy at the order that
    is claimed.
    """
    highest = 3 if order == "cubic" else 4

    @jax.jit
    def gap(s):
        before, after = _turned(s, order)
        return _density(ORDERS[order], after) - _density(ORDERS[order], before)

    def change(s):
        return float(gap(jnp.asarray(s))) / s**highest

    # What is left falls with s: it is of the next order.
    coarse, fine = abs(change(2e-2)), abs(change(2e-3))
    record_number(
        f"003 {order}: change of energy under rotation / s^{highest} at s = 0.002", fine, 0.05
    )
    record_number(f"003 {order}: and at a tenth of s (ratio)", fine / coarse, 0.2)


def test_reference_file_names_its_origin():
    assert "independent implementation" in REFERENCE["_about"]
