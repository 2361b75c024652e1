"""The implicit midpoint rule and TR-BDF2 on y' = lambda y, and when Newton's iteration ends."""

import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.solver import _implicit_midpoint
from flexjax.numerics.solver._implicit_midpoint import _verdict
from flexjax.numerics.term import State, Step


class Unknowns(eqx.Module):
    x: jax.Array
    loops: jax.Array


def term(rate):
    """A stage from z over h has u = z + h lambda u, and ends ``factor`` h lambda u beyond z; the
    power of the drive is y', that of the dampers twice as large."""
    return types.SimpleNamespace(
        prepare=lambda t, z, h, end, piece_time, memory: (z, h),
        guess=lambda z: Unknowns(z, jnp.zeros(0)),
        arrive=lambda stage, u, factor: (
            stage[0] + factor * stage[1] * rate * u.x,
            rate * u.x,
            2 * rate * u.x,
        ),
        settle=lambda t, z, piece_time: z,
        blend=lambda z0, z, weight, inner, u: z + weight * (z0 - z),
    )


def one_step(solver, z, monkeypatch):
    """y1 / y0, work and dissipated energy of a step with lambda dt = z."""

    def solved(term, stage, guess, floor, running):
        return Unknowns(stage[0] / (1 - stage[1] * z / 0.1), guess.loops), jnp.asarray(True)

    monkeypatch.setattr(_implicit_midpoint, "solve_stage", solved)
    monkeypatch.setattr(_implicit_midpoint, "AbstractMultistageTerm", types.SimpleNamespace)
    zero = jnp.zeros(())
    y0 = State(jnp.ones(()), zero, zero, ())
    before = Unknowns(jnp.ones(()), jnp.zeros(0))
    y1, _, ok = solver.stages(term(z / 0.1), Step(0.2, 0.3), y0, before)
    assert ok
    return float(y1.mech), float(y1.work), float(y1.dissipated)


def test_midpoint(monkeypatch):
    for z in (-0.3, 0.2):
        y, work, lost = one_step(fx.ImplicitMidpoint(), z, monkeypatch)
        assert y == pytest.approx((1 + z / 2) / (1 - z / 2), rel=1e-14)
        np.testing.assert_allclose([work, lost], [y - 1, 2 * (y - 1)], rtol=1e-13)


def test_backward_difference_behind_a_midpoint(monkeypatch):
    """Bank et al. (1985): second order, and stiff modes vanish in one step."""
    g = 2 - np.sqrt(2)
    for z in (-0.3, 0.2):
        y, work, lost = one_step(fx.TRBDF2(), z, monkeypatch)
        inner = (1 + g * z / 2) / (1 - g * z / 2)
        exact = (inner - (1 - g) ** 2) / (g * (2 - g)) / (1 - (1 - g) / (2 - g) * z)
        assert y == pytest.approx(exact, rel=1e-13)
        np.testing.assert_allclose([work, lost], [y - 1, 2 * (y - 1)], rtol=1e-12)
    assert one_step(fx.TRBDF2(), 0.01, monkeypatch)[0] == pytest.approx(np.exp(0.01), abs=1e-7)
    assert abs(one_step(fx.TRBDF2(), -1e9, monkeypatch)[0]) < 1e-8


EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize(
    ("exact", "k", "now", "last", "verdict"),
    [
        (True, 0, 3e-6, 1.0, (True, False)),  # after one correction nothing is known
        (True, 1, 3e-6, 1.0, (False, True)),  # the next is 3e-17
        (True, 1, 3e-5, 1.0, (True, False)),
        (False, 1, 3e-6, 1.0, (True, False)),  # the next is 9e-12
        (False, 1, 3e-9, 1.0, (False, True)),
        (False, 1, 3e-7, 1e-1, (True, False)),
        (True, 0, 3 * EPS, 1.0, (False, True)),  # round-off
        (True, 0, 5 * EPS, 1.0, (True, False)),
        (False, 4, 6e-10, 1e-9, (False, True)),  # stalled near round-off
        (False, 3, 6e-10, 1e-9, (True, False)),
        (False, 4, 4e-10, 1e-9, (True, False)),
        (False, 4, 3e-8, 4e-8, (True, False)),
        (True, 4, np.inf, 1.0, (False, False)),
    ],
)
def test_newton_ends_at_round_off(exact, k, now, last, verdict):
    for scale in (1.0, 1e-3):  # of the unknowns
        sizes = jnp.asarray(now * scale), jnp.asarray(last * scale)
        found = _verdict(exact, EPS, k, *sizes, scale)
        assert tuple(map(bool, found)) == verdict
