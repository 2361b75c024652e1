"""One step of the energy-conserving solver on a mass matrix and a potential that depend on the
position, against its equations with a fine quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.term import Mechanical, State, Step

DT, C, GYRO = 0.1, np.array([0.2, 0.5]), 0.7
DRIVE = jnp.array([0.4, -1.1])
MOTION = (0.35, 0.8)  # of the prescribed coordinate, at the end
GROUND = (0.3, -0.2, 0.5)  # products with the ground's twist, and the power that lifts its weight


def mass(q):
    return jnp.array([[2.0 + q[0] ** 2, 0.3 * q[1]], [0.3 * q[1], 1.5 + q[0] * q[1]]])


def potential(q):
    return 3.0 * q[0] ** 2 + q[0] * q[1] ** 3 + 0.5 * q[1] ** 4


def lagrangian(q, va, vb):
    return 0.5 * va @ mass(q) @ vb - potential(q)


class Term:
    """Any object will do that has the functions."""

    def __init__(self, **functions):
        self.__dict__.update(functions)


def term(prescribed, ground):
    mask = np.array([False, prescribed])
    none = jnp.zeros(2)
    target = none.at[1].set(MOTION[0])

    def on_ground(step, s, q, va, vb):
        carried = ((1 + s) * GROUND[0], (1 + s) * GROUND[1], s * GROUND[2]) if ground else None
        return mass(q) @ va, mass(q) @ vb, jax.grad(lagrangian)(q, va, vb), carried

    return Term(
        prescribed=lambda t, piece: (mask, target, none.at[1].set(MOTION[1]), none),
        displacement=lambda q, mask, target: jnp.where(mask, target - q, 0.0),
        impose=lambda q, mask, target: jnp.where(mask, target, q),
        move=lambda q, dx: q + dx,
        kinks=lambda q, dx: jnp.zeros(0),
        lagrangian_on_ground=on_ground,
        forces=lambda now, q, v: (DRIVE, -jnp.asarray(C) * v),
        gyration=lambda v, p: GYRO * jnp.array([-v[1], v[0]]),
        preconditioner=lambda now, q, v, cv, cq: mass(q) + cq * jax.hessian(potential)(q),
        precondition=lambda m, r: jnp.where(mask, r, jnp.linalg.solve(_held(m, mask), r)),
        limits=lambda now, q, v: None,
        roundoff=lambda factors, q, v: None,
    )


def _held(m, mask):
    free = jnp.asarray(~mask)
    return jnp.where(free[:, None] & free[None, :], m, jnp.eye(2))


@pytest.mark.parametrize(("prescribed", "ground"), [(False, True), (True, False)])
def test_a_step_keeps_its_equations_and_the_energy(prescribed, ground):
    q0, v0 = jnp.array([0.2, 0.3]), jnp.array([1.0, -0.6])
    zero = jnp.zeros(())
    y0 = State(Mechanical(q0, v0), zero, zero, ())
    solver, none = fx.DiscreteGradient(points=4), jnp.zeros((), jnp.int32)
    made = term(prescribed, ground)
    y1, _, _, ok = jax.jit(
        lambda y: solver.advance(made, Step(0.0, jnp.asarray(DT)), y, none, False)
    )(y0)
    assert ok
    q1, v1 = y1.mech.q, y1.mech.v
    u = np.asarray((q1 - q0) / DT)
    free = np.array([True, not prescribed])
    np.testing.assert_allclose(u[free], 0.5 * np.asarray(v0 + v1)[free], atol=1e-13)
    if prescribed:
        np.testing.assert_allclose([q1[1], v1[1]], MOTION, atol=1e-15)
    x, w = np.polynomial.legendre.leggauss(12)
    path = q0[None] + 0.5 * (x + 1)[:, None] * (q1 - q0)[None]
    mean = 0.5 * w @ jax.vmap(lambda q: jax.grad(lagrangian)(q, v0, v1))(path)
    p0, p1 = mass(q0) @ v0, mass(q1) @ v1
    turn = GYRO * np.array([-u[1], u[0]])
    gap = np.asarray(p1 - p0 - DT * (mean + DRIVE - C * u + turn))
    np.testing.assert_allclose(gap[free], 0.0, atol=1e-13)
    # The prescription and the moving ground do work too.
    energy = lambda q, v: lagrangian(q, v, v) + 2 * potential(q)
    carried = 2 * GROUND[1] - GROUND[0] + 0.5 * DT * GROUND[2] if ground else 0.0
    gained = float(energy(q1, v1) - energy(q0, v0)) + carried
    assert float(y1.dissipated) == pytest.approx(DT * float(u @ (C * u)), rel=1e-12)
    assert float(y1.work - y1.dissipated) == pytest.approx(gained, rel=1e-11)
