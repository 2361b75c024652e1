"""Shape functions can be chosen: they converge at their own order, the solve and the start know
their unknowns, and what is not of their kind is refused.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.moving_beam import _link
from flexjax.formulation.moving_beam._paper import dense_energy
from flexjax.formulation.moving_beam._start import inextensible
from flexjax.formulation.moving_beam.beam._shapes import Shapes, field_rows
from flexjax.formulation.moving_beam.beam._strain import (
    LINEAR_TERMS,
    ORDERS,
    element_hessians,
    measures,
    strain_energy,
    tables,
)
from flexjax.numerics.beam import CUBIC, ShapeSet
from flexjax.numerics.linalg import factor_elements, solve_elements
from tests.moving_beam.samples import STIFFNESS

CHOICES = {
    "default": {},
    "low": {"ux": "linear"},
    "high": {"ux": "quintic", "alpha": "cubic", "uy": "quintic", "uz": "quintic"},
    "mixed": {"alpha": "quintic", "uz": "quintic"},
}


@pytest.mark.parametrize("choice", [c for c in CHOICES if c != "default"])
def test_factored_tables_are_the_dense_tensors(choice, record_number):
    shapes = Shapes.of(CHOICES[choice])
    y = 0.3 * jax.random.normal(jax.random.key(4), (shapes.size,))
    l, terms = jnp.asarray(0.8), ORDERS["consistent"]
    factored = strain_energy(tables(terms, shapes), y[None], l[None], STIFFNESS[None])
    dense = dense_energy(terms, y, l, STIFFNESS, shapes)
    # Powers of xi cost a quintic five digits of its random curvatures (products of eighth degree);
    # the tensors are rationals.
    record_number(
        f"003 {choice} shapes: factored tables against tensors",
        float(jnp.abs(factored / dense - 1)),
        1e-12 if choice == "low" else 1e-9,
    )


def _frequencies(shapes: Shapes, n: int):
    """Of a clamped-free beam with unit constants and no rotary inertia of bending: axial, torsion,
    bending in y, in z (each the second one).
    """
    l = jnp.full(n, 1.0 / n)
    M = _link.element_masses(shapes, l, jnp.ones(n), jnp.zeros((n, 3)).at[:, 0].set(1.0))
    tab = tables(LINEAR_TERMS, shapes)
    K = element_hessians(tab, jnp.zeros((n, shapes.size)), l, jnp.ones((n, 4)))[:, :-1, :-1]
    width = shapes.node + shapes.own
    spread = jax.vmap(lambda e: _link.element_unknowns(e, n, shapes.node), out_axes=2)(
        jnp.eye(n * width)
    )
    M, K = (np.einsum("eia,eij,ejb->ab", spread, E, spread) for E in (M, K))
    own = {
        f: [r - shapes.node for r in rows if r >= shapes.node]
        for f, rows in field_rows(shapes).items()
    }
    out = []
    for cols in own.values():
        at = np.array([e * width + c for e in range(n) for c in sorted(cols)])
        w2 = np.linalg.eigvals(np.linalg.solve(M[np.ix_(at, at)], K[np.ix_(at, at)])).real
        out.append(np.sqrt(np.sort(w2)[1]))
    return np.array(out)


# Eigenvalues converge with 2 (p + 1 - m), p the degree, m = 1 for rods, 2 for beams.
@pytest.mark.slow
@pytest.mark.parametrize(
    "choice, rods, beams, orders",
    [("low", 8, 8, (2, 2, 4, 4)), ("default", 3, 6, (6, 2, 4, 4)), ("high", 2, 4, (10, 6, 8, 8))],
)
def test_frequencies_converge_at_the_order_of_the_shapes(
    choice, rods, beams, orders, record_number
):
    """``rods``, ``beams``: elements of the coarser mesh, fine enough for the order to show and
    coarse enough for rounding not to.
    """
    exact = np.array([1.5 * np.pi, 1.5 * np.pi, 4.694091132974175**2, 4.694091132974175**2])
    shapes = Shapes.of(CHOICES[choice])
    error = {
        n: np.abs(_frequencies(shapes, n) / exact - 1) for n in {rods, 2 * rods, beams, 2 * beams}
    }
    for k, (field, wanted) in enumerate(zip(("ux", "alpha", "uy", "uz"), orders, strict=True)):
        n = rods if k < 2 else beams
        record_number(
            f"003 {choice} shapes: order of {field}",
            float(np.log2(error[n][k] / error[2 * n][k])),
            (wanted - 0.5, wanted + 0.5),
            relation="in",
        )


@pytest.mark.parametrize("choice", CHOICES)
def test_structured_solve_eliminates_what_an_element_owns(choice, record_number):
    shapes, n, D = Shapes.of(CHOICES[choice]), 3, 2
    key = jax.random.split(jax.random.key(7), 4)
    A = jax.random.normal(key[0], (n, shapes.size, shapes.size))
    E = A @ jnp.swapaxes(A, 1, 2) + shapes.size * jnp.eye(shapes.size)[None]
    width = shapes.node + shapes.own
    border, joint = jax.random.normal(key[1], (D, n * width)), 200.0 * jnp.eye(D)
    r = jax.random.normal(key[2], (D + n * width,))
    spread = jax.vmap(lambda e: _link.element_unknowns(e, n, shapes.node), out_axes=2)(
        jnp.eye(n * width)
    )
    full = np.block([[joint, border], [border.T, np.einsum("eia,eij,ejb->ab", spread, E, spread)]])
    x = jax.jit(
        lambda: jnp.concatenate(
            solve_elements(
                factor_elements(shapes.node, E, border, joint, jnp.ones(D, bool)),
                r[:D],
                r[D:],
            )
        )
    )()
    record_number(
        f"003 {choice} shapes: structured solve", float(np.max(np.abs(full @ x - r))), 1e-11
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_bent_start_does_not_stretch(choice, record_number):
    shapes, n = Shapes.of(CHOICES[choice]), 6
    X, l = jnp.arange(n) / n, jnp.full(n, 1.0 / n)
    bend = {"uy": lambda x: 0.02 * x**2, "uz": lambda x: 0.01 * x**3}
    y = _link.element_unknowns(inextensible(shapes, X, l, bend), n, shapes.node)
    assert abs(float(y[-1, 2 * shapes.node - 4]) - 0.02) < 1e-15  # uy of the tip
    strain = measures(shapes, False, y, l)[:, 0]
    mean = jnp.sum(strain / jnp.arange(1.0, strain.shape[1] + 1)[None, :], axis=1)
    record_number(
        f"003 {choice} shapes: mean stretch of a bent start", float(jnp.max(jnp.abs(mean))), 1e-16
    )


def test_a_high_order_element_joins_the_model(record_number):
    """A whole model with other shapes: one quintic element has the first frequency to 1.6e-6 (ten
    cubic ones: 8.5e-7).
    """
    constants = fx.BeamConstants(EA=1e6, EIy=1.0, EIz=1.0, GJ=1.0, rhoA=1.0)
    robot = fx.Robot(
        "rod",
        [fx.Link("rod", 1.0, constants=constants)],
        [fx.Joint("weld", "fixed", "ground", "rod")],
        gravity=(0.0, 0.0, 0.0),
        planar=True,
    )
    model = fx.MovingBeam(elements=1, shapes={"uy": "quintic"}, rotary=False).bind(robot)
    assert model.layout.nv == 3 + 2 + 2
    m = model.matrices(
        0.0, model.initial_state(fx.Drive(), 0.0, fx.Start()), fx.Drive(), jnp.zeros(7)
    )
    w2 = np.linalg.eigvals(np.linalg.solve(np.asarray(m.M), np.asarray(m.K_strain))).real
    record_number(
        "003 one quintic element: first frequency",
        abs(np.sqrt(w2.min()) / 3.516015268541 - 1),
        2e-6,
    )


def test_what_is_not_of_hermites_kind_is_refused():
    with pytest.raises(ValueError, match="shapes: field 'w'"):
        fx.MovingBeam(shapes={"w": "cubic"})
    with pytest.raises(ValueError, match="expected one of linear, cubic, quintic"):
        fx.MovingBeam(shapes={"uy": "septic"})
    with pytest.raises(ValueError, match="value and slope"):
        fx.MovingBeam(shapes={"uy": "linear"})
    wrong = ShapeSet("wrong", ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))), (0, 0))
    with pytest.raises(ValueError, match="not of Hermite's kind"):
        fx.MovingBeam(shapes={"ux": wrong})
    assert hash(fx.MovingBeam(shapes={"ux": CUBIC})) == hash(fx.MovingBeam(shapes={"ux": CUBIC}))
