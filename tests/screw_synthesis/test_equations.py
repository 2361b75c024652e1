"""The equations themselves: Lagrange's by automatic differentiation, the stacked dense system,
momenta, gradients, at generic states.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.screw_synthesis._paper import stacked_acceleration, stacked_system
from flexjax.numerics.term import Instant
from tests.screw_synthesis.arms import arm, somewhere

JOINTS = ("revolute", "universal", "prismatic", "fixed", "revolute")
PAYLOAD = fx.Payload(
    "load", "link1", 0.3, inertia=(1e-3, 2e-3, 3e-3), offset=(0.05, 0.02, -0.03), s=0.7
)


@eqx.filter_jit
def _by_lagrange(term, q, v):
    """Residuals of what must hold between the energies and the equations; sizes beside them."""

    def lagrangian(q, v):
        kinetic, elastic, gravity = term.energies(Instant(0.0), q, v)
        return kinetic - elastic - gravity

    a = term.accelerate(Instant(0.0), q, v)
    by_q, by_v = jax.grad(lagrangian, argnums=(0, 1))(q, v)
    M = jax.vmap(lambda e: term.momentum(q, e))(jnp.eye(v.shape[0]))
    rate = jax.jvp(lambda q: term.momentum(q, v), (q,), (v,))[1]
    lagrange = jnp.linalg.solve(M, by_q - rate)
    vb = v[::-1]
    kin = jax.vmap(lambda x, y: term.kinetic_gradient(q, x, y))
    same, other, mixed, both = kin(jnp.stack([v, vb, v, v + vb]), jnp.stack([v, vb, vb, v + vb]))
    gradient = same - term.potential_gradient(q) - by_q
    gap = term.balance(Instant(0.0), q, v, a)
    residuals = (a - lagrange, gap, M @ v - by_v, gradient, both - same - other - 2 * mixed)
    return residuals, (lagrange, lagrange, by_v, by_q, both)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="base", marks=pytest.mark.slow),
        pytest.param({"stiffening": True, "frame": 0.4}, id="stiff-framed"),
    ],
)
def test_recursion_is_lagrange(options, record_number):
    """Everything follows from the energies, which are written from positions and velocities of
    points alone.
    """
    model = fx.ScrewSynthesis(modes=(1, 2, 2, 1), **options).bind(arm(JOINTS, payloads=(PAYLOAD,)))
    residuals, sizes = _by_lagrange(*somewhere(model))
    place = "frame inside, stiffening" if options else "frame at base"
    names = (
        "recursion - Lagrange",
        "balance",
        "momentum - dT/dv",
        "gradient of the Lagrangian",
        "kinetic gradient is bilinear",
    )
    for name, residual, size in zip(names, residuals, sizes, strict=True):
        record_number(
            f"screw synthesis, {place}: {name}, relative",
            np.max(np.abs(residual)) / np.max(np.abs(size)),
            1e-10,
        )


@eqx.filter_jit
def _forward_and_back(term, q, v):
    a = term.accelerate(Instant(0.0), q, v)
    return a, term.inverse(Instant(0.0), q, v, a).W


MIXED = ("revolute", "universal", "spherical", "prismatic", "fixed", "revolute")
KINDS = {3: ("spherical", "prismatic", "universal"), 6: MIXED}


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 6, 32))])
def test_recursion_is_the_stacked_system(n, record_number):
    model = fx.ScrewSynthesis(modes=2).bind(arm(KINDS.get(n, ("revolute",) * n)))
    term, q, v = somewhere(model, seed=n, bend=0.01, speed=0.5)
    a, needs = _forward_and_back(term, q, v)
    dense, W = eqx.filter_jit(stacked_acceleration)(term, Instant(0.0), q, v)
    record_number(
        f"screw synthesis: recursion - dense stacked solve, n = {n}",
        np.max(np.abs(a - dense)) / np.max(np.abs(dense)),
        1e-10,
    )
    record_number(
        f"screw synthesis: interaction wrenches, n = {n}",
        np.max(np.abs(W - needs)) / np.max(np.abs(needs)),
        1e-10,
    )
    if n == 3:
        system = eqx.filter_jit(lambda *x: stacked_system(*x).symmetric())(term, Instant(0.0), q, v)
        np.testing.assert_allclose(system, system.T, atol=1e-14)


@pytest.mark.slow
def test_wrenches_are_as_good_as_the_system_allows(record_number):
    """Universal and spherical joints in generic places: a link may come close to turning about its
    own axis alone, where its inertia is a thousandth of what hangs on it. Judged by the condition
    of the stacked system, whose solution is refined in extended precision.
    """
    model = fx.ScrewSynthesis(modes=2).bind(arm(MIXED))
    worst = {"accelerations": 0.0, "wrenches": 0.0}
    for seed in range(6):
        term, q, v = somewhere(model, seed=seed, bend=0.01, speed=0.5)
        a, needs = _forward_and_back(term, q, v)
        system = eqx.filter_jit(stacked_system)(term, Instant(0.0), q, v)
        M, rhs = np.asarray(system.matrix), np.asarray(system.rhs)
        x = np.linalg.solve(M, rhs).astype(np.longdouble)
        for _ in range(3):
            x = x + np.linalg.solve(M, (rhs - M.astype(np.longdouble) @ x).astype(float))
        x = x.astype(float)
        W = np.stack(
            [B @ x[i:j] for B, (i, j) in zip(system.complements, system.wrench_slices, strict=True)]
        )
        eta = np.concatenate([x[i:j] for i, j in system.shape_slices])
        unit = np.linalg.cond(M) * np.finfo(float).eps
        errors = {
            "accelerations": np.max(np.abs(a[-eta.size :] - eta)) / np.max(np.abs(eta)) / unit,
            "wrenches": np.max(np.abs(needs - W)) / np.max(np.abs(W)) / unit,
        }
        worst = {k: max(worst[k], float(e)) for k, e in errors.items()}
    for name, error in worst.items():
        record_number(
            f"screw synthesis, six joints of all kinds, six states: {name} over condition times "
            "round-off",
            error,
            4.0,
        )


def test_loads_do_their_work_on_bent_links():
    """Power of a follower wrench on a section = generalised force times velocity, by differences of
    the section's pose.
    """
    model = fx.ScrewSynthesis(modes=(1, 2, 2, 1)).bind(arm(("revolute", "revolute")))
    wrench = np.array([3.0, -2.0, 1.0, 0.4, 0.5, -0.6])
    drive = fx.Drive(loads=(fx.Load("link0", fx.constant(wrench), s=0.6, frame="section"),))
    term, q, v = somewhere(model)
    term = model.term(drive)
    driven, _ = eqx.filter_jit(lambda t, q, v: t.forces(Instant(0.0), q, v))(term, q, v)
    y = eqx.tree_at(
        lambda y: (y.mech.q, y.mech.v),
        model.initial_state(drive, jnp.zeros(()), fx.formulation.Start()),
        (q, v),
    )
    observe = eqx.filter_jit(lambda m, y: m.observe(0.0, y, drive, jnp.array([0.6])).velocity)
    twist = observe(model, y)[0, 0]
    np.testing.assert_allclose(jnp.sum(driven * v), jnp.sum(twist * wrench), rtol=1e-12)
