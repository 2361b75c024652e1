"""The solvers inside jit against other solvers and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import flexjax as fx
from flexjax.study.optimise.horizon._stages import Stages, solve_bounded, solve_free
from flexjax.study.optimise.search._quadratic import solve_quadratic


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_program_is_optimal(seed):
    """Strictly convex: the conditions of optimality have one solution."""
    rng = np.random.default_rng(seed)
    n, m = 6, 25
    root = rng.normal(size=(n, n))
    Q, q, G = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n), rng.normal(size=(m, n))
    h = G @ rng.normal(size=n) * 0.1 + rng.uniform(0.0, 0.5, m)
    assert linprog(np.zeros(n), G, h, bounds=(None, None)).status == 0
    found = jax.jit(solve_quadratic)(*map(jnp.asarray, (Q, q, G, h, np.zeros(n))))
    assert bool(found.ok) and np.all(G @ found.x <= h + 1e-8)
    # The slope is balanced by multipliers of constraints that bind.
    z = np.asarray(found.multipliers)
    np.testing.assert_allclose(Q @ found.x + q + G.T @ z, 0.0, atol=1e-8)
    assert np.all(z >= 0) and np.all(z * (h - G @ found.x) < 1e-8)


def _stages(seed, H=5, n=3, m=2):
    rng = np.random.default_rng(seed)
    Q = np.stack([a @ a.T for a in rng.normal(size=(H, n, n))])
    R = np.stack([a @ a.T + np.eye(m) for a in rng.normal(size=(H, m, m))])
    parts = [rng.normal(size=s) for s in ((H, n, n), (H, n, m), (H, n), (H, n), (H, m))]
    A, B, c, q, r = parts
    return Stages(*map(jnp.asarray, (A, B, c, Q, q, R, r))), jnp.asarray(rng.normal(size=n))


@pytest.mark.parametrize("bound", [np.inf, 0.3])
def test_stages_against_one_dense_program(bound):
    stages, s0 = _stages(0)
    H, m = stages.r.shape

    def cost(u):
        total, s = 0.0, s0
        for k in range(H):
            s = stages.A[k] @ s + stages.B[k] @ u[k] + stages.c[k]
            total += 0.5 * s @ stages.Q[k] @ s + stages.q[k] @ s
            total += 0.5 * u[k] @ stages.R[k] @ u[k] + stages.r[k] @ u[k]
        return total

    flat = jax.jit(lambda x: cost(x.reshape(H, m)))
    zero = jnp.zeros(H * m)
    Q, q = jax.hessian(flat)(zero), jax.grad(flat)(zero)
    if np.isinf(bound):
        u, _ = jax.jit(solve_free)(stages, s0)
        expected = -jnp.linalg.solve(Q, q)
    else:
        low = jnp.full((H, m), -bound)
        u, _ = jax.jit(solve_bounded)(stages, s0, low, -low)
        eye = jnp.eye(H * m)
        G, h = jnp.concatenate([eye, -eye]), jnp.full(2 * H * m, bound)
        expected = jax.jit(solve_quadratic)(Q, q, G, h, zero).x
        assert float(jnp.max(jnp.abs(expected))) > 0.99 * bound
    np.testing.assert_allclose(u.reshape(-1), expected, atol=1e-6)


def _bar(gravity=0.0):
    """A rigid bar of length 1 m with a mass of 1 kg at its end, on a joint."""
    body = fx.Body(1e-9, (0.5, 0, 0), (1e-12,) * 3 + (0.0,) * 3)
    link = fx.Link("bar", 1.0, rigid=True, body=body)
    joint = fx.Joint("pin", "revolute", "ground", "bar")
    tool = fx.Payload("tool", "bar", 1.0)
    return fx.RigidArm().bind(
        fx.Robot("bar", (link,), (joint,), payloads=(tool,), gravity=(0, -gravity, 0), planar=True)
    )


def test_lqr_of_one_mass_is_the_closed_form():
    """J q'' = u with weights 1/p^2, 1/v^2, 1/e^2: kp = e/p, kd = sqrt(2 J kp + (e/v)^2)."""
    p, v, e = 0.1, 2.0, 5.0
    found = fx.lqr(_bar(), position=p, velocity=v, effort=e)
    kp = e / p
    np.testing.assert_allclose(found.kp, [[kp]], rtol=1e-6)
    np.testing.assert_allclose(found.kd, [[np.sqrt(2 * kp + (e / v) ** 2)]], rtol=1e-6)
    assert np.all(found.eigenvalues.real < 0)
    for options, words in (
        (dict(effort=-1.0), "effort: -1.0; expected positive"),
        (dict(position={"elbow": 1.0}), "position: .*expected one number, or one for each joint"),
        (dict(reference={"elbow": fx.constant(0.0)}), "expected signals for pin"),
    ):
        with pytest.raises(ValueError, match=words):
            fx.lqr(_bar(), **options)


@pytest.mark.slow
def test_shooting_holds_an_unstable_arm():
    """From hanging by 0.4 rad off the upright to rest upright, over ten times the time in which a
    deviation grows by e: one shot would multiply it by 2e4."""
    model = _bar(9.81)
    upright = np.pi / 2
    plan = fx.shoot(
        model,
        goal={"pin": upright},
        start={"pin": upright - 0.4},
        duration=3.2,
        samples=32,
        effort=8.0,
        dt=0.02,
    )
    assert plan.ok and plan.gap < 1e-6, plan
    assert np.all(np.abs(plan.effort) <= 8.0 + 1e-9) and np.abs(plan.effort).max() > 7.9
    np.testing.assert_allclose(plan.states[-1], [upright, 0.0], atol=2e-3)
    # The pieces join: simulated in one run, the efforts give the same states for a while.
    ts = np.linspace(0.0, 1.0, 11)
    run = fx.simulate(model, plan.drive, ts, dt=0.02, start={"pin": upright - 0.4})
    np.testing.assert_allclose(run.q[1:, 0], plan.states[:10, 0], atol=1e-4)


@pytest.mark.slow
def test_a_receding_horizon_reaches_the_goal_with_another_payload():
    model = _bar(9.81)
    plant = model.rebind(model.robot.replace("payloads.tool.mass", 1.05))
    run = fx.mpc(
        model,
        goal={"pin": np.pi / 2},
        start={"pin": np.pi / 2 - 0.4},
        duration=3.0,
        sample=0.1,
        horizon=12,
        effort=8.0,
        dt=0.02,
        plant=plant,
    )
    assert np.all(np.abs(run.effort) <= 8.0 + 1e-9)
    # Upright the weight needs no effort, so the wrong payload leaves no offset.
    assert run.distance[0] > 0.3 and run.distance[-1] < 5e-3, run
    assert run.seconds.shape == (30,) and "samples of 100 ms" in str(run)
