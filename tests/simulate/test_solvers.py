"""Orders, energy and groups of the second-order solvers, measured."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from tests.simulate.arms import START, pair_model

SOLVERS = {
    "Newmark": fx.Newmark(),
    "GeneralisedAlpha": fx.GeneralisedAlpha(0.7),
    "DiscreteGradient": fx.DiscreteGradient(),
}


@functools.cache
def stepper(name):
    """One compiled step for any dt: the loop over steps stays in Python, so that refining compiles
    nothing.
    """
    solver, model = SOLVERS[name], pair_model()
    term = model.term(fx.Drive())
    y0 = model.initial_state(fx.Drive(), 0.0, Start(START))
    first = jax.jit(lambda y: solver.init(term, 0.0, 0.1, y, 0.0))(y0)

    @jax.jit
    def step(t, dt, y, state):
        y1, _, _, state, result = solver.step(term, t, t + dt, y, t + 0.5 * dt, state, False)
        return y1, state, result == diffrax.RESULTS.successful

    return y0, first, step


def final(name, steps, end=0.32):
    y, state, step = stepper(name)
    dt = end / steps
    for k in range(steps):
        y, state, ok = step(jnp.asarray(k * dt), jnp.asarray(dt), y, state)
        assert bool(ok)
    return np.concatenate([np.asarray(y.mech.q), np.asarray(y.mech.v)])


@pytest.mark.parametrize("name", list(SOLVERS))
def test_second_order(name, record_number):
    coarse, middle, fine = (final(name, n) for n in (20, 40, 80))
    order = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
    record_number(f"order of {name}", order, (1.85, 2.15), "in")


def test_solvers_agree():
    limit = [final(name, 160) + (final(name, 160) - final(name, 80)) / 3 for name in SOLVERS]
    for other in limit[1:]:
        np.testing.assert_allclose(other, limit[0], atol=2e-6)


def test_first_order_when_newmark_damps(record_number):
    y, _, _ = stepper("Newmark")
    solver, term = fx.Newmark(0.5, 0.8), pair_model().term(fx.Drive())
    state0 = jax.jit(lambda y: solver.init(term, 0.0, 0.1, y, 0.0))(y)
    step = jax.jit(lambda t, dt, y, s: solver.step(term, t, t + dt, y, t, s, False)[0:4:3])
    ends = []
    for n in (40, 80, 160):
        z, state = y, state0
        for k in range(n):
            z, state = step(jnp.asarray(k * 0.32 / n), jnp.asarray(0.32 / n), z, state)
        ends.append(np.asarray(z.mech.q))
    order = np.log2(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2]))
    record_number("order of Newmark with gamma = 0.8", order, (0.85, 1.15), "in")


def test_newmark_balances_a_stiff_damper(record_number):
    """The rate alternates from step to step. Work and dissipation are mean forces times mean
    velocities; the mean of the powers dissipated ten times the energy that there was."""
    material = fx.Material(E=2e11, nu=0.3, rho=7800.0)
    link = fx.Link("link", 0.4, section=fx.Rectangle(0.03, 0.03), material=material)
    joint = fx.Joint("root", "revolute", "ground", "link", damping=20.0)
    robot = fx.Robot("bar", (link,), (joint,), planar=True, gravity=(0.0, 0.0, 0.0))
    drive = fx.Drive(joints={"root": fx.PD(5.0, 1.0, fx.constant(0.3))})
    start, ts = fx.Start(rates={"root": 2.0}), 0.05 * jnp.arange(9)
    model = fx.RigidArm().bind(robot)
    traj = fx.simulate(model, drive, ts, substeps=1, solver=fx.Newmark(), start=start)
    assert np.all(traj.qd[1:4, 0] * traj.qd[:3, 0] < 0)
    energy = traj.energy
    drift = np.max(np.abs(energy.balance - energy.balance[0])) / float(energy.kinetic[0])
    record_number("Newmark, overdamped joint: energy balance, relative", drift, 1e-12)


def test_rotations_stay_rotations(record_number):
    """Quaternions are moved on the group: no drift in 1e5 steps."""
    from flexjax.numerics.screw import se3

    turn = jnp.array([3e-3, -2e-3, 1e-3])
    quat = jax.jit(
        lambda q: jax.lax.fori_loop(0, 100_000, lambda _, q: se3.quat_retract(q, turn), q)
    )(jnp.array([1.0, 0.0, 0.0, 0.0]))
    R = np.asarray(se3.quat_to_matrix(quat))
    record_number(
        "R^T R - 1 after 1e5 steps on the group", np.max(np.abs(R.T @ R - np.eye(3))), 1e-12
    )


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 1.0])
def test_spectral_radius_of_the_highest_frequencies(rho):
    """Of the step of Chung and Hulbert's method for a'' = -w^2 a, as w dt becomes infinite."""
    beta, gamma, alpha_m, alpha_f = (float(x) for x in fx.GeneralisedAlpha(rho).coefficients())
    w2 = 1e9  # (w dt)^2; unknowns a, a' dt, a'' dt^2 after the step, from those before it
    after = [[1, 0, -beta], [0, 1, -gamma], [(1 - alpha_f) * w2, 0, 1 - alpha_m]]
    before = [[1, 1, 0.5 - beta], [0, 1, 1 - gamma], [-alpha_f * w2, 0, -alpha_m]]
    found = np.abs(np.linalg.eigvals(np.linalg.solve(after, before)))
    np.testing.assert_allclose(found.max(), rho, atol=2e-3)
